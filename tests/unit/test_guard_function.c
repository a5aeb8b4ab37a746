/* The functions of apps: documents, changed, slug, html, url_encode, uuid7, those of the console. */
#include <stdio.h>
#include <string.h>

#include "db/burst.h"
#include "tests/unit/guarded.h"

static void fixture(void)
{
    guarded_open();
    tdb_sql(guarded_conn.db,
            "INSERT INTO doc (key, type, body) VALUES ('apps/shop/x', 'text/plain', 'own'),"
            " ('apps/shopping/x', 'text/plain', 'another app'), ('notes/deep/b', 'application/json', '{\"a\":[1,2]}'),"
            " ('noted', 'text/plain', 'no'), ('one', 'image/png', x'01ff'), ('one/below', 'text/plain', 'b')");
    guarded_grant.read = "notes/\none\nlarge\nhuge";
    guarded_grant.write = "out/";
    guarded_grant.sends = "orders\nhooks";
}

/* ---- doc ---- */

static void add_large(void)
{
    tdb_sql(guarded_conn.db, "INSERT INTO doc (key, type, body) VALUES"
                             " ('large', 'text/plain', zeroblob(1400000)), ('huge', 'text/plain', zeroblob(9000000))");
}

static const struct {
    const char *sql, *first;
} reads[] = {
    {"SELECT doc('apps/shop/x')", "own"},
    {"SELECT doc('notes/a')", "paper"},
    {"SELECT doc('notes/deep/b') -> 'a'", "[1,2]"},
    {"SELECT hex(doc('one')) || typeof(doc('one'))", "01FFblob"},
    {"SELECT typeof(doc('notes/a'))", "text"},
    {"SELECT doc('one/below')", "b"},
    {"SELECT coalesce(doc('notes/none'), 'absent')", "absent"},
    {"SELECT coalesce(doc(NULL), 'null')", "null"},
    {"SELECT group_concat(doc('notes/a')) FROM shop_item", "paper,paper,paper"},
};

START_TEST(doc_gives_the_body)
{
    ck_assert_str_eq(guarded_ask(reads[_i].sql), reads[_i].first);
}
END_TEST

static const struct {
    const char *sql, *why;
} not_read[] = {
    {"SELECT doc('noted')", "doc: the app may not read this document (documents_read)"},
    {"SELECT doc('notes')", "doc: the app may not read this document (documents_read)"},
    {"SELECT doc('onetwo')", "doc: the app may not read this document (documents_read)"},
    {"SELECT doc('apps/shopping/x')", "doc: the app may not read this document (documents_read)"},
    {"SELECT doc('notes/../noted')", "doc: this is not the key of a document"},
    {"SELECT doc('')", "doc: this is not the key of a document"},
    {"SELECT doc('notes/')", "doc: this is not the key of a document"},
    {"SELECT doc(x'6e6f746573')", "doc: the app may not read this document (documents_read)"},
    {"SELECT doc('notes/a' || char(0))", "doc: this is not the key of a document"},
};

START_TEST(doc_says_why_not)
{
    ck_assert_int_ne(guarded_run(DB_GUARD_READ, not_read[_i].sql), DB_OK);
    ck_assert_str_eq(guarded_error.text, not_read[_i].why);
}
END_TEST

START_TEST(doc_reads_all_where_the_app_reads_the_table)
{
    guarded_grant.documents = true;
    ck_assert_str_eq(guarded_ask("SELECT doc('noted')"), "no");
    ck_assert_str_eq(guarded_ask("SELECT body FROM doc WHERE key = 'noted'"), "no");
}
END_TEST

START_TEST(doc_reads_all_below_a_slash)
{
    guarded_grant.read = "/";
    ck_assert_str_eq(guarded_ask("SELECT doc('noted')"), "no");
}
END_TEST

/* What is longer than 1 MiB is left for where nobody waits. */
START_TEST(long_values_are_for_later_on_the_loop)
{
    add_large();
    ck_assert_str_eq(guarded_ask("SELECT length(doc('large'))"), "1400000");
    ck_assert_int_eq(guarded_run(DB_GUARD_READ, "SELECT doc('huge')"), DB_TOO_LARGE);
    ck_assert_int_eq(guarded_run_ms(DB_GUARD_READ, "SELECT doc('large')", 10), DB_TIMEOUT);
    ck_assert_int_eq(guarded_run_ms(DB_GUARD_READ, "SELECT zeroblob(2000000)", 10), DB_TIMEOUT);
    ck_assert_int_eq(guarded_run(DB_GUARD_READ, "SELECT zeroblob(2000000)"), DB_OK);
    ck_assert_int_eq(guarded_run(DB_GUARD_READ, "SELECT zeroblob(9000000)"), DB_TOO_LARGE);
}
END_TEST

/* ---- what is queued ---- */

/* Runs one statement that queues, and describes what it asked for: "put KEY TYPE FORM BODY|…". */
static const char *queued(const char *sql)
{
    static char text[2048];
    size_t n = 0;
    sqlite3_stmt *s;
    text[0] = 0;
    ck_assert_int_eq(db_guard_enter(&guarded_conn, &guarded_grant, DB_GUARD_WRITE, db_clock_us() + 10000000, 1790000000),
                     DB_OK);
    int rc = sqlite3_prepare_v2(guarded_conn.db, sql, -1, &s, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW)
        rc = SQLITE_OK;
    sqlite3_finalize(s);
    if (rc != SQLITE_DONE) {
        (void)!db_guard_cause(&guarded_conn, rc, &guarded_error);
        db_guard_leave(&guarded_conn);
        return guarded_error.text;
    }
    for (struct db_op *op = db_guard_take(&guarded_conn), *next; op != NULL; op = next) {
        next = op->next;
        const struct db_value *v = op->values;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %.*s", n > 0 ? "|" : "",
                              op->kind == DB_OP_PUT ? "put" : op->kind == DB_OP_DELETE ? "delete" : "other", (int)v->n,
                              (const char *)v->p);
        if (op->kind == DB_OP_PUT)
            n += (size_t)snprintf(text + n, sizeof text - n, " %.*s %s %.*s", (int)v[1].n, (const char *)v[1].p,
                                  v[2].type == DB_VALUE_TEXT ? "text" : "blob", (int)v[2].n, (const char *)v[2].p);
        db_op_free(op);
    }
    db_guard_leave(&guarded_conn);
    return text;
}

static const struct {
    const char *sql, *ops;
} writes[] = {
    {"SELECT put_doc('out/a', 'hello')", "put out/a text/plain; charset=utf-8 text hello"},
    {"SELECT put_doc('apps/shop/a', 'hello', 'text/html')", "put apps/shop/a text/html text hello"},
    {"SELECT put_doc('out/a', 'hello', NULL)", "put out/a text/plain; charset=utf-8 text hello"},
    {"SELECT put_doc('out/a', x'4142')", "put out/a application/octet-stream blob AB"},
    {"SELECT put_doc('out/a', x'4142', 'text/plain')", "put out/a text/plain text AB"},
    {"SELECT put_doc('out/a', 'AB', 'image/png')", "put out/a image/png blob AB"},
    {"SELECT put_doc('out/a', '')", "put out/a text/plain; charset=utf-8 text "},
    {"SELECT put_doc('out/a', zeroblob(0), 'image/png')", "put out/a image/png blob "},
    {"SELECT put_doc('out/a', 42)", "put out/a text/plain; charset=utf-8 text 42"},
    {"SELECT put_doc('out/a', json_object('n', 1))", "put out/a application/json text {\"n\":1}"},
    {"SELECT put_doc('out/a', json('[1]'), 'application/x+json')", "put out/a application/x+json text [1]"},
    {"SELECT put_doc('out/' || id, name) FROM shop_item WHERE id < 3",
     "put out/1 text/plain; charset=utf-8 text tea|put out/2 text/plain; charset=utf-8 text rice"},
    {"SELECT delete_doc('out/none')", "delete out/none"},
    {"SELECT delete_doc('out/a'), put_doc('out/b', 'b')", "delete out/a|put out/b text/plain; charset=utf-8 text b"},
    {"SELECT changed('list')", "put apps/shop/list text/plain; charset=utf-8 text 1790000000"},
    {"SELECT changed('list') FROM shop_item", "put apps/shop/list text/plain; charset=utf-8 text 1790000000"},
    {"UPDATE shop_item SET price = 1 WHERE id = 1 RETURNING changed('a/' || id)",
     "put apps/shop/a/1 text/plain; charset=utf-8 text 1790000000"},
    /* refused */
    {"SELECT put_doc('notes/a', 'x')", "put_doc: the app may not write this document (documents_write)"},
    {"SELECT put_doc('apps/shopping/x', 'x')", "put_doc: the app may not write this document (documents_write)"},
    {"SELECT delete_doc('notes/a')", "delete_doc: the app may not write this document (documents_write)"},
    {"SELECT put_doc('out/../notes/a', 'x')", "put_doc: this is not the key of a document"},
    {"SELECT put_doc(NULL, 'x')", "put_doc: this is not the key of a document"},
    {"SELECT put_doc(CAST(x'6f75742fff' AS TEXT), 'x')", "put_doc: this is not the key of a document"},
    {"SELECT put_doc('out/' || substr(hex(zeroblob(300)), 1, 509), 'x')", "put_doc: this is not the key of a document"},
    {"SELECT put_doc('out/a', NULL)", "put_doc: the body is NULL"},
    {"SELECT put_doc('out/a', 'x', 'text')", "put_doc: this is not a Content-Type"},
    {"SELECT put_doc('out/a', 'x', 'text/' || char(10))", "put_doc: this is not a Content-Type"},
    {"SELECT put_doc('out/a', 'x', 'text/é')", "put_doc: this is not a Content-Type"},
    {"SELECT put_doc('out/a', 'x', 'a/' || hex(zeroblob(127)))", "put_doc: this is not a Content-Type"},
    {"SELECT put_doc('out/a', '{', 'application/json')", "put_doc: the type says JSON, and the body is none"},
    {"SELECT put_doc('out/a', CAST(x'5b315d00' AS TEXT), 'application/json')",
     "put_doc: the type says JSON, and the body is none"},
    {"SELECT put_doc('out/a', CAST(x'22ff22' AS TEXT), 'application/json')",
     "put_doc: the type says JSON, and the body is none"},
    {"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c LIMIT 101) SELECT put_doc('out/' || n, '') FROM c",
     "put_doc: one statement can ask for 100 writes and 8 MiB"},
    {"SELECT put_doc('out/a', zeroblob(5000000)), put_doc('out/b', zeroblob(5000000))",
     "put_doc: one statement can ask for 100 writes and 8 MiB"},
    {"SELECT changed('')", "changed: a topic is the end of a document's key"},
    {"SELECT changed(NULL)", "changed: a topic is the end of a document's key"},
    {"SELECT changed('a//b')", "changed: a topic is the end of a document's key"},
    {"SELECT changed('../shopping/x')", "changed: a topic is the end of a document's key"},
    {"SELECT changed(hex(zeroblob(400)))", "changed: a topic is the end of a document's key"},
    {"SELECT send('a', 'b')", "send: the app may not send on this line (sends)"},
    {"SELECT send('orders2', 'b', 'text/plain')", "send: the app may not send on this line (sends)"},
    {"SELECT send('order', 'b')", "send: the app may not send on this line (sends)"},
    {"SELECT send('orders' || char(10) || 'hooks', 'b')", "send: this is not the name of a line"},
    {"SELECT send('', 'b')", "send: this is not the name of a line"},
    {"SELECT send(NULL, 'b')", "send: this is not the name of a line"},
    {"SELECT send('orders', NULL)", "send: the body is NULL"},
    {"SELECT send('orders', 'x', 'text')", "send: this is not a Content-Type"},
    {"SELECT send('orders', '{', 'application/json')", "send: the type says JSON, and the body is none"},
    {"SELECT send('orders', 'x')", "send: there is no such line"},
    {"SELECT send('hooks', 'x')", "send: there is no such line"},
    {"SELECT token_new('a', '/', '', 1)", "the function token_new is not for apps"},
    {"SELECT token_revoke('a')", "the function token_revoke is not for apps"},
    {"SELECT user_end_sessions('a')", "the function user_end_sessions is not for apps"},
    {"SELECT console('status')", "the function console is not for apps"},
};

START_TEST(writes_are_queued_in_order)
{
    ck_assert_str_eq(queued(writes[_i].sql), writes[_i].ops);
    ck_assert_ptr_null(guarded_conn.guard.queue);
}
END_TEST

START_TEST(a_get_queues_nothing)
{
    static const char *const sql[] = {"SELECT put_doc('out/a', 'x')", "SELECT delete_doc('out/a')", "SELECT changed('a')"};
    for (size_t i = 0; i < COUNT(sql); i++) {
        ck_assert_int_eq(guarded_run(DB_GUARD_READ, sql[i]), DB_INVALID);
        ck_assert_ptr_nonnull(strstr(guarded_error.text, ": a GET writes nothing"));
    }
    ck_assert_int_eq(guarded_run(DB_GUARD_SCHEMA, "SELECT changed('a')"), DB_INVALID);
}
END_TEST

/* What was queued goes when nobody takes it. */
START_TEST(leaving_forgets_the_queue)
{
    ck_assert_int_eq(guarded_run(DB_GUARD_WRITE, "SELECT put_doc('out/a', 'x')"), DB_OK);
    ck_assert_ptr_null(guarded_conn.guard.queue);
    ck_assert_int_eq(tdb_ask(guarded_conn.db, "SELECT count(*) FROM doc WHERE key = 'out/a'"), 0);
    db_guard_leave(&guarded_conn);
}
END_TEST

/* ---- texts ---- */

static const struct {
    const char *sql, *first;
} texts[] = {
    {"SELECT slug('Hello, World!')", "hello-world"},
    {"SELECT slug('  --Ein schöner Tag: Äpfel & Übel, Straße ')", "ein-schoener-tag-aepfel-uebel-strasse"},
    {"SELECT slug('L''été à Besançon, cœur d’Ïle')", "lete-a-besancon-coeur-dile"},
    {"SELECT slug('Łódź, Ørsted, Þór, Dvořák, İstanbul, Đà')", "lodz-orsted-thor-dvorak-istanbul-da"},
    {"SELECT slug('茶 tea 123')", "tea-123"},
    {"SELECT slug('a–b—c…d')", "a-b-c-d"},
    {"SELECT slug('')", ""},
    {"SELECT slug('!!!')", ""},
    {"SELECT slug(42)", "42"},
    {"SELECT coalesce(slug(NULL), 'null')", "null"},
    {"SELECT slug(CAST(x'61ffc362e282' AS TEXT))", "ab"},
    {"SELECT length(slug(hex(zeroblob(1000))))", "80"},
    {"SELECT length(slug(replace(hex(zeroblob(39)), '0', 'a') || 'a b'))", "79"},
    {"SELECT html('<a href=\"x\">''&amp;''</a>é')", "&lt;a href=&quot;x&quot;&gt;&#39;&amp;amp;&#39;&lt;/a&gt;é"},
    {"SELECT html('')", ""},
    {"SELECT coalesce(html(NULL), 'null')", "null"},
    {"SELECT url_encode('a b/c?d=é&~-._')", "a%20b%2Fc%3Fd%3D%C3%A9%26~-._"},
    {"SELECT url_encode('')", ""},
    {"SELECT hex(html(CAST(x'3c003e' AS TEXT)))", "266C743B002667743B"},
    {"SELECT length(html(replace(hex(zeroblob(500000)), '0', '<')))", "4000000"},
    {"SELECT count(DISTINCT uuid7()) FROM shop_item", "3"},
};

START_TEST(texts_become_texts)
{
    ck_assert_str_eq(guarded_ask(texts[_i].sql), texts[_i].first);
}
END_TEST

START_TEST(growth_is_bounded)
{
    ck_assert_int_eq(guarded_run(DB_GUARD_READ, "SELECT html(replace(hex(zeroblob(1500000)), '0', '<'))"), DB_TOO_LARGE);
    ck_assert_int_eq(guarded_run(DB_GUARD_READ, "SELECT url_encode(replace(hex(zeroblob(1500000)), '0', '<'))"),
                     DB_TOO_LARGE);
}
END_TEST

START_TEST(uuid7_rises)
{
    char last[64] = "";
    for (int i = 0; i < 2000; i++) {
        const char *id = guarded_ask("SELECT uuid7()");
        ck_assert_uint_eq(strlen(id), 36);
        ck_assert_int_eq(id[14], '7');
        ck_assert_ptr_nonnull(strchr("89ab", id[19]));
        ck_assert_uint_eq(strspn(id, "0123456789abcdef-"), 36);
        ck_assert_int_gt(strcmp(id, last), 0);
        strcpy(last, id);
    }
}
END_TEST

/* The file is for every shell: nothing in it may need functions of ours. */
START_TEST(no_schema_uses_them)
{
    static const char *const sql[] = {
        "CREATE VIEW shop_v AS SELECT slug(name) AS s FROM shop_item; SELECT s FROM shop_v",
        "CREATE INDEX shop_i ON shop_item (slug(name))",
        "CREATE TABLE shop_t (a, b AS (html(a))); INSERT INTO shop_t VALUES (1)",
        "CREATE TABLE shop_t (a CHECK (doc(a) IS NULL)); INSERT INTO shop_t VALUES ('notes/a')",
        "CREATE TABLE shop_t (a DEFAULT (uuid7())); INSERT INTO shop_t DEFAULT VALUES",
        "CREATE TRIGGER shop_tr AFTER INSERT ON shop_item BEGIN SELECT changed('a'); END;"
        "INSERT INTO shop_item (name) VALUES ('x')",
    };
    for (size_t i = 0; i < COUNT(sql); i++)
        ck_assert_msg(guarded_schema(sql[i]) != DB_OK, "%s", sql[i]);
}
END_TEST

/* ---- the console ---- */

#define SEVENS "0707070707070707070707070707070707070707070707070707070707070707"

static char *tell(void *arg, const char *what, size_t n)
{
    ck_assert_ptr_eq(arg, &guarded_conn);
    return n == 6 && memcmp(what, "status", 6) == 0 ? strdup("{\"ok\":[1,2]}") : NULL;
}

static bool make_token(void *arg, char token[64], unsigned char hash[32])
{
    (void)arg;
    strcpy(token, "hanji_secret");
    memset(hash, 7, 32);
    return true;
}

static void be_console(void)
{
    static const struct db_guard_hooks hooks = {tell, make_token, &guarded_conn};
    db_guard_set_hooks(&hooks);
    guarded_grant.console = true;
}

START_TEST(the_console_asks_and_orders)
{
    be_console();
    ck_assert_str_eq(guarded_ask("SELECT console('status') -> 'ok'"), "[1,2]");
    ck_assert_str_eq(guarded_ask("SELECT json_array(console('status'))"), "[{\"ok\":[1,2]}]");
    ck_assert_str_eq(guarded_ask("SELECT coalesce(console('more'), 'none')"), "none");
    ck_assert_str_eq(guarded_ask("SELECT doc('noted')"), "no");
    ck_assert_str_eq(queued("SELECT put_doc('anything/at/all', 'x')"),
                     "put anything/at/all text/plain; charset=utf-8 text x");
    ck_assert_str_eq(queued("SELECT token_revoke('phone')"), "other phone");
    ck_assert_str_eq(queued("SELECT user_end_sessions('ann@home')"), "other ann@home");
    ck_assert_str_eq(queued("SELECT token_new('phone', '/docs/, notes/ /status', '', 30)"), "other phone");
}
END_TEST

/* As though the server had taken so long for what a function asked for. */
static uint64_t paused(uint64_t deadline_us, uint64_t took_us)
{
    ck_assert_int_eq(db_guard_enter(&guarded_conn, &guarded_grant, DB_GUARD_WRITE, deadline_us, 0), DB_OK);
    db_guard_pause(&guarded_conn);
    guarded_conn.guard.paused_us -= took_us;
    db_guard_resume(&guarded_conn);
    return guarded_conn.guard.deadline_us - deadline_us;
}

START_TEST(what_the_server_does_meanwhile_is_not_the_apps_time)
{
    uint64_t now_us = db_clock_us();
    ck_assert_uint_ge(paused(now_us, 1000000), 1000000);
    ck_assert(tdb_try(guarded_conn.db, "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n<20000)"
                                       " SELECT sum(n) FROM c"));
    db_guard_leave(&guarded_conn);
}
END_TEST

START_TEST(but_two_seconds_of_it_at_most)
{
    ck_assert_uint_eq(paused(db_clock_us(), 60000000), 2000000);
    db_guard_leave(&guarded_conn);
}
END_TEST

START_TEST(a_new_token_is_as_the_command_makes_it)
{
    sqlite3_stmt *s;
    be_console();
    ck_assert_int_eq(db_guard_enter(&guarded_conn, &guarded_grant, DB_GUARD_WRITE, db_clock_us() + 10000000, 1790000000),
                     DB_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(guarded_conn.db, "SELECT token_new('phone', '/docs/, notes/', '/', 30)", -1, &s,
                                        NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(s), SQLITE_ROW);
    ck_assert_str_eq((const char *)sqlite3_column_text(s, 0), "hanji_secret");
    sqlite3_finalize(s);
    struct db_op *op = db_guard_take(&guarded_conn);
    db_guard_leave(&guarded_conn);
    tdb_free(op->next);
    ck_assert_int_eq(tdb_burst(&guarded_conn, op), DB_OK);
    ck_assert_int_eq(op->result, DB_OK);
    db_op_free(op);
    ck_assert_int_eq(tdb_ask(guarded_conn.db, "SELECT count(*) FROM token WHERE name = 'phone' AND write = '/'"
                                              " AND read = '/docs/' || char(10) || '/docs/notes/'"
                                              " AND hash = x'" SEVENS "'"
                                              " AND expires = 1790000000 + 30 * 86400"), 1);
}
END_TEST

static const struct {
    const char *sql, *why;
} not_ordered[] = {
    {"SELECT token_new('a b', '/', '', 1)", "token_new: a name is 1 to 64 letters, digits and -_.@"},
    {"SELECT token_new('', '/', '', 1)", "token_new: a name is 1 to 64 letters, digits and -_.@"},
    {"SELECT token_new(NULL, '/', '', 1)", "token_new: a name is 1 to 64 letters, digits and -_.@"},
    {"SELECT token_new('a', '/../x', '', 1)", "token_new: a prefix is none"},
    {"SELECT token_new('a', '', '/a//b', 1)", "token_new: a prefix is none"},
    {"SELECT token_new('a', hex(zeroblob(3000)), '', 1)", "token_new: a prefix is none"},
    {"SELECT token_new('a', '/', '', -1)", "token_new: days are 0 to 36500"},
    {"SELECT token_revoke('')", "token_revoke: a name is 1 to 64 letters, digits and -_.@"},
    {"SELECT user_end_sessions(NULL)", "user_end_sessions: a name is 1 to 64 letters, digits and -_.@"},
};

START_TEST(the_console_says_why_not)
{
    be_console();
    ck_assert_str_eq(queued(not_ordered[_i].sql), not_ordered[_i].why);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("guard_function");
    TCase *t = run_case(s, "guard_function");
    temp_use(t);
    tcase_add_checked_fixture(t, fixture, guarded_close);
    tcase_add_loop_test(t, doc_gives_the_body, 0, COUNT(reads));
    tcase_add_loop_test(t, doc_says_why_not, 0, COUNT(not_read));
    tcase_add_test(t, doc_reads_all_where_the_app_reads_the_table);
    tcase_add_test(t, doc_reads_all_below_a_slash);
    tcase_add_test(t, long_values_are_for_later_on_the_loop);
    tcase_add_loop_test(t, writes_are_queued_in_order, 0, COUNT(writes));
    tcase_add_test(t, a_get_queues_nothing);
    tcase_add_test(t, leaving_forgets_the_queue);
    tcase_add_loop_test(t, texts_become_texts, 0, COUNT(texts));
    tcase_add_test(t, growth_is_bounded);
    tcase_add_test(t, uuid7_rises);
    tcase_add_test(t, no_schema_uses_them);
    tcase_add_test(t, the_console_asks_and_orders);
    tcase_add_test(t, what_the_server_does_meanwhile_is_not_the_apps_time);
    tcase_add_test(t, but_two_seconds_of_it_at_most);
    tcase_add_test(t, a_new_token_is_as_the_command_makes_it);
    tcase_add_loop_test(t, the_console_says_why_not, 0, COUNT(not_ordered));
    return s;
}

int main(void)
{
    return run_suite(suite());
}
