/* handlers/access: which prefix covers which path, what a person may write, and what a credential allows. */
#include "handlers/access.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "db/token.h"
#include "handlers/store.h"
#include "seal/token.h"
#include "tests/unit/tdb.h"

/* ---- what a prefix covers -------------------------------------------------------------------- */

static const struct {
    const char *lines;
    const char *path;
    bool covered;
} covers[] = {
    /* a slash at the end: what is below */
    {"/", "/", true},
    {"/", "/status", true},
    {"/", "/docs/a/b", true},
    {"/docs/", "/docs/", true},
    {"/docs/", "/docs/a", true},
    {"/docs/notes/", "/docs/notes/", true},
    {"/docs/notes/", "/docs/notes/a/b", true},
    {"/docs/", "/docs", false},
    {"/docs/notes/", "/docs/notes", false},
    {"/docs/notes/", "/docs/note", false},
    {"/docs/notes/", "/docs/notesx/a", false},
    {"/docs/notes/", "/docs/", false},
    {"/docs/notes/", "/", false},
    {"/docs/notes/", "/docs/Notes/a", false},
    /* none: itself and what is below */
    {"/docs/notes", "/docs/notes", true},
    {"/docs/notes", "/docs/notes/", true},
    {"/docs/notes", "/docs/notes/a/b", true},
    {"/docs/notes", "/docs/notes.txt", false},
    {"/docs/notes", "/docs/notesx", false},
    {"/docs/notes", "/docs/notes2/a", false},
    {"/docs/notes", "/docs/note", false},
    {"/docs/notes", "/docs/", false},
    {"/status", "/status", true},
    {"/status", "/statusx", false},
    {"/status", "/metrics", false},
    {"/docs/a", "/docs/\xc3\xa9", false},
    {"/docs/\xc3\xa9", "/docs/\xc3\xa9/a", true},
    {"/docs/\xc3", "/docs/\xc3\xa9", false},
    /* several lines */
    {"/a/\n/b", "/a/x", true},
    {"/a/\n/b", "/b", true},
    {"/a/\n/b", "/b/x", true},
    {"/a/\n/b", "/c", false},
    {"/a/\n/b", "/a", false},
    {"/a/\n/b", "/a/\n/b", true},
    {"/x\n/", "/anything", true},
    {"/b\n", "/b", true},
    {"\n/b", "/b", true},
    /* nothing covers nothing */
    {"", "/", false},
    {"", "", false},
    {"\n", "/", false},
    {"\n\n\n", "/a", false},
    {"/a\n\n/b", "/c", false},
};

START_TEST(a_prefix_covers)
{
    struct str lines = {covers[_i].lines, strlen(covers[_i].lines)}, path = {covers[_i].path, strlen(covers[_i].path)};
    ck_assert_msg(access_covers(lines, path) == covers[_i].covered, "\"%s\" and %s", lines.p, path.p);
}
END_TEST

START_TEST(no_lines_cover_nothing)
{
    ck_assert(!access_covers((struct str){NULL, 0}, STR_LIT("/")));
}
END_TEST

/* ---- what a person writes -------------------------------------------------------------------- */

static const struct {
    const char *text;
    const char *line; /* NULL: malformed */
} prefixes[] = {
    {"/", "/"},
    {"/status", "/status"},
    {"/docs/notes/", "/docs/notes/"},
    {"notes/", "/docs/notes/"},
    {"notes", "/docs/notes"},
    {"a/b/c", "/docs/a/b/c"},
    {"", "/docs/"},
    {"a b", "/docs/a b"},
    {"\xc3\xa9/", "/docs/\xc3\xa9/"},
    {"*", "/docs/*"},
    {"%2e%2e", "/docs/%2e%2e"},
    {"//", NULL},
    {"//a", NULL},
    {"/a//b", NULL},
    {"a//", NULL},
    {".", NULL},
    {"..", NULL},
    {"../status", NULL},
    {"a/../b", NULL},
    {"/docs/..", NULL},
    {"./a", NULL},
    {"a\nb", NULL},
    {"a\n/", NULL},
    {"\n", NULL},
    {"a\tb", NULL},
    {"a\\b", NULL},
    {"a\x7f", NULL},
    {"\xff", NULL},
    {"a\xc3", NULL},
};

START_TEST(a_prefix_is_written)
{
    struct buf out = {0};
    bool ok = access_add_prefix(&out, (struct str){prefixes[_i].text, strlen(prefixes[_i].text)});
    ck_assert_msg(ok == (prefixes[_i].line != NULL), "%s", prefixes[_i].text);
    if (ok) {
        ck_assert_uint_eq(out.len, strlen(prefixes[_i].line));
        ck_assert_mem_eq(out.data, prefixes[_i].line, out.len);
    }
    buf_free(&out);
}
END_TEST

START_TEST(prefixes_are_lines)
{
    struct buf out = {0};
    ck_assert(access_add_prefix(&out, STR_LIT("a/")));
    ck_assert(access_add_prefix(&out, STR_LIT("")));
    ck_assert(access_add_prefix(&out, STR_LIT("/status")));
    ck_assert_uint_eq(out.len, 23);
    ck_assert_mem_eq(out.data, "/docs/a/\n/docs/\n/status", 23);
    buf_free(&out);
}
END_TEST

START_TEST(prefixes_have_a_cap)
{
    struct buf out = {0};
    int n = 0;
    while (n < 10000 && access_add_prefix(&out, STR_LIT("some/prefix/")))
        n++;
    ck_assert_int_eq(n, DB_TOKEN_PREFIXES_MAX / 19);
    ck_assert_uint_le(out.len, DB_TOKEN_PREFIXES_MAX);
    buf_free(&out);
}
END_TEST

static const struct {
    const char *list;
    const char *lines; /* NULL: malformed */
} lists[] = {
    {"", ""},
    {" ", ""},
    {",", ""},
    {" , ,, ", ""},
    {"a/", "/docs/a/"},
    {"a/,b", "/docs/a/\n/docs/b"},
    {" a/ , \tb c\t ,", "/docs/a/\n/docs/b c"},
    {"/status, a", "/status\n/docs/a"},
    {"a,..", NULL},
    {"a//b", NULL},
    {"a,/../,b", NULL},
    {"a\\b", NULL},
};

START_TEST(public_prefixes)
{
    struct buf out = {0};
    bool ok = access_public(lists[_i].list, &out);
    ck_assert_msg(ok == (lists[_i].lines != NULL), "%s", lists[_i].list);
    if (ok) {
        ck_assert_uint_eq(out.len, strlen(lists[_i].lines));
        ck_assert_mem_eq(out.len > 0 ? (char *)out.data : "", lists[_i].lines, out.len);
    }
    buf_free(&out);
}
END_TEST

/* ---- what a credential allows ---------------------------------------------------------------- */

enum { NOW = 1000000 };

static char good[SEAL_TOKEN_LEN + 1], expired[SEAL_TOKEN_LEN + 1], unknown[SEAL_TOKEN_LEN + 1];
static struct store store;
static struct session session = {.store = &store};

static struct db_op *token_op(const char *name, char *token, const char *read, const char *write, int64_t expires)
{
    unsigned char hash[SEAL_TOKEN_HASH_BYTES];
    struct db_op *op = db_op_new(DB_OP_TOKEN_NEW, 500);
    seal_token_new(token);
    ck_assert(seal_token_hash(token, SEAL_TOKEN_LEN, hash));
    db_op_copy(op, 0, DB_VALUE_TEXT, name, strlen(name));
    db_op_copy(op, 1, DB_VALUE_BLOB, hash, sizeof hash);
    db_op_copy(op, 2, DB_VALUE_TEXT, read, strlen(read));
    db_op_copy(op, 3, DB_VALUE_TEXT, write, strlen(write));
    db_op_int(op, 4, expires);
    return op;
}

static struct db_conn conn;

static void open_session(void)
{
    tdb_init();
    ck_assert(seal_init());
    tdb_open(&conn);
    struct db_op *list = tdb_list(token_op("good", good, "/docs/r/\n/docs/w/\n/status", "/docs/w/", 0),
                                  token_op("expired", expired, "/", "/", NOW), NULL);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    tdb_free(list);
    seal_token_new(unknown);
    ck_assert(access_public("site/", &store.public_));
    ck_assert_int_eq(db_reader_open(&tdb_config, &session.reader, &tdb_error), DB_OK);
}

static void close_session(void)
{
    db_reader_close(session.reader);
    buf_free(&store.public_);
    db_conn_close(&conn);
}

static enum access check_at(const char *authorization, const char *path, bool write, int64_t now_s)
{
    struct req req = {.path = {path, strlen(path)}};
    struct call call = {.req = &req, .thread = &session, .now_s = now_s};
    if (authorization != NULL)
        req.authorization = (struct str){authorization, strlen(authorization)};
    enum access access = access_check(&call, write);
    if (session.snapshot)
        db_reader_end(session.reader);
    session.snapshot = false;
    return access;
}

static enum access check(const char *authorization, const char *path, bool write)
{
    return check_at(authorization, path, write, NOW);
}

static const char *bearer(const char *token)
{
    static char text[200];
    snprintf(text, sizeof text, "Bearer %s", token);
    return text;
}

START_TEST(without_a_credential)
{
    ck_assert_int_eq(check(NULL, "/docs/site/a", false), ACCESS_OK);
    ck_assert_int_eq(check(NULL, "/docs/site/", false), ACCESS_OK);
    ck_assert_int_eq(check(NULL, "/docs/site", false), ACCESS_NO_CREDENTIAL);
    ck_assert_int_eq(check(NULL, "/docs/site2/a", false), ACCESS_NO_CREDENTIAL);
    ck_assert_int_eq(check(NULL, "/docs/r/a", false), ACCESS_NO_CREDENTIAL);
    ck_assert_int_eq(check(NULL, "/docs/", false), ACCESS_NO_CREDENTIAL);
    ck_assert_int_eq(check(NULL, "/status", false), ACCESS_NO_CREDENTIAL);
    ck_assert_int_eq(check("", "/docs/r/a", false), ACCESS_NO_CREDENTIAL);
}
END_TEST

START_TEST(what_is_public_is_not_writable)
{
    ck_assert_int_eq(check(NULL, "/docs/site/a", true), ACCESS_NO_CREDENTIAL);
    ck_assert_int_eq(check(bearer(good), "/docs/site/a", true), ACCESS_FORBIDDEN);
    ck_assert_int_eq(check(bearer(unknown), "/docs/site/a", true), ACCESS_BAD_CREDENTIAL);
}
END_TEST

START_TEST(a_token_reads_and_writes_where_it_may)
{
    ck_assert_int_eq(check(bearer(good), "/docs/r/a", false), ACCESS_OK);
    ck_assert_int_eq(check(bearer(good), "/docs/r/", false), ACCESS_OK);
    ck_assert_int_eq(check(bearer(good), "/docs/w/a", false), ACCESS_OK);
    ck_assert_int_eq(check(bearer(good), "/docs/w/a", true), ACCESS_OK);
    ck_assert_int_eq(check(bearer(good), "/status", false), ACCESS_OK);
    ck_assert_int_eq(check(bearer(good), "/docs/site/a", false), ACCESS_OK);
    ck_assert_int_eq(check(bearer(good), "/docs/r/a", true), ACCESS_FORBIDDEN);
    ck_assert_int_eq(check(bearer(good), "/docs/", false), ACCESS_FORBIDDEN);
    ck_assert_int_eq(check(bearer(good), "/docs/r", false), ACCESS_FORBIDDEN);
    ck_assert_int_eq(check(bearer(good), "/docs/x/a", false), ACCESS_FORBIDDEN);
    ck_assert_int_eq(check(bearer(good), "/metrics", false), ACCESS_FORBIDDEN);
}
END_TEST

START_TEST(a_token_expires)
{
    ck_assert_int_eq(check_at(bearer(expired), "/docs/a", false, NOW - 1), ACCESS_OK);
    ck_assert_int_eq(check_at(bearer(expired), "/docs/a", true, NOW - 1), ACCESS_OK);
    ck_assert_int_eq(check_at(bearer(expired), "/docs/a", false, NOW), ACCESS_BAD_CREDENTIAL);
    ck_assert_int_eq(check_at(bearer(expired), "/docs/a", false, NOW + 1), ACCESS_BAD_CREDENTIAL);
}
END_TEST

START_TEST(a_revoked_token_is_refused_in_the_next_round)
{
    struct db_op *op = db_op_new(DB_OP_TOKEN_REVOKE, 4);
    ck_assert_int_eq(check(bearer(good), "/docs/r/a", false), ACCESS_OK);
    db_op_copy(op, 0, DB_VALUE_TEXT, "good", 4);
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    tdb_free(op);
    ck_assert_int_eq(check(bearer(good), "/docs/r/a", false), ACCESS_BAD_CREDENTIAL);
}
END_TEST

START_TEST(the_name_of_the_scheme_has_no_case)
{
    static const char *const schemes[] = {"Bearer ", "bearer ", "BEARER ", "bEaReR   "};
    for (size_t i = 0; i < COUNT(schemes); i++) {
        char text[100];
        snprintf(text, sizeof text, "%s%s ", schemes[i], good);
        ck_assert_int_eq(check(text, "/docs/r/a", false), ACCESS_OK);
    }
}
END_TEST

/* A credential that is wrong is told so, also where none was needed. */
START_TEST(headers_that_carry_no_token)
{
    static const char *const formats[] = {
        "%s", "Bearer", "Bearer ", "Bearer  ", "Bearer%s", "Bearer\t%s", "Basic %s", "Token %s", " Bearer %s", "Bearer %sx",
        "Bearer x%s", "Bearer \"%s\"", "Bearer %s, Bearer x", "Bearer x %s", "Bearer, %s", "Bear %s", "Bearers %s",
    };
    for (size_t i = 0; i < COUNT(formats); i++) {
        char text[300];
        const char *mark = strstr(formats[i], "%s");
        snprintf(text, sizeof text, "%.*s%s%s", mark ? (int)(mark - formats[i]) : (int)strlen(formats[i]), formats[i],
                 mark ? good : "", mark ? mark + 2 : "");
        ck_assert_msg(check(text, "/docs/r/a", false) == ACCESS_BAD_CREDENTIAL, "%s", text);
        ck_assert_msg(check(text, "/docs/site/a", false) == ACCESS_BAD_CREDENTIAL, "%s", text);
        ck_assert_msg(check(text, "/docs/w/a", true) == ACCESS_BAD_CREDENTIAL, "%s", text);
    }
}
END_TEST

/* ---- people ---------------------------------------------------------------------------------- */

static struct conf conf = {.session_idle_ms = 1000 * 1000};
static char cookie[SEAL_SESSION_LEN + 32];
static int64_t now_s; /* sessions are begun by the real clock */

/* User 1, who may read /docs/r/ and write /docs/w/, and a session for 5000 s. */
static void log_in(void)
{
    unsigned char hash[SEAL_TOKEN_HASH_BYTES];
    struct db_op *user = db_op_new(DB_OP_USER_NEW, 200), *op = db_op_new(DB_OP_SESSION_NEW, 200);
    static const char *const values[] = {"alice", "hash", "/docs/r/", "/docs/w/"};
    for (int i = 0; i < 4; i++)
        db_op_copy(user, i, DB_VALUE_TEXT, values[i], strlen(values[i]));
    now_s = time(NULL);
    store.conf = &conf;
    memcpy(cookie, "hanji_session=", 14);
    seal_session_new(cookie + 14);
    ck_assert(seal_session_hash(cookie + 14, SEAL_SESSION_LEN, hash));
    db_op_copy(op, 0, DB_VALUE_BLOB, hash, sizeof hash);
    db_op_int(op, 1, 1);
    db_op_copy(op, 2, DB_VALUE_TEXT, "hash", 4);
    db_op_int(op, 3, now_s + 5000);
    db_op_copy(op, 4, DB_VALUE_TEXT, "", 0);
    ck_assert_int_eq(tdb_burst(&conn, tdb_list(user, op, NULL)), DB_OK);
    ck_assert_int_eq(user->result, DB_OK);
    ck_assert_int_eq(op->result, DB_OK);
    tdb_free(user);
}

/* With the cookie, by a method, from where the browser says (NULL: it does not). */
static enum access visit(const char *path, enum method method, const char *from, int64_t at_s)
{
    struct req req = {.path = {path, strlen(path)}, .method = method, .cookie = {cookie, strlen(cookie)}};
    struct call call = {.req = &req, .thread = &session, .now_s = at_s};
    if (from != NULL)
        req.fetch_site = (struct str){from, strlen(from)};
    enum access access = access_check(&call, method != METHOD_GET && method != METHOD_HEAD);
    if (session.snapshot)
        db_reader_end(session.reader);
    session.snapshot = false;
    return access;
}

START_TEST(a_session_reads_and_writes_where_its_user_may)
{
    log_in();
    ck_assert_int_eq(visit("/docs/r/a", METHOD_GET, NULL, now_s), ACCESS_OK);
    ck_assert_int_eq(visit("/docs/r/a", METHOD_HEAD, "cross-site", now_s), ACCESS_OK);
    ck_assert_int_eq(visit("/docs/site/a", METHOD_GET, NULL, now_s), ACCESS_OK);
    ck_assert_int_eq(visit("/docs/w/a", METHOD_GET, NULL, now_s), ACCESS_FORBIDDEN);
    ck_assert_int_eq(visit("/docs/w/a", METHOD_PUT, "same-origin", now_s), ACCESS_OK);
    ck_assert_int_eq(visit("/docs/r/a", METHOD_PUT, "same-origin", now_s), ACCESS_FORBIDDEN);
    ck_assert_int_eq(session.who.kind, CREDENTIAL_SESSION);
    ck_assert_int_eq(session.who.user, 1);
}
END_TEST

/* Also where the path is not covered: a request that names several goes on from there. */
START_TEST(what_another_site_asks_for_is_refused)
{
    log_in();
    for (enum method m = METHOD_PUT; m <= METHOD_OTHER; m *= 2) {
        ck_assert_int_eq(visit("/docs/w/a", m, NULL, now_s), ACCESS_ORIGIN);
        ck_assert_int_eq(visit("/docs/w/a", m, "cross-site", now_s), ACCESS_ORIGIN);
        ck_assert_int_eq(visit("/docs/r/a", m, "same-site", now_s), ACCESS_ORIGIN);
        ck_assert_int_eq(visit("/batch", m, NULL, now_s), ACCESS_ORIGIN);
        ck_assert_int_eq(visit("/docs/w/a", m, "same-origin", now_s), ACCESS_OK);
    }
}
END_TEST

START_TEST(a_session_that_is_over_is_none)
{
    log_in();
    ck_assert_int_eq(visit("/docs/r/a", METHOD_GET, NULL, now_s + 200), ACCESS_OK);
    ck_assert_int_eq(visit("/docs/r/a", METHOD_GET, NULL, now_s + 1100), ACCESS_NO_CREDENTIAL); /* idle */
    ck_assert_int_eq(session.who.kind, CREDENTIAL_NONE);
    conf.session_idle_ms = 100000 * 1000;
    ck_assert_int_eq(visit("/docs/r/a", METHOD_GET, NULL, now_s + 3500), ACCESS_OK);
    ck_assert_int_eq(visit("/docs/r/a", METHOD_GET, NULL, now_s + 5000), ACCESS_NO_CREDENTIAL); /* its end */
    ck_assert_int_eq(visit("/docs/site/a", METHOD_GET, NULL, now_s + 5000), ACCESS_OK);
    ck_assert_int_eq(visit("/docs/w/a", METHOD_PUT, "same-origin", now_s + 5000), ACCESS_NO_CREDENTIAL);
    conf.session_idle_ms = 1000 * 1000;
}
END_TEST

/* As a watcher does, that was parked. */
START_TEST(a_session_is_judged_again_in_a_later_snapshot)
{
    log_in();
    ck_assert_int_eq(visit("/docs/r/a", METHOD_GET, NULL, now_s), ACCESS_OK);
    struct credential who = session.who;
    struct call call = {.thread = &session, .now_s = now_s};
    ck_assert_int_eq(access_judge(&call, &who, STR_LIT("/docs/r/b"), false), ACCESS_OK);
    ck_assert_int_eq(access_judge(&call, &who, STR_LIT("/docs/w/b"), true), ACCESS_OK);
    ck_assert_int_eq(access_judge(&call, &who, STR_LIT("/docs/w/b"), false), ACCESS_FORBIDDEN);
    struct db_op *op = db_op_new(DB_OP_USER_REMOVE, 5);
    db_op_copy(op, 0, DB_VALUE_TEXT, "alice", 5);
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    tdb_free(op);
    ck_assert_int_eq(access_judge(&call, &who, STR_LIT("/docs/r/b"), false), ACCESS_OK); /* the older state */
    db_reader_end(session.reader);
    session.snapshot = false;
    ck_assert_int_eq(access_judge(&call, &who, STR_LIT("/docs/r/b"), false), ACCESS_NO_CREDENTIAL);
    ck_assert_int_eq(access_judge(&call, &who, STR_LIT("/docs/site/b"), false), ACCESS_OK);
    db_reader_end(session.reader);
    session.snapshot = false;
}
END_TEST

/* Basic is looked at only where it is allowed, and only for reading. */
START_TEST(basic_is_compared_where_it_is_allowed)
{
    static const char pair[] = "Basic YWxpY2U6c2VjcmV0"; /* alice:secret */
    log_in();
    ck_assert(access_public("r/", &store.basic));
    struct req req = {.method = METHOD_GET, .path = STR_LIT("/docs/r/a"), .authorization = {pair, sizeof pair - 1}};
    struct call call = {.req = &req, .thread = &session, .now_s = now_s};
    ck_assert_int_eq(access_check(&call, false), ACCESS_VERIFY);
    ck_assert(session.offers_basic);
    req.method = METHOD_PUT;
    ck_assert_int_eq(access_check(&call, true), ACCESS_BAD_CREDENTIAL);
    req.method = METHOD_GET;
    req.path = STR_LIT("/docs/site/a");
    ck_assert_int_eq(access_check(&call, false), ACCESS_BAD_CREDENTIAL);
    ck_assert(!session.offers_basic);
    req.path = STR_LIT("/docs/r/a");
    req.authorization = STR_LIT("Basic YWxpY2U="); /* no colon */
    ck_assert_int_eq(access_check(&call, false), ACCESS_BAD_CREDENTIAL);
    db_reader_end(session.reader);
    session.snapshot = false;
    buf_free(&store.basic);
    free(session.basic);
    session.basic = NULL;
}
END_TEST

START_TEST(the_operator_may)
{
    struct req req = {.path = STR_LIT("/control/op"), .operator_ = true};
    struct call call = {.req = &req, .thread = &session, .now_s = NOW};
    ck_assert_int_eq(access_check(&call, true), ACCESS_OK);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("access");
    TCase *t = run_case(s, "prefixes");
    tcase_add_loop_test(t, a_prefix_covers, 0, COUNT(covers));
    tcase_add_test(t, no_lines_cover_nothing);
    tcase_add_loop_test(t, a_prefix_is_written, 0, COUNT(prefixes));
    tcase_add_test(t, prefixes_are_lines);
    tcase_add_test(t, prefixes_have_a_cap);
    tcase_add_loop_test(t, public_prefixes, 0, COUNT(lists));
    t = run_case(s, "credentials");
    temp_use(t);
    tcase_add_checked_fixture(t, open_session, close_session);
    tcase_add_test(t, without_a_credential);
    tcase_add_test(t, what_is_public_is_not_writable);
    tcase_add_test(t, a_token_reads_and_writes_where_it_may);
    tcase_add_test(t, a_token_expires);
    tcase_add_test(t, a_revoked_token_is_refused_in_the_next_round);
    tcase_add_test(t, the_name_of_the_scheme_has_no_case);
    tcase_add_test(t, headers_that_carry_no_token);
    tcase_add_test(t, the_operator_may);
    tcase_add_test(t, a_session_reads_and_writes_where_its_user_may);
    tcase_add_test(t, what_another_site_asks_for_is_refused);
    tcase_add_test(t, a_session_that_is_over_is_none);
    tcase_add_test(t, a_session_is_judged_again_in_a_later_snapshot);
    tcase_add_test(t, basic_is_compared_where_it_is_allowed);
    return run_suite(s);
}
