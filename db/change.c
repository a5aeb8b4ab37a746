#include "db/change.h"

#include <assert.h>

#include "db/reader_internal.h"

enum db_result db_change_bounds(struct db_reader *r, struct db_change_bounds *bounds)
{
    if (r->bounds_kept) {
        *bounds = r->bounds;
        return DB_OK;
    }
    sqlite3_stmt *s = db_conn_statement(
        &r->conn, SLOT_CHANGE_BOUNDS,
        "SELECT " DB_LAST_SEQ ","
        " coalesce((SELECT value FROM meta WHERE name = 'horizon'), 0)");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        bounds->last = (uint64_t)sqlite3_column_int64(s, 0);
        bounds->horizon = (uint64_t)sqlite3_column_int64(s, 1);
        r->bounds = *bounds;
        r->bounds_kept = r->begun;
    }
    sqlite3_reset(s);
    return db_cause(rc);
}

enum db_result db_change_list(struct db_reader *r, uint64_t since, unsigned limit,
                              bool (*each)(void *arg, const struct db_change *change), void *arg)
{
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_CHANGE_LIST,
                                        "SELECT seq, key, op = 'delete' FROM change"
                                        " WHERE seq > ?1 ORDER BY seq LIMIT ?2");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    assert(since <= INT64_MAX);
    sqlite3_bind_int64(s, 1, (int64_t)since);
    sqlite3_bind_int64(s, 2, limit);
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        struct db_change change = {
            .seq = (uint64_t)sqlite3_column_int64(s, 0),
            .key = (const char *)sqlite3_column_text(s, 1),
            .key_len = (size_t)sqlite3_column_bytes(s, 1),
            .deleted = sqlite3_column_int(s, 2) != 0,
        };
        if (change.key == NULL)
            rc = SQLITE_NOMEM;
        else if (!each(arg, &change))
            rc = SQLITE_DONE;
        else
            continue;
        break;
    }
    sqlite3_reset(s);
    return db_cause(rc);
}

enum db_result db_change_version(struct db_reader *r, uint64_t *version)
{
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_CHANGE_VERSION, "PRAGMA data_version");
    assert(!r->begun);
    if (s == NULL)
        return db_conn_failed(&r->conn);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        *version = (uint64_t)sqlite3_column_int64(s, 0);
    sqlite3_reset(s);
    return db_cause(rc);
}
