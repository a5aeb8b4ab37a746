/* db/ when memory is short: SQLite's n-th allocation fails, for every n. Whatever is answered is true: an operation that
 * is acknowledged is stored, one that is not is wholly absent, and nothing is called broken that is not. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "db/doc.h"
#include "db/inbox.h"
#include "db/token.h"
#include "tests/unit/tdb.h"

static sqlite3_mem_methods real;
static long left = -1; /* allocations that go well; below 0: all */
static bool failed;    /* one did not */

static bool fails(void)
{
    if (left < 0)
        return false;
    if (left > 0) {
        left--;
        return false;
    }
    failed = true;
    return true;
}

static void *short_malloc(int n)
{
    return fails() ? NULL : real.xMalloc(n);
}

static void *short_realloc(void *p, int n)
{
    return fails() ? NULL : real.xRealloc(p, n);
}

static void start(void)
{
    sqlite3_mem_methods mine;
    ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real), SQLITE_OK);
    mine = real;
    mine.xMalloc = short_malloc;
    mine.xRealloc = short_realloc;
    ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_MALLOC, &mine), SQLITE_OK);
    ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK);
    tdb_make();
}

/* Plenty again; says whether something had failed. */
static bool enough(void)
{
    bool did = failed;
    left = -1;
    failed = false;
    return did;
}

static int64_t stored(const char *key, const char *body)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM doc WHERE key = '%s' AND body = '%s'", key, body);
    return tdb_ask_file(sql);
}

/* A burst of everything; acknowledged exactly when stored. True when memory was short at the n-th allocation. */
static bool burst_with(struct db_conn *c, long n)
{
    static unsigned round;
    char body[32];
    snprintf(body, sizeof body, "[%u]", ++round);
    struct db_op *list = tdb_list(tdb_put_bytes("j", "application/json", DB_VALUE_TEXT, body, strlen(body)), tdb_put("a", body),
                                  tdb_put("bad//", body), tdb_delete("absent"),
                                  tdb_put("b", body), db_op_new(DB_OP_BATCH, 0), db_op_new(DB_OP_BATCH, 0), NULL);
    struct db_op *good = list->next->next->next->next->next, *undone = good->next;
    db_op_add_part(good, tdb_put("c", body));
    db_op_add_part(good, tdb_put("d", body));
    db_op_add_part(undone, tdb_put("never", body));
    db_op_add_part(undone, tdb_delete("absent"));
    left = n;
    enum db_result result = tdb_burst(c, list);
    bool short_of_memory = enough();
    ck_assert_msg(result == DB_OK || result == DB_NO_MEMORY, "allocation %ld: %s", n, db_result_text(result));
    ck_assert(short_of_memory || result == DB_OK);
    struct db_op *j = list, *a = j->next, *bad = a->next, *b = bad->next->next;
    ck_assert_int_eq(stored("j", body), j->result == DB_OK);
    ck_assert_int_eq(stored("a", body), a->result == DB_OK);
    ck_assert_int_eq(stored("b", body), b->result == DB_OK);
    ck_assert_int_eq(stored("c", body), good->result == DB_OK);
    ck_assert_int_eq(stored("d", body), good->result == DB_OK);
    ck_assert_int_eq(stored("never", body), 0);
    ck_assert_int_eq(stored("bad//", body), 0);
    ck_assert_int_ne(bad->result, DB_OK);
    tdb_free(list);
    return short_of_memory;
}

START_TEST(a_burst_with_its_statements_ready)
{
    struct db_conn c;
    long n = 0;
    tdb_open(&c);
    burst_with(&c, -1);
    while (burst_with(&c, n))
        n++;
    ck_assert_int_gt(n, 10);
    db_conn_close(&c);
    tdb_is_sound();
}
END_TEST

START_TEST(a_burst_of_a_new_connection)
{
    long n = 0;
    for (bool more = true; more; n += 1 + n / 100) {
        struct db_conn c;
        tdb_open(&c);
        more = burst_with(&c, n);
        db_conn_close(&c);
    }
    ck_assert_int_gt(n, 50);
    tdb_is_sound();
}
END_TEST

/* The sequence goes on and the feed has no gaps, whatever failed before. */
START_TEST(bursts_after_a_failed_one)
{
    struct db_conn c;
    tdb_open(&c);
    for (long n = 0; n < 200; n += 7) {
        burst_with(&c, n);
        struct db_op *op = tdb_put("k", "v");
        ck_assert_int_eq(tdb_burst(&c, op), DB_OK);
        ck_assert_int_eq(tdb_ask_file("SELECT seq FROM doc WHERE key = 'k'"), op->seq);
        tdb_free(op);
    }
    db_conn_close(&c);
    tdb_is_sound();
}
END_TEST

/* A message of an inbox whose order counts: acknowledged exactly when it is there, and its number. */
static bool take_with(long n, uint64_t seq)
{
    struct db_conn c;
    unsigned char hash[DB_MESSAGE_HASH_BYTES] = {0}, prev[DB_MESSAGE_HASH_BYTES] = {0}, sender[DB_KEY_ID_BYTES] = {7};
    char id[32], sql[200];
    snprintf(id, sizeof id, "msg_%u", (unsigned)seq);
    snprintf((char *)hash, sizeof hash, "%u", (unsigned)seq);
    if (seq > 1)
        snprintf((char *)prev, sizeof prev, "%u", (unsigned)seq - 1);
    struct db_inbox_message m = {.source = 1, .id = id, .id_bytes = strlen(id), .sender = sender, .line = "l", .line_bytes = 1,
                                 .seq = seq, .fifo = true, .prev = prev, .hash = hash, .type = "a/b", .type_bytes = 3,
                                 .body = "x", .bytes = 1};
    struct db_op *op = db_inbox_take_op(&m, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(op);
    tdb_open(&c);
    left = n;
    enum db_result result = tdb_burst(&c, op);
    bool short_of_memory = enough();
    db_conn_close(&c);
    ck_assert_msg(result == DB_OK || (result == DB_NO_MEMORY && short_of_memory), "%ld: %s", n, db_result_text(result));
    bool taken = result == DB_OK && op->result == DB_OK && db_inbox_taken(op) == DB_INBOX_STORED;
    snprintf(sql, sizeof sql, "SELECT (SELECT count(*) FROM inbox WHERE id = '%s') + (SELECT count(*) FROM inbox_seen WHERE"
             " id = '%s') + (SELECT count(*) FROM inbox_line WHERE seq = %u)", id, id, (unsigned)seq);
    ck_assert_int_eq(tdb_ask_file(sql), taken ? 3 : 0);
    tdb_free(op);
    return taken;
}

START_TEST(messages_of_an_inbox)
{
    struct db_conn c;
    struct db_inbox_set set = {.name = "orders"};
    struct db_op *op = db_inbox_set_op(&set);
    tdb_open(&c);
    ck_assert_int_eq(tdb_burst(&c, op), DB_OK);
    tdb_free(op);
    db_conn_close(&c);
    uint64_t seq = 1;
    for (long n = 0; seq < 3; n += 1 + n / 15)
        seq += take_with(n, seq);
    tdb_is_sound();
}
END_TEST

static bool look_with(long n)
{
    struct db_reader *r = NULL;
    struct db_inbox in = {0};
    left = n;
    enum db_result result = db_reader_open(&tdb_config, &r, &tdb_error);
    if (result == DB_OK)
        result = db_inbox_find(r, "orders", 6, &in);
    bool short_of_memory = enough();
    ck_assert(result == DB_OK || (result == DB_NO_MEMORY && short_of_memory));
    ck_assert(result != DB_OK || (strcmp(in.app, "shop") == 0 && strcmp(in.event, "order") == 0 && !in.closed &&
                                  in.secret != NULL && in.secret_bytes == 3));
    db_reader_close(r);
    return short_of_memory;
}

/* An inbox never looks as if it had no app, no secret, or were closed. */
START_TEST(looking_for_an_inbox)
{
    struct db_conn c;
    long n = 0;
    struct db_inbox_set set = {.name = "orders", .app = "shop", .event = "order", .secret = (const unsigned char *)"abc",
                               .secret_bytes = 3};
    struct db_op *op = db_inbox_set_op(&set);
    tdb_open(&c);
    ck_assert_int_eq(tdb_burst(&c, op), DB_OK);
    tdb_free(op);
    db_conn_close(&c);
    while (look_with(n))
        n += 1 + n / 30;
    ck_assert_int_gt(n, 50);
}
END_TEST

static bool one_row(void *arg, const struct db_doc_row *row)
{
    (void)row;
    ++*(int *)arg;
    return true;
}

static void one_token(void *arg, const struct db_token *t)
{
    (void)t;
    ++*(int *)arg;
}

static bool read_with(long n)
{
    static const unsigned char hash[DB_TOKEN_HASH_BYTES];
    struct db_reader *r = NULL;
    struct db_doc doc;
    struct db_token token;
    struct db_doc_range range = {.prefix = "", .after = "", .limit = 10};
    uint64_t seq = 0, documents = 0;
    int rows = 0, tokens = 0;
    left = n;
    enum db_result result = db_reader_open(&tdb_config, &r, &tdb_error);
    ck_assert(result == DB_OK || r == NULL);
    if (result == DB_OK)
        result = db_reader_begin(r);
    if (result == DB_OK)
        result = db_doc_get(r, "a", 1, UINT64_MAX >> 1, &doc);
    if (result == DB_OK)
        result = db_doc_list(r, &range, one_row, &rows);
    if (result == DB_OK)
        result = db_token_find(r, hash, &token) == DB_NO_MEMORY ? DB_NO_MEMORY : DB_OK;
    if (result == DB_OK)
        result = db_token_list(r, one_token, &tokens);
    if (result == DB_OK)
        result = db_reader_totals(r, &seq, &documents);
    db_reader_close(r);
    bool short_of_memory = enough();
    ck_assert_msg(result == DB_OK || (result == DB_NO_MEMORY && short_of_memory), "allocation %ld: %s", n,
                  db_result_text(result));
    ck_assert(result != DB_OK || (rows == 1 && documents == 1 && seq == 1));
    return short_of_memory;
}

START_TEST(reading)
{
    struct db_conn c;
    long n = 0;
    tdb_open(&c);
    struct db_op *op = tdb_put("a", "1");
    ck_assert_int_eq(tdb_burst(&c, op), DB_OK);
    tdb_free(op);
    db_conn_close(&c);
    while (read_with(n))
        n += 1 + n / 100;
    ck_assert_int_gt(n, 50);
}
END_TEST

static bool open_with(long n)
{
    struct db_writer_hooks hooks = {0};
    struct db_writer *w = NULL;
    unlink(temp_path("hanji.db"));
    unlink(temp_path("hanji.db-wal"));
    unlink(temp_path("hanji.db-shm"));
    left = n;
    enum db_result result = db_writer_start(&tdb_config, &hooks, &w, &tdb_error);
    left = left < 0 ? left : 1 << 30; /* the thread of the writer may go on */
    ck_assert((result == DB_OK) == (w != NULL));
    db_writer_stop(w);
    bool short_of_memory = enough();
    ck_assert_msg(result == DB_OK || (result == DB_NO_MEMORY && short_of_memory), "allocation %ld: %s: %s", n,
                  db_result_text(result), tdb_error.text);
    ck_assert(result == DB_OK || tdb_error.text[0] != 0);
    return short_of_memory;
}

START_TEST(making_a_new_file)
{
    long n = 0;
    while (open_with(n))
        n += 1 + n / 50;
    ck_assert_int_gt(n, 50);
    tdb_is_sound();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("nomem");
    TCase *t = run_case(s, "nomem");
    temp_use(t);
    tcase_add_checked_fixture(t, start, NULL);
    tcase_add_test(t, a_burst_with_its_statements_ready);
    tcase_add_test(t, a_burst_of_a_new_connection);
    tcase_add_test(t, bursts_after_a_failed_one);
    tcase_add_test(t, messages_of_an_inbox);
    tcase_add_test(t, looking_for_an_inbox);
    tcase_add_test(t, reading);
    tcase_add_test(t, making_a_new_file);
    return run_suite(s);
}
