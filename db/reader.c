#include <stdlib.h>

#include "db/migrate.h"
#include "db/reader_internal.h"
#include "db/search_tools.h"

enum db_result db_reader_open(const struct db_config *config, struct db_reader **reader,
                              struct db_error *error)
{
    struct db_reader *r = calloc(1, sizeof *r);
    *reader = NULL;
    if (r == NULL) {
        db_set_error(error, "memory is short");
        return DB_NO_MEMORY;
    }
    enum db_result result = db_conn_open(&r->conn, config->path, DB_READ,
                                         config->read_cache_bytes, error);
    if (result == DB_OK)
        result = db_migrate_check(&r->conn, error);
    if (result != DB_OK) {
        db_reader_close(r);
        return result;
    }
    *reader = r;
    return DB_OK;
}

void db_reader_close(struct db_reader *r)
{
    if (r == NULL)
        return;
    db_reader_end(r);
    db_search_tools_free(r->search);
    db_app_reading_free(r->app);
    db_conn_close(&r->conn);
    free(r);
}

enum db_result db_reader_begin(struct db_reader *r)
{
    int rc = db_conn_do(&r->conn, SLOT_BEGIN_READ, "BEGIN");
    r->begun = rc == SQLITE_DONE;
    r->kept.valid = false;
    r->kept_session.valid = false;
    r->bounds_kept = false;
    return db_cause(rc);
}

void db_reader_lend(struct db_reader *r, sqlite3_stmt *s)
{
    if (r->open_row != NULL && r->open_row != s)
        sqlite3_reset(r->open_row);
    r->open_row = s;
}

void db_reader_end(struct db_reader *r)
{
    db_reader_lend(r, NULL);
    r->kept.valid = false;
    r->kept_session.valid = false;
    r->bounds_kept = false;
    if (!r->begun)
        return;
    r->begun = false;
    if (db_conn_do(&r->conn, SLOT_COMMIT, "COMMIT") != SQLITE_DONE)
        db_conn_do(&r->conn, SLOT_ROLLBACK, "ROLLBACK");
}

enum db_result db_reader_totals(struct db_reader *r, uint64_t *seq, uint64_t *documents)
{
    sqlite3_stmt *s = db_conn_statement(
        &r->conn, SLOT_META,
        "SELECT " DB_LAST_SEQ ", value FROM meta WHERE name = 'documents'");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        *seq = (uint64_t)sqlite3_column_int64(s, 0);
        *documents = (uint64_t)sqlite3_column_int64(s, 1);
    }
    sqlite3_reset(s);
    return rc == SQLITE_DONE ? DB_NONE : db_cause(rc);
}
