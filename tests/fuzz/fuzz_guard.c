/* SQL of an app that may write: a first byte for the mode, then statements. Whatever they are, what is not the app's is as
 * it was, the transaction goes on unless a statement was stopped, and all ends in time. */
#include <stdio.h>
#include <unistd.h>

#include "db/burst.h"
#include "db/guard.h"
#include "db/migrate.h"
#include "tests/fuzz/must.h"

static struct db_conn conn;
static const struct db_grant grant = {.app = "shop", .read = "", .write = ""};

static void sql(const char *text)
{
    MUST(sqlite3_exec(conn.db, text, NULL, NULL, NULL) == SQLITE_OK);
}

static void open_store(void)
{
    static char path[128];
    struct db_error error;
    snprintf(path, sizeof path, "/tmp/hanji-fuzz-guard-%d.db", (int)getpid());
    MUST(db_init() == DB_OK);
    MUST(db_conn_open(&conn, path, DB_CREATE, 1 << 20, &error) == DB_OK);
    MUST(db_migrate(&conn, &error) == DB_OK);
    sql("CREATE TABLE other_x (a); INSERT INTO other_x VALUES ('hidden'); CREATE VIEW my_view AS SELECT a FROM other_x;"
        "INSERT INTO doc (key, type, body) VALUES ('a', 'text/plain', 'b');"
        "CREATE TABLE shop_t (id INTEGER PRIMARY KEY AUTOINCREMENT, a UNIQUE, b REFERENCES shop_u (id), c CHECK (c <> ''));"
        "CREATE TABLE shop_u (id INTEGER PRIMARY KEY, x); CREATE VIEW shop_v AS SELECT a FROM shop_t;"
        "CREATE VIRTUAL TABLE shop_f USING fts5 (a); INSERT INTO shop_t (a) VALUES (1), (2); INSERT INTO shop_f VALUES ('tea')");
    unlink(path); /* nothing is committed from now on */
}

/* All that is not the app's. */
static char *others(void)
{
    static const char text[] =
        "SELECT (SELECT group_concat(type || name || tbl_name || coalesce(sql, ''))"
        " FROM (SELECT * FROM sqlite_schema WHERE lower(substr(tbl_name, 1, 5)) <> 'shop_' ORDER BY name)),"
        " (SELECT group_concat(name || seq) FROM sqlite_sequence WHERE name NOT LIKE 'shop%'),"
        " (SELECT group_concat(key || body || seq) FROM doc), (SELECT group_concat(seq || key) FROM change),"
        " (SELECT group_concat(name || value) FROM meta), (SELECT group_concat(a) FROM my_view), (SELECT count(*) FROM token),"
        " (SELECT foreign_keys FROM pragma_foreign_keys), (SELECT user_version FROM pragma_user_version),"
        " (SELECT group_concat(name) FROM pragma_database_list WHERE name <> 'temp'),"
        " (SELECT count(*) FROM sqlite_temp_schema)";
    static sqlite3_stmt *s;
    if (s == NULL)
        MUST(sqlite3_prepare_v2(conn.db, text, -1, &s, NULL) == SQLITE_OK);
    sqlite3_str *out = sqlite3_str_new(NULL);
    MUST(sqlite3_step(s) == SQLITE_ROW);
    for (int i = 0; i < sqlite3_column_count(s); i++)
        sqlite3_str_appendf(out, "%s|", sqlite3_column_text(s, i));
    sqlite3_reset(s);
    return sqlite3_str_finish(out);
}

/* One statement; what is behind it, or NULL when it failed. */
static const char *run_one(const char *text)
{
    sqlite3_stmt *s = NULL;
    const char *rest = NULL;
    struct db_error error;
    if (!db_guard_text(&conn, text, strlen(text), &error))
        return NULL;
    int rc = sqlite3_prepare_v2(conn.db, text, -1, &s, &rest);
    if (rc == SQLITE_OK && s == NULL)
        return NULL;
    while (s != NULL && (rc = sqlite3_step(s)) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(s); i++)
            sqlite3_column_text(s, i);
    if (rc != SQLITE_DONE) {
        enum db_result result = db_guard_cause(&conn, rc, &error);
        MUST(result != DB_OK && result != DB_BROKEN && error.text[0] != 0);
    }
    sqlite3_finalize(s);
    return rc == SQLITE_DONE ? rest : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct db_error error;
    char text[2048];
    if (conn.db == NULL)
        open_store();
    if (size < 2 || size > sizeof text)
        return 0;
    enum db_guard_mode mode = data[0] % 2 ? DB_GUARD_SCHEMA : DB_GUARD_WRITE;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    char *before = others();
    uint64_t start = db_clock_us();
    sql("BEGIN IMMEDIATE; SAVEPOINT batch");
    MUST(db_guard_enter(&conn, &grant, mode, start + 20000, 1790000000) == DB_OK);
    for (const char *at = text; at != NULL && *at != 0;)
        at = run_one(at);
    bool stopped = conn.guard.stopped;
    db_guard_leave(&conn);
    bool ended = sqlite3_get_autocommit(conn.db);
    MUST(!ended || stopped);
    MUST(db_clock_us() - start < 5000000);
    if (!ended && (mode != DB_GUARD_SCHEMA || db_guard_schema_ok(&conn, &grant, &error))) {
        char *after = others();
        MUST(strcmp(before, after) == 0);
        sqlite3_free(after);
    }
    if (!ended)
        sql("ROLLBACK");
    sqlite3_free(before);
    return 0;
}
