#include "db/check.h"

#include <string.h>

#include "db/migrate.h"

/* Each asks for the number of rows that break a rule. */
static const struct {
    const char *finding;
    const char *sql;
} rules[] = {
    {"triggers of the schema missing: rows written from outside break the rules below",
     "SELECT 6 - count(*) FROM sqlite_schema"
     " WHERE type = 'trigger' AND tbl_name = 'doc' AND name IN"
     " ('doc_before_insert', 'doc_insert', 'doc_update', 'doc_before_rename', 'doc_rename',"
     " 'doc_delete')"},
    {"documents without a sequence number, size or time",
     "SELECT count(*) FROM doc WHERE coalesce(seq, 0) < 1 OR size IS NULL OR modified IS NULL"},
    {"documents whose size is not that of their body",
     "SELECT count(*) FROM doc WHERE size IS NOT length(CAST(body AS BLOB))"},
    {"documents whose last change is not in the change feed",
     "SELECT count(*) FROM doc WHERE NOT EXISTS (SELECT 1 FROM change"
     " WHERE change.seq = doc.seq AND change.key = doc.key AND change.op = 'put')"},
    {"sequence numbers that stand on two documents",
     "SELECT count(*) - count(DISTINCT seq) FROM doc"},
    {"documents more or fewer than meta.documents says",
     "SELECT coalesce(abs((SELECT count(*) FROM doc) -"
     " (SELECT value FROM meta WHERE name = 'documents')), 1)"},
    {"keys that are gone without their deletion in the change feed",
     "SELECT count(*) FROM tombstone WHERE NOT EXISTS (SELECT 1 FROM change"
     " WHERE change.seq = tombstone.seq AND change.key = tombstone.key AND change.op = 'delete')"},
    {"keys that are both gone and there",
     "SELECT count(*) FROM tombstone JOIN doc USING (key)"},
    {"deleted keys in the feed that have a document without a later change",
     "SELECT count(*) FROM change JOIN doc USING (key)"
     " WHERE change.op = 'delete' AND change.seq > doc.seq"},
};

static enum db_result integrity(struct db_conn *c, db_check_fn *each, void *arg, bool *found)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(c->db, "PRAGMA integrity_check", -1, &s, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(s, 0);
        rc = SQLITE_OK;
        if (text != NULL && strcmp(text, "ok") != 0) {
            *found = true;
            each(arg, text);
        }
    }
    sqlite3_finalize(s);
    return db_cause(rc);
}

static enum db_result rule(struct db_conn *c, size_t i, int64_t *rows)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(c->db, rules[i].sql, -1, &s, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(s);
    *rows = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_finalize(s);
    return db_cause(rc);
}

enum db_result db_check(const struct db_config *config, db_check_fn *each, void *arg,
                        struct db_error *error)
{
    struct db_conn c;
    bool found = false;
    enum db_result result = db_conn_open(&c, config->path, DB_READ, config->read_cache_bytes,
                                         error);
    if (result != DB_OK)
        return result;
    result = db_migrate_check(&c, error);
    if (result == DB_OK && sqlite3_exec(c.db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        result = DB_BROKEN;
    if (result == DB_OK)
        result = integrity(&c, each, arg, &found);
    for (size_t i = 0; result == DB_OK && i < sizeof rules / sizeof *rules; i++) {
        char text[160];
        int64_t rows = 0;
        result = rule(&c, i, &rows);
        if (result != DB_OK || rows == 0)
            continue;
        found = true;
        sqlite3_snprintf(sizeof text, text, "%lld %s", (long long)rows, rules[i].finding);
        each(arg, text);
    }
    if (result != DB_OK && result != DB_REFUSED)
        db_set_error(error, "%s: %s", config->path, sqlite3_errmsg(c.db));
    db_conn_close(&c);
    return result == DB_OK && found ? DB_INVALID : result;
}
