/* Inboxes: making and changing them, and what is deleted when it is quiet. The writer's thread. */
#include <string.h>

#include "db/inbox_internal.h"

/* Values of DB_OP_INBOX_SET: name; flags; hidden secret or none; "app/event" or none; keys, one
 * after the other. A key: kind, id, key, root, and two times in 8 bytes, big-endian. */
enum { NAME, FLAGS, SECRET, EVENT, KEYS };
enum { START_ANY = 1, KEEP_SECRET = 2, ONLY_NEW = 4 };
enum { PACKED = 1 + DB_KEY_ID_BYTES + DB_KEY_BYTES + DB_KEY_ID_BYTES + 16 };

static unsigned char *put_time(unsigned char *p, int64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (unsigned char)((uint64_t)v >> (56 - 8 * i));
    return p + 8;
}

static int64_t get_time(const unsigned char *p)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v = v << 8 | p[i];
    return (int64_t)v;
}

static void pack(unsigned char *p, const struct db_inbox_key *k)
{
    *p++ = k->kind == DB_INBOX_TRANSPORT;
    memcpy(p, k->id, sizeof k->id);
    p += sizeof k->id;
    memcpy(p, k->key, sizeof k->key);
    p += sizeof k->key;
    memcpy(p, k->root, sizeof k->root);
    p += sizeof k->root;
    put_time(put_time(p, k->valid_from), k->valid_until);
}

static void unpack(const unsigned char *p, struct db_inbox_key *k)
{
    k->kind = *p++ != 0 ? DB_INBOX_TRANSPORT : DB_INBOX_IDENTITY;
    memcpy(k->id, p, sizeof k->id);
    p += sizeof k->id;
    memcpy(k->key, p, sizeof k->key);
    p += sizeof k->key;
    memcpy(k->root, p, sizeof k->root);
    p += sizeof k->root;
    k->valid_from = get_time(p);
    k->valid_until = get_time(p + 8);
}

struct db_op *db_inbox_set_op(const struct db_inbox_set *set)
{
    unsigned char keys[DB_INBOX_KEYS_MAX * PACKED];
    char event[2 * DB_INBOX_EVENT_MAX + 2];
    size_t name = strlen(set->name), key_bytes = (size_t)set->key_count * PACKED, on = 0;
    if (set->key_count > DB_INBOX_KEYS_MAX)
        return NULL;
    for (unsigned i = 0; i < set->key_count; i++)
        pack(keys + (size_t)i * PACKED, &set->keys[i]);
    if (set->app != NULL && set->event != NULL)
        on = strlen(sqlite3_snprintf(sizeof event, event, "%s/%s", set->app, set->event));
    struct db_op *op = db_op_new(DB_OP_INBOX_SET, name + set->secret_bytes + on + key_bytes);
    if (op == NULL)
        return NULL;
    db_op_copy(op, NAME, DB_VALUE_TEXT, set->name, name);
    db_op_int(op, FLAGS, (set->start_any ? START_ANY : 0) | (set->keep_secret ? KEEP_SECRET : 0) |
                             (set->only_new ? ONLY_NEW : 0));
    if (set->secret != NULL)
        db_op_copy(op, SECRET, DB_VALUE_BLOB, set->secret, set->secret_bytes);
    if (on > 0)
        db_op_copy(op, EVENT, DB_VALUE_TEXT, event, on);
    db_op_copy(op, KEYS, DB_VALUE_BLOB, keys, key_bytes);
    return op;
}

static struct db_op *named_op(enum db_op_kind kind, const char *name)
{
    size_t n = strlen(name);
    struct db_op *op = db_op_new(kind, n);
    if (op != NULL)
        db_op_copy(op, NAME, DB_VALUE_TEXT, name, n);
    return op;
}

struct db_op *db_inbox_state_op(const char *name, bool closed)
{
    struct db_op *op = named_op(DB_OP_INBOX_STATE, name);
    if (op != NULL)
        db_op_int(op, 1, closed);
    return op;
}

struct db_op *db_inbox_remove_op(const char *name)
{
    return named_op(DB_OP_INBOX_REMOVE, name);
}

/* What comes over the control socket may be anything. */
static bool well_formed(const struct db_op *op)
{
    const struct db_value *v = op->values;
    return v[NAME].type == DB_VALUE_TEXT && db_line_name_ok(v[NAME].p, v[NAME].n) &&
           v[FLAGS].type == DB_VALUE_INT &&
           (v[SECRET].type == DB_VALUE_NONE ||
            (v[SECRET].type == DB_VALUE_BLOB && v[SECRET].n <= DB_INBOX_SECRET_MAX)) &&
           (v[EVENT].type == DB_VALUE_NONE ||
            (v[EVENT].type == DB_VALUE_TEXT && memchr(v[EVENT].p, '/', v[EVENT].n) != NULL)) &&
           v[KEYS].type == DB_VALUE_BLOB && v[KEYS].n % PACKED == 0 &&
           v[KEYS].n / PACKED <= DB_INBOX_KEYS_MAX;
}

/* The id of the inbox of that name; DB_NONE. */
static enum db_result find(struct db_write *w, const struct db_op *op, int64_t *id)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_INBOX_ID,
                                        "SELECT id FROM inbox_source"
                                        " WHERE name = ?1 AND name >= '0'");
    if (s == NULL)
        return db_conn_failed(w->conn);
    db_write_bind(s, 1, op, NAME);
    int rc = sqlite3_step(s);
    *id = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_reset(s);
    return rc == SQLITE_DONE ? DB_NONE : db_cause(rc);
}

/* Binds what both statements below have: name, secret, start_any, app, event; and their last. */
static enum db_result run_set(struct db_write *w, sqlite3_stmt *s, const struct db_op *op,
                              int64_t last)
{
    const struct db_value *event = &op->values[EVENT];
    if (s == NULL)
        return db_conn_failed(w->conn);
    db_write_bind(s, 1, op, NAME);
    db_write_bind(s, 2, op, SECRET);
    sqlite3_bind_int(s, 3, (op->values[FLAGS].i & START_ANY) != 0);
    if (event->type == DB_VALUE_TEXT) {
        const char *app = event->p, *slash = memchr(app, '/', event->n);
        size_t n = (size_t)(slash - app);
        sqlite3_bind_text64(s, 4, app, n, SQLITE_STATIC, SQLITE_UTF8);
        sqlite3_bind_text64(s, 5, slash + 1, event->n - n - 1, SQLITE_STATIC, SQLITE_UTF8);
    }
    sqlite3_bind_int64(s, 6, last);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result;
}

static enum db_result set_source(struct db_write *w, struct db_op *op, int64_t *id)
{
    int64_t flags = op->values[FLAGS].i;
    enum db_result result = find(w, op, id);
    if (result == DB_OK && (flags & ONLY_NEW) != 0)
        return DB_EXISTS;
    if (result == DB_OK)
        return run_set(w,
                       db_conn_statement(w->conn, SLOT_INBOX_CHANGE,
                                         "UPDATE inbox_source SET start_any = ?3, app = ?4,"
                                         " event = ?5, secret = iif(?6, secret, ?2)"
                                         " WHERE name = ?1"),
                       op, (flags & KEEP_SECRET) != 0);
    if (result != DB_NONE)
        return result;
    result = run_set(w,
                     db_conn_statement(w->conn, SLOT_INBOX_NEW,
                                       "INSERT INTO inbox_source"
                                       " (name, secret, start_any, app, event, created)"
                                       " VALUES (?1, ?2, ?3, ?4, ?5, ?6)"),
                     op, w->now_s);
    *id = sqlite3_last_insert_rowid(w->conn->db);
    op->created = true;
    return result;
}

/* The root that an identity has here already; DB_NONE: it is not known. */
static enum db_result known_root(struct db_write *w, int64_t source,
                                 const struct db_inbox_key *identity,
                                 unsigned char root[DB_KEY_ID_BYTES])
{
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_INBOX_ROOT,
        "SELECT root FROM inbox_key WHERE source = ?1 AND kind = 'identity' AND id = ?2"
        " UNION ALL SELECT sender FROM inbox_line WHERE source = ?1 AND sender = ?2 LIMIT 1");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, source);
    sqlite3_bind_blob(s, 2, identity->id, DB_KEY_ID_BYTES, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    const void *p = rc == SQLITE_ROW ? sqlite3_column_blob(s, 0) : NULL;
    bool found = p != NULL && sqlite3_column_bytes(s, 0) == DB_KEY_ID_BYTES;
    if (found)
        memcpy(root, p, DB_KEY_ID_BYTES);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return db_cause(rc);
    return found ? DB_OK : DB_NONE;
}

/* Gives the keys of a sender that is known here the root it has. */
static enum db_result keep_roots(struct db_write *w, int64_t source, struct db_inbox_key *keys,
                                 unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        unsigned char given[DB_KEY_ID_BYTES], root[DB_KEY_ID_BYTES] = {0};
        if (keys[i].kind != DB_INBOX_IDENTITY)
            continue;
        enum db_result result = known_root(w, source, &keys[i], root);
        if (result == DB_NONE)
            continue;
        if (result != DB_OK)
            return result;
        memcpy(given, keys[i].root, sizeof given);
        for (unsigned k = 0; k < count; k++)
            if (memcmp(keys[k].root, given, sizeof given) == 0)
                memcpy(keys[k].root, root, sizeof root);
    }
    return DB_OK;
}

static enum db_result add_key(struct db_write *w, int64_t source, const struct db_inbox_key *k)
{
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_INBOX_KEY_NEW,
        "INSERT INTO inbox_key (source, kind, id, key, root, valid_from, valid_until)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, source);
    sqlite3_bind_text(s, 2, k->kind == DB_INBOX_IDENTITY ? "identity" : "transport", -1,
                      SQLITE_STATIC);
    sqlite3_bind_blob(s, 3, k->id, sizeof k->id, SQLITE_STATIC);
    sqlite3_bind_blob(s, 4, k->key, sizeof k->key, SQLITE_STATIC);
    sqlite3_bind_blob(s, 5, k->root, sizeof k->root, SQLITE_STATIC);
    sqlite3_bind_int64(s, 6, k->valid_from);
    sqlite3_bind_int64(s, 7, k->valid_until);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result;
}

static enum db_result remove_keys(struct db_conn *c, int64_t source)
{
    sqlite3_stmt *s = db_conn_statement(c, SLOT_INBOX_KEYS_DELETE,
                                        "DELETE FROM inbox_key WHERE source = ?1");
    if (s == NULL)
        return db_conn_failed(c);
    sqlite3_bind_int64(s, 1, source);
    return db_cause(db_conn_run(s));
}

enum db_result db_inbox_set(struct db_write *w, struct db_op *op)
{
    struct db_inbox_key keys[DB_INBOX_KEYS_MAX];
    int64_t source = 0;
    if (!well_formed(op))
        return DB_INVALID;
    unsigned count = (unsigned)(op->values[KEYS].n / PACKED);
    for (unsigned i = 0; i < count; i++)
        unpack((const unsigned char *)op->values[KEYS].p + (size_t)i * PACKED, &keys[i]);
    enum db_result result = set_source(w, op, &source);
    if (result == DB_OK)
        result = keep_roots(w, source, keys, count);
    if (result == DB_OK)
        result = remove_keys(w->conn, source);
    for (unsigned i = 0; i < count && result == DB_OK; i++)
        result = add_key(w, source, &keys[i]);
    return result;
}

/* Runs a statement about the name (1) and an integer (2). DB_NONE: no row was changed. */
static enum db_result change(struct db_write *w, sqlite3_stmt *s, const struct db_op *op)
{
    if (s == NULL)
        return db_conn_failed(w->conn);
    db_write_bind(s, 1, op, 0);
    if (sqlite3_bind_parameter_count(s) > 1)
        db_write_bind(s, 2, op, 1);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result == DB_OK && sqlite3_changes(w->conn->db) == 0 ? DB_NONE : result;
}

enum db_result db_inbox_state(struct db_write *w, struct db_op *op)
{
    return change(w,
                  db_conn_statement(w->conn, SLOT_INBOX_STATE,
                                    "UPDATE inbox_source SET state = iif(?2, 'closed', 'open')"
                                    " WHERE name = ?1 AND name >= '0'"),
                  op);
}

enum db_result db_inbox_remove(struct db_write *w, struct db_op *op)
{
    return change(w,
                  db_conn_statement(w->conn, SLOT_INBOX_HIDE,
                                    "UPDATE inbox_source SET name = '/' || id, state = 'closed',"
                                    " secret = NULL WHERE name = ?1 AND name >= '0'"),
                  op);
}

/* ---- when it is quiet ------------------------------------------------------------------------ */

enum { REMOVE_ROWS = 512 }; /* with their bodies, in one step */

/* Runs a statement with these two integers; adds the rows that it changed. */
static enum db_result run_two(struct db_conn *c, sqlite3_stmt *s, int64_t a, int64_t b,
                              unsigned *rows)
{
    if (s == NULL)
        return db_conn_failed(c);
    sqlite3_bind_int64(s, 1, a);
    sqlite3_bind_int64(s, 2, b);
    enum db_result result = db_cause(db_conn_run(s));
    *rows += result == DB_OK ? (unsigned)sqlite3_changes(c->db) : 0;
    return result;
}

/* The newest that came counts, not the clock: a clock that is wrong would have ids forgotten. */
static enum db_result forget(struct db_conn *c, unsigned most, unsigned *rows)
{
    return run_two(c,
                   db_conn_statement(c, SLOT_INBOX_FORGET,
                                     "DELETE FROM inbox_seen WHERE (source, id) IN"
                                     " (SELECT source, id FROM inbox_seen WHERE received <"
                                     " (SELECT max(received) FROM inbox_seen) - ?1"
                                     " ORDER BY received LIMIT ?2)"),
                   DB_INBOX_SEEN_DAYS * INT64_C(86400), most, rows);
}

/* The next that was removed; 0: none. */
static enum db_result removed(struct db_conn *c, int64_t *id)
{
    sqlite3_stmt *s = db_conn_statement(c, SLOT_INBOX_REMOVED,
                                        "SELECT id FROM inbox_source WHERE name < '0' LIMIT 1");
    *id = 0;
    if (s == NULL)
        return db_conn_failed(c);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        *id = sqlite3_column_int64(s, 0);
    sqlite3_reset(s);
    return db_cause(rc);
}

/* What an inbox has, in order; each with the rows of a step. The last is the inbox. */
static enum db_result remove_some(struct db_conn *c, int64_t id, unsigned most, unsigned *rows)
{
    static const struct {
        enum db_slot slot;
        bool bodies;
        const char *sql;
    } part[] = {
        {SLOT_INBOX_DELETE_MESSAGES, true,
         "DELETE FROM inbox WHERE n IN (SELECT n FROM inbox WHERE source = ?1 LIMIT ?2)"},
        {SLOT_INBOX_DELETE_SEEN, false,
         "DELETE FROM inbox_seen WHERE source = ?1 AND id IN"
         " (SELECT id FROM inbox_seen WHERE source = ?1 LIMIT ?2)"},
        {SLOT_INBOX_DELETE_AHEAD, false,
         "DELETE FROM inbox_ahead WHERE (line, seq) IN (SELECT a.line, a.seq FROM inbox_line AS l"
         " JOIN inbox_ahead AS a ON a.line = l.id WHERE l.source = ?1 LIMIT ?2)"},
        {SLOT_INBOX_DELETE_LINES, false,
         "DELETE FROM inbox_line WHERE id IN"
         " (SELECT id FROM inbox_line WHERE source = ?1 LIMIT ?2)"},
        {SLOT_INBOX_DELETE, false, "DELETE FROM inbox_source WHERE id = ?1 AND ?2 > 0"},
    };
    enum db_result result = remove_keys(c, id);
    for (size_t i = 0; i < sizeof part / sizeof *part && result == DB_OK; i++) {
        unsigned step = part[i].bodies && most > REMOVE_ROWS ? REMOVE_ROWS : most, done = 0;
        result = run_two(c, db_conn_statement(c, part[i].slot, part[i].sql), id, step, &done);
        *rows += done;
        if (done >= step)
            break;
    }
    return result;
}

enum db_result db_inbox_tidy(struct db_conn *c, unsigned most, bool *more)
{
    int64_t id = 0;
    unsigned forgot = 0, gone = 0;
    enum db_result result = db_cause(db_conn_do(c, SLOT_BEGIN_WRITE, "BEGIN IMMEDIATE"));
    *more = false;
    if (result != DB_OK)
        return result;
    result = forget(c, most, &forgot);
    if (result == DB_OK)
        result = removed(c, &id);
    if (result == DB_OK && id != 0)
        result = remove_some(c, id, most, &gone);
    *more = result == DB_OK && (forgot >= most || id != 0);
    if (result == DB_OK && (forgot > 0 || id != 0))
        result = db_cause(db_conn_do(c, SLOT_COMMIT, "COMMIT"));
    if (!sqlite3_get_autocommit(c->db))
        db_conn_do(c, SLOT_ROLLBACK, "ROLLBACK");
    return sqlite3_get_autocommit(c->db) ? result : DB_BROKEN;
}
