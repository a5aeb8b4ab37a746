/* handlers/app_out: numbers and texts as they are written. Rows of statements: tests/e2e/test_apps_formats.py. */
#include "handlers/app_out.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

static const struct {
    double real;
    const char *text;
} reals[] = {
    {0, "0.0"},       {-0.0, "-0.0"},       {1, "1.0"},           {-1, "-1.0"},           {0.5, "0.5"},
    {0.05, "0.05"},   {-12.75, "-12.75"},   {0.1, "0.1"},         {1e-6, "0.000001"},     {1e-7, "1e-07"},
    {4.35, "4.35"},   {1e15, "1e+15"},      {999999999, "999999999.0"}, {1e9, "1000000000.0"}, {123456.789, "123456.789"},
    {1e300, "1e+300"}, {5e-324, "5e-324"},  {0.1 + 0.2, "0.30000000000000004"}, {1.0 / 3, "0.3333333333333333"},
    {9007199254740993.0, "9007199254740992.0"}, {1.7976931348623157e308, "1.7976931348623157e+308"},
};

START_TEST(known_reals)
{
    char text[APP_REAL_MAX + 1];
    text[app_out_real(text, reals[_i].real)] = 0;
    ck_assert_str_eq(text, reals[_i].text);
}
END_TEST

static uint64_t next_random(void)
{
    static uint64_t x = 88172645463325252u;
    x ^= x << 13;
    x ^= x >> 7;
    return x ^= x << 17;
}

static void back(double r)
{
    char text[APP_REAL_MAX + 1];
    size_t n = app_out_real(text, r);
    ck_assert_uint_lt(n, APP_REAL_MAX);
    text[n] = 0;
    double got = strtod(text, NULL);
    ck_assert_msg(memcmp(&got, &r, sizeof r) == 0, "%.17g became %s", r, text);
    ck_assert_ptr_nonnull(strpbrk(text, ".e"));
}

START_TEST(any_real_is_read_back)
{
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = next_random();
        double r;
        memcpy(&r, &bits, sizeof r);
        if (isfinite(r))
            back(r);
    }
}
END_TEST

START_TEST(reals_of_few_places_are_read_back)
{
    for (int i = 0; i < 300000; i++) {
        double whole = (double)(int64_t)(next_random() % 2000000000000000u) - 1e15;
        back(whole / pow(10, (double)(next_random() % 8)));
    }
}
END_TEST

static const struct {
    const char *text;
    size_t n;
    const char *json;
} strings[] = {
    {"", 0, "\"\""},
    {"plain", 5, "\"plain\""},
    {"a\"b\\c", 5, "\"a\\\"b\\\\c\""},
    {"\0\x01\n\r\t\b\f\x1f\x7f", 9, "\"\\u0000\\u0001\\n\\r\\t\\b\\f\\u001f\x7f\""},
    {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""},
    {"a\xff" "b", 3, "\"a\xef\xbf\xbd" "b\""},
    {"\xc3", 1, "\"\xef\xbf\xbd\""},
    {"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {"\xf0\x9f\x98", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {"plain for more than eight bytes, then \"", 39, "\"plain for more than eight bytes, then \\\"\""},
};

START_TEST(known_strings)
{
    struct buf text = {0};
    struct app_out o = {.text = &text, .max_bytes = 1000};
    app_out_string(&o, strings[_i].text, strings[_i].n);
    ck_assert(!o.failed);
    ck_assert_uint_eq(text.len, strlen(strings[_i].json));
    ck_assert_mem_eq(text.data, strings[_i].json, text.len);
    buf_free(&text);
}
END_TEST

START_TEST(no_more_than_max_bytes)
{
    for (size_t max = 0; max < 40; max++) {
        struct buf text = {0};
        struct app_out o = {.text = &text, .max_bytes = max};
        app_out_string(&o, "some \"text\" \xff and more", 22);
        ck_assert_uint_le(text.len, max);
        ck_assert(o.failed == (max < 28) && o.too_large == o.failed);
        buf_free(&text);
    }
}
END_TEST

static const struct {
    struct db_cell cell;
    const char *text;
} cells[] = {
    {{.type = DB_CELL_NULL}, ""},
    {{.type = DB_CELL_INT, .i = INT64_MIN}, "-9223372036854775808"},
    {{.type = DB_CELL_INT, .i = INT64_MAX}, "9223372036854775807"},
    {{.type = DB_CELL_INT, .i = 0}, "0"},
    {{.type = DB_CELL_REAL, .r = 2.5}, "2.5"},
    {{.type = DB_CELL_REAL, .r = INFINITY}, ""},
    {{.type = DB_CELL_TEXT, .p = "<x>", .n = 3}, "<x>"},
    {{.type = DB_CELL_BLOB, .p = "\0\xff", .n = 2}, "AP8="},
    {{.type = DB_CELL_BLOB, .p = NULL, .n = 0}, ""},
};

START_TEST(cells_as_text)
{
    struct buf memory = {0};
    struct str text;
    ck_assert(app_out_text(&cells[_i].cell, &memory, &text));
    ck_assert_uint_eq(text.n, strlen(cells[_i].text));
    if (text.n > 0)
        ck_assert_mem_eq(text.p, cells[_i].text, text.n);
    buf_free(&memory);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("app_out");
    TCase *t = run_case(s, "app_out");
    tcase_add_loop_test(t, known_reals, 0, COUNT(reals));
    tcase_add_test(t, any_real_is_read_back);
    tcase_add_test(t, reals_of_few_places_are_read_back);
    tcase_add_loop_test(t, known_strings, 0, COUNT(strings));
    tcase_add_test(t, no_more_than_max_bytes);
    tcase_add_loop_test(t, cells_as_text, 0, COUNT(cells));
    return run_suite(s);
}
