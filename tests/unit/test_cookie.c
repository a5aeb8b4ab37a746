/* handlers/cookie, handlers/origin, handlers/auth: pure functions on what browsers send. */
#include "handlers/cookie.h"

#include <string.h>

#include "handlers/auth.h"
#include "handlers/origin.h"
#include "tests/unit/run.h"

static struct str text(const char *s)
{
    return (struct str){s, s ? strlen(s) : 0};
}

/* ---- the name -------------------------------------------------------------------------------- */

static const struct {
    const char *mount;
    bool https;
    const char *name;
} names[] = {
    {"", false, "hanji_session"},
    {"", true, "__Host-hanji_session"},
    {"/h", false, "hanji_session_2fh"},
    {"/h", true, "__Host-hanji_session_2fh"},
    {"/a-b/C.9", false, "hanji_session_2fa-b_2fC_2e9"},
    {"/a_b", false, "hanji_session_2fa_5fb"},
    {"/\xc3\xa4;= ", false, "hanji_session_2f_c3_a4_3b_3d_20"},
};

START_TEST(a_name)
{
    char name[COOKIE_NAME_MAX];
    size_t n = cookie_name(name, text(names[_i].mount), names[_i].https);
    ck_assert_str_eq(name, names[_i].name);
    ck_assert_uint_eq(n, strlen(name));
}
END_TEST

START_TEST(a_mount_without_end_is_cut)
{
    char name[COOKIE_NAME_MAX + 1], mount[4000];
    memset(mount, '/', sizeof mount);
    memset(name, '!', sizeof name);
    size_t n = cookie_name(name, (struct str){mount, sizeof mount}, true);
    ck_assert_uint_eq(n, strlen(name));
    ck_assert_uint_lt(n, COOKIE_NAME_MAX);
    ck_assert_int_eq(name[COOKIE_NAME_MAX], '!');
}
END_TEST

/* ---- finding it ------------------------------------------------------------------------------ */

static const struct {
    const char *header;
    const char *value; /* NULL: none */
} headers[] = {
    {"s=1", "1"},
    {"s=1; t=2", "1"},
    {"t=2;s=1", "1"},
    {"t=2 ;  \t s=1 \t;u=3", "1"},
    {";;;s=1;;;", "1"},
    {"s=", ""},
    {"s=a=b", "a=b"},
    {"s=\"1\"", "\"1\""},
    {"ss=2; s=1; sss=3", "1"},
    {"s=1; s=1", "1"},
    {"s=1; s=2", NULL},
    {"s=1; s=", NULL},
    {"s=; s=1", NULL},
    {"s=1; s=1; s=2", NULL},
    {"", NULL},
    {";", NULL},
    {"s", NULL},
    {"s;t=1", NULL},
    {"S=1", NULL},
    {"t=s=1", NULL},
    {"ss=1", NULL},
    {"s =1", NULL},
    {"=1", NULL},
};

START_TEST(a_cookie_is_found)
{
    struct str value = cookie_find(text(headers[_i].header), STR_LIT("s"));
    ck_assert_msg((value.p != NULL) == (headers[_i].value != NULL), "%s", headers[_i].header);
    if (value.p != NULL)
        ck_assert_msg(str_eq(value, text(headers[_i].value)), "%s", headers[_i].header);
}
END_TEST

/* ---- setting it ------------------------------------------------------------------------------ */

static const char *set(const char *mount, bool https, const char *value)
{
    static char out[RESP_HEAD_MAX];
    struct buf buf = {0};
    struct resp r;
    resp_init(&r, &buf, 1, false);
    resp_start(&r, 200);
    size_t from = buf.len;
    cookie_set(&r, text(mount), https, value, 7776000);
    ck_assert(!r.failed);
    memcpy(out, buf.data + from, buf.len - from);
    out[buf.len - from] = 0;
    buf_free(&buf);
    return out;
}

START_TEST(a_cookie_is_set_and_forgotten)
{
    ck_assert_str_eq(set("", false, "v"), "Set-Cookie: hanji_session=v; Path=/; Max-Age=7776000; HttpOnly; SameSite=Lax\r\n");
    ck_assert_str_eq(set("/h", true, "v"), "Set-Cookie: __Host-hanji_session_2fh=v; Path=/; Max-Age=7776000; HttpOnly;"
                                           " SameSite=Lax; Secure\r\n");
    ck_assert_str_eq(set("", false, NULL), "Set-Cookie: hanji_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax\r\n");
}
END_TEST

START_TEST(the_longest_fits)
{
    char mount[2000], value[COOKIE_VALUE_MAX + 1];
    memset(mount, '/', sizeof mount);
    mount[sizeof mount - 1] = 0;
    memset(value, 'v', sizeof value);
    value[COOKIE_VALUE_MAX] = 0;
    const char *line = set(mount, true, value);
    ck_assert_ptr_nonnull(strstr(line, value));
    ck_assert_ptr_nonnull(strstr(line, "; Path=/; Max-Age=7776000; HttpOnly; SameSite=Lax; Secure\r\n"));
}
END_TEST

/* ---- where a request comes from -------------------------------------------------------------- */

static const struct {
    const char *https, *host, *site, *origin, *referer;
    enum origin is;
} origins[] = {
    {NULL, "h", "same-origin", NULL, NULL, ORIGIN_SAME},
    {NULL, "h", "none", "http://x", NULL, ORIGIN_SAME},
    {NULL, "h", "same-site", "http://h", "http://h/", ORIGIN_OTHER},
    {NULL, "h", "cross-site", "http://h", "http://h/", ORIGIN_OTHER},
    {NULL, "h", "x", NULL, NULL, ORIGIN_OTHER},
    {NULL, "h", NULL, "http://h", "http://x/", ORIGIN_SAME},
    {NULL, "h", NULL, "http://H", NULL, ORIGIN_SAME},
    {NULL, "h:1", NULL, "http://h:1", NULL, ORIGIN_SAME},
    {NULL, "h", NULL, "http://h:1", NULL, ORIGIN_OTHER},
    {NULL, "h:1", NULL, "http://h", NULL, ORIGIN_OTHER},
    {NULL, "h", NULL, "https://h", NULL, ORIGIN_OTHER},
    {"on", "h", NULL, "https://h", NULL, ORIGIN_SAME},
    {"on", "h", NULL, "http://h", NULL, ORIGIN_OTHER},
    {"off", "h", NULL, "http://h", NULL, ORIGIN_SAME},
    {"", "h", NULL, "http://h", NULL, ORIGIN_SAME},
    {NULL, "h", NULL, "http://h/", NULL, ORIGIN_OTHER},
    {NULL, "h", NULL, "http://hh", NULL, ORIGIN_OTHER},
    {NULL, "hh", NULL, "http://h", NULL, ORIGIN_OTHER},
    {NULL, "h", NULL, "null", NULL, ORIGIN_OTHER},
    {NULL, NULL, NULL, "http://", NULL, ORIGIN_OTHER},
    {NULL, "", NULL, "http://", NULL, ORIGIN_OTHER},
    {NULL, "", NULL, NULL, "http:///", ORIGIN_OTHER},
    {NULL, "h", NULL, NULL, "http://h", ORIGIN_SAME},
    {NULL, "h", NULL, NULL, "http://h/a?b", ORIGIN_SAME},
    {NULL, "h", NULL, NULL, "http://h.x/", ORIGIN_OTHER},
    {NULL, "h", NULL, NULL, "http://h@x/", ORIGIN_OTHER},
    {NULL, "h", NULL, NULL, "http://x/http://h/", ORIGIN_OTHER},
    {NULL, "h", NULL, NULL, "about:blank", ORIGIN_OTHER},
    {NULL, "h", NULL, NULL, NULL, ORIGIN_UNKNOWN},
    {NULL, "h", "", "", "", ORIGIN_UNKNOWN},
};

START_TEST(an_origin)
{
    struct req r = {.https = text(origins[_i].https),
                    .host = text(origins[_i].host),
                    .fetch_site = text(origins[_i].site),
                    .origin = text(origins[_i].origin),
                    .referer = text(origins[_i].referer)};
    ck_assert_int_eq(origin_of(&r), origins[_i].is);
}
END_TEST

static const struct {
    const char *next;
    bool ok;
} nexts[] = {
    {"/", true},  {"/a", true},     {"/a?b#c", true}, {"/a//b", true}, {"/%0d%0a", true},  {"", false},
    {"a", false}, {"//", false},    {"//a", false},   {"/\\a", false}, {"/a\\b", false},   {"\\\\a", false},
    {" /", false}, {"/a b", false}, {"/a\n", false},  {"/\x7f", false}, {"/\xc3\xa4", false}, {"http://a/", false},
};

START_TEST(where_a_login_may_lead)
{
    ck_assert_msg(auth_next_ok(text(nexts[_i].next)) == nexts[_i].ok, "%s", nexts[_i].next);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cookie");
    TCase *t = run_case(s, "cookie");
    tcase_add_loop_test(t, a_name, 0, COUNT(names));
    tcase_add_test(t, a_mount_without_end_is_cut);
    tcase_add_loop_test(t, a_cookie_is_found, 0, COUNT(headers));
    tcase_add_test(t, a_cookie_is_set_and_forgotten);
    tcase_add_test(t, the_longest_fits);
    t = run_case(s, "browser");
    tcase_add_loop_test(t, an_origin, 0, COUNT(origins));
    tcase_add_loop_test(t, where_a_login_may_lead, 0, COUNT(nexts));
    return run_suite(s);
}
