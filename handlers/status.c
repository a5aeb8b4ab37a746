#include "handlers/status.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "db/line.h"
#include "fcgi/errand.h"
#include "handlers/inbox.h"
#include "handlers/problem.h"
#include "handlers/store.h"
#include "handlers/verify.h"

/* Everything both forms say, gathered once. */
struct facts {
    uint64_t seq, documents;
    uint64_t connections, accepted, broken;
    uint64_t requests[6];
    uint64_t rss_bytes;
    uint64_t polls, streams, events;
    bool courier; /* one runs */
    bool whole;   /* what is in the file is known, too */
    struct db_send_totals sends;
    struct db_writer_stats writer;
};

static uint64_t rss_bytes(void)
{
    char text[128];
    unsigned long long total = 0, resident = 0;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    if (sscanf(text, "%llu %llu", &total, &resident) != 2)
        return 0;
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What the process knows; not seq, documents and sends, which are in the file. Any thread. */
static void gather_process(const struct store *store, struct facts *f)
{
    memset(f, 0, sizeof *f);
    for (unsigned i = 0; i < store->loop_count; i++) {
        const struct loop_stats *s = loop_get_stats(store->loops[i]);
        f->connections += atomic_load_explicit(&s->connections, memory_order_relaxed);
        f->accepted += atomic_load_explicit(&s->accepted, memory_order_relaxed);
        f->broken += atomic_load_explicit(&s->broken, memory_order_relaxed);
        for (int k = 0; k < 6; k++)
            f->requests[k] += atomic_load_explicit(&s->requests[k], memory_order_relaxed);
    }
    f->polls = atomic_load_explicit(&store->watch.polls, memory_order_relaxed);
    f->streams = atomic_load_explicit(&store->watch.streams, memory_order_relaxed);
    f->events = atomic_load_explicit(&store->watch.events, memory_order_relaxed);
    f->rss_bytes = rss_bytes();
    f->courier = errand_locked(store->conf->database);
    db_writer_get_stats(store->writer, &f->writer);
}

/* False: the facts cannot be had, and that has been answered. */
static bool gather(struct call *c, struct facts *f)
{
    struct db_reader *reader = session_reader(c);
    gather_process(session_of(c)->store, f);
    enum db_result result = reader ? db_reader_totals(reader, &f->seq, &f->documents) : DB_BROKEN;
    if (result == DB_OK)
        result = db_send_totals(reader, &f->sends);
    f->whole = result == DB_OK;
    if (!f->whole)
        problem_result(c, result, 0);
    return f->whole;
}

static void add(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct buf *out, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n > 0 && !buf_add(out, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1, 65536))
        out->len = 0;
}

static void reply_text(struct call *c, struct str type)
{
    struct buf *text = &session_of(c)->text;
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", type);
    resp_header(c->resp, "Cache-Control", STR_LIT("no-store"));
    resp_body(c->resp, text->data, text->len);
}

enum verdict status_health(struct call *c)
{
    struct buf *text = &session_of(c)->text;
    uint64_t seq, documents;
    struct db_reader *reader = session_reader(c);
    enum db_result result = reader ? db_reader_totals(reader, &seq, &documents) : DB_BROKEN;
    if (result != DB_OK) {
        problem_with(c, 503, "The database cannot be read.",
                     (struct problem_header){"Retry-After", "5"});
        return REPLY;
    }
    text->len = 0;
    add(text, "{\"status\":\"ok\"}\n");
    reply_text(c, STR_LIT("application/json"));
    return REPLY;
}

static uint64_t count_of(const atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void json_apps(struct buf *out, const struct store *store)
{
    const struct app_stats *s = &store->app_stats;
    struct apps_stats set;
    apps_get_stats(store->apps, &set);
    add(out, "\"apps\":{\"serving\":%u,\"broken\":%u,\"requests\":%" PRIu64
             ",\"moved\":%" PRIu64 ",\"stopped\":%" PRIu64
             ",\"faults\":%" PRIu64 ",\"refused\":%" PRIu64 "},\n",
        set.apps, set.broken, count_of(&s->requests), count_of(&s->moved), count_of(&s->stopped),
        count_of(&s->faults), count_of(&s->refused));
}

static void json_sends(struct buf *out, const struct facts *f)
{
    const struct db_send_totals *s = &f->sends;
    if (!f->whole)
        return;
    add(out, "\"sends\":{\"lines\":%" PRIu64 ",\"disabled\":%" PRIu64 ",\"waiting\":%" PRIu64
             ",\"parked\":%" PRIu64 ",\"courier\":%s",
        s->lines, s->disabled, s->waiting, s->parked, f->courier ? "true" : "false");
    if (s->due_ms >= 0)
        add(out, ",\"due_ms\":%" PRId64, s->due_ms);
    add(out, "},\n");
}

static void json_histogram(struct buf *out, const struct db_writer_stats *w)
{
    bool first = true;
    add(out, "\"burst\":{\"count\":%" PRIu64 ",\"operations\":%" PRIu64 ",\"histogram\":{",
        w->bursts, w->operations);
    for (int i = 0; i < DB_BURST_CLASSES; i++) {
        if (w->histogram[i] == 0)
            continue;
        add(out, "%s\"%" PRIu64 "\":%" PRIu64, first ? "" : ",", UINT64_C(1) << i,
            w->histogram[i]);
        first = false;
    }
    add(out, "}},\n");
}

static void json_facts(struct buf *out, const struct store *store, const struct facts *f,
                       int64_t now_s)
{
    uint64_t requests = 0;
    for (int k = 0; k < 6; k++)
        requests += f->requests[k];
    add(out, "{\"version\":\"%s\",\"pid\":%d,\"supervisor_pid\":%d,\"sqlite\":\"%s\",\n",
        HANJI_VERSION, (int)getpid(), (int)getppid(), db_sqlite_version());
    add(out, "\"seq\":%" PRIu64 ",\"documents\":%" PRIu64 ",\"wal_bytes\":%" PRIu64 ",\n", f->seq,
        f->documents, f->writer.wal_bytes);
    add(out, "\"uptime_s\":%" PRId64 ",\"threads\":%u,\"connections\":%" PRIu64
             ",\"accepted\":%" PRIu64 ",\"broken\":%" PRIu64 ",\"requests\":%" PRIu64
             ",\"rss_bytes\":%" PRIu64 ",\n",
        now_s - store->start_s, store->loop_count, f->connections, f->accepted, f->broken, requests,
        f->rss_bytes);
    add(out, "\"watchers\":{\"polls\":%" PRIu64 ",\"streams\":%" PRIu64 ",\"events\":%" PRIu64
             "},\n",
        f->polls, f->streams, f->events);
    json_apps(out, store);
    json_sends(out, f);
    json_histogram(out, &f->writer);
    add(out, "\"commit_ms\":{\"p50\":%.3f,\"p99\":%.3f},\n", (double)f->writer.commit_p50_us / 1e3,
        (double)f->writer.commit_p99_us / 1e3);
    add(out, "\"checkpoints\":%" PRIu64 ",\"pinned_by\":%" PRId64
             ",\"queue\":{\"operations\":%" PRIu64 ",\"bytes\":%" PRIu64 "}}\n",
        f->writer.checkpoints, f->writer.pinned_by, f->writer.queue_operations,
        f->writer.queue_bytes);
}

enum verdict status_json(struct call *c)
{
    struct buf *out = &session_of(c)->text;
    struct facts f;
    if (!gather(c, &f))
        return REPLY;
    out->len = 0;
    json_facts(out, session_of(c)->store, &f, c->now_s);
    reply_text(c, STR_LIT("application/json"));
    return REPLY;
}

void status_process_json(const struct store *store, struct buf *out)
{
    struct facts f;
    gather_process(store, &f);
    json_facts(out, store, &f, (int64_t)time(NULL));
}

static void metric(struct buf *out, const char *name, const char *type, const char *help,
                   uint64_t value)
{
    add(out, "# HELP %s %s\n# TYPE %s %s\n%s %" PRIu64 "\n", name, help, name, type, name, value);
}

static void metric_requests(struct buf *out, const struct facts *f)
{
    add(out, "# HELP hanji_requests_total Answers by class of status.\n"
             "# TYPE hanji_requests_total counter\n");
    for (int k = 2; k < 6; k++)
        add(out, "hanji_requests_total{status=\"%dxx\"} %" PRIu64 "\n", k, f->requests[k]);
}

static void metric_passwords(struct buf *out)
{
    struct verify_stats s = verify_get_stats();
    add(out, "# HELP hanji_passwords_total Passwords compared, for logins and HTTP Basic.\n"
             "# TYPE hanji_passwords_total counter\n"
             "hanji_passwords_total{result=\"right\"} %" PRIu64 "\n"
             "hanji_passwords_total{result=\"wrong\"} %" PRIu64 "\n"
             "hanji_passwords_total{result=\"refused\"} %" PRIu64 "\n",
        s.right, s.wrong, s.refused);
}

static void metric_inboxes(struct buf *out)
{
    struct inbox_stats s = inbox_get_stats();
    add(out, "# HELP hanji_inbox_total Messages posted to inboxes, by what came of them.\n"
             "# TYPE hanji_inbox_total counter\n"
             "hanji_inbox_total{result=\"stored\"} %" PRIu64 "\n"
             "hanji_inbox_total{result=\"duplicate\"} %" PRIu64 "\n"
             "hanji_inbox_total{result=\"refused\"} %" PRIu64 "\n"
             "hanji_inbox_total{result=\"failed\"} %" PRIu64 "\n"
             "hanji_inbox_total{result=\"throttled\"} %" PRIu64 "\n",
        s.stored, s.again, s.refused, s.failed, s.limited);
}

static void metric_watchers(struct buf *out, const struct facts *f)
{
    add(out, "# HELP hanji_watchers Requests that wait for changes.\n"
             "# TYPE hanji_watchers gauge\n"
             "hanji_watchers{kind=\"poll\"} %" PRIu64 "\n"
             "hanji_watchers{kind=\"stream\"} %" PRIu64 "\n",
        f->polls, f->streams);
}

static void metric_apps(struct buf *out, const struct store *store)
{
    const struct app_stats *s = &store->app_stats;
    struct apps_stats set;
    apps_get_stats(store->apps, &set);
    metric(out, "hanji_apps", "gauge", "Apps that serve.", set.apps);
    metric(out, "hanji_apps_broken", "gauge", "Apps whose folder does not compile.", set.broken);
    metric(out, "hanji_app_requests_total", "counter", "Requests to apps.", count_of(&s->requests));
    metric(out, "hanji_app_moved_total", "counter",
           "Of those, the ones that went to a thread of the pool.", count_of(&s->moved));
    metric(out, "hanji_app_stopped_total", "counter", "Stopped because they took too long.",
           count_of(&s->stopped));
    metric(out, "hanji_app_faults_total", "counter", "Faults of apps' SQL and templates.",
           count_of(&s->faults));
    metric(out, "hanji_app_refused_total", "counter",
           "Refused because too much was slow at once.", count_of(&s->refused));
}

/* Seconds for which something has been due and was not tried. */
static uint64_t overdue_s(const struct db_send_totals *s, int64_t now_s)
{
    int64_t due_s = s->due_ms / 1000;
    return s->due_ms >= 0 && due_s < now_s ? (uint64_t)(now_s - due_s) : 0;
}

static void metric_sends(struct buf *out, const struct facts *f, int64_t now_s)
{
    metric(out, "hanji_lines", "gauge", "Lines that may be sent on.", f->sends.lines);
    metric(out, "hanji_lines_disabled", "gauge", "Of those, the ones that failed too long.",
           f->sends.disabled);
    metric(out, "hanji_sends_waiting", "gauge", "Messages that are not delivered yet.",
           f->sends.waiting);
    metric(out, "hanji_sends_parked", "gauge", "Messages about which a person must decide.",
           f->sends.parked);
    metric(out, "hanji_sends_overdue_seconds", "gauge",
           "For how long the next one has been due.", overdue_s(&f->sends, now_s));
    metric(out, "hanji_courier", "gauge", "1: a courier runs.", f->courier);
}

static void metric_commits(struct buf *out, const struct db_writer_stats *w)
{
    add(out, "# HELP hanji_commit_seconds Time of a commit with its sync.\n"
             "# TYPE hanji_commit_seconds summary\n"
             "hanji_commit_seconds{quantile=\"0.5\"} %.6f\n"
             "hanji_commit_seconds{quantile=\"0.99\"} %.6f\n"
             "hanji_commit_seconds_sum %.6f\nhanji_commit_seconds_count %" PRIu64 "\n",
        (double)w->commit_p50_us / 1e6, (double)w->commit_p99_us / 1e6,
        (double)w->commit_us_sum / 1e6, w->bursts);
}

enum verdict status_metrics(struct call *c)
{
    const struct store *store = session_of(c)->store;
    struct buf *out = &session_of(c)->text;
    struct facts f;
    if (!gather(c, &f))
        return REPLY;
    out->len = 0;
    metric_requests(out, &f);
    metric(out, "hanji_connections", "gauge", "Open FastCGI connections.", f.connections);
    metric(out, "hanji_connections_total", "counter", "Accepted FastCGI connections.", f.accepted);
    metric(out, "hanji_broken_total", "counter", "Connections closed for malformed records.",
           f.broken);
    metric_apps(out, store);
    metric_watchers(out, &f);
    metric_passwords(out);
    metric_inboxes(out);
    metric(out, "hanji_events_total", "counter", "Changes sent to those.", f.events);
    metric(out, "hanji_documents", "gauge", "Documents stored.", f.documents);
    metric(out, "hanji_seq", "counter", "Last sequence number.", f.seq);
    metric(out, "hanji_wal_bytes", "gauge", "Write-ahead log in use.", f.writer.wal_bytes);
    metric(out, "hanji_bursts_total", "counter", "Commits.", f.writer.bursts);
    metric(out, "hanji_operations_total", "counter", "Writes committed.", f.writer.operations);
    metric(out, "hanji_queue_operations", "gauge", "Writes waiting.", f.writer.queue_operations);
    metric_sends(out, &f, c->now_s);
    metric_commits(out, &f.writer);
    metric(out, "hanji_sealing_key_end_seconds", "gauge",
           "End of the sealing key in use, Unix time.", keyring_sealing_end(store->keys));
    metric(out, "hanji_resident_bytes", "gauge", "Resident memory of the worker.", f.rss_bytes);
    metric(out, "hanji_start_time_seconds", "gauge", "Start of the worker, Unix time.",
           (uint64_t)store->start_s);
    reply_text(c, STR_LIT("text/plain; version=0.0.4; charset=utf-8"));
    return REPLY;
}
