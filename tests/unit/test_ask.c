/* handlers/ask: the parameters of the change feed, and what a credential must cover for a prefix. */
#include "handlers/ask.h"

#include <stdio.h>
#include <string.h>

#include "handlers/store.h"
#include "tests/unit/tdb.h"

static struct store store;
static struct session session = {.store = &store};
static struct buf out;
static struct resp resp;
static struct ask ask;

static struct str text(const char *s)
{
    return s != NULL ? (struct str){s, strlen(s)} : (struct str){NULL, 0};
}

/* 0 when it was taken, else the status that was answered. */
static unsigned take(const char *query, const char *accept, const char *last)
{
    struct req req = {.query = text(query), .accept = text(accept), .last_event_id = text(last), .request_id = STR_LIT("")};
    struct call call = {.req = &req, .resp = &resp, .thread = &session};
    out.len = 0;
    resp_init(&resp, &out, 1, false);
    memset(&ask, 0xee, sizeof ask);
    return ask_take(&call, &ask) ? 0 : resp.status;
}

static void forget(void)
{
    buf_free(&out);
    buf_free(&session.text);
    buf_free(&session.value);
}

START_TEST(nothing_said)
{
    ck_assert_uint_eq(take(NULL, NULL, NULL), 0);
    ck_assert_uint_eq(ask.since, 0);
    ck_assert(!ask.now && !ask.stream);
    ck_assert_uint_eq(ask.limit, 100);
    ck_assert_uint_eq(ask.wait_s, 0);
    ck_assert_uint_eq(ask.prefix_len, 0);
}
END_TEST

START_TEST(everything_said)
{
    ck_assert_uint_eq(take("since=7&limit=1000&wait=60&prefix=a/%C3%A4+b&other=x", "text/event-stream", NULL), 0);
    ck_assert_uint_eq(ask.since, 7);
    ck_assert(ask.stream && !ask.now);
    ck_assert_uint_eq(ask.limit, 1000);
    ck_assert_uint_eq(ask.wait_s, 60);
    ck_assert_uint_eq(ask.prefix_len, 6);
    ck_assert_mem_eq(ask.prefix, "a/\xc3\xa4 b", 6);
}
END_TEST

static const struct {
    const char *query;
    uint64_t since;
} sinces[] = {
    {"since=0", 0},
    {"since=1", 1},
    {"since=007", 7},
    {"since=9223372036854775807", INT64_MAX},
    {"since=%31", 1},
};

START_TEST(a_number_to_go_on_from)
{
    ck_assert_uint_eq(take(sinces[_i].query, NULL, NULL), 0);
    ck_assert_uint_eq(ask.since, sinces[_i].since);
    ck_assert(!ask.now);
}
END_TEST

START_TEST(the_last_event_wins_in_streams_only)
{
    ck_assert_uint_eq(take("since=5", "text/event-stream", "9"), 0);
    ck_assert_uint_eq(ask.since, 9);
    ck_assert_uint_eq(take("since=now", "text/event-stream", "9"), 0);
    ck_assert_uint_eq(ask.since, 9);
    ck_assert(!ask.now);
    ck_assert_uint_eq(take("since=now", "text/event-stream", ""), 0);
    ck_assert(ask.now);
    ck_assert_uint_eq(take("since=5", "*/*", "9"), 0);
    ck_assert_uint_eq(ask.since, 5);
    ck_assert_uint_eq(take("since=5", "*/*", "x"), 0);
    ck_assert_uint_eq(take("since=5", "text/event-stream", "x"), 400);
    ck_assert_uint_eq(take("since=x", "text/event-stream", "9"), 400);
    ck_assert_uint_eq(take("since=5", "text/event-stream", "9223372036854775808"), 400);
}
END_TEST

static const char *const wrong[] = {
    "since=", "since", "since=-1", "since=+1", "since=%2B1", "since=1.5", "since=x", "since=Now", "since=now%20", "since=%201",
    "since=9223372036854775808", "since=99999999999999999999", "since=1&since=1", "since=now&since=now", "since=%00", "since=%",
    "limit=", "limit=-1", "limit=1001", "limit=1e1", "limit=18446744073709551617", "limit=1&limit=2", "limit=%FF",
    "wait=", "wait=61", "wait=-0", "wait=1s", "wait=4294967296", "wait=1&wait=1", "wait=0x1",
    "prefix=/", "prefix=/a", "prefix=a//", "prefix=a//b", "prefix=./a", "prefix=a/../b", "prefix=../", "prefix=a%0A",
    "prefix=%00", "prefix=%5C", "prefix=%7F", "prefix=%C3", "prefix=%ED%A0%80", "prefix=a&prefix=b", "prefix=%zz",
};

START_TEST(malformed)
{
    ck_assert_msg(take(wrong[_i], NULL, NULL) == 400, "%s", wrong[_i]);
    ck_assert_msg(take(wrong[_i], "text/event-stream", NULL) == 400, "%s", wrong[_i]);
}
END_TEST

START_TEST(the_longest_prefix)
{
    char query[600] = "prefix=";
    memset(query + 7, 'x', 513);
    query[7 + 512] = 0;
    ck_assert_uint_eq(take(query, NULL, NULL), 0);
    ck_assert_uint_eq(ask.prefix_len, 512);
    query[7 + 512] = 'x';
    ck_assert_uint_eq(take(query, NULL, NULL), 400);
}
END_TEST

static const struct {
    const char *accept;
    bool stream;
} accepts[] = {
    {"text/event-stream", true},
    {"Text/EVENT-Stream", true},
    {" text/event-stream ", true},
    {"text/html, text/event-stream", true},
    {"text/html,\ttext/event-stream;q=0.001", true},
    {"text/event-stream; charset=utf-8", true},
    {"text/event-stream;q=1", true},
    {"text/event-stream;q=0.5,*/*;q=0", true},
    {"text/event-stream;q=0", false},
    {"text/event-stream ; q=0.000, text/html", false},
    {"text/event-stream;q=0,", false},
    {"text/event-strea", false},
    {"text/event-streams", false},
    {"text/event-stream+x", false},
    {"xtext/event-stream", false},
    {"application/json;x=text/event-stream", false},
    {"text/*", false},
    {"*/*", false},
    {",,,", false},
    {"", false},
    {NULL, false},
};

START_TEST(who_wants_a_stream)
{
    ck_assert_uint_eq(take(NULL, accepts[_i].accept, NULL), 0);
    ck_assert_msg(ask.stream == accepts[_i].stream, "%s", accepts[_i].accept);
}
END_TEST

/* What must be public so that everybody may ask for the prefix. */
static const struct {
    const char *public_;
    const char *prefix;
    bool allowed;
} judged[] = {
    {"a/", "a/", true},
    {"a/", "a/b", true},
    {"a/", "a/b/", true},
    {"a/", "a/b/c", true},
    {"a", "a/", true},
    {"/docs/", "", true},
    {"/docs/", "a", true},
    {"/", "", true},
    {"a/", "a", false},  /* "ab" begins so, too */
    {"a", "a", false},
    {"a", "ab", false},
    {"a/b", "a/b", false},
    {"a/b", "a/", false},
    {"a/b", "a/b/", true},
    {"a/b", "a/bc/", false},
    {"a/", "", false},
    {"a/", "b/", false},
    {"a/", "A/", false},
};

START_TEST(what_must_be_covered)
{
    struct call call = {.thread = &session};
    struct credential nobody = {.kind = CREDENTIAL_NONE};
    ck_assert(access_public(judged[_i].public_, &store.public_));
    enum access access = ask_judge(&call, &nobody, text(judged[_i].prefix), false);
    ck_assert_msg((access == ACCESS_OK) == judged[_i].allowed, "%s of %s", judged[_i].prefix, judged[_i].public_);
    buf_free(&store.public_);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ask");
    TCase *t = run_case(s, "parameters");
    tcase_add_checked_fixture(t, NULL, forget);
    tcase_add_test(t, nothing_said);
    tcase_add_test(t, everything_said);
    tcase_add_loop_test(t, a_number_to_go_on_from, 0, COUNT(sinces));
    tcase_add_test(t, the_last_event_wins_in_streams_only);
    tcase_add_loop_test(t, malformed, 0, COUNT(wrong));
    tcase_add_test(t, the_longest_prefix);
    tcase_add_loop_test(t, who_wants_a_stream, 0, COUNT(accepts));
    tcase_add_loop_test(t, what_must_be_covered, 0, COUNT(judged));
    return run_suite(s);
}
