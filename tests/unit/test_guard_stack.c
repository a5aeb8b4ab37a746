/* db/guard: the deepest SQL that is let through fits the stacks it runs on, 256 KiB of a pool's thread. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/guarded.h"

enum { STACK_BYTES = SANITIZED ? 4 << 20 : 256 << 10 };

/* Before, so many times open, middle, so many times close, after. */
static const struct {
    const char *before, *open, *middle, *close, *after;
} forms[] = {
    {"SELECT ", "(", "1", ")", ""},
    {"SELECT ", "1+(", "1", ")", ""},
    {"SELECT ", "NOT ", "1", "", ""},
    {"SELECT ", "abs(", "1", ")", ""},
    {"SELECT ", "CASE WHEN 1 THEN ", "1", " END", ""},
    {"SELECT ", "coalesce(NULL, ", "price", ")", " FROM shop_item"},
    {"SELECT ", "(SELECT ", "1", ")", ""},
    {"SELECT ", "(SELECT max(price) FROM shop_item WHERE id > ", "1", ")", ""},
    {"SELECT ", "EXISTS (SELECT 1 FROM shop_item WHERE ", "1", ")", ""},
    {"SELECT * FROM ", "(SELECT * FROM ", "shop_item", ")", ""},
    {"SELECT * FROM ", "(SELECT count(*) AS n FROM ", "shop_item", ")", ""},
    {"SELECT * FROM ", "(SELECT * FROM shop_item UNION SELECT * FROM ", "shop_item", ")", ""},
    {"SELECT * FROM ", "(SELECT DISTINCT *, row_number() OVER (ORDER BY 1) AS r FROM ", "shop_item", ")", ""},
    {"", "WITH a AS (SELECT 1), b AS (", "SELECT 2", ") SELECT * FROM b", ""},
    {"SELECT 1", "", "", " UNION ALL SELECT 1", ""},
    {"SELECT 1", "", "", " EXCEPT SELECT 1", " ORDER BY 1"},
    {"SELECT json('", "[", "", "]", "')"},
    {"SELECT json('", "{\"a\":", "1", "}", "')"},
    {"SELECT count(*) FROM json_tree('", "[", "", "]", "')"},
    {"SELECT json_extract('", "[", "1", "]", "', '$[0][0][0]')"},
    {"SELECT 1 FROM shop_note('", "(", "a", ")", "')"},
    {"SELECT 1 FROM shop_note('", "a OR (", "b", ")", "')"},
    {"SELECT 1 FROM shop_note('", "a NOT (", "b", ")", "')"},
    {"SELECT 1 FROM shop_item WHERE ", "id = 1 OR (id = 2 AND ", "1", ")", ""},
    {"SELECT 1 FROM shop_item ", "JOIN (shop_item ", "", ")", ""},
};

static char *nested(unsigned form, unsigned depth)
{
    sqlite3_str *out = sqlite3_str_new(NULL);
    sqlite3_str_appendall(out, forms[form].before);
    for (unsigned i = 0; i < depth; i++)
        sqlite3_str_appendall(out, forms[form].open);
    sqlite3_str_appendall(out, forms[form].middle);
    for (unsigned i = 0; i < depth; i++)
        sqlite3_str_appendall(out, forms[form].close);
    sqlite3_str_appendall(out, forms[form].after);
    return sqlite3_str_finish(out);
}

struct job {
    enum db_guard_mode mode;
    const char *sql;
    enum db_result result;
};

static void *run(void *arg)
{
    struct job *job = arg;
    job->result = guarded_run(job->mode, job->sql);
    return NULL;
}

static enum db_result on_a_small_stack(enum db_guard_mode mode, const char *sql)
{
    pthread_t thread;
    pthread_attr_t attr;
    struct job job = {mode, sql, DB_OK};
    ck_assert_int_eq(pthread_attr_init(&attr), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&attr, STACK_BYTES), 0);
    ck_assert_int_eq(pthread_create(&thread, &attr, run, &job), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    return job.result;
}

START_TEST(nesting_fits)
{
    static const unsigned depths[] = {5, 10, 15, 20, 24, 30, 35, 40, 45, 48, 50, 60, 70, 80, 90, 95, 98, 99,
                                      100, 120, 150, 200, 249, 250, 255, 256, 400, 499, 500, 900, 999, 1000, 1500, 1990, 1999,
                                      2000, 5000};
    for (size_t i = 0; i < COUNT(depths); i++) {
        char *sql = nested((unsigned)_i, depths[i]);
        on_a_small_stack(DB_GUARD_READ, sql);
        sqlite3_free(sql);
    }
}
END_TEST

/* A chain of as many views, or triggers, as there may be. */
START_TEST(chains_fit)
{
    char sql[400];
    ck_assert_int_eq(guarded_schema("CREATE VIEW shop_v0 AS SELECT id, name FROM shop_item"), DB_OK);
    enum db_result result = DB_OK;
    unsigned views = 0;
    while (result == DB_OK && views < 100) {
        views++;
        sqlite3_snprintf(sizeof sql, sql,
                         "CREATE VIEW shop_v%u AS SELECT DISTINCT id + (SELECT count(*) FROM shop_list) AS id,"
                         " name FROM shop_v%u WHERE id > (SELECT 0)", views, views - 1);
        result = on_a_small_stack(DB_GUARD_SCHEMA, sql);
    }
    ck_assert_uint_gt(views, 10);
    ck_assert_uint_lt(views, 30);
    sqlite3_snprintf(sizeof sql, sql, "SELECT count(*) FROM shop_v%u", views - 1);
    ck_assert_int_eq(on_a_small_stack(DB_GUARD_READ, sql), DB_OK);
    for (unsigned i = 0; i < 40; i++) {
        sqlite3_snprintf(sizeof sql, sql,
                         "CREATE TABLE shop_t%u (a); CREATE TRIGGER shop_g%u AFTER INSERT ON shop_t%u BEGIN"
                         " INSERT INTO shop_t%u SELECT new.a + 1 WHERE new.a < 1000; END", i, i, i, i + 1);
        ck_assert_msg(guarded_schema(sql) == DB_OK, "%s", guarded_error.text);
    }
    ck_assert_int_eq(guarded_schema("CREATE TABLE shop_t40 (a)"), DB_OK);
    ck_assert_int_eq(on_a_small_stack(DB_GUARD_WRITE, "INSERT INTO shop_t0 VALUES (1)"), DB_INVALID);
    ck_assert_str_eq(guarded_error.text, "too many levels of trigger recursion");
    ck_assert_int_eq(on_a_small_stack(DB_GUARD_WRITE, "INSERT INTO shop_t25 VALUES (1)"), DB_OK);
}
END_TEST

static const struct {
    const char *open, *close;
} deep[] = {{"1+(", ")"}, {"abs(", ")"}, {"CASE WHEN 1 THEN ", " END"}, {"NOT ", ""}, {"- ", ""}, {"", "+1"},
            {"1 IN (1, ", ")"}};

static void deep_view(sqlite3_str *out, unsigned form, unsigned depth, unsigned views)
{
    sqlite3_str_appendf(out, "CREATE VIEW shop_v%u AS SELECT ", views + 1);
    for (unsigned i = 0; i < depth; i++)
        sqlite3_str_appendall(out, deep[form].open);
    sqlite3_str_appendf(out, "(SELECT id FROM shop_v%u ORDER BY 1 LIMIT 1)", views);
    for (unsigned i = 0; i < depth; i++)
        sqlite3_str_appendall(out, deep[form].close);
    sqlite3_str_appendall(out, " AS id");
}

/* Makes a view on the last one, as deep as can be used. */
static bool add_deep_view(int form, unsigned views)
{
    char name[40];
    for (unsigned depth = 96; depth > 1; depth -= depth > 20 ? 5 : 2) {
        sqlite3_str *out = sqlite3_str_new(NULL);
        deep_view(out, (unsigned)form, depth, views);
        char *sql = sqlite3_str_finish(out);
        enum db_result result = guarded_schema(sql);
        sqlite3_free(sql);
        sqlite3_snprintf(sizeof name, name, "SELECT id FROM shop_v%u", views + 1);
        if (result == DB_OK && on_a_small_stack(DB_GUARD_READ, name) == DB_OK)
            return true;
        sqlite3_snprintf(sizeof name, name, "DROP VIEW shop_v%u", views + 1);
        if (result == DB_OK)
            ck_assert_int_eq(guarded_schema(name), DB_OK);
    }
    return false;
}

/* Views in views, each as deep in an expression as may be. */
START_TEST(deep_expressions_in_deep_views_fit)
{
    unsigned views = 0;
    ck_assert_int_eq(guarded_schema("CREATE VIEW shop_v0 AS SELECT id FROM shop_item"), DB_OK);
    while (views < 40 && add_deep_view(_i, views))
        views++;
    ck_assert_uint_gt(views, 0);
    ck_assert_uint_lt(views, 30);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("guard_stack");
    TCase *t = run_case(s, "guard_stack");
    temp_use(t);
    tcase_add_checked_fixture(t, guarded_open, guarded_close);
    tcase_add_loop_test(t, nesting_fits, 0, COUNT(forms));
    tcase_add_test(t, chains_fit);
    tcase_add_loop_test(t, deep_expressions_in_deep_views_fit, 0, COUNT(deep));
    return s;
}

int main(void)
{
    return run_suite(suite());
}
