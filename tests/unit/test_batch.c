/* db/burst: batches. All parts or none, beside others in the same transaction, also with triggers that somebody added. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/tdb.h"

static struct db_conn conn;

static void open_conn(void)
{
    tdb_init();
    tdb_open(&conn);
}

static void close_conn(void)
{
    db_conn_close(&conn);
    tdb_is_sound();
}

/* A batch of the list's operations. */
static struct db_op *batch_of(struct db_op *list)
{
    struct db_op *op = db_op_new(DB_OP_BATCH, 0);
    while (list != NULL) {
        struct db_op *next = list->next;
        db_op_add_part(op, list);
        list = next;
    }
    return op;
}

static const struct db_precond absent = {.none_match = {.given = 1, .any = 1}};

static struct db_op *put_absent(const char *key, const char *body)
{
    struct db_op *op = tdb_put(key, body);
    op->precond = absent;
    return op;
}

static struct db_op *part(struct db_op *batch, unsigned i)
{
    struct db_op *p = batch->parts;
    while (i-- > 0)
        p = p->next;
    return p;
}

static void is_stored(const char *key, uint64_t seq, const char *body)
{
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM doc WHERE key = '%s' AND seq = %llu AND body = '%s'", key,
             (unsigned long long)seq, body);
    ck_assert_msg(tdb_ask_file(sql) == 1, "%s", sql);
}

static int64_t documents(void)
{
    return tdb_ask_file("SELECT count(*) FROM doc");
}

static void add(const char *sql)
{
    sqlite3 *db = tdb_shell();
    tdb_sql(db, sql);
    sqlite3_close(db);
}

START_TEST(all_parts_in_order)
{
    struct db_op *op = batch_of(tdb_list(tdb_put("a", "1"), tdb_put("b", "2"), tdb_put("a", "3"), tdb_delete("b"), NULL));
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    ck_assert_int_eq(op->result, DB_OK);
    ck_assert_uint_eq(op->seq, 4);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(part(op, i)->result, DB_OK);
        ck_assert_uint_eq(part(op, i)->seq, i + 1);
        ck_assert_int_eq(part(op, i)->created, i < 2);
    }
    is_stored("a", 3, "3");
    ck_assert_int_eq(documents(), 1);
    tdb_free(op);
}
END_TEST

START_TEST(none_when_one_fails)
{
    for (unsigned bad = 0; bad < 4; bad++) {
        struct db_op *op = batch_of(tdb_list(tdb_put("a", "1"), tdb_put("b", "2"), tdb_put("c", "3"), tdb_put("d", "4"), NULL));
        part(op, bad)->precond.match.given = 1;
        ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
        ck_assert_int_eq(op->result, DB_PRECONDITION);
        ck_assert_uint_eq(op->failed_part, bad);
        ck_assert_int_eq(documents(), 0);
        ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM change"), 0);
        tdb_free(op);
    }
}
END_TEST

static struct db_op *bad_row(void)
{
    return tdb_put("a//b", "x");
}

static struct db_op *absent_row(void)
{
    return tdb_delete("absent");
}

static const struct {
    struct db_op *(*make)(void);
    enum db_result result;
} failures[] = {{bad_row, DB_INVALID}, {absent_row, DB_NONE}};

START_TEST(every_failure_of_a_part_is_that_of_the_batch)
{
    struct db_op *op = batch_of(tdb_list(tdb_put("a", "1"), failures[_i].make(), tdb_put("b", "2"), NULL));
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    ck_assert_int_eq(op->result, failures[_i].result);
    ck_assert_uint_eq(op->failed_part, 1);
    ck_assert_int_eq(documents(), 0);
    tdb_free(op);
}
END_TEST

/* What a rolled back batch foresaw must not be missing later. */
START_TEST(others_of_the_burst_go_on)
{
    struct db_op *list = tdb_list(tdb_put("x", "0"), batch_of(tdb_list(tdb_put("a", "1"), put_absent("x", "lost"), NULL)),
                                  tdb_put("y", "2"), batch_of(tdb_list(tdb_put("b", "3"), put_absent("c", "4"), NULL)),
                                  tdb_put("z", "5"), NULL);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    static const enum db_result expected[] = {DB_OK, DB_PRECONDITION, DB_OK, DB_OK, DB_OK};
    unsigned i = 0;
    for (struct db_op *op = list; op != NULL; op = op->next, i++)
        ck_assert_int_eq(op->result, expected[i]);
    is_stored("x", 1, "0");
    is_stored("y", 2, "2");
    is_stored("b", 3, "3");
    is_stored("c", 4, "4");
    is_stored("z", 5, "5");
    ck_assert_int_eq(documents(), 5);
    ck_assert_int_eq(tdb_ask_file("SELECT max(seq) FROM change"), 5);
    tdb_free(list);
}
END_TEST

START_TEST(parts_see_what_those_before_them_did)
{
    struct db_op *op = batch_of(tdb_list(put_absent("a", "1"), tdb_delete("a"), put_absent("a", "2"), tdb_put("a", "3"), NULL));
    part(op, 3)->precond.match = (struct db_tags){.given = 1, .count = 1, .seq = {3}};
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    ck_assert_int_eq(op->result, DB_OK);
    is_stored("a", 4, "3");
    tdb_free(op);
}
END_TEST

START_TEST(a_batch_of_nothing)
{
    struct db_op *op = tdb_put("a", "1");
    uint64_t us;
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    tdb_free(op);
    op = batch_of(NULL);
    ck_assert_int_eq(db_burst_run(&conn, op, &us), DB_OK);
    ck_assert_int_eq(op->result, DB_OK);
    ck_assert_uint_eq(op->seq, 1);
    ck_assert_uint_eq(us, 0);
    tdb_free(op);
}
END_TEST

START_TEST(a_burst_of_failed_batches_writes_nothing)
{
    uint64_t us;
    struct db_op *op = batch_of(tdb_list(tdb_put("a", "1"), tdb_put("b", "2"), tdb_delete("absent"), NULL));
    ck_assert_int_eq(db_burst_run(&conn, op, &us), DB_OK);
    ck_assert_int_eq(op->result, DB_NONE);
    ck_assert_uint_eq(us, 0);
    tdb_free(op);
}
END_TEST

START_TEST(tokens_in_a_batch)
{
    struct db_op *first = db_op_new(DB_OP_TOKEN_NEW, 100), *second = db_op_new(DB_OP_TOKEN_REVOKE, 10);
    db_op_copy(first, 0, DB_VALUE_TEXT, "n", 1);
    db_op_copy(first, 1, DB_VALUE_BLOB, "0123456789abcdef0123456789abcdef", 32);
    db_op_copy(first, 2, DB_VALUE_TEXT, "/", 1);
    db_op_copy(first, 3, DB_VALUE_TEXT, "", 0);
    db_op_int(first, 4, 0);
    db_op_copy(second, 0, DB_VALUE_TEXT, "other", 5);
    struct db_op *op = batch_of(tdb_list(tdb_put("a", "1"), first, second, NULL));
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    ck_assert_int_eq(op->result, DB_NONE);
    ck_assert_uint_eq(op->failed_part, 2);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM token"), 0);
    tdb_free(op);
}
END_TEST

START_TEST(a_thousand_parts)
{
    struct db_op *op = db_op_new(DB_OP_BATCH, 0);
    for (int i = 0; i < DB_OP_PARTS_MAX; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        db_op_add_part(op, tdb_put(key, "x"));
    }
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    ck_assert_int_eq(op->result, DB_OK);
    ck_assert_uint_eq(op->seq, DB_OP_PARTS_MAX);
    ck_assert_int_eq(documents(), DB_OP_PARTS_MAX);
    tdb_free(op);
}
END_TEST

/* ---- triggers that somebody added ------------------------------------------------------------ */

START_TEST(numbers_are_those_that_are_stored)
{
    add("CREATE TRIGGER t AFTER INSERT ON doc WHEN new.key NOT LIKE 'log/%'"
        " BEGIN INSERT INTO doc (key, body) VALUES ('log/' || new.key, 'new'); END");
    struct db_op *list = tdb_list(batch_of(tdb_list(tdb_put("a", "1"), tdb_put("b", "2"), NULL)),
                                  batch_of(tdb_list(tdb_put("c", "3"), put_absent("log/c", "lost"), NULL)),
                                  tdb_put("d", "4"), NULL);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    ck_assert_int_eq(list->result, DB_OK);
    ck_assert_int_eq(list->next->result, DB_PRECONDITION);
    ck_assert_uint_eq(list->next->failed_part, 1);
    is_stored("a", part(list, 0)->seq, "1");
    is_stored("b", part(list, 1)->seq, "2");
    is_stored("d", list->next->next->seq, "4");
    ck_assert_int_eq(documents(), 6);
    tdb_free(list);
}
END_TEST

static const char *const refusing[] = {
    "CREATE TRIGGER t BEFORE INSERT ON doc WHEN new.key = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END",
    "CREATE TRIGGER t AFTER INSERT ON doc WHEN new.key = 'bad' BEGIN SELECT RAISE(FAIL, 'no'); END",
    "CREATE TRIGGER t BEFORE INSERT ON doc WHEN new.key = 'bad' BEGIN SELECT RAISE(IGNORE); END",
};

START_TEST(what_a_trigger_refuses_undoes_the_batch)
{
    add(refusing[_i]);
    struct db_op *list = tdb_list(batch_of(tdb_list(tdb_put("a", "1"), tdb_put("bad", "2"), tdb_put("b", "3"), NULL)),
                                  tdb_put("c", "4"), NULL);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    ck_assert_int_eq(list->result, DB_INVALID);
    ck_assert_uint_eq(list->failed_part, 1);
    ck_assert_int_eq(list->next->result, DB_OK);
    is_stored("c", list->next->seq, "4");
    ck_assert_int_eq(documents(), 1);
    tdb_free(list);
}
END_TEST

/* Who caused it is refused, the others are applied again. */
START_TEST(a_trigger_that_ends_the_transaction)
{
    add("CREATE TRIGGER t BEFORE INSERT ON doc WHEN new.key = 'bad' BEGIN SELECT RAISE(ROLLBACK, 'no'); END");
    struct db_op *list = tdb_list(tdb_put("c", "0"), batch_of(tdb_list(tdb_put("a", "1"), tdb_put("bad", "2"), NULL)), NULL);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    ck_assert_int_eq(list->result, DB_OK);
    is_stored("c", 1, "0");
    ck_assert_int_eq(list->next->result, DB_INVALID);
    ck_assert_uint_eq(list->next->failed_part, 1);
    ck_assert_int_eq(documents(), 1);
    tdb_free(list);
    struct db_op *op = batch_of(tdb_list(tdb_put("a", "1"), NULL));
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    is_stored("a", 2, "1");
    tdb_free(op);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("batch");
    TCase *t = run_case(s, "batch");
    temp_use(t);
    tcase_add_checked_fixture(t, open_conn, close_conn);
    tcase_add_test(t, all_parts_in_order);
    tcase_add_test(t, none_when_one_fails);
    tcase_add_loop_test(t, every_failure_of_a_part_is_that_of_the_batch, 0, COUNT(failures));
    tcase_add_test(t, others_of_the_burst_go_on);
    tcase_add_test(t, parts_see_what_those_before_them_did);
    tcase_add_test(t, a_batch_of_nothing);
    tcase_add_test(t, a_burst_of_failed_batches_writes_nothing);
    tcase_add_test(t, tokens_in_a_batch);
    tcase_add_test(t, a_thousand_parts);
    tcase_add_test(t, numbers_are_those_that_are_stored);
    tcase_add_loop_test(t, what_a_trigger_refuses_undoes_the_batch, 0, COUNT(refusing));
    tcase_add_test(t, a_trigger_that_ends_the_transaction);
    return run_suite(s);
}
