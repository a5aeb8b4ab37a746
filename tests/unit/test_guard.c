/* db/guard: what an app may do, and what its failures are called. */
#include "tests/unit/guarded.h"

#include <stdio.h>
#include <string.h>

#include "db/burst.h"

/* ---- what works ---- */

static const struct {
    enum db_guard_mode mode;
    const char *sql, *first;
} allowed[] = {
    {DB_GUARD_READ, "SELECT name FROM shop_item ORDER BY price", "rice"},
    {DB_GUARD_READ, "SELECT count(*) FROM shop_item", "3"},
    {DB_GUARD_READ, "SELECT count(*) FROM main.Shop_Item AS x", "3"},
    {DB_GUARD_READ, "SELECT count(*) FROM \"SHOP_item\"", "3"},
    {DB_GUARD_READ, "SELECT count(*) FROM shop_cheap", "2"},
    {DB_GUARD_READ, "WITH doc AS (SELECT 7 AS n) SELECT n FROM doc", "7"},
    {DB_GUARD_READ, "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n<10) SELECT sum(n) FROM c", "55"},
    {DB_GUARD_READ, "WITH c AS MATERIALIZED (SELECT name FROM shop_item) SELECT count(*) FROM c", "3"},
    {DB_GUARD_READ, "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n<10) SELECT count(*) FROM c", "10"},
    {DB_GUARD_READ, "SELECT 7 FROM (SELECT name FROM shop_item LIMIT 1) AS sub", "7"},
    {DB_GUARD_READ, "SELECT value FROM json_each('[4,5]')", "4"},
    {DB_GUARD_READ, "SELECT count(*) FROM json_tree('{\"a\":[1]}')", "3"},
    {DB_GUARD_READ, "SELECT '{\"a\":5}' ->> 'a'", "5"},
    {DB_GUARD_READ, "SELECT row_number() OVER (ORDER BY price) FROM shop_item", "1"},
    {DB_GUARD_READ, "SELECT text FROM shop_note WHERE shop_note MATCH 'tea' ORDER BY rank", "buy tea"},
    {DB_GUARD_READ, "SELECT highlight(shop_note, 0, '<', '>') FROM shop_note WHERE shop_note MATCH 'tea'", "buy <tea>"},
    {DB_GUARD_READ, "SELECT snippet(shop_note, 0, '<', '>', '…', 4), bm25(shop_note) FROM shop_note('tea')", "buy <tea>"},
    {DB_GUARD_READ, "SELECT length(randomblob(10))", "10"},
    {DB_GUARD_READ, "SELECT strftime('%Y', 0, 'unixepoch')", "1970"},
    {DB_GUARD_READ, "SELECT coalesce(NULL, iif(1, 'a', 'b'))", "a"},
    {DB_GUARD_READ, "VALUES (9)", "9"},
    {DB_GUARD_READ, "EXPLAIN SELECT 1", NULL},
    {DB_GUARD_WRITE, "INSERT INTO shop_item (name) VALUES ('ink') RETURNING name", "ink"},
    {DB_GUARD_WRITE, "INSERT INTO shop_item (name) VALUES ('tea') ON CONFLICT (name) DO UPDATE SET price = 2.5"
                     " RETURNING price", "2.5"},
    {DB_GUARD_WRITE, "UPDATE shop_item SET price = c.price FROM shop_cheap AS c WHERE c.id = shop_item.id", NULL},
    {DB_GUARD_WRITE, "DELETE FROM shop_item WHERE name = 'tea' RETURNING id", "1"},
    {DB_GUARD_WRITE, "DELETE FROM shop_item", NULL},
    {DB_GUARD_WRITE, "INSERT INTO shop_list (title) VALUES ('a'); SELECT last_insert_rowid()", "1"},
    {DB_GUARD_WRITE, "INSERT INTO shop_note VALUES ('ink'); SELECT count(*) FROM shop_note('ink')", "1"},
    {DB_GUARD_WRITE, "INSERT INTO shop_note (shop_note) VALUES ('optimize')", NULL},
    {DB_GUARD_SCHEMA, "CREATE TABLE shop_t (a PRIMARY KEY, b GENERATED ALWAYS AS (a + 1)) WITHOUT ROWID", NULL},
    {DB_GUARD_SCHEMA, "CREATE TABLE shop_t AS SELECT * FROM shop_item", NULL},
    {DB_GUARD_SCHEMA, "CREATE TABLE IF NOT EXISTS shop_item (x)", NULL},
    {DB_GUARD_SCHEMA, "CREATE TABLE shop_t (id INTEGER PRIMARY KEY AUTOINCREMENT)", NULL},
    {DB_GUARD_SCHEMA, "CREATE UNIQUE INDEX shop_i ON shop_item (lower(name)) WHERE name LIKE 'a%'", NULL},
    {DB_GUARD_SCHEMA, "CREATE VIRTUAL TABLE shop_f USING fts5 (name, content='shop_item', content_rowid='id')", NULL},
    {DB_GUARD_SCHEMA, "CREATE VIRTUAL TABLE shop_f USING fts5 (name, content='')", NULL},
    {DB_GUARD_SCHEMA, "CREATE VIRTUAL TABLE shop_r USING rtree (id, a, b); INSERT INTO shop_r VALUES (1, 2, 3);"
                      "SELECT id FROM shop_r WHERE a < 5", "1"},
    {DB_GUARD_SCHEMA, "CREATE TRIGGER shop_tr AFTER INSERT ON shop_item BEGIN"
                      " INSERT INTO shop_list (title) VALUES (new.name); END;"
                      "INSERT INTO shop_item (name) VALUES ('pen'); SELECT title FROM shop_list", "pen"},
    {DB_GUARD_SCHEMA, "ALTER TABLE shop_item RENAME TO shop_thing", NULL},
    {DB_GUARD_SCHEMA, "ALTER TABLE shop_item RENAME COLUMN name TO label", NULL},
    {DB_GUARD_SCHEMA, "ALTER TABLE shop_item ADD COLUMN n INTEGER NOT NULL DEFAULT 0 CHECK (n >= 0)", NULL},
    {DB_GUARD_SCHEMA, "CREATE TABLE shop_t (a, b); ALTER TABLE shop_t DROP COLUMN b", NULL},
    {DB_GUARD_SCHEMA, "DROP VIEW shop_cheap; DROP INDEX shop_item_price; DROP TABLE shop_item; DROP TABLE shop_note;"
                      "DROP TABLE shop_list", NULL},
    {DB_GUARD_SCHEMA, "REINDEX shop_item", NULL},
};

START_TEST(an_app_works_with_its_own_tables)
{
    enum db_result result = guarded_run(allowed[_i].mode, allowed[_i].sql);
    ck_assert_msg(result == DB_OK, "%s: %s", allowed[_i].sql, guarded_error.text);
    if (allowed[_i].first != NULL)
        ck_assert_str_eq(guarded_first, allowed[_i].first);
    tdb_is_sound();
}
END_TEST

/* No column is read: SQLite asks for such a table as it asks for a WITH of that name. */
static const char *const counted[] = {
    "doc", "token", "user", "main.session", "sqlite_schema", "sqlite_master", "shops_secret", "pragma_table_list",
    "pragma_database_list()", "dbstat", "sqlite_dbpage", "sqlite_stmt", "bytecode('SELECT 1')", "app_schema", "secret",
};

START_TEST(rows_of_others_are_not_counted)
{
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", counted[_i]);
    ck_assert_int_ne(guarded_run(DB_GUARD_READ, sql), DB_OK);
    snprintf(sql, sizeof sql, "SELECT EXISTS (SELECT 1 FROM %s)", counted[_i]);
    ck_assert_int_ne(guarded_run(DB_GUARD_READ, sql), DB_OK);
}
END_TEST

/* ---- what it is called ---- */

static const struct {
    enum db_guard_mode mode;
    const char *sql;
    enum db_result result;
    const char *text;
} faults[] = {
    {DB_GUARD_WRITE, "INSERT INTO shop_item (name) VALUES ('tea')", DB_CONFLICT, "UNIQUE constraint failed: shop_item.name"},
    {DB_GUARD_WRITE, "INSERT INTO shop_item (id, name) VALUES (1, 'x')", DB_CONFLICT, "UNIQUE constraint failed: shop_item.id"},
    {DB_GUARD_WRITE, "INSERT INTO shop_item (name) VALUES ('')", DB_INVALID, "CHECK constraint failed: name_not_empty"},
    {DB_GUARD_WRITE, "INSERT INTO shop_item (name) VALUES (NULL)", DB_INVALID,
     "NOT NULL constraint failed: shop_item.name"},
    {DB_GUARD_WRITE, "INSERT INTO shop_item (name, list) VALUES ('x', 99)", DB_INVALID, "FOREIGN KEY constraint failed"},
    {DB_GUARD_WRITE, "INSERT INTO shop_list (id) VALUES ('x')", DB_INVALID, "datatype mismatch"},
    {DB_GUARD_WRITE, "DELETE FROM doc", DB_REFUSED, "the app shop may not delete from doc"},
    {DB_GUARD_READ, "SELECT * FROM token", DB_REFUSED, "the app shop may not read token"},
    {DB_GUARD_READ, "SELECT sqlite_version()", DB_REFUSED, "the function sqlite_version is not for apps"},
    {DB_GUARD_READ, "PRAGMA user_version", DB_REFUSED, "PRAGMA user_version is not for apps"},
    {DB_GUARD_READ, "DELETE FROM shop_item", DB_REFUSED, "a GET writes nothing: delete from shop_item"},
    {DB_GUARD_READ, "BEGIN", DB_REFUSED, "an app has no transactions, savepoints, ATTACH, ANALYZE or TEMP"},
    {DB_GUARD_READ, "SELECT", DB_INVALID, "incomplete input"},
    {DB_GUARD_READ, "SELECT absent FROM shop_item", DB_INVALID, "no such column: absent"},
    {DB_GUARD_READ, "SELECT json('{')", DB_INVALID, "malformed JSON"},
    {DB_GUARD_READ, "SELECT abs(-9223372036854775807 - 1)", DB_INVALID, "integer overflow"},
    {DB_GUARD_READ, "SELECT randomblob(9000000)", DB_TOO_LARGE, "string or blob too big"},
    {DB_GUARD_READ, "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c) SELECT sum(n) FROM c", DB_TIMEOUT,
     "it was stopped at its time limit"},
};

START_TEST(a_failure_has_a_cause_and_words)
{
    enum db_result result = guarded_run_ms(faults[_i].mode, faults[_i].sql, faults[_i].result == DB_TIMEOUT ? 100 : 10000);
    ck_assert_str_eq(guarded_error.text, faults[_i].text);
    ck_assert_int_eq(result, faults[_i].result);
    ck_assert_int_eq(guarded_run(DB_GUARD_READ, "SELECT 1"), DB_OK); /* nothing of it is left */
    ck_assert_int_eq(guarded_run(DB_GUARD_READ, "SELECT"), DB_INVALID);
    ck_assert_str_eq(guarded_error.text, "incomplete input");
}
END_TEST

/* What a trigger of the app says is for people. */
START_TEST(an_author_says_it_in_his_own_words)
{
    ck_assert_int_eq(guarded_schema("CREATE TRIGGER shop_t BEFORE DELETE ON shop_item BEGIN"
                                    " SELECT RAISE(ABORT, 'The last one stays') WHERE old.id = 1; END"), DB_OK);
    ck_assert_int_eq(guarded_run(DB_GUARD_WRITE, "DELETE FROM shop_item"), DB_INVALID);
    ck_assert_str_eq(guarded_error.text, "The last one stays");
}
END_TEST

/* ---- names ---- */

static const struct {
    bool ok;
    const char *name;
} names[] = {
    {true, "shop"},  {true, "a"},    {true, "x9"},       {true, "documents"}, {true, "scores"},  {true, "household"},
    {false, ""},     {false, "9x"},  {false, "Shop"},    {false, "my-app"},   {false, "my_app"}, {false, "a.b"},
    {false, "a b"},  {false, "é"},   {false, "doc"},     {false, "sqlite"},   {false, "token"},  {false, "app"},
    {false, "a/b"},  {false, ".."},  {false, "console"}, {false, "session"},  {false, "json"},   {false, "pragma"},
    {true, "abcdefghijklmnopqrstuvwxyz0123"}, {false, "abcdefghijklmnopqrstuvwxyz01234"},
};

START_TEST(names_of_apps)
{
    ck_assert_int_eq(db_guard_name_ok(names[_i].name), names[_i].ok);
}
END_TEST

/* Whatever table, index or trigger the schema gets: no app's tables can begin as it does. */
START_TEST(no_app_is_named_like_a_table_of_the_server)
{
    sqlite3_stmt *s;
    unsigned seen = 0;
    ck_assert_int_eq(sqlite3_prepare_v2(guarded_conn.db, "SELECT name FROM sqlite_schema WHERE name NOT GLOB 'shop*'"
                                                         " AND name <> 'my_view'", -1, &s, NULL), SQLITE_OK);
    for (; sqlite3_step(s) == SQLITE_ROW; seen++) {
        char name[128];
        sqlite3_snprintf(sizeof name, name, "%s", sqlite3_column_text(s, 0));
        ck_assert_msg(!db_guard_name_ok(name), "%s", name);
        for (char *end = strrchr(name, '_'); end != NULL; end = strrchr(name, '_')) {
            *end = 0;
            ck_assert_msg(!db_guard_name_ok(name), "%s", name);
        }
    }
    ck_assert_uint_gt(seen, 20);
    sqlite3_finalize(s);
}
END_TEST

/* ---- limits ---- */

START_TEST(the_servers_own_statements_have_their_own_limits)
{
    int before = sqlite3_limit(guarded_conn.db, SQLITE_LIMIT_LENGTH, -1);
    static const int all[] = {SQLITE_LIMIT_TRIGGER_DEPTH, SQLITE_LIMIT_EXPR_DEPTH, SQLITE_LIMIT_ATTACHED};
    int were[COUNT(all)];
    for (size_t i = 0; i < COUNT(all); i++)
        were[i] = sqlite3_limit(guarded_conn.db, all[i], -1);
    ck_assert_int_eq(db_guard_enter(&guarded_conn, &guarded_grant, DB_GUARD_WRITE, db_clock_us() + 1000000, 0), DB_OK);
    ck_assert_int_eq(sqlite3_limit(guarded_conn.db, SQLITE_LIMIT_LENGTH, -1), 8 << 20);
    db_guard_pause(&guarded_conn);
    ck_assert_int_eq(sqlite3_limit(guarded_conn.db, SQLITE_LIMIT_LENGTH, -1), before);
    tdb_sql(guarded_conn.db, "UPDATE doc SET body = zeroblob(9000000)");
    db_guard_resume(&guarded_conn);
    ck_assert_int_eq(sqlite3_limit(guarded_conn.db, SQLITE_LIMIT_LENGTH, -1), 8 << 20);
    ck_assert(!tdb_try(guarded_conn.db, "UPDATE doc SET body = ''"));
    db_guard_leave(&guarded_conn);
    db_guard_leave(&guarded_conn);
    ck_assert_int_eq(sqlite3_limit(guarded_conn.db, SQLITE_LIMIT_LENGTH, -1), before);
    for (size_t i = 0; i < COUNT(all); i++)
        ck_assert_int_eq(sqlite3_limit(guarded_conn.db, all[i], -1), were[i]);
    tdb_sql(guarded_conn.db, "UPDATE doc SET body = ''");
}
END_TEST

/* What is prepared before is no wider for it, and what is prepared again, after the schema changed, is still the app's. */
START_TEST(a_statement_that_is_prepared_again_is_still_the_apps)
{
    sqlite3_stmt *s;
    ck_assert_int_eq(db_guard_enter(&guarded_conn, &guarded_grant, DB_GUARD_READ, db_clock_us() + 10000000, 0), DB_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(guarded_conn.db, "SELECT * FROM shop_v", -1, &s, NULL), SQLITE_ERROR);
    db_guard_leave(&guarded_conn);
    ck_assert_int_eq(guarded_schema("CREATE VIEW shop_v AS SELECT name FROM shop_item"), DB_OK);
    ck_assert_int_eq(db_guard_enter(&guarded_conn, &guarded_grant, DB_GUARD_READ, db_clock_us() + 10000000, 0), DB_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(guarded_conn.db, "SELECT * FROM shop_v", -1, &s, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(s), SQLITE_ROW);
    sqlite3_reset(s);
    db_guard_leave(&guarded_conn);
    sqlite3 *shell = tdb_shell();
    tdb_sql(shell, "DROP VIEW shop_v; CREATE VIEW shop_v AS SELECT hash FROM user");
    sqlite3_close(shell);
    ck_assert_int_eq(db_guard_enter(&guarded_conn, &guarded_grant, DB_GUARD_READ, db_clock_us() + 10000000, 0), DB_OK);
    ck_assert_int_ne(sqlite3_step(s), SQLITE_ROW);
    db_guard_leave(&guarded_conn);
    sqlite3_finalize(s);
}
END_TEST

/* Tables of the server that a grant opens, and how far. */
static const struct {
    bool documents, console, ok;
    const char *sql;
} grants[] = {
    {true, false, true, "SELECT key, type, size, seq, modified, body FROM doc"},
    {true, false, true, "SELECT count(*) FROM doc"},
    {true, false, false, "SELECT seq FROM change"},
    {true, false, false, "SELECT name FROM token"},
    {true, false, false, "SELECT place FROM doc_text"},
    {false, true, true, "SELECT key FROM doc"},
    {false, true, true, "SELECT seq, op FROM change"},
    {false, true, true, "SELECT name, read, write, created, expires FROM token"},
    {false, true, true, "SELECT count(*) FROM session"},
    {false, true, true, "SELECT name FROM user JOIN session ON session.user = user.id"},
    {false, true, true, "SELECT prefix FROM search_collection"},
    {false, true, true, "SELECT app, file FROM app_schema"},
    {false, true, false, "SELECT hash FROM token"},
    {false, true, false, "SELECT * FROM token"},
    {false, true, false, "SELECT 1 FROM token WHERE hash > x'00'"},
    {false, true, false, "SELECT hash FROM user"},
    {false, true, false, "SELECT hash FROM session"},
    {false, true, false, "SELECT name FROM secret"},
    {false, true, false, "SELECT count(*) FROM secret"},
    {false, true, false, "SELECT scope FROM idempotency"},
    {false, true, false, "SELECT x FROM shops_secret"},
    {false, true, false, "SELECT sql FROM sqlite_schema"},
};

START_TEST(a_grant_opens_what_it_says)
{
    guarded_grant.documents = grants[_i].documents;
    guarded_grant.console = grants[_i].console;
    enum db_result result = guarded_run(DB_GUARD_READ, grants[_i].sql);
    ck_assert_msg(result == (grants[_i].ok ? DB_OK : DB_REFUSED), "%s: %s", grants[_i].sql, guarded_error.text);
    ck_assert_int_eq(guarded_run(DB_GUARD_WRITE, "DELETE FROM doc"), DB_REFUSED);
    ck_assert_int_eq(guarded_run(DB_GUARD_WRITE, "UPDATE token SET read = '/'"), DB_REFUSED);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("guard");
    TCase *t = run_case(s, "guard");
    temp_use(t);
    tcase_add_checked_fixture(t, guarded_open, guarded_close);
    tcase_add_loop_test(t, an_app_works_with_its_own_tables, 0, COUNT(allowed));
    tcase_add_loop_test(t, rows_of_others_are_not_counted, 0, COUNT(counted));
    tcase_add_loop_test(t, a_failure_has_a_cause_and_words, 0, COUNT(faults));
    tcase_add_test(t, an_author_says_it_in_his_own_words);
    tcase_add_loop_test(t, names_of_apps, 0, COUNT(names));
    tcase_add_test(t, no_app_is_named_like_a_table_of_the_server);
    tcase_add_test(t, the_servers_own_statements_have_their_own_limits);
    tcase_add_test(t, a_statement_that_is_prepared_again_is_still_the_apps);
    tcase_add_loop_test(t, a_grant_opens_what_it_says, 0, COUNT(grants));
    return s;
}

int main(void)
{
    return run_suite(suite());
}
