/* fcgi/path: the one spelling of a path, what may be routed, UTF-8, query parameters, encoding. */
#include "fcgi/path.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

/* What nginx 1.22 makes of each as $document_uri; every row with a slash first and without a blank was asked of it. */
static const struct {
    const char *in;
    const char *out; /* NULL: refused */
} normalised[] = {
    {"/", "/"},
    {"/a", "/a"},
    {"/a/", "/a/"},
    {"/a/b", "/a/b"},
    /* slashes are merged */
    {"//", "/"},
    {"///", "/"},
    {"//a", "/a"},
    {"/a//b", "/a/b"},
    {"/a///b//", "/a/b/"},
    /* one dot */
    {"/.", "/"},
    {"/./", "/"},
    {"/./a", "/a"},
    {"/a/.", "/a/"},
    {"/a/./b", "/a/b"},
    {"/a/./", "/a/"},
    {"/.//a", "/a"},
    {"/a/.//b", "/a/b"},
    {"/./.", "/"},
    {"/././", "/"},
    /* two dots */
    {"/a/..", "/"},
    {"/a/../", "/"},
    {"/a/../b", "/b"},
    {"/a/b/..", "/a/"},
    {"/a/b/../", "/a/"},
    {"/a/b/../c", "/a/c"},
    {"/a/b/../../c", "/c"},
    {"/a//../b", "/b"},
    {"/a/b//..", "/a/"},
    {"/a/..//b", "/b"},
    {"/a/b/c/../../..", "/"},
    {"/a/b/c/../../../d", "/d"},
    {"/a/b/./../c/./", "/a/c/"},
    /* above the root */
    {"/..", NULL},
    {"/../", NULL},
    {"/../a", NULL},
    {"/a/../..", NULL},
    {"/a/../../b", NULL},
    {"//..", NULL},
    /* dots that are part of a name */
    {"/...", "/..."},
    {"/.../a", "/.../a"},
    {"/a/...", "/a/..."},
    {"/..a", "/..a"},
    {"/a..", "/a.."},
    {"/.a", "/.a"},
    {"/a.", "/a."},
    {"/a/..b/c", "/a/..b/c"},
    {"/a/.b", "/a/.b"},
    /* escapes are decoded once, before dots and slashes mean anything */
    {"/%61", "/a"},
    {"/%41%5a", "/AZ"},
    {"/%2e", "/"},
    {"/%2e/", "/"},
    {"/a/%2e", "/a/"},
    {"/a/%2e%2e", "/"},
    {"/a/.%2e/b", "/b"},
    {"/a/%2e./b", "/b"},
    {"/%2e%2e%2e", "/..."},
    {"/a%2Fb", "/a/b"},
    {"/a%2f%2fb", "/a/b"},
    {"/a%2f.%2f", "/a/"},
    {"/a%2f%2e%2e", "/"},
    {"/a/b/%2E%2E%2F%2E%2E%2Fc", "/c"},
    {"/%25", "/%"},
    {"/%2525", "/%25"},
    {"/%252e%252e", "/%2e%2e"},
    {"/a%25%32%65", "/a%2e"},
    {"/%20", "/ "},
    {"/a+b", "/a+b"},
    {"/a%2bb", "/a+b"},
    {"/%c3%a9", "/\xc3\xa9"},
    {"/\xc3\xa9", "/\xc3\xa9"},
    {"/a%0d%0ab", "/a\r\nb"},
    {"/a%5cb", "/a\\b"},
    {"/%ff", "/\xff"},
    {"/a;/b", "/a;/b"},
    {"/%2E%2e/a", NULL},
    {"/%2e%2e", NULL},
    {"/%2f..", NULL},
    {"/%2F..%2Fa", NULL},
    {"/a/%2e%2e/%2e%2e", NULL},
    /* the query and the fragment are not part of it */
    {"/a?b", "/a"},
    {"/a?/../..", "/a"},
    {"/a?%zz", "/a"},
    {"/a#b", "/a"},
    {"/?", "/"},
    {"/a/..?x", "/"},
    {"/a/.?x", "/a/"},
    {"/a/..#b", "/"},
    {"/a%3Fb", "/a?b"},
    {"/a%23b", "/a#b"},
    {"/%3f%3f", "/??"},
    /* malformed */
    {"", NULL},
    {"a", NULL},
    {"*", NULL},
    {"?a", NULL},
    {"%2fa", NULL},
    {"http://h/a", NULL},
    {"/%", NULL},
    {"/%a", NULL},
    {"/%2", NULL},
    {"/%zz", NULL},
    {"/%2g", NULL},
    {"/%g2", NULL},
    {"/% 2", NULL},
    {"/%+1", NULL},
    {"/%0x", NULL},
    {"/a%", NULL},
    {"/a%2", NULL},
    {"/%0", NULL},
    {"/%2?0", NULL},
    {"/%00", NULL},
    {"/a%00b", NULL},
    {"/%%41", NULL},
};

START_TEST(a_path_is_normalised_as_nginx_does)
{
    char out[64];
    struct str in = {normalised[_i].in, strlen(normalised[_i].in)};
    size_t n = path_normalise(in, out);
    if (normalised[_i].out == NULL)
        ck_assert_msg(n == 0, "%s became %.*s", in.p, (int)n, out);
    else
        ck_assert_msg(str_eq((struct str){out, n}, (struct str){normalised[_i].out, strlen(normalised[_i].out)}),
                      "%s became %.*s", in.p, (int)n, out);
}
END_TEST

START_TEST(a_nul_in_a_path_is_refused)
{
    char out[8];
    ck_assert_uint_eq(path_normalise(STR_LIT("/a\0b"), out), 0);
    ck_assert_uint_eq(path_normalise(STR_LIT("/\0"), out), 0);
    ck_assert_uint_eq(path_normalise((struct str){NULL, 0}, out), 0);
}
END_TEST

START_TEST(a_normalised_path_stays_as_it_is)
{
    char first[64], second[64];
    struct buf encoded = {0};
    struct str in = {normalised[_i].in, strlen(normalised[_i].in)};
    size_t n = path_normalise(in, first);
    if (n > 0) {
        ck_assert(path_encode(&encoded, (struct str){first, n}));
        ck_assert_uint_le(encoded.len, sizeof second);
        ck_assert_uint_eq(path_normalise((struct str){(char *)encoded.data, encoded.len}, second), n);
        ck_assert_mem_eq(first, second, n);
    }
    buf_free(&encoded);
}
END_TEST

static const char *const routable[] = {
    "/",           "/a",           "/a/",          "/a/b",      "/docs/notes/",    "/...", "/.a", "/a.", "/..a",
    "/a..",        "/a/.../b",     "/ ",           "/a b",      "/a+b",            "/%",   "/%2e", "/%2e%2e/",
    "/a?b",        "/a#b",         "/;a",          "/a:b",      "/\"",             "/'",   "/<x>", "/~a",
    "/\xc3\xa9",   "/e\xcc\x81",   "/\xf0\x9f\x93\x9c", "/\xef\xbf\xbf", "/\xf4\x8f\xbf\xbf", "/-", "/{}", "/|^`",
};

START_TEST(a_path_may_be_routed)
{
    ck_assert_msg(path_ok((struct str){routable[_i], strlen(routable[_i])}), "%s", routable[_i]);
}
END_TEST

static const struct str unroutable[] = {
    {"", 0},
    {NULL, 0},
    STR_LIT("a"),
    STR_LIT("a/b"),
    STR_LIT(" /a"),
    STR_LIT("\\a"),
    /* empty segments */
    STR_LIT("//"),
    STR_LIT("//a"),
    STR_LIT("/a//b"),
    STR_LIT("/a//"),
    /* dot segments, wherever */
    STR_LIT("/."),
    STR_LIT("/.."),
    STR_LIT("/./"),
    STR_LIT("/../"),
    STR_LIT("/./a"),
    STR_LIT("/../a"),
    STR_LIT("/a/."),
    STR_LIT("/a/.."),
    STR_LIT("/a/./b"),
    STR_LIT("/a/../b"),
    /* control characters and backslash */
    STR_LIT("/\0"),
    STR_LIT("/a\0b"),
    STR_LIT("/\x01"),
    STR_LIT("/\x1f"),
    STR_LIT("/a\tb"),
    STR_LIT("/a\nb"),
    STR_LIT("/a\rb"),
    STR_LIT("/\x7f"),
    STR_LIT("/a\\b"),
    STR_LIT("/..\\..\\a"),
    /* not UTF-8 */
    STR_LIT("/\xff"),
    STR_LIT("/\xc3"),
    STR_LIT("/\xc3/"),
    STR_LIT("/\xa9"),
    STR_LIT("/\xc0\xaf"),
    STR_LIT("/\xc0\xae\xc0\xae/"),
    STR_LIT("/\xe0\x80\xaf"),
    STR_LIT("/\xed\xa0\x80"),
    STR_LIT("/\xf4\x90\x80\x80"),
};

START_TEST(a_path_may_not_be_routed)
{
    ck_assert(!path_ok(unroutable[_i]));
}
END_TEST

/* An independent reading of RFC 3629: decode, then ask whether the code point may be written so. */
static bool is_utf8(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
        size_t len = p[i] < 0x80 ? 1 : (p[i] & 0xe0) == 0xc0 ? 2 : (p[i] & 0xf0) == 0xe0 ? 3
                                   : (p[i] & 0xf8) == 0xf0   ? 4 : 0;
        if (len == 0 || len > n - i)
            return false;
        uint32_t v = len == 1 ? p[i] : p[i] & (0x7fu >> len);
        for (size_t k = 1; k < len; k++) {
            if ((p[i + k] & 0xc0) != 0x80)
                return false;
            v = v << 6 | (p[i + k] & 0x3f);
        }
        if (len > 1 && (v < least[len] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff)))
            return false;
        i += len;
    }
    return true;
}

static void compare_utf8(const unsigned char *p, size_t n)
{
    if (utf8_ok((const char *)p, n) != is_utf8(p, n))
        ck_abort_msg("%zu bytes from %02x %02x %02x %02x", n, p[0], p[1], p[2], p[3]);
}

/* All texts of one to three bytes. */
START_TEST(utf8_of_up_to_three_bytes)
{
    unsigned char p[4] = {0};
    for (unsigned a = 0; a < 256; a++) {
        p[0] = (unsigned char)a;
        compare_utf8(p, 1);
        for (unsigned b = 0; b < 256; b++) {
            p[1] = (unsigned char)b;
            compare_utf8(p, 2);
            for (unsigned c = 0; c < 256; c++) {
                p[2] = (unsigned char)c;
                compare_utf8(p, 3);
            }
        }
    }
}
END_TEST

/* All borders of four bytes. */
START_TEST(utf8_of_four_bytes)
{
    static const unsigned char edge[] = {0x00, 0x2f, 0x7f, 0x80, 0x81, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff};
    for (unsigned a = 0xc0; a < 256; a++)
        for (unsigned b = 0; b < 256; b++)
            for (size_t c = 0; c < sizeof edge; c++)
                for (size_t d = 0; d < sizeof edge; d++)
                    compare_utf8((unsigned char[]){(unsigned char)a, (unsigned char)b, edge[c], edge[d]}, 4);
}
END_TEST

/* Text is looked at in words: every byte at every place of some of them, alone and before a byte that must follow. */
START_TEST(utf8_within_longer_text)
{
    unsigned char text[40];
    for (unsigned c = 0; c < 256; c++)
        for (size_t n = 1; n <= sizeof text; n++)
            for (size_t i = 0; i < n; i++) {
                memset(text, 'a', n);
                text[i] = (unsigned char)c;
                compare_utf8(text, n);
                if (i + 1 < n)
                    text[i + 1] = 0xa0;
                compare_utf8(text, n);
            }
}
END_TEST

START_TEST(utf8_borders)
{
    static const char *const good[] = {"", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                                       "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "a\xc3\xa9z"};
    static const char *const bad[] = {"\x80", "\xbf", "\xc1\xbf", "\xc2", "\xc2\x7f", "\xc2\xc0", "\xe0\x9f\xbf",
                                      "\xed\xa0\x80", "\xed\xbf\xbf", "\xef\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80", "\xfe", "\xff", "a\xc3", "\xc3\xa9\xa9"};
    for (size_t i = 0; i < COUNT(good); i++)
        ck_assert_msg(utf8_ok(good[i], strlen(good[i])), "good %zu", i);
    for (size_t i = 0; i < COUNT(bad); i++)
        ck_assert_msg(!utf8_ok(bad[i], strlen(bad[i])), "bad %zu", i);
}
END_TEST

static const struct {
    const char *query;
    enum query_result result;
    const char *value;
} queries[] = {
    {"limit=5", QUERY_OK, "5"},
    {"limit=", QUERY_OK, ""},
    {"limit", QUERY_OK, ""},
    {"a=1&limit=5&b=2", QUERY_OK, "5"},
    {"&&limit=5&&", QUERY_OK, "5"},
    {"limit=5=6", QUERY_OK, "5=6"},
    {"limit=a+b", QUERY_OK, "a b"},
    {"limit=a%2bb", QUERY_OK, "a+b"},
    {"limit=a%20b", QUERY_OK, "a b"},
    {"limit=%26%3D%3f", QUERY_OK, "&=?"},
    {"limit=%2525", QUERY_OK, "%25"},
    {"limit=%c3%a9", QUERY_OK, "\xc3\xa9"},
    {"limit=\xc3\xa9", QUERY_OK, "\xc3\xa9"},
    {"limit=a;b", QUERY_OK, "a;b"},
    {"limit=a?b", QUERY_OK, "a?b"},
    /* other names */
    {"", QUERY_NONE, NULL},
    {"&", QUERY_NONE, NULL},
    {"=", QUERY_NONE, NULL},
    {"=limit", QUERY_NONE, NULL},
    {"limi=5", QUERY_NONE, NULL},
    {"limits=5", QUERY_NONE, NULL},
    {"xlimit=5", QUERY_NONE, NULL},
    {"Limit=5", QUERY_NONE, NULL},
    {"x=limit=5", QUERY_NONE, NULL},
    {"limit+=5", QUERY_NONE, NULL},
    {"limit%3d5", QUERY_NONE, NULL},
    /* twice */
    {"limit=5&limit=6", QUERY_TWICE, NULL},
    {"limit=5&limit=5", QUERY_TWICE, NULL},
    {"limit=5&a&limit", QUERY_TWICE, NULL},
    {"limit&limit", QUERY_TWICE, NULL},
    {"limit=&limit=", QUERY_TWICE, NULL},
    /* malformed */
    {"limit=%", QUERY_BAD, NULL},
    {"limit=%4", QUERY_BAD, NULL},
    {"limit=%zz", QUERY_BAD, NULL},
    {"limit=%4&x=1", QUERY_BAD, NULL},
    {"limit=a%4", QUERY_BAD, NULL},
    {"limit=%-1", QUERY_BAD, NULL},
    {"limit=%00", QUERY_BAD, NULL},
    {"limit=5%00", QUERY_BAD, NULL},
    {"limit=%ff", QUERY_BAD, NULL},
    {"limit=%c3", QUERY_BAD, NULL},
    {"limit=%c0%af", QUERY_BAD, NULL},
    {"limit=%ed%a0%80", QUERY_BAD, NULL},
    {"limit=\xff", QUERY_BAD, NULL},
};

START_TEST(a_query_parameter)
{
    struct buf out = {0};
    ck_assert(buf_add(&out, "what was there", 14, 100));
    enum query_result got = query_find((struct str){queries[_i].query, strlen(queries[_i].query)}, "limit", &out);
    ck_assert_msg(got == queries[_i].result, "%s: %d", queries[_i].query, (int)got);
    if (queries[_i].value != NULL) {
        ck_assert_uint_eq(out.len, strlen(queries[_i].value));
        ck_assert_mem_eq(out.data, queries[_i].value, out.len);
    }
    buf_free(&out);
}
END_TEST

START_TEST(a_nul_in_a_query_is_malformed)
{
    struct buf out = {0};
    ck_assert_int_eq(query_find(STR_LIT("limit=\0"), "limit", &out), QUERY_BAD);
    ck_assert_int_eq(query_find(STR_LIT("limit=5\0006"), "limit", &out), QUERY_BAD);
    ck_assert_int_eq(query_find((struct str){NULL, 0}, "limit", &out), QUERY_NONE);
    buf_free(&out);
}
END_TEST

/* n bytes of value, each written as `one`. */
static enum query_result long_value(size_t n, const char *one)
{
    struct buf query = {0}, out = {0};
    ck_assert(buf_add(&query, "v=", 2, 65536));
    for (size_t i = 0; i < n; i++)
        ck_assert(buf_add(&query, one, strlen(one), 65536));
    enum query_result got = query_find((struct str){(char *)query.data, query.len}, "v", &out);
    ck_assert(got != QUERY_OK || out.len == n);
    buf_free(&query);
    buf_free(&out);
    return got;
}

START_TEST(a_query_value_has_a_cap_of_decoded_bytes)
{
    ck_assert_int_eq(long_value(QUERY_VALUE_MAX, "a"), QUERY_OK);
    ck_assert_int_eq(long_value(QUERY_VALUE_MAX, "%61"), QUERY_OK);
    ck_assert_int_eq(long_value(QUERY_VALUE_MAX + 1, "a"), QUERY_BAD);
    ck_assert_int_eq(long_value(QUERY_VALUE_MAX + 1, "%61"), QUERY_BAD);
    ck_assert_int_eq(long_value(QUERY_VALUE_MAX * 4, "a"), QUERY_BAD);
}
END_TEST

START_TEST(every_byte_is_encoded_or_plain)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    for (unsigned c = 0; c < 256; c++) {
        struct buf out = {0};
        char byte = (char)c, expected[4];
        ck_assert(path_encode(&out, (struct str){&byte, 1}));
        if (c != 0 && strchr(plain, (int)c) != NULL)
            snprintf(expected, sizeof expected, "%c", (int)c);
        else
            snprintf(expected, sizeof expected, "%%%02X", c);
        ck_assert_uint_eq(out.len, strlen(expected));
        ck_assert_mem_eq(out.data, expected, out.len);
        buf_free(&out);
    }
}
END_TEST

START_TEST(encoding_appends)
{
    struct buf out = {0};
    ck_assert(path_encode(&out, (struct str){NULL, 0}));
    ck_assert_uint_eq(out.len, 0);
    ck_assert(path_encode(&out, STR_LIT("/docs/")));
    ck_assert(path_encode(&out, STR_LIT("a b/\xc3\xa9\"?#%+\r\n")));
    ck_assert_uint_eq(out.len, sizeof "/docs/a%20b/%C3%A9%22%3F%23%25%2B%0D%0A" - 1);
    ck_assert_mem_eq(out.data, "/docs/a%20b/%C3%A9%22%3F%23%25%2B%0D%0A", out.len);
    buf_free(&out);
}
END_TEST

START_TEST(encoding_has_a_cap)
{
    struct buf out = {0};
    static const char text[30000] = "";
    ck_assert(!path_encode(&out, (struct str){text, sizeof text}));
    ck_assert_uint_le(out.len, 65536);
    buf_free(&out);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("path");
    TCase *t = run_case(s, "normalise");
    tcase_add_loop_test(t, a_path_is_normalised_as_nginx_does, 0, COUNT(normalised));
    tcase_add_loop_test(t, a_normalised_path_stays_as_it_is, 0, COUNT(normalised));
    tcase_add_test(t, a_nul_in_a_path_is_refused);
    t = run_case(s, "routable");
    tcase_add_loop_test(t, a_path_may_be_routed, 0, COUNT(routable));
    tcase_add_loop_test(t, a_path_may_not_be_routed, 0, COUNT(unroutable));
    t = run_case(s, "utf8");
    tcase_add_test(t, utf8_within_longer_text);
    tcase_add_test(t, utf8_borders);
    tcase_add_test(t, utf8_of_up_to_three_bytes);
    tcase_add_test(t, utf8_of_four_bytes);
    t = run_case(s, "query");
    tcase_add_loop_test(t, a_query_parameter, 0, COUNT(queries));
    tcase_add_test(t, a_nul_in_a_query_is_malformed);
    tcase_add_test(t, a_query_value_has_a_cap_of_decoded_bytes);
    t = run_case(s, "encode");
    tcase_add_test(t, every_byte_is_encoded_or_plain);
    tcase_add_test(t, encoding_appends);
    tcase_add_test(t, encoding_has_a_cap);
    return run_suite(s);
}
