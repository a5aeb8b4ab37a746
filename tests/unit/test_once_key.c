/* handlers/once: what is a key. */
#include "handlers/once.h"

#include <string.h>

#include "tests/unit/run.h"

static const struct {
    const char *header, *key; /* NULL: malformed */
} headers[] = {
    {"a", "a"}, {"8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"}, {"!#~/=", "!#~/="},
    {"a\"b", "a\"b"}, {"a\\b", "a\\b"}, {"'a'", "'a'"},
    {"\"a\"", "a"}, {"\"a b\"", "a b"}, {"\"a\\\"b\\\\\"", "a\"b\\"}, {"\" \"", " "},
    {"", NULL}, {"a b", NULL}, {" a", NULL}, {"a\t", NULL}, {"\x7f", NULL}, {"\x01", NULL}, {"\xc3\xa9", NULL},
    {"\"", NULL}, {"\"\"", NULL}, {"\"a", NULL}, {"\"a\"b", NULL}, {"\"a\";x=1", NULL}, {"\"a\\\"", NULL}, {"\"a\\", NULL},
    {"\"\\n\"", NULL}, {"\"\xc3\xa9\"", NULL}, {"\"\t\"", NULL},
};

START_TEST(a_header)
{
    char out[ONCE_KEY_MAX];
    size_t n;
    const char *header = headers[_i].header, *key = headers[_i].key;
    bool ok = once_key((struct str){header, strlen(header)}, out, &n);
    ck_assert_msg(ok == (key != NULL), "%s", header);
    if (key != NULL)
        ck_assert_msg(n == strlen(key) && memcmp(out, key, n) == 0, "%s", header);
}
END_TEST

START_TEST(how_long_it_may_be)
{
    char header[600], out[ONCE_KEY_MAX];
    size_t n;
    memset(header, 'x', sizeof header);
    ck_assert(once_key((struct str){header, ONCE_KEY_MAX}, out, &n));
    ck_assert(!once_key((struct str){header, ONCE_KEY_MAX + 1}, out, &n));
    header[0] = header[ONCE_KEY_MAX + 1] = '"';
    ck_assert(once_key((struct str){header, ONCE_KEY_MAX + 2}, out, &n));
    ck_assert_uint_eq(n, ONCE_KEY_MAX);
    header[ONCE_KEY_MAX + 1] = 'x';
    header[ONCE_KEY_MAX + 2] = '"';
    ck_assert(!once_key((struct str){header, ONCE_KEY_MAX + 3}, out, &n));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("once_key");
    TCase *t = run_case(s, "once_key");
    tcase_add_loop_test(t, a_header, 0, COUNT(headers));
    tcase_add_test(t, how_long_it_may_be);
    return run_suite(s);
}
