#include "tests/unit/guarded.h"

#include <stdio.h>
#include <string.h>

struct db_conn guarded_conn, guarded_reader;
struct db_grant guarded_grant;
struct db_error guarded_error;
char guarded_first[256];

static const char tables[] =
    "CREATE TABLE shop_item (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE"
    " CONSTRAINT name_not_empty CHECK (name <> ''), price REAL, list INTEGER REFERENCES shop_list (id));"
    "CREATE TABLE shop_list (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT);"
    "CREATE VIRTUAL TABLE shop_note USING fts5 (text);"
    "CREATE INDEX shop_item_price ON shop_item (price);"
    "CREATE VIEW shop_cheap AS SELECT * FROM shop_item WHERE price < 10;"
    "INSERT INTO shop_item (name, price) VALUES ('tea', 3.5), ('rice', 2), ('silver', 120);"
    "INSERT INTO shop_note VALUES ('buy tea')";

void guarded_open(void)
{
    tdb_make();
    tdb_open(&guarded_conn);
    ck_assert_int_eq(db_conn_open(&guarded_reader, tdb_config.path, DB_READ, 1 << 20, &tdb_error), DB_OK);
    tdb_sql(guarded_conn.db, "CREATE TABLE shops_secret (x); INSERT INTO shops_secret VALUES ('hidden');"
                             "CREATE VIEW my_view AS SELECT x FROM shops_secret;"
                             "INSERT INTO doc (key, type, body) VALUES ('notes/a', 'text/plain', 'paper')");
    guarded_grant = (struct db_grant){.app = "shop", .read = "", .write = ""};
    enum db_result result = guarded_schema(tables);
    ck_assert_msg(result == DB_OK, "%s", guarded_error.text);
}

void guarded_close(void)
{
    db_conn_close(&guarded_reader);
    db_conn_close(&guarded_conn);
}

/* One statement; *rest is what is behind it. */
static int step_one(struct db_conn *c, const char *sql, const char **rest)
{
    sqlite3_stmt *s = NULL;
    bool first = true;
    int rc = sqlite3_prepare_v3(c->db, sql, -1, 0, &s, rest);
    guarded_first[0] = 0;
    if (rc != SQLITE_OK || s == NULL)
        return rc;
    for (; (rc = sqlite3_step(s)) == SQLITE_ROW; first = false)
        if (first && sqlite3_column_count(s) > 0)
            snprintf(guarded_first, sizeof guarded_first, "%s",
                     sqlite3_column_text(s, 0) ? (const char *)sqlite3_column_text(s, 0) : "NULL");
    int reset = sqlite3_reset(s);
    rc = rc == SQLITE_DONE ? SQLITE_OK : reset;
    sqlite3_finalize(s);
    return rc;
}

static enum db_result run(struct db_conn *c, enum db_guard_mode mode, const char *sql, unsigned ms)
{
    guarded_error.text[0] = 0;
    enum db_result result =
        db_guard_enter(c, &guarded_grant, mode, db_clock_us() + (uint64_t)ms * 1000, 1790000000);
    while (result == DB_OK && *sql != 0) {
        const char *rest;
        if (!db_guard_text(c, sql, strlen(sql), &guarded_error)) {
            result = DB_REFUSED;
            break;
        }
        int rc = step_one(c, sql, &rest);
        if (rc != SQLITE_OK)
            result = db_guard_cause(c, rc, &guarded_error);
        else if (sql == rest)
            break;
        sql = rest;
    }
    db_guard_leave(c);
    return result;
}

enum db_result guarded_run_ms(enum db_guard_mode mode, const char *sql, unsigned ms)
{
    if (mode == DB_GUARD_READ)
        return run(&guarded_reader, mode, sql, ms);
    tdb_sql(guarded_conn.db, "BEGIN IMMEDIATE");
    enum db_result result = run(&guarded_conn, mode, sql, ms);
    if (result == DB_OK && mode == DB_GUARD_SCHEMA &&
        !db_guard_schema_ok(&guarded_conn, &guarded_grant, &guarded_error))
        result = DB_REFUSED;
    if (!sqlite3_get_autocommit(guarded_conn.db))
        tdb_sql(guarded_conn.db, result == DB_OK ? "COMMIT" : "ROLLBACK");
    return result;
}

enum db_result guarded_run(enum db_guard_mode mode, const char *sql)
{
    return guarded_run_ms(mode, sql, 10000);
}

enum db_result guarded_schema(const char *sql)
{
    return guarded_run(DB_GUARD_SCHEMA, sql);
}

const char *guarded_ask(const char *sql)
{
    enum db_result result = guarded_run(DB_GUARD_READ, sql);
    ck_assert_msg(result == DB_OK, "%s: %s", sql, guarded_error.text);
    return guarded_first;
}
