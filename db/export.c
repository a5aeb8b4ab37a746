#include "db/export.h"

#include <stdlib.h>
#include <string.h>

#include "db/migrate.h"
#include "db/reader_internal.h"

enum { PATIENCE_MS = 5000 };

struct db_export {
    struct db_reader *reader;
    uint64_t seq, documents;
    sqlite3_blob *blob; /* the body of a large document */
    int64_t id;         /* of the document that was given */
    size_t end_len;     /* of end; 0: no end */
    size_t after_len;
    char end[DB_KEY_MAX];
    char after[2 * DB_KEY_MAX]; /* rows from outside may have longer keys in a damaged file */
};

static void close_blob(struct db_export *e)
{
    sqlite3_blob_close(e->blob);
    e->blob = NULL;
}

static void set_range(struct db_export *e, const struct db_doc_range *range)
{
    bool behind = db_doc_behind(range);
    e->after_len = behind ? range->after_len : range->prefix_len;
    if (e->after_len > 0)
        memcpy(e->after, behind ? range->after : range->prefix, e->after_len);
    e->end_len = range->prefix_len;
    if (e->end_len == 0)
        return;
    memcpy(e->end, range->prefix, e->end_len);
    e->end[e->end_len - 1] = '/' + 1; /* the first key behind those below "a/" */
}

enum db_result db_export_open(const struct db_config *config, const struct db_doc_range *range,
                              struct db_export **out, struct db_error *error)
{
    struct db_export *e = calloc(1, sizeof *e);
    *out = NULL;
    if (e == NULL || range->prefix_len > DB_KEY_MAX || range->after_len > DB_KEY_MAX) {
        db_set_error(error, e == NULL ? "memory is short" : "a key has at most 512 bytes");
        free(e);
        return e == NULL ? DB_NO_MEMORY : DB_INVALID;
    }
    set_range(e, range);
    enum db_result result = db_reader_open(config, &e->reader, error);
    if (result == DB_OK) {
        e->reader->conn.busy_limit_ms = PATIENCE_MS;
        result = db_reader_totals(e->reader, &e->seq, &e->documents);
        if (result != DB_OK)
            db_set_error(error, "%s", db_result_text(result));
    }
    if (result != DB_OK) {
        db_export_close(e);
        return result;
    }
    *out = e;
    return DB_OK;
}

void db_export_close(struct db_export *e)
{
    if (e == NULL)
        return;
    db_export_pause(e);
    db_reader_close(e->reader);
    free(e);
}

uint64_t db_export_seq(const struct db_export *e)
{
    return e->seq;
}

uint64_t db_export_documents(const struct db_export *e)
{
    return e->documents;
}

void db_export_pause(struct db_export *e)
{
    close_blob(e);
    if (e->reader != NULL)
        db_reader_end(e->reader);
}

#define COLUMNS                                                                                    \
    "SELECT id, key, type, modified, seq, typeof(body) = 'text',"                                  \
    " CASE WHEN size <= ?2 THEN body END FROM doc WHERE key "

static sqlite3_stmt *statement(struct db_export *e, bool find)
{
    struct db_conn *c = &e->reader->conn;
    sqlite3_stmt *s =
        find ? db_conn_statement(c, SLOT_EXPORT_FIND, COLUMNS "= ?1")
        : e->end_len > 0
            ? db_conn_statement(c, SLOT_EXPORT_END,
                                COLUMNS "> ?1 AND key < ?3 ORDER BY key LIMIT 1")
            : db_conn_statement(c, SLOT_EXPORT, COLUMNS "> ?1 ORDER BY key LIMIT 1");
    if (s == NULL)
        return NULL;
    sqlite3_bind_text(s, 1, e->after, (int)e->after_len, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, DB_EXPORT_WHOLE_MAX);
    if (e->end_len > 0 && !find)
        sqlite3_bind_text(s, 3, e->end, (int)e->end_len, SQLITE_STATIC);
    return s;
}

/* The body of a row: whole, or a handle to read it by pieces. */
static enum db_result take_body(struct db_export *e, sqlite3_stmt *s, struct db_export_doc *doc)
{
    doc->body = sqlite3_column_blob(s, 6);
    doc->size = (uint64_t)sqlite3_column_bytes(s, 6);
    if (sqlite3_column_type(s, 6) != SQLITE_NULL)
        return DB_OK;
    int rc = sqlite3_blob_open(e->reader->conn.db, "main", "doc", "body", e->id, 0, &e->blob);
    if (rc == SQLITE_OK)
        doc->size = (uint64_t)sqlite3_blob_bytes(e->blob);
    return db_cause(rc);
}

static enum db_result take_row(struct db_export *e, sqlite3_stmt *s, struct db_export_doc *doc)
{
    e->id = sqlite3_column_int64(s, 0);
    doc->key = (const char *)sqlite3_column_text(s, 1);
    doc->key_len = (size_t)sqlite3_column_bytes(s, 1);
    doc->type = (const char *)sqlite3_column_text(s, 2);
    doc->type_len = (size_t)sqlite3_column_bytes(s, 2);
    doc->modified = sqlite3_column_int64(s, 3);
    doc->seq = (uint64_t)sqlite3_column_int64(s, 4);
    doc->text = sqlite3_column_int(s, 5) != 0;
    if (doc->key == NULL || doc->type == NULL)
        return DB_NO_MEMORY;
    if (doc->key_len > sizeof e->after)
        return DB_BROKEN;
    return take_body(e, s, doc);
}

static enum db_result step(struct db_export *e, bool find, struct db_export_doc *doc)
{
    enum db_result result = DB_OK;
    close_blob(e);
    if (!e->reader->begun)
        result = db_reader_begin(e->reader);
    if (result != DB_OK)
        return result;
    db_reader_lend(e->reader, NULL);
    sqlite3_stmt *s = statement(e, find);
    if (s == NULL)
        return db_conn_failed(&e->reader->conn);
    int rc = sqlite3_step(s);
    if (rc != SQLITE_ROW) {
        sqlite3_reset(s);
        return rc == SQLITE_DONE ? DB_NONE : db_cause(rc);
    }
    db_reader_lend(e->reader, s);
    return take_row(e, s, doc);
}

enum db_result db_export_next(struct db_export *e, struct db_export_doc *doc)
{
    enum db_result result = step(e, false, doc);
    if (result != DB_OK)
        return result;
    memcpy(e->after, doc->key, doc->key_len); /* no step before the next reset sees it */
    e->after_len = doc->key_len;
    return DB_OK;
}

enum db_result db_export_find(struct db_export *e, const char *key, size_t key_len,
                              struct db_export_doc *doc)
{
    if (key_len > sizeof e->after)
        return DB_NONE;
    memcpy(e->after, key, key_len);
    e->after_len = key_len;
    return step(e, true, doc);
}

enum db_result db_export_read(struct db_export *e, void *p, size_t n, uint64_t at)
{
    return db_cause(sqlite3_blob_read(e->blob, p, (int)n, (int)at));
}
