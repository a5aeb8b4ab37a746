/* db/app_write, db/app_schema: scripts of apps in bursts. */
#include <stdio.h>
#include <string.h>

#include "db/app_internal.h"
#include "tests/unit/adb.h"

#define NOTHING ((const char *)NULL)

static int64_t items(void)
{
    return tdb_ask_file("SELECT count(*) FROM shop_item");
}

static struct db_script *adding(void)
{
    return adb_script(DB_SCRIPT_WRITE, "INSERT INTO shop_item (name, price) VALUES (:name, :price)");
}

/* A post that must end in that way; its answer's rows. */
static void posts(const struct db_app_run *run, enum db_result result)
{
    struct db_op *op = adb_post(run);
    ck_assert_msg(op->result == result, "%s", db_result_text(op->result));
    tdb_free(op);
}

/* ---- one script ------------------------------------------------------------------------------ */

START_TEST(a_row_is_there_and_returned)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE, "INSERT INTO shop_item (name, price) VALUES (:name, 7)"
                                                      " RETURNING id, name, price");
    struct db_app_run run = adb_run(s, "name", "tea", NOTHING);
    struct db_op *op = adb_post(&run);
    ck_assert_int_eq(op->result, DB_OK);
    ck_assert_str_eq(adb_answer(op), "1|tea|7");
    ck_assert_int_eq(items(), 1);
    tdb_free(op);
}
END_TEST

START_TEST(what_is_not_given_is_null)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE, "SELECT :a, typeof(:a)");
    struct db_app_run run = adb_run(s, NOTHING);
    struct db_op *op = adb_post(&run);
    ck_assert_str_eq(adb_answer(op), "-|null");
    tdb_free(op);
}
END_TEST

START_TEST(an_error_undoes_what_was_done_before)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE, "INSERT INTO shop_item (name) VALUES ('one');\n"
                                                      "INSERT INTO shop_item (name) VALUES (NULL);");
    struct db_app_run run = adb_run(s, NOTHING);
    struct db_op *op = adb_post(&run);
    const char *file;
    ck_assert_int_eq(op->result, DB_INVALID);
    ck_assert_uint_eq(db_app_op_fault(op, &file)->line, 2);
    ck_assert_str_eq(db_app_op_fault(op, &file)->error.text, "NOT NULL constraint failed: shop_item.name");
    ck_assert_int_eq(items(), 0);
    ck_assert_str_eq(adb_answer(op), "none");
    tdb_free(op);
}
END_TEST

START_TEST(the_same_name_twice_is_a_conflict)
{
    struct db_script *s = adding();
    struct db_app_run run = adb_run(s, "name", "tea", NOTHING);
    posts(&run, DB_OK);
    posts(&run, DB_CONFLICT);
    ck_assert_int_eq(items(), 1);
}
END_TEST

START_TEST(a_check_is_told)
{
    struct db_script *s = adding();
    struct db_app_run run = adb_run(s, "name", "tea", "price", "-1", NOTHING);
    posts(&run, DB_INVALID);
    ck_assert_int_eq(items(), 0);
}
END_TEST

START_TEST(a_status_of_400_undoes_and_ends_the_script)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE, "INSERT INTO shop_item (name) VALUES ('one');\n"
                                                      "SELECT 422 AS _status, 'no' AS message WHERE :bad = '1';\n"
                                                      "INSERT INTO shop_item (name) VALUES ('two');");
    struct db_app_run run = adb_run(s, "bad", "1", NOTHING);
    struct db_op *op = adb_post(&run);
    ck_assert_int_eq(op->result, DB_OK);
    ck_assert(db_app_op_stopped(op));
    ck_assert_str_eq(adb_answer(op), "422|no");
    ck_assert_int_eq(items(), 0);
    tdb_free(op);
    run = adb_run(s, "bad", "0", NOTHING);
    op = adb_post(&run);
    ck_assert(!db_app_op_stopped(op));
    ck_assert_int_eq(items(), 2);
    tdb_free(op);
}
END_TEST

START_TEST(a_status_of_399_keeps)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE, "INSERT INTO shop_item (name) VALUES ('one');\n"
                                                      "SELECT 399 AS _status;");
    struct db_app_run run = adb_run(s, NOTHING);
    struct db_op *op = adb_post(&run);
    ck_assert(!db_app_op_stopped(op));
    ck_assert_int_eq(items(), 1);
    tdb_free(op);
}
END_TEST

START_TEST(set_gives_parameters_to_those_behind)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE, "-- set\nINSERT INTO shop_item (name, price) VALUES (:name, 1)"
                                                      " RETURNING id AS item;\n"
                                                      "UPDATE shop_item SET price = :item + 41 WHERE id = :item;\n"
                                                      "SELECT name, price FROM shop_item WHERE id = :item;");
    struct db_app_run run = adb_run(s, "name", "tea", NOTHING);
    struct db_op *op = adb_post(&run);
    ck_assert_int_eq(op->result, DB_OK);
    ck_assert_str_eq(adb_answer(op), "tea|42");
    tdb_free(op);
}
END_TEST

START_TEST(set_is_never_the_clients)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE, "-- set\nSELECT 1 AS total WHERE 0;\nSELECT :total AS after;");
    struct db_app_run run = adb_run(s, "total", "99", NOTHING);
    struct db_op *op = adb_post(&run);
    ck_assert_int_eq(op->result, DB_OK);
    ck_assert_str_eq(adb_answer(op), "-");
    tdb_free(op);
}
END_TEST

START_TEST(rows_beyond_the_bound_are_refused)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE,
                                     "INSERT INTO shop_item (name) VALUES ('one');\n"
                                     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)"
                                     " SELECT hex(zeroblob(500)) AS x FROM n;");
    struct db_app_run run = adb_run(s, NOTHING);
    posts(&run, DB_TOO_LARGE);
    ck_assert_int_eq(items(), 0);
}
END_TEST

/* ---- beside others --------------------------------------------------------------------------- */

START_TEST(who_takes_too_long_fails_alone)
{
    struct db_script *slow =
        adb_script(DB_SCRIPT_WRITE, "INSERT INTO shop_item (name) VALUES ('slow');\n"
                                    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
                                    " INSERT INTO shop_item (name) SELECT 'n' || i FROM n;");
    struct db_script *quick = adding();
    struct db_app_run run = adb_run(slow, NOTHING), other = adb_run(quick, "name", "tea", NOTHING);
    struct db_op *first = tdb_put("a", "1"), *stopped = adb_op(&run), *app = adb_op(&other), *last = tdb_put("b", "2");
    ck_assert_int_eq(tdb_burst(&adb_conn, tdb_list(first, stopped, app, last, NULL)), DB_OK);
    ck_assert_int_eq(first->result, DB_OK);
    ck_assert_int_eq(stopped->result, DB_TIMEOUT);
    ck_assert_int_eq(app->result, DB_OK);
    ck_assert_int_eq(last->result, DB_OK);
    ck_assert_uint_eq(first->seq, 1);
    ck_assert_uint_eq(last->seq, 2);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc"), 2);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM shop_item WHERE name = 'tea'"), 1);
    ck_assert_int_eq(items(), 1);
    tdb_free(first);
}
END_TEST

START_TEST(a_long_select_fails_alone)
{
    struct db_script *slow = adb_script(DB_SCRIPT_WRITE,
                                        "INSERT INTO shop_item (name) VALUES ('slow');\n"
                                        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
                                        " SELECT max(i) FROM n;");
    struct db_app_run run = adb_run(slow, NOTHING);
    struct db_op *stopped = adb_op(&run), *last = tdb_put("b", "2");
    ck_assert_int_eq(tdb_burst(&adb_conn, tdb_list(stopped, last, NULL)), DB_OK);
    ck_assert_int_eq(stopped->result, DB_TIMEOUT);
    ck_assert_int_eq(last->result, DB_OK);
    ck_assert_int_eq(items(), 0);
    tdb_free(stopped);
}
END_TEST

/* What an app may not write itself, but a person may have done to its tables. */
START_TEST(who_ends_the_transaction_fails_alone)
{
    sqlite3 *shell = tdb_shell();
    tdb_sql(shell, "CREATE TRIGGER shop_trap BEFORE INSERT ON shop_item WHEN new.name = 'trap' BEGIN"
                   " SELECT RAISE(ROLLBACK, 'gone'); END");
    sqlite3_close(shell);
    struct db_script *s = adding();
    struct db_app_run good = adb_run(s, "name", "tea", NOTHING), bad = adb_run(s, "name", "trap", NOTHING);
    struct db_op *first = tdb_put("a", "1"), *before = adb_op(&good), *ender = adb_op(&bad), *last = tdb_put("b", "2");
    ck_assert_int_eq(tdb_burst(&adb_conn, tdb_list(first, before, ender, last, NULL)), DB_OK);
    ck_assert_int_eq(first->result, DB_OK);
    ck_assert_int_eq(before->result, DB_OK);
    ck_assert_int_eq(ender->result, DB_INVALID);
    ck_assert_int_eq(last->result, DB_OK);
    ck_assert_uint_eq(last->seq, 2);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc"), 2);
    ck_assert_int_eq(items(), 1);
    tdb_free(first);
}
END_TEST

START_TEST(all_end_the_transaction)
{
    sqlite3 *shell = tdb_shell();
    tdb_sql(shell, "CREATE TRIGGER shop_trap BEFORE INSERT ON shop_item BEGIN SELECT RAISE(ROLLBACK, 'gone'); END");
    sqlite3_close(shell);
    struct db_script *s = adding();
    struct db_op *list[3];
    for (int i = 0; i < 3; i++) {
        struct db_app_run run = adb_run(s, "name", i == 0 ? "a" : i == 1 ? "b" : "c", NOTHING);
        list[i] = adb_op(&run);
    }
    ck_assert_int_eq(tdb_burst(&adb_conn, tdb_list(list[0], list[1], list[2], NULL)), DB_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(list[i]->result, DB_INVALID);
    tdb_free(list[0]);
}
END_TEST

/* ---- documents ------------------------------------------------------------------------------- */

START_TEST(a_document_is_put_in_the_same_transaction)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE, "INSERT INTO shop_item (name) VALUES (:name);\n"
                                                      "SELECT put_doc('apps/shop/' || :name, '{\"n\":1}', "
                                                      "'application/json');");
    struct db_app_run run = adb_run(s, "name", "tea", NOTHING);
    struct db_op *op = adb_op(&run), *last = tdb_put("b", "2");
    ck_assert_int_eq(tdb_burst(&adb_conn, tdb_list(op, last, NULL)), DB_OK);
    ck_assert_msg(op->result == DB_OK, "%s", db_result_text(op->result));
    ck_assert_uint_eq(last->seq, 2);
    ck_assert_int_eq(tdb_ask_file("SELECT seq FROM doc WHERE key = 'apps/shop/tea' AND body = '{\"n\":1}'"), 1);
    tdb_free(op);
}
END_TEST

START_TEST(a_document_that_cannot_be_put_undoes_all)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE, "INSERT INTO shop_item (name) VALUES ('tea');\n"
                                                      "SELECT put_doc('apps/shop/a', 'x');\n"
                                                      "SELECT put_doc('apps/shop/b', '{', 'application/json');");
    struct db_app_run run = adb_run(s, NOTHING);
    struct db_op *op = adb_post(&run);
    ck_assert_int_ne(op->result, DB_OK);
    ck_assert_int_eq(items(), 0);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc"), 0);
    tdb_free(op);
}
END_TEST

START_TEST(a_stopped_script_puts_nothing)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE, "SELECT put_doc('apps/shop/a', 'x');\nSELECT 409 AS _status;");
    struct db_app_run run = adb_run(s, NOTHING);
    struct db_op *op = adb_op(&run), *last = tdb_put("b", "2");
    ck_assert_int_eq(tdb_burst(&adb_conn, tdb_list(op, last, NULL)), DB_OK);
    ck_assert(db_app_op_stopped(op));
    ck_assert_uint_eq(last->seq, 1);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc"), 1);
    tdb_free(op);
}
END_TEST

/* ---- once ------------------------------------------------------------------------------------ */

static struct db_op *with_key(struct db_op *op, unsigned char request)
{
    op->once = calloc(1, sizeof *op->once);
    ck_assert_ptr_nonnull(op->once);
    op->once->scope[0] = 1;
    op->once->request[0] = request;
    op->once->status = 200;
    return op;
}

START_TEST(with_a_key_it_is_done_once_and_answered_the_same)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE, "INSERT INTO shop_item (name) VALUES (:name)"
                                                      " RETURNING id, name, hex(randomblob(8)) AS r");
    struct db_app_run run = adb_run(s, "name", "tea", NOTHING);
    char first[256];
    struct db_op *op = with_key(adb_op(&run), 1);
    ck_assert_int_eq(tdb_burst(&adb_conn, op), DB_OK);
    ck_assert_int_eq(op->result, DB_OK);
    ck_assert(!op->replayed);
    snprintf(first, sizeof first, "%s", adb_answer(op));
    tdb_free(op);
    op = with_key(adb_op(&run), 1);
    ck_assert_int_eq(tdb_burst(&adb_conn, op), DB_OK);
    ck_assert_int_eq(op->result, DB_OK);
    ck_assert(op->replayed);
    ck_assert_str_eq(adb_answer(op), first);
    ck_assert_int_eq(items(), 1);
    tdb_free(op);
    op = with_key(adb_op(&run), 2);
    ck_assert_int_eq(tdb_burst(&adb_conn, op), DB_OK);
    ck_assert_int_eq(op->result, DB_REUSED);
    tdb_free(op);
}
END_TEST

START_TEST(a_stopped_script_leaves_its_key_free)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE, "SELECT 422 AS _status WHERE NOT EXISTS (SELECT 1 FROM shop_item);\n"
                                                      "SELECT 'done' AS x;");
    struct db_app_run run = adb_run(s, NOTHING);
    struct db_op *op = with_key(adb_op(&run), 1);
    ck_assert_int_eq(tdb_burst(&adb_conn, op), DB_OK);
    ck_assert(db_app_op_stopped(op));
    tdb_free(op);
    struct db_script *add = adding();
    struct db_app_run other = adb_run(add, "name", "tea", NOTHING);
    posts(&other, DB_OK);
    op = with_key(adb_op(&run), 1);
    ck_assert_int_eq(tdb_burst(&adb_conn, op), DB_OK);
    ck_assert(!op->replayed && !db_app_op_stopped(op));
    tdb_free(op);
}
END_TEST

/* ---- schema ---------------------------------------------------------------------------------- */

#define ITEM "CREATE TABLE shop_item (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, price INTEGER CHECK (price >= 0))"

START_TEST(files_are_run_once)
{
    ck_assert_int_eq(adb_schema("001-item.sql", ITEM, NULL), DB_OK);
    ck_assert_int_eq(adb_schema("001-item.sql", ITEM, "002-more.sql", "INSERT INTO shop_item (name) VALUES ('x')", NULL),
                     DB_OK);
    ck_assert_int_eq(adb_schema("001-item.sql", ITEM, "002-more.sql", "INSERT INTO shop_item (name) VALUES ('x')", NULL),
                     DB_OK);
    ck_assert_int_eq(items(), 1);
}
END_TEST

START_TEST(a_changed_file_is_refused)
{
    ck_assert_int_eq(adb_schema("001-item.sql", "CREATE TABLE shop_other (x)", NULL), DB_CONFLICT);
    ck_assert_str_eq(adb_faults, "shop/schema/001-item.sql:1: it was changed after it was run: put it back, and what"
                                 " is new into a file with the next number");
}
END_TEST

START_TEST(all_files_or_none)
{
    ck_assert_int_eq(adb_schema("001-item.sql", ITEM, "002-a.sql", "CREATE TABLE shop_a (x)", "003-b.sql",
                                "CREATE TABLE shop_b (x);\nCREATE TABLE shop_b (x);", NULL), DB_INVALID);
    ck_assert_msg(strncmp(adb_faults, "shop/schema/003-b.sql:2: ", 25) == 0, "%s", adb_faults);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'shop_a' OR name LIKE 'shop_b'"), 0);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM app_schema"), 1);
}
END_TEST

START_TEST(a_number_below_one_that_was_run_is_refused)
{
    ck_assert_int_eq(adb_schema("001-item.sql", ITEM, "003-b.sql", "CREATE TABLE shop_b (x)", NULL), DB_OK);
    ck_assert_int_eq(adb_schema("001-item.sql", ITEM, "002-a.sql", "CREATE TABLE shop_a (x)", "003-b.sql",
                                "CREATE TABLE shop_b (x)", NULL), DB_CONFLICT);
}
END_TEST

START_TEST(tables_of_somebody_else_are_not_taken_over)
{
    struct db_grant grant = {.app = "cafe", .read = "", .write = ""};
    sqlite3 *shell = tdb_shell();
    tdb_sql(shell, "CREATE TABLE cafe_cup (x)");
    sqlite3_close(shell);
    adb_grant = grant;
    ck_assert_int_eq(adb_schema("001-a.sql", "CREATE TABLE cafe_a (x)", NULL), DB_REFUSED);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("app_write");
    TCase *t = run_case(s, "one");
    temp_use(t);
    tcase_add_checked_fixture(t, adb_open, adb_close);
    tcase_add_test(t, a_row_is_there_and_returned);
    tcase_add_test(t, what_is_not_given_is_null);
    tcase_add_test(t, an_error_undoes_what_was_done_before);
    tcase_add_test(t, the_same_name_twice_is_a_conflict);
    tcase_add_test(t, a_check_is_told);
    tcase_add_test(t, a_status_of_400_undoes_and_ends_the_script);
    tcase_add_test(t, a_status_of_399_keeps);
    tcase_add_test(t, set_gives_parameters_to_those_behind);
    tcase_add_test(t, set_is_never_the_clients);
    tcase_add_test(t, rows_beyond_the_bound_are_refused);
    t = run_case(s, "beside");
    temp_use(t);
    tcase_add_checked_fixture(t, adb_open, adb_close);
    tcase_add_test(t, who_takes_too_long_fails_alone);
    tcase_add_test(t, a_long_select_fails_alone);
    tcase_add_test(t, who_ends_the_transaction_fails_alone);
    tcase_add_test(t, all_end_the_transaction);
    t = run_case(s, "documents");
    temp_use(t);
    tcase_add_checked_fixture(t, adb_open, adb_close);
    tcase_add_test(t, a_document_is_put_in_the_same_transaction);
    tcase_add_test(t, a_document_that_cannot_be_put_undoes_all);
    tcase_add_test(t, a_stopped_script_puts_nothing);
    t = run_case(s, "once");
    temp_use(t);
    tcase_add_checked_fixture(t, adb_open, adb_close);
    tcase_add_test(t, with_a_key_it_is_done_once_and_answered_the_same);
    tcase_add_test(t, a_stopped_script_leaves_its_key_free);
    t = run_case(s, "schema");
    temp_use(t);
    tcase_add_checked_fixture(t, adb_open, adb_close);
    tcase_add_test(t, files_are_run_once);
    tcase_add_test(t, a_changed_file_is_refused);
    tcase_add_test(t, all_files_or_none);
    tcase_add_test(t, a_number_below_one_that_was_run_is_refused);
    tcase_add_test(t, tables_of_somebody_else_are_not_taken_over);
    return run_suite(s);
}
