/* What the courier reports, applied by the server: fences, tries, and what follows from them. The
 * writer's thread but for making the operations. */
#include "db/courier.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "db/outbox.h"
#include "db/valid.h"
#include "db/wire.h"

/* ---- the fence ---- */

struct db_op *db_courier_lease_op(int64_t pid)
{
    struct db_op *op = db_op_new(DB_OP_COURIER_LEASE, 0);
    if (op != NULL)
        db_op_int(op, 0, pid);
    return op;
}

enum db_result db_courier_lease(struct db_write *w, struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_COURIER_LEASE,
                                        "UPDATE courier SET fence = fence + 1, pid = ?1, since = ?2"
                                        " WHERE one = 1 RETURNING fence");
    if (s == NULL)
        return db_conn_failed(w->conn);
    if (op->values[0].type != DB_VALUE_INT)
        return DB_INVALID;
    db_write_bind(s, 1, op, 0);
    sqlite3_bind_int64(s, 2, w->now_s);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        op->seq = (uint64_t)sqlite3_column_int64(s, 0);
        rc = sqlite3_step(s);
    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_CORRUPT; /* the row is there since the table is */
    }
    sqlite3_reset(s);
    return db_cause(rc);
}

static enum db_result check_fence(struct db_write *w, uint64_t fence)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_COURIER_FENCE, "SELECT fence FROM courier");
    if (s == NULL)
        return db_conn_failed(w->conn);
    int rc = sqlite3_step(s);
    bool same = rc == SQLITE_ROW && (uint64_t)sqlite3_column_int64(s, 0) == fence;
    sqlite3_reset(s);
    return rc != SQLITE_ROW && rc != SQLITE_DONE ? db_cause(rc) : same ? DB_OK : DB_PRECONDITION;
}

/* ---- marks as a value ---- */

enum {
    MARK_ATTEMPTED = 1, MARK_COUNTED = 2, MARK_SKIPPED = 4, MARK_PROOF = 8, MARK_WORKS = 16,
    MARK_FAILS = 32, MARK_ALL = 63,
    MARK_FIXED = 1 + 1 + 1 + 2 + 7 * 8 + 1 + 2, /* flags … detail's length */
};

static unsigned char *put_mark(unsigned char *p, const struct db_mark *m)
{
    size_t word = strnlen(m->outcome, sizeof m->outcome - 1);
    size_t detail = strnlen(m->detail, sizeof m->detail - 1);
    *p++ = (unsigned char)((m->attempted ? MARK_ATTEMPTED : 0) | (m->counted ? MARK_COUNTED : 0) |
                           (m->skipped ? MARK_SKIPPED : 0) | (m->has_proof ? MARK_PROOF : 0) |
                           (m->works ? MARK_WORKS : 0) | (m->fails ? MARK_FAILS : 0));
    *p++ = (unsigned char)m->state;
    *p++ = (unsigned char)m->line_state;
    *p++ = (unsigned char)(m->status >> 8);
    *p++ = (unsigned char)m->status;
    p = db_wire_put64(p, (uint64_t)m->line);
    p = db_wire_put64(p, (uint64_t)m->message);
    p = db_wire_put64(p, (uint64_t)m->at_ms);
    p = db_wire_put64(p, (uint64_t)m->took_ms);
    p = db_wire_put64(p, (uint64_t)m->due_ms);
    p = db_wire_put64(p, (uint64_t)m->wait_until_ms);
    p = db_wire_put64(p, m->send_again_from);
    *p++ = (unsigned char)word;
    *p++ = (unsigned char)(detail >> 8);
    *p++ = (unsigned char)detail;
    if (m->has_proof)
        p = db_wire_put(p, m->proof, DB_PROOF_BYTES);
    p = db_wire_put(p, m->outcome, word);
    return db_wire_put(p, m->detail, detail);
}

static size_t mark_bytes(const struct db_mark *m)
{
    return (size_t)MARK_FIXED + (m->has_proof ? DB_PROOF_BYTES : 0u) +
           strnlen(m->outcome, sizeof m->outcome - 1) + strnlen(m->detail, sizeof m->detail - 1);
}

struct db_op *db_courier_marks_op(uint64_t fence, const struct db_mark *marks, unsigned count)
{
    size_t all = 0;
    assert(count <= DB_MARKS_MAX);
    for (unsigned i = 0; i < count; i++)
        all += mark_bytes(&marks[i]);
    unsigned char *p = malloc(all + (all == 0));
    struct db_op *op = p != NULL ? db_op_new(DB_OP_COURIER_MARKS, 0) : NULL;
    if (op == NULL) {
        free(p);
        return NULL;
    }
    unsigned char *at = p;
    for (unsigned i = 0; i < count; i++)
        at = put_mark(at, &marks[i]);
    db_op_int(op, 0, (int64_t)fence);
    db_op_take(op, 1, DB_VALUE_BLOB, p, all);
    return op;
}

/* What is printable stays. */
static void clean_word(char *word)
{
    for (; *word != 0; word++)
        if (!((*word >= 'a' && *word <= 'z') || (*word >= '0' && *word <= '9') ||
              strchr("_ .-", *word) != NULL))
            *word = '_';
}

/* Bytes of the UTF-8 character at p, of n; 0: it is none, or a control character. */
static size_t character(const unsigned char *p, size_t n)
{
    for (size_t len = 1; len <= 4 && len <= n; len++)
        if (db_valid_text(p, len))
            return *p < ' ' || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0) ? 0 : len;
    return 0;
}

static void clean_detail(char *detail, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t len = character((unsigned char *)detail + i, n - i);
        if (len == 0)
            detail[i++] = '?';
        i += len;
    }
}

/* Takes one from the value; what is behind it, NULL: malformed. */
static const unsigned char *take_mark(const unsigned char *p, const unsigned char *end,
                                      struct db_mark *m)
{
    *m = (struct db_mark){0};
    if (end - p < MARK_FIXED || (p[0] & ~MARK_ALL) != 0 || p[1] >= DB_SEND_STATES ||
        p[2] > DB_LINE_DISABLED)
        return NULL;
    unsigned flags = p[0];
    m->attempted = (flags & MARK_ATTEMPTED) != 0;
    m->counted = (flags & MARK_COUNTED) != 0;
    m->skipped = (flags & MARK_SKIPPED) != 0;
    m->has_proof = (flags & MARK_PROOF) != 0;
    m->works = (flags & MARK_WORKS) != 0;
    m->fails = (flags & MARK_FAILS) != 0;
    m->state = (enum db_send_state)p[1];
    m->line_state = (enum db_line_state)p[2];
    m->status = (unsigned)p[3] << 8 | p[4];
    int64_t *const numbers[] = {&m->line,   &m->message,       &m->at_ms, &m->took_ms,
                                &m->due_ms, &m->wait_until_ms, NULL};
    p += 5;
    for (int i = 0; i < 6; i++, p += 8)
        *numbers[i] = (int64_t)db_wire_get64(p);
    m->send_again_from = db_wire_get64(p);
    size_t word = p[8], detail = (size_t)p[9] << 8 | p[10];
    size_t proof = m->has_proof ? DB_PROOF_BYTES : 0;
    p += 11;
    if (word >= sizeof m->outcome || detail >= sizeof m->detail ||
        (size_t)(end - p) < word + detail + proof)
        return NULL;
    memcpy(m->proof, p, proof);
    memcpy(m->outcome, p + proof, word);
    memcpy(m->detail, p + proof + word, detail);
    clean_word(m->outcome);
    clean_detail(m->detail, detail);
    return p + proof + word + detail;
}

/* ---- applying them ---- */

/* The message of a mark, as it is in the file. */
struct marked {
    enum db_send_state state;
    bool skip, there;
};

static enum db_result find_marked(struct db_write *w, const struct db_mark *m, struct marked *of)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_MARK_FIND,
                                        "SELECT state, skip, line FROM outbox WHERE n = ?1");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, m->message);
    int rc = sqlite3_step(s);
    of->there = rc == SQLITE_ROW && sqlite3_column_int64(s, 2) == m->line;
    if (of->there) {
        of->state = db_outbox_state((const char *)sqlite3_column_text(s, 0));
        of->skip = sqlite3_column_int(s, 1) != 0;
    }
    sqlite3_reset(s);
    return db_cause(rc);
}

static enum db_result note_attempt(struct db_write *w, const struct db_mark *m)
{
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_ATTEMPT_NOTE,
        "INSERT INTO attempt (message, number, at, took, status, outcome, detail) VALUES (?1,"
        " (SELECT coalesce(max(number), 0) + 1 FROM attempt WHERE message = ?1), ?2, ?3, ?4, ?5,"
        " ?6) RETURNING number");
    int64_t number = 0;
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, m->message);
    sqlite3_bind_int64(s, 2, m->at_ms);
    sqlite3_bind_int64(s, 3, m->took_ms);
    sqlite3_bind_int64(s, 4, m->status);
    sqlite3_bind_text(s, 5, m->outcome, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 6, m->detail, -1, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        number = sqlite3_column_int64(s, 0);
        rc = sqlite3_step(s);
    }
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    if (rc != SQLITE_DONE || number <= DB_ATTEMPTS_KEPT)
        return db_cause(rc);
    s = db_conn_statement(w->conn, SLOT_ATTEMPT_TRIM,
                          "DELETE FROM attempt WHERE message = ?1 AND number <= ?2");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, m->message);
    sqlite3_bind_int64(s, 2, number - DB_ATTEMPTS_KEPT);
    return db_cause(db_conn_run(s));
}

/* Tries, proof and, when change is true, state of the message. */
static enum db_result write_message(struct db_write *w, const struct db_mark *m, bool change)
{
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_MARK_WRITE,
        "UPDATE outbox SET tries = tries + ?2, proof = coalesce(proof, ?3),"
        " state = iif(?4, ?5, state), due = iif(?4, ?6, due), reason = iif(?4, ?7, reason),"
        " ended = iif(?4, ?8, ended) WHERE n = ?1");
    if (s == NULL)
        return db_conn_failed(w->conn);
    bool waits = m->state == DB_SEND_WAITING, over = m->state == DB_SEND_DELIVERED ||
                                                     m->state == DB_SEND_SKIPPED;
    sqlite3_bind_int64(s, 1, m->message);
    sqlite3_bind_int(s, 2, m->counted);
    if (m->has_proof)
        sqlite3_bind_blob(s, 3, m->proof, DB_PROOF_BYTES, SQLITE_STATIC);
    sqlite3_bind_int(s, 4, change);
    sqlite3_bind_text(s, 5, db_send_state_name(m->state), -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 6, waits ? m->due_ms : w->now_s * 1000);
    if (!over && m->outcome[0] != 0)
        sqlite3_bind_text(s, 7, m->outcome, -1, SQLITE_STATIC);
    if (!waits)
        sqlite3_bind_int64(s, 8, w->now_s);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result;
}

/* The message of a mark; what changes for the line goes into change. */
static enum db_result apply_message(struct db_write *w, const struct db_mark *m,
                                    struct db_outbox_change *change, bool *parked)
{
    struct marked of = {0};
    enum db_result result = find_marked(w, m, &of);
    if (result != DB_OK || !of.there)
        return result;
    /* a person may have decided otherwise meanwhile, and the tombstone is another delivery */
    bool applies = of.state == DB_SEND_WAITING && of.skip == m->skipped;
    result = write_message(w, m, applies);
    if (result == DB_OK && m->attempted)
        result = note_attempt(w, m);
    if (applies)
        db_outbox_moved(change, of.state, m->state);
    *parked = applies && (m->state == DB_SEND_PARKED || m->state == DB_SEND_UNOPENABLE);
    return result;
}

/* The receiver misses numbers: what is over waits again. Where it is gone, only a person can help:
 * the line is paused. */
static enum db_result send_again(struct db_write *w, const struct db_mark *m,
                                 struct db_outbox_change *change, bool *closed)
{
    int64_t first, from = db_outbox_number(m->line, m->send_again_from);
    int changed = 0;
    bool before = m->message > from;
    enum db_result result = before ? db_outbox_again(w, from, m->message - 1, &changed, &first)
                                   : DB_CONFLICT;
    change->waiting += changed;
    if (result == DB_CONFLICT)
        result = db_outbox_close(w, m->line, DB_LINE_PAUSED,
                                 "the receiver misses messages that are not here any more",
                                 closed);
    return result;
}

static enum db_result apply_mark(struct db_write *w, const struct db_mark *m)
{
    struct db_outbox_change change = {.line = m->line, .failing_s = m->at_ms / 1000};
    bool parked = false, closed = false;
    enum db_result result = DB_OK;
    if (m->works || m->fails)
        change.failing = m->works ? DB_FAILING_NOT : DB_FAILING_SINCE;
    if (m->message != 0)
        result = apply_message(w, m, &change, &parked);
    if (result == DB_OK && m->send_again_from != 0)
        result = send_again(w, m, &change, &closed);
    if (result == DB_OK && m->wait_until_ms != 0)
        result = db_outbox_hold(w, m->line, m->wait_until_ms);
    if (result == DB_OK && m->line_state != DB_LINE_OPEN)
        result = db_outbox_close(w, m->line, m->line_state, m->outcome, &closed);
    if (result == DB_OK)
        result = db_outbox_settle(w, &change);
    if (result == DB_OK && (parked || closed))
        result = db_outbox_notice(w, m->line, closed);
    return result;
}

enum db_result db_courier_marks(struct db_write *w, struct db_op *op)
{
    const struct db_value *fence = &op->values[0], *all = &op->values[1];
    const unsigned char *p = all->p, *end = p + all->n;
    struct db_mark mark;
    if (fence->type != DB_VALUE_INT || all->type != DB_VALUE_BLOB)
        return DB_INVALID;
    enum db_result result = check_fence(w, (uint64_t)fence->i);
    while (result == DB_OK && p < end) {
        p = take_mark(p, end, &mark);
        result = p != NULL ? apply_mark(w, &mark) : DB_INVALID;
    }
    return result;
}
