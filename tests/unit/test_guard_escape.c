/* db/guard against a determined author: each attempt with what becomes of it. Whatever it is, what is not the app's stays
 * as it was, and nothing runs for longer than it may. */
#include <stdio.h>
#include <string.h>

#include "db/burst.h"
#include "db/guard_internal.h"
#include "tests/unit/guarded.h"

enum { READ = DB_GUARD_READ, WRITE = DB_GUARD_WRITE, SCHEMA = DB_GUARD_SCHEMA };

enum verdict {
    REFUSED,  /* by the guard */
    FAILS,    /* by SQLite */
    STOPPED,  /* at the time limit */
    LARGE,    /* a value, by its length */
    HARMLESS, /* it runs */
    NOT,      /* anything but running */
};

struct attempt {
    enum verdict verdict;
    int mode;
    const char *sql, *schema; /* a file of schema/ that is run before, and allowed */
};

/* Everything that is not the app's, as one text. */
static char *others(void)
{
    static const char *const queries[] = {
        "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'shop\\_%' ESCAPE '\\'"
        " AND tbl_name NOT LIKE 'shop\\_%' ESCAPE '\\' ORDER BY 1, 2",
        "SELECT name, seq, '', '' FROM sqlite_sequence WHERE name NOT LIKE 'shop\\_%' ESCAPE '\\' ORDER BY 1",
        "SELECT key, seq, type, body FROM doc ORDER BY 1",
        "SELECT seq, key, op, prev FROM change ORDER BY 1",
        "SELECT name, value, '', '' FROM meta ORDER BY 1",
        "SELECT x, '', '', '' FROM shops_secret",
        "SELECT name, hash, read, write FROM token",
        "SELECT user_version, application_id, journal_mode, page_size FROM pragma_user_version, pragma_application_id,"
        " pragma_journal_mode, pragma_page_size",
        "SELECT foreign_keys, synchronous, recursive_triggers, writable_schema FROM pragma_foreign_keys,"
        " pragma_synchronous, pragma_recursive_triggers, pragma_writable_schema",
        "SELECT name, file IS NOT NULL, '', '' FROM pragma_database_list WHERE name <> 'temp'",
    };
    sqlite3_str *out = sqlite3_str_new(NULL);
    for (size_t i = 0; i < COUNT(queries); i++) {
        sqlite3_stmt *s;
        ck_assert_msg(sqlite3_prepare_v2(guarded_conn.db, queries[i], -1, &s, NULL) == SQLITE_OK, "%s: %s", queries[i],
                      sqlite3_errmsg(guarded_conn.db));
        while (sqlite3_step(s) == SQLITE_ROW)
            for (int k = 0; k < 4; k++)
                sqlite3_str_appendf(out, "%s|", sqlite3_column_text(s, k));
        ck_assert_int_eq(sqlite3_finalize(s), SQLITE_OK);
    }
    return sqlite3_str_finish(out);
}

static void verify(const struct attempt *a, enum db_result result)
{
    const char *why = guarded_error.text;
    switch (a->verdict) {
    case REFUSED: ck_assert_msg(result == DB_REFUSED, "%.300s: %d %s", a->sql, result, why); break;
    case FAILS: ck_assert_msg(result == DB_INVALID || result == DB_CONFLICT, "%.300s: %d %s", a->sql, result, why); break;
    case STOPPED: ck_assert_msg(result == DB_TIMEOUT, "%.300s: %d %s", a->sql, result, why); break;
    case LARGE: ck_assert_msg(result == DB_TOO_LARGE, "%.300s: %d %s", a->sql, result, why); break;
    case HARMLESS: ck_assert_msg(result == DB_OK, "%.300s: %d %s", a->sql, result, why); break;
    case NOT: ck_assert_msg(result != DB_OK && result != DB_BROKEN, "%.300s: %d %s", a->sql, result, why); break;
    }
}

static void try(const struct attempt *a)
{
    enum { MS = 150 };
    if (a->schema != NULL)
        ck_assert_msg(guarded_schema(a->schema) == DB_OK, "%s: %s", a->schema, guarded_error.text);
    char *before = others();
    uint64_t start = db_clock_us();
    enum db_result result = guarded_run_ms((enum db_guard_mode)a->mode, a->sql, a->verdict == STOPPED ? MS : 20000);
    uint64_t took_ms = (db_clock_us() - start) / 1000;
    verify(a, result);
    if (a->verdict == STOPPED)
        ck_assert_msg(took_ms < (SANITIZED ? 6000 : 1200), "%.300s: %d ms", a->sql, (int)took_ms);
    char *after = others();
    ck_assert_str_eq(before, after);
    sqlite3_free(before);
    sqlite3_free(after);
    ck_assert_int_eq(guarded_run(DB_GUARD_READ, "SELECT 1"), DB_OK);
    tdb_is_sound();
}

/* ---- reading what is somebody else's ---- */

static const struct attempt readings[] = {
    {REFUSED, READ, "SELECT body FROM doc", NULL},
    {REFUSED, READ, "SELECT body FROM main.doc", NULL},
    {REFUSED, READ, "SELECT body FROM DOC AS shop_item", NULL},
    {REFUSED, READ, "SELECT count(*) FROM doc", NULL},
    {REFUSED, READ, "SELECT 1 FROM doc", NULL},
    {REFUSED, READ, "SELECT EXISTS (SELECT 1 FROM doc)", NULL},
    {HARMLESS, READ, "SELECT 1 WHERE 0 AND (SELECT body FROM doc)", NULL},
    {REFUSED, READ, "SELECT rowid FROM doc", NULL},
    {REFUSED, READ, "SELECT (SELECT group_concat(body) FROM doc) FROM shop_item", NULL},
    {REFUSED, READ, "SELECT 1 FROM shop_item JOIN doc USING (id)", NULL},
    {REFUSED, READ, "SELECT 1 FROM shop_item NATURAL LEFT JOIN doc", NULL},
    {REFUSED, READ, "SELECT body FROM (SELECT 1 AS body) NATURAL FULL JOIN doc", NULL},
    {REFUSED, READ, "SELECT hash FROM (SELECT 1 AS hash) FULL JOIN token USING (hash)", NULL},
    {REFUSED, READ, "SELECT hash FROM (SELECT 1 AS hash) FULL JOIN session\nusing/**/--\n(hash)", NULL},
    {REFUSED, READ, "SELECT value FROM (SELECT 1 AS value) natural/* */full JOIN secret", NULL},
    {REFUSED, READ, "SELECT k.key FROM (SELECT 'notes/a' AS key) AS k JOIN doc USING(\"key\")", NULL},
    {REFUSED, READ, "SELECT k.key FROM (SELECT 'notes/a' AS key) AS k CROSS JOIN doc USING (key)", NULL},
    {REFUSED, READ, "WITH k(key) AS (VALUES ('notes/a')) SELECT count(*) FROM k NATURAL JOIN doc", NULL},
    {REFUSED, SCHEMA, "CREATE VIEW shop_v AS SELECT body FROM (SELECT 1 AS body) NATURAL FULL JOIN doc", NULL},
    {REFUSED, SCHEMA, "CREATE TRIGGER shop_t AFTER INSERT ON shop_item BEGIN INSERT INTO shop_note SELECT hash FROM"
                      " (SELECT 1 AS hash) FULL JOIN token USING (hash); END", NULL},
    {REFUSED, WRITE, "UPDATE shop_item SET name = key FROM (SELECT 1 AS key) NATURAL FULL JOIN doc", NULL},
    {REFUSED, WRITE, "DELETE FROM shop_item WHERE EXISTS (SELECT 1 FROM (SELECT 1 AS hash) NATURAL JOIN token)", NULL},
    {HARMLESS, READ, "SELECT 'natural', \"natural\" FROM (SELECT 1 AS \"natural\") -- USING (x)", NULL},
    {REFUSED, READ, "SELECT name FROM shop_item UNION SELECT body FROM doc", NULL},
    {REFUSED, READ, "SELECT name FROM shop_item ORDER BY (SELECT max(body) FROM doc)", NULL},
    {REFUSED, READ, "SELECT name FROM shop_item LIMIT (SELECT count(*) FROM doc)", NULL},
    {REFUSED, READ, "SELECT sum(price) FILTER (WHERE EXISTS (SELECT 1 FROM doc)) OVER () FROM shop_item", NULL},
    {REFUSED, READ, "WITH shop_x AS (SELECT body FROM doc) SELECT * FROM shop_x", NULL},
    {REFUSED, READ, "WITH doc AS (SELECT body FROM main.doc) SELECT * FROM doc", NULL},
    {REFUSED, READ, "SELECT 1 FROM shop_item WHERE 1 IN doc", NULL},
    {REFUSED, READ, "SELECT * FROM \"doc\"", NULL},
    {REFUSED, READ, "SELECT * FROM [doc]", NULL},
    {REFUSED, READ, "SELECT * FROM `doc`", NULL},
    {REFUSED, READ, "SELECT * FROM 'doc'", NULL},
    {FAILS, READ, "SELECT * FROM \"shop_item\".\"doc\"", NULL},
    {FAILS, READ, "SELECT * FROM ｄoc", NULL}, /* a wide d */
    {FAILS, READ, "SELECT * FROM doc\xcc\x81", NULL},
    {REFUSED, READ, "SELECT * FROM shops_secret", NULL},
    {REFUSED, READ, "SELECT * FROM SHOPS_secret", NULL},
    {REFUSED, READ, "SELECT * FROM my_view", NULL},
    {REFUSED, READ, "SELECT hash FROM token", NULL},
    {REFUSED, READ, "SELECT hash FROM session", NULL},
    {REFUSED, READ, "SELECT hash FROM user", NULL},
    {REFUSED, READ, "SELECT value FROM secret", NULL},
    {REFUSED, READ, "SELECT sql FROM app_schema", NULL},
    {REFUSED, READ, "SELECT text FROM doc_text WHERE doc_text MATCH 'a'", NULL},
    {REFUSED, READ, "SELECT block FROM doc_text_data", NULL},
    {REFUSED, READ, "SELECT sql FROM sqlite_schema", NULL},
    {REFUSED, READ, "SELECT sql FROM sqlite_master", NULL},
    {REFUSED, READ, "SELECT count(*) FROM main.sqlite_master", NULL},
    {REFUSED, READ, "SELECT rowid FROM sqlite_master", NULL},
    {REFUSED, READ, "SELECT sql FROM sqlite_temp_master", NULL},
    {REFUSED, READ, "SELECT seq FROM sqlite_sequence", NULL},
    {NOT, READ, "SELECT sql FROM sqlite_stmt", NULL},
    {NOT, READ, "SELECT * FROM sqlite_dbpage", NULL},
    {REFUSED, READ, "SELECT * FROM dbstat", NULL},
    {NOT, READ, "SELECT * FROM bytecode('SELECT 1')", NULL},
    {NOT, READ, "SELECT * FROM fts5vocab", NULL},
    {REFUSED, READ, "SELECT * FROM pragma_table_list", NULL},
    {REFUSED, READ, "SELECT * FROM pragma_table_info('doc')", NULL},
    {REFUSED, READ, "SELECT * FROM pragma_database_list", NULL},
    {REFUSED, READ, "SELECT * FROM pragma_function_list", NULL},
    {REFUSED, READ, "SELECT * FROM pragma_quick_check('doc')", NULL},
    /* hidden by what is its own */
    {REFUSED, READ, "SELECT * FROM shop_v", "CREATE VIEW shop_v AS SELECT body FROM doc"},
    {REFUSED, READ, "SELECT * FROM shop_w",
     "CREATE VIEW shop_v AS SELECT body FROM doc; CREATE VIEW shop_w AS SELECT * FROM shop_v"},
    {REFUSED, READ, "SELECT count(*) FROM shop_v", "CREATE VIEW shop_v AS SELECT 1 FROM shops_secret"},
    {REFUSED, READ, "SELECT * FROM shop_v", "CREATE VIEW shop_v AS SELECT * FROM pragma_table_list"},
    {REFUSED, WRITE, "INSERT INTO shop_item (name) VALUES ('x')",
     "CREATE TRIGGER shop_t AFTER INSERT ON shop_item BEGIN INSERT INTO shop_list (title) SELECT body FROM doc; END"},
    {REFUSED, WRITE, "DELETE FROM shop_v",
     "CREATE VIEW shop_v AS SELECT 1 AS a; CREATE TRIGGER shop_t INSTEAD OF DELETE ON shop_v BEGIN"
     " INSERT INTO shop_list (title) SELECT group_concat(body) FROM doc; END"},
    {REFUSED, WRITE, "INSERT INTO shop_item (name) SELECT body FROM doc", NULL},
    {REFUSED, WRITE, "UPDATE shop_item SET name = doc.body FROM doc", NULL},
    {REFUSED, WRITE, "UPDATE shop_item SET name = (SELECT body FROM doc)", NULL},
    {REFUSED, WRITE, "DELETE FROM shop_item RETURNING (SELECT body FROM doc)", NULL},
    {REFUSED, WRITE, "INSERT INTO shop_item (name) VALUES ('tea') ON CONFLICT DO UPDATE SET name = (SELECT body FROM doc)", NULL},
    {REFUSED, SCHEMA, "CREATE TABLE shop_x AS SELECT * FROM doc", NULL},
    {REFUSED, SCHEMA, "CREATE TABLE shop_x AS SELECT sql FROM sqlite_schema", NULL},
    {REFUSED, SCHEMA, "CREATE TABLE shop_x AS SELECT name FROM \"SQLite_Master\"", NULL},
    {NOT, SCHEMA, "CREATE INDEX shop_x ON shop_item ((SELECT body FROM doc))", NULL},
    {REFUSED, SCHEMA, "CREATE VIRTUAL TABLE shop_f USING fts5 (body, content='doc', content_rowid='id')", NULL},
    {REFUSED, SCHEMA, "CREATE VIRTUAL TABLE shop_f USING fts5 (body, content=doc)", NULL},
    {REFUSED, SCHEMA, "CREATE VIRTUAL TABLE shop_f USING fts5 (body, c = \"doc\")", NULL},
    {REFUSED, SCHEMA, "CREATE VIRTUAL TABLE shop_f USING fts5 (body, CONT='shops_secret')", NULL},
    {NOT, SCHEMA, "CREATE VIRTUAL TABLE shop_f USING fts5 (body, content='', content='doc')", NULL},
    {REFUSED, SCHEMA, "CREATE VIRTUAL TABLE shop_f USING fts5vocab (doc_text, row)", NULL},
    {REFUSED, SCHEMA, "CREATE VIRTUAL TABLE shop_f USING fts4 (content='doc', body)", NULL},
    {REFUSED, SCHEMA, "CREATE VIRTUAL TABLE shop_f USING dbstat", NULL},
    {NOT, SCHEMA, "CREATE VIRTUAL TABLE shop_f USING csv (filename='/etc/passwd')", NULL},
    {REFUSED, SCHEMA, "CREATE TABLE shop_x (a REFERENCES doc (key))", NULL},
    {REFUSED, SCHEMA, "CREATE TABLE shop_x (a, FOREIGN KEY (a) REFERENCES shops_secret ON DELETE CASCADE)", NULL},
    {REFUSED, SCHEMA, "ALTER TABLE shop_item ADD COLUMN k REFERENCES token (name)", NULL},
};

/* ---- changing it ---- */

static const struct attempt changes[] = {
    {REFUSED, READ, "DELETE FROM shop_item", NULL},
    {REFUSED, READ, "INSERT INTO shop_item (name) VALUES ('x')", NULL},
    {REFUSED, READ, "UPDATE shop_item SET price = 0", NULL},
    {REFUSED, READ, "CREATE TABLE shop_x (a)", NULL},
    {REFUSED, READ, "REPLACE INTO shop_item (name) VALUES ('x') RETURNING id", NULL},
    {REFUSED, READ, "INSERT INTO shop_note (shop_note) VALUES ('rebuild')", NULL},
    {REFUSED, WRITE, "DELETE FROM doc", NULL},
    {REFUSED, WRITE, "INSERT INTO doc (key, body) VALUES ('a', 'b')", NULL},
    {REFUSED, WRITE, "UPDATE doc SET body = ''", NULL},
    {REFUSED, WRITE, "DELETE FROM \"Doc\" WHERE 0", NULL},
    {REFUSED, WRITE, "INSERT INTO token (name, hash, created) VALUES ('a', zeroblob(32), 0)", NULL},
    {REFUSED, WRITE, "UPDATE user SET read = '/'", NULL},
    {REFUSED, WRITE, "DELETE FROM session", NULL},
    {REFUSED, WRITE, "DELETE FROM shops_secret", NULL},
    {NOT, WRITE, "UPDATE my_view SET x = 1", NULL},
    {REFUSED, WRITE, "INSERT INTO doc_text (text) VALUES ('x')", NULL},
    {REFUSED, WRITE, "INSERT INTO doc_text (doc_text) VALUES ('delete-all')", NULL},
    {REFUSED, WRITE, "UPDATE sqlite_sequence SET seq = 9223372036854775807", NULL},
    {REFUSED, WRITE, "DELETE FROM sqlite_sequence", NULL},
    {REFUSED, WRITE, "UPDATE meta SET value = 99 WHERE name = 'min_program'", NULL},
    {NOT, WRITE, "UPDATE sqlite_master SET sql = ''", NULL},
    {NOT, WRITE, "DELETE FROM sqlite_master", NULL},
    {FAILS, WRITE, "DELETE FROM shop_note_data", NULL}, /* of its own index, but not by hand */
    {FAILS, WRITE, "UPDATE shop_note_config SET v = 99", NULL},
    {REFUSED, WRITE, "CREATE TABLE shop_x (a)", NULL},
    {REFUSED, WRITE, "DROP TABLE shop_item", NULL},
    {REFUSED, WRITE, "ALTER TABLE shop_item RENAME TO shop_x", NULL},
    {REFUSED, WRITE, "CREATE TEMP TABLE shop_x (a)", NULL},
    {REFUSED, WRITE, "CREATE TEMP VIEW shop_x AS SELECT 1", NULL},
    {REFUSED, WRITE, "CREATE TEMP TRIGGER shop_x AFTER INSERT ON main.doc BEGIN SELECT 1; END", NULL},
    {REFUSED, WRITE, "CREATE TABLE temp.shop_x (a)", NULL},
    {REFUSED, WRITE, "REINDEX", NULL},
    {REFUSED, WRITE, "ANALYZE", NULL},
    {NOT, SCHEMA, "REINDEX", NULL},
    {REFUSED, SCHEMA, "ANALYZE", NULL},
    {REFUSED, SCHEMA, "ANALYZE shop_item", NULL},
    {REFUSED, SCHEMA, "CREATE TABLE other (a)", NULL},
    {REFUSED, SCHEMA, "CREATE TABLE shop (a)", NULL},
    {REFUSED, SCHEMA, "CREATE TABLE shopx (a)", NULL},
    {REFUSED, SCHEMA, "CREATE TABLE \"shop\xc2\xa0_x\" (a)", NULL},
    {REFUSED, SCHEMA, "CREATE TABLE doc_x (a)", NULL},
    {REFUSED, SCHEMA, "CREATE TABLE \"\" (a)", NULL},
    {NOT, SCHEMA, "CREATE TABLE sqlite_shop_x (a)", NULL},
    {REFUSED, SCHEMA, "CREATE TEMP TABLE shop_x (a)", NULL},
    {REFUSED, SCHEMA, "CREATE TEMP TRIGGER shop_x AFTER INSERT ON main.doc BEGIN DELETE FROM doc; END", NULL},
    {REFUSED, SCHEMA, "CREATE INDEX shop_x ON doc (type)", NULL},
    {REFUSED, SCHEMA, "CREATE UNIQUE INDEX doc_x ON shop_item (price)", NULL},
    {REFUSED, SCHEMA, "CREATE TRIGGER shop_x AFTER INSERT ON doc BEGIN SELECT 1; END", NULL},
    {REFUSED, SCHEMA, "CREATE TRIGGER shop_x BEFORE DELETE ON token BEGIN SELECT RAISE(IGNORE); END", NULL},
    {REFUSED, SCHEMA, "CREATE TRIGGER shop_x INSTEAD OF INSERT ON my_view BEGIN SELECT 1; END", NULL},
    {REFUSED, SCHEMA, "CREATE TRIGGER other AFTER INSERT ON shop_item BEGIN SELECT 1; END", NULL},
    {REFUSED, SCHEMA, "CREATE VIEW other AS SELECT 1", NULL},
    {REFUSED, SCHEMA, "CREATE VIRTUAL TABLE other USING fts5 (a)", NULL},
    {REFUSED, SCHEMA, "DROP TABLE doc", NULL},
    {REFUSED, SCHEMA, "DROP TABLE shops_secret", NULL},
    {REFUSED, SCHEMA, "DROP TABLE doc_text", NULL},
    {REFUSED, SCHEMA, "DROP TRIGGER doc_insert", NULL},
    {REFUSED, SCHEMA, "DROP INDEX session_user", NULL},
    {REFUSED, SCHEMA, "DROP VIEW my_view", NULL},
    {REFUSED, SCHEMA, "DROP TABLE IF EXISTS main.\"Doc\"", NULL},
    {REFUSED, SCHEMA, "ALTER TABLE doc RENAME TO shop_doc", NULL},
    {REFUSED, SCHEMA, "ALTER TABLE doc ADD COLUMN x", NULL},
    {REFUSED, SCHEMA, "ALTER TABLE token RENAME COLUMN hash TO x", NULL},
    {REFUSED, SCHEMA, "ALTER TABLE doc DROP COLUMN body", NULL},
    {REFUSED, SCHEMA, "ALTER TABLE shop_item RENAME TO doc2", NULL},
    {REFUSED, SCHEMA, "ALTER TABLE shop_item RENAME TO \"shopitem\"", NULL},
    {REFUSED, SCHEMA, "ALTER TABLE shop_note RENAME TO note", NULL},
    {NOT, SCHEMA, "ALTER TABLE shop_item RENAME TO doc", NULL},
    {REFUSED, SCHEMA, "UPDATE sqlite_sequence SET seq = 9223372036854775807 WHERE name = 'change'", NULL},
    {REFUSED, SCHEMA, "DELETE FROM 'sqlite_sequence'", NULL},
    {REFUSED, SCHEMA, "UPDATE [sqlite_sequence] SET seq = 1", NULL},
    {REFUSED, SCHEMA, "UPDATE/**/SQLITE_SEQUENCE SET seq = 1", NULL},
    {REFUSED, SCHEMA, "INSERT INTO \"sqlite_sequence\" VALUES ('change', 1)", NULL},
    {REFUSED, SCHEMA, "INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 2, '')", NULL},
    {REFUSED, SCHEMA, "UPDATE sqlite_schema SET rootpage = 2 WHERE name = 'shop_item'", NULL},
    {REFUSED, WRITE, "INSERT INTO shop_item (name) VALUES ('x')",
     "CREATE TRIGGER shop_t AFTER INSERT ON shop_item BEGIN DELETE FROM doc; END"},
    {REFUSED, WRITE, "INSERT INTO shop_item (name) VALUES ('x')",
     "CREATE TRIGGER shop_t AFTER INSERT ON shop_item BEGIN INSERT OR REPLACE INTO token (name, hash, read, write, created)"
     " VALUES ('mine', zeroblob(32), '/', '/', 0); END"},
    {REFUSED, WRITE, "DELETE FROM shop_list",
     "CREATE TRIGGER shop_t AFTER UPDATE ON shop_item BEGIN UPDATE doc SET body = ''; END;"
     "CREATE TRIGGER shop_u AFTER DELETE ON shop_list BEGIN UPDATE shop_item SET price = 0; END"},
};

/* ---- the transaction, the process, the machine ---- */

static const struct attempt outside[] = {
    {REFUSED, READ, "PRAGMA user_version", NULL},
    {REFUSED, READ, "PRAGMA data_version", NULL},
    {REFUSED, WRITE, "PRAGMA user_version = 7", NULL},
    {REFUSED, WRITE, "PRAGMA writable_schema = ON", NULL},
    {REFUSED, WRITE, "PRAGMA foreign_keys = OFF", NULL},
    {REFUSED, WRITE, "PRAGMA journal_mode = OFF", NULL},
    {REFUSED, WRITE, "PRAGMA main.journal_mode = DELETE", NULL},
    {REFUSED, WRITE, "PRAGMA temp_store_directory = '/tmp'", NULL},
    {REFUSED, WRITE, "PRAGMA wal_checkpoint(TRUNCATE)", NULL},
    {REFUSED, WRITE, "PRAGMA main.page_size = 512", NULL},
    {REFUSED, WRITE, "PRAGMA case_sensitive_like = ON", NULL},
    {REFUSED, WRITE, "PRAGMA recursive_triggers = ON", NULL},
    {REFUSED, SCHEMA, "PRAGMA ignore_check_constraints = ON", NULL},
    {REFUSED, SCHEMA, "PRAGMA integrity_check", NULL},
    {REFUSED, SCHEMA, "PRAGMA main.quick_check('doc')", NULL},
    {REFUSED, WRITE, "ATTACH '/etc/passwd' AS x", NULL},
    {REFUSED, WRITE, "ATTACH ':memory:' AS shop_x", NULL},
    {REFUSED, SCHEMA, "ATTACH 'file:/tmp/x?mode=rwc' AS x", NULL},
    {REFUSED, WRITE, "DETACH main", NULL},
    {NOT, WRITE, "VACUUM", NULL},
    {NOT, WRITE, "VACUUM INTO '/tmp/hanji-stolen.db'", NULL},
    {NOT, READ, "VACUUM INTO '/tmp/hanji-stolen.db'", NULL},
    {REFUSED, WRITE, "BEGIN", NULL},
    {REFUSED, WRITE, "COMMIT", NULL},
    {REFUSED, WRITE, "END", NULL},
    {REFUSED, WRITE, "ROLLBACK", NULL},
    {REFUSED, WRITE, "ROLLBACK TO batch", NULL},
    {REFUSED, WRITE, "SAVEPOINT shop_x", NULL},
    {REFUSED, WRITE, "RELEASE batch", NULL},
    {REFUSED, READ, "BEGIN IMMEDIATE", NULL},
    {REFUSED, SCHEMA, "INSERT OR ROLLBACK INTO shop_item (name) VALUES ('tea')", NULL},
    {REFUSED, SCHEMA, "CREATE TABLE shop_x (a UNIQUE ON CONFLICT ROLLBACK)", NULL},
    {REFUSED, SCHEMA, "CREATE TRIGGER shop_x AFTER INSERT ON shop_item BEGIN SELECT RAISE ( ROLLBACK, 'x'); END", NULL},
    {REFUSED, SCHEMA,
     "CREATE TRIGGER shop_x AFTER INSERT ON shop_item BEGIN UPDATE OR/**/ROLLBACK shop_item SET id = 1; END", NULL},
    {REFUSED, READ, "SELECT load_extension('/tmp/x.so')", NULL},
    {NOT, READ, "SELECT readfile('/etc/passwd')", NULL},
    {NOT, READ, "SELECT writefile('/tmp/x', 'x')", NULL},
    {NOT, READ, "SELECT edit('x', 'sh')", NULL},
    {NOT, READ, "SELECT fts3_tokenizer('simple')", NULL},
    {NOT, READ, "SELECT fts3_tokenizer('simple', x'4141414141414141')", NULL},
    {NOT, READ, "SELECT fts5(NULL)", NULL},
    {REFUSED, READ, "SELECT rtreecheck('main', 'doc')", NULL},
    {REFUSED, READ, "SELECT rtreenode(2, x'00')", NULL},
    {REFUSED, READ, "SELECT sqlite_version()", NULL},
    {REFUSED, READ, "SELECT sqlite_compileoption_get(1)", NULL},
    {REFUSED, READ, "SELECT sqlite_log(1, 'x')", NULL},
    {REFUSED, READ, "SELECT total_changes()", NULL},
    {REFUSED, READ, "SELECT console('status')", NULL},
    {REFUSED, WRITE, "SELECT token_new('x', '/', '/', 1)", NULL},
    {NOT, SCHEMA, "SELECT sqlite_rename_table('main', 'table', 'doc', '', 'doc', 'x', 0)", NULL},
    {NOT, SCHEMA, "SELECT sqlite_drop_column(0, 'CREATE TABLE doc (a, b)', 1)", NULL},
    {REFUSED, READ, "SELECT json_patch('{}', '{}')", NULL},
    {FAILS, READ, "SELECT shop_item.body FROM shop_item", NULL},
    {HARMLESS, READ, "EXPLAIN QUERY PLAN SELECT * FROM shop_item", NULL},
    {REFUSED, READ, "EXPLAIN SELECT * FROM doc", NULL},
    {REFUSED, READ, "EXPLAIN DELETE FROM doc", NULL},
    {HARMLESS, WRITE, "INSERT OR REPLACE INTO shop_item (id, name) VALUES (1, 'x')", NULL},
    {HARMLESS, WRITE, "INSERT OR IGNORE INTO shop_item (id, name) VALUES (1, 'x')", NULL},
    {FAILS, WRITE, "INSERT OR FAIL INTO shop_item (name) VALUES ('new'), ('tea')", NULL},
    {FAILS, WRITE, "INSERT INTO shop_list VALUES (9223372036854775807, 'x'); INSERT INTO shop_list (title) VALUES ('y')", NULL},
    {FAILS, WRITE, "INSERT INTO shop_note (shop_note, rowid, text) VALUES ('delete', 1, 'not what is there')", NULL},
    {NOT, WRITE, "INSERT INTO shop_f (shop_f, rowid, name) VALUES ('delete', 1, 'none');"
                 "INSERT INTO shop_f (shop_f) VALUES ('integrity-check')",
     "CREATE VIRTUAL TABLE shop_f USING fts5 (name, content='shop_item', content_rowid='id')"},
};

/* ---- time and memory ---- */

#define ENDLESS "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
#define MANY "(SELECT value FROM json_each('[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0]'))"

static const struct attempt bombs[] = {
    {STOPPED, READ, ENDLESS " SELECT count(*) FROM c", NULL},
    {STOPPED, READ, ENDLESS " SELECT max(n) OVER (ORDER BY n) FROM c", NULL},
    {STOPPED, READ, ENDLESS " SELECT n FROM c ORDER BY n", NULL},
    {STOPPED, READ, ENDLESS " SELECT 1 FROM c, c AS d WHERE d.n < 0", NULL},
    {STOPPED, READ, ENDLESS " SELECT sum(length(hex(randomblob(400000)))) FROM c", NULL},
    {STOPPED, READ, ENDLESS " SELECT count(DISTINCT randomblob(20)) FROM c", NULL},
    {LARGE, READ, ENDLESS " SELECT count(DISTINCT randomblob(1000000)) FROM c", NULL},
    {LARGE, READ, ENDLESS " SELECT randomblob(100000) AS b FROM c ORDER BY b", NULL},
    {LARGE, READ, "WITH RECURSIVE c(b) AS (SELECT zeroblob(100000) UNION ALL SELECT c.b FROM c, shop_item)"
                  " SELECT b FROM c", NULL},
    {LARGE, READ, ENDLESS ", d AS MATERIALIZED (SELECT randomblob(100000) AS b FROM c) SELECT count(*) FROM d, d AS e", NULL},
    {LARGE, READ, ENDLESS " SELECT count(*) FROM shop_item WHERE name IN (SELECT randomblob(100000) FROM c)", NULL},
    {LARGE, READ, ENDLESS " SELECT sum(length(b)) OVER (ORDER BY b) FROM (SELECT randomblob(100000) AS b FROM c)", NULL},
    {HARMLESS, READ, ENDLESS " SELECT 1 FROM c WHERE 0", NULL},
    {STOPPED, READ, "SELECT count(*) FROM " MANY " a, " MANY " b, " MANY " c, " MANY " d, " MANY " e, " MANY " f, " MANY
                    " g", NULL},
    {STOPPED, READ, "SELECT count(*) FROM json_each('[' || replace(hex(zeroblob(50000)), '0', '1,') || '1]') a, "
                    "json_each('[' || replace(hex(zeroblob(50000)), '0', '1,') || '1]') b", NULL},
    {STOPPED, WRITE, ENDLESS " INSERT INTO shop_list (title) SELECT n FROM c", NULL},
    {STOPPED, WRITE, ENDLESS " UPDATE shop_item SET price = (SELECT sum(n) FROM c)", NULL},
    {STOPPED, WRITE, "DELETE FROM shop_item WHERE id IN (" ENDLESS " SELECT n FROM c)", NULL},
    {STOPPED, SCHEMA, "CREATE TABLE shop_x AS " ENDLESS " SELECT n FROM c", NULL},
    {HARMLESS, WRITE, "INSERT INTO shop_list (title) VALUES ('x')",
     "CREATE TRIGGER shop_t AFTER INSERT ON shop_list BEGIN INSERT INTO shop_item (name) VALUES ('a'); END;"
     "CREATE TRIGGER shop_u AFTER INSERT ON shop_item BEGIN INSERT INTO shop_list (title) VALUES ('b'); END"},
    {HARMLESS, READ, "SELECT length(printf('%.1000000d', 1))", NULL},
    {LARGE, READ, "SELECT length(printf('%1000000000d', 1))", NULL},
    {LARGE, READ, "SELECT length(printf('%.*c', 2000000000, 'x'))", NULL},
    {LARGE, READ, "SELECT length(printf('%.5000000c', 'é'))", NULL},
    {LARGE, READ, "SELECT length(format('%.99999999f', 1.0))", NULL},
    {LARGE, READ, "SELECT length(format(replace(hex(zeroblob(100)), '0', '%1000000d')))", NULL},
    {LARGE, READ, "SELECT length(randomblob(1000000000))", NULL},
    {LARGE, READ, "SELECT zeroblob(1000000000)", NULL},
    {LARGE, READ, "SELECT length(hex(zeroblob(8000000)))", NULL},
    {LARGE, READ, "SELECT length(quote(zeroblob(8000000)))", NULL},
    {LARGE, READ, "SELECT length(zeroblob(5000000) || zeroblob(5000000))", NULL},
    {LARGE, READ, "SELECT length(replace(hex(zeroblob(4000000)), '0', 'xxxx'))", NULL},
    {HARMLESS, READ, "SELECT length(char(0) || strftime(replace(hex(zeroblob(1000000)), '0', '%J'), 0))", NULL},
    {LARGE, READ, "SELECT length(group_concat(b)) FROM (" ENDLESS " SELECT hex(zeroblob(100000)) AS b FROM c LIMIT 100)", NULL},
    {LARGE, READ, "SELECT length(json_group_array(b)) FROM (" ENDLESS
                  " SELECT hex(zeroblob(100000)) AS b FROM c LIMIT 100)", NULL},
    {LARGE, WRITE, "INSERT INTO shop_list (title) VALUES (zeroblob(9000000))", NULL},
    {FAILS, READ, "SELECT json('" "[" "')", NULL},
};

START_TEST(nobody_elses_is_read) { try(&readings[_i]); }
END_TEST

START_TEST(nobody_elses_is_changed) { try(&changes[_i]); }
END_TEST

START_TEST(nothing_outside_is_reached) { try(&outside[_i]); }
END_TEST

START_TEST(nothing_runs_on) { try(&bombs[_i]); }
END_TEST

/* ---- texts that are made ---- */

/* Text, many times something, text. */
static char *repeat(const char *before, const char *something, unsigned times, const char *after)
{
    sqlite3_str *out = sqlite3_str_new(NULL);
    sqlite3_str_appendall(out, before);
    for (unsigned i = 0; i < times; i++)
        sqlite3_str_appendall(out, something);
    sqlite3_str_appendall(out, after);
    return sqlite3_str_finish(out);
}

static const struct {
    enum verdict verdict;
    const char *before, *something;
    unsigned times;
    const char *after;
} made[] = {
    {FAILS, "SELECT ", "(", 5000, "1"},
    {FAILS, "SELECT ", "NOT ", 5000, "1"},
    {FAILS, "SELECT ", "- ", 5000, "1"},
    {FAILS, "SELECT 1", "+1", 5000, ""},
    {HARMLESS, "SELECT 1", "+1", 90, ""},
    {REFUSED, "SELECT 1", " UNION ALL SELECT 1", 20000, ""},
    {REFUSED, "SELECT 1", " EXCEPT SELECT 1", 101, ""},
    {HARMLESS, "SELECT 1", " UNION SELECT 1", 100, ""},
    {FAILS, "SELECT ", "(SELECT ", 400, "1"},
    {FAILS, "SELECT * FROM ", "(SELECT * FROM ", 400, "shop_item"},
    {FAILS, "SELECT 1 FROM shop_item", ", shop_item", 100, ""},
    {FAILS, "SELECT 1", ", 1", 3000, ""},
    {FAILS, "SELECT max(1", ", 1", 200, ")"},
    {HARMLESS, "SELECT 1 IN (1", ", 1", 60000, ")"},
    {FAILS, "SELECT 1 WHERE 1", " OR 1=1", 5000, ""},
    {FAILS, "SELECT json('", "[", 5000, "')"},
    {HARMLESS, "SELECT json_valid('", "[", 5000, "')"},
    {FAILS, "SELECT 1 FROM shop_note('", "a OR ", 5000, "')"},
    {FAILS, "SELECT 1 FROM shop_note('", "(", 5000, "')"},
    {FAILS, "SELECT ?", "?", 5000, ""},
    {FAILS, "SELECT CASE 1 ", "WHEN 1 THEN CASE ", 3000, ""},
};

START_TEST(no_text_is_too_much)
{
    char *sql = repeat(made[_i].before, made[_i].something, made[_i].times, made[_i].after);
    struct attempt a = {made[_i].verdict, READ, sql, NULL};
    try(&a);
    sqlite3_free(sql);
}
END_TEST

/* Each names the one before it twice: forty would be 2^40 copies. */
static char *doubling(const char *first, const char *each, unsigned count, const char *last)
{
    sqlite3_str *out = sqlite3_str_new(NULL);
    sqlite3_str_appendall(out, first);
    for (unsigned i = 1; i < count; i++)
        sqlite3_str_appendf(out, each, i, i - 1, i - 1);
    sqlite3_str_appendf(out, last, count - 1);
    return sqlite3_str_finish(out);
}

START_TEST(what_doubles_is_refused_before_it_is_prepared)
{
    static const char *const each[] = {", c%u(x) AS (SELECT x FROM c%u UNION ALL SELECT x FROM c%u)",
                                       ", c%u AS NOT MATERIALIZED (SELECT a.x FROM c%u AS a, \"c%u\" AS b)",
                                       ", \"c%u\" AS MATERIALIZED/* */( SELECT x FROM 'c%u' UNION SELECT x FROM [C%u])"};
    for (size_t i = 0; i < COUNT(each); i++) {
        char *sql = doubling("WITH c0 AS (SELECT 1 AS x)", each[i], 40, " SELECT * FROM c%u");
        struct db_error error;
        ck_assert_int_eq(db_guard_enter(&guarded_reader, &guarded_grant, DB_GUARD_READ, db_clock_us() + 10000000, 0), DB_OK);
        ck_assert(!db_guard_text(&guarded_reader, sql, strlen(sql), &error));
        db_guard_leave(&guarded_reader);
        sqlite3_free(sql);
    }
}
END_TEST

START_TEST(views_that_double_are_refused)
{
    static const char first[] = "CREATE VIEW shop_v0 AS SELECT 1 AS x;";
    char *sql = doubling(first, "CREATE VIEW shop_v%u AS SELECT x FROM shop_v%u UNION ALL SELECT x FROM Shop_V%u;", 30,
                         "SELECT %u");
    ck_assert_int_eq(guarded_schema(sql), DB_REFUSED);
    sqlite3_free(sql);
    sql = doubling(first, "CREATE VIEW shop_v%u AS SELECT x + %u * 0 AS x FROM shop_v%u;", 200, "SELECT %u");
    ck_assert_int_eq(guarded_schema(sql), DB_REFUSED); /* a stack too deep */
    sqlite3_free(sql);
    sql = doubling(first, "CREATE VIEW shop_v%u AS SELECT x FROM shop_v%u UNION ALL SELECT x FROM Shop_V%u;", 6, "SELECT %u");
    ck_assert_msg(guarded_schema(sql) == DB_OK, "%s", guarded_error.text);
    sqlite3_free(sql);
    ck_assert_str_eq(guarded_ask("SELECT count(*) FROM shop_v5"), "32");
}
END_TEST

static const struct {
    bool ok;
    const char *sql;
} texts[] = {
    {true, "SELECT rollback FROM shop_item"},
    {true, "SELECT 'INSERT OR ROLLBACK' -- OR ROLLBACK"},
    {true, "SELECT 1 /* RAISE(ROLLBACK, 'x') */"},
    {true, "WITH a AS (SELECT 1), b AS (SELECT * FROM a, a AS c) SELECT * FROM b, b AS d"},
    {true, "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM t WHERE n < 5) SELECT n FROM t, t AS u"},
    {true, "SELECT CAST(1 AS TEXT), sum(1) OVER w FROM shop_item WINDOW w AS (ORDER BY id)"},
    {true, "SELECT \"unended"},
    {true, "SELECT 'unended"},
    {true, "SELECT /* unended"},
    {true, ""},
    {false, "INSERT OR ROLLBACK INTO shop_item VALUES (1)"},
    {false, "insert or -- x\n rollback into shop_item values (1)"},
    {false, "SELECT RAISE(rollback, 'x')"},
};

START_TEST(texts_are_read_as_sqlite_does)
{
    struct db_error error;
    ck_assert_int_eq(db_guard_enter(&guarded_reader, &guarded_grant, DB_GUARD_READ, db_clock_us() + 10000000, 0), DB_OK);
    ck_assert_int_eq(db_guard_text(&guarded_reader, texts[_i].sql, strlen(texts[_i].sql), &error), texts[_i].ok);
    ck_assert_int_eq(db_guard_text(&guarded_reader, texts[_i].sql, strlen(texts[_i].sql), &error), texts[_i].ok);
    db_guard_leave(&guarded_reader);
}
END_TEST

/* Without db_guard_text a file of schema/ cannot do what needs the catalogue. */
START_TEST(a_schema_whose_text_nobody_looked_at_is_refused)
{
    tdb_sql(guarded_conn.db, "BEGIN IMMEDIATE");
    ck_assert_int_eq(db_guard_enter(&guarded_conn, &guarded_grant, DB_GUARD_SCHEMA, db_clock_us() + 10000000, 0), DB_OK);
    ck_assert(!tdb_try(guarded_conn.db, "UPDATE sqlite_sequence SET seq = 99"));
    ck_assert(!tdb_try(guarded_conn.db, "DROP TABLE shop_list"));
    db_guard_leave(&guarded_conn);
    tdb_sql(guarded_conn.db, "ROLLBACK");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("guard_escape");
    TCase *t = run_case(s, "guard_escape");
    temp_use(t);
    tcase_add_checked_fixture(t, guarded_open, guarded_close);
    tcase_add_loop_test(t, nobody_elses_is_read, 0, COUNT(readings));
    tcase_add_loop_test(t, nobody_elses_is_changed, 0, COUNT(changes));
    tcase_add_loop_test(t, nothing_outside_is_reached, 0, COUNT(outside));
    tcase_add_loop_test(t, nothing_runs_on, 0, COUNT(bombs));
    tcase_add_loop_test(t, no_text_is_too_much, 0, COUNT(made));
    tcase_add_test(t, what_doubles_is_refused_before_it_is_prepared);
    tcase_add_test(t, views_that_double_are_refused);
    tcase_add_loop_test(t, texts_are_read_as_sqlite_does, 0, COUNT(texts));
    tcase_add_test(t, a_schema_whose_text_nobody_looked_at_is_refused);
    return s;
}

int main(void)
{
    return run_suite(suite());
}
