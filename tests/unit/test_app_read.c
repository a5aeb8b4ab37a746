/* db/app_read, db/rows: scripts of apps in a snapshot. */
#include <string.h>

#include "tests/unit/adb.h"

#define NOTHING ((const char *)NULL)

static struct db_app_fault fault;

static void open_all(void)
{
    adb_open();
    sqlite3 *shell = tdb_shell();
    tdb_sql(shell, "INSERT INTO shop_item (id, name, price) VALUES (1, 'tea', 3), (2, 'rice', 5), (3, 'salt', 1)");
    sqlite3_close(shell);
}

static void begin(const struct db_app_run *run)
{
    ck_assert_int_eq(db_reader_begin(adb_reader), DB_OK);
    ck_assert_int_eq(db_app_begin(adb_reader, run, &fault), DB_OK);
}

static void end(void)
{
    db_app_end(adb_reader);
    db_reader_end(adb_reader);
}

static struct db_cursor *cursor_of(unsigned statement)
{
    struct db_cursor *c;
    ck_assert_int_eq(db_app_open(adb_reader, statement, &c), DB_OK);
    return c;
}

START_TEST(rows_come_in_order_with_their_types)
{
    struct db_script *s = adb_script(DB_SCRIPT_READ, "SELECT id, name, 9007199254740993 AS big, 1.5 AS r, NULL AS n,"
                                                     " x'00ff' AS b FROM shop_item WHERE price >= :least ORDER BY id");
    struct db_app_run run = adb_run(s, "least", "2", NOTHING);
    struct db_cell cell;
    begin(&run);
    struct db_cursor *c = cursor_of(0);
    ck_assert_uint_eq(db_cursor_columns(c), 6);
    ck_assert_str_eq(db_cursor_column(c, 2), "big");
    ck_assert_int_eq(db_cursor_next(c), DB_OK);
    db_cursor_cell(c, 2, &cell);
    ck_assert_int_eq(cell.type, DB_CELL_INT);
    ck_assert_int_eq(cell.i, 9007199254740993);
    db_cursor_cell(c, 3, &cell);
    ck_assert(cell.type == DB_CELL_REAL && cell.r == 1.5);
    db_cursor_cell(c, 4, &cell);
    ck_assert_int_eq(cell.type, DB_CELL_NULL);
    db_cursor_cell(c, 5, &cell);
    ck_assert(cell.type == DB_CELL_BLOB && cell.n == 2 && memcmp(cell.p, "\0\xff", 2) == 0);
    ck_assert_int_eq(db_cursor_next(c), DB_OK);
    ck_assert_int_eq(db_cursor_next(c), DB_NONE);
    db_cursor_close(c);
    end();
}
END_TEST

START_TEST(text_keeps_its_nul)
{
    struct db_script *s = adb_script(DB_SCRIPT_READ, "SELECT 'a' || char(0) || 'b' AS t");
    struct db_app_run run = adb_run(s, NOTHING);
    struct db_cell cell;
    begin(&run);
    struct db_cursor *c = cursor_of(0);
    ck_assert_int_eq(db_cursor_next(c), DB_OK);
    db_cursor_cell(c, 0, &cell);
    ck_assert(cell.type == DB_CELL_TEXT && cell.n == 3 && memcmp(cell.p, "a\0b", 3) == 0);
    db_cursor_close(c);
    end();
}
END_TEST

START_TEST(two_cursors_of_one_statement)
{
    struct db_script *s = adb_script(DB_SCRIPT_READ, "SELECT name FROM shop_item ORDER BY id");
    struct db_app_run run = adb_run(s, NOTHING);
    struct db_cell cell;
    begin(&run);
    struct db_cursor *a = cursor_of(0), *b = cursor_of(0);
    ck_assert_int_eq(db_cursor_next(a), DB_OK);
    ck_assert_int_eq(db_cursor_next(a), DB_OK);
    ck_assert_int_eq(db_cursor_next(b), DB_OK);
    db_cursor_cell(b, 0, &cell);
    ck_assert(cell.n == 3 && memcmp(cell.p, "tea", 3) == 0);
    ck_assert_str_eq(adb_rows(b), "rice;salt");
    db_cursor_cell(a, 0, &cell);
    ck_assert(cell.n == 4 && memcmp(cell.p, "rice", 4) == 0);
    db_cursor_close(a);
    ck_assert_str_eq(adb_rows(cursor_of(0)), "tea;rice;salt");
    end();
}
END_TEST

START_TEST(set_gives_parameters)
{
    struct db_script *s = adb_script(DB_SCRIPT_READ, "-- set\nSELECT max(price) AS most FROM shop_item;\n"
                                                     "SELECT name FROM shop_item WHERE price = :most;");
    struct db_app_run run = adb_run(s, NOTHING);
    struct db_cell cell;
    bool found = false;
    begin(&run);
    for (unsigned i = 0; i < s->names; i++)
        if (strcmp(s->name[i].name, "most") == 0)
            found = db_app_value(adb_reader, i, &cell);
    ck_assert(found && cell.type == DB_CELL_INT && cell.i == 5);
    ck_assert_str_eq(adb_rows(cursor_of(1)), "rice");
    end();
}
END_TEST

START_TEST(a_statement_beyond_its_time_is_stopped_and_the_snapshot_goes_on)
{
    struct db_script *s = adb_script(DB_SCRIPT_READ, "-- name: endless\n"
                                                     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
                                                     " SELECT max(i) AS m FROM n;\nSELECT count(*) AS n FROM shop_item;");
    struct db_app_run run = adb_run(s, NOTHING);
    run.limit_us = 2000;
    uint64_t before = db_clock_us();
    begin(&run);
    struct db_cursor *c = cursor_of(0);
    ck_assert_int_eq(db_cursor_next(c), DB_TIMEOUT);
    ck_assert_uint_eq(fault.line, 2);
    db_cursor_close(c);
    db_app_end(adb_reader);
    ck_assert_uint_lt(db_clock_us() - before, SANITIZED ? 2000000 : 200000);
    run.limit_us = 1000000;
    ck_assert_int_eq(db_app_begin(adb_reader, &run, &fault), DB_OK);
    ck_assert_str_eq(adb_rows(cursor_of(1)), "3");
    end();
}
END_TEST

/* The thread itself had to wait: the time is over, and hardly anything was done. */
START_TEST(a_short_statement_is_left_a_little_more_time)
{
    struct db_script *s = adb_script(DB_SCRIPT_READ, "SELECT name FROM shop_item ORDER BY id");
    struct db_app_run run = adb_run(s, NOTHING);
    run.limit_us = 1;
    begin(&run);
    struct db_cursor *c = cursor_of(0);
    uint64_t over = db_clock_us() + 2;
    while (db_clock_us() < over)
        ;
    ck_assert_str_eq(adb_rows(c), "tea;rice;salt");
    end();
}
END_TEST

START_TEST(a_table_that_changes_shape_is_prepared_again)
{
    struct db_script *s = adb_script(DB_SCRIPT_READ, "SELECT name FROM shop_item WHERE id = 1");
    struct db_app_run run = adb_run(s, NOTHING);
    begin(&run);
    ck_assert_str_eq(adb_rows(cursor_of(0)), "tea");
    end();
    sqlite3 *shell = tdb_shell();
    tdb_sql(shell, "ALTER TABLE shop_item ADD COLUMN more TEXT");
    sqlite3_close(shell);
    begin(&run);
    ck_assert_str_eq(adb_rows(cursor_of(0)), "tea");
    end();
}
END_TEST

START_TEST(statements_are_kept_and_their_number_is_bounded)
{
    enum { MANY = 60, KEPT_MAX = 48 };
    for (int i = 0; i < MANY; i++) {
        struct db_script *s = adb_script(DB_SCRIPT_READ, "SELECT count(*) FROM shop_item");
        struct db_app_run run = adb_run(s, NOTHING);
        for (int again = 0; again < 2; again++) {
            begin(&run);
            ck_assert_str_eq(adb_rows(cursor_of(0)), "3");
            end();
        }
        ck_assert_uint_eq(db_app_prepared(adb_reader), i < KEPT_MAX ? (unsigned)i + 1 : KEPT_MAX);
    }
}
END_TEST

/* ---- recorded rows --------------------------------------------------------------------------- */

START_TEST(damaged_records_are_noticed)
{
    static unsigned char bytes[64] = {20, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0};
    struct db_rows rows = {bytes, 20};
    struct db_cursor *c;
    const char *name;
    unsigned statement;
    memcpy(bytes + 12, "\0\0\0\1\0x\0\4", 8); /* no name, a column x, a blob without its length */
    ck_assert(db_rows_result(rows, 0, &name, &statement));
    ck_assert_int_eq(db_rows_open(rows, 0, &c), DB_OK);
    ck_assert_int_eq(db_cursor_next(c), DB_BROKEN);
    db_cursor_close(c);
    ck_assert_int_eq(db_rows_open(rows, 1, &c), DB_NONE);
    bytes[0] = 200;
    ck_assert(!db_rows_result(rows, 0, &name, &statement));
    bytes[0] = 15;
    ck_assert_int_eq(db_rows_open(rows, 0, &c), DB_BROKEN);
    ck_assert_int_eq(db_rows_open((struct db_rows){NULL, 0}, 0, &c), DB_NONE);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("app_read");
    TCase *t = run_case(s, "all");
    temp_use(t);
    tcase_add_checked_fixture(t, open_all, adb_close);
    tcase_add_test(t, rows_come_in_order_with_their_types);
    tcase_add_test(t, text_keeps_its_nul);
    tcase_add_test(t, two_cursors_of_one_statement);
    tcase_add_test(t, set_gives_parameters);
    tcase_add_test(t, a_statement_beyond_its_time_is_stopped_and_the_snapshot_goes_on);
    tcase_add_test(t, a_short_statement_is_left_a_little_more_time);
    tcase_add_test(t, a_table_that_changes_shape_is_prepared_again);
    tcase_add_test(t, statements_are_kept_and_their_number_is_bounded);
    tcase_add_test(t, damaged_records_are_noticed);
    return run_suite(s);
}
