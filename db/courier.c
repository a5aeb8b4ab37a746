#include "db/courier.h"

#include <assert.h>
#include <string.h>

#include "db/outbox.h"
#include "db/valid.h"
#include "db/wire.h"

/* ---- the lease ---- */

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
                                        "INSERT INTO courier (one, fence, pid, since)"
                                        " VALUES (1, 1, ?1, ?2) ON CONFLICT (one) DO UPDATE SET"
                                        " fence = fence + 1, pid = excluded.pid,"
                                        " since = excluded.since RETURNING fence");
    if (s == NULL)
        return db_conn_failed(w->conn);
    if (op->values[0].type != DB_VALUE_INT)
        return DB_INVALID;
    sqlite3_bind_int64(s, 1, op->values[0].i);
    sqlite3_bind_int64(s, 2, w->now_s);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        op->seq = (uint64_t)sqlite3_column_int64(s, 0);
        rc = sqlite3_step(s);
    }
    sqlite3_reset(s);
    return db_cause(rc);
}

static enum db_result check_fence(struct db_write *w, int64_t fence)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_COURIER_FENCE, "SELECT fence FROM courier");
    if (s == NULL)
        return db_conn_failed(w->conn);
    int rc = sqlite3_step(s);
    bool last = rc == SQLITE_ROW && sqlite3_column_int64(s, 0) == fence;
    sqlite3_reset(s);
    return db_cause(rc) != DB_OK ? db_cause(rc) : last ? DB_OK : DB_PRECONDITION;
}

/* ---- marks as bytes ---- */

/* One mark: flags, states, numbers, lengths of its texts, the texts, the proof if it has one. */
enum {
    MARK_ATTEMPTED = 1, MARK_COUNTED = 2, MARK_SKIPPED = 4, MARK_PROOF = 8, MARK_WORKS = 16,
    MARK_FAILS = 32, MARK_FLAGS = 63,
    MARK_NUMBERS = 8,
    MARK_HEAD = 3 + MARK_NUMBERS * 8 + 1 + 2,
    MARK_BYTES_MAX = MARK_HEAD + DB_MARK_WORD_MAX + DB_MARK_DETAIL_MAX + DB_PROOF_BYTES,
};

static size_t word_bytes(const struct db_mark *m)
{
    return strnlen(m->outcome, DB_MARK_WORD_MAX - 1);
}

static size_t detail_bytes(const struct db_mark *m)
{
    return strnlen(m->detail, DB_MARK_DETAIL_MAX - 1);
}

static size_t mark_bytes(const struct db_mark *m)
{
    return MARK_HEAD + word_bytes(m) + detail_bytes(m) + (m->has_proof ? DB_PROOF_BYTES : 0);
}

static unsigned char *put_mark(unsigned char *p, const struct db_mark *m)
{
    const uint64_t numbers[MARK_NUMBERS] = {
        (uint64_t)m->line,   (uint64_t)m->message, (uint64_t)m->at_ms,         (uint64_t)m->took_ms,
        (uint64_t)m->due_ms, m->status,            (uint64_t)m->wait_until_ms, m->send_again_from,
    };
    size_t word = word_bytes(m), detail = detail_bytes(m);
    *p++ = (unsigned char)((m->attempted ? MARK_ATTEMPTED : 0) | (m->counted ? MARK_COUNTED : 0) |
                           (m->skipped ? MARK_SKIPPED : 0) | (m->has_proof ? MARK_PROOF : 0) |
                           (m->works ? MARK_WORKS : 0) | (m->fails ? MARK_FAILS : 0));
    *p++ = (unsigned char)m->state;
    *p++ = (unsigned char)m->line_state;
    for (int i = 0; i < MARK_NUMBERS; i++)
        p = db_wire_put64(p, numbers[i]);
    *p++ = (unsigned char)word;
    *p++ = (unsigned char)(detail >> 8);
    *p++ = (unsigned char)detail;
    p = db_wire_put(p, m->outcome, word);
    p = db_wire_put(p, m->detail, detail);
    return m->has_proof ? db_wire_put(p, m->proof, DB_PROOF_BYTES) : p;
}

struct db_op *db_courier_marks_op(uint64_t fence, const struct db_mark *marks, unsigned count)
{
    size_t bytes = 0;
    assert(count <= DB_MARKS_MAX);
    for (unsigned i = 0; i < count; i++)
        bytes += mark_bytes(&marks[i]);
    struct db_op *op = db_op_new(DB_OP_COURIER_MARKS, bytes);
    if (op == NULL)
        return NULL;
    unsigned char *p = op->bytes;
    for (unsigned i = 0; i < count; i++)
        p = put_mark(p, &marks[i]);
    op->used = bytes;
    op->values[1] = (struct db_value){.type = DB_VALUE_BLOB, .p = op->bytes, .n = bytes};
    db_op_int(op, 0, (int64_t)fence);
    return op;
}

/* What is left of the value. */
struct wire {
    const unsigned char *p;
    size_t n;
};

/* A word that stands in JSON, in a header and in a table as it is. */
static void take_word(char *to, const unsigned char *p, size_t n)
{
    static const char signs[] = "_ .-";
    for (size_t i = 0; i < n; i++) {
        char c = (char)p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                     (c != 0 && strchr(signs, c) != NULL);
        to[i] = plain ? c : '_';
    }
    to[n] = 0;
}

/* Bytes of the character at p, 0: there is none that can be printed. */
static size_t printable(const unsigned char *p, size_t n)
{
    size_t bytes = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (bytes > n || !db_valid_text(p, bytes))
        return 0;
    bool control = p[0] < ' ' || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0);
    /* U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069: text that is not where it seems. */
    bool turns = p[0] == 0xe2 && ((p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f ||
                                                    (p[2] >= 0xa8 && p[2] <= 0xae))) ||
                                  (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9));
    return control || turns ? 0 : bytes;
}

static void take_detail(char *to, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t bytes = printable(p + i, n - i);
        memcpy(to, bytes > 0 ? (const char *)p + i : "?", bytes > 0 ? bytes : 1);
        to += bytes > 0 ? bytes : 1;
        i += bytes > 0 ? bytes : 1;
    }
    *to = 0;
}

static bool take_numbers(const unsigned char *p, struct db_mark *m)
{
    uint64_t v[MARK_NUMBERS];
    for (int i = 0; i < MARK_NUMBERS; i++) {
        v[i] = db_wire_get64(p + 8 * i);
        if (v[i] > INT64_MAX)
            return false;
    }
    m->line = (int64_t)v[0];
    m->message = (int64_t)v[1];
    m->at_ms = (int64_t)v[2];
    m->took_ms = (int64_t)v[3];
    m->due_ms = (int64_t)v[4];
    m->status = (unsigned)(v[5] > 999 ? 999 : v[5]);
    m->wait_until_ms = (int64_t)v[6];
    m->send_again_from = v[7];
    return m->message == 0 || m->message >> DB_SEQ_BITS == m->line;
}

/* Takes the next; false when it is malformed. */
static bool take_mark(struct wire *w, struct db_mark *m)
{
    if (w->n < MARK_HEAD)
        return false;
    const unsigned char *p = w->p, *lengths = p + 3 + MARK_NUMBERS * 8;
    size_t word = lengths[0], detail = (size_t)lengths[1] << 8 | lengths[2];
    size_t all = MARK_HEAD + word + detail + ((p[0] & MARK_PROOF) != 0 ? DB_PROOF_BYTES : 0);
    if (p[0] > MARK_FLAGS || p[1] >= DB_SEND_STATES || p[2] > DB_LINE_DISABLED ||
        word >= DB_MARK_WORD_MAX || detail >= DB_MARK_DETAIL_MAX || w->n < all ||
        !take_numbers(p + 3, m))
        return false;
    m->attempted = (p[0] & MARK_ATTEMPTED) != 0;
    m->counted = (p[0] & MARK_COUNTED) != 0;
    m->skipped = (p[0] & MARK_SKIPPED) != 0;
    m->has_proof = (p[0] & MARK_PROOF) != 0;
    m->works = (p[0] & MARK_WORKS) != 0;
    m->fails = (p[0] & MARK_FAILS) != 0;
    m->state = p[1];
    m->line_state = p[2];
    take_word(m->outcome, p + MARK_HEAD, word);
    take_detail(m->detail, p + MARK_HEAD + word, detail);
    if (m->has_proof)
        memcpy(m->proof, p + MARK_HEAD + word + detail, DB_PROOF_BYTES);
    w->p += all;
    w->n -= all;
    return true;
}

/* All of them can be taken: so that none is applied when one is malformed. */
static bool marks_ok(const struct db_op *op)
{
    const struct db_value *v = &op->values[1];
    struct wire w = {v->p, v->n};
    struct db_mark m;
    if (op->values[0].type != DB_VALUE_INT || v->type != DB_VALUE_BLOB)
        return false;
    for (unsigned i = 0; w.n > 0; i++)
        if (i == DB_MARKS_MAX || !take_mark(&w, &m))
            return false;
    return true;
}

/* ---- marks applied ---- */

/* The message of a mark, as it is. */
struct row {
    enum db_send_state state;
    bool there, skip;
};

static enum db_result find_row(struct db_write *w, const struct db_mark *m, struct row *row)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_MARK_FIND,
                                        "SELECT state, skip FROM outbox WHERE n = ?1");
    *row = (struct row){.state = DB_SEND_STATES};
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, m->message);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        row->there = true;
        row->state = db_outbox_state((const char *)sqlite3_column_text(s, 0));
        row->skip = sqlite3_column_int(s, 1) != 0;
    }
    sqlite3_reset(s);
    return db_cause(rc);
}

/* Beyond DB_ATTEMPTS_KEPT the oldest goes. */
static enum db_result trim_attempts(struct db_write *w, int64_t message, int64_t number)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_ATTEMPT_TRIM,
                                        "DELETE FROM attempt WHERE message = ?1 AND number <= ?2");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, message);
    sqlite3_bind_int64(s, 2, number - DB_ATTEMPTS_KEPT);
    return db_cause(db_conn_run(s));
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
    return trim_attempts(w, m->message, number);
}

/* What the mark makes of the message: nothing where a person has decided meanwhile. One who had it
 * skipped while it was on its way wants the tombstone, unless it arrived. */
static enum db_send_state state_behind(const struct row *row, const struct db_mark *m)
{
    if (row->state != DB_SEND_WAITING)
        return row->state;
    bool decided = row->skip && !m->skipped && m->state != DB_SEND_DELIVERED;
    return decided ? DB_SEND_WAITING : m->state;
}

static enum db_result write_row(struct db_write *w, const struct row *row, const struct db_mark *m,
                                enum db_send_state to)
{
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_MARK_WRITE,
        "UPDATE outbox SET state = ?2, due = coalesce(?3, due), reason = iif(?4, ?5, reason),"
        " ended = iif(?4, ?6, ended), tries = tries + ?7, proof = coalesce(proof, ?8)"
        " WHERE n = ?1");
    bool over = to == DB_SEND_DELIVERED || to == DB_SEND_SKIPPED;
    bool moved = row->state == DB_SEND_WAITING && !(row->skip && !m->skipped && !over);
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, m->message);
    sqlite3_bind_text(s, 2, db_send_state_name(to), -1, SQLITE_STATIC);
    if (moved && to == DB_SEND_WAITING && m->due_ms > 0)
        sqlite3_bind_int64(s, 3, m->due_ms);
    sqlite3_bind_int(s, 4, moved);
    if (!over && m->outcome[0] != 0)
        sqlite3_bind_text(s, 5, m->outcome, -1, SQLITE_STATIC);
    if (to != DB_SEND_WAITING)
        sqlite3_bind_int64(s, 6, w->now_s);
    sqlite3_bind_int(s, 7, m->counted);
    if (m->has_proof)
        sqlite3_bind_blob(s, 8, m->proof, DB_PROOF_BYTES, SQLITE_STATIC);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result;
}

/* News of the line that marks about it in a row have. */
struct news {
    struct db_outbox_change change;
    int64_t wait_until_ms;
    bool parked, closed; /* its owner is to be told */
};

static enum db_result apply_message(struct db_write *w, const struct db_mark *m, struct news *news)
{
    struct row row;
    enum db_result result = find_row(w, m, &row);
    if (result != DB_OK || !row.there)
        return result;
    enum db_send_state to = state_behind(&row, m);
    if (m->attempted)
        result = note_attempt(w, m);
    if (result == DB_OK)
        result = write_row(w, &row, m, to);
    db_outbox_moved(&news->change, row.state, to);
    news->parked |= to != row.state && (to == DB_SEND_PARKED || to == DB_SEND_UNOPENABLE);
    return result;
}

static enum db_result close_line(struct db_write *w, int64_t line, enum db_line_state state,
                                 const char *reason, struct news *news)
{
    bool closed = false;
    enum db_result result = db_outbox_close(w, line, state, reason, &closed);
    news->closed |= closed;
    return result;
}

/* The receiver misses numbers. Where they are gone nothing that is sent can get through. */
static enum db_result send_again(struct db_write *w, const struct db_mark *m, struct news *news)
{
    static const char gone[] = "the receiver misses messages that are not here any more";
    int64_t first;
    int changed = 0;
    if (m->send_again_from >> DB_SEQ_BITS != 0)
        return close_line(w, m->line, DB_LINE_PAUSED, gone, news);
    int64_t from = db_outbox_number(m->line, m->send_again_from);
    enum db_result result = from < m->message
                                ? db_outbox_again(w, from, m->message - 1, &changed, &first)
                                : DB_CONFLICT;
    news->change.waiting += changed;
    return result == DB_CONFLICT ? close_line(w, m->line, DB_LINE_PAUSED, gone, news) : result;
}

static void add_failing(struct db_outbox_change *c, const struct db_mark *m)
{
    if (m->works)
        c->failing = DB_FAILING_NOT;
    if (!m->fails)
        return;
    if (c->failing == DB_FAILING_KEPT || c->failing == DB_FAILING_NOT) {
        c->failing = c->failing == DB_FAILING_NOT ? DB_FAILING_ANEW : DB_FAILING_SINCE;
        c->failing_s = m->at_ms > 0 ? m->at_ms / 1000 : 0;
    }
}

static enum db_result apply_mark(struct db_write *w, const struct db_mark *m, struct news *news)
{
    enum db_result result = m->message != 0 ? apply_message(w, m, news) : DB_OK;
    if (result == DB_OK && m->send_again_from != 0)
        result = send_again(w, m, news);
    if (result == DB_OK && m->line_state != DB_LINE_OPEN)
        result = close_line(w, m->line, m->line_state, m->outcome, news);
    if (m->wait_until_ms != 0)
        news->wait_until_ms = m->wait_until_ms;
    add_failing(&news->change, m);
    return result;
}

/* Writes what became of the line. */
static enum db_result end_news(struct db_write *w, struct news *news)
{
    enum db_result result = DB_OK;
    if (news->change.line == 0)
        return DB_OK;
    if (news->wait_until_ms != 0)
        result = db_outbox_hold(w, news->change.line, news->wait_until_ms);
    if (result == DB_OK)
        result = db_outbox_settle(w, &news->change);
    if (result == DB_OK && (news->parked || news->closed))
        result = db_outbox_notice(w, news->change.line, news->closed);
    return result;
}

enum db_result db_courier_marks(struct db_write *w, struct db_op *op)
{
    struct news news = {.change = {.line = 0}};
    struct db_mark m;
    if (!marks_ok(op))
        return DB_INVALID;
    enum db_result result = check_fence(w, op->values[0].i);
    if (result != DB_OK)
        return result;
    struct wire wire = {op->values[1].p, op->values[1].n};
    while (result == DB_OK && wire.n > 0 && take_mark(&wire, &m)) {
        if (m.line != news.change.line) {
            result = end_news(w, &news);
            news = (struct news){.change = {.line = m.line}};
        }
        if (result == DB_OK)
            result = apply_mark(w, &m, &news);
    }
    if (result == DB_OK)
        result = end_news(w, &news);
    return result == DB_INVALID ? DB_BUSY : result; /* some have been applied: not half of them */
}
