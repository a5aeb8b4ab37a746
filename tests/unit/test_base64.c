/* seal/base64: the examples of RFC 4648, and what is none. */
#include "seal/base64.h"

#include <string.h>

#include "tests/unit/run.h"

static const struct {
    const char *bytes, *text;
} examples[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="},
                {"foobar", "Zm9vYmFy"}, {"\xfb\xef\xff", "++//"}};

START_TEST(both_ways)
{
    const char *bytes = examples[_i].bytes, *text = examples[_i].text;
    char out[32];
    size_t n = strlen(bytes);
    ck_assert_uint_eq(seal_base64_len(n), strlen(text));
    seal_base64_encode(out, bytes, n);
    ck_assert_str_eq(out, text);
    ck_assert(seal_base64_decode(text, strlen(text), out, &n));
    ck_assert_uint_eq(n, strlen(bytes));
    ck_assert_mem_eq(out, bytes, n);
}
END_TEST

static const char *const wrong[] = {"Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9", "Zm9v=", "=", "====", "Zg==Zg==", "Zm-_", "Zm 9v",
                                    "Zm9v\n", "Zm9vZg==x", "\xc3\xa9==", "Z*=="};

START_TEST(what_is_none)
{
    char out[32];
    size_t n;
    ck_assert_msg(!seal_base64_decode(wrong[_i], strlen(wrong[_i]), out, &n), "%s", wrong[_i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base64");
    TCase *t = run_case(s, "base64");
    tcase_add_loop_test(t, both_ways, 0, COUNT(examples));
    tcase_add_loop_test(t, what_is_none, 0, COUNT(wrong));
    return run_suite(s);
}
