/* fcgi/req: which parameter becomes what, what is refused, and the memory of a round. */
#include "fcgi/req.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/records.h"
#include "tests/unit/run.h"

enum { BODY_MAX = 100 };

static struct arena arena;
static struct frame frame;

/* The request of these parameters, "NAME=value" each, the last one NULL, with a body of n bytes. */
static struct req *decode_body(const char *const *params, size_t n)
{
    static const char body[1000];
    struct buf pairs = {0}, in = {0};
    for (; *params != NULL; params++) {
        const char *equals = strchr(*params, '=');
        rec_pair(&pairs, (struct str){*params, (size_t)(equals - *params)}, (struct str){equals + 1, strlen(equals + 1)});
    }
    rec_request(&in, &pairs, body, n);
    frame_reset(&frame);
    ck_assert_int_eq(rec_feed(&frame, BODY_MAX, &in), FRAME_REQUEST);
    buf_free(&pairs);
    buf_free(&in);
    return req_decode(&arena, &frame);
}

static struct req *decode(const char *const *params)
{
    struct req *r = decode_body(params, 0);
    ck_assert_ptr_nonnull(r);
    return r;
}

#define DECODE(...) decode((const char *const[]){__VA_ARGS__, NULL})
#define GET(uri) "REQUEST_METHOD=GET", "DOCUMENT_URI=" uri

static void forget(void)
{
    arena_free(&arena);
    frame_free(&frame);
}

static void is_text(struct str s, const char *expected)
{
    if (expected == NULL) {
        ck_assert_ptr_null(s.p);
        ck_assert_uint_eq(s.n, 0);
        return;
    }
    ck_assert_ptr_nonnull(s.p);
    ck_assert_msg(str_eq(s, (struct str){expected, strlen(expected)}), "\"%.*s\" is not \"%s\"", (int)s.n, s.p, expected);
    ck_assert_int_eq(s.p[s.n], 0); /* "All text is NUL-terminated" */
}

static void is_fault(const struct req *r, unsigned status)
{
    ck_assert_uint_eq(r->fault_status, status);
    if (status != 0)
        ck_assert(r->fault != NULL && strlen(r->fault) > 10);
    else
        ck_assert_ptr_null(r->fault);
}

/* ---- fields ---------------------------------------------------------------------------------- */

START_TEST(every_parameter_has_its_field)
{
    struct req *r = DECODE("REQUEST_METHOD=GET", "DOCUMENT_URI=/m/a b", "SCRIPT_NAME=/m", "QUERY_STRING=q=1", "CONTENT_TYPE=t/x",
                           "CONTENT_LENGTH=0", "REQUEST_ID=id1", "REQUEST_URI=/other", "HTTP_AUTHORIZATION=Bearer x",
                           "HTTP_IF_MATCH=\"1\"", "HTTP_IF_NONE_MATCH=\"2\"", "HTTP_IF_MODIFIED_SINCE=m",
                           "HTTP_IF_UNMODIFIED_SINCE=u", "HTTP_ACCEPT=text/html", "HTTP_LAST_EVENT_ID=7", "HTTPS=on",
                           "HTTP_HOST=h:1", "HTTP_COOKIE=a=1", "HTTP_ORIGIN=http://h", "HTTP_SEC_FETCH_SITE=none",
                           "HTTP_REFERER=http://h/",
                           "HTTP_USER_AGENT=curl", "REMOTE_ADDR=::1", "HANJI_CHECK_URI=/x");
    is_fault(r, 0);
    ck_assert_int_eq(r->method, METHOD_GET);
    is_text(r->method_name, "GET");
    is_text(r->path, "/a b");
    is_text(r->mount, "/m");
    is_text(r->query, "q=1");
    is_text(r->content_type, "t/x");
    is_text(r->content_length, "0");
    is_text(r->request_id, "id1");
    is_text(r->authorization, "Bearer x");
    is_text(r->if_match, "\"1\"");
    is_text(r->if_none_match, "\"2\"");
    is_text(r->if_modified_since, "m");
    is_text(r->if_unmodified_since, "u");
    is_text(r->accept, "text/html");
    is_text(r->last_event_id, "7");
    is_text(r->https, "on");
    is_text(r->host, "h:1");
    is_text(r->cookie, "a=1");
    is_text(r->origin, "http://h");
    is_text(r->fetch_site, "none");
    is_text(r->referer, "http://h/");
    is_text(r->user_agent, "curl");
    is_text(r->remote_addr, "::1");
    is_text(r->check_uri, "/x");
    ck_assert_ptr_eq(r->frame, &frame);
    ck_assert(!r->operator_);
    forget();
}
END_TEST

START_TEST(absent_parameters_are_absent)
{
    struct req *r = DECODE(GET("/a"));
    is_fault(r, 0);
    is_text(r->mount, "");
    is_text(r->query, NULL);
    is_text(r->content_type, NULL);
    is_text(r->content_length, NULL);
    is_text(r->request_id, NULL);
    is_text(r->authorization, NULL);
    is_text(r->if_match, NULL);
    is_text(r->if_none_match, NULL);
    is_text(r->if_modified_since, NULL);
    is_text(r->if_unmodified_since, NULL);
    is_text(r->accept, NULL);
    is_text(r->last_event_id, NULL);
    forget();
}
END_TEST

/* An If-None-Match that is there and empty is not one that is absent. */
START_TEST(empty_parameters_are_there)
{
    struct req *r = DECODE(GET("/a"), "HTTP_IF_MATCH=", "QUERY_STRING=", "HTTP_AUTHORIZATION=");
    is_fault(r, 0);
    is_text(r->if_match, "");
    is_text(r->query, "");
    is_text(r->authorization, "");
    forget();
}
END_TEST

/* Names that only look like those that are read. */
START_TEST(other_parameters_change_nothing)
{
    struct req *r = DECODE(GET("/a"), "request_method=PUT", "REQUEST_METHOD2=PUT", "REQUEST_METHO=PUT", "document_uri=/b",
                           "HTTP_DOCUMENT_URI=/b", "HTTP_SCRIPT_NAME=/b", "HTTP_PROXY=http://x", "HTTP_CONTENT_LENGTH=7",
                           "HTTP_REQUEST_METHOD=PUT", "AUTHORIZATION=Bearer x", "PATH_INFO=/b", "HTTP_IF_MATCH_=\"1\"");
    is_fault(r, 0);
    ck_assert_int_eq(r->method, METHOD_GET);
    is_text(r->path, "/a");
    is_text(r->authorization, NULL);
    is_text(r->if_match, NULL);
    forget();
}
END_TEST

static const struct {
    const char *name;
    enum method method;
} methods[] = {
    {"GET", METHOD_GET},       {"HEAD", METHOD_HEAD},     {"PUT", METHOD_PUT},        {"DELETE", METHOD_DELETE},
    {"POST", METHOD_POST},     {"PATCH", METHOD_PATCH},   {"get", METHOD_OTHER},      {"Get", METHOD_OTHER},
    {"GETX", METHOD_OTHER},    {"GE", METHOD_OTHER},      {" GET", METHOD_OTHER},     {"GET ", METHOD_OTHER},
    {"OPTIONS", METHOD_OTHER}, {"PROPFIND", METHOD_OTHER}, {"HEADER", METHOD_OTHER},
};

START_TEST(methods_are_told_apart)
{
    char param[64];
    snprintf(param, sizeof param, "REQUEST_METHOD=%s", methods[_i].name);
    struct req *r = DECODE(param, "DOCUMENT_URI=/a");
    is_fault(r, 0);
    ck_assert_int_eq(r->method, methods[_i].method);
    is_text(r->method_name, methods[_i].name);
    forget();
}
END_TEST

START_TEST(a_request_needs_a_method)
{
    is_fault(DECODE("DOCUMENT_URI=/a"), 400);
    is_fault(DECODE("REQUEST_METHOD=", "DOCUMENT_URI=/a"), 400);
    forget();
}
END_TEST

/* ---- repeated parameters --------------------------------------------------------------------- */

static const char *const once_only[] = {
    "REQUEST_METHOD=GET", "DOCUMENT_URI=/a", "REQUEST_URI=/a", "SCRIPT_NAME=",  "QUERY_STRING=a",
    "CONTENT_TYPE=a/b",   "CONTENT_LENGTH=0", "HTTP_AUTHORIZATION=Bearer x", "HTTP_IF_MODIFIED_SINCE=a",
    "HTTP_IF_UNMODIFIED_SINCE=a", "HTTPS=on", "HTTP_HOST=h", "HTTP_ORIGIN=http://h", "HTTP_SEC_FETCH_SITE=none",
    "HTTP_REFERER=http://h/", "REMOTE_ADDR=::1", "HANJI_CHECK_URI=/x",
};

/* Also when both say the same: whoever stands between here and the client may have read only one. */
START_TEST(what_may_stand_once_is_refused_twice)
{
    is_fault(DECODE(GET("/a"), once_only[_i], once_only[_i]), 400);
    forget();
}
END_TEST

START_TEST(an_empty_first_value_does_not_hide_a_second)
{
    is_fault(DECODE(GET("/a"), "HTTP_AUTHORIZATION=", "HTTP_AUTHORIZATION=Bearer x"), 400);
    is_fault(DECODE(GET("/a"), "CONTENT_LENGTH=", "CONTENT_LENGTH=0"), 400);
    forget();
}
END_TEST

START_TEST(lists_are_joined)
{
    struct req *r = DECODE(GET("/a"), "HTTP_IF_MATCH=\"1\"", "HTTP_IF_NONE_MATCH=\"7\"", "HTTP_IF_MATCH=\"2\", \"3\"",
                           "HTTP_ACCEPT=a/b", "HTTP_IF_NONE_MATCH=*", "HTTP_ACCEPT=", "HTTP_ACCEPT=c/d");
    is_fault(r, 0);
    is_text(r->if_match, "\"1\", \"2\", \"3\"");
    is_text(r->if_none_match, "\"7\", *");
    forget();
}
END_TEST

START_TEST(cookies_are_joined_with_semicolons)
{
    struct req *r = DECODE(GET("/a"), "HTTP_COOKIE=a=1", "HTTP_COOKIE=b=2; c=3", "HTTP_COOKIE=", "HTTP_COOKIE=d=4");
    is_fault(r, 0);
    is_text(r->cookie, "a=1; b=2; c=3; ; d=4");
}
END_TEST

START_TEST(a_copy_is_the_same_and_stands_alone)
{
    struct req *r = DECODE("REQUEST_METHOD=GET", "DOCUMENT_URI=/h/a b", "SCRIPT_NAME=/h/", "QUERY_STRING=", "HTTP_COOKIE=a=1",
                           "HTTP_AUTHORIZATION=Basic x", "HTTP_ACCEPT=text/html", "REMOTE_ADDR=::1");
    struct req *copy = req_copy(r);
    arena_free(&arena);
    ck_assert_ptr_nonnull(copy);
    ck_assert_int_eq(copy->method, METHOD_GET);
    is_text(copy->path, "/a b");
    is_text(copy->mount, "/h");
    is_text(copy->query, "");
    is_text(copy->cookie, "a=1");
    is_text(copy->authorization, "Basic x");
    is_text(copy->accept, "text/html");
    is_text(copy->remote_addr, "::1");
    is_text(copy->origin, NULL);
    is_fault(copy, 0);
    free(copy);
}
END_TEST

/* nginx's auth_request sends the length of a body that it keeps. */
START_TEST(a_question_has_no_body)
{
    is_fault(DECODE("REQUEST_METHOD=POST", "DOCUMENT_URI=/a", "CONTENT_LENGTH=5", "HANJI_CHECK_URI=/x"), 0);
    is_fault(DECODE("REQUEST_METHOD=POST", "DOCUMENT_URI=/a", "CONTENT_LENGTH=5", "HANJI_CHECK_URI="), 400);
    static const char *const params[] = {"REQUEST_METHOD=POST", "DOCUMENT_URI=/a", "CONTENT_LENGTH=5", "HANJI_CHECK_URI=/x",
                                         NULL};
    is_fault(decode_body(params, 4), 400);
}
END_TEST

START_TEST(of_the_rest_the_first_counts)
{
    struct req *r = DECODE(GET("/a"), "REQUEST_ID=one", "REQUEST_ID=two");
    is_fault(r, 0);
    is_text(r->request_id, "one");
    forget();
}
END_TEST

/* ---- paths and mounts ------------------------------------------------------------------------ */

static const struct {
    const char *mount; /* SCRIPT_NAME, NULL: absent */
    const char *uri;   /* DOCUMENT_URI */
    const char *path;  /* NULL: 404 */
} mounts[] = {
    {NULL, "/", "/"},
    {NULL, "/a/b", "/a/b"},
    {"", "/a", "/a"},
    {"/", "/a", "/a"},
    {"/h", "/h", "/"},
    {"/h", "/h/", "/"},
    {"/h", "/h/a", "/a"},
    {"/h/", "/h/a", "/a"},
    {"/h/", "/h", "/"},
    {"/h", "/h/h/a", "/h/a"},
    {"/a/b", "/a/b/c", "/c"},
    {"/\xc3\xa9", "/\xc3\xa9/a", "/a"},
    {"/h", "/", NULL},
    {"/h", "/a", NULL},
    {"/h", "/hh/a", NULL},
    {"/h", "/hx", NULL},
    {"/h", "/H/a", NULL},
    {"/h/", "/hh/a", NULL},
    {"/h/a", "/h/b", NULL},
    {"/h/a", "/h", NULL},
    {"h", "/h/a", NULL},
    {"/h//", "/h/a", NULL},
    {"/..", "/a", NULL},
};

START_TEST(a_path_below_its_mount)
{
    char script[64], uri[64];
    snprintf(uri, sizeof uri, "DOCUMENT_URI=%s", mounts[_i].uri);
    snprintf(script, sizeof script, "SCRIPT_NAME=%s", mounts[_i].mount ? mounts[_i].mount : "");
    struct req *r = mounts[_i].mount ? DECODE("REQUEST_METHOD=GET", uri, script) : DECODE("REQUEST_METHOD=GET", uri);
    is_fault(r, mounts[_i].path ? 0 : 404);
    if (mounts[_i].path != NULL)
        is_text(r->path, mounts[_i].path);
    ck_assert(str_starts(r->path, STR_LIT("/")));
    ck_assert(r->mount.n == 0 || r->mount.p[r->mount.n - 1] != '/' || mounts[_i].path == NULL);
    forget();
}
END_TEST

START_TEST(a_mount_has_no_slash_at_its_end)
{
    is_text(DECODE(GET("/h/a"), "SCRIPT_NAME=/h")->mount, "/h");
    is_text(DECODE(GET("/h/a"), "SCRIPT_NAME=/h/")->mount, "/h");
    is_text(DECODE(GET("/h/a"), "SCRIPT_NAME=/")->mount, "");
    forget();
}
END_TEST

static const char *const bad_paths[] = {
    "DOCUMENT_URI=a",      "DOCUMENT_URI=a/b",    "DOCUMENT_URI=//",     "DOCUMENT_URI=/a//b", "DOCUMENT_URI=/a/..",
    "DOCUMENT_URI=/../a",  "DOCUMENT_URI=/./a",   "DOCUMENT_URI=/a\r\n", "DOCUMENT_URI=/\x7f", "DOCUMENT_URI=/a\\b",
    "DOCUMENT_URI=/\xff",  "DOCUMENT_URI=*",      "DOCUMENT_URI= /a",    "DOCUMENT_URI=",      "REQUEST_URI=",
    "REQUEST_URI=a",       "REQUEST_URI=/%",      "REQUEST_URI=/%00",    "REQUEST_URI=/..",    "REQUEST_URI=/%2e%2e/a",
    "REQUEST_URI=/a%0ab",  "REQUEST_URI=/a%5cb",  "REQUEST_URI=/%ff",    "REQUEST_URI=*",      "REQUEST_URI=?a",
    "REQUEST_URI=http://h/a", "PATH_INFO=/a",
};

START_TEST(a_path_that_is_malformed)
{
    struct req *r = DECODE("REQUEST_METHOD=GET", bad_paths[_i]);
    is_fault(r, 400);
    is_text(r->path, "/");
    forget();
}
END_TEST

START_TEST(the_raw_target_stands_in_for_a_missing_uri)
{
    is_text(DECODE("REQUEST_METHOD=GET", "REQUEST_URI=/a/./b%2fc/../d%20e?x=/../y")->path, "/a/b/d e");
    is_text(DECODE("REQUEST_METHOD=GET", "REQUEST_URI=/a", "DOCUMENT_URI=")->path, "/a");
    is_text(DECODE("REQUEST_METHOD=GET", "REQUEST_URI=//h//a", "SCRIPT_NAME=/h")->path, "/a");
    is_text(DECODE("REQUEST_METHOD=GET", "REQUEST_URI=/a/", "SCRIPT_NAME=")->path, "/a/");
    forget();
}
END_TEST

START_TEST(the_uri_goes_before_the_raw_target)
{
    struct req *r = DECODE("REQUEST_METHOD=GET", "REQUEST_URI=/b", "DOCUMENT_URI=/a");
    is_fault(r, 0);
    is_text(r->path, "/a");
    r = DECODE("REQUEST_METHOD=GET", "DOCUMENT_URI=/a", "REQUEST_URI=/%");
    is_fault(r, 0);
    is_text(r->path, "/a");
    forget();
}
END_TEST

/* DOCUMENT_URI is decoded already: a second time would be one too many. */
START_TEST(the_uri_is_not_decoded_again)
{
    is_text(DECODE(GET("/a%2Fb%20c"))->path, "/a%2Fb%20c");
    is_text(DECODE(GET("/%2e%2e/a?b#c"))->path, "/%2e%2e/a?b#c");
    forget();
}
END_TEST

/* ---- bodies ---------------------------------------------------------------------------------- */

static const struct {
    const char *length; /* CONTENT_LENGTH, NULL: absent */
    size_t n;
    unsigned status;
} bodies[] = {
    {NULL, 0, 0},
    {NULL, 5, 0},
    {"", 0, 0},
    {"", 5, 0},
    {"0", 0, 0},
    {"5", 5, 0},
    {"005", 5, 0},
    {"100", BODY_MAX, 0},
    {"0000000000000000005", 5, 0},
    {"0", 5, 400},
    {"5", 0, 400},
    {"4", 5, 400},
    {"6", 5, 400},
    {"18446744073709551621", 5, 400}, /* 2^64 + 5 */
    {"4294967301", 5, 400},           /* 2^32 + 5 */
    {"9999999999999999999", 5, 400},
    {"00000000000000000005", 5, 400}, /* 20 digits */
    {"-5", 5, 400},
    {"+5", 5, 400},
    {" 5", 5, 400},
    {"5 ", 5, 400},
    {"0x5", 5, 400},
    {"5.0", 5, 400},
    {"5,5", 5, 400},
    {"five", 5, 400},
    {"\xb5", 5, 400},
    /* too large: the limit is the answer, whether a length was declared or not */
    {"101", BODY_MAX + 1, 413},
    {NULL, BODY_MAX + 1, 413},
    {"", BODY_MAX + 1, 413},
};

START_TEST(the_declared_length_must_be_true)
{
    char length[64];
    snprintf(length, sizeof length, "CONTENT_LENGTH=%s", bodies[_i].length ? bodies[_i].length : "");
    const char *params[] = {"REQUEST_METHOD=PUT", "DOCUMENT_URI=/a", bodies[_i].length ? length : NULL, NULL};
    is_fault(decode_body(params, bodies[_i].n), bodies[_i].status);
    forget();
}
END_TEST

START_TEST(no_memory_for_a_body_is_503)
{
    const char *params[] = {"REQUEST_METHOD=PUT", "DOCUMENT_URI=/a", "CONTENT_LENGTH=50", NULL};
    frame_set_budget(10);
    is_fault(decode_body(params, 50), 503);
    forget();
}
END_TEST

START_TEST(the_first_fault_is_told)
{
    const char *params[] = {"REQUEST_METHOD=PUT", "DOCUMENT_URI=/../a", "CONTENT_LENGTH=7", NULL};
    struct req *r = decode_body(params, BODY_MAX + 1);
    is_fault(r, 400);
    ck_assert_ptr_nonnull(strstr(r->fault, "path"));
    forget();
}
END_TEST

START_TEST(without_any_parameter_the_connection_ends)
{
    const char *params[] = {NULL};
    ck_assert_ptr_null(decode_body(params, 0));
    forget();
}
END_TEST

/* ---- the memory of a round ------------------------------------------------------------------- */

START_TEST(arena_memory_is_apart_and_aligned)
{
    struct arena a = {0};
    unsigned char *p[400];
    for (size_t i = 0; i < COUNT(p); i++) {
        p[i] = arena_alloc(&a, i);
        ck_assert_ptr_nonnull(p[i]);
        ck_assert_uint_eq((uintptr_t)p[i] % _Alignof(max_align_t), 0);
        memset(p[i], (int)i, i);
    }
    for (size_t i = 0; i < COUNT(p); i++)
        for (size_t k = 0; k < i; k++)
            ck_assert_uint_eq(p[i][k], (unsigned char)i);
    arena_free(&a);
}
END_TEST

START_TEST(an_arena_takes_what_is_larger_than_a_block)
{
    struct arena a = {0};
    memset(arena_alloc(&a, 100), 1, 100);
    memset(arena_alloc(&a, 200000), 2, 200000);
    memset(arena_alloc(&a, 100), 3, 100);
    arena_reset(&a);
    ck_assert_ptr_nonnull(arena_alloc(&a, 10));
    arena_free(&a);
    arena_free(&a);
}
END_TEST

START_TEST(an_arena_keeps_one_block)
{
    struct arena a = {0};
    void *first = arena_alloc(&a, 100);
    arena_reset(&a);
    for (int round = 0; round < 1000; round++) {
        ck_assert_ptr_eq(arena_alloc(&a, 100), first);
        ck_assert_ptr_nonnull(arena_alloc(&a, 20000));
        arena_reset(&a);
    }
    ck_assert_ptr_nonnull(arena_alloc(&a, 20000));
    ck_assert_ptr_nonnull(arena_alloc(&a, 20000));
    ck_assert_ptr_nonnull(arena_alloc(&a, 20000));
    arena_reset(&a);
    ck_assert(a.used == 0);
    arena_free(&a);
}
END_TEST

START_TEST(an_empty_arena)
{
    struct arena a = {0};
    arena_reset(&a);
    arena_free(&a);
    if (!SANITIZED) /* they end the program */
        ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX / 2));
    arena_free(&a);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("req");
    TCase *t = run_case(s, "fields");
    tcase_add_test(t, every_parameter_has_its_field);
    tcase_add_test(t, absent_parameters_are_absent);
    tcase_add_test(t, empty_parameters_are_there);
    tcase_add_test(t, other_parameters_change_nothing);
    tcase_add_loop_test(t, methods_are_told_apart, 0, COUNT(methods));
    tcase_add_test(t, a_request_needs_a_method);
    t = run_case(s, "repeated");
    tcase_add_loop_test(t, what_may_stand_once_is_refused_twice, 0, COUNT(once_only));
    tcase_add_test(t, an_empty_first_value_does_not_hide_a_second);
    tcase_add_test(t, lists_are_joined);
    tcase_add_test(t, cookies_are_joined_with_semicolons);
    tcase_add_test(t, a_copy_is_the_same_and_stands_alone);
    tcase_add_test(t, a_question_has_no_body);
    tcase_add_test(t, of_the_rest_the_first_counts);
    t = run_case(s, "path");
    tcase_add_loop_test(t, a_path_below_its_mount, 0, COUNT(mounts));
    tcase_add_test(t, a_mount_has_no_slash_at_its_end);
    tcase_add_loop_test(t, a_path_that_is_malformed, 0, COUNT(bad_paths));
    tcase_add_test(t, the_raw_target_stands_in_for_a_missing_uri);
    tcase_add_test(t, the_uri_goes_before_the_raw_target);
    tcase_add_test(t, the_uri_is_not_decoded_again);
    t = run_case(s, "body");
    tcase_add_loop_test(t, the_declared_length_must_be_true, 0, COUNT(bodies));
    tcase_add_test(t, no_memory_for_a_body_is_503);
    tcase_add_test(t, the_first_fault_is_told);
    tcase_add_test(t, without_any_parameter_the_connection_ends);
    t = run_case(s, "arena");
    tcase_add_test(t, arena_memory_is_apart_and_aligned);
    tcase_add_test(t, an_arena_takes_what_is_larger_than_a_block);
    tcase_add_test(t, an_arena_keeps_one_block);
    tcase_add_test(t, an_empty_arena);
    return run_suite(s);
}
