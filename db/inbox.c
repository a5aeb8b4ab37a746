/* Inboxes: reading them, their keys, marks and messages. Any reader, in its snapshot. */
#include "db/inbox.h"

#include <string.h>

#include "db/reader_internal.h"

/* What take_source reads. A name that begins with '/' is that of one being removed: all are below
 * "0", with which the least name can begin. */
#define SOURCE                                                                                     \
    "SELECT id, name, app, event, secret, start_any, state, created,"                              \
    " (SELECT received FROM inbox WHERE source = s.id ORDER BY n DESC LIMIT 1),"                   \
    " (SELECT count(*) FROM inbox_key WHERE source = s.id)"                                        \
    " FROM inbox_source AS s"

/* A text, or NULL where there is none. Sets *ok to false when memory is short: what is missing then
 * must not look as if it were not there. */
static const char *text_of(sqlite3_stmt *s, int column, bool *ok)
{
    bool there = sqlite3_column_type(s, column) != SQLITE_NULL;
    const char *text = (const char *)sqlite3_column_text(s, column);
    *ok = *ok && (text != NULL || !there);
    return text;
}

static const unsigned char *bytes_of(sqlite3_stmt *s, int column, size_t *n, bool *ok)
{
    bool there = sqlite3_column_type(s, column) != SQLITE_NULL;
    const unsigned char *p = sqlite3_column_blob(s, column);
    *n = (size_t)sqlite3_column_bytes(s, column);
    *ok = *ok && (p != NULL || !there || *n == 0);
    return p;
}

/* False: memory is short. */
static bool take_source(sqlite3_stmt *s, struct db_inbox *in)
{
    bool ok = true;
    *in = (struct db_inbox){
        .id = sqlite3_column_int64(s, 0),
        .name = text_of(s, 1, &ok),
        .app = text_of(s, 2, &ok),
        .event = text_of(s, 3, &ok),
        .start_any = sqlite3_column_int(s, 5) != 0,
        .created = sqlite3_column_int64(s, 7),
        .last_received = sqlite3_column_int64(s, 8),
        .keys = (uint32_t)sqlite3_column_int(s, 9),
    };
    const char *state = text_of(s, 6, &ok);
    in->secret = bytes_of(s, 4, &in->secret_bytes, &ok);
    in->closed = state == NULL || strcmp(state, "open") != 0;
    return ok && in->name != NULL;
}

/* The row of s is lent; DB_NONE: there is none. */
static enum db_result lend_row(struct db_reader *r, sqlite3_stmt *s)
{
    int rc = sqlite3_step(s);
    if (rc != SQLITE_ROW) {
        sqlite3_reset(s);
        return rc == SQLITE_DONE ? DB_NONE : db_cause(rc);
    }
    db_reader_lend(r, s);
    return DB_OK;
}

enum db_result db_inbox_find(struct db_reader *r, const char *name, size_t n, struct db_inbox *in)
{
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_INBOX_FIND,
                                        SOURCE " WHERE name = ?1 AND name >= '0'");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    if (sqlite3_bind_text64(s, 1, name, n, SQLITE_TRANSIENT, SQLITE_UTF8) != SQLITE_OK)
        return DB_NO_MEMORY;
    enum db_result result = lend_row(r, s);
    if (result != DB_OK)
        return result;
    return take_source(s, in) ? DB_OK : DB_NO_MEMORY;
}

enum db_result db_inbox_list(struct db_reader *r, const char *after, unsigned most,
                             bool (*each)(void *arg, const struct db_inbox *in), void *arg)
{
    sqlite3_stmt *s = db_conn_statement(
        &r->conn, SLOT_INBOX_LIST,
        SOURCE " WHERE name > max(?1, '/~') ORDER BY name LIMIT ?2");
    int rc;
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    sqlite3_bind_text(s, 1, after, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, most);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        struct db_inbox in;
        if (!take_source(s, &in)) {
            rc = SQLITE_NOMEM;
            break;
        }
        if (!each(arg, &in)) {
            rc = SQLITE_DONE;
            break;
        }
    }
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return db_cause(rc);
}

/* A blob of n bytes; false: it is another. */
static bool take_bytes(sqlite3_stmt *s, int column, unsigned char *to, size_t n)
{
    const void *p = sqlite3_column_blob(s, column);
    if (p == NULL || (size_t)sqlite3_column_bytes(s, column) != n)
        return false;
    memcpy(to, p, n);
    return true;
}

static bool take_key(sqlite3_stmt *s, struct db_inbox_key *key)
{
    const char *kind = (const char *)sqlite3_column_text(s, 0);
    key->kind = kind != NULL && strcmp(kind, "identity") == 0 ? DB_INBOX_IDENTITY
                                                              : DB_INBOX_TRANSPORT;
    key->valid_from = sqlite3_column_int64(s, 4);
    key->valid_until = sqlite3_column_int64(s, 5);
    return kind != NULL && take_bytes(s, 1, key->id, sizeof key->id) &&
           take_bytes(s, 2, key->key, sizeof key->key) &&
           take_bytes(s, 3, key->root, sizeof key->root);
}

enum db_result db_inbox_keys(struct db_reader *r, int64_t source, struct db_inbox_key *keys,
                             unsigned *count)
{
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_INBOX_KEYS,
                                        "SELECT kind, id, key, root, valid_from, valid_until"
                                        " FROM inbox_key WHERE source = ?1 LIMIT ?2");
    int rc;
    *count = 0;
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    sqlite3_bind_int64(s, 1, source);
    sqlite3_bind_int(s, 2, DB_INBOX_KEYS_MAX);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        if (!take_key(s, &keys[*count])) {
            rc = SQLITE_NOMEM;
            break;
        }
        ++*count;
    }
    sqlite3_reset(s);
    return db_cause(rc);
}

enum db_result db_inbox_marks(struct db_reader *r, int64_t source, unsigned most,
                              bool (*each)(void *arg, const struct db_inbox_mark *mark), void *arg)
{
    sqlite3_stmt *s = db_conn_statement(
        &r->conn, SLOT_INBOX_MARKS,
        "SELECT sender, line, seq, (SELECT count(*) FROM"
        " (SELECT 1 FROM inbox_ahead AS a WHERE a.line = l.id LIMIT 100000))"
        " FROM inbox_line AS l WHERE source = ?1 ORDER BY sender, line LIMIT ?2");
    int rc;
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    sqlite3_bind_int64(s, 1, source);
    sqlite3_bind_int64(s, 2, most);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        struct db_inbox_mark mark = {
            .sender = sqlite3_column_blob(s, 0),
            .line = (const char *)sqlite3_column_text(s, 1),
            .seq = (uint64_t)sqlite3_column_int64(s, 2),
            .ahead = (uint64_t)sqlite3_column_int64(s, 3),
        };
        if (mark.sender == NULL || mark.line == NULL ||
            sqlite3_column_bytes(s, 0) != DB_KEY_ID_BYTES)
            continue; /* written by somebody else */
        if (!each(arg, &mark)) {
            rc = SQLITE_DONE;
            break;
        }
    }
    sqlite3_reset(s);
    return db_cause(rc);
}

/* What take_row reads, and behind it the body or NULL. Its size is told without reading it, but for
 * TEXT, whose bytes must be counted. */
#define MESSAGE                                                                                    \
    "SELECT n, id, line, type, sender, seq, sent, received, typeof(body) = 'text',"                \
    " CASE typeof(body) WHEN 'blob' THEN length(body) ELSE length(CAST(body AS BLOB)) END, "

/* False: memory is short. */
static bool take_row(sqlite3_stmt *s, struct db_inbox_row *row)
{
    bool ok = true;
    size_t sender, body;
    *row = (struct db_inbox_row){
        .number = sqlite3_column_int64(s, 0),
        .id = text_of(s, 1, &ok),
        .line = text_of(s, 2, &ok),
        .type = text_of(s, 3, &ok),
        .seq = (uint64_t)sqlite3_column_int64(s, 5),
        .sent = sqlite3_column_int64(s, 6),
        .received = sqlite3_column_int64(s, 7),
        .text = sqlite3_column_int(s, 8) != 0,
        .bytes = (size_t)sqlite3_column_int64(s, 9),
    };
    row->sender = bytes_of(s, 4, &sender, &ok);
    row->body = bytes_of(s, 10, &body, &ok);
    if (sender != DB_KEY_ID_BYTES)
        row->sender = NULL;
    return ok && row->id != NULL && row->type != NULL;
}

enum db_result db_inbox_messages(struct db_reader *r, int64_t source, int64_t after, unsigned most,
                                 bool with_body,
                                 bool (*each)(void *arg, const struct db_inbox_row *row), void *arg)
{
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_INBOX_MESSAGES,
                                        MESSAGE
                                        "CASE WHEN ?4 THEN body END FROM inbox"
                                        " WHERE source = ?1 AND n > ?2 ORDER BY n LIMIT ?3");
    int rc;
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    sqlite3_bind_int64(s, 1, source);
    sqlite3_bind_int64(s, 2, after);
    sqlite3_bind_int64(s, 3, most);
    sqlite3_bind_int(s, 4, with_body);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        struct db_inbox_row row;
        if (!take_row(s, &row)) {
            rc = SQLITE_NOMEM;
            break;
        }
        if (!each(arg, &row)) {
            rc = SQLITE_DONE;
            break;
        }
    }
    sqlite3_reset(s);
    return db_cause(rc);
}

enum db_result db_inbox_message(struct db_reader *r, int64_t source, int64_t number,
                                struct db_inbox_row *row)
{
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_INBOX_MESSAGE,
                                        MESSAGE "body FROM inbox WHERE n = ?2 AND source = ?1");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    sqlite3_bind_int64(s, 1, source);
    sqlite3_bind_int64(s, 2, number);
    enum db_result result = lend_row(r, s);
    if (result != DB_OK)
        return result;
    return take_row(s, row) ? DB_OK : DB_NO_MEMORY;
}
