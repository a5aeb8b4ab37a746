#include "handlers/courier_loop.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fcgi/log.h"
#include "fcgi/memory.h"
#include "handlers/courier_curl.h"
#include "handlers/courier_read.h"
#include "handlers/courier_report.h"
#include "handlers/courier_sign.h"
#include "handlers/keys.h"

enum {
    LOOK_GAP_MS = 10, /* between two looks, and ten times what one took */
    LOOK_GAP_MOST_MS = 1000,
    LOOK_BUSY_MS = 500, /* while it sends: a line that was paused is seen so soon */
    AGAIN_MS = 1000,      /* when the store could not be read */
    SIGNED_FOR_S = 2,     /* a signature older than this is made anew */
    FINISH_MS = 2000,     /* asked to leave: for what is on its way, */
    FINISH_REPORT_MS = 800, /* and then for the reports */
    CACHE_BYTES = 256 << 10,
};

struct loop_state {
    const struct courier_config *config;
    struct courier_times times;
    struct courier_lines lines;
    struct courier_curl *curl;
    struct courier_reader *reader;
    struct courier_reporter *reporter;
    int64_t now_ms, mono_ms;
    int64_t idle_ms;
    int64_t active_ms; /* mono: there was something to do */
    /* looks, mono */
    bool look_wanted, looking;
    int64_t look_asked_ms, look_after_ms, looked_ms; /* looked_ms 0: never yet */
    int64_t leave_ms; /* mono: asked to leave, and must have by then; 0: not asked */
    uint64_t random;
};

static int64_t clock_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void take_time(struct loop_state *s)
{
    s->now_ms = clock_ms(CLOCK_REALTIME);
    s->mono_ms = clock_ms(CLOCK_MONOTONIC);
}

/* splitmix64: jitter, no secret. */
static uint64_t next_random(struct loop_state *s)
{
    uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* ---- what ended ---- */

static void fill_mark(struct courier_item *item, const struct courier_plan *plan)
{
    struct db_mark *mark = &item->mark;
    mark->line = item->line->id;
    mark->message = item->number;
    mark->counted = plan->counted;
    mark->skipped = item->skipped;
    mark->state = plan->state;
    mark->due_ms = plan->due_ms;
    mark->has_proof = item->has_proof;
    memcpy(mark->proof, item->proof, sizeof mark->proof);
    mark->wait_until_ms = plan->wait_until_ms;
    mark->works = plan->works && (item->line->failing_s != 0 || !item->line->works);
    mark->fails = plan->fails;
    mark->line_state = plan->line_state;
    mark->send_again_from = plan->send_again_from;
}

/* Once when it begins, and when it is over. */
static void log_line_news(const struct courier_item *item, const struct courier_plan *plan)
{
    const struct courier_line *line = item->line;
    if (plan->line_state != DB_LINE_OPEN)
        log_line(LOG_WARN, "a line is closed", "line", line->name, "reason", item->mark.outcome,
                 NULL);
    else if (strcmp(item->mark.outcome, courier_outcome_name(COURIER_LOCAL)) == 0)
        log_line(LOG_WARN, "a line cannot be delivered from here", "line", line->name, "reason",
                 item->mark.detail, NULL);
    else if (plan->half_open && !line->half_open)
        log_line(LOG_WARN, "a line waits", "line", line->name, "outcome", item->mark.outcome,
                 "detail", item->mark.detail, NULL);
    else if (plan->works && line->half_open)
        log_line(LOG_INFO, "a line works again", "line", line->name, NULL);
    if (plan->state == DB_SEND_PARKED || plan->state == DB_SEND_UNOPENABLE)
        log_line(LOG_WARN, "a message is parked", "line", line->name, "id", item->id, "outcome",
                 item->mark.outcome, NULL);
}

static void over(struct loop_state *s, struct courier_item *item, const struct courier_plan *plan)
{
    fill_mark(item, plan);
    log_line_news(item, plan);
    courier_lines_ended(&s->lines, item, plan, s->now_ms);
    courier_item_empty(item);
    courier_reporter_add(s->reporter, item);
    s->active_ms = s->mono_ms;
}

static void tried(struct loop_state *s, struct courier_item *item, const struct courier_end *end,
                  const char *detail)
{
    const struct courier_line *line = item->line;
    const struct courier_about about = {
        .times = &s->times,
        .now_ms = s->now_ms,
        .random = next_random(s),
        .seq = item->seq,
        .due_ms = item->due_ms,
        .created_s = item->created_s,
        .expires_s = item->expires_s,
        .tries = item->tries,
        .skipped = item->skipped,
        .failing_s = line->failing_s,
        .strikes = line->strikes,
        .gap = line->gap,
    };
    const struct courier_plan plan = courier_plan(&about, end);
    item->mark.attempted = true;
    item->mark.status = end->status;
    strncpy(item->mark.outcome, courier_outcome_name(end->outcome), DB_MARK_WORD_MAX - 1);
    strncpy(item->mark.detail, detail, DB_MARK_DETAIL_MAX - 1);
    over(s, item, &plan);
}

static void ended(void *arg, struct courier_item *item, const struct courier_end *end,
                  int64_t took_ms, const char *detail)
{
    struct loop_state *s = arg;
    take_time(s);
    item->mark.took_ms = took_ms;
    tried(s, item, end, detail);
}

/* ---- sending ---- */

static void send_local(struct loop_state *s, struct courier_item *item, const char *why)
{
    const struct courier_end end = {.outcome = COURIER_LOCAL};
    tried(s, item, &end, why);
}

static void send_one(struct loop_state *s, struct courier_item *item)
{
    item->mark.at_ms = s->now_ms;
    if (item->use == COURIER_OVER) {
        const struct courier_plan plan = {.state = item->state, .due_ms = item->due_ms,
                                          .line_state = DB_LINE_OPEN,
                                          .strikes = item->line->strikes};
        strncpy(item->mark.outcome, db_send_state_name(item->state), DB_MARK_WORD_MAX - 1);
        over(s, item, &plan);
        return;
    }
    if (item->use == COURIER_SEND && s->now_ms / 1000 - item->signed_s > SIGNED_FOR_S) {
        const struct seal_keys *keys = keyring_hold(s->config->keys);
        courier_sign(item, keys, s->now_ms / 1000);
        keyring_release(s->config->keys, keys);
    }
    if (item->use == COURIER_UNFIT)
        send_local(s, item, item->why);
    else if (!courier_curl_send(s->curl, item))
        send_local(s, item, "memory is short");
}

static void send_all(struct loop_state *s)
{
    struct courier_item *item;
    while ((item = courier_lines_next(&s->lines, s->now_ms, s->mono_ms)) != NULL)
        send_one(s, item);
}

/* ---- looking and reading ---- */

/* When it looks though nobody said that there is something new. */
static int64_t look_again(const struct loop_state *s)
{
    if (courier_lines_busy(&s->lines))
        return s->looked_ms + LOOK_BUSY_MS;
    return s->idle_ms == 0 ? INT64_MAX : s->looked_ms + s->idle_ms / 2;
}

static void look(struct loop_state *s)
{
    if (s->looking || (!s->look_wanted && s->mono_ms < look_again(s)) ||
        s->mono_ms < s->look_after_ms)
        return;
    struct courier_job *job = calloc(1, sizeof *job);
    if (job == NULL) {
        s->look_after_ms = s->mono_ms + AGAIN_MS;
        return;
    }
    job->now_ms = s->now_ms + s->idle_ms;
    courier_lines_look_begin(&s->lines);
    s->look_wanted = false;
    s->looking = true;
    s->look_asked_ms = s->mono_ms;
    courier_reader_ask(s->reader, job);
}

static void looked(struct loop_state *s, const struct courier_job *job)
{
    int64_t gap = 10 * (s->mono_ms - s->look_asked_ms);
    bool ok = !job->failed;
    s->looking = false;
    for (unsigned i = 0; ok && i < job->count; i++)
        ok = courier_lines_look(&s->lines, &job->rows[i], s->now_ms);
    if (ok) {
        courier_lines_look_end(&s->lines);
    } else {
        log_line(LOG_WARN, "the outbox cannot be read", "database", s->config->conf->database,
                 NULL);
        s->look_wanted = true;
        gap = AGAIN_MS;
    }
    gap = gap < LOOK_GAP_MOST_MS ? gap : LOOK_GAP_MOST_MS;
    s->look_after_ms = s->mono_ms + (gap > LOOK_GAP_MS ? gap : LOOK_GAP_MS);
    s->looked_ms = s->mono_ms;
}

static void read_lines(struct loop_state *s)
{
    struct courier_line *line;
    unsigned most;
    while ((line = courier_lines_read(&s->lines, s->now_ms, &most)) != NULL) {
        struct courier_job *job = calloc(1, sizeof *job);
        if (job == NULL) {
            courier_lines_was_read(&s->lines, line, NULL, false, s->now_ms + AGAIN_MS);
            return;
        }
        job->line = line;
        job->now_ms = s->now_ms;
        job->id = line->id;
        job->after_due_ms = line->after_due_ms;
        job->after_seq = line->after_seq;
        job->most = most;
        memcpy(job->name, line->name, sizeof job->name);
        courier_reader_ask(s->reader, job);
    }
}

static void was_read(struct loop_state *s, struct courier_job *job)
{
    int64_t next_ms = job->failed ? s->now_ms + AGAIN_MS : job->next_ms;
    struct courier_item *items = job->items;
    job->items = NULL;
    courier_lines_was_read(&s->lines, job->line, items, job->full && !job->failed, next_ms);
}

static void take_jobs(struct loop_state *s)
{
    struct courier_job *job;
    while ((job = courier_reader_done(s->reader)) != NULL) {
        if (job->line == NULL)
            looked(s, job);
        else
            was_read(s, job);
        courier_job_free(job);
    }
}

static void take_reports(struct loop_state *s)
{
    struct courier_item *item;
    bool some = false;
    while ((item = courier_reporter_done(s->reporter)) != NULL) {
        courier_lines_reported(&s->lines, item);
        courier_item_free(item);
        some = true;
    }
    if (some && !courier_lines_busy(&s->lines))
        s->look_wanted = true;
}

/* ---- the loop ---- */

static void take_nudges(struct loop_state *s)
{
    char some[64];
    if (s->config->nudges < 0)
        return;
    while (recv(s->config->nudges, some, sizeof some, MSG_DONTWAIT) >= 0) {
        s->look_wanted = true;
        s->active_ms = s->mono_ms;
    }
}

static int64_t until(int64_t when, int64_t now)
{
    return when > now ? when - now : 0;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return b >= 0 && b < a ? b : a;
}

/* Nothing in hand, and nothing that the look saw; then how long it has been so decides. */
static bool idle(const struct loop_state *s)
{
    return !courier_lines_busy(&s->lines) && !s->looking && !s->look_wanted &&
           s->looked_ms != 0 && courier_lines_wait(&s->lines, s->now_ms, s->mono_ms) < 0;
}

static int64_t how_long(const struct loop_state *s)
{
    int64_t at = s->look_wanted ? s->mono_ms : look_again(s);
    int64_t wait = INT64_MAX;
    if (!s->looking && at < INT64_MAX)
        wait = until(at > s->look_after_ms ? at : s->look_after_ms, s->mono_ms);
    wait = sooner(wait, courier_lines_wait(&s->lines, s->now_ms, s->mono_ms));
    if (idle(s))
        wait = sooner(wait, until(s->active_ms + s->idle_ms, s->mono_ms));
    return wait;
}

static void wait_for_more(struct loop_state *s, int64_t wait_ms)
{
    int fds[COURIER_FDS_MAX] = {s->config->signals, s->config->nudges};
    courier_curl_run(s->curl, wait_ms, fds, s->config->nudges >= 0 ? 2 : 1);
    take_time(s);
    take_reports(s);
    take_jobs(s);
}

static bool asked_to_leave(const struct loop_state *s)
{
    char info[128];
    return read(s->config->signals, info, sizeof info) > 0;
}

/* What is on its way may end, and is reported. */
static void finish(struct loop_state *s)
{
    int64_t end_ms = s->mono_ms + FINISH_MS;
    while (s->lines.flying > 0 && s->mono_ms < end_ms)
        wait_for_more(s, end_ms - s->mono_ms);
    end_ms = s->mono_ms + FINISH_REPORT_MS;
    while (s->lines.unreported > 0 && s->mono_ms < end_ms && !courier_reporter_refused(s->reporter))
        wait_for_more(s, end_ms - s->mono_ms);
}

static enum courier_left run(struct loop_state *s)
{
    take_time(s);
    s->active_ms = s->mono_ms;
    s->look_wanted = true;
    for (;;) {
        take_nudges(s);
        if (asked_to_leave(s)) {
            finish(s);
            return COURIER_LEFT_ASKED;
        }
        if (courier_reporter_refused(s->reporter))
            return COURIER_LEFT_FENCED;
        if (idle(s) && s->mono_ms >= s->active_ms + s->idle_ms)
            return COURIER_LEFT_IDLE;
        look(s);
        read_lines(s);
        send_all(s);
        wait_for_more(s, how_long(s));
    }
}

static void wake(void *arg)
{
    courier_curl_wake(((struct loop_state *)arg)->curl);
}

static bool open_all(struct loop_state *s)
{
    const struct courier_config *config = s->config;
    const struct conf *conf = config->conf;
    const struct db_config db = {.path = conf->database, .read_cache_bytes = CACHE_BYTES};
    const struct courier_curl_config curl = {.total_ms = (int64_t)conf->send_timeout_ms,
                                             .connect_ms = (int64_t)conf->send_timeout_ms / 3,
                                             .ended = ended,
                                             .arg = s};
    struct db_error error = {""};
    s->curl = courier_curl_new(&curl);
    if (s->curl == NULL) {
        log_line(LOG_ERROR, "libcurl cannot be used", NULL);
        return false;
    }
    s->reader = courier_reader_new(&db, config->keys, wake, s, &error);
    s->reporter = courier_reporter_new(conf->control, config->fence, wake, s);
    if (s->reader != NULL && s->reporter != NULL)
        return true;
    log_line(LOG_ERROR, "the outbox cannot be opened", "database", conf->database, "reason",
             s->reader == NULL ? error.text : db_result_text(DB_NO_MEMORY), NULL);
    return false;
}

enum courier_left courier_loop(const struct courier_config *config)
{
    const struct conf *conf = config->conf;
    struct loop_state s = {
        .config = config,
        .times = {.first_ms = (int64_t)conf->retry_first_ms,
                  .most_ms = (int64_t)conf->retry_most_ms,
                  .age_ms = (int64_t)conf->retry_for_ms,
                  .line_ms = (int64_t)conf->line_fails_for_ms},
        .idle_ms = config->nudges < 0 ? 0 : (int64_t)conf->courier_idle_ms,
    };
    enum courier_left left = COURIER_LEFT_FAILED;
    courier_lines_start(&s.lines);
    if (getrandom(&s.random, sizeof s.random, 0) < 0)
        s.random = (uint64_t)clock_ms(CLOCK_REALTIME);
    if (open_all(&s)) {
        memory_give_back();
        left = run(&s);
    }
    courier_reader_free(s.reader);
    courier_reporter_free(s.reporter);
    courier_lines_free(&s.lines);
    courier_curl_free(s.curl);
    return left;
}
