/* db/burst, db/doc, db/token: several operations in one transaction. */
#include <stdio.h>
#include <string.h>

#include "db/doc.h"
#include "db/token.h"
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

static struct db_precond matches(uint64_t seq)
{
    return (struct db_precond){.match = {.given = 1, .count = 1, .seq = {seq}}};
}

static const struct db_precond absent = {.none_match = {.given = 1, .any = 1}};

/* The document in the file, as a stranger reads it. */
static void is_stored(const char *key, uint64_t seq, const char *body)
{
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM doc WHERE key = '%s' AND seq = %llu AND CAST(body AS TEXT) = '%s'"
                              " AND size = %zu", key, (unsigned long long)seq, body, strlen(body));
    ck_assert_msg(tdb_ask_file(sql) == 1, "%s", sql);
}

static int64_t documents(void)
{
    return tdb_ask_file("SELECT count(*) FROM doc");
}

/* ---- one after the other --------------------------------------------------------------------- */

START_TEST(new_replaced_and_deleted)
{
    struct db_op *op = tdb_put("a", "one");
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    ck_assert_int_eq(op->result, DB_OK);
    ck_assert(op->created);
    ck_assert_uint_eq(op->seq, 1);
    is_stored("a", 1, "one");
    tdb_free(op);
    op = tdb_put("a", "second");
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    ck_assert(!op->created);
    ck_assert_uint_eq(op->seq, 2);
    is_stored("a", 2, "second");
    tdb_free(op);
    op = tdb_delete("a");
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    ck_assert_int_eq(op->result, DB_OK);
    ck_assert_uint_eq(op->seq, 3);
    ck_assert_int_eq(documents(), 0);
    tdb_free(op);
    op = tdb_put("a", "third");
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    ck_assert(op->created);
    ck_assert_uint_eq(op->seq, 4);
    tdb_free(op);
}
END_TEST

START_TEST(operations_are_applied_in_order)
{
    struct db_op *list = tdb_list(tdb_put("a", "1"), tdb_put("b", "2"), tdb_put("a", "3"), tdb_delete("b"), tdb_put("b", "4"),
                                  tdb_put("c", "5"), tdb_delete("c"), NULL);
    uint64_t seq = 1;
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    for (struct db_op *op = list; op != NULL; op = op->next) {
        ck_assert_int_eq(op->result, DB_OK);
        ck_assert_uint_eq(op->seq, seq++);
    }
    is_stored("a", 3, "3");
    is_stored("b", 5, "4");
    ck_assert_int_eq(documents(), 2);
    tdb_free(list);
}
END_TEST

START_TEST(the_commit_is_timed)
{
    uint64_t us = 99;
    struct db_op *op = tdb_put("a", "1");
    ck_assert_int_eq(db_burst_run(&conn, op, &us), DB_OK);
    ck_assert_uint_gt(us, 0);
    tdb_free(op);
    op = tdb_delete("absent");
    ck_assert_int_eq(db_burst_run(&conn, op, &us), DB_OK);
    ck_assert_int_eq(op->result, DB_NONE);
    ck_assert_uint_eq(us, 0);
    tdb_free(op);
}
END_TEST

/* ---- what fails alone ------------------------------------------------------------------------ */

START_TEST(a_precondition_fails_alone)
{
    struct db_op *list = tdb_list(tdb_put("a", "1"), tdb_put("a", "lost"), tdb_put("a", "lost"), tdb_put("b", "2"),
                                  tdb_delete("b"), tdb_put("c", "lost"), tdb_put("a", "3"), NULL);
    struct db_op *op[7];
    size_t i = 0;
    for (struct db_op *o = list; o != NULL; o = o->next)
        op[i++] = o;
    op[0]->precond = absent;
    op[1]->precond = absent;       /* it is there by then */
    op[2]->precond = matches(7);   /* not that one */
    op[4]->precond = matches(1);   /* nor that */
    op[5]->precond = matches(1);   /* not there */
    op[6]->precond = matches(1);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    static const enum db_result expected[] = {DB_OK, DB_PRECONDITION, DB_PRECONDITION, DB_OK,
                                              DB_PRECONDITION, DB_PRECONDITION, DB_OK};
    for (i = 0; i < 7; i++)
        ck_assert_msg(op[i]->result == expected[i], "%zu: %d", i, (int)op[i]->result);
    ck_assert_uint_eq(op[1]->seq, 1); /* the current one, for whoever asks */
    ck_assert_uint_eq(op[3]->seq, 2);
    ck_assert_uint_eq(op[6]->seq, 3);
    is_stored("a", 3, "3");
    is_stored("b", 2, "2");
    ck_assert_int_eq(documents(), 2);
    tdb_free(list);
}
END_TEST

START_TEST(deleting_what_is_absent_fails_alone)
{
    struct db_op *list = tdb_list(tdb_delete("x"), tdb_put("a", "1"), tdb_delete("y"), NULL);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    ck_assert_int_eq(list->result, DB_NONE);
    ck_assert_int_eq(list->next->result, DB_OK);
    ck_assert_int_eq(list->next->next->result, DB_NONE);
    is_stored("a", 1, "1");
    tdb_free(list);
}
END_TEST

START_TEST(a_burst_that_changes_nothing_writes_nothing)
{
    struct db_op *op = tdb_put("a", "1");
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    tdb_free(op);
    int64_t version = tdb_ask_file("SELECT seq FROM sqlite_sequence WHERE name = 'change'");
    op = tdb_list(tdb_put("a", "x"), tdb_delete("b"), tdb_put("c", "y"), NULL);
    op->precond = absent;
    op->next->next->precond = matches(4);
    uint64_t us;
    ck_assert_int_eq(db_burst_run(&conn, op, &us), DB_OK);
    ck_assert_uint_eq(us, 0);
    ck_assert_int_eq(tdb_ask_file("SELECT seq FROM sqlite_sequence WHERE name = 'change'"), version);
    tdb_free(op);
}
END_TEST

/* The last guard: rows that the schema refuses. */
START_TEST(a_row_that_is_refused_fails_alone)
{
    char long_key[600], long_type[300];
    memset(long_key, 'k', sizeof long_key);
    memset(long_type, 't', sizeof long_type);
    long_key[513] = long_type[256] = 0;
    struct db_op *list = tdb_list(tdb_put("a", "1"), tdb_put("", "x"), tdb_put("a//b", "x"), tdb_put("/a", "x"),
                                  tdb_put("a/", "x"), tdb_put(long_key, "x"),
                                  tdb_put_bytes("t", long_type, DB_VALUE_TEXT, "x", 1),
                                  tdb_put_bytes("t", "", DB_VALUE_TEXT, "x", 1), db_op_new(DB_OP_PUT, 0),
                                  tdb_put("b", "2"), NULL);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    size_t i = 0;
    for (struct db_op *op = list; op != NULL; op = op->next, i++)
        ck_assert_msg(op->result == (i == 0 || i == 9 ? DB_OK : DB_INVALID), "%zu: %d", i, (int)op->result);
    is_stored("b", 2, "2");
    ck_assert_int_eq(documents(), 2);
    tdb_free(list);
}
END_TEST

/* ---- bodies ---------------------------------------------------------------------------------- */

struct str {
    const char *p;
    size_t n;
};

START_TEST(bodies_are_stored_byte_for_byte)
{
    static char big[300000];
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (char)(i * 2654435761u >> 7);
    static const struct str texts[] = {{"", 0}, {"a", 1}, {"\0", 1}, {"a\0b\0", 4}, {"\xff\xfe", 2}, {"\xc3\xa9\r\n", 4}};
    for (size_t i = 0; i <= COUNT(texts); i++) {
        struct str body = i < COUNT(texts) ? texts[i] : (struct str){big, sizeof big};
        for (int form = DB_VALUE_TEXT; form <= DB_VALUE_BLOB; form++) {
            struct db_op *op = tdb_put_bytes("k", "t/t", (enum db_value_type)form, body.p, body.n);
            struct db_reader *r;
            struct db_doc doc;
            ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
            ck_assert_int_eq(op->result, DB_OK);
            ck_assert_int_eq(db_reader_open(&tdb_config, &r, &tdb_error), DB_OK);
            ck_assert_int_eq(db_reader_begin(r), DB_OK);
            ck_assert_int_eq(db_doc_get(r, "k", 1, UINT64_MAX >> 1, &doc), DB_OK);
            ck_assert_uint_eq(doc.size, body.n);
            ck_assert_uint_eq(doc.seq, op->seq);
            ck_assert_mem_eq(doc.body ? doc.body : "", body.p, body.n);
            db_reader_close(r);
            ck_assert_int_eq(tdb_ask_file("SELECT size FROM doc"), body.n);
            ck_assert_int_eq(tdb_ask_file("SELECT typeof(body) = 'text' FROM doc"), form == DB_VALUE_TEXT);
            tdb_free(op);
        }
    }
}
END_TEST

/* ---- tokens ---------------------------------------------------------------------------------- */

static struct db_op *token(const char *name, int hash, int64_t expires)
{
    unsigned char bytes[DB_TOKEN_HASH_BYTES] = {(unsigned char)hash};
    struct db_op *op = db_op_new(DB_OP_TOKEN_NEW, 200);
    db_op_copy(op, 0, DB_VALUE_TEXT, name, strlen(name));
    db_op_copy(op, 1, DB_VALUE_BLOB, bytes, sizeof bytes);
    db_op_copy(op, 2, DB_VALUE_TEXT, "/docs/a/\n/status", 16);
    db_op_copy(op, 3, DB_VALUE_TEXT, "", 0);
    db_op_int(op, 4, expires);
    return op;
}

static struct db_op *revoke(const char *name)
{
    struct db_op *op = db_op_new(DB_OP_TOKEN_REVOKE, strlen(name));
    db_op_copy(op, 0, DB_VALUE_TEXT, name, strlen(name));
    return op;
}

START_TEST(tokens_are_made_and_revoked)
{
    struct db_op *list = tdb_list(token("a", 1, 0), token("b", 2, 12345), token("a", 3, 0), token("c", 1, 0),
                                  revoke("b"), revoke("b"), revoke("x"), token("b", 2, 7), NULL);
    static const enum db_result expected[] = {DB_OK, DB_OK, DB_EXISTS, DB_INVALID, DB_OK, DB_NONE, DB_NONE, DB_OK};
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    size_t i = 0;
    for (struct db_op *op = list; op != NULL; op = op->next, i++)
        ck_assert_msg(op->result == expected[i], "%zu: %d", i, (int)op->result);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM token"), 2);
    ck_assert_int_eq(tdb_ask_file("SELECT expires IS NULL FROM token WHERE name = 'a'"), 1);
    ck_assert_int_eq(tdb_ask_file("SELECT expires FROM token WHERE name = 'b'"), 7);
    ck_assert_int_eq(tdb_ask_file("SELECT abs(created - strftime('%s', 'now')) < 30 FROM token WHERE name = 'a'"), 1);
    tdb_free(list);
}
END_TEST

START_TEST(tokens_and_documents_in_one_burst)
{
    struct db_op *list = tdb_list(tdb_put("a", "1"), token("a", 1, 0), tdb_put("b", "2"), revoke("a"), tdb_delete("a"), NULL);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    for (struct db_op *op = list; op != NULL; op = op->next)
        ck_assert_int_eq(op->result, DB_OK);
    is_stored("b", 2, "2");
    tdb_free(list);
}
END_TEST

/* ---- somebody else writes -------------------------------------------------------------------- */

START_TEST(a_lock_held_too_long)
{
    sqlite3 *other = tdb_shell();
    struct db_op *list = tdb_list(tdb_put("a", "1"), tdb_put("b", "2"), NULL);
    tdb_sql(other, "BEGIN IMMEDIATE; INSERT INTO doc (key, body) VALUES ('x', 'y')");
    conn.busy_limit_ms = 30;
    ck_assert_int_eq(tdb_burst(&conn, list), DB_BUSY);
    ck_assert_int_eq(list->result, DB_BUSY);
    ck_assert_int_eq(list->next->result, DB_BUSY);
    ck_assert(conn.waited);
    tdb_sql(other, "COMMIT");
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    ck_assert_uint_eq(list->seq, 2);
    sqlite3_close(other);
    tdb_free(list);
}
END_TEST

START_TEST(rows_from_outside_between_bursts)
{
    sqlite3 *other = tdb_shell();
    struct db_op *op = tdb_put("a", "1");
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    tdb_sql(other, "UPDATE doc SET body = 'from outside'");
    tdb_free(op);
    op = tdb_list(tdb_put("a", "lost"), tdb_put("a", "2"), NULL);
    op->precond = matches(1);
    op->next->precond = matches(2);
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    ck_assert_int_eq(op->result, DB_PRECONDITION);
    ck_assert_int_eq(op->next->result, DB_OK);
    ck_assert_uint_eq(op->next->seq, 3);
    sqlite3_close(other);
    tdb_free(op);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("burst");
    TCase *t = run_case(s, "burst");
    temp_use(t);
    tcase_add_checked_fixture(t, open_conn, close_conn);
    tcase_add_test(t, new_replaced_and_deleted);
    tcase_add_test(t, operations_are_applied_in_order);
    tcase_add_test(t, the_commit_is_timed);
    tcase_add_test(t, a_precondition_fails_alone);
    tcase_add_test(t, deleting_what_is_absent_fails_alone);
    tcase_add_test(t, a_burst_that_changes_nothing_writes_nothing);
    tcase_add_test(t, a_row_that_is_refused_fails_alone);
    tcase_add_test(t, bodies_are_stored_byte_for_byte);
    tcase_add_test(t, tokens_are_made_and_revoked);
    tcase_add_test(t, tokens_and_documents_in_one_burst);
    tcase_add_test(t, a_lock_held_too_long);
    tcase_add_test(t, rows_from_outside_between_bursts);
    return run_suite(s);
}
