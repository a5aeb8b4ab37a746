/* What lines are set to, their state, and their end. The writer's thread. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "db/outbox.h"
#include "db/wire.h"

/* The settings in one value: flags, the rate's bits, keys, the secret. */
enum {
    SET_FIFO = 1, SET_PRIVATE = 2, SET_SECRET = 4, SET_KEEP = 8, SET_NEW = 16, SET_ALL = 31,
    KEY_WIRE_BYTES = 2 * DB_KEY_ID_BYTES + DB_KEY_BYTES + 24,
    SET_WIRE_HEAD = 1 + 8 + 1,
};
enum { SET_NAME, SET_URL, SET_REST, SET_CA };

static unsigned char *put_key(unsigned char *p, const struct db_line_key *key)
{
    p = db_wire_put(p, key->id, DB_KEY_ID_BYTES);
    p = db_wire_put(p, key->key, DB_KEY_BYTES);
    p = db_wire_put(p, key->owner, DB_KEY_ID_BYTES);
    p = db_wire_put64(p, (uint64_t)key->valid_from);
    p = db_wire_put64(p, (uint64_t)key->valid_until);
    return db_wire_put64(p, (uint64_t)key->horizon_s);
}

struct db_op *db_line_set_op(const struct db_line_set *set)
{
    unsigned char rest[SET_WIRE_HEAD + DB_LINE_KEYS_MAX * KEY_WIRE_BYTES + DB_LINE_SECRET_MAX];
    unsigned char *p = rest;
    uint64_t rate;
    size_t name = strlen(set->name), url = strlen(set->url), ca = set->ca ? strlen(set->ca) : 0;
    assert(set->key_count <= DB_LINE_KEYS_MAX && set->secret_bytes <= DB_LINE_SECRET_MAX);
    memcpy(&rate, &set->rate, sizeof rate);
    *p++ = (unsigned char)((set->fifo ? SET_FIFO : 0) | (set->private_ ? SET_PRIVATE : 0) |
                           (set->secret ? SET_SECRET : 0) | (set->keep_secret ? SET_KEEP : 0) |
                           (set->only_new ? SET_NEW : 0));
    p = db_wire_put64(p, rate);
    *p++ = (unsigned char)set->key_count;
    for (unsigned i = 0; i < set->key_count; i++)
        p = put_key(p, &set->keys[i]);
    if (set->secret != NULL)
        p = db_wire_put(p, set->secret, set->secret_bytes);
    struct db_op *op = db_op_new(DB_OP_LINE_SET, name + url + ca + (size_t)(p - rest));
    if (op == NULL)
        return NULL;
    db_op_copy(op, SET_NAME, DB_VALUE_TEXT, set->name, name);
    db_op_copy(op, SET_URL, DB_VALUE_TEXT, set->url, url);
    db_op_copy(op, SET_REST, DB_VALUE_BLOB, rest, (size_t)(p - rest));
    if (set->ca != NULL)
        db_op_copy(op, SET_CA, DB_VALUE_TEXT, set->ca, ca);
    return op;
}

/* What SET_REST has. */
struct rest {
    unsigned flags, keys;
    double rate;
    const unsigned char *key; /* the first, as it is in the value */
    const unsigned char *secret;
    size_t secret_bytes;
};

static bool take_rest(const struct db_value *v, struct rest *rest)
{
    const unsigned char *p = v->p;
    if (v->type != DB_VALUE_BLOB || v->n < SET_WIRE_HEAD)
        return false;
    uint64_t rate = db_wire_get64(p + 1);
    memcpy(&rest->rate, &rate, sizeof rate);
    rest->flags = p[0];
    rest->keys = p[9];
    rest->key = p + SET_WIRE_HEAD;
    if (rest->keys > DB_LINE_KEYS_MAX || v->n - SET_WIRE_HEAD < rest->keys * KEY_WIRE_BYTES)
        return false;
    rest->secret = rest->key + rest->keys * KEY_WIRE_BYTES;
    rest->secret_bytes = v->n - SET_WIRE_HEAD - rest->keys * KEY_WIRE_BYTES;
    bool secret = (rest->flags & SET_SECRET) != 0;
    return (rest->flags & ~(unsigned)SET_ALL) == 0 && isfinite(rest->rate) && rest->rate >= 0 &&
           (secret ? rest->secret_bytes <= DB_LINE_SECRET_MAX : rest->secret_bytes == 0);
}

static bool url_ok(const struct db_value *v)
{
    const unsigned char *p = v->p;
    for (size_t i = 0; i < v->n; i++)
        if (p[i] <= ' ' || p[i] > '~')
            return false;
    return v->type == DB_VALUE_TEXT && v->n >= 1 && v->n <= DB_LINE_URL_MAX;
}

static bool set_ok(const struct db_op *op, struct rest *rest)
{
    const struct db_value *name = &op->values[SET_NAME], *ca = &op->values[SET_CA];
    return name->type == DB_VALUE_TEXT && db_line_name_ok(name->p, name->n) &&
           url_ok(&op->values[SET_URL]) && take_rest(&op->values[SET_REST], rest) &&
           (ca->type == DB_VALUE_NONE || (ca->type == DB_VALUE_TEXT && ca->n <= DB_LINE_CA_MAX));
}

static enum db_result room_for_line(struct db_write *w)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_LINE_COUNT, "SELECT count(*) FROM line");
    if (s == NULL)
        return db_conn_failed(w->conn);
    int rc = sqlite3_step(s);
    bool room = rc == SQLITE_ROW && sqlite3_column_int64(s, 0) < DB_LINES_MAX;
    sqlite3_reset(s);
    return rc != SQLITE_ROW ? db_cause(rc) : room ? DB_OK : DB_TOO_LARGE;
}

/* A line that is there keeps its state, numbers and messages; at another address it has not failed
 * yet. */
static enum db_result put_line(struct db_write *w, const struct db_op *op, const struct rest *rest,
                               int64_t *id)
{
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_LINE_PUT,
        "INSERT INTO line (name, url, ca, ord, private, rate, secret, created)"
        " VALUES (?1, ?2, ?3, iif(?4, 'fifo', 'any'), ?5, ?6, ?7, ?8)"
        " ON CONFLICT (name) DO UPDATE SET url = excluded.url, ca = excluded.ca,"
        " ord = excluded.ord, private = excluded.private, rate = excluded.rate,"
        " secret = iif(?9, secret, excluded.secret),"
        " failing = iif(url = excluded.url, failing, NULL),"
        " wait_until = iif(url = excluded.url, wait_until, 0) RETURNING id");
    if (s == NULL)
        return db_conn_failed(w->conn);
    db_write_bind(s, 1, op, SET_NAME);
    db_write_bind(s, 2, op, SET_URL);
    db_write_bind(s, 3, op, SET_CA);
    sqlite3_bind_int(s, 4, (rest->flags & SET_FIFO) != 0);
    sqlite3_bind_int(s, 5, (rest->flags & SET_PRIVATE) != 0);
    sqlite3_bind_double(s, 6, rest->rate);
    if ((rest->flags & SET_SECRET) != 0)
        sqlite3_bind_blob64(s, 7, rest->secret, rest->secret_bytes, SQLITE_STATIC);
    sqlite3_bind_int64(s, 8, w->now_s);
    sqlite3_bind_int(s, 9, (rest->flags & SET_KEEP) != 0);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        *id = sqlite3_column_int64(s, 0);
        rc = sqlite3_step(s);
    }
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return db_cause(rc);
}

static enum db_result put_keys(struct db_write *w, int64_t line, const struct rest *rest)
{
    sqlite3_stmt *clear = db_conn_statement(w->conn, SLOT_LINE_KEY_CLEAR,
                                            "DELETE FROM line_key WHERE line = ?1");
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_LINE_KEY_PUT,
                                        "INSERT INTO line_key (line, id, key, owner, valid_from,"
                                        " valid_until, horizon) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
                                        " ON CONFLICT (line, id) DO NOTHING");
    if (s == NULL || clear == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(clear, 1, line);
    enum db_result result = db_cause(db_conn_run(clear));
    for (unsigned i = 0; result == DB_OK && i < rest->keys; i++) {
        const unsigned char *p = rest->key + i * KEY_WIRE_BYTES;
        const unsigned char *key = p + DB_KEY_ID_BYTES, *owner = key + DB_KEY_BYTES;
        const unsigned char *times = owner + DB_KEY_ID_BYTES;
        sqlite3_bind_int64(s, 1, line);
        sqlite3_bind_blob(s, 2, p, DB_KEY_ID_BYTES, SQLITE_STATIC);
        sqlite3_bind_blob(s, 3, key, DB_KEY_BYTES, SQLITE_STATIC);
        sqlite3_bind_blob(s, 4, owner, DB_KEY_ID_BYTES, SQLITE_STATIC);
        for (int t = 0; t < 3; t++)
            sqlite3_bind_int64(s, 5 + t, (int64_t)db_wire_get64(times + 8 * t));
        result = db_cause(db_conn_run(s));
        sqlite3_clear_bindings(s);
    }
    return result;
}

enum db_result db_line_set(struct db_write *w, struct db_op *op)
{
    struct db_outbox_line line;
    struct rest rest;
    int64_t id = 0;
    if (!set_ok(op, &rest))
        return DB_INVALID;
    enum db_result result = db_outbox_find(w, op, SET_NAME, &line);
    bool there = result == DB_OK;
    if (there && (rest.flags & SET_NEW) != 0)
        return DB_EXISTS;
    if (result == DB_NONE)
        result = room_for_line(w);
    if (result == DB_OK)
        result = put_line(w, op, &rest, &id);
    if (result == DB_OK)
        result = put_keys(w, id, &rest);
    op->created = !there;
    return result;
}

/* ---- state and end ---- */

static struct db_op *named_op(enum db_op_kind kind, const char *name, const char *more)
{
    size_t n = strlen(name), m = more != NULL ? strlen(more) : 0;
    struct db_op *op = db_op_new(kind, n + m);
    if (op != NULL)
        db_op_copy(op, 0, DB_VALUE_TEXT, name, n);
    if (op != NULL && more != NULL)
        db_op_copy(op, 2, DB_VALUE_TEXT, more, m);
    return op;
}

struct db_op *db_line_state_op(const char *name, enum db_line_state state, const char *reason)
{
    struct db_op *op = named_op(DB_OP_LINE_STATE, name, reason);
    if (op != NULL)
        db_op_int(op, 1, state);
    return op;
}

struct db_op *db_line_remove_op(const char *name)
{
    return named_op(DB_OP_LINE_REMOVE, name, NULL);
}

const char *db_outbox_line_state(enum db_line_state state)
{
    static const char *const names[] = {"open", "paused", "disabled"};
    return names[state];
}

/* A document that told how the line was tells how it is now. */
static enum db_result tell_again(struct db_write *w, const struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_LINE_TOLD,
                                        "SELECT id FROM line WHERE name = ?1 AND EXISTS"
                                        " (SELECT 1 FROM doc WHERE key = 'hanji/lines/' || ?1)");
    if (s == NULL)
        return db_conn_failed(w->conn);
    db_write_bind(s, 1, op, 0);
    int rc = sqlite3_step(s);
    int64_t id = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return id != 0 ? db_outbox_notice(w, id, false) : db_cause(rc);
}

enum db_result db_line_state(struct db_write *w, struct db_op *op)
{
    const struct db_value *state = &op->values[1], *reason = &op->values[2];
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_LINE_STATE,
        "UPDATE line SET state = ?2, reason = ?3, failing = iif(?2 = 'open', NULL, failing),"
        " wait_until = iif(?2 = 'open', 0, wait_until) WHERE name = ?1");
    if (s == NULL)
        return db_conn_failed(w->conn);
    if (op->values[0].type != DB_VALUE_TEXT || state->type != DB_VALUE_INT || state->i < 0 ||
        state->i > DB_LINE_DISABLED || reason->n > DB_LINE_REASON_MAX)
        return DB_INVALID;
    db_write_bind(s, 1, op, 0);
    sqlite3_bind_text(s, 2, db_outbox_line_state((enum db_line_state)state->i), -1, SQLITE_STATIC);
    if (reason->type == DB_VALUE_TEXT && state->i != DB_LINE_OPEN)
        db_write_bind(s, 3, op, 2);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    if (result == DB_OK && sqlite3_changes(w->conn->db) == 0)
        return DB_NONE;
    return result == DB_OK ? tell_again(w, op) : result;
}

enum db_result db_line_remove(struct db_write *w, struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_LINE_REMOVE,
                                        "DELETE FROM line WHERE name = ?1");
    if (s == NULL)
        return db_conn_failed(w->conn);
    if (op->values[0].type != DB_VALUE_TEXT)
        return DB_INVALID;
    db_write_bind(s, 1, op, 0);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result == DB_OK && sqlite3_changes(w->conn->db) == 0 ? DB_NONE : result;
}

enum db_result db_outbox_hold(struct db_write *w, int64_t line, int64_t wait_until_ms)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_LINE_HOLD,
                                        "UPDATE line SET wait_until = ?2 WHERE id = ?1"
                                        " AND wait_until <> ?2");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, line);
    sqlite3_bind_int64(s, 2, wait_until_ms);
    return db_cause(db_conn_run(s));
}

enum db_result db_outbox_close(struct db_write *w, int64_t line, enum db_line_state state,
                               const char *reason, bool *closed)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_LINE_CLOSE,
                                        "UPDATE line SET state = ?2, reason = ?3 WHERE id = ?1"
                                        " AND state = 'open'");
    *closed = false;
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, line);
    sqlite3_bind_text(s, 2, db_outbox_line_state(state), -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 3, reason, -1, SQLITE_STATIC);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    *closed = result == DB_OK && sqlite3_changes(w->conn->db) == 1;
    return result;
}
