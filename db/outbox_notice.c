/* Telling a line's owner: a document, and a message on the line `alerts`. The writer's thread. */
#include <stdlib.h>
#include <string.h>

#include "db/outbox.h"

static const char json_type[] = "application/json";
static const char alerts[] = "alerts";

/* What is told, as JSON, and the line's name: into the operation that stores it. NULL with *result
 * set: it cannot be told. */
static struct db_op *document(struct db_write *w, int64_t line, bool *alert,
                              enum db_result *result)
{
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_LINE_NOTICE,
        "SELECT 'hanji/lines/' || name, json_object('line', name, 'state', state, 'reason', reason,"
        " 'since', failing, 'at', ?2, 'waiting', waiting, 'parked', parked), name = ?3 FROM line"
        " WHERE id = ?1");
    struct db_op *op = NULL;
    *result = DB_NONE;
    if (s == NULL) {
        *result = db_conn_failed(w->conn);
        return NULL;
    }
    sqlite3_bind_int64(s, 1, line);
    sqlite3_bind_int64(s, 2, w->now_s);
    sqlite3_bind_text(s, 3, alerts, sizeof alerts - 1, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        const void *key = sqlite3_column_text(s, 0), *body = sqlite3_column_text(s, 1);
        size_t n = (size_t)sqlite3_column_bytes(s, 0), m = (size_t)sqlite3_column_bytes(s, 1);
        if (key != NULL && body != NULL)
            op = db_op_new(DB_OP_PUT, n + sizeof json_type + m);
        if (op != NULL) {
            db_op_copy(op, 0, DB_VALUE_TEXT, key, n);
            db_op_copy(op, 1, DB_VALUE_TEXT, json_type, sizeof json_type - 1);
            db_op_copy(op, 2, DB_VALUE_TEXT, body, m);
        }
        *result = op != NULL ? DB_OK : DB_NO_MEMORY;
        *alert = *alert && sqlite3_column_int(s, 2) == 0;
    } else if (rc != SQLITE_DONE) {
        *result = db_cause(rc);
    }
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return op;
}

/* The same on the line `alerts`, if there is one. */
static enum db_result send_alert(struct db_write *w, const struct db_op *document)
{
    const struct db_value *body = &document->values[2];
    struct db_op *op;
    struct db_error error;
    struct db_send_draft draft = {
        .line = alerts, .type = json_type, .body = body->p, .bytes = body->n, .now_s = w->now_s};
    enum db_result result = db_outbox_draft(w->conn, draft, &op, &error);
    if (result == DB_OK)
        result = db_send(w, op);
    db_op_free(op);
    return result;
}

/* What does not end the burst is not worth the marks that are reported with it. */
static enum db_result only_grave(enum db_result result)
{
    bool grave = result == DB_FULL || result == DB_NO_MEMORY || result == DB_BROKEN ||
                 result == DB_BUSY;
    return grave ? result : DB_OK;
}

enum db_result db_outbox_notice(struct db_write *w, int64_t line, bool alert)
{
    enum db_result result;
    struct db_op *op = document(w, line, &alert, &result);
    if (op == NULL)
        return only_grave(result);
    result = only_grave(db_doc_put(w, op));
    if (result == DB_OK && alert)
        result = only_grave(send_alert(w, op));
    db_op_free(op);
    return result;
}
