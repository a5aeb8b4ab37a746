/* Messages: sent, tried again, skipped, sent once more. The writer's thread. */
#include <assert.h>
#include <string.h>

#include "db/outbox.h"
#include "db/valid.h"
#include "db/wire.h"

/* ---- sending ---- */

/* The rest of a message in one value. */
enum { REST_HASH = 0, REST_FLAGS = 32, REST_VERSION = 33, REST_EXPIRES = 41, REST_BYTES = 49 };
enum { FLAG_SEALED = 1, FLAG_SHARE = 2, FLAG_ALL = 3 };
enum { SEND_LINE, SEND_ID = DB_SEND_VALUE_ID, SEND_TYPE, SEND_BODY, SEND_REST };

struct db_op *db_send_op(const struct db_send *send)
{
    unsigned char rest[REST_BYTES], *p = rest;
    size_t line = strlen(send->line), type = strlen(send->type);
    size_t body = send->share ? 0 : send->bytes;
    struct db_op *op = db_op_new(DB_OP_SEND, line + DB_MESSAGE_ID_LEN + type + body + sizeof rest);
    if (op == NULL)
        return NULL;
    p = db_wire_put(p, send->hash, DB_MESSAGE_HASH_BYTES);
    *p++ = (unsigned char)((send->sealed ? FLAG_SEALED : 0) | (send->share ? FLAG_SHARE : 0));
    p = db_wire_put64(p, send->version);
    db_wire_put64(p, (uint64_t)send->expires);
    db_op_copy(op, SEND_LINE, DB_VALUE_TEXT, send->line, line);
    db_op_copy(op, SEND_ID, DB_VALUE_TEXT, send->id, DB_MESSAGE_ID_LEN);
    db_op_copy(op, SEND_TYPE, DB_VALUE_TEXT, send->type, type);
    if (!send->share)
        db_op_copy(op, SEND_BODY,
                   db_valid_text(send->body, send->bytes) ? DB_VALUE_TEXT : DB_VALUE_BLOB,
                   send->body, send->bytes);
    db_op_copy(op, SEND_REST, DB_VALUE_BLOB, rest, sizeof rest);
    return op;
}

/* What SEND_REST has. */
struct rest {
    const unsigned char *hash;
    bool sealed, share;
    uint64_t version;
    int64_t expires;
};

/* No control character: it becomes a header. */
static bool type_ok(const struct db_value *v)
{
    const unsigned char *p = v->p;
    for (size_t i = 0; i < v->n; i++)
        if (p[i] < ' ' || p[i] > '~')
            return false;
    return v->type == DB_VALUE_TEXT && v->n >= 1 && v->n <= DB_MESSAGE_TYPE_MAX;
}

/* It becomes one, too, and what is signed has no '.' in it. */
static bool id_ok(const struct db_value *v)
{
    const char *p = v->p;
    if (v->type != DB_VALUE_TEXT || v->n != DB_MESSAGE_ID_LEN || memcmp(p, "msg_", 4) != 0)
        return false;
    for (size_t i = 4; i < v->n; i++)
        if (!((p[i] >= 'a' && p[i] <= 'z') || (p[i] >= '0' && p[i] <= '9')))
            return false;
    return true;
}

static bool take_rest(const struct db_op *op, struct rest *rest)
{
    const struct db_value *v = &op->values[SEND_REST], *body = &op->values[SEND_BODY];
    const unsigned char *p = v->p;
    if (v->type != DB_VALUE_BLOB || v->n != REST_BYTES || p[REST_FLAGS] > FLAG_ALL)
        return false;
    rest->hash = p;
    rest->sealed = (p[REST_FLAGS] & FLAG_SEALED) != 0;
    rest->share = (p[REST_FLAGS] & FLAG_SHARE) != 0;
    rest->version = db_wire_get64(p + REST_VERSION);
    rest->expires = (int64_t)db_wire_get64(p + REST_EXPIRES);
    return rest->share ? body->type == DB_VALUE_NONE
                       : (body->type == DB_VALUE_TEXT || body->type == DB_VALUE_BLOB) &&
                             body->n <= DB_WIRE_SEND_MAX;
}

/* DB_OK: the line takes it. */
static enum db_result judge(const struct db_outbox_line *line, const struct rest *rest)
{
    if (rest->sealed ? rest->version != line->version : line->keys > 0)
        return DB_PRECONDITION;
    if (line->waiting >= DB_LINE_WAITING_MAX)
        return DB_OVERLOAD;
    return line->seq + 1 >= UINT64_C(1) << DB_SEQ_BITS ? DB_TOO_LARGE : DB_OK;
}

static sqlite3_stmt *insert_statement(struct db_write *w)
{
    return db_conn_statement(w->conn, SLOT_OUTBOX_INSERT,
                             "INSERT INTO outbox (n, id, line, seq, due, sealed, size, body,"
                             " created, expires, type, prev, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6,"
                             " ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT (id) DO NOTHING");
}

static enum db_result insert(struct db_write *w, const struct db_op *op,
                             const struct db_outbox_line *line, const struct rest *rest)
{
    sqlite3_stmt *s = insert_statement(w);
    int64_t n = db_outbox_number(line->id, line->seq + 1);
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, n);
    db_write_bind(s, 2, op, SEND_ID);
    sqlite3_bind_int64(s, 3, line->id);
    sqlite3_bind_int64(s, 4, (int64_t)(line->seq + 1));
    sqlite3_bind_int64(s, 5, w->now_s * 1000);
    sqlite3_bind_int(s, 6, rest->sealed);
    sqlite3_bind_int64(s, 7, rest->share ? w->shared_size : (int64_t)op->values[SEND_BODY].n);
    sqlite3_bind_int64(s, 8, rest->share ? w->shared_body : n);
    sqlite3_bind_int64(s, 9, w->now_s);
    sqlite3_bind_int64(s, 10, rest->expires);
    db_write_bind(s, 11, op, SEND_TYPE);
    if (line->has_hash)
        sqlite3_bind_blob(s, 12, line->hash, DB_MESSAGE_HASH_BYTES, SQLITE_STATIC);
    sqlite3_bind_blob(s, 13, rest->hash, DB_MESSAGE_HASH_BYTES, SQLITE_STATIC);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s); /* they point into the operation */
    return result == DB_OK && sqlite3_changes(w->conn->db) != 1 ? DB_EXISTS : result;
}

static enum db_result put_body(struct db_write *w, const struct db_op *op, int64_t n)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_OUTBOX_BODY,
                                        "INSERT INTO outbox_body (id, body) VALUES (?1, ?2)");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, n);
    db_write_bind(s, 2, op, SEND_BODY);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    w->shared_body = n;
    w->shared_size = (int64_t)op->values[SEND_BODY].n;
    return result;
}

static enum db_result share_body(struct db_write *w)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_OUTBOX_REF,
                                        "UPDATE outbox_body SET refs = refs + 1 WHERE id = ?1");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, w->shared_body);
    return db_cause(db_conn_run(s));
}

/* The line after a message was given its number. When it is due does not change while others wait
 * before it, so the index of due times is left alone then. */
static enum db_result note_given(struct db_write *w, const struct db_outbox_line *line,
                                 const struct rest *rest)
{
    int64_t now_ms = w->now_s * 1000;
    int64_t due_ms = now_ms > line->wait_until_ms ? now_ms : line->wait_until_ms;
    bool first = line->fifo ? line->waiting + line->parked == 0
                            : line->due_ms < 0 || due_ms < line->due_ms;
    sqlite3_stmt *s =
        first && line->open
            ? db_conn_statement(w->conn, SLOT_OUTBOX_GIVEN_DUE,
                                "UPDATE line SET seq = ?2, hash = ?3, waiting = waiting + 1,"
                                " due = ?4 WHERE id = ?1")
            : db_conn_statement(w->conn, SLOT_OUTBOX_GIVEN,
                                "UPDATE line SET seq = ?2, hash = ?3, waiting = waiting + 1"
                                " WHERE id = ?1");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, line->id);
    sqlite3_bind_int64(s, 2, (int64_t)(line->seq + 1));
    sqlite3_bind_blob(s, 3, rest->hash, DB_MESSAGE_HASH_BYTES, SQLITE_STATIC);
    if (first && line->open)
        sqlite3_bind_int64(s, 4, due_ms);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result;
}

/* A failure behind the first row would leave half a message: it ends the burst. */
static enum db_result whole(enum db_result result)
{
    return result == DB_INVALID ? DB_BUSY : result;
}

enum db_result db_send(struct db_write *w, struct db_op *op)
{
    struct db_outbox_line line;
    struct rest rest;
    if (!id_ok(&op->values[SEND_ID]) || !type_ok(&op->values[SEND_TYPE]) || !take_rest(op, &rest) ||
        (rest.share && w->shared_body == 0))
        return DB_INVALID;
    enum db_result result = db_outbox_find(w, op, SEND_LINE, &line);
    if (result == DB_OK)
        result = judge(&line, &rest);
    if (result == DB_OK)
        result = insert(w, op, &line, &rest);
    if (result != DB_OK)
        return result;
    result = rest.share ? share_body(w) : put_body(w, op, db_outbox_number(line.id, line.seq + 1));
    if (result == DB_OK)
        result = note_given(w, &line, &rest);
    op->seq = line.seq + 1;
    return whole(result);
}

/* ---- what a person decides ---- */

/* Line, and a message's id or none; two numbers for a range. */
static struct db_op *person_op(enum db_op_kind kind, const char *line, const char *id)
{
    size_t n = strlen(line), m = id != NULL ? strlen(id) : 0;
    struct db_op *op = db_op_new(kind, n + m);
    if (op != NULL)
        db_op_copy(op, 0, DB_VALUE_TEXT, line, n);
    if (op != NULL && id != NULL)
        db_op_copy(op, 1, DB_VALUE_TEXT, id, m);
    return op;
}

struct db_op *db_send_retry_op(const char *line, const char *id)
{
    return person_op(DB_OP_SEND_RETRY, line, id);
}

struct db_op *db_send_skip_op(const char *line, const char *id)
{
    return person_op(DB_OP_SEND_SKIP, line, id);
}

struct db_op *db_send_replay_op(const char *line, uint64_t from, uint64_t to)
{
    struct db_op *op = person_op(DB_OP_SEND_REPLAY, line, NULL);
    if (op != NULL) {
        db_op_int(op, 1, from > INT64_MAX ? INT64_MAX : (int64_t)from);
        db_op_int(op, 2, to > INT64_MAX ? INT64_MAX : (int64_t)to);
    }
    return op;
}

/* A message that value 1 names. */
struct found {
    int64_t n;
    enum db_send_state state;
    bool sealed;
};

static enum db_result find_message(struct db_write *w, const struct db_op *op, int64_t line,
                                   struct found *f)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_OUTBOX_FIND,
                                        "SELECT n, state, sealed, line FROM outbox WHERE id = ?1");
    if (s == NULL)
        return db_conn_failed(w->conn);
    if (op->values[1].type != DB_VALUE_TEXT)
        return DB_INVALID;
    db_write_bind(s, 1, op, 1);
    int rc = sqlite3_step(s);
    bool there = rc == SQLITE_ROW && sqlite3_column_int64(s, 3) == line;
    if (there) {
        f->n = sqlite3_column_int64(s, 0);
        f->state = db_outbox_state((const char *)sqlite3_column_text(s, 1));
        f->sealed = sqlite3_column_int(s, 2) != 0;
    }
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return db_cause(rc);
    if (!there)
        return DB_NONE;
    return f->state == DB_SEND_DELIVERED || f->state == DB_SEND_SKIPPED ? DB_CONFLICT : DB_OK;
}

/* Due now: waiting, or as a tombstone. Or over: skipped. */
static enum db_result change(struct db_write *w, const struct found *f, enum db_send_state to,
                             bool skip)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_OUTBOX_CHANGE,
                                        "UPDATE outbox SET state = ?2, due = ?3, reason = NULL,"
                                        " ended = ?4, skip = skip OR ?5 WHERE n = ?1");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, f->n);
    sqlite3_bind_text(s, 2, db_send_state_name(to), -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 3, w->now_s * 1000);
    if (to == DB_SEND_SKIPPED)
        sqlite3_bind_int64(s, 4, w->now_s);
    sqlite3_bind_int(s, 5, skip);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result;
}

/* The counters of the line, and when it is due; a person that asks for a try means now. */
static enum db_result settle(struct db_write *w, const struct db_outbox_change *c)
{
    enum db_result result = db_outbox_hold(w, c->line, 0);
    if (result == DB_OK)
        result = db_outbox_settle(w, c);
    return whole(result);
}

/* Runs s over a line's messages, the first DB_SEND_STEP_MAX of them; *changed: how many. */
static enum db_result make_due(struct db_write *w, sqlite3_stmt *s, int64_t line, int *changed)
{
    *changed = 0;
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, line);
    sqlite3_bind_int64(s, 2, w->now_s * 1000);
    sqlite3_bind_int64(s, 3, DB_SEND_STEP_MAX);
    enum db_result result = db_cause(db_conn_run(s));
    *changed = sqlite3_changes(w->conn->db);
    return result;
}

static enum db_result retry_all(struct db_write *w, struct db_op *op, int64_t line)
{
    sqlite3_stmt *parked = db_conn_statement(
        w->conn, SLOT_OUTBOX_RETRY,
        "UPDATE outbox SET state = 'waiting', due = ?2, reason = NULL, ended = NULL WHERE n IN"
        " (SELECT n FROM outbox INDEXED BY outbox_state WHERE line = ?1 AND state = 'parked'"
        " ORDER BY n LIMIT ?3)");
    sqlite3_stmt *later = db_conn_statement(
        w->conn, SLOT_OUTBOX_HURRY,
        "UPDATE outbox SET due = ?2 WHERE n IN (SELECT n FROM outbox INDEXED BY outbox_due"
        " WHERE line = ?1 AND state = 'waiting' AND due > ?2 ORDER BY due LIMIT ?3)");
    struct db_outbox_change c = {.line = line};
    int hurried = 0;
    enum db_result result = make_due(w, later, line, &hurried);
    if (result == DB_OK)
        result = make_due(w, parked, line, &c.waiting);
    c.parked = -c.waiting;
    op->seq = (uint64_t)c.waiting + (uint64_t)hurried;
    return result == DB_OK ? settle(w, &c) : whole(result);
}

enum db_result db_send_retry(struct db_write *w, struct db_op *op)
{
    struct db_outbox_line line;
    struct found f = {0};
    enum db_result result = db_outbox_find(w, op, 0, &line);
    if (result == DB_OK && op->values[1].type == DB_VALUE_NONE)
        return retry_all(w, op, line.id);
    if (result == DB_OK)
        result = find_message(w, op, line.id, &f);
    if (result == DB_OK)
        result = change(w, &f, DB_SEND_WAITING, false);
    if (result != DB_OK)
        return result;
    struct db_outbox_change c = {.line = line.id};
    db_outbox_moved(&c, f.state, DB_SEND_WAITING);
    op->seq = 1;
    return settle(w, &c);
}

enum db_result db_send_skip(struct db_write *w, struct db_op *op)
{
    struct db_outbox_line line;
    struct found f = {0};
    enum db_result result = db_outbox_find(w, op, 0, &line);
    if (result == DB_OK)
        result = find_message(w, op, line.id, &f);
    enum db_send_state to = f.sealed ? DB_SEND_WAITING : DB_SEND_SKIPPED;
    if (result == DB_OK)
        result = change(w, &f, to, f.sealed);
    if (result != DB_OK)
        return result;
    struct db_outbox_change c = {.line = line.id};
    db_outbox_moved(&c, f.state, to);
    op->seq = 1;
    return settle(w, &c);
}

/* One number that a query about a range gives; 0: none. */
static enum db_result ask(struct db_conn *c, sqlite3_stmt *s, int64_t from, int64_t to,
                          int64_t *answer)
{
    if (s == NULL)
        return db_conn_failed(c);
    sqlite3_bind_int64(s, 1, from);
    sqlite3_bind_int64(s, 2, to);
    int rc = sqlite3_step(s);
    *answer = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_reset(s);
    return db_cause(rc);
}

/* Where all that is there from a number on begins: *first, as outbox.n; 0: nothing is there. */
static enum db_result first_whole(struct db_write *w, int64_t from, int64_t to, int64_t *first)
{
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_OUTBOX_HOLE,
        "SELECT n FROM (SELECT n, lag(n) OVER (ORDER BY n) AS before FROM outbox"
        " WHERE n BETWEEN ?1 AND ?2) WHERE before <> n - 1 ORDER BY n DESC LIMIT 1");
    enum db_result result = ask(w->conn, s, from, to, first);
    if (result != DB_OK || *first != 0)
        return result;
    s = db_conn_statement(w->conn, SLOT_OUTBOX_FIRST,
                          "SELECT n FROM outbox WHERE n BETWEEN ?1 AND ?2 ORDER BY n LIMIT 1");
    return ask(w->conn, s, from, to, first);
}

/* Those of the range that are over wait again, the first DB_SEND_STEP_MAX: delivered ones, and
 * tombstones. */
static enum db_result again(struct db_write *w, int64_t from, int64_t to, int *changed)
{
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_OUTBOX_AGAIN,
        "UPDATE outbox SET state = 'waiting', due = ?3, reason = NULL, ended = NULL, tries = 0"
        " WHERE n IN (SELECT n FROM outbox WHERE n BETWEEN ?1 AND ?2 AND (state = 'delivered'"
        " OR (state = 'skipped' AND skip = 1)) ORDER BY n LIMIT ?4)");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, from);
    sqlite3_bind_int64(s, 2, to);
    sqlite3_bind_int64(s, 3, w->now_s * 1000);
    sqlite3_bind_int64(s, 4, DB_SEND_STEP_MAX);
    enum db_result result = db_cause(db_conn_run(s));
    *changed = sqlite3_changes(w->conn->db);
    return result;
}

enum db_result db_outbox_again(struct db_write *w, int64_t from, int64_t to, int *changed,
                               int64_t *first)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_OUTBOX_COUNT,
                                        "SELECT count(*) FROM outbox WHERE n BETWEEN ?1 AND ?2");
    int64_t there = 0;
    *changed = 0;
    enum db_result result = ask(w->conn, s, from, to, &there);
    if (result == DB_OK && there != to - from + 1) {
        result = first_whole(w, from, to, first);
        return result == DB_OK ? DB_CONFLICT : result;
    }
    return result == DB_OK ? again(w, from, to, changed) : result;
}

enum db_result db_send_replay(struct db_write *w, struct db_op *op)
{
    struct db_outbox_line line;
    const struct db_value *from = &op->values[1], *to = &op->values[2];
    int64_t first = 0;
    int changed = 0;
    if (from->type != DB_VALUE_INT || to->type != DB_VALUE_INT || from->i < 0 || to->i < 0)
        return DB_INVALID;
    enum db_result result = db_outbox_find(w, op, 0, &line);
    uint64_t a = from->i > 0 ? (uint64_t)from->i : 1;
    uint64_t b = to->i == 0 || (uint64_t)to->i > line.seq ? line.seq : (uint64_t)to->i;
    op->seq = 0;
    if (result != DB_OK || a > b)
        return result;
    result = db_outbox_again(w, db_outbox_number(line.id, a), db_outbox_number(line.id, b),
                             &changed, &first);
    op->seq = result == DB_OK ? (uint64_t)changed
                              : (uint64_t)first & ((UINT64_C(1) << DB_SEQ_BITS) - 1);
    if (result != DB_OK)
        return result;
    struct db_outbox_change c = {.line = line.id, .waiting = changed};
    return settle(w, &c);
}
