#include "handlers/store.h"

#include <grp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fcgi/log.h"
#include "handlers/app_lane.h"
#include "handlers/app_param.h"
#include "handlers/apps.h"
#include "handlers/basic.h"
#include "handlers/console.h"
#include "handlers/cors.h"
#include "handlers/dispatch.h"
#include "handlers/nudge.h"
#include "handlers/problem.h"
#include "handlers/sends_seal.h"
#include "seal/password.h"

enum { SESSION_KEPT_BYTES = 65536 };

/* Says once when writes begin to fail for all, and once when they go on. */
static void tell_trouble(struct store *s, const struct db_op *op)
{
    enum db_result result = op->result;
    char pid[24] = "unknown";
    bool failing = result == DB_WAL_LIMIT || result == DB_FULL || result == DB_BUSY;
    if (result != DB_OK && !failing)
        return;
    if (result == s->trouble)
        return;
    s->trouble = result;
    if (!failing) {
        log_line(LOG_WARN, "writes go on", NULL);
        return;
    }
    if (op->pid > 0)
        snprintf(pid, sizeof pid, "%lld", (long long)op->pid);
    log_line(LOG_WARN, "writes are refused", "reason", db_result_text(result), "reader_pid",
             result == DB_WAL_LIMIT ? pid : "none", NULL);
}

/* Writer's thread: the operations of a burst go back to the loops that parked their requests. */
static void deliver(void *arg, struct db_op *list)
{
    struct park *parks = NULL, **end = &parks;
    if (list != NULL) {
        tell_trouble(arg, list);
        watch_committed(arg, list); /* the loops are there at least until they are answered */
        nudge_committed(((struct store *)arg)->nudge, list);
    }
    while (list != NULL) {
        struct db_op *op = list;
        struct write *w = op->owner;
        list = op->next;
        op->next = NULL;
        if (w == NULL) {
            db_op_free(op); /* store_note */
            continue;
        }
        w->op = op;
        if (w->applied != NULL) {
            sem_post(w->applied);
            continue;
        }
        w->park.next = NULL;
        *end = &w->park;
        end = &w->park.next;
    }
    loop_resume(parks);
}

static void broken(void *arg)
{
    struct store *s = arg;
    log_line(LOG_ERROR, "the store cannot be written any more; ending so that it is reopened",
             "database", s->db.path, NULL);
    s->stop();
}

struct db_config store_db_config(const struct conf *conf)
{
    return (struct db_config){
        .path = conf->database,
        .read_cache_bytes = conf->read_cache_bytes,
        .write_cache_bytes = conf->write_cache_bytes,
        .checkpoint_bytes = conf->checkpoint_bytes,
        .wal_limit_bytes = conf->wal_limit_bytes,
        .queue_operations = conf->queue_operations,
        .queue_bytes = conf->queue_bytes,
        .burst_operations = conf->burst_operations,
        .sends_keep_s = (int64_t)(conf->sends_keep_ms / 1000),
    };
}

static void *open_worker(void *arg)
{
    struct worker *w = calloc(1, sizeof *w);
    if (w != NULL)
        w->store = arg;
    return w;
}

static void close_worker(void *thread)
{
    struct worker *w = thread;
    db_reader_close(w->reader);
    free(w);
}

struct db_reader *worker_reader(struct worker *w)
{
    struct db_error error;
    if (w->reader == NULL && db_reader_open(&w->store->db, &w->reader, &error) != DB_OK)
        log_line(LOG_ERROR, "the database cannot be read", "reason", error.text, NULL);
    return w->reader;
}

/* The group of nginx's workers, -1 when it is not told or not known here. */
static int64_t group_of(const struct conf *conf)
{
    const struct group *g = conf->socket_group[0] != 0 ? getgrnam(conf->socket_group) : NULL;
    return g != NULL ? (int64_t)g->gr_gid : -1;
}

static void doubt_blobs(const struct db_blobs *blobs, int64_t group)
{
    const char *doubt = db_blobs_doubt(blobs, group);
    if (doubt != NULL)
        log_line(LOG_WARN, "the folder for large documents", "folder", db_blobs_folder(blobs),
                 "doubt", doubt, NULL);
}

bool store_open(struct store *s, const struct conf *conf, void (*stop)(void),
                struct db_error *error)
{
    struct db_writer_hooks hooks = {.deliver = deliver, .broken = broken, .arg = s};
    struct db_error no_blobs;
    *s = (struct store){.conf = conf, .stop = stop, .start_s = time(NULL)};
    s->db = store_db_config(conf);
    if (!access_public(conf->public_, &s->public_) || !access_public(conf->sites, &s->sites) ||
        !access_public(conf->basic, &s->basic)) {
        snprintf(error->text, sizeof error->text, "public, sites or basic: a prefix is malformed");
        return false;
    }
    s->cors = cors_new(conf->cors);
    if (s->cors == NULL) {
        snprintf(error->text, sizeof error->text, "cors: an origin is malformed");
        return false;
    }
    seal_pair_key(s->pair_key);
    const struct pool_config pool = {
        .threads = (unsigned)conf->pool_threads,
        .queue = (unsigned)conf->pool_queue,
        .open = open_worker,
        .close = close_worker,
        .arg = s,
    };
    s->nudge = nudge_new(conf->courier_socket);
    s->pool = s->nudge != NULL ? pool_new(&pool) : NULL;
    s->app_lane = s->pool != NULL ? app_lane_new(s->pool, pool.threads) : NULL;
    s->keys = keyring_open(conf->keys);
    db_send_set_maker(sends_maker, s->keys);
    if (s->app_lane == NULL || s->keys == NULL)
        snprintf(error->text, sizeof error->text, "memory is short");
    if (s->app_lane == NULL || s->keys == NULL ||
        db_writer_start(&s->db, &hooks, &s->writer, error) != DB_OK) {
        pool_free(s->pool);
        app_lane_free(s->app_lane);
        keyring_close(s->keys);
        nudge_free(s->nudge);
        s->pool = NULL;
        return false;
    }
    s->blobs = db_blobs_open(conf->blobs, group_of(conf), conf->blobs_max_bytes, &no_blobs);
    if (s->blobs == NULL)
        log_line(LOG_WARN, "large documents go through FastCGI and memory: no folder for blobs",
                 "reason", no_blobs.text, NULL);
    else
        doubt_blobs(s->blobs, group_of(conf));
    console_hooks(s);
    s->apps = apps_open(s);
    if (s->apps == NULL)
        log_line(LOG_ERROR, "there are no apps: memory is short", NULL);
    s->cursors = apps_cursors(s);
    return true;
}

void store_close(struct store *s)
{
    apps_close(s->apps);
    pool_free(s->pool);
    app_lane_free(s->app_lane);
    free(s->cursors);
    db_writer_stop(s->writer);
    keyring_close(s->keys);
    nudge_free(s->nudge);
    db_blobs_close(s->blobs);
    cors_free(s->cors);
    buf_free(&s->public_);
    buf_free(&s->sites);
    buf_free(&s->basic);
}

static void *open_session(struct loop *l, void *arg)
{
    struct store *store = arg;
    struct db_error error;
    struct session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->store = store;
    s->loop = l;
    s->writes_tail = &s->writes;
    s->watch = watch_new(s);
    if (s->watch == NULL) {
        free(s);
        return NULL;
    }
    if (db_reader_open(&store->db, &s->reader, &error) == DB_OK)
        return s;
    log_line(LOG_ERROR, "the database cannot be read", "reason", error.text, NULL);
    watch_free(s->watch);
    free(s);
    return NULL;
}

static void close_session(void *thread)
{
    struct session *s = thread;
    watch_free(s->watch);
    app_view_free(&s->apps);
    db_reader_close(s->reader);
    buf_free(&s->text);
    buf_free(&s->value);
    buf_free(&s->link);
    free(s->basic);
    app_desk_free(s->desk);
    free(s);
}

static void poked(void *thread)
{
    struct session *s = thread;
    watch_poked(s->watch);
    nudge_poked(s->store->nudge, s);
}

static void timer(void *thread)
{
    watch_timer(((struct session *)thread)->watch);
}

static void drain(void *thread)
{
    watch_drain(((struct session *)thread)->watch);
}

static void round_end(void *thread)
{
    struct session *s = thread;
    if (s->snapshot)
        db_reader_end(s->reader);
    s->snapshot = false;
    if (s->writes != NULL)
        db_writer_submit(s->store->writer, s->writes);
    s->writes = NULL;
    s->writes_tail = &s->writes;
    watch_round_end(s->watch);
    app_view_round_end(&s->apps);
    if (s->text.cap > SESSION_KEPT_BYTES)
        buf_free(&s->text);
}

/* What these say may be sealed before it is stored. */
static const char *const unspooled[] = {"/sends/", "/batch", NULL};

const struct loop_app store_app = {
    .open = open_session,
    .close = close_session,
    .answer = dispatch,
    .round_end = round_end,
    .poked = poked,
    .timer = timer,
    .drain = drain,
    .unspooled = unspooled,
};

struct session *session_of(const struct call *c)
{
    return c->thread;
}

static struct db_reader *begun(struct session *s)
{
    if (!s->snapshot) {
        if (db_reader_begin(s->reader) != DB_OK)
            return NULL;
        s->snapshot = true;
    }
    return s->reader;
}

struct db_reader *session_reader(struct call *c)
{
    return begun(session_of(c));
}

struct db_reader *session_fresh(struct session *s)
{
    if (s->snapshot)
        db_reader_end(s->reader);
    s->snapshot = false;
    return begun(s);
}

static enum verdict resume(struct park *p, struct call *c)
{
    struct write *w = (struct write *)p; /* park is its first member */
    enum verdict verdict = REPLY;
    session_of(c)->mount = (struct str){w->mount, w->mount_len};
    session_of(c)->who = w->who;
    if (w->then != NULL)
        verdict = w->then(w, c);
    else if (c->resp != NULL)
        w->answer(w, c);
    if (w->then == NULL && c->resp != NULL && c->resp->failed) /* what was done is done */
        problem(c, 500, "The answer could not be built: read what is stored before asking again.");
    db_op_free(w->op);
    return verdict;
}

/* How errors are to look, once the request itself is gone. */
static void keep_browser(const struct call *c, struct park *p)
{
    if (c->req != NULL)
        p->browser = problem_for_browser(c->req);
}

static void queue(struct session *s, struct db_op *op, struct write *w)
{
    op->owner = w;
    op->next = NULL;
    *s->writes_tail = op;
    s->writes_tail = &op->next;
}

/* Queues op and parks the call in *parked, with n more bytes; *parked is NULL when it was answered
 * instead. */
static enum verdict park_write(struct call *c, struct db_op *op, const void *more, size_t n,
                               struct write **parked)
{
    struct session *s = session_of(c);
    struct str mount = s->mount;
    size_t align = _Alignof(max_align_t);
    size_t at = (sizeof(struct write) + mount.n + align) / align * align;
    *parked = NULL;
    if (op == NULL)
        return FAIL;
    if (!db_writer_reserve(s->store->writer, op)) {
        db_op_free(op);
        problem_result(c, DB_OVERLOAD, 0);
        return REPLY;
    }
    struct write *w = loop_park(c, at + n, resume);
    if (w == NULL) {
        db_writer_release(s->store->writer, op);
        db_op_free(op);
        return FAIL;
    }
    *parked = w;
    keep_browser(c, &w->park);
    w->who = s->who;
    w->mount_len = mount.n;
    if (mount.n > 0)
        memcpy(w->mount, mount.p, mount.n);
    w->more = (char *)w + at;
    if (n > 0)
        memcpy((char *)w + at, more, n);
    queue(s, op, w);
    return PARK;
}

enum verdict store_write_more(struct call *c, struct db_op *op,
                              void (*answer)(struct write *w, struct call *c), const void *more,
                              size_t n)
{
    struct write *w;
    enum verdict verdict = park_write(c, op, more, n, &w);
    if (w != NULL)
        w->answer = answer;
    return verdict;
}

enum verdict store_write_then(struct call *c, struct db_op *op,
                              enum verdict (*then)(struct write *w, struct call *c), void *arg)
{
    struct write *w;
    enum verdict verdict = park_write(c, op, NULL, 0, &w);
    if (w != NULL) {
        w->then = then;
        w->arg = arg;
    }
    return verdict;
}

enum verdict store_write(struct call *c, struct db_op *op,
                         void (*answer)(struct write *w, struct call *c))
{
    return store_write_more(c, op, answer, NULL, 0);
}

void store_note(struct call *c, struct db_op *op)
{
    struct session *s = session_of(c);
    if (db_writer_reserve(s->store->writer, op))
        queue(s, op, NULL);
    else
        db_op_free(op);
}

enum db_result store_apply(struct store *s, struct db_op *op)
{
    sem_t applied;
    if (!db_writer_reserve(s->writer, op))
        return DB_OVERLOAD;
    sem_init(&applied, 0, 0);
    struct write *w = &(struct write){.applied = &applied};
    op->owner = w;
    op->next = NULL;
    db_writer_submit(s->writer, op);
    while (sem_wait(&applied) != 0)
        continue; /* a signal came */
    sem_destroy(&applied);
    return op->result;
}

static void run_task(struct job *j, void *thread)
{
    struct task *t = (struct task *)j->park;
    struct worker local = {.store = t->store}; /* when memory was too short for the thread's own */
    t->work(t, thread != NULL ? thread : &local);
    db_reader_close(local.reader);
}

static enum verdict task_done(struct park *p, struct call *c)
{
    struct task *t = (struct task *)p;
    session_of(c)->mount = (struct str){t->mount, t->mount_len};
    session_of(c)->who = t->who;
    enum verdict verdict = t->done(t, c);
    return c->resp != NULL ? dispatch_settle(c, verdict) : verdict;
}

void *store_task(struct call *c, size_t size)
{
    struct str mount = session_of(c)->mount;
    struct task *t = loop_park(c, size + mount.n, task_done);
    if (t == NULL)
        return NULL;
    keep_browser(c, &t->park);
    t->store = session_of(c)->store;
    t->who = session_of(c)->who;
    t->mount = (char *)t + size;
    t->mount_len = mount.n;
    if (mount.n > 0)
        memcpy(t->mount, mount.p, mount.n);
    t->job = (struct job){.park = &t->park, .run = run_task};
    return t;
}

enum verdict store_run(struct call *c, struct task *t)
{
    struct call gone = *c;
    if (pool_submit(session_of(c)->store->pool, &t->job))
        return PARK;
    gone.resp = NULL;
    (void)t->done(t, &gone);
    loop_unpark(c, &t->park);
    problem_with(c, 503, "Too much slow work is waiting; try again shortly.",
                 (struct problem_header){"Retry-After", "1"});
    return REPLY;
}
