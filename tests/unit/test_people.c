/* db/user, db/session: users and sessions by operations, and rows that somebody edits from outside. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "db/session.h"
#include "db/user.h"
#include "tests/unit/tdb.h"

static struct db_conn conn;
static sqlite3 *db;

static void open_all(void)
{
    tdb_init();
    tdb_open(&conn);
    db = tdb_shell();
}

static void close_all(void)
{
    sqlite3_close(db);
    db_conn_close(&conn);
    tdb_is_sound();
}

static void set_text(struct db_op *op, int i, const char *s)
{
    db_op_copy(op, i, DB_VALUE_TEXT, s, strlen(s));
}

/* Applies an operation on texts in a burst of its own. */
static enum db_result apply(enum db_op_kind kind, const char *a, const char *b, const char *c, const char *d)
{
    struct db_op *op = db_op_new(kind, 4096);
    const char *const values[] = {a, b, c, d};
    for (int i = 0; i < 4; i++)
        if (values[i] != NULL)
            set_text(op, i, values[i]);
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    enum db_result result = op->result;
    db_op_free(op);
    return result;
}

static enum db_result add(const char *name)
{
    return apply(DB_OP_USER_NEW, name, "hash", "/read", "/write");
}

static unsigned char *session_hash(int n)
{
    static unsigned char hash[DB_SESSION_HASH_BYTES];
    memset(hash, 0, sizeof hash);
    memcpy(hash, &n, sizeof n);
    return hash;
}

static enum db_result login_until(int n, int64_t user, const char *verified, int64_t expires)
{
    struct db_op *op = db_op_new(DB_OP_SESSION_NEW, 4096);
    db_op_copy(op, 0, DB_VALUE_BLOB, session_hash(n), DB_SESSION_HASH_BYTES);
    db_op_int(op, 1, user);
    set_text(op, 2, verified);
    db_op_int(op, 3, expires);
    set_text(op, 4, "a browser");
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    enum db_result result = op->result;
    db_op_free(op);
    return result;
}

static enum db_result login(int n, int64_t user)
{
    return login_until(n, user, "hash", time(NULL) + 1000);
}

static enum db_result by_session(enum db_op_kind kind, int n)
{
    struct db_op *op = db_op_new(kind, DB_SESSION_HASH_BYTES);
    db_op_copy(op, 0, DB_VALUE_BLOB, session_hash(n), DB_SESSION_HASH_BYTES);
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    enum db_result result = op->result;
    db_op_free(op);
    return result;
}

static int64_t sessions(void)
{
    return tdb_ask(db, "SELECT count(*) FROM session");
}

/* Two users, 1 and 2, with two sessions each. */
static void two_by_two(void)
{
    ck_assert_int_eq(add("alice"), DB_OK);
    ck_assert_int_eq(add("bob"), DB_OK);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(login(i, 1 + i % 2), DB_OK);
    ck_assert_int_eq(sessions(), 4);
}

/* ---- users ----------------------------------------------------------------------------------- */

START_TEST(a_user_is_found_in_any_case)
{
    struct db_reader *r;
    struct db_user u;
    ck_assert_int_eq(add("Alice"), DB_OK);
    ck_assert_int_eq(db_reader_open(&tdb_config, &r, &tdb_error), DB_OK);
    ck_assert_int_eq(db_user_find(r, "aLICE", 5, &u), DB_OK);
    ck_assert_int_eq(u.id, 1);
    ck_assert_str_eq(u.name, "Alice");
    ck_assert_str_eq(u.hash, "hash");
    ck_assert_mem_eq(u.read, "/read", u.read_len);
    ck_assert_mem_eq(u.write, "/write", u.write_len);
    ck_assert_int_lt(time(NULL) - u.created, 30);
    ck_assert_int_eq(db_user_get(r, 1, &u), DB_OK);
    ck_assert_str_eq(u.name, "Alice");
    ck_assert_int_eq(db_user_get(r, 2, &u), DB_NONE);
    ck_assert_int_eq(db_user_find(r, "alic", 4, &u), DB_NONE);
    ck_assert_int_eq(db_user_find(r, "alice ", 6, &u), DB_NONE);
    ck_assert_int_eq(db_user_find(r, "alice\0", 6, &u), DB_NONE);
    ck_assert_int_eq(db_user_find(r, "", 0, &u), DB_NONE);
    db_reader_close(r);
}
END_TEST

START_TEST(a_name_is_there_once)
{
    two_by_two();
    ck_assert_int_eq(add("ALICE"), DB_EXISTS);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM user"), 2);
    ck_assert_int_eq(sessions(), 4);
}
END_TEST

static const char *const bad_names[] = {
    "", " ", "a b", "a\n", "a/b", "a:b", "\xc3\xa4", "a\"", "a<b", "a,b",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" /* 65 */,
};

START_TEST(a_name_of_another_form_is_refused)
{
    ck_assert_int_eq(add(bad_names[_i]), DB_INVALID);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM user"), 0);
}
END_TEST

START_TEST(a_user_who_is_not_there)
{
    ck_assert_int_eq(apply(DB_OP_USER_PASSWORD, "nobody", "x", NULL, NULL), DB_NONE);
    ck_assert_int_eq(apply(DB_OP_USER_GRANT, "nobody", "/", "/", NULL), DB_NONE);
    ck_assert_int_eq(apply(DB_OP_USER_REMOVE, "nobody", NULL, NULL, NULL), DB_NONE);
    ck_assert_int_eq(apply(DB_OP_SESSION_END_USER, "nobody", NULL, NULL, NULL), DB_NONE);
}
END_TEST

START_TEST(rights_are_replaced)
{
    two_by_two();
    ck_assert_int_eq(apply(DB_OP_USER_GRANT, "ALICE", "/a", "", NULL), DB_OK);
    ck_assert_int_eq(tdb_ask(db, "SELECT read = '/a' AND write = '' FROM user WHERE id = 1"), 1);
    ck_assert_int_eq(tdb_ask(db, "SELECT read = '/read' FROM user WHERE id = 2"), 1);
    ck_assert_int_eq(sessions(), 4);
}
END_TEST

START_TEST(a_number_is_not_used_again)
{
    ck_assert_int_eq(add("alice"), DB_OK);
    ck_assert_int_eq(apply(DB_OP_USER_REMOVE, "alice", NULL, NULL, NULL), DB_OK);
    ck_assert_int_eq(add("alice"), DB_OK);
    ck_assert_int_eq(tdb_ask(db, "SELECT id FROM user"), 2);
}
END_TEST

START_TEST(a_hash_is_renewed_only_from_the_one_that_was_verified)
{
    struct db_op *op = db_op_new(DB_OP_USER_RENEW, 100), *late = db_op_new(DB_OP_USER_RENEW, 100);
    two_by_two();
    db_op_int(op, 0, 1);
    db_op_int(late, 0, 1);
    set_text(op, 1, "hash");
    set_text(late, 1, "hash");
    set_text(op, 2, "better");
    set_text(late, 2, "worse");
    ck_assert_int_eq(tdb_burst(&conn, tdb_list(op, late, NULL)), DB_OK);
    ck_assert_int_eq(op->result, DB_OK);
    ck_assert_int_eq(late->result, DB_NONE);
    tdb_free(op);
    ck_assert_int_eq(tdb_ask(db, "SELECT hash = 'better' AND renewed = 1 FROM user WHERE id = 1"), 1);
    ck_assert_int_eq(sessions(), 4);
}
END_TEST

/* ---- sessions -------------------------------------------------------------------------------- */

START_TEST(a_session_is_found_with_its_user)
{
    struct db_reader *r;
    struct db_session s;
    two_by_two();
    ck_assert_int_eq(db_reader_open(&tdb_config, &r, &tdb_error), DB_OK);
    for (int begun = 0; begun < 2; begun++) { /* with a snapshot the second look-up is answered from memory */
        if (begun)
            ck_assert_int_eq(db_reader_begin(r), DB_OK);
        for (int i = 0; i < 2; i++) {
            ck_assert_int_eq(db_session_find(r, session_hash(3), &s), DB_OK);
            ck_assert_int_eq(s.user, 2);
            ck_assert_str_eq(s.name, "bob");
            ck_assert_mem_eq(s.read, "/read", s.read_len);
            ck_assert_mem_eq(s.write, "/write", s.write_len);
            ck_assert_int_lt(time(NULL) - s.seen, 30);
            ck_assert_int_gt(s.expires, time(NULL));
        }
    }
    ck_assert_int_eq(db_session_find(r, session_hash(9), &s), DB_NONE);
    ck_assert_int_eq(by_session(DB_OP_SESSION_END, 3), DB_OK);
    ck_assert_int_eq(db_session_find(r, session_hash(3), &s), DB_OK); /* this snapshot is older */
    db_reader_end(r);
    ck_assert_int_eq(db_session_find(r, session_hash(3), &s), DB_NONE);
    db_reader_close(r);
}
END_TEST

START_TEST(a_login_needs_the_password_that_was_verified)
{
    two_by_two();
    ck_assert_int_eq(login_until(9, 1, "hasH", time(NULL) + 1000), DB_PRECONDITION);
    ck_assert_int_eq(login_until(9, 2, "", time(NULL) + 1000), DB_PRECONDITION);
    ck_assert_int_eq(login_until(9, 3, "hash", time(NULL) + 1000), DB_PRECONDITION);
    ck_assert_int_eq(sessions(), 4);
}
END_TEST

START_TEST(sessions_of_a_user_are_bounded)
{
    two_by_two();
    tdb_sql(db, "UPDATE session SET seen = seen - 100 WHERE hash = (SELECT max(hash) FROM session WHERE user = 1)");
    for (int i = 100; i < 100 + DB_SESSIONS_PER_USER - 1; i++)
        ck_assert_int_eq(login(i, 1), DB_OK);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM session WHERE user = 1"), DB_SESSIONS_PER_USER);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM session WHERE user = 2"), 2);
    /* the one unused for longest went, not the one that was made first */
    ck_assert_int_eq(tdb_ask(db, "SELECT min(seen) > strftime('%s', 'now') - 50 FROM session"), 1);
}
END_TEST

START_TEST(a_login_clears_what_is_over)
{
    two_by_two();
    ck_assert_int_eq(login_until(8, 1, "hash", time(NULL) - 1), DB_OK);
    ck_assert_int_eq(login_until(9, 2, "hash", time(NULL) - 1), DB_OK);
    ck_assert_int_eq(login(10, 1), DB_OK);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM session WHERE user = 1"), 3);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM session WHERE user = 2"), 3);
}
END_TEST

START_TEST(sessions_end)
{
    two_by_two();
    ck_assert_int_eq(by_session(DB_OP_SESSION_END, 9), DB_NONE);
    ck_assert_int_eq(by_session(DB_OP_SESSION_END_ALL, 9), DB_NONE);
    ck_assert_int_eq(by_session(DB_OP_SESSION_END, 0), DB_OK);
    ck_assert_int_eq(sessions(), 3);
    ck_assert_int_eq(by_session(DB_OP_SESSION_END_ALL, 1), DB_OK);
    ck_assert_int_eq(tdb_ask(db, "SELECT sum(user = 1) FROM session"), 1);
    ck_assert_int_eq(sessions(), 1);
    ck_assert_int_eq(apply(DB_OP_SESSION_END_USER, "Alice", NULL, NULL, NULL), DB_OK);
    ck_assert_int_eq(sessions(), 0);
}
END_TEST

START_TEST(a_session_is_touched)
{
    two_by_two();
    tdb_sql(db, "UPDATE session SET seen = 5");
    ck_assert_int_eq(by_session(DB_OP_SESSION_TOUCH, 2), DB_OK);
    ck_assert_int_eq(by_session(DB_OP_SESSION_TOUCH, 9), DB_OK);
    ck_assert_int_eq(tdb_ask(db, "SELECT sum(seen > 5) FROM session"), 1);
    tdb_sql(db, "UPDATE session SET seen = 99999999999");
    ck_assert_int_eq(by_session(DB_OP_SESSION_TOUCH, 2), DB_OK);
    ck_assert_int_eq(tdb_ask(db, "SELECT min(seen) = 99999999999 FROM session"), 1);
}
END_TEST

/* ---- from outside ---------------------------------------------------------------------------- */

/* What a person may do in the shell, and how many of four sessions, alice's two and bob's two, are left. */
static const struct {
    const char *sql;
    int left;
} edits[] = {
    {"UPDATE user SET hash = 'other' WHERE id = 1", 2},
    {"UPDATE user SET hash = ''", 0},
    {"UPDATE user SET hash = hash", 4},
    {"UPDATE user SET hash = 'other', renewed = renewed + 1", 4},
    {"UPDATE user SET read = '', write = '/'", 4},
    {"UPDATE user SET name = 'alicia' WHERE id = 1", 4},
    {"UPDATE user SET name = 'ALICE' WHERE id = 1", 4},
    {"UPDATE user SET id = 7 WHERE id = 1", 2},
    {"UPDATE OR REPLACE user SET name = 'bob' WHERE id = 1", 2},
    {"UPDATE OR REPLACE user SET id = 2 WHERE id = 1", 0},
    {"UPDATE OR IGNORE user SET name = 'BOB' WHERE id = 1", 2}, /* a trigger cannot tell it from REPLACE */
    {"DELETE FROM user WHERE id = 1", 2},
    {"DELETE FROM user", 0},
    {"INSERT OR REPLACE INTO user (name, hash) VALUES ('ALICE', 'mine')", 2},
    {"INSERT OR REPLACE INTO user (id, name, hash) VALUES (1, 'mallory', 'mine')", 2},
    {"INSERT OR REPLACE INTO user (id, name, hash) VALUES (1, 'bob', 'mine')", 0},
    {"REPLACE INTO user (id, name, hash) SELECT id, name, 'mine' FROM user", 0},
    {"INSERT INTO user (name, hash) VALUES ('alice', 'mine') ON CONFLICT (name) DO UPDATE SET hash = excluded.hash", 2},
    {"INSERT INTO user (name, hash) VALUES ('carol', '')", 4},
    {"DELETE FROM session WHERE user = 2", 2},
};

START_TEST(an_edit_leaves_the_right_sessions)
{
    two_by_two();
    tdb_sql(db, _i % 2 ? "PRAGMA recursive_triggers=ON" : "PRAGMA recursive_triggers=OFF");
    tdb_sql(db, edits[_i / 2].sql);
    ck_assert_msg(sessions() == edits[_i / 2].left, "%s: %d", edits[_i / 2].sql, (int)sessions());
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM session WHERE user NOT IN (SELECT id FROM user)"), 0);
}
END_TEST

static const char *const refused[] = {
    "INSERT INTO user (name, hash) VALUES ('alice', 'x')",
    "INSERT INTO user (name, hash) VALUES ('Bob', 'x')",
    "INSERT INTO user (name, hash) VALUES ('a b', 'x')",
    "INSERT INTO user (name, hash) VALUES ('alice' || char(0), 'x')",
    "INSERT INTO user (name, hash) VALUES (X'616c696365', 'x')",
    "INSERT INTO user (name, hash) VALUES (NULL, 'x')",
    "INSERT INTO user (name, hash) VALUES ('carol', NULL)",
    "INSERT INTO user (name, hash) VALUES ('carol', X'00')",
    "UPDATE user SET name = 'bob' WHERE id = 1",
    "INSERT INTO session (hash, user, created, seen, expires) VALUES ('x', 1, 1, 1, 1)",
    "INSERT INTO session (hash, user, created, seen, expires) VALUES (zeroblob(31), 1, 1, 1, 1)",
    "INSERT INTO session (hash, user, created, seen, expires) VALUES (NULL, 1, 1, 1, 1)",
};

START_TEST(what_breaks_a_rule_is_refused_and_changes_nothing)
{
    two_by_two();
    ck_assert_msg(!tdb_try(db, refused[_i]), "%s", refused[_i]);
    ck_assert_int_eq(sessions(), 4);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM user"), 2);
}
END_TEST

/* ---- the body of a login --------------------------------------------------------------------- */

static const struct {
    const char *json;
    const char *user; /* NULL: refused */
    const char *password;
} logins[] = {
    {"{\"user\":\"alice\",\"password\":\"secret\"}", "alice", "secret"},
    {" { \"password\" : \"\\u00e9\\\"\\n\", \"more\" : [1], \"user\" : \"\" } ", "", "\xc3\xa9\"\n"},
    {"", NULL, NULL},
    {"{", NULL, NULL},
    {"[]", NULL, NULL},
    {"\"alice\"", NULL, NULL},
    {"null", NULL, NULL},
    {"{}", NULL, NULL},
    {"{\"user\":\"alice\"}", NULL, NULL},
    {"{\"password\":\"secret\"}", NULL, NULL},
    {"{\"user\":\"alice\",\"password\":1}", NULL, NULL},
    {"{\"user\":null,\"password\":\"secret\"}", NULL, NULL},
    {"{\"user\":[\"alice\"],\"password\":\"secret\"}", NULL, NULL},
    {"{\"user\":\"alice\",\"password\":{}}", NULL, NULL},
    {"{\"user\":\"alice\",\"password\":\"secret\"} x", NULL, NULL},
};

START_TEST(a_json_login_is_read)
{
    struct db_reader *r;
    struct db_login l;
    const char *json = logins[_i].json;
    ck_assert_int_eq(db_reader_open(&tdb_config, &r, &tdb_error), DB_OK);
    enum db_result result = db_login_json(r, json, strlen(json), &l);
    ck_assert_msg(result == (logins[_i].user ? DB_OK : DB_INVALID), "%s: %d", json, result);
    if (result == DB_OK) {
        ck_assert_str_eq(l.user, logins[_i].user);
        ck_assert_uint_eq(l.user_len, strlen(logins[_i].user));
        ck_assert_str_eq(l.password, logins[_i].password);
        ck_assert_uint_eq(l.password_len, strlen(logins[_i].password));
    }
    ck_assert_int_eq(db_login_json(r, "{\"user\":\"a\",\"password\":\"b\"}\0", 28, &l), DB_INVALID);
    db_reader_close(r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("people");
    TCase *t = run_case(s, "all");
    temp_use(t);
    tcase_add_checked_fixture(t, open_all, close_all);
    tcase_add_test(t, a_user_is_found_in_any_case);
    tcase_add_test(t, a_name_is_there_once);
    tcase_add_loop_test(t, a_name_of_another_form_is_refused, 0, COUNT(bad_names));
    tcase_add_test(t, a_user_who_is_not_there);
    tcase_add_test(t, rights_are_replaced);
    tcase_add_test(t, a_number_is_not_used_again);
    tcase_add_test(t, a_hash_is_renewed_only_from_the_one_that_was_verified);
    tcase_add_test(t, a_session_is_found_with_its_user);
    tcase_add_test(t, a_login_needs_the_password_that_was_verified);
    tcase_add_test(t, sessions_of_a_user_are_bounded);
    tcase_add_test(t, a_login_clears_what_is_over);
    tcase_add_test(t, sessions_end);
    tcase_add_test(t, a_session_is_touched);
    tcase_add_loop_test(t, an_edit_leaves_the_right_sessions, 0, 2 * COUNT(edits));
    tcase_add_loop_test(t, what_breaks_a_rule_is_refused_and_changes_nothing, 0, COUNT(refused));
    tcase_add_loop_test(t, a_json_login_is_read, 0, COUNT(logins));
    return run_suite(s);
}
