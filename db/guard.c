#include "db/guard.h"

#include <string.h>
#include <sys/statvfs.h>

#include "db/burst.h"
#include "db/guard_internal.h"
#include "db/memory.h"

enum {
    /* Between two looks at the clock. One step can read or make a whole value. */
    STEPS = 100,
    LOOP_STEPS = 50,
    LOOP_US = 20000, /* a GET that may take no longer runs where others wait */
    /* On a busy machine the thread itself has to wait, and a short GET's time is over with hardly
     * anything done. So one that did less than this is left a little more of it. */
    LOOP_LOOKS = 100,
    LOOP_MORE_US = 8000,
    /* Of a value: what a write may store, a read must be able to show. But not where others
     * wait. */
    VALUE_BYTES = 8 << 20,
    LOOP_VALUE_BYTES = 1 << 20,
    /* Of memory that a run may take, beside the pages of the cache: sorting, grouping. */
    RUN_BYTES = 64 << 20,
    LOOP_RUN_BYTES = 16 << 20,
    FREE_BYTES = 8 << 20, /* a disk with less is full */
    PARDON_US = 2000000,  /* of a run's deadline */
};

/* What bounds the memory and the stack that SQL can use; of a value see above. Columns, terms and
 * arguments keep SQLite's own bounds: when somebody changes the schema, all of it is read again
 * while an app runs, and what others have made must not be refused then. */
static const struct {
    int id, on, off;
} limits[] = {
    {SQLITE_LIMIT_TRIGGER_DEPTH, 20, 1000},
    {SQLITE_LIMIT_EXPR_DEPTH, 100, 1000},
    {SQLITE_LIMIT_ATTACHED, 0, 10},
};

bool db_guard_late(struct db_conn *c)
{
    struct db_guard *g = &c->guard;
    if (g->mode == DB_GUARD_OFF)
        return false;
    bool hardly_begun = g->loop && g->steps < LOOP_LOOKS;
    if (!g->stopped && db_clock_us() >= g->deadline_us + (hardly_begun ? LOOP_MORE_US : 0))
        g->stopped = true;
    return g->stopped;
}

static int progress(void *arg)
{
    struct db_conn *c = arg;
    c->guard.steps++;
    return db_guard_late(c);
}

/* Before there is any statement of an app, and while no statement runs: SQLite does not take the
 * place of its own functions then. */
static enum db_result install(struct db_conn *c)
{
    sqlite3 *db = c->db;
    int rc = sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0, NULL);
    if (rc == SQLITE_OK)
        rc = db_guard_add_text(c);
    if (rc == SQLITE_OK)
        rc = db_guard_add_fts(c);
    if (rc == SQLITE_OK)
        rc = db_guard_add_printf(c);
    if (rc == SQLITE_OK)
        rc = db_guard_add_functions(c);
    if (rc == SQLITE_OK)
        rc = db_guard_add_encode(c);
    if (rc == SQLITE_OK)
        rc = db_guard_add_console(c);
    if (rc == SQLITE_OK)
        rc = db_guard_add_head(c);
    if (rc == SQLITE_OK)
        rc = sqlite3_set_authorizer(db, db_guard_authorize, c);
    c->guard.installed = rc == SQLITE_OK;
    return db_cause(rc);
}

static void set_limits(struct db_conn *c, bool on)
{
    struct db_guard *g = &c->guard;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        sqlite3_limit(c->db, limits[i].id, on ? limits[i].on : limits[i].off);
    if (on)
        g->limit_length =
            sqlite3_limit(c->db, SQLITE_LIMIT_LENGTH, g->loop ? LOOP_VALUE_BYTES : VALUE_BYTES);
    else
        sqlite3_limit(c->db, SQLITE_LIMIT_LENGTH, g->limit_length);
    sqlite3_progress_handler(c->db, !on ? 0 : g->loop ? LOOP_STEPS : STEPS, on ? progress : NULL,
                             c);
}

static size_t run_bytes(const struct db_conn *c)
{
    return (size_t)c->cache_bytes + (c->guard.loop ? LOOP_RUN_BYTES : RUN_BYTES);
}

enum db_result db_guard_enter(struct db_conn *c, const struct db_grant *grant,
                              enum db_guard_mode mode, uint64_t deadline_us, int64_t now_s)
{
    struct db_guard *g = &c->guard;
    enum db_result result = g->installed ? DB_OK : install(c);
    if (result == DB_OK && mode == DB_GUARD_SCHEMA)
        result = db_guard_schema_begin(c, grant);
    if (result != DB_OK)
        return result;
    g->mode = mode;
    g->grant = grant;
    g->deadline_us = deadline_us;
    g->pardon_us = PARDON_US;
    g->now_s = now_s;
    g->stopped = g->refused = g->text_ok = false;
    g->steps = 0;
    g->loop = mode == DB_GUARD_READ && deadline_us < db_clock_us() + LOOP_US;
    g->queue_tail = &g->queue;
    g->queued_bytes = 0;
    g->sealed = 0;
    g->sealed_bytes = 0;
    set_limits(c, true);
    db_memory_begin(run_bytes(c));
    return DB_OK;
}

static void free_list(struct db_op *op)
{
    while (op != NULL) {
        struct db_op *next = op->next;
        db_op_free(op);
        op = next;
    }
}

struct db_op *db_guard_take(struct db_conn *c)
{
    struct db_op *queue = c->guard.queue;
    c->guard.queue = NULL;
    c->guard.queue_tail = &c->guard.queue;
    c->guard.queued_bytes = c->guard.queued = 0;
    return queue;
}

void db_guard_leave(struct db_conn *c)
{
    struct db_guard *g = &c->guard;
    if (g->mode != DB_GUARD_OFF) {
        set_limits(c, false);
        db_memory_end();
    }
    g->mode = DB_GUARD_OFF;
    g->grant = NULL;
    free_list(db_guard_take(c));
}

void db_guard_pause(struct db_conn *c)
{
    c->guard.paused = c->guard.mode;
    c->guard.paused_us = db_clock_us();
    set_limits(c, false);
    db_memory_end();
    c->guard.mode = DB_GUARD_OFF;
}

void db_guard_resume(struct db_conn *c)
{
    struct db_guard *g = &c->guard;
    uint64_t spent_us = db_clock_us() - g->paused_us;
    if (spent_us > g->pardon_us)
        spent_us = g->pardon_us;
    g->pardon_us -= spent_us;
    g->deadline_us += spent_us;
    g->mode = g->paused;
    set_limits(c, true);
    db_memory_resume(run_bytes(c));
}

/* ---- what a failure means ---- */

/* A full disk, and not numbers of rows that are used up, which SQLite calls the same. */
static bool disk_is_full(struct db_conn *c)
{
    struct statvfs v;
    const char *path = sqlite3_db_filename(c->db, "main");
    return path == NULL || statvfs(path, &v) != 0 ||
           (uint64_t)v.f_bavail * v.f_frsize < FREE_BYTES;
}

/* No fault of an app is DB_BROKEN, which ends all writing, or anything else that ends a burst. */
static enum db_result cause_of(struct db_conn *c, int code)
{
    switch (code) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID: return DB_CONFLICT;
    case SQLITE_CORRUPT_VTAB: /* an index of the app's that was told what is not so */
    case SQLITE_CORRUPT_SEQUENCE: return DB_INVALID;
    default: break;
    }
    switch (code & 0xff) {
    case SQLITE_AUTH:
    case SQLITE_READONLY: return DB_REFUSED;
    case SQLITE_TOOBIG: return c->guard.loop ? DB_TIMEOUT : DB_TOO_LARGE;
    case SQLITE_FULL: return disk_is_full(c) ? DB_FULL : DB_INVALID;
    case SQLITE_ERROR:
    case SQLITE_ABORT:
    case SQLITE_LOCKED:
    case SQLITE_MISUSE:
    case SQLITE_SCHEMA:
    case SQLITE_RANGE: return DB_INVALID;
    default: return db_cause(code);
    }
}

enum db_result db_guard_cause(struct db_conn *c, int code, struct db_error *error)
{
    struct db_guard *g = &c->guard;
    bool refused = g->refused;
    g->refused = false;
    if (g->stopped) {
        db_set_error(error, "it was stopped at its time limit");
        return DB_TIMEOUT;
    }
    if (refused) {
        db_set_error(error, "%s", g->why);
        return DB_REFUSED;
    }
    if ((code & 0xff) == SQLITE_NOMEM && db_memory_over()) {
        db_set_error(error, "it takes more than 64 MiB of memory: an index can spare it sorting");
        return g->loop ? DB_TIMEOUT : DB_TOO_LARGE;
    }
    enum db_result result = cause_of(c, code);
    if (code == SQLITE_CORRUPT_VTAB)
        db_set_error(error, "a full-text or r-tree index of the app contradicts its table");
    else
        db_set_error(error, "%s", code == (sqlite3_extended_errcode(c->db)) ? sqlite3_errmsg(c->db)
                                                                            : sqlite3_errstr(code));
    return result == DB_OK ? DB_INVALID : result;
}

/* ---- names ---- */

/* Words with which names of the server's tables begin, now or some day, or SQLite's. */
static const char *const taken[] = {
    "app", "apps", "archive", "attempt", "blob", "change", "console", "courier", "cursor", "doc",
    "docs", "dbstat", "fts", "fts3", "fts4", "fts5", "hanji", "idempotency", "inbox", "json",
    "jsonb", "line", "main", "meta", "once", "outbox", "people", "pragma", "replacing", "route",
    "rtree", "schema", "search", "secret", "send", "session", "shelf", "site", "sqlite", "static",
    "temp", "token", "tombstone", "user", "zip",
};

bool db_guard_name_ok(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789");
    if (n == 0 || n > DB_APP_NAME_MAX || name[n] != 0 || (name[0] >= '0' && name[0] <= '9'))
        return false;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(name, taken[i]) == 0)
            return false;
    return true;
}

bool db_guard_owns(const struct db_grant *grant, const char *name)
{
    size_t n = strlen(grant->app);
    return name != NULL && sqlite3_strnicmp(name, grant->app, (int)n) == 0 && name[n] == '_';
}
