#include "tests/unit/tdb.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "db/check.h"
#include "db/migrate.h"

/* SQLite's syncs come here. No test pulls the plug, so none waits for the disk; one that needs syncs to be slow or to fail
 * has functions of its own. */
__attribute__((weak)) int fdatasync(int fd)
{
    (void)fd;
    return 0;
}

__attribute__((weak)) int fsync(int fd)
{
    (void)fd;
    return 0;
}

struct db_config tdb_config;
struct db_error tdb_error;

void tdb_init(void)
{
    ck_assert_int_eq(db_init(), DB_OK);
    static char path[1024];
    snprintf(path, sizeof path, "%s", temp_path("hanji.db"));
    tdb_config = (struct db_config){
        .path = path,
        .read_cache_bytes = 1 << 20,
        .write_cache_bytes = 2 << 20,
        .checkpoint_bytes = 16 << 20,
        .wal_limit_bytes = 256 << 20,
        .queue_operations = 4096,
        .queue_bytes = 64 << 20,
        .burst_operations = 1024,
        .sends_keep_s = 30 * 86400,
    };
}

void tdb_make(void)
{
    struct db_conn c;
    tdb_init();
    tdb_open(&c);
    db_conn_close(&c);
}

void tdb_open(struct db_conn *c)
{
    enum db_result result = db_conn_open(c, tdb_config.path, DB_CREATE, tdb_config.write_cache_bytes, &tdb_error);
    ck_assert_msg(result == DB_OK, "%s", tdb_error.text);
    result = db_migrate(c, &tdb_error);
    ck_assert_msg(result == DB_OK, "%s", tdb_error.text);
}

sqlite3 *tdb_shell(void)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(tdb_config.path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    return db;
}

bool tdb_try(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

void tdb_sql(sqlite3 *db, const char *sql)
{
    ck_assert_msg(tdb_try(db, sql), "%s: %s", sql, sqlite3_errmsg(db));
}

int64_t tdb_ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s = NULL;
    ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
    ck_assert_msg(sqlite3_step(s) == SQLITE_ROW, "%s: %s", sql, sqlite3_errmsg(db));
    int64_t v = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return v;
}

int64_t tdb_ask_file(const char *sql)
{
    sqlite3 *db = tdb_shell();
    int64_t v = tdb_ask(db, sql);
    sqlite3_close(db);
    return v;
}

static void found(void *arg, bool fault, const char *finding)
{
    if (fault)
        snprintf(arg, 200, "%s", finding);
}

void tdb_is_sound(void)
{
    char finding[200] = "";
    enum db_result result = db_check(&tdb_config, found, finding, &tdb_error);
    ck_assert_msg(result == DB_OK, "%s%s", finding, result == DB_INVALID ? "" : tdb_error.text);
}

struct db_op *tdb_put_bytes(const char *key, const char *type, enum db_value_type form, const void *body, size_t n)
{
    struct db_op *op = db_op_new(DB_OP_PUT, strlen(key) + strlen(type) + n);
    ck_assert_ptr_nonnull(op);
    db_op_copy(op, 0, DB_VALUE_TEXT, key, strlen(key));
    db_op_copy(op, 1, DB_VALUE_TEXT, type, strlen(type));
    db_op_copy(op, 2, form, body, n);
    return op;
}

struct db_op *tdb_put(const char *key, const char *body)
{
    return tdb_put_bytes(key, "text/plain", DB_VALUE_TEXT, body, strlen(body));
}

struct db_op *tdb_delete(const char *key)
{
    struct db_op *op = db_op_new(DB_OP_DELETE, strlen(key));
    ck_assert_ptr_nonnull(op);
    db_op_copy(op, 0, DB_VALUE_TEXT, key, strlen(key));
    return op;
}

struct db_op *tdb_list(struct db_op *first, ...)
{
    va_list args;
    struct db_op **end = &first->next;
    va_start(args, first);
    for (struct db_op *op; (op = va_arg(args, struct db_op *)) != NULL; end = &op->next)
        *end = op;
    va_end(args);
    *end = NULL;
    return first;
}

void tdb_free(struct db_op *list)
{
    while (list != NULL) {
        struct db_op *next = list->next;
        db_op_free(list);
        list = next;
    }
}

enum db_result tdb_burst(struct db_conn *c, struct db_op *list)
{
    uint64_t commit_us;
    return db_burst_run(c, list, &commit_us);
}

static void deliver(void *arg, struct db_op *list)
{
    struct inbox *in = arg;
    pthread_mutex_lock(&in->lock);
    *in->tail = list;
    for (; *in->tail != NULL; in->tail = &(*in->tail)->next)
        in->count++;
    in->batches++;
    pthread_cond_broadcast(&in->more);
    pthread_mutex_unlock(&in->lock);
}

static void broken(void *arg)
{
    struct inbox *in = arg;
    in->broken++;
}

struct db_writer *tdb_start(struct inbox *in)
{
    struct db_writer_hooks hooks = {.deliver = deliver, .broken = broken, .arg = in};
    struct db_writer *w;
    *in = (struct inbox){.tail = &in->head};
    pthread_mutex_init(&in->lock, NULL);
    pthread_cond_init(&in->more, NULL);
    enum db_result result = db_writer_start(&tdb_config, &hooks, &w, &tdb_error);
    ck_assert_msg(result == DB_OK, "%s", tdb_error.text);
    return w;
}

struct db_op *tdb_wait(struct inbox *in, unsigned n)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30;
    pthread_mutex_lock(&in->lock);
    while (in->count < n && pthread_cond_timedwait(&in->more, &in->lock, &until) == 0)
        ;
    unsigned count = in->count;
    struct db_op *list = in->head;
    in->head = NULL;
    in->tail = &in->head;
    pthread_mutex_unlock(&in->lock);
    ck_assert_uint_ge(count, n);
    return list;
}

enum db_result tdb_write(struct db_writer *w, struct inbox *in, struct db_op *op, uint64_t *seq)
{
    ck_assert(db_writer_reserve(w, op));
    unsigned before = in->count; /* nobody else writes */
    db_writer_submit(w, op);
    struct db_op *done = tdb_wait(in, before + 1);
    ck_assert_ptr_eq(done, op);
    enum db_result result = op->result;
    if (seq != NULL)
        *seq = op->seq;
    tdb_free(done);
    return result;
}
