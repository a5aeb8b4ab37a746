/* db/change: the feed in a snapshot, where it begins and ends, and whether somebody else committed. */
#include "db/change.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/tdb.h"

static struct db_conn writer;
static struct db_reader *reader;

static void open_both(void)
{
    tdb_init();
    tdb_open(&writer);
    ck_assert_int_eq(db_reader_open(&tdb_config, &reader, &tdb_error), DB_OK);
}

static void close_both(void)
{
    db_reader_close(reader);
    db_conn_close(&writer);
}

static void apply(struct db_op *op)
{
    ck_assert_int_eq(tdb_burst(&writer, op), DB_OK);
    tdb_free(op);
}

/* What db_change_list gave, as "1+a 2-b ": a number, put or deleted, and the key. */
struct text {
    char s[4096];
    unsigned rows;
    unsigned stop; /* after that many rows; 0: never */
};

static bool add(void *arg, const struct db_change *change)
{
    struct text *t = arg;
    size_t n = strlen(t->s);
    snprintf(t->s + n, sizeof t->s - n, "%llu%c%.*s ", (unsigned long long)change->seq, change->deleted ? '-' : '+',
             (int)change->key_len, change->key);
    return ++t->rows != t->stop;
}

static const char *list(uint64_t since, unsigned limit, unsigned stop)
{
    static struct text t;
    t = (struct text){.stop = stop};
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    ck_assert_int_eq(db_change_list(reader, since, limit, add, &t), DB_OK);
    db_reader_end(reader);
    return t.s;
}

static struct db_change_bounds bounds(void)
{
    struct db_change_bounds b = {77, 77};
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    ck_assert_int_eq(db_change_bounds(reader, &b), DB_OK);
    db_reader_end(reader);
    return b;
}

START_TEST(an_empty_store_has_an_empty_feed)
{
    struct db_change_bounds b = bounds();
    ck_assert_uint_eq(b.horizon, 0);
    ck_assert_uint_eq(b.last, 0);
    ck_assert_str_eq(list(0, 10, 0), "");
}
END_TEST

START_TEST(entries_in_order)
{
    apply(tdb_put("b", "1"));
    apply(tdb_put("a", "1"));
    apply(tdb_delete("b"));
    ck_assert_str_eq(list(0, 10, 0), "1+b 2+a 3-b ");
    ck_assert_uint_eq(bounds().last, 3);
}
END_TEST

START_TEST(behind_a_number)
{
    apply(tdb_list(tdb_put("a", "1"), tdb_put("b", "1"), tdb_put("c", "1"), NULL));
    ck_assert_str_eq(list(1, 10, 0), "2+b 3+c ");
    ck_assert_str_eq(list(3, 10, 0), "");
    ck_assert_str_eq(list(4, 10, 0), "");
    ck_assert_str_eq(list(INT64_MAX, 10, 0), "");
}
END_TEST

START_TEST(at_most_so_many)
{
    apply(tdb_list(tdb_put("a", "1"), tdb_put("b", "1"), tdb_put("c", "1"), NULL));
    ck_assert_str_eq(list(0, 2, 0), "1+a 2+b ");
    ck_assert_str_eq(list(0, 0, 0), "");
    ck_assert_str_eq(list(0, 10, 1), "1+a ");
    ck_assert_str_eq(list(0, 10, 0), "1+a 2+b 3+c ");
}
END_TEST

START_TEST(what_was_pruned_is_left_out_and_the_last_of_each_stays)
{
    uint64_t left = 0;
    apply(tdb_list(tdb_put("a", "1"), tdb_put("b", "1"), tdb_put("a", "2"), tdb_delete("b"), NULL));
    ck_assert_str_eq(list(0, 10, 0), "1+a 2+b 3+a 4-b ");
    ck_assert_int_eq(db_burst_prune(&writer, 100, &left), DB_OK);
    ck_assert_str_eq(list(0, 10, 0), "3+a 4-b ");
    ck_assert_uint_eq(bounds().last, 4);
}
END_TEST

START_TEST(a_snapshot_keeps_its_feed)
{
    struct text t = {.stop = 0};
    struct db_change_bounds b;
    apply(tdb_put("a", "1"));
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    ck_assert_int_eq(db_change_bounds(reader, &b), DB_OK);
    apply(tdb_put("b", "1"));
    ck_assert_int_eq(db_change_list(reader, 0, 10, add, &t), DB_OK);
    ck_assert_str_eq(t.s, "1+a ");
    ck_assert_int_eq(db_change_bounds(reader, &b), DB_OK);
    ck_assert_uint_eq(b.last, 1);
    db_reader_end(reader);
}
END_TEST

START_TEST(rows_from_outside_are_in_it)
{
    sqlite3 *shell = tdb_shell();
    apply(tdb_put("a", "1"));
    tdb_sql(shell, "INSERT INTO doc (key, body) VALUES ('out', 'x');"
                   "UPDATE doc SET body = 'y' WHERE key = 'a';"
                   "UPDATE doc SET key = 'new' WHERE key = 'out';"
                   "DELETE FROM doc WHERE key = 'a';");
    ck_assert_str_eq(list(1, 10, 0), "2+out 3+a 4-out 5+new 6-a ");
    sqlite3_close(shell);
}
END_TEST

START_TEST(what_failed_is_not_in_it)
{
    sqlite3 *shell = tdb_shell();
    apply(tdb_put("a", "1"));
    tdb_sql(shell, "BEGIN; UPDATE doc SET body = 'y'; ROLLBACK");
    ck_assert_str_eq(list(0, 10, 0), "1+a ");
    ck_assert_uint_eq(bounds().last, 1);
    sqlite3_close(shell);
}
END_TEST

START_TEST(the_end_does_not_go_back_when_its_entry_is_gone)
{
    sqlite3 *shell = tdb_shell();
    apply(tdb_put("a", "1"));
    apply(tdb_put("b", "1"));
    tdb_sql(shell, "DELETE FROM change");
    ck_assert_uint_eq(bounds().last, 2);
    tdb_sql(shell, "UPDATE sqlite_sequence SET seq = 1000 WHERE name = 'change'");
    ck_assert_uint_eq(bounds().last, 1000);
    apply(tdb_put("c", "1"));
    ck_assert_str_eq(list(0, 10, 0), "1001+c ");
    sqlite3_close(shell);
}
END_TEST

START_TEST(the_horizon)
{
    sqlite3 *shell = tdb_shell();
    apply(tdb_put("a", "1"));
    tdb_sql(shell, "INSERT INTO meta (name, value) VALUES ('horizon', 1)");
    ck_assert_uint_eq(bounds().horizon, 1);
    sqlite3_close(shell);
}
END_TEST

START_TEST(the_version_is_the_same_while_nobody_writes)
{
    uint64_t first = 0, again = 0;
    ck_assert_int_eq(db_change_version(reader, &first), DB_OK);
    (void)bounds();
    ck_assert_int_eq(db_change_version(reader, &again), DB_OK);
    ck_assert_uint_eq(first, again);
}
END_TEST

/* Whoever commits: the server's writer, or a stranger, and also when a snapshot meanwhile saw it. */
START_TEST(the_version_differs_after_a_commit)
{
    sqlite3 *shell = tdb_shell();
    uint64_t a = 0, b = 0, c = 0, d = 0;
    ck_assert_int_eq(db_change_version(reader, &a), DB_OK);
    apply(tdb_put("a", "1"));
    ck_assert_int_eq(db_change_version(reader, &b), DB_OK);
    ck_assert_uint_ne(a, b);
    tdb_sql(shell, "UPDATE doc SET body = 'y'");
    ck_assert_int_eq(db_change_version(reader, &c), DB_OK);
    ck_assert_uint_ne(b, c);
    tdb_sql(shell, "UPDATE doc SET body = 'z'");
    (void)bounds();
    ck_assert_int_eq(db_change_version(reader, &d), DB_OK);
    ck_assert_uint_ne(c, d);
    sqlite3_close(shell);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("change");
    TCase *t = run_case(s, "feed");
    temp_use(t);
    tcase_add_checked_fixture(t, open_both, close_both);
    tcase_add_test(t, an_empty_store_has_an_empty_feed);
    tcase_add_test(t, entries_in_order);
    tcase_add_test(t, behind_a_number);
    tcase_add_test(t, at_most_so_many);
    tcase_add_test(t, what_was_pruned_is_left_out_and_the_last_of_each_stays);
    tcase_add_test(t, a_snapshot_keeps_its_feed);
    tcase_add_test(t, rows_from_outside_are_in_it);
    tcase_add_test(t, what_failed_is_not_in_it);
    tcase_add_test(t, the_end_does_not_go_back_when_its_entry_is_gone);
    tcase_add_test(t, the_horizon);
    tcase_add_test(t, the_version_is_the_same_while_nobody_writes);
    tcase_add_test(t, the_version_differs_after_a_commit);
    return run_suite(s);
}
