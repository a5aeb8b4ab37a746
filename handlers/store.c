#include "handlers/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fcgi/log.h"
#include "handlers/dispatch.h"
#include "handlers/problem.h"

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
    if (list != NULL)
        tell_trouble(arg, list);
    while (list != NULL) {
        struct db_op *op = list;
        struct write *w = op->owner;
        list = op->next;
        op->next = NULL;
        w->op = op;
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
    };
}

bool store_open(struct store *s, const struct conf *conf, void (*stop)(void),
                struct db_error *error)
{
    struct db_writer_hooks hooks = {.deliver = deliver, .broken = broken, .arg = s};
    *s = (struct store){.conf = conf, .stop = stop, .start_s = time(NULL)};
    s->db = store_db_config(conf);
    if (!access_public(conf->public_, &s->public_)) {
        snprintf(error->text, sizeof error->text, "public: a prefix is malformed");
        return false;
    }
    return db_writer_start(&s->db, &hooks, &s->writer, error) == DB_OK;
}

void store_close(struct store *s)
{
    db_writer_stop(s->writer);
    buf_free(&s->public_);
}

static void *open_session(void *arg)
{
    struct store *store = arg;
    struct db_error error;
    struct session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->store = store;
    s->writes_tail = &s->writes;
    if (db_reader_open(&store->db, &s->reader, &error) == DB_OK)
        return s;
    log_line(LOG_ERROR, "the database cannot be read", "reason", error.text, NULL);
    free(s);
    return NULL;
}

static void close_session(void *thread)
{
    struct session *s = thread;
    db_reader_close(s->reader);
    buf_free(&s->text);
    buf_free(&s->value);
    buf_free(&s->link);
    free(s);
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
    if (s->text.cap > SESSION_KEPT_BYTES)
        buf_free(&s->text);
}

const struct app store_app = {
    .open = open_session,
    .close = close_session,
    .answer = dispatch,
    .round_end = round_end,
};

struct session *session_of(const struct call *c)
{
    return c->thread;
}

struct db_reader *session_reader(struct call *c)
{
    struct session *s = session_of(c);
    if (!s->snapshot) {
        if (db_reader_begin(s->reader) != DB_OK)
            return NULL;
        s->snapshot = true;
    }
    return s->reader;
}

static void resume(struct park *p, struct call *c)
{
    struct write *w = (struct write *)p; /* park is its first member */
    if (c->resp != NULL)
        w->answer(w, c);
    db_op_free(w->op);
}

enum verdict store_write(struct call *c, struct db_op *op,
                         void (*answer)(struct write *w, struct call *c))
{
    struct session *s = session_of(c);
    struct str mount = c->req->mount;
    if (op == NULL)
        return FAIL;
    if (!db_writer_reserve(s->store->writer, op)) {
        db_op_free(op);
        problem_result(c, DB_OVERLOAD, 0);
        return REPLY;
    }
    struct write *w = loop_park(c, sizeof *w + mount.n, resume);
    if (w == NULL) {
        db_writer_release(s->store->writer, op);
        db_op_free(op);
        return FAIL;
    }
    w->answer = answer;
    w->park.browser = problem_for_browser(c->req);
    w->mount_len = mount.n;
    if (mount.n > 0)
        memcpy(w->mount, mount.p, mount.n);
    op->owner = w;
    op->next = NULL;
    *s->writes_tail = op;
    s->writes_tail = &op->next;
    return PARK;
}
