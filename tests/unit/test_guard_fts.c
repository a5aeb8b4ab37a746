/* db/guard_fts: highlight gives what FTS5's own gives, snippet a part of that; neither is slow. */
#include <string.h>

#include "db/burst.h"
#include "tests/unit/guarded.h"

static uint64_t state = 88172645463325252;

static unsigned roll(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % below;
}

/* Up to so many words of few. */
static void words(char *out, unsigned most, const char *const *of, unsigned count)
{
    unsigned n = roll(most) + 1;
    *out = 0;
    for (unsigned i = 0; i < n; i++)
        strcat(strcat(out, of[roll(count)]), " ");
}

static const char *const texts[] = {"tea", "Tea!", "rice", "é", "(x)", "--", "ink", "tea,rice"};
static const char *const queries[] = {"tea", "rice", "tea OR rice", "\"tea rice\"", "\"tea tea\"", "te*", "é",
                                      "\"rice tea\" OR tea", "NEAR(tea rice, 2)", "tea AND NOT", "b : tea",
                                      "\"tea tea tea\" OR \"tea rice\""};

/* What the query gives on a connection; "wrong" when it fails. */
static const char *ask(sqlite3 *db, const char *sql, const char *query)
{
    static char out[2][4096];
    static unsigned turn;
    char *to = out[turn++ % 2];
    sqlite3_stmt *s;
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    sqlite3_bind_text(s, 1, query, -1, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    sqlite3_snprintf(sizeof out[0], to, "%s", rc == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0)
                                               : rc == SQLITE_DONE ? "none" : "wrong");
    sqlite3_finalize(s);
    return to;
}

static void fill(sqlite3 *db, const char *a, const char *b)
{
    sqlite3_stmt *s;
    tdb_sql(db, "DELETE FROM shop_f");
    ck_assert_int_eq(sqlite3_prepare_v2(db, "INSERT INTO shop_f VALUES (?1, ?2)", -1, &s, NULL), SQLITE_OK);
    sqlite3_bind_text(s, 1, a, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, b, -1, SQLITE_STATIC);
    ck_assert_int_eq(sqlite3_step(s), SQLITE_DONE);
    sqlite3_finalize(s);
}

START_TEST(highlight_is_that_of_fts5)
{
    static const char *const sql[] = {
        "SELECT highlight(shop_f, 0, '<', '>') FROM shop_f(?1)",
        "SELECT highlight(shop_f, 1, '<b>', '') FROM shop_f(?1)",
        "SELECT highlight(shop_f, 2, '<', '>') FROM shop_f(?1)",
        "SELECT highlight(shop_f, 0, NULL, '>') FROM shop_f(?1)",
        "SELECT snippet(shop_f, 0, '<', '>', '...', 64) FROM shop_f(?1)", /* all of the text */
    };
    enum { TRIES = SANITIZED ? 300 : 1500 };
    sqlite3 *plain;
    char a[400], b[400];
    unsigned marked = 0;
    ck_assert_int_eq(sqlite3_open(":memory:", &plain), SQLITE_OK);
    tdb_sql(plain, "CREATE VIRTUAL TABLE shop_f USING fts5 (a, b)");
    tdb_sql(guarded_conn.db, "CREATE VIRTUAL TABLE shop_f USING fts5 (a, b); BEGIN");
    for (unsigned i = 0; i < TRIES; i++) {
        words(a, 12, texts, COUNT(texts));
        words(b, 5, texts, COUNT(texts));
        fill(plain, a, b);
        fill(guarded_conn.db, a, b);
        const char *query = queries[roll(COUNT(queries))];
        for (size_t k = 0; k < COUNT(sql); k++) {
            const char *its = ask(plain, sql[k], query), *ours = ask(guarded_conn.db, sql[k], query);
            marked += strchr(its, '<') != NULL;
            ck_assert_msg(strcmp(its, ours) == 0, "%s of %s in %s: %s and not %s", sql[k], query, a, ours, its);
        }
    }
    ck_assert_uint_gt(marked, TRIES / 2);
    tdb_sql(guarded_conn.db, "ROLLBACK");
    sqlite3_close(plain);
}
END_TEST

static const struct {
    const char *sql, *first;
} snippets[] = {
    {"SELECT snippet(shop_f, 0, '<', '>', '…', 5) FROM shop_f('seven')", "…e f <seven> eight i…"},
    {"SELECT snippet(shop_f, 0, '<', '>', '…', 3) FROM shop_f('a')", "<a> b c…"},
    {"SELECT snippet(shop_f, -1, '<', '>', '…', 3) FROM shop_f('l')", "…j k <l>."},
    {"SELECT snippet(shop_f, 0, '<', '>', '…', 1) FROM shop_f('eight')", "…<eight>…"},
    {"SELECT snippet(shop_f, 0, '<', '>', '…', 0) FROM shop_f('eight')", "…<eight>…"},
    {"SELECT snippet(shop_f, 0, '<', '>', '…', 100) FROM shop_f('eight')", "a b c d e f seven <eight> i j k l."},
    {"SELECT snippet(shop_f, -1, '<', '>', '…', 4) FROM shop_f('other')", "the <other> one"},
    {"SELECT snippet(shop_f, 0, '<', '>', '…', 3) FROM shop_f('other')", "a b c…"},
    {"SELECT snippet(shop_f, 0, '<', '>', '…', 2) FROM shop_f('\"seven eight i\"')", "…<seven eight>…"},
    {"SELECT snippet(shop_f, 9, '<', '>', '…', 2) FROM shop_f('a')", ""},
    {"SELECT snippet(shop_f, 0, '<', '>', '…', 4) FROM shop_f('a k l')", "…i j <k> <l>."},
};

START_TEST(a_snippet_is_where_the_hits_are)
{
    ck_assert_int_eq(guarded_schema("CREATE VIRTUAL TABLE shop_f USING fts5 (a, b);"
                                    "INSERT INTO shop_f VALUES ('a b c d e f seven eight i j k l.', 'the other one')"), DB_OK);
    ck_assert_str_eq(guarded_ask(snippets[_i].sql), snippets[_i].first);
}
END_TEST

START_TEST(wrong_uses_are_told)
{
    static const char *const sql[] = {"SELECT highlight(shop_note, 0, '<') FROM shop_note('tea')",
                                      "SELECT snippet(shop_note, 0, '<', '>', '') FROM shop_note('tea')"};
    for (size_t i = 0; i < COUNT(sql); i++) {
        ck_assert_int_eq(guarded_run(DB_GUARD_READ, sql[i]), DB_INVALID);
        ck_assert_ptr_nonnull(strstr(guarded_error.text, "wrong number of arguments"));
    }
}
END_TEST

/* FTS5's own take from ten seconds to minutes. */
START_TEST(many_hits_are_not_slow)
{
    static const char *const sql[] = {
        "SELECT length(highlight(shop_note, 0, '<', '>')) FROM shop_note('a')",
        "SELECT length(highlight(shop_note, 0, '<', '>')) FROM shop_note('a OR \"a a\" OR \"a a a\"')",
        "SELECT length(snippet(shop_note, 0, '<', '>', '', 64)) FROM shop_note('a')",
        "SELECT length(snippet(shop_note, -1, '<', '>', '', 64)) FROM shop_note('a OR \"a a\" OR \"a a a\"')",
    };
    enum { PAIRS = SANITIZED ? 30000 : 200000 };
    char insert[200];
    sqlite3_snprintf(sizeof insert, insert, "INSERT INTO shop_note VALUES (replace(hex(zeroblob(%d)), '0', 'a '))", PAIRS);
    ck_assert_int_eq(guarded_run(DB_GUARD_WRITE, insert), DB_OK);
    for (size_t i = 0; i < COUNT(sql); i++) {
        uint64_t start = db_clock_us();
        guarded_ask(sql[i]);
        ck_assert_uint_lt((db_clock_us() - start) / 1000, SANITIZED ? 10000 : 2500);
    }
}
END_TEST

START_TEST(growth_is_bounded)
{
    static const char insert[] = "INSERT INTO shop_note VALUES (replace(hex(zeroblob(5000)), '0', 'a '))";
    static const char mark[] = "SELECT highlight(shop_note, 0, hex(zeroblob(1000)), '') FROM shop_note('a')";
    ck_assert_int_eq(guarded_run(DB_GUARD_WRITE, insert), DB_OK);
    ck_assert_int_eq(guarded_run(DB_GUARD_READ, mark), DB_TOO_LARGE);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("guard_fts");
    TCase *t = run_case(s, "guard_fts");
    temp_use(t);
    tcase_add_checked_fixture(t, guarded_open, guarded_close);
    tcase_add_test(t, highlight_is_that_of_fts5);
    tcase_add_loop_test(t, a_snippet_is_where_the_hits_are, 0, COUNT(snippets));
    tcase_add_test(t, wrong_uses_are_told);
    tcase_add_test(t, many_hits_are_not_slow);
    tcase_add_test(t, growth_is_bounded);
    return s;
}

int main(void)
{
    return run_suite(suite());
}
