/* handlers/app_fields: names and values out of forms, multipart and JSON. */
#include "handlers/app_fields.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

/* What was told, as text: "name=value;", with a letter for the kind where it is not text. */
static char told[4096];
static unsigned stop_after;

static bool each(void *arg, const struct app_field *f)
{
    (void)arg;
    char *to = told + strlen(told);
    size_t room = sizeof told - strlen(told);
    switch ((enum app_field_kind)f->kind) {
    case APP_FIELD_TEXT:
        snprintf(to, room, "%.*s=%.*s;", (int)f->name.n, f->name.p, (int)f->value.n, f->value.p);
        break;
    case APP_FIELD_NULL:
        snprintf(to, room, "%.*s N;", (int)f->name.n, f->name.p);
        break;
    case APP_FIELD_INT:
        snprintf(to, room, "%.*s I%lld;", (int)f->name.n, f->name.p, (long long)f->i);
        break;
    case APP_FIELD_REAL:
        snprintf(to, room, "%.*s R%.17g;", (int)f->name.n, f->name.p, f->r);
        break;
    case APP_FIELD_FILE:
        snprintf(to, room, "%.*s F%zu,%.*s,%.*s;", (int)f->name.n, f->name.p, f->value.n, (int)f->type.n, f->type.p,
                 (int)f->file_name.n, f->file_name.p);
        break;
    }
    return stop_after == 0 || --stop_after > 0;
}

static struct app_fields_sink sink = {each, NULL, NULL};

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000000000"

static enum app_fields_result form(const char *text, size_t n)
{
    char to[4096];
    told[0] = 0;
    return app_fields_form((struct str){text, n}, to, &sink);
}

static enum app_fields_result json(const char *text)
{
    struct buf out = {0};
    size_t n = strlen(text);
    char *body = malloc(n + (n == 0)); /* no NUL is behind it, as behind what was received */
    ck_assert_ptr_nonnull(body);
    memcpy(body, text, n);
    told[0] = 0;
    ck_assert(buf_reserve(&out, n + 1, 1 << 20));
    enum app_fields_result result = app_fields_json((struct str){body, n}, &out, &sink);
    buf_free(&out);
    free(body);
    return result;
}

static enum app_fields_result multipart(const char *head, const char *body)
{
    char all[4096];
    int n = snprintf(all, sizeof all, "--B\r\nContent-Disposition: form-data; %s\r\n\r\n%s\r\n--B--", head, body);
    told[0] = 0;
    return app_fields_multipart(all, (size_t)n, STR_LIT("multipart/form-data; boundary=B"), &sink);
}

static const struct {
    const char *text, *told;
} forms[] = {
    {"", ""},
    {"a=1", "a=1;"},
    {"a=1&b=2&a=3", "a=1;b=2;a=3;"},
    {"a", "a=;"},
    {"a=", "a=;"},
    {"=1", ""},
    {"&&a=1&", "a=1;"},
    {"a=b=c", "a=b=c;"},
    {"a+b=c+d", "a b=c d;"},
    {"%61=%C3%A4%2B%26", "a=\xc3\xa4+&;"},
    {"a=%c3%A4", "a=\xc3\xa4;"},
    {"a[]=1&a[]=2", "a[]=1;a[]=2;"},
};

START_TEST(forms_are_decoded)
{
    ck_assert_int_eq(form(forms[_i].text, strlen(forms[_i].text)), APP_FIELDS_OK);
    ck_assert_str_eq(told, forms[_i].told);
}
END_TEST

static const char *const wrong_forms[] = {"a=%", "a=%4", "a=%4g", "a=%g4", "%=1", "a=%ff", "a=%C3", "a=\xff", "\xc3=1",
                                          "a=1&b=%ED%A0%80", "a=1&b=%C0%80"};

START_TEST(broken_forms_are_refused)
{
    ck_assert_int_eq(form(wrong_forms[_i], strlen(wrong_forms[_i])), APP_FIELDS_BAD);
}
END_TEST

START_TEST(a_nul_is_text)
{
    char to[16];
    size_t n;
    ck_assert(app_fields_unescape(STR_LIT("a%00b"), to, &n));
    ck_assert_uint_eq(n, 3);
    ck_assert_mem_eq(to, "a\0b", 3);
}
END_TEST

START_TEST(a_form_is_decoded_where_it_stands)
{
    char text[] = "a=%41%42&b=%43&c+=d";
    told[0] = 0;
    ck_assert_int_eq(app_fields_form((struct str){text, strlen(text)}, text, &sink), APP_FIELDS_OK);
    ck_assert_str_eq(told, "a=AB;b=C;c =d;");
}
END_TEST

START_TEST(too_many_fields)
{
    static char text[2 * (APP_FIELDS_MAX + 1)];
    for (size_t i = 0; i < sizeof text; i += 2)
        memcpy(text + i, "a&", 2);
    ck_assert_int_eq(form(text, 2 * APP_FIELDS_MAX), APP_FIELDS_OK);
    ck_assert_int_eq(form(text, sizeof text), APP_FIELDS_BAD);
}
END_TEST

START_TEST(long_names_are_nobodys)
{
    char text[APP_FIELD_NAME_MAX + 10];
    memset(text, 'a', sizeof text);
    text[APP_FIELD_NAME_MAX + 1] = '=';
    ck_assert_int_eq(form(text, sizeof text), APP_FIELDS_OK);
    ck_assert_str_eq(told, "");
}
END_TEST

START_TEST(whoever_is_told_may_stop)
{
    stop_after = 2;
    ck_assert_int_eq(form("a=1&b=2&c=3", 11), APP_FIELDS_STOPPED);
    ck_assert_str_eq(told, "a=1;b=2;");
    stop_after = 0;
}
END_TEST

static const struct {
    const char *text, *told;
} objects[] = {
    {"{}", ""},
    {" {\"a\" : \"x\"} ", "a=x;"},
    {"{\"a\":\"\",\"b\":null}", "a=;b N;"},
    {"{\"a\":true,\"b\":false}", "a I1;b I0;"},
    {"{\"a\":1,\"b\":-7,\"c\":0,\"d\":-0}", "a I1;b I-7;c I0;d I0;"},
    {"{\"a\":9223372036854775807,\"b\":-9223372036854775808}", "a I9223372036854775807;b I-9223372036854775808;"},
    {"{\"a\":9223372036854775808}", "a R9.2233720368547758e+18;"},
    {"{\"a\":9223372036854775809}", "a=9223372036854775809;"},
    {"{\"a\":1.5,\"b\":1e3,\"c\":1.0}", "a R1.5;b R1000;c R1;"},
    {"{\"a\":1e999}", "a=1e999;"},
    {"{\"a\":0.5" ZEROS "}", "a R0.5;"},
    {"{\"a\":1" ZEROS "}", "a=1" ZEROS ";"},
    {"{\"a\":0.1}", "a R0.10000000000000001;"},
    {"{\"a\":[1, 2],\"b\":{\"c\":\"\\u0041\"}}", "a=[1, 2];b={\"c\":\"\\u0041\"};"},
    {"{\"\\u0061\":\"\\u00e4\\n\\ud83d\\ude00\"}", "a=\xc3\xa4\n\xf0\x9f\x98\x80;"},
    {"{\"a\":1,\"a\":2}", "a I1;a I2;"},
    {"{\"\":1}", ""},
};

START_TEST(objects_are_decoded)
{
    ck_assert_int_eq(json(objects[_i].text), APP_FIELDS_OK);
    ck_assert_str_eq(told, objects[_i].told);
}
END_TEST

static const char *const wrong_objects[] = {
    "", " ", "{", "[]", "1", "\"a\"", "null", "{\"a\":1", "{\"a\":01}", "{\"a\":1}x", "{a:1}", "{\"a\":\"\\ud800\"}",
    "{\"\\ud800\":1}", "{\"a\":\"\xff\"}", "{\"a\":.5}", "{\"a\":NaN}", "{'a':1}",
};

START_TEST(broken_objects_are_refused)
{
    ck_assert_int_eq(json(wrong_objects[_i]), APP_FIELDS_BAD);
}
END_TEST

static const struct {
    const char *head, *body, *told;
} parts[] = {
    {"name=\"a\"", "x", "a=x;"},
    {"name=\"a\"", "", "a=;"},
    {"name=\"a\"; filename=\"f.png\"\r\nContent-Type: image/png", "xyz", "a F3,image/png,f.png;"},
    {"name=\"a\"; filename=\"f\"", "xyz", "a F3,application/octet-stream,f;"},
    {"name=\"a\"; filename=\"f\"\r\nContent-Type: no type", "x", "a F1,application/octet-stream,f;"},
    {"name=\"a\"; filename=\"/etc/passwd\"", "x", "a F1,application/octet-stream,passwd;"},
    {"name=\"a\"; filename=\"C:\\\\docs\\\\f.txt\"", "x", "a F1,application/octet-stream,f.txt;"},
    {"name=\"a\"; filename=\"..\"", "x", "a F1,application/octet-stream,..;"},
    {"name=\"a\"; filename=\"%22x%0D%0A.png\"", "x", "a F1,application/octet-stream,\"x\r\n.png;"},
    {"name=\"a%22b\"", "x", "a\"b=x;"},
    {"name=\"a%41\"", "x", "a%41=x;"},
    {"name=\"a\"; filename=\"\"", "", "a N;"},
    {"name=\"a\"; filename=\"\"", "x", "a F1,application/octet-stream,;"},
    {"name=\"a\"; filename=\"e\"", "", "a F0,application/octet-stream,e;"},
    {"name=\"a\"; filename=\"f\"", "\xff\xfe", "a F2,application/octet-stream,f;"},
};

START_TEST(parts_are_decoded)
{
    ck_assert_int_eq(multipart(parts[_i].head, parts[_i].body), APP_FIELDS_OK);
    ck_assert_str_eq(told, parts[_i].told);
}
END_TEST

static const char *const wrong_parts[][2] = {
    {"name=\"a\"", "\xff"}, {"name=\"\xff\"", "x"}, {"name=\"a\"; filename=\"\xff\"", "x"}, {"name=\"a", "x"}, {"x=\"a\"", "x"}};

START_TEST(broken_parts_are_refused)
{
    ck_assert_int_eq(multipart(wrong_parts[_i][0], wrong_parts[_i][1]), APP_FIELDS_BAD);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("app_fields");
    TCase *t = run_case(s, "app_fields");
    tcase_add_loop_test(t, forms_are_decoded, 0, COUNT(forms));
    tcase_add_loop_test(t, broken_forms_are_refused, 0, COUNT(wrong_forms));
    tcase_add_test(t, a_nul_is_text);
    tcase_add_test(t, a_form_is_decoded_where_it_stands);
    tcase_add_test(t, too_many_fields);
    tcase_add_test(t, long_names_are_nobodys);
    tcase_add_test(t, whoever_is_told_may_stop);
    tcase_add_loop_test(t, objects_are_decoded, 0, COUNT(objects));
    tcase_add_loop_test(t, broken_objects_are_refused, 0, COUNT(wrong_objects));
    tcase_add_loop_test(t, parts_are_decoded, 0, COUNT(parts));
    tcase_add_loop_test(t, broken_parts_are_refused, 0, COUNT(wrong_parts));
    return run_suite(s);
}
