/* handlers/courier_answer: statuses, codes in bodies that may be anything, and text that can be shown. */
#include "handlers/courier_answer.h"

#include <string.h>

#include "fcgi/path.h"
#include "tests/unit/run.h"

static const struct {
    unsigned status;
    const char *body;
    enum courier_outcome outcome;
    bool coded;
    uint64_t expected;
} answers[] = {
    {200, "", COURIER_DELIVERED, false, 0},
    {200, "{\"ok\":1,\"seq\":42}", COURIER_DELIVERED, false, 0},
    {200, "{\"ok\":1,\"seq\":42,\"again\":true}", COURIER_DUPLICATE, false, 0},
    {200, "{\"again\":false}", COURIER_DELIVERED, false, 0},
    {200, "{\"again\":true", COURIER_DELIVERED, false, 0},
    {201, "created", COURIER_DELIVERED, false, 0},
    {204, "", COURIER_DELIVERED, false, 0},
    {299, "<html>", COURIER_DELIVERED, false, 0},
    {200, "{\"code\":\"gap\",\"expected\":3}", COURIER_DELIVERED, false, 0},
    {0, "", COURIER_ERROR, false, 0},
    {100, "", COURIER_ERROR, false, 0},
    {199, "", COURIER_ERROR, false, 0},
    {300, "", COURIER_REDIRECT, false, 0},
    {301, "", COURIER_REDIRECT, false, 0},
    {304, "", COURIER_REDIRECT, false, 0},
    {308, "", COURIER_REDIRECT, false, 0},
    {399, "", COURIER_REDIRECT, false, 0},
    {400, "", COURIER_REJECTED, false, 0},
    {400, "{\"code\":\"malformed\"}", COURIER_REJECTED, true, 0},
    {401, "{\"code\":\"signature\"}", COURIER_UNAUTHORIZED, false, 0},
    {403, "", COURIER_REJECTED, false, 0},
    {404, "", COURIER_REJECTED, false, 0},
    {409, "", COURIER_REJECTED, false, 0},
    {409, "{\"code\":\"gap\",\"expected\":40}", COURIER_GAP, true, 40},
    {409, " {\"type\":\"x\", \"expected\" : 40, \"code\" : \"g\\u0061p\"} ", COURIER_GAP, true, 40},
    {409, "{\"code\":\"gap\",\"expected\":999999999999999999}", COURIER_GAP, true, 999999999999999999},
    {409, "{\"code\":\"gap\",\"expected\":1e3}", COURIER_GAP, true, 0},
    {409, "{\"code\":\"gap\",\"expected\":-4}", COURIER_GAP, true, 0},
    {409, "{\"code\":\"gap\",\"expected\":4.5}", COURIER_GAP, true, 0},
    {409, "{\"code\":\"gap\",\"expected\":\"40\"}", COURIER_GAP, true, 0},
    {409, "{\"code\":\"gap\",\"expected\":18446744073709551616}", COURIER_GAP, true, 0},
    {409, "{\"code\":\"gap\"}", COURIER_GAP, true, 0},
    {409, "{\"code\":\"gap\",\"expected\":40", COURIER_REJECTED, false, 0},
    {409, "[{\"code\":\"gap\",\"expected\":40}]", COURIER_REJECTED, false, 0},
    {409, "{\"x\":{\"code\":\"gap\"},\"expected\":40}", COURIER_REJECTED, false, 0},
    {409, "{\"code\":\"busy\"}", COURIER_BUSY, true, 0},
    {409, "{\"code\":\"busy\",\"code\":\"gap\"}", COURIER_BUSY, true, 0},
    {409, "{\"code\":null}", COURIER_REJECTED, false, 0},
    {409, "{\"code\":\"id_conflict\"}", COURIER_REJECTED, false, 0},
    {410, "", COURIER_GONE, false, 0},
    {413, "", COURIER_TOO_LARGE, false, 0},
    {413, "{\"code\":\"too_large\"}", COURIER_TOO_LARGE, true, 0},
    {422, "", COURIER_REJECTED, false, 0},
    {422, "{\"code\":\"id_conflict\"}", COURIER_ID_CONFLICT, true, 0},
    {422, "{\"code\":\"unknown_recipient_key\"}", COURIER_UNKNOWN_KEY, true, 0},
    {422, "{\"code\":\"does_not_open\"}", COURIER_DOES_NOT_OPEN, true, 0},
    {422, "{\"code\":\"gap\",\"expected\":1}", COURIER_REJECTED, false, 0},
    {422, "{\"code\":\"rejected\"}", COURIER_REJECTED, true, 0},
    {409, "{\"code\":\"rejected\"}", COURIER_REJECTED, false, 0},
    {422, "{\"code\":\"something\"}", COURIER_REJECTED, false, 0},
    {429, "", COURIER_THROTTLED, false, 0},
    {429, "{\"code\":\"busy\"}", COURIER_THROTTLED, false, 0},
    {499, "", COURIER_REJECTED, false, 0},
    {500, "", COURIER_ERROR, false, 0},
    {500, "{\"code\":\"does_not_open\"}", COURIER_ERROR, false, 0},
    {502, "", COURIER_ERROR, false, 0},
    {503, "", COURIER_THROTTLED, false, 0},
    {504, "", COURIER_ERROR, false, 0},
    {599, "", COURIER_ERROR, false, 0},
    {600, "", COURIER_ERROR, false, 0},
    {999, "", COURIER_ERROR, false, 0},
};

START_TEST(table)
{
    for (size_t i = 0; i < COUNT(answers); i++) {
        struct courier_end end = {.status = answers[i].status, .outcome = COURIER_LOCAL, .coded = true, .expected = 9};
        courier_answer((struct str){answers[i].body, strlen(answers[i].body)}, &end);
        ck_assert_msg(end.outcome == answers[i].outcome && end.coded == answers[i].coded &&
                          end.expected == answers[i].expected,
                      "%u %s: %s, coded %d, %llu", answers[i].status, answers[i].body,
                      courier_outcome_name(end.outcome), end.coded, (unsigned long long)end.expected);
    }
}
END_TEST

/* A body that was cut anywhere is no answer of ours. */
START_TEST(cut)
{
    static const char whole[] = "{\"code\":\"gap\",\"expected\":40}";
    for (size_t n = 0; n < sizeof whole - 1; n++) {
        struct courier_end end = {.status = 409};
        courier_answer((struct str){whole, n}, &end);
        ck_assert_int_eq(end.outcome, COURIER_REJECTED);
    }
}
END_TEST

START_TEST(nested)
{
    static char deep[16384];
    struct courier_end end = {.status = 409};
    memset(deep, '[', sizeof deep);
    courier_answer((struct str){deep, sizeof deep}, &end);
    ck_assert_int_eq(end.outcome, COURIER_REJECTED);
}
END_TEST

#define SHOW(in) show(in, sizeof(in) - 1, 512)

static const char *show(const char *in, size_t n, size_t room)
{
    static char out[513];
    memset(out, 'X', sizeof out);
    courier_printable((struct str){in, n}, out, room);
    ck_assert_uint_lt(strlen(out), room);
    ck_assert(utf8_ok(out, strlen(out)));
    return out;
}

START_TEST(printable)
{
    ck_assert_str_eq(SHOW(""), "");
    ck_assert_str_eq(SHOW("plain text"), "plain text");
    ck_assert_str_eq(SHOW("  a \t\r\n b  "), "a b");
    ck_assert_str_eq(SHOW("a\0b"), "a b");
    ck_assert_str_eq(SHOW("\x1b[31mred\x7f"), "[31mred");
    ck_assert_str_eq(SHOW("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
    ck_assert_str_eq(SHOW("\xe4\xb8\xad\xf0\x9f\x98\x80"), "\xe4\xb8\xad\xf0\x9f\x98\x80");
    ck_assert_str_eq(SHOW("a\xff\xfe" "b"), "a b");
    ck_assert_str_eq(SHOW("a\xc0\xaf" "b"), "a b");          /* too long a form */
    ck_assert_str_eq(SHOW("a\xe0\x80\xaf" "b"), "a b");
    ck_assert_str_eq(SHOW("a\xed\xa0\x80" "b"), "a b");      /* half of a pair */
    ck_assert_str_eq(SHOW("a\xf4\x90\x80\x80" "b"), "a b");  /* beyond Unicode */
    ck_assert_str_eq(SHOW("a\xc2\x85" "b"), "a b");          /* a C1 control */
    ck_assert_str_eq(SHOW("a\xe2\x80\xae" "b"), "a b");      /* turns what follows around */
    ck_assert_str_eq(SHOW("a\xe2\x80\xa8" "b"), "a b");
    ck_assert_str_eq(SHOW("a\xe2\x81\xa6" "b"), "a b");
    ck_assert_str_eq(SHOW("a\xe2\x82\xac" "b"), "a\xe2\x82\xac" "b");
    ck_assert_str_eq(SHOW("a\xe2\x82"), "a");
}
END_TEST

START_TEST(printable_cut)
{
    ck_assert_str_eq(show("abc", 3, 1), "");
    ck_assert_str_eq(show("abc", 3, 3), "ab");
    ck_assert_str_eq(show("abc", 3, 4), "abc");
    ck_assert_str_eq(show("a\xc3\xbc", 3, 3), "a");
    ck_assert_str_eq(show("a\xc3\xbc", 3, 4), "a\xc3\xbc");
    ck_assert_str_eq(show("a b", 3, 3), "a");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("courier_answer");
    TCase *c = run_case(s, "answers");
    tcase_add_test(c, table);
    tcase_add_test(c, cut);
    tcase_add_test(c, nested);
    tcase_add_test(c, printable);
    tcase_add_test(c, printable_cut);
    return run_suite(s);
}
