/* Messages and their tries: reading. Any reader, in its snapshot. */
#include <string.h>

#include "db/outbox.h"
#include "db/reader_internal.h"

static const char *const states[DB_SEND_STATES] = {
    [DB_SEND_WAITING] = "waiting",       [DB_SEND_DELIVERED] = "delivered",
    [DB_SEND_PARKED] = "parked",         [DB_SEND_SKIPPED] = "skipped",
    [DB_SEND_UNOPENABLE] = "unopenable",
};

const char *db_send_state_name(enum db_send_state state)
{
    return (unsigned)state < DB_SEND_STATES ? states[state] : NULL;
}

enum db_send_state db_outbox_state(const char *name)
{
    unsigned state = 0;
    while (state < DB_SEND_STATES && (name == NULL || strcmp(name, states[state]) != 0))
        state++;
    return (enum db_send_state)state;
}

/* ---- messages ---- */

/* What take_message reads. */
#define MESSAGE                                                                                    \
    "SELECT o.id, l.name, o.type, o.reason, o.seq, o.size, o.sealed, o.skip, o.state, o.due,"      \
    " o.created, coalesce(o.ended, 0), o.tries, o.n FROM outbox AS o JOIN line AS l ON l.id ="     \
    " o.line"

static const char *text(sqlite3_stmt *s, int column)
{
    return (const char *)sqlite3_column_text(s, column);
}

/* False when memory is short. */
static bool take_message(sqlite3_stmt *s, struct db_message *m)
{
    m->id = text(s, 0);
    m->line = text(s, 1);
    m->type = text(s, 2);
    m->reason = text(s, 3);
    m->seq = (uint64_t)sqlite3_column_int64(s, 4);
    m->bytes = (uint64_t)sqlite3_column_int64(s, 5);
    m->sealed = sqlite3_column_int(s, 6) != 0;
    m->skip = sqlite3_column_int(s, 7) != 0;
    m->state = db_outbox_state(text(s, 8));
    m->due_ms = sqlite3_column_int64(s, 9);
    m->created = sqlite3_column_int64(s, 10);
    m->ended = sqlite3_column_int64(s, 11);
    m->tries = (unsigned)sqlite3_column_int64(s, 12);
    return m->id != NULL && m->line != NULL && m->type != NULL;
}

static sqlite3_stmt *list_statement(struct db_reader *r, enum db_send_state state)
{
    if (state < DB_SEND_STATES)
        return db_conn_statement(&r->conn, SLOT_MESSAGE_STATE,
                                 MESSAGE " WHERE o.line = ?4 AND o.state = ?5 AND o.n > ?1"
                                         " AND o.n <= ?2 ORDER BY o.n LIMIT ?3");
    return db_conn_statement(&r->conn, SLOT_MESSAGE_LIST,
                             MESSAGE " WHERE o.n > ?1 AND o.n <= ?2 ORDER BY o.n LIMIT ?3");
}

enum db_result db_message_list(struct db_reader *r, int64_t line, enum db_send_state state,
                               uint64_t after, unsigned most,
                               bool (*each)(void *arg, const struct db_message *m), void *arg)
{
    const uint64_t last = (UINT64_C(1) << DB_SEQ_BITS) - 1;
    sqlite3_stmt *s = list_statement(r, state);
    struct db_message m;
    int rc;
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    sqlite3_bind_int64(s, 1, db_outbox_number(line, after < last ? after : last));
    sqlite3_bind_int64(s, 2, db_outbox_number(line, last));
    sqlite3_bind_int64(s, 3, most);
    if (state < DB_SEND_STATES) {
        sqlite3_bind_int64(s, 4, line);
        sqlite3_bind_text(s, 5, states[state], -1, SQLITE_STATIC);
    }
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        if (!take_message(s, &m)) {
            rc = SQLITE_NOMEM;
            break;
        }
        if (!each(arg, &m))
            break;
    }
    sqlite3_reset(s);
    return db_cause(rc);
}

enum db_result db_message_find(struct db_reader *r, const char *id, size_t n,
                               struct db_message *m, int64_t *number)
{
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_MESSAGE_FIND, MESSAGE " WHERE o.id = ?1");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    sqlite3_bind_text64(s, 1, id, n, SQLITE_TRANSIENT, SQLITE_UTF8);
    int rc = sqlite3_step(s);
    if (rc != SQLITE_ROW) {
        sqlite3_reset(s);
        return rc == SQLITE_DONE ? DB_NONE : db_cause(rc);
    }
    db_reader_lend(r, s);
    *number = sqlite3_column_int64(s, 13);
    return take_message(s, m) ? DB_OK : DB_NO_MEMORY;
}

/* ---- tries ---- */

enum db_result db_attempt_list(struct db_reader *r, int64_t number, unsigned most,
                               bool (*each)(void *arg, const struct db_attempt *a), void *arg)
{
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_ATTEMPT_LIST,
                                        "SELECT number, at, took, status, outcome, detail"
                                        " FROM attempt WHERE message = ?1"
                                        " ORDER BY number DESC LIMIT ?2");
    int rc;
    if (s == NULL)
        return db_conn_failed(&r->conn);
    sqlite3_bind_int64(s, 1, number);
    sqlite3_bind_int64(s, 2, most);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        struct db_attempt a = {
            .number = (unsigned)sqlite3_column_int64(s, 0),
            .at_ms = sqlite3_column_int64(s, 1),
            .took_ms = sqlite3_column_int64(s, 2),
            .status = (unsigned)sqlite3_column_int(s, 3),
            .outcome = text(s, 4),
            .detail = text(s, 5),
        };
        if (a.outcome == NULL || a.detail == NULL) {
            rc = SQLITE_NOMEM;
            break;
        }
        if (!each(arg, &a))
            break;
    }
    sqlite3_reset(s);
    return db_cause(rc);
}

/* ---- for the courier ---- */

/* What take_due reads. */
#define DUE_COLUMNS                                                                                \
    "SELECT o.n, o.id, o.type, o.seq, o.prev, o.hash, o.proof, b.body, o.sealed, o.skip, o.due,"   \
    " o.expires, o.created, o.tries FROM outbox AS o"

/* Up to the first of a fifo line that is parked or cannot be opened. */
#define FIFO                                                                                       \
    DUE_COLUMNS " INDEXED BY outbox_state JOIN outbox_body AS b ON b.id = o.body"                  \
                " WHERE o.line = ?1 AND o.state = 'waiting' AND o.n > ?2"                          \
                " AND o.n < coalesce((SELECT p.n FROM outbox AS p INDEXED BY outbox_state"         \
                " WHERE p.line = ?1 AND p.state = 'parked' ORDER BY p.n LIMIT 1), ?3)"             \
                " AND o.n < coalesce((SELECT p.n FROM outbox AS p INDEXED BY outbox_state"         \
                " WHERE p.line = ?1 AND p.state = 'unopenable' ORDER BY p.n LIMIT 1), ?3)"         \
                " ORDER BY o.n LIMIT ?4"
#define ANY                                                                                        \
    DUE_COLUMNS " INDEXED BY outbox_due JOIN outbox_body AS b ON b.id = o.body"                    \
                " WHERE o.line = ?1 AND o.state = 'waiting' AND o.due <= ?3"                       \
                " AND (o.due, o.n) > (?5, ?2) ORDER BY o.due, o.n LIMIT ?4"

/* A BLOB of exactly that length, or NULL. */
static const unsigned char *bytes(sqlite3_stmt *s, int column, int n)
{
    const void *p = sqlite3_column_blob(s, column);
    return sqlite3_column_bytes(s, column) == n ? p : NULL;
}

/* False when memory is short, or the row is not what the schema says. */
static bool take_due(sqlite3_stmt *s, struct db_due_message *m)
{
    static const char nothing[1];
    m->number = sqlite3_column_int64(s, 0);
    m->id = text(s, 1);
    m->type = text(s, 2);
    m->seq = (uint64_t)sqlite3_column_int64(s, 3);
    m->prev = bytes(s, 4, DB_MESSAGE_HASH_BYTES);
    m->hash = bytes(s, 5, DB_MESSAGE_HASH_BYTES);
    m->proof = bytes(s, 6, DB_PROOF_BYTES);
    m->body = sqlite3_column_blob(s, 7);
    m->bytes = (size_t)sqlite3_column_bytes(s, 7);
    if (m->body == NULL)
        m->body = nothing;
    m->sealed = sqlite3_column_int(s, 8) != 0;
    m->skipped = sqlite3_column_int(s, 9) != 0;
    m->due_ms = sqlite3_column_int64(s, 10);
    m->expires = sqlite3_column_int64(s, 11);
    m->created = sqlite3_column_int64(s, 12);
    m->tries = (unsigned)sqlite3_column_int64(s, 13);
    return m->id != NULL && m->type != NULL && m->hash != NULL;
}

enum db_result db_courier_messages(struct db_reader *r, int64_t line, bool fifo, int64_t now_ms,
                                   int64_t after_due_ms, uint64_t after_seq, unsigned most,
                                   bool (*each)(void *arg, const struct db_due_message *m),
                                   void *arg)
{
    sqlite3_stmt *s = fifo ? db_conn_statement(&r->conn, SLOT_COURIER_FIFO, FIFO)
                           : db_conn_statement(&r->conn, SLOT_COURIER_ANY, ANY);
    struct db_due_message m;
    int rc;
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    sqlite3_bind_int64(s, 1, line);
    sqlite3_bind_int64(s, 2, db_outbox_number(line, after_seq));
    sqlite3_bind_int64(s, 3, fifo ? INT64_MAX : now_ms);
    sqlite3_bind_int64(s, 4, most);
    if (!fifo)
        sqlite3_bind_int64(s, 5, after_due_ms);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        if (!take_due(s, &m)) {
            rc = SQLITE_NOMEM;
            break;
        }
        if (!each(arg, &m))
            break;
    }
    sqlite3_reset(s);
    return db_cause(rc);
}
