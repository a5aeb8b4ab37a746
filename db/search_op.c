/* Opting collections in and out, for operators. What is asked for is noted here and done by the
 * steps of db/search_index.c. */
#include "db/search.h"
#include "db/write.h"

/* Nothing is searchable yet: the feed's past is of no interest. */
static enum db_result start_here(struct db_write *w)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_SEARCH_START,
                                        "UPDATE meta SET value = ?1 WHERE name = 'search_seq'"
                                        " AND NOT EXISTS (SELECT 1 FROM search_collection)");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, (int64_t)w->seq);
    return db_cause(db_conn_run(s));
}

enum db_result db_search_add(struct db_write *w, struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_SEARCH_ADD,
        "INSERT INTO search_collection (prefix) SELECT ?1 WHERE NOT EXISTS"
        " (SELECT 1 FROM search_collection WHERE substr(prefix, 1, length(?1)) = ?1"
        " OR substr(?1, 1, length(prefix)) = prefix)"
        " AND (SELECT count(*) FROM search_collection) < ?2");
    if (s == NULL)
        return db_conn_failed(w->conn);
    enum db_result result = start_here(w);
    if (result != DB_OK)
        return result;
    db_write_bind(s, 1, op, 0);
    sqlite3_bind_int64(s, 2, DB_SEARCH_COLLECTIONS_MAX);
    result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result == DB_OK && sqlite3_changes(w->conn->db) == 0 ? DB_EXISTS : result;
}

/* A collection is to be taken out, for good or to be indexed again. */
static enum db_result change_state(struct db_write *w, struct db_op *op, const char *state)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_SEARCH_CHANGE,
                                        "UPDATE search_collection SET state = ?2, upto = ''"
                                        " WHERE prefix = ?1 AND state <> 'removing'");
    if (s == NULL)
        return db_conn_failed(w->conn);
    db_write_bind(s, 1, op, 0);
    sqlite3_bind_text(s, 2, state, -1, SQLITE_STATIC);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result == DB_OK && sqlite3_changes(w->conn->db) == 0 ? DB_NONE : result;
}

enum db_result db_search_remove(struct db_write *w, struct db_op *op)
{
    return change_state(w, op, "removing");
}

/* The index as the schema made it. */
static enum db_result make_anew(struct db_conn *c)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(c->db, "SELECT sql FROM sqlite_schema WHERE name = 'doc_text'", -1,
                                &s, NULL);
    char *sql = NULL;
    if (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW)
        sql = sqlite3_mprintf("%s", (const char *)sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
    if (rc == SQLITE_ROW)
        rc = sql == NULL ? SQLITE_NOMEM
                         : sqlite3_exec(c->db, "DROP TABLE doc_text", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(c->db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    return rc == SQLITE_DONE ? DB_INVALID : db_cause(rc);
}

enum db_result db_search_rebuild(struct db_write *w, struct db_op *op)
{
    if (op->values[0].type != DB_VALUE_NONE)
        return change_state(w, op, "renewing");
    enum db_result result = make_anew(w->conn);
    if (result != DB_OK)
        return result;
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_SEARCH_RESTART,
                                        "UPDATE meta SET value = iif(name = 'search_seq', ?1, 0)"
                                        " WHERE name IN ('search_seq', 'search_damaged')");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, (int64_t)w->seq);
    result = db_cause(db_conn_run(s));
    if (result == DB_OK)
        result = db_cause(db_conn_do(w->conn, SLOT_SEARCH_EMPTY, "DELETE FROM search_item"));
    if (result != DB_OK)
        return result;
    return db_cause(db_conn_do(w->conn, SLOT_SEARCH_AGAIN,
                               "UPDATE search_collection SET state = 'indexing', upto = ''"
                               " WHERE state <> 'removing'"));
}
