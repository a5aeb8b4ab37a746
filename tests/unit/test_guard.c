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

static Suite *suite(void)
{
    Suite *s = suite_create("guard");
    TCase *t = run_case(s, "guard");
    temp_use(t);
    tcase_add_checked_fixture(t, guarded_open, guarded_close);
    tcase_add_loop_test(t, an_app_works_with_its_own_tables, 0, COUNT(allowed));
    tcase_add_loop_test(t, rows_of_others_are_not_counted, 0, COUNT(counted));
    return s;
}

int main(void)
{
    return run_suite(suite());
}
