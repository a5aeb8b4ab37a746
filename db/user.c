#include "db/user.h"

#include "db/reader_internal.h"
#include "db/write.h"

/* What take_row reads. */
#define USER_COLUMNS "SELECT id, name, hash, read, write, created"

static bool take_row(sqlite3_stmt *s, struct db_user *u)
{
    *u = (struct db_user){
        .id = sqlite3_column_int64(s, 0),
        .name = (const char *)sqlite3_column_text(s, 1),
        .hash = (const char *)sqlite3_column_text(s, 2),
        .read = (const char *)sqlite3_column_text(s, 3),
        .read_len = (size_t)sqlite3_column_bytes(s, 3),
        .write = (const char *)sqlite3_column_text(s, 4),
        .write_len = (size_t)sqlite3_column_bytes(s, 4),
        .created = sqlite3_column_int64(s, 5),
    };
    return u->name && u->hash && u->read && u->write;
}

static enum db_result lend_row(struct db_reader *r, sqlite3_stmt *s, struct db_user *user)
{
    int rc = sqlite3_step(s);
    if (rc != SQLITE_ROW) {
        sqlite3_reset(s);
        return rc == SQLITE_DONE ? DB_NONE : db_cause(rc);
    }
    db_reader_lend(r, s);
    return take_row(s, user) ? DB_OK : DB_NO_MEMORY;
}

enum db_result db_user_find(struct db_reader *r, const char *name, size_t name_len,
                            struct db_user *user)
{
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_USER_FIND,
                                        USER_COLUMNS " FROM user WHERE name = ?1");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    sqlite3_bind_text64(s, 1, name, name_len, SQLITE_TRANSIENT, SQLITE_UTF8);
    return lend_row(r, s, user);
}

enum db_result db_user_get(struct db_reader *r, int64_t id, struct db_user *user)
{
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_USER_GET,
                                        USER_COLUMNS " FROM user WHERE id = ?1");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    sqlite3_bind_int64(s, 1, id);
    return lend_row(r, s, user);
}

enum db_result db_user_list(struct db_reader *r,
                            void (*each)(void *arg, const struct db_user *user), void *arg)
{
    sqlite3_stmt *s = db_conn_statement(
        &r->conn, SLOT_USER_LIST,
        USER_COLUMNS ", (SELECT count(*) FROM session WHERE session.user = user.id)"
                     " FROM user ORDER BY name");
    struct db_user user;
    int rc;
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        if (!take_row(s, &user)) {
            rc = SQLITE_NOMEM;
            break;
        }
        user.sessions = sqlite3_column_int64(s, 6);
        each(arg, &user);
    }
    sqlite3_reset(s);
    return db_cause(rc);
}

/* Binds the operation's first n values in order, runs, and tells none when no row was changed. */
static enum db_result change(struct db_write *w, sqlite3_stmt *s, const struct db_op *op, int n,
                             enum db_result none)
{
    if (s == NULL)
        return db_conn_failed(w->conn);
    for (int i = 0; i < n; i++)
        db_write_bind(s, i + 1, op, i);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result == DB_OK && sqlite3_changes(w->conn->db) == 0 ? none : result;
}

/* Not ON CONFLICT: its BEFORE trigger would end the sessions of the user who is there. */
enum db_result db_user_new(struct db_write *w, struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_USER_NEW,
        "INSERT INTO user (name, hash, read, write) SELECT ?1, ?2, ?3, ?4"
        " WHERE NOT EXISTS (SELECT 1 FROM user WHERE name = ?1)");
    return change(w, s, op, 4, DB_EXISTS);
}

enum db_result db_user_password(struct db_write *w, struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_USER_PASSWORD,
                                        "UPDATE user SET hash = ?2 WHERE name = ?1");
    return change(w, s, op, 2, DB_NONE);
}

enum db_result db_user_grant(struct db_write *w, struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_USER_GRANT,
                                        "UPDATE user SET read = ?2, write = ?3 WHERE name = ?1");
    return change(w, s, op, 3, DB_NONE);
}

enum db_result db_user_remove(struct db_write *w, struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_USER_REMOVE,
                                        "DELETE FROM user WHERE name = ?1");
    return change(w, s, op, 1, DB_NONE);
}

enum db_result db_user_renew(struct db_write *w, struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_USER_RENEW,
                                        "UPDATE user SET hash = ?3, renewed = renewed + 1"
                                        " WHERE id = ?1 AND hash = ?2");
    return change(w, s, op, 3, DB_NONE);
}
