/* handlers/sends_url: which addresses a line may have. */
#include "handlers/sends_url.h"

#include <string.h>

#include "db/line.h"
#include "tests/unit/run.h"

static const char *wrong_with(const char *url)
{
    return sends_url_wrong((struct str){url, strlen(url)});
}

static const char *const good[] = {
    "https://example.org",
    "https://example.org/",
    "http://example.org:8080/hooks/in?a=1&b=%20x",
    "https://example.org?x",
    "https://EXAMPLE.org/",
    "https://example.org./",
    "https://a-b.c_d.example/",
    "https://xn--mnchen-3ya.example/",
    "https://1.example/",
    "http://192.0.2.7/",
    "http://192.0.2.7:65535/",
    "http://127.0.0.1:1/", /* which addresses may be reached is the courier's to judge */
    "http://0.0.0.0/",
    "http://[2001:db8::1]/",
    "http://[::ffff:127.0.0.1]:80/",
    "http://localhost/~me/in;v=1,2!$'()*+=:@[]",
    "http://ab-1.0xg/",
};

START_TEST(good_address)
{
    ck_assert_msg(wrong_with(good[_i]) == NULL, "%s: %s", good[_i], wrong_with(good[_i]));
}
END_TEST

/* What is refused, and a word of why. */
static const struct {
    const char *url, *why;
} bad[] = {
    {"", "begin"},
    {"example.org", "begin"},
    {"//example.org/", "begin"},
    {"ftp://example.org/", "begin"},
    {"file:///etc/passwd", "begin"},
    {"HTTPS://example.org/", "begin"},
    {"https:/example.org/", "begin"},
    {"https:example.org", "begin"},
    {"javascript:alert(1)", "begin"},
    {"https://", "no host"},
    {"https:///path", "no host"},
    {"https://:80/", "no host"},
    {"https://?x", "no host"},
    {"https://user@example.org/", "user"},
    {"https://user:pw@example.org/", "user"},
    {"https://@example.org/", "user"},
    {"https://good.example@bad.example/", "user"},
    {"http://127.0.0.1:9003\\@example.com/", "backslash"},
    {"http://example.com\\", "backslash"},
    {"https://example.org/\\x", "backslash"},
    {"https://example.org/#x", "fragment"},
    {"https://example.org#@bad.example/", "fragment"},
    {"https://example.org/a b", "visible"},
    {" https://example.org/", "visible"},
    {"https://example.org/\r\nX-Evil: 1", "visible"},
    {"https://example.org/\n", "visible"},
    {"https://example.org/\t", "visible"},
    {"https://example.org/\x7f", "visible"},
    {"https://m\xc3\xbcnchen.example/", "visible"},
    {"https://example\xe3\x80\x82org/", "visible"},
    {"https://example.org:0/", "port"},
    {"https://example.org:/", "port"},
    {"https://example.org:65536/", "port"},
    {"https://example.org:080/", "port"},
    {"https://example.org:100000000000000000080/", "port"},
    {"https://example.org:80:90/", "port"},
    {"https://example.org:+80/", "port"},
    {"https://example.org:http/", "port"},
    {"http://2130706433/", "number"},
    {"http://0x7f000001/", "number"},
    {"http://0x7f.1/", "number"},
    {"http://0177.0.0.1/", "number"},
    {"http://127.1/", "number"},
    {"http://127.0.0.1./", "number"},
    {"http://127.0.0.1.5/", "number"},
    {"http://127.0.0.256/", "number"},
    {"http://127.0.0.0x1/", "number"},
    {"http://127.0.0.0X/", "number"},
    {"http://1.2.3.4.example.1/", "number"},
    {"http://127..1/", "number"},
    {"http://0/", "number"},
    {"https://exa%6dple.org/", "no name"},
    {"https://.example.org/", "no name"},
    {"https://example..org/", "no name"},
    {"https://example.org../", "no name"},
    {"https://./", "no name"},
    {"https://-a.example/", "no name"},
    {"https://a-.example/", "no name"},
    {"https://a,b.example/", "no name"},
    {"http://[::1/", "without"},
    {"http://[]/", "IPv6"},
    {"http://[1.2.3.4]/", "IPv6"},
    {"http://[fe80::1%25eth0]/", "IPv6"},
    {"http://[::1]80/", "behind"},
    {"http://[::1]@x/", "user"},
    {"http://[::1]:/", "port"},
    {"http://::1/", "no host"},
    {"https://example.org/<script>", "escape"},
    {"https://example.org/\"", "escape"},
    {"https://example.org/%", "escape"},
    {"https://example.org/%4", "escape"},
    {"https://example.org/%zz", "escape"},
    {"https://example.org/?a={b}", "escape"},
    {"https://example.org/a|b", "escape"},
    {"https://example.org/^`", "escape"},
};

START_TEST(bad_address)
{
    const char *wrong = wrong_with(bad[_i].url);
    ck_assert_msg(wrong != NULL, "taken: %s", bad[_i].url);
    ck_assert_msg(strstr(wrong, bad[_i].why) != NULL, "%s: %s", bad[_i].url, wrong);
}
END_TEST

START_TEST(a_nul_ends_nothing)
{
    static const char url[] = "https://example.org/\0@bad.example/";
    ck_assert_ptr_nonnull(sends_url_wrong((struct str){url, sizeof url - 1}));
}
END_TEST

START_TEST(longest)
{
    char url[DB_LINE_URL_MAX + 1];
    memset(url, 'a', sizeof url);
    memcpy(url, "https://a/", 10);
    ck_assert_ptr_null(sends_url_wrong((struct str){url, DB_LINE_URL_MAX}));
    ck_assert_ptr_nonnull(sends_url_wrong((struct str){url, DB_LINE_URL_MAX + 1}));
}
END_TEST

START_TEST(longest_name)
{
    char url[400] = "https://";
    for (int i = 0; i < 127; i++)
        strcat(url, i < 126 ? "a." : "a");
    ck_assert_ptr_null(wrong_with(url)); /* 253 */
    strcat(url, ".b");
    ck_assert_ptr_nonnull(wrong_with(url));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sends_url");
    TCase *t = run_case(s, "addresses");
    tcase_add_loop_test(t, good_address, 0, COUNT(good));
    tcase_add_loop_test(t, bad_address, 0, COUNT(bad));
    tcase_add_test(t, a_nul_ends_nothing);
    tcase_add_test(t, longest);
    tcase_add_test(t, longest_name);
    return run_suite(s);
}
