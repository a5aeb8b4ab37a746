#include "db/line.h"

#include <stdlib.h>
#include <string.h>

#include "db/outbox.h"
#include "db/reader_internal.h"

bool db_line_name_ok(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = name[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!plain && (i == 0 || (c != '.' && c != '_' && c != '-')))
            return false;
    }
    return n >= 1 && n <= DB_LINE_NAME_MAX;
}

/* ---- reading ---- */

/* What take_line reads. */
#define LINE_COLUMNS                                                                               \
    "SELECT id, name, url, ca, reason, ord = 'fifo', private, rate, secret, state, version, seq,"  \
    " wait_until, coalesce(due, -1), coalesce(failing, 0), waiting, parked, created, keys FROM line"

static const char *text(sqlite3_stmt *s, int column)
{
    return (const char *)sqlite3_column_text(s, column);
}

static enum db_line_state line_state(const char *name)
{
    if (name != NULL && strcmp(name, "open") == 0)
        return DB_LINE_OPEN;
    return name != NULL && strcmp(name, "disabled") == 0 ? DB_LINE_DISABLED : DB_LINE_PAUSED;
}

/* False when memory is short. */
static bool take_line(sqlite3_stmt *s, struct db_line *line)
{
    line->id = sqlite3_column_int64(s, 0);
    line->name = text(s, 1);
    line->url = text(s, 2);
    line->ca = text(s, 3);
    line->reason = text(s, 4);
    line->fifo = sqlite3_column_int(s, 5) != 0;
    line->private_ = sqlite3_column_int(s, 6) != 0;
    line->rate = sqlite3_column_double(s, 7);
    line->secret = sqlite3_column_blob(s, 8);
    line->secret_bytes = (size_t)sqlite3_column_bytes(s, 8);
    line->state = line_state(text(s, 9));
    line->version = (uint32_t)sqlite3_column_int64(s, 10);
    line->seq = (uint64_t)sqlite3_column_int64(s, 11);
    line->wait_until_ms = sqlite3_column_int64(s, 12);
    line->due_ms = sqlite3_column_int64(s, 13);
    line->failing_s = sqlite3_column_int64(s, 14);
    line->waiting = (uint64_t)sqlite3_column_int64(s, 15);
    line->parked = (uint64_t)sqlite3_column_int64(s, 16);
    line->created = sqlite3_column_int64(s, 17);
    line->keys = (uint32_t)sqlite3_column_int64(s, 18);
    return line->name != NULL && line->url != NULL;
}

enum db_result db_line_find(struct db_reader *r, const char *name, size_t n, struct db_line *line)
{
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_LINE_FIND,
                                        LINE_COLUMNS " WHERE name = ?1");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    sqlite3_bind_text64(s, 1, name, n, SQLITE_TRANSIENT, SQLITE_UTF8);
    int rc = sqlite3_step(s);
    if (rc != SQLITE_ROW) {
        sqlite3_reset(s);
        return rc == SQLITE_DONE ? DB_NONE : db_cause(rc);
    }
    db_reader_lend(r, s);
    return take_line(s, line) ? DB_OK : DB_NO_MEMORY;
}

/* Steps through the lines of s, which is bound. */
static enum db_result each_line(struct db_reader *r, sqlite3_stmt *s,
                                bool (*each)(void *arg, const struct db_line *line), void *arg)
{
    struct db_line line;
    int rc;
    db_reader_lend(r, NULL);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        if (!take_line(s, &line)) {
            rc = SQLITE_NOMEM;
            break;
        }
        if (!each(arg, &line))
            break;
    }
    sqlite3_reset(s);
    return db_cause(rc);
}

enum db_result db_line_list(struct db_reader *r, const char *after, unsigned most,
                            bool (*each)(void *arg, const struct db_line *line), void *arg)
{
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_LINE_LIST,
                                        LINE_COLUMNS " WHERE name > ?1 ORDER BY name LIMIT ?2");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    sqlite3_bind_text(s, 1, after, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 2, most);
    return each_line(r, s, each, arg);
}

enum db_result db_courier_lines(struct db_reader *r, int64_t now_ms, unsigned most,
                                bool (*each)(void *arg, const struct db_line *line), void *arg)
{
    sqlite3_stmt *s = db_conn_statement(
        &r->conn, SLOT_COURIER_LINES,
        LINE_COLUMNS " INDEXED BY line_due WHERE due <= ?1 ORDER BY due LIMIT ?2");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    sqlite3_bind_int64(s, 1, now_ms);
    sqlite3_bind_int64(s, 2, most);
    return each_line(r, s, each, arg);
}

/* False: the row is not what the schema says. */
static bool take_key(sqlite3_stmt *s, struct db_line_key *key)
{
    const struct {
        unsigned char *to;
        int bytes;
    } parts[] = {{key->id, DB_KEY_ID_BYTES}, {key->key, DB_KEY_BYTES},
                 {key->owner, DB_KEY_ID_BYTES}};
    for (int i = 0; i < 3; i++) {
        const void *p = sqlite3_column_blob(s, i);
        if (p == NULL || sqlite3_column_bytes(s, i) != parts[i].bytes)
            return false;
        memcpy(parts[i].to, p, (size_t)parts[i].bytes);
    }
    key->valid_from = sqlite3_column_int64(s, 3);
    key->valid_until = sqlite3_column_int64(s, 4);
    key->horizon_s = sqlite3_column_int64(s, 5);
    return true;
}

/* The keys of a line, on any connection. */
static enum db_result read_keys(struct db_conn *c, int64_t line, struct db_line_key *keys,
                                unsigned *count)
{
    sqlite3_stmt *s = db_conn_statement(c, SLOT_LINE_KEYS,
                                        "SELECT id, key, owner, valid_from, valid_until, horizon"
                                        " FROM line_key WHERE line = ?1"
                                        " ORDER BY valid_from DESC, id");
    int rc = SQLITE_DONE;
    *count = 0;
    if (s == NULL)
        return db_conn_failed(c);
    sqlite3_bind_int64(s, 1, line);
    while (*count < DB_LINE_KEYS_MAX && (rc = sqlite3_step(s)) == SQLITE_ROW)
        *count += take_key(s, &keys[*count]);
    sqlite3_reset(s);
    return db_cause(rc);
}

enum db_result db_line_keys(struct db_reader *r, int64_t line, struct db_line_key *keys,
                            unsigned *count)
{
    return read_keys(&r->conn, line, keys, count);
}

enum db_result db_send_totals(struct db_reader *r, struct db_send_totals *totals)
{
    sqlite3_stmt *s = db_conn_statement(
        &r->conn, SLOT_LINE_TOTALS,
        "SELECT count(*), coalesce(sum(waiting), 0), coalesce(sum(parked), 0),"
        " coalesce(sum(state = 'disabled'), 0), coalesce(min(due), -1) FROM line");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        *totals = (struct db_send_totals){
            .lines = (uint64_t)sqlite3_column_int64(s, 0),
            .waiting = (uint64_t)sqlite3_column_int64(s, 1),
            .parked = (uint64_t)sqlite3_column_int64(s, 2),
            .disabled = (uint64_t)sqlite3_column_int64(s, 3),
            .due_ms = sqlite3_column_int64(s, 4),
        };
    sqlite3_reset(s);
    return db_cause(rc);
}

enum db_result db_courier_due(struct db_reader *r, int64_t *due_ms)
{
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_COURIER_DUE,
                                        "SELECT due FROM line INDEXED BY line_due"
                                        " WHERE due IS NOT NULL ORDER BY due LIMIT 1");
    *due_ms = -1;
    if (s == NULL)
        return db_conn_failed(&r->conn);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        *due_ms = sqlite3_column_int64(s, 0);
    sqlite3_reset(s);
    return db_cause(rc);
}

/* ---- what operations share ---- */

static void take_outbox_line(sqlite3_stmt *s, struct db_outbox_line *line)
{
    *line = (struct db_outbox_line){
        .id = sqlite3_column_int64(s, 0),
        .seq = (uint64_t)sqlite3_column_int64(s, 1),
        .waiting = (uint64_t)sqlite3_column_int64(s, 3),
        .parked = (uint64_t)sqlite3_column_int64(s, 4),
        .version = (uint32_t)sqlite3_column_int64(s, 5),
        .keys = (uint32_t)sqlite3_column_int64(s, 6),
        .fifo = sqlite3_column_int(s, 7) != 0,
        .open = sqlite3_column_int(s, 8) != 0,
        .wait_until_ms = sqlite3_column_int64(s, 9),
        .due_ms = sqlite3_column_int64(s, 10),
    };
    const void *hash = sqlite3_column_blob(s, 2);
    line->has_hash = hash != NULL && sqlite3_column_bytes(s, 2) == DB_MESSAGE_HASH_BYTES;
    if (line->has_hash)
        memcpy(line->hash, hash, DB_MESSAGE_HASH_BYTES);
}

static enum db_result find_line(struct db_conn *c, const char *name, size_t n,
                                struct db_outbox_line *line)
{
    sqlite3_stmt *s = db_conn_statement(
        c, SLOT_OUTBOX_LINE,
        "SELECT id, seq, hash, waiting, parked, version, keys, ord = 'fifo', state = 'open',"
        " wait_until, coalesce(due, -1) FROM line WHERE name = ?1");
    if (s == NULL)
        return db_conn_failed(c);
    sqlite3_bind_text64(s, 1, name, n, SQLITE_STATIC, SQLITE_UTF8);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        take_outbox_line(s, line);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return rc == SQLITE_DONE ? DB_NONE : db_cause(rc);
}

enum db_result db_outbox_find(struct db_write *w, const struct db_op *op, int i,
                              struct db_outbox_line *line)
{
    const struct db_value *name = &op->values[i];
    if (name->type != DB_VALUE_TEXT)
        return DB_INVALID;
    return find_line(w->conn, name->p, name->n, line);
}

void db_outbox_moved(struct db_outbox_change *change, enum db_send_state from,
                     enum db_send_state to)
{
    change->waiting += (to == DB_SEND_WAITING) - (from == DB_SEND_WAITING);
    change->parked += (to == DB_SEND_PARKED || to == DB_SEND_UNOPENABLE) -
                      (from == DB_SEND_PARKED || from == DB_SEND_UNOPENABLE);
}

/* The same as the trigger line_update has. */
#define FIRST(state)                                                                               \
    "coalesce((SELECT p.n FROM outbox AS p INDEXED BY outbox_state WHERE p.line = line.id"         \
    " AND p.state = '" state "' ORDER BY p.n LIMIT 1), o.n + 1)"
#define DUE                                                                                        \
    "CASE WHEN state <> 'open' OR waiting + ?2 = 0 THEN NULL"                                      \
    " WHEN ord = 'any' THEN max(wait_until, (SELECT o.due FROM outbox AS o INDEXED BY outbox_due"  \
    " WHERE o.line = line.id AND o.state = 'waiting' ORDER BY o.due LIMIT 1))"                     \
    " ELSE (SELECT CASE WHEN line.parked + ?3 = 0 OR"                                              \
    " o.n < min(" FIRST("parked") ", " FIRST("unopenable") ")"                                     \
    " THEN max(line.wait_until, o.due) END"                                                        \
    " FROM outbox AS o INDEXED BY outbox_state WHERE o.line = line.id AND o.state = 'waiting'"     \
    " ORDER BY o.n LIMIT 1) END"

enum db_result db_outbox_settle(struct db_write *w, const struct db_outbox_change *change)
{
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_OUTBOX_SETTLE,
        "UPDATE line SET waiting = waiting + ?2, parked = parked + ?3, failing = CASE ?4"
        " WHEN 0 THEN failing WHEN 1 THEN NULL WHEN 2 THEN coalesce(failing, ?5) ELSE ?5 END,"
        " due = " DUE " WHERE id = ?1");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, change->line);
    sqlite3_bind_int(s, 2, change->waiting);
    sqlite3_bind_int(s, 3, change->parked);
    sqlite3_bind_int(s, 4, (int)change->failing);
    sqlite3_bind_int64(s, 5, change->failing_s);
    return db_cause(db_conn_run(s));
}

/* ---- making a message inside a transaction ---- */

static db_send_make_fn *maker;
static void *maker_arg;

void db_send_set_maker(db_send_make_fn *make, void *arg)
{
    maker = make;
    maker_arg = arg;
}

enum db_result db_outbox_draft(struct db_conn *c, struct db_send_draft draft, struct db_op **op,
                               struct db_error *error)
{
    struct db_line_key keys[DB_LINE_KEYS_MAX];
    struct db_send_made made = {.body = NULL};
    struct db_outbox_line line = {0};
    *op = NULL;
    enum db_result result = find_line(c, draft.line, strlen(draft.line), &line);
    if (result == DB_OK)
        result = read_keys(c, line.id, keys, &draft.key_count);
    if (result == DB_OK && maker == NULL)
        result = DB_REFUSED;
    draft.keys = draft.key_count > 0 ? keys : NULL;
    if (result == DB_OK)
        result = maker(maker_arg, &draft, &made, error);
    if (result != DB_OK)
        return result;
    bool sealed = made.body != NULL;
    *op = db_send_op(&(struct db_send){
        .line = draft.line,
        .id = made.id,
        .type = draft.type,
        .body = sealed ? made.body : draft.body,
        .bytes = sealed ? made.bytes : draft.bytes,
        .hash = made.hash,
        .sealed = sealed,
        .version = sealed ? line.version : 0,
        .expires = made.expires,
    });
    free(made.body);
    return *op != NULL ? DB_OK : DB_NO_MEMORY;
}
