#include "db/migrate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "db/schema.h"

static enum db_result failed(struct db_conn *c, const char *what, struct db_error *error)
{
    db_set_error(error, "%s: %s", what, sqlite3_errmsg(c->db));
    return db_conn_failed(c);
}

/* One integer from a query that has a row. */
static enum db_result ask(struct db_conn *c, const char *sql, int64_t *v, struct db_error *error)
{
    sqlite3_stmt *s = NULL;
    enum db_result result = DB_OK;
    if (sqlite3_prepare_v2(c->db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        *v = sqlite3_column_int64(s, 0);
    else
        result = failed(c, "the file cannot be read", error);
    sqlite3_finalize(s);
    return result;
}

/* One integer of meta, 0 when the row, or the table, is not there. */
static enum db_result ask_meta(struct db_conn *c, const char *sql, int64_t *v,
                               struct db_error *error)
{
    int64_t tables = 0;
    *v = 0;
    enum db_result result =
        ask(c, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'meta'", &tables,
            error);
    return result == DB_OK && tables > 0 ? ask(c, sql, v, error) : result;
}

enum db_result db_migrate_version(struct db_conn *c, int64_t *version, struct db_error *error)
{
    return ask_meta(c, "SELECT coalesce(max(value), 0) FROM meta WHERE name = 'schema_version'",
                    version, error);
}

enum db_result db_migrate_owner(struct db_conn *c, struct db_error *error)
{
    int64_t id = 0, min_program = 0;
    enum db_result result = ask(c, "PRAGMA application_id", &id, error);
    if (result == DB_OK)
        result = ask_meta(c, "SELECT coalesce(max(value), 0) FROM meta WHERE name = 'min_program'",
                          &min_program, error);
    if (result != DB_OK)
        return result;
    if (id != DB_APPLICATION_ID) {
        db_set_error(error, "this is an SQLite file of another program; it is left as it is");
        return DB_REFUSED;
    }
    if (min_program > DB_PROGRAM) {
        db_set_error(error, "the file needs program format %lld, this program has %d: upgrade it",
                     (long long)min_program, DB_PROGRAM);
        return DB_REFUSED;
    }
    return DB_OK;
}

/* A file of no pages is new: settings that only work before the first page go in here. */
static enum db_result prepare_new(struct db_conn *c, struct db_error *error)
{
    char sql[128];
    struct stat st;
    int64_t pages = 0;
    enum db_result result = ask(c, "PRAGMA page_count", &pages, error);
    if (result != DB_OK || pages != 0)
        return result;
    if (stat(sqlite3_db_filename(c->db, "main"), &st) != 0 || st.st_size != 0) {
        db_set_error(error, "this is no SQLite file; it is left as it is");
        return DB_REFUSED;
    }
    sqlite3_snprintf(sizeof sql, sql, "PRAGMA page_size=4096; PRAGMA application_id=%d",
                     DB_APPLICATION_ID);
    if (sqlite3_exec(c->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return failed(c, "a new file cannot be made", error);
    return DB_OK;
}

static enum db_result use_wal(struct db_conn *c, struct db_error *error)
{
    sqlite3_stmt *s = NULL;
    bool wal = sqlite3_prepare_v2(c->db, "PRAGMA journal_mode=WAL", -1, &s, NULL) == SQLITE_OK &&
               sqlite3_step(s) == SQLITE_ROW &&
               strcmp((const char *)sqlite3_column_text(s, 0), "wal") == 0;
    enum db_result result = wal ? DB_OK : failed(c, "the file cannot be put into WAL mode", error);
    sqlite3_finalize(s);
    return !wal && result == DB_OK ? DB_BROKEN : result;
}

static enum db_result apply(struct db_conn *c, struct db_error *error)
{
    char sql[160];
    int64_t have, want = (int64_t)schema_step_count;
    enum db_result result = db_migrate_version(c, &have, error);
    if (result != DB_OK)
        return result;
    for (size_t i = have > 0 ? (size_t)have : 0; i < schema_step_count; i++)
        if (sqlite3_exec(c->db, schema_steps[i].sql, NULL, NULL, NULL) != SQLITE_OK)
            return failed(c, schema_steps[i].name, error);
    sqlite3_snprintf(sizeof sql, sql,
                     "INSERT INTO meta (name, value) VALUES ('schema_version', %lld)"
                     " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                     (long long)want);
    if (have < want && sqlite3_exec(c->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return failed(c, "schema_version", error);
    return DB_OK;
}

enum db_result db_migrate_steps(struct db_conn *c, struct db_error *error)
{
    int64_t have = 0;
    enum db_result result = db_migrate_version(c, &have, error);
    if (result != DB_OK || have >= (int64_t)schema_step_count)
        return result;
    if (sqlite3_exec(c->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        return failed(c, "the file is locked", error);
    result = apply(c, error);
    if (result == DB_OK && sqlite3_exec(c->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        result = failed(c, "the migration cannot be committed", error);
    if (result != DB_OK)
        sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL);
    return result;
}

enum db_result db_migrate(struct db_conn *c, struct db_error *error)
{
    enum db_result result = prepare_new(c, error);
    if (result == DB_OK)
        result = db_migrate_owner(c, error);
    if (result == DB_OK)
        result = use_wal(c, error);
    if (result != DB_OK)
        return result;
    db_conn_keep_wal(c);
    return db_migrate_steps(c, error);
}

enum db_result db_migrate_check(struct db_conn *c, struct db_error *error)
{
    int64_t have = 0;
    enum db_result result = db_migrate_owner(c, error);
    if (result == DB_OK) {
        db_conn_keep_wal(c);
        result = db_migrate_version(c, &have, error);
    }
    if (result == DB_OK && have < (int64_t)schema_step_count) {
        db_set_error(error, "the file has an older schema; start the server once to upgrade it");
        return DB_REFUSED;
    }
    return result;
}
