/* handlers/json_check: what RFC 8259 says, in pieces of any size, and never more than SQLite reads. */
#include "handlers/json_check.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "fcgi/path.h"
#include "tests/unit/run.h"

static sqlite3 *db;
static sqlite3_stmt *valid;

static void open_sqlite(void)
{
    ck_assert_int_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT json_valid(?1)", -1, &valid, NULL), SQLITE_OK);
}

static void close_sqlite(void)
{
    sqlite3_finalize(valid);
    sqlite3_close(db);
}

/* SQLite's verdict; it stops at a NUL and does not look at the encoding. */
static bool sqlite_says(const char *p, size_t n)
{
    sqlite3_bind_text(valid, 1, p, (int)n, SQLITE_STATIC);
    ck_assert_int_eq(sqlite3_step(valid), SQLITE_ROW);
    bool yes = sqlite3_column_int(valid, 0) == 1;
    sqlite3_reset(valid);
    return yes && (n == 0 || memchr(p, 0, n) == NULL) && utf8_ok(p, n);
}

/* In two pieces, cut anywhere, and byte by byte: the same verdict. */
static bool check(const char *p, size_t n)
{
    struct json_check c;
    bool all = json_check_all(p, n, NULL);
    for (size_t cut = 0; cut <= n; cut++) {
        json_check_start(&c);
        bool ok = json_check_feed(&c, p, cut);
        ok = json_check_feed(&c, p + cut, n - cut) && ok;
        ck_assert_msg((ok && json_check_end(&c)) == all, "cut at %zu: %.*s", cut, (int)n, p);
    }
    json_check_start(&c);
    bool ok = true;
    for (size_t i = 0; i < n; i++)
        ok = json_check_feed(&c, p + i, 1) && ok;
    ck_assert((ok && json_check_end(&c)) == all);
    return all;
}

#define TEXT(s) {s, sizeof(s) - 1}

static const struct text {
    const char *p;
    size_t n;
} right[] = {
    TEXT("{}"), TEXT("[]"), TEXT("0"), TEXT("-0"), TEXT("7"), TEXT("10"), TEXT("-12"), TEXT("0.5"), TEXT("-0.0"),
    TEXT("1e5"), TEXT("1E5"), TEXT("1e+5"), TEXT("1e-5"), TEXT("0e0"), TEXT("1.5e10"), TEXT("1e999"),
    TEXT("12345678901234567890123"), TEXT("true"), TEXT("false"), TEXT("null"), TEXT("\"\""), TEXT("\"a\""),
    TEXT(" \t\r\n1 \t\r\n"), TEXT("[1]"), TEXT("[1,2]"), TEXT("[ 1 , 2 ]"), TEXT("[[],[[]],{}]"), TEXT("{\"a\":1}"),
    TEXT("{ \"a\" : 1 , \"b\" : [ ] }"), TEXT("{\"a\":1,\"a\":2}"), TEXT("{\"\":0}"),
    TEXT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), TEXT("\"\\u0000\\uD800\\udfff\\uABCD\""), TEXT("\"\x7f\""),
    TEXT("\"\xc2\x80\xdf\xbf\""), TEXT("\"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\""),
    TEXT("\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\""), TEXT("[true,false,null]"), TEXT("{\"a\":{\"b\":[{\"c\":null}]}}"),
    TEXT("[0,0.0,0e1]"), TEXT("[-1,-1.5]"), TEXT("[1 ]"), TEXT("[true ]"), TEXT("\"[{:,}]\""),
}, wrong[] = {
    TEXT(""), TEXT(" "), TEXT("{"), TEXT("["), TEXT("}"), TEXT("]"), TEXT("{]"), TEXT("[}"), TEXT("{}{}"),
    TEXT("[][]"), TEXT("1 2"), TEXT("1,"), TEXT(",1"), TEXT("[1,]"), TEXT("[,1]"), TEXT("[,]"), TEXT("[1 2]"),
    TEXT("[1,,2]"), TEXT("{,}"), TEXT("{\"a\"}"), TEXT("{\"a\":}"), TEXT("{\"a\":1,}"), TEXT("{\"a\" 1}"),
    TEXT("{\"a\":1 \"b\":2}"), TEXT("{a:1}"), TEXT("{'a':1}"), TEXT("{1:1}"), TEXT("{null:1}"), TEXT("{\"a\":1:2}"),
    TEXT("{\"a\",1}"), TEXT("[\"a\":1]"), TEXT(":"), TEXT("tru"), TEXT("truex"), TEXT("True"), TEXT("nul"),
    TEXT("nulll"), TEXT("fals"), TEXT("falsee"), TEXT("undefined"), TEXT("NaN"), TEXT("Infinity"), TEXT("-Infinity"),
    TEXT("nan"), TEXT("inf"), TEXT("01"), TEXT("-01"), TEXT("00"), TEXT("+1"), TEXT("-"), TEXT("--1"), TEXT("-a"),
    TEXT("1."), TEXT("1.e5"), TEXT(".5"), TEXT("-.5"), TEXT("1e"), TEXT("1e+"), TEXT("1e-"), TEXT("1e5.5"),
    TEXT("1e5e5"), TEXT("1.2.3"), TEXT("0x10"), TEXT("1_000"), TEXT("1a"), TEXT("[1a]"), TEXT("1-"), TEXT("\""),
    TEXT("\"a"), TEXT("a\""), TEXT("\"\\\""), TEXT("\"\\x41\""), TEXT("\"\\u\""), TEXT("\"\\u123\""),
    TEXT("\"\\u12g4\""), TEXT("\"\\'\""), TEXT("\"\\0\""), TEXT("\"\\U0041\""), TEXT("\"\n\""), TEXT("\"\t\""),
    TEXT("\"\x1f\""), TEXT("\"\0\""), TEXT("{}\0"), TEXT("\0{}"), TEXT("[1\0]"), TEXT("'a'"), TEXT("// c\n1"),
    TEXT("/**/1"), TEXT("1 // c"), TEXT("\xef\xbb\xbf{}"), TEXT("\xc2\xa0""1"), TEXT("\v1"), TEXT("\f1"),
    TEXT("\"\x80\""), TEXT("\"\xc0\x80\""), TEXT("\"\xc1\xbf\""), TEXT("\"\xc2\""), TEXT("\"\xc2\xc2\x80\""),
    TEXT("\"\xe0\x9f\xbf\""), TEXT("\"\xed\xa0\x80\""), TEXT("\"\xe2\x82\""), TEXT("\"\xe2\x82z\""),
    TEXT("\"\xf0\x8f\xbf\xbf\""), TEXT("\"\xf4\x90\x80\x80\""), TEXT("\"\xf5\x80\x80\x80\""), TEXT("\"\xff\""),
    TEXT("{\"\xff\":1}"), TEXT("\xff"), TEXT("<html>"), TEXT("{\"a\":\"\\u00\"}"),
};

START_TEST(what_is_json)
{
    ck_assert_msg(check(right[_i].p, right[_i].n), "%s", right[_i].p);
    ck_assert_msg(sqlite_says(right[_i].p, right[_i].n), "%s", right[_i].p);
}
END_TEST

START_TEST(what_is_not)
{
    ck_assert_msg(!check(wrong[_i].p, wrong[_i].n), "%s", wrong[_i].p);
}
END_TEST

START_TEST(every_value_in_every_place)
{
    char text[200];
    for (size_t i = 0; i < COUNT(right); i++) {
        ck_assert(check(text, (size_t)snprintf(text, sizeof text, "[%s,{\"n\":%s}]", right[i].p, right[i].p)));
        ck_assert(!check(text, (size_t)snprintf(text, sizeof text, "[%s", right[i].p)));
        ck_assert(!check(text, (size_t)snprintf(text, sizeof text, "%s]", right[i].p)));
        ck_assert(!check(text, (size_t)snprintf(text, sizeof text, "{%s}", right[i].p)) || strcmp(text, "{}") == 0);
    }
}
END_TEST

static size_t nested(char *text, size_t depth, const char *open, const char *close)
{
    text[0] = 0;
    char *p = text;
    for (size_t i = 0; i < depth; i++)
        p = stpcpy(p, open);
    p = stpcpy(p, "1");
    for (size_t i = 0; i < depth; i++)
        p = stpcpy(p, close);
    return (size_t)(p - text);
}

START_TEST(depth_has_a_bound)
{
    static char text[20000];
    static const char *const forms[][2] = {{"[", "]"}, {"{\"a\":", "}"}};
    for (size_t i = 0; i < 2; i++) {
        size_t n = nested(text, JSON_DEPTH_MAX, forms[i][0], forms[i][1]);
        ck_assert(json_check_all(text, n, NULL));
        ck_assert(sqlite_says(text, n));
        n = nested(text, JSON_DEPTH_MAX + 1, forms[i][0], forms[i][1]);
        ck_assert(!json_check_all(text, n, NULL));
    }
}
END_TEST

/* A level's kind is its own, however often the levels came and went. */
START_TEST(levels_are_told_apart)
{
    static const char good[] = "[[],{\"a\":[]},[{}],{\"b\":{}}]", bad[] = "[[],{\"a\":[]},[{}],{\"b\":{]]",
                      worse[] = "[[],{\"a\":[}},[{}],{\"b\":{}}]";
    ck_assert(check(good, sizeof good - 1));
    ck_assert(!check(bad, sizeof bad - 1));
    ck_assert(!check(worse, sizeof worse - 1));
}
END_TEST

START_TEST(the_place_of_the_fault)
{
    uint64_t at;
    ck_assert(!json_check_all("{\"a\":01}", 8, &at));
    ck_assert_uint_eq(at, 6);
    ck_assert(!json_check_all("[1,2", 4, &at));
    ck_assert_uint_eq(at, 4);
    ck_assert(!json_check_all("x", 1, &at));
    ck_assert_uint_eq(at, 0);
    ck_assert(json_check_all("[1,2]", 5, &at));
    ck_assert_uint_eq(at, 5);
    struct json_check c;
    json_check_start(&c);
    ck_assert(json_check_feed(&c, "[1,", 3));
    ck_assert(!json_check_feed(&c, "2,]", 3));
    ck_assert_uint_eq(c.at, 5);
    ck_assert(!json_check_feed(&c, "1]", 2));
    ck_assert(!json_check_end(&c));
    ck_assert_uint_eq(c.at, 5);
}
END_TEST

/* Right ones with a few bytes changed, cut or doubled: SQLite decides. */
START_TEST(sqlite_agrees)
{
    static const char bytes[] = "{}[]\",:\\ue0123456789.-+truefalsn \n\t\x01\x80\xc3\xa9\xed\xa0";
    uint32_t random = 12345;
    char text[256];
    unsigned both = 0;
    for (int i = 0; i < 200000; i++) {
        size_t n = 0;
        for (int pieces = 0; pieces < 3; pieces++) {
            random = random * 1664525 + 1013904223;
            const struct text *t = &right[(random >> 8) % COUNT(right)];
            if (t->n < 60) {
                memcpy(text + n, t->p, t->n);
                n += t->n;
            }
            if ((random >> 20) % 2)
                break;
        }
        for (int changes = (int)(random >> 28) % 3; changes > 0 && n > 0; changes--) {
            random = random * 1664525 + 1013904223;
            text[(random >> 8) % n] = bytes[(random >> 18) % (sizeof bytes - 1)];
        }
        bool ours = json_check_all(text, n, NULL);
        ck_assert_msg(ours == sqlite_says(text, n), "%d: %.*s", ours, (int)n, text);
        both += ours;
    }
    ck_assert_uint_gt(both, 10000);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("json_check");
    TCase *t = run_case(s, "json_check");
    tcase_add_checked_fixture(t, open_sqlite, close_sqlite);
    tcase_add_loop_test(t, what_is_json, 0, COUNT(right));
    tcase_add_loop_test(t, what_is_not, 0, COUNT(wrong));
    tcase_add_test(t, every_value_in_every_place);
    tcase_add_test(t, depth_has_a_bound);
    tcase_add_test(t, levels_are_told_apart);
    tcase_add_test(t, the_place_of_the_fault);
    tcase_add_test(t, sqlite_agrees);
    return run_suite(s);
}
