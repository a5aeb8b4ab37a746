#include "db/token.h"

#include <string.h>

#include "db/reader_internal.h"
#include "db/write.h"

/* What take_row reads. */
#define TOKEN_COLUMNS "SELECT name, read, write, created, coalesce(expires, 0), hash FROM token"

static void take_row(sqlite3_stmt *s, struct db_token *t)
{
    t->name = (const char *)sqlite3_column_text(s, 0);
    t->read = (const char *)sqlite3_column_text(s, 1);
    t->read_len = (size_t)sqlite3_column_bytes(s, 1);
    t->write = (const char *)sqlite3_column_text(s, 2);
    t->write_len = (size_t)sqlite3_column_bytes(s, 2);
    t->created = sqlite3_column_int64(s, 3);
    t->expires = sqlite3_column_int64(s, 4);
    t->hash = sqlite3_column_blob(s, 5); /* 32 bytes, says the schema */
}

/* Only within a snapshot: outside of one the next look-up may see another state. */
static void keep(struct db_reader *r, const unsigned char *hash, const struct db_token *t)
{
    struct db_token_kept *k = &r->kept;
    size_t name_len = strlen(t->name) + 1;
    if (!r->begun || name_len + t->read_len + t->write_len > sizeof k->text)
        return;
    char *read = k->text + name_len, *write = read + t->read_len;
    memcpy(k->text, t->name, name_len);
    memcpy(read, t->read, t->read_len);
    memcpy(write, t->write, t->write_len);
    memcpy(k->hash, hash, DB_TOKEN_HASH_BYTES);
    k->token = *t;
    k->token.hash = k->hash;
    k->token.name = k->text;
    k->token.read = read;
    k->token.write = write;
    k->valid = true;
}

enum db_result db_token_find(struct db_reader *r, const unsigned char hash[DB_TOKEN_HASH_BYTES],
                             struct db_token *token)
{
    if (r->kept.valid && memcmp(r->kept.hash, hash, DB_TOKEN_HASH_BYTES) == 0) {
        *token = r->kept.token;
        return DB_OK;
    }
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_TOKEN_FIND,
                                        TOKEN_COLUMNS " WHERE hash = ?1");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    sqlite3_bind_blob(s, 1, hash, DB_TOKEN_HASH_BYTES, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    if (rc != SQLITE_ROW) {
        sqlite3_reset(s);
        return rc == SQLITE_DONE ? DB_NONE : db_cause(rc);
    }
    db_reader_lend(r, s);
    take_row(s, token);
    if (!token->name || !token->read || !token->write || !token->hash)
        return DB_NO_MEMORY;
    keep(r, hash, token);
    return DB_OK;
}

enum db_result db_token_list(struct db_reader *r,
                             void (*each)(void *arg, const struct db_token *token), void *arg)
{
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_TOKEN_LIST,
                                        TOKEN_COLUMNS " ORDER BY name");
    struct db_token token;
    int rc;
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        take_row(s, &token);
        if (!token.name || !token.read || !token.write || !token.hash) {
            rc = SQLITE_NOMEM;
            break;
        }
        each(arg, &token);
    }
    sqlite3_reset(s);
    return db_cause(rc);
}

enum db_result db_token_new(struct db_write *w, struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_TOKEN_NEW,
                                        "INSERT INTO token (name, hash, read, write, created,"
                                        " expires) VALUES (?1, ?2, ?3, ?4, ?6, nullif(?5, 0))"
                                        " ON CONFLICT (name) DO NOTHING");
    if (s == NULL)
        return db_conn_failed(w->conn);
    for (int i = 0; i < 5; i++)
        db_write_bind(s, i + 1, op, i);
    sqlite3_bind_int64(s, 6, w->now_s);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    if (result == DB_OK && sqlite3_changes(w->conn->db) == 0)
        return DB_EXISTS;
    return result;
}

enum db_result db_token_revoke(struct db_write *w, struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_TOKEN_REVOKE,
                                        "DELETE FROM token WHERE name = ?1");
    if (s == NULL)
        return db_conn_failed(w->conn);
    db_write_bind(s, 1, op, 0);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    if (result == DB_OK && sqlite3_changes(w->conn->db) == 0)
        return DB_NONE;
    return result;
}
