/* What the console reads: the beginning of documents, JSON with line breaks, the server's tables without their hashes. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/guarded.h"

static void fixture(void)
{
    guarded_open();
    tdb_sql(guarded_conn.db,
            "INSERT INTO doc (key, type, body) VALUES ('t/short', 'text/plain', 'paper'), ('t/empty', 'text/plain', ''),"
            " ('t/umlaut', 'text/plain', 'äöü'), ('t/four', 'text/plain', 'a😀b'), ('t/bytes', 'image/png', x'00ff'),"
            " ('t/wrong', 'text/plain', CAST(x'61ff62' AS TEXT)), ('t/nul', 'text/plain', CAST(x'610062' AS TEXT)),"
            " ('t/large', 'text/plain', replace(hex(zeroblob(300000)), '0', 'x'))");
    tdb_sql(guarded_conn.db, "INSERT INTO token (name, hash, created) VALUES ('t', zeroblob(32), 1)");
    tdb_sql(guarded_conn.db, "INSERT INTO user (name, hash) VALUES ('u', '!')");
    tdb_sql(guarded_conn.db, "INSERT INTO session VALUES (zeroblob(32), 1, 1, 1, 1, 'l')");
    snprintf(guarded_grant.app, sizeof guarded_grant.app, "console");
    guarded_grant.console = true;
}

static const struct {
    const char *sql, *first;
} heads[] = {
    {"SELECT doc_head('t/short', 100)", "paper"},
    {"SELECT doc_head('t/short', 5)", "paper"},
    {"SELECT doc_head('t/short', 2)", "pa"},
    {"SELECT '<' || doc_head('t/short', 0) || '>'", "<>"},
    {"SELECT '<' || doc_head('t/empty', 9) || '>'", "<>"},
    {"SELECT typeof(doc_head('t/short', 100))", "text"},
    {"SELECT doc_head('t/umlaut', 6)", "äöü"},
    {"SELECT doc_head('t/umlaut', 5)", "äö"},
    {"SELECT doc_head('t/umlaut', 4)", "äö"},
    {"SELECT '<' || doc_head('t/umlaut', 1) || '>'", "<>"},
    {"SELECT doc_head('t/four', 5)", "a😀"},
    {"SELECT doc_head('t/four', 4)", "a"},
    {"SELECT doc_head('t/four', 2)", "a"},
    {"SELECT length(doc_head('t/large', 65536))", "65536"},
    {"SELECT length(doc_head('t/large', 2000000000))", "262144"},
    {"SELECT coalesce(doc_head('t/none', 9), 'none')", "none"},
    {"SELECT coalesce(doc_head('t/bytes', 9), 'none')", "none"},
    {"SELECT coalesce(doc_head('t/wrong', 9), 'none')", "none"},
    {"SELECT coalesce(doc_head('t/nul', 9), 'none')", "none"},
    {"SELECT coalesce(doc_head(NULL, 9), 'none')", "none"},
    {"SELECT coalesce(doc_head('t/short', -1), 'none')", "none"},
    {"SELECT coalesce(doc_head('', 9), 'none')", "none"},
    {"SELECT doc_head('t/short', 2) || doc_head('t/umlaut', 2) || doc_head('t/short', 1)", "paäp"},
};

START_TEST(doc_head_gives_the_beginning)
{
    ck_assert_str_eq(guarded_ask(heads[_i].sql), heads[_i].first);
}
END_TEST

START_TEST(doc_head_reads_in_a_write_what_was_written)
{
    ck_assert_int_eq(guarded_run(DB_GUARD_WRITE, "SELECT doc_head('t/short', 3)"), DB_OK);
    ck_assert_str_eq(guarded_first, "pap");
}
END_TEST

/* A body of 600 kB is on some 150 pages; of its beginning a few are read. */
START_TEST(doc_head_reads_no_more_pages_than_it_gives)
{
    int before = 0, after = 0, high = 0;
    ck_assert_str_eq(guarded_ask("SELECT length(doc_head('t/short', 9))"), "5");
    sqlite3_db_status(guarded_reader.db, SQLITE_DBSTATUS_CACHE_MISS, &before, &high, 0);
    ck_assert_str_eq(guarded_ask("SELECT length(doc_head('t/large', 65536))"), "65536");
    sqlite3_db_status(guarded_reader.db, SQLITE_DBSTATUS_CACHE_MISS, &after, &high, 0);
    ck_assert_int_lt(after - before, 40);
}
END_TEST

static const struct {
    const char *json, *lines;
} indents[] = {
    {"{\"a\":1.50,\"b\":[1,2]}", "{\n  \"a\": 1.50,\n  \"b\": [\n    1,\n    2\n  ]\n}"},
    {" { } ", "{}"},
    {"[ \n ]", "[]"},
    {"[[],{}]", "[\n  [],\n  {}\n]"},
    {"\"a,b:{\\\"}\"", "\"a,b:{\\\"}\""},
    {"\"\\\\\"", "\"\\\\\""},
    {"12345678901234567890", "12345678901234567890"},
    {"null", "null"},
    /* not JSON: whatever comes out, it ends */
    {"", ""},
    {"\"open", "\"open"},
    {"\"open\\", "\"open\\"},
    {"]]", "\n]\n]"},
    {"{", "{\n  "},
};

START_TEST(json_indent_breaks_lines)
{
    char sql[300];
    snprintf(sql, sizeof sql, "SELECT json_indent('%s')", indents[_i].json);
    ck_assert_str_eq(guarded_ask(sql), indents[_i].lines);
}
END_TEST

static const struct {
    const char *sql, *first;
} bounds[] = {
    {"SELECT coalesce(json_indent(NULL), 'none')", "none"},
    /* deep ones stop moving to the right */
    {"SELECT length(json_indent(replace(hex(zeroblob(500)), '0', '[')))", "17944"},
    /* what would be longer than a value may be comes back as it is */
    {"SELECT length(json_indent(replace(hex(zeroblob(100000)), '0', '[')))", "200000"},
};

START_TEST(json_indent_is_bounded)
{
    ck_assert_str_eq(guarded_ask(bounds[_i].sql), bounds[_i].first);
}
END_TEST

static const char *const reads[] = {
    "SELECT id, key, seq, type, modified, size, typeof(body) FROM doc",
    "SELECT * FROM change",
    "SELECT * FROM meta",
    "SELECT id, name, read, write, created, expires FROM token",
    "SELECT count(*) FROM token",
    "SELECT id, name, read, write, created, renewed FROM user",
    "SELECT user, created, seen, expires, label FROM session",
    "SELECT * FROM search_collection",
    "SELECT * FROM search_item",
    "SELECT rowid, rank, snippet(doc_text, 1, '', '', '', 8) FROM doc_text WHERE doc_text MATCH 'text : (\"a\" *)' ORDER BY rank",
};

START_TEST(the_console_reads_what_the_server_keeps)
{
    ck_assert_msg(guarded_run(DB_GUARD_READ, reads[_i]) == DB_OK, "%s", guarded_error.text);
}
END_TEST

static const char *const secrets[] = {
    "SELECT hash FROM token",
    "SELECT * FROM token",
    "SELECT name FROM token WHERE hash > x'80'",
    "SELECT name FROM token ORDER BY hash",
    "SELECT (SELECT max(hash) FROM token)",
    "SELECT t.\"HASH\" FROM main.token AS t",
    "WITH t AS (SELECT * FROM token) SELECT name FROM t",
    "SELECT name FROM token GROUP BY hash",
    "SELECT name FROM token INDEXED BY sqlite_autoindex_token_2 WHERE hash = x''",
    "SELECT hash FROM user",
    "SELECT * FROM user",
    "SELECT name FROM user WHERE substr(hash, 1, 1) = '$'",
    "SELECT hash FROM session",
    "SELECT user FROM session JOIN token USING (hash)",
    "SELECT user FROM session NATURAL JOIN token",
    "SELECT hash FROM (SELECT 1 AS hash) NATURAL FULL JOIN user",
    "SELECT rowid FROM session",
    "SELECT * FROM secret",
    "SELECT count(*) FROM secret",
    "SELECT * FROM idempotency",
    "SELECT scope FROM idempotency",
    "SELECT * FROM sqlite_schema",
};

START_TEST(no_hash_is_read)
{
    ck_assert_int_ne(guarded_run(DB_GUARD_READ, secrets[_i]), DB_OK);
    ck_assert_int_ne(guarded_run(DB_GUARD_WRITE, secrets[_i]), DB_OK);
}
END_TEST

static const char *const writes[] = {
    "UPDATE doc SET body = 'x'",
    "DELETE FROM doc",
    "INSERT INTO token (name, hash, created) VALUES ('mine', zeroblob(31) || x'01', 1)",
    "UPDATE token SET hash = x''",
    "UPDATE token SET read = '/' RETURNING hash",
    "DELETE FROM session",
    "UPDATE user SET read = '/'",
    "UPDATE meta SET value = 0",
    "INSERT INTO doc_text (doc_text) VALUES ('rebuild')",
};

START_TEST(what_the_server_keeps_is_changed_by_functions_only)
{
    ck_assert_int_eq(guarded_run(DB_GUARD_WRITE, writes[_i]), DB_REFUSED);
}
END_TEST

static const char *const others[] = {
    "SELECT doc_head('t/short', 9)",
    "SELECT json_indent('{}')",
    "SELECT key FROM doc",
    "SELECT name FROM token",
    "SELECT text FROM doc_text",
    "SELECT c0 FROM doc_text_content",
};

START_TEST(all_of_it_is_for_the_console)
{
    guarded_grant.console = false;
    ck_assert_int_eq(guarded_run(DB_GUARD_READ, others[_i]), DB_REFUSED);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("guard_head");
    TCase *t = run_case(s, "guard_head");
    temp_use(t);
    tcase_add_checked_fixture(t, fixture, guarded_close);
    tcase_add_loop_test(t, doc_head_gives_the_beginning, 0, COUNT(heads));
    tcase_add_test(t, doc_head_reads_in_a_write_what_was_written);
    tcase_add_test(t, doc_head_reads_no_more_pages_than_it_gives);
    tcase_add_loop_test(t, json_indent_breaks_lines, 0, COUNT(indents));
    tcase_add_loop_test(t, json_indent_is_bounded, 0, COUNT(bounds));
    tcase_add_loop_test(t, the_console_reads_what_the_server_keeps, 0, COUNT(reads));
    tcase_add_loop_test(t, no_hash_is_read, 0, COUNT(secrets));
    tcase_add_loop_test(t, what_the_server_keeps_is_changed_by_functions_only, 0, COUNT(writes));
    tcase_add_loop_test(t, all_of_it_is_for_the_console, 0, COUNT(others));
    return s;
}

int main(void)
{
    return run_suite(suite());
}
