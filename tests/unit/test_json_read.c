/* handlers/json_read: slices of JSON, and what strings say. */
#include "handlers/json_read.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

static struct str text(const char *s)
{
    return (struct str){s, strlen(s)};
}

#define IS(slice, expected) \
    ck_assert_msg(str_eq(slice, text(expected)), "%.*s, not %s", (int)(slice).n, (slice).p, expected)

START_TEST(values_without_the_space_around_them)
{
    static const char *const values[] = {"1",    "-1.5e+7", "\"a b\"", "\"\\\"}\"", "{\"a\":[1,{}]}", "[ ]",
                                         "true", "false",   "null"};
    for (size_t i = 0; i < COUNT(values); i++) {
        char padded[100];
        snprintf(padded, sizeof padded, " \n\t%s \r", values[i]);
        IS(json_value(text(padded)), values[i]);
        IS(json_value(text(values[i])), values[i]);
    }
}
END_TEST

START_TEST(kinds)
{
    ck_assert_int_eq(json_kind(text("{}")), JSON_OBJECT);
    ck_assert_int_eq(json_kind(text("[]")), JSON_ARRAY);
    ck_assert_int_eq(json_kind(text("\"\"")), JSON_STRING);
    ck_assert_int_eq(json_kind(text("-1")), JSON_NUMBER);
    ck_assert_int_eq(json_kind(text("0")), JSON_NUMBER);
    ck_assert_int_eq(json_kind(text("true")), JSON_TRUE);
    ck_assert_int_eq(json_kind(text("false")), JSON_FALSE);
    ck_assert_int_eq(json_kind(text("null")), JSON_NULL);
}
END_TEST

START_TEST(items_in_order)
{
    struct json_walk w = json_enter(text("[ 1 ,\"a,]\",[2,[3]] , {\"x\":[]},12345678901234567890123,1.50, null ]"));
    static const char *const expected[] = {"1", "\"a,]\"", "[2,[3]]", "{\"x\":[]}", "12345678901234567890123", "1.50", "null"};
    struct str item;
    for (size_t i = 0; i < COUNT(expected); i++) {
        ck_assert(json_item(&w, &item));
        IS(item, expected[i]);
    }
    ck_assert(!json_item(&w, &item));
    ck_assert(!json_item(&w, &item));
}
END_TEST

START_TEST(members_in_order)
{
    struct json_walk w = json_enter(text("{ \"a\" : 1 ,\"a\":{\"b\":\"}\"},\"\\u0062\":\"\\u0000\" }"));
    static const char *const expected[][2] = {{"\"a\"", "1"}, {"\"a\"", "{\"b\":\"}\"}"}, {"\"\\u0062\"", "\"\\u0000\""}};
    struct str name, value;
    for (size_t i = 0; i < COUNT(expected); i++) {
        ck_assert(json_member(&w, &name, &value));
        IS(name, expected[i][0]);
        IS(value, expected[i][1]);
    }
    ck_assert(!json_member(&w, &name, &value));
}
END_TEST

START_TEST(nothing_inside)
{
    struct str name, value;
    static const char *const empty[] = {"[]", "[ ]", "{}", "{ \n}"};
    for (size_t i = 0; i < COUNT(empty); i++) {
        struct json_walk w = json_enter(text(empty[i]));
        ck_assert(!json_item(&w, &value));
        ck_assert(!json_member(&w, &name, &value));
    }
}
END_TEST

static const struct {
    const char *json;
    struct str says;
} strings[] = {
    {"\"\"", STR_LIT("")},
    {"\"plain\"", STR_LIT("plain")},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", STR_LIT("\"\\/\b\f\n\r\t")},
    {"\"a\\u0041b\"", STR_LIT("aAb")},
    {"\"\\u0000\"", STR_LIT("\0")},
    {"\"\\u007f\\u0080\\u07ff\\u0800\\uffff\"", STR_LIT("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf")},
    {"\"\\uabCD\"", STR_LIT("\xea\xaf\x8d")},
    {"\"\\ud83d\\ude00\"", STR_LIT("\xf0\x9f\x98\x80")},
    {"\"\\uD800\\uDC00\\uDBFF\\uDFFF\"", STR_LIT("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")},
    {"\"\xc3\xa9\"", STR_LIT("\xc3\xa9")},
    {"\"\\\\u0041\"", STR_LIT("\\u0041")},
};

START_TEST(what_a_string_says)
{
    struct buf out = {0};
    struct str says = strings[_i].says;
    ck_assert_int_eq(json_text(text(strings[_i].json), &out, 100), JSON_TEXT_OK);
    ck_assert_uint_eq(out.len, says.n);
    if (says.n > 0)
        ck_assert_mem_eq(out.data, says.p, says.n);
    if (says.n == 0 || memchr(says.p, 0, says.n) == NULL)
        ck_assert(json_says(text(strings[_i].json), says.p));
    ck_assert(!json_says(text(strings[_i].json), "another"));
    buf_free(&out);
}
END_TEST

START_TEST(half_a_pair_is_no_text)
{
    static const char *const halves[] = {"\"\\ud800\"", "\"\\udc00\"", "\"\\ud800x\"", "\"\\ud800\\n\"", "\"\\ud800\\ud800\"",
                                         "\"\\ud800\\u0041\"", "\"\\udc00\\ud800\"", "\"x\\udfff\""};
    for (size_t i = 0; i < COUNT(halves); i++) {
        struct buf out = {0};
        ck_assert_msg(json_text(text(halves[i]), &out, 100) == JSON_TEXT_HALF, "%s", halves[i]);
        ck_assert(!json_says(text(halves[i]), ""));
        ck_assert(!json_says(text(halves[i]), "x"));
        buf_free(&out);
    }
}
END_TEST

START_TEST(texts_have_a_bound)
{
    struct buf out = {0};
    ck_assert_int_eq(json_text(text("\"12345\""), &out, 5), JSON_TEXT_OK);
    out.len = 0;
    ck_assert_int_eq(json_text(text("\"123456\""), &out, 5), JSON_TEXT_LONG);
    out.len = 0;
    ck_assert_int_eq(json_text(text("\"1234\\u00e9\""), &out, 5), JSON_TEXT_LONG);
    buf_free(&out);
}
END_TEST

START_TEST(a_name_is_compared_whole)
{
    ck_assert(json_says(text("\"key\""), "key"));
    ck_assert(json_says(text("\"k\\u0065y\""), "key"));
    ck_assert(!json_says(text("\"ke\""), "key"));
    ck_assert(!json_says(text("\"keys\""), "key"));
    ck_assert(!json_says(text("\"Key\""), "key"));
    ck_assert(!json_says(text("\"key\\u0000\""), "key"));
    ck_assert(!json_says(text("\"\""), "key"));
    ck_assert(json_says(text("\"\""), ""));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("json_read");
    TCase *t = run_case(s, "json_read");
    tcase_add_test(t, values_without_the_space_around_them);
    tcase_add_test(t, kinds);
    tcase_add_test(t, items_in_order);
    tcase_add_test(t, members_in_order);
    tcase_add_test(t, nothing_inside);
    tcase_add_loop_test(t, what_a_string_says, 0, COUNT(strings));
    tcase_add_test(t, half_a_pair_is_no_text);
    tcase_add_test(t, texts_have_a_bound);
    tcase_add_test(t, a_name_is_compared_whole);
    return run_suite(s);
}
