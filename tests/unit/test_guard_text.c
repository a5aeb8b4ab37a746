/* db/guard_text: like, glob, instr, replace and trim give what SQLite's own give, and no argument makes them slow. */
#include <stdint.h>
#include <string.h>

#include "db/burst.h"
#include "db/guard_internal.h"
#include "tests/unit/guarded.h"

static uint64_t state = 88172645463325252;

static unsigned roll(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % below;
}

/* Few different signs, so that they match; of some alphabets also what is no UTF-8. */
static const char *const alphabets[][12] = {
    {"a", "b", "A", "%", "_", "é", "a", "b"},
    {"a", "b", "*", "?", "[", "]", "^", "-", "c", "é", "a"},
    {"a", "b", "/", "€", "é", "€", "\xf0\x9f\x98\x80"},
    {"a", "\xc3", "\xa9", "%", "_", "é", "*", "?", "\x80", "[", "]"},
    {"a", " ", "b", "é", "è"},
};

static void text(sqlite3_stmt *s, int at, unsigned alphabet, unsigned most)
{
    char out[128];
    size_t n = 0;
    unsigned signs = 0, count = roll(most + 1);
    while (signs < 12 && alphabets[alphabet][signs] != NULL)
        signs++;
    for (unsigned i = 0; i < count; i++) {
        const char *sign = alphabets[alphabet][roll(signs)];
        memcpy(out + n, sign, strlen(sign));
        n += strlen(sign);
    }
    unsigned form = roll(20);
    if (form == 0)
        sqlite3_bind_null(s, at);
    else if (form == 1)
        sqlite3_bind_int(s, at, (int)roll(30));
    else if (form == 2)
        sqlite3_bind_blob(s, at, out, (int)n, SQLITE_TRANSIENT);
    else
        sqlite3_bind_text(s, at, out, (int)n, SQLITE_TRANSIENT);
}

/* Alphabets that go with them; of trim none where a sign is the end of another one: which SQLite takes first depends on
 * the order then. */
static const struct {
    const char *sql;
    int args;
    unsigned alphabets; /* bits */
} calls[] = {
    {"SELECT ?1 LIKE ?2", 2, 0x1f},
    {"SELECT ?1 LIKE ?2 ESCAPE 'a'", 2, 0x1f},
    {"SELECT ?1 LIKE ?2 ESCAPE '%'", 2, 0x1f},
    {"SELECT ?1 LIKE ?2 ESCAPE '_'", 2, 0x1f},
    {"SELECT ?1 LIKE ?2 ESCAPE 'é'", 2, 0x1f},
    {"SELECT ?1 LIKE ?2 ESCAPE ?3", 3, 0x1f},
    {"SELECT ?1 GLOB ?2", 2, 0x1f},
    {"SELECT instr(?1, ?2)", 2, 0x1f},
    {"SELECT replace(?1, ?2, ?3)", 3, 0x1f},
    {"SELECT trim(?1)", 1, 0x10},
    {"SELECT ltrim(?1)", 1, 0x10},
    {"SELECT rtrim(?1)", 1, 0x10},
    {"SELECT trim(?1, ?2)", 2, 0x17},
    {"SELECT ltrim(?1, ?2)", 2, 0x17},
    {"SELECT rtrim(?1, ?2)", 2, 0x17},
};

static bool same(sqlite3_stmt *a, sqlite3_stmt *b)
{
    int form = sqlite3_column_type(a, 0);
    if (form != sqlite3_column_type(b, 0))
        return false;
    const void *p = sqlite3_column_blob(a, 0), *q = sqlite3_column_blob(b, 0);
    int n = sqlite3_column_bytes(a, 0), m = sqlite3_column_bytes(b, 0);
    return n == m && (n == 0 || memcmp(p, q, (size_t)n) == 0);
}

START_TEST(results_are_those_of_sqlite)
{
    enum { TRIES = SANITIZED ? 5000 : 30000 };
    sqlite3_stmt *ours, *its;
    sqlite3 *plain;
    ck_assert_int_eq(guarded_run(DB_GUARD_READ, "SELECT 1"), DB_OK); /* installs them */
    ck_assert_int_eq(sqlite3_open(":memory:", &plain), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(guarded_reader.db, calls[_i].sql, -1, &ours, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(plain, calls[_i].sql, -1, &its, NULL), SQLITE_OK);
    for (unsigned i = 0, matched = 0; i < TRIES || matched == 0; i++) {
        unsigned alphabet = i % COUNT(alphabets);
        if (!(calls[_i].alphabets >> alphabet & 1))
            continue;
        for (int k = 1; k <= calls[_i].args; k++) {
            uint64_t before = state;
            text(ours, k, alphabet, k == 1 ? 20 : k == 3 ? 2 : 8);
            state = before;
            text(its, k, alphabet, k == 1 ? 20 : k == 3 ? 2 : 8);
        }
        int a = sqlite3_step(ours), b = sqlite3_step(its);
        bool ok = a == b && (a != SQLITE_ROW || same(ours, its));
        if (!ok)
            ck_abort_msg("%s gives %s and not %s", sqlite3_expanded_sql(its), (const char *)sqlite3_column_text(ours, 0),
                         (const char *)sqlite3_column_text(its, 0));
        matched += a == SQLITE_ROW && sqlite3_column_int(its, 0) > 0;
        matched += sqlite3_column_bytes(its, 0) > 1;
        sqlite3_reset(ours);
        sqlite3_reset(its);
    }
    sqlite3_finalize(ours);
    sqlite3_finalize(its);
    sqlite3_close(plain);
}
END_TEST

/* A format of parts that fit together, or do not. */
static void make_format(char *out)
{
    static const char *const parts[] = {"%",  "%",  "-", "+", " ", "#", "!", "0",  ",", "5", "12", ".3", ".0", "*", ".*",
                                        "l",  "ll", "d", "i", "u", "x", "X", "o",  "r", "p", "f",  "e",  "g",  "G", "E",
                                        "s",  "z",  "q", "Q", "w", "c", "%%", "n", "T", "S", "é",  " a ", "."};
    unsigned count = roll(8) + 1;
    *out = 0;
    for (unsigned i = 0; i < count; i++)
        strcat(strcat(out, roll(3) == 0 ? "%" : ""), parts[roll(COUNT(parts))]);
}

START_TEST(printf_is_that_of_sqlite)
{
    enum { TRIES = SANITIZED ? 10000 : 60000 };
    static const char sql[] = "SELECT printf(?1, ?2, ?3, ?4)";
    sqlite3_stmt *ours, *its;
    sqlite3 *plain;
    char format[100];
    unsigned printed = 0;
    ck_assert_int_eq(guarded_run(DB_GUARD_READ, "SELECT 1"), DB_OK);
    ck_assert_int_eq(sqlite3_open(":memory:", &plain), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(guarded_reader.db, sql, -1, &ours, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(plain, sql, -1, &its, NULL), SQLITE_OK);
    for (unsigned i = 0; i < TRIES; i++) {
        make_format(format);
        for (int k = 2; k <= 4; k++) {
            static const char *const values[] = {"-7", "42", "1.5", "1e300", "-0.1", "'it''s'", "éa", "", "9223372036854775807"};
            const char *value = values[roll(COUNT(values))];
            bool null = roll(9) == 0;
            for (int both = 0; both < 2; both++)
                if (null)
                    sqlite3_bind_null(both ? ours : its, k);
                else
                    sqlite3_bind_text(both ? ours : its, k, value, -1, SQLITE_STATIC);
        }
        sqlite3_bind_text(ours, 1, format, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(its, 1, format, -1, SQLITE_TRANSIENT);
        ck_assert_int_eq(sqlite3_step(its), SQLITE_ROW);
        ck_assert_int_eq(sqlite3_step(ours), SQLITE_ROW);
        if (!same(ours, its))
            ck_abort_msg("%s gives '%s' and not '%s'", sqlite3_expanded_sql(its),
                         (const char *)sqlite3_column_text(ours, 0), (const char *)sqlite3_column_text(its, 0));
        printed += sqlite3_column_bytes(its, 0) > 2;
        sqlite3_reset(ours);
        sqlite3_reset(its);
    }
    ck_assert_uint_gt(printed, TRIES / 4);
    sqlite3_finalize(ours);
    sqlite3_finalize(its);
    sqlite3_close(plain);
}
END_TEST

/* Texts end at a NUL for LIKE and GLOB, and do not for the others. */
static const struct {
    const char *sql, *first;
} nuls[] = {
    {"SELECT CAST(x'610062' AS TEXT) LIKE 'a'", "1"},
    {"SELECT CAST(x'610062' AS TEXT) GLOB '*b'", "0"},
    {"SELECT instr(CAST(x'610062' AS TEXT), 'b')", "3"},
    {"SELECT hex(replace(CAST(x'610062' AS TEXT), 'b', 'c'))", "610063"},
    {"SELECT hex(rtrim(CAST(x'610062' AS TEXT), 'b'))", "6100"},
    {"SELECT typeof(replace(x'6100', '', 'c'))", "text"},
    {"SELECT instr(x'0102', x'02')", "2"},
    {"SELECT instr('aé', 'é') || instr('éa', 'a')", "22"},
};

START_TEST(a_nul_is_what_it_is_to_sqlite)
{
    sqlite3 *plain;
    sqlite3_stmt *its;
    ck_assert_str_eq(guarded_ask(nuls[_i].sql), nuls[_i].first);
    ck_assert_int_eq(sqlite3_open(":memory:", &plain), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(plain, nuls[_i].sql, -1, &its, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(its), SQLITE_ROW);
    ck_assert_str_eq((const char *)sqlite3_column_text(its, 0), nuls[_i].first);
    sqlite3_finalize(its);
    sqlite3_close(plain);
}
END_TEST

/* 4 MB each: with SQLite's own functions they take from seconds to years. */
static const struct {
    const char *sql;
    enum db_result result;
} attacks[] = {
    {"SELECT instr(b.t, substr(b.t, 1, 2000000) || 'b') FROM b", DB_OK},
    {"SELECT length(replace(b.t, substr(b.t, 1, 200000) || 'b', 'c')) FROM b", DB_OK},
    {"SELECT length(replace(b.t, 'a', '')) FROM b", DB_OK},
    {"SELECT length(replace(b.t, 'a', 'xyz')) FROM b", DB_TOO_LARGE},
    {"SELECT length(trim(b.t, substr(b.t, 1, 2000000))) FROM b", DB_OK},
    {"SELECT length(trim(b.t, 'a' || replace(substr(b.t, 1, 1000000), 'a', 'é'))) FROM b", DB_OK},
    {"SELECT length(trim(replace(substr(b.t, 1, 1000000), 'a', 'è'), replace(substr(b.t, 1, 1000000), 'a', 'é') || 'è')) FROM b",
     DB_TIMEOUT},
    {"SELECT b.t LIKE replace(substr(b.t, 1, 20000), 'a', '%a') || 'b' FROM b", DB_OK},
    {"SELECT b.t LIKE '%' || replace(substr(b.t, 1, 20000), 'a', '_') || 'b' FROM b", DB_TIMEOUT},
    {"SELECT b.t LIKE '%' || substr(b.t, 1, 40000) || 'b%' FROM b", DB_TIMEOUT},
    {"SELECT b.t GLOB '*' || substr(b.t, 1, 40000) || 'b' FROM b", DB_TIMEOUT},
    {"SELECT b.t GLOB '*[^b]' || replace(substr(b.t, 1, 8000), 'a', '*[a-z]') || 'b' FROM b", DB_TIMEOUT},
    {"SELECT b.t LIKE substr(b.t, 1, 50001) FROM b", DB_INVALID}, /* too long a pattern */
};

START_TEST(no_argument_makes_them_slow)
{
    char sql[600];
    sqlite3_snprintf(sizeof sql, sql,
                     "WITH b(t) AS MATERIALIZED (SELECT replace(hex(zeroblob(2000000)), '0', 'a')) %s", attacks[_i].sql);
    uint64_t start = db_clock_us();
    enum db_result result = guarded_run_ms(DB_GUARD_READ, sql, attacks[_i].result == DB_TIMEOUT ? 20 : 20000);
    uint64_t took_ms = (db_clock_us() - start) / 1000;
    ck_assert_msg(result == attacks[_i].result, "%d: %s", result, guarded_error.text);
    if (result == DB_TIMEOUT)
        ck_assert_uint_lt(took_ms, SANITIZED ? 8000 : 2000);
}
END_TEST

/* The server's own statements on the same connection: nothing stops them. */
START_TEST(without_an_app_there_is_no_limit_of_time)
{
    ck_assert_int_eq(guarded_run_ms(DB_GUARD_READ, "SELECT 1", 1), DB_OK);
    guarded_reader.guard.deadline_us = 1;
    ck_assert_int_eq(tdb_ask(guarded_reader.db, "SELECT replace(hex(zeroblob(5000)), '0', 'a')"
                                                " LIKE '%' || replace(hex(zeroblob(500)), '0', 'a') || 'b'"), 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("guard_text");
    TCase *t = run_case(s, "guard_text");
    temp_use(t);
    tcase_add_checked_fixture(t, guarded_open, guarded_close);
    tcase_add_loop_test(t, results_are_those_of_sqlite, 0, COUNT(calls));
    tcase_add_test(t, printf_is_that_of_sqlite);
    tcase_add_loop_test(t, a_nul_is_what_it_is_to_sqlite, 0, COUNT(nuls));
    tcase_add_loop_test(t, no_argument_makes_them_slow, 0, COUNT(attacks));
    tcase_add_test(t, without_an_app_there_is_no_limit_of_time);
    return s;
}

int main(void)
{
    return run_suite(suite());
}
