#include "db/session.h"

#include <string.h>

#include "db/reader_internal.h"
#include "db/write.h"

static bool take_row(sqlite3_stmt *q, struct db_session *s)
{
    *s = (struct db_session){
        .user = sqlite3_column_int64(q, 0),
        .created = sqlite3_column_int64(q, 1),
        .seen = sqlite3_column_int64(q, 2),
        .expires = sqlite3_column_int64(q, 3),
        .name = (const char *)sqlite3_column_text(q, 4),
        .read = (const char *)sqlite3_column_text(q, 5),
        .read_len = (size_t)sqlite3_column_bytes(q, 5),
        .write = (const char *)sqlite3_column_text(q, 6),
        .write_len = (size_t)sqlite3_column_bytes(q, 6),
    };
    return s->name && s->read && s->write;
}

/* As the last token is kept; only within a snapshot. */
static void keep(struct db_reader *r, const unsigned char *hash, const struct db_session *s)
{
    struct db_session_kept *k = &r->kept_session;
    size_t name_len = strlen(s->name) + 1;
    if (!r->begun || name_len + s->read_len + s->write_len > sizeof k->text)
        return;
    char *read = k->text + name_len, *write = read + s->read_len;
    memcpy(k->text, s->name, name_len);
    memcpy(read, s->read, s->read_len);
    memcpy(write, s->write, s->write_len);
    memcpy(k->hash, hash, DB_SESSION_HASH_BYTES);
    k->session = *s;
    k->session.name = k->text;
    k->session.read = read;
    k->session.write = write;
    k->valid = true;
}

enum db_result db_session_find(struct db_reader *r,
                               const unsigned char hash[DB_SESSION_HASH_BYTES],
                               struct db_session *session)
{
    if (r->kept_session.valid && memcmp(r->kept_session.hash, hash, DB_SESSION_HASH_BYTES) == 0) {
        *session = r->kept_session.session;
        return DB_OK;
    }
    sqlite3_stmt *s = db_conn_statement(
        &r->conn, SLOT_SESSION_FIND,
        "SELECT session.user, session.created, seen, expires, name, read, write"
        " FROM session JOIN user ON user.id = session.user WHERE session.hash = ?1");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    sqlite3_bind_blob(s, 1, hash, DB_SESSION_HASH_BYTES, SQLITE_TRANSIENT);
    int rc = sqlite3_step(s);
    if (rc != SQLITE_ROW) {
        sqlite3_reset(s);
        return rc == SQLITE_DONE ? DB_NONE : db_cause(rc);
    }
    db_reader_lend(r, s);
    if (!take_row(s, session))
        return DB_NO_MEMORY;
    keep(r, hash, session);
    return DB_OK;
}

enum db_result db_login_json(struct db_reader *r, const void *json, size_t n,
                             struct db_login *login)
{
    sqlite3_stmt *s = db_conn_statement(
        &r->conn, SLOT_LOGIN_JSON,
        "SELECT json_extract(j, '$.user'), json_extract(j, '$.password')"
        " FROM (SELECT ?1 AS j) WHERE CASE WHEN json_valid(j) THEN"
        " json_type(j, '$.user') = 'text' AND json_type(j, '$.password') = 'text' ELSE 0 END");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    if (n == 0 || memchr(json, 0, n) != NULL)
        return DB_INVALID; /* SQLite reads up to a NUL, and JSON has none */
    db_reader_lend(r, NULL);
    /* Not copied: what there is of the password would stay until the next login. */
    sqlite3_bind_text64(s, 1, json, n, SQLITE_STATIC, SQLITE_UTF8);
    int rc = sqlite3_step(s);
    if (rc != SQLITE_ROW) {
        sqlite3_reset(s);
        sqlite3_clear_bindings(s);
        return rc == SQLITE_DONE || rc == SQLITE_ERROR ? DB_INVALID : db_cause(rc);
    }
    db_reader_lend(r, s);
    login->user = (const char *)sqlite3_column_text(s, 0);
    login->user_len = (size_t)sqlite3_column_bytes(s, 0);
    login->password = (const char *)sqlite3_column_text(s, 1);
    login->password_len = (size_t)sqlite3_column_bytes(s, 1);
    return login->user && login->password ? DB_OK : DB_NO_MEMORY;
}

/* True when the user still has the password that was verified. */
static enum db_result same_password(struct db_write *w, const struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_SESSION_USER,
                                        "SELECT 1 FROM user WHERE id = ?1 AND hash = ?2");
    if (s == NULL)
        return db_conn_failed(w->conn);
    db_write_bind(s, 1, op, 1);
    db_write_bind(s, 2, op, 2);
    int rc = sqlite3_step(s);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return rc == SQLITE_DONE ? DB_PRECONDITION : db_cause(rc);
}

/* The user's sessions that are over, and those unused for longest beyond the bound, less one. */
static enum db_result make_room(struct db_write *w, const struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_SESSION_TRIM,
        "DELETE FROM session WHERE user = ?1 AND (expires <= ?2 OR hash IN"
        " (SELECT hash FROM session WHERE user = ?1 AND expires > ?2"
        " ORDER BY seen DESC, created DESC LIMIT -1 OFFSET ?3))");
    if (s == NULL)
        return db_conn_failed(w->conn);
    db_write_bind(s, 1, op, 1);
    sqlite3_bind_int64(s, 2, w->now_s);
    sqlite3_bind_int64(s, 3, DB_SESSIONS_PER_USER - 1);
    return db_cause(db_conn_run(s));
}

enum db_result db_session_new(struct db_write *w, struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_SESSION_NEW,
        "INSERT INTO session (hash, user, created, seen, expires, label)"
        " VALUES (?1, ?2, ?3, ?3, ?4, ?5)");
    if (s == NULL)
        return db_conn_failed(w->conn);
    enum db_result result = same_password(w, op);
    if (result == DB_OK)
        result = make_room(w, op);
    if (result != DB_OK)
        return result;
    db_write_bind(s, 1, op, 0);
    db_write_bind(s, 2, op, 1);
    sqlite3_bind_int64(s, 3, w->now_s);
    db_write_bind(s, 4, op, 3);
    db_write_bind(s, 5, op, 4);
    result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result;
}

enum db_result db_session_touch(struct db_write *w, struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_SESSION_TOUCH,
                                        "UPDATE session SET seen = ?2 WHERE hash = ?1"
                                        " AND seen < ?2");
    if (s == NULL)
        return db_conn_failed(w->conn);
    db_write_bind(s, 1, op, 0);
    sqlite3_bind_int64(s, 2, w->now_s);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result;
}

/* Deletes by value 0 of the operation. DB_NONE when there was nothing. */
static enum db_result end_sessions(struct db_write *w, const struct db_op *op, enum db_slot slot,
                                   const char *sql)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, slot, sql);
    if (s == NULL)
        return db_conn_failed(w->conn);
    db_write_bind(s, 1, op, 0);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result == DB_OK && sqlite3_changes(w->conn->db) == 0 ? DB_NONE : result;
}

enum db_result db_session_end(struct db_write *w, struct db_op *op)
{
    return end_sessions(w, op, SLOT_SESSION_END, "DELETE FROM session WHERE hash = ?1");
}

enum db_result db_session_end_all(struct db_write *w, struct db_op *op)
{
    return end_sessions(w, op, SLOT_SESSION_END_ALL,
                        "DELETE FROM session WHERE user ="
                        " (SELECT user FROM session WHERE hash = ?1)");
}

enum db_result db_session_end_user(struct db_write *w, struct db_op *op)
{
    return end_sessions(w, op, SLOT_SESSION_END_USER,
                        "DELETE FROM session WHERE user = (SELECT id FROM user WHERE name = ?1)");
}
