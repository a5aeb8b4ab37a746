/* handlers/access: which prefix covers which path, what a person may write, and what a credential allows. */
#include "handlers/access.h"

#include <stdio.h>
#include <string.h>

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
    return run_suite(s);
}
