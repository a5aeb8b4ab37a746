/* Storing a message that came, once (DB_OP_INBOX_TAKE). The writer's thread.
 *
 * What came before is known by its id for a while, and for ever by its number on the sender's line:
 * all up to the mark have come, and beyond it those in inbox_ahead. So one row a line is enough as
 * long as none is missing. A number that is not behind the mark, of a line whose order counts, is
 * a gap; one whose bytes are others, or whose predecessor is another, is a conflict: the sender
 * gives numbers a second time, perhaps because it was restored from a backup. Never is a message
 * answered as known that was not. */
#include <stdlib.h>
#include <string.h>

#include "db/inbox_internal.h"

enum { SETTLE_MAX = 4096 }; /* numbers ahead that one message puts behind the mark */

struct take {
    struct db_inbox_message m;
    enum db_inbox_verdict verdict;
    unsigned char bytes[];
};

/* Copies n bytes to *at, and moves it on. NULL stays NULL. */
static const void *copy(unsigned char **at, const void *p, size_t n)
{
    unsigned char *to = *at;
    if (p == NULL)
        return NULL;
    if (n > 0)
        memcpy(to, p, n);
    *at += n;
    return to;
}

static struct take *copy_message(const struct db_inbox_message *m, size_t *bytes)
{
    size_t line = m->line != NULL ? m->line_bytes : 0;
    *bytes = sizeof(struct take) + m->id_bytes + DB_KEY_ID_BYTES + line +
             2 * (size_t)DB_MESSAGE_HASH_BYTES + m->type_bytes + m->bytes;
    struct take *t = calloc(1, *bytes);
    if (t == NULL)
        return NULL;
    unsigned char *at = t->bytes;
    t->m = *m;
    t->m.id = copy(&at, m->id, m->id_bytes);
    t->m.sender = copy(&at, m->sender, DB_KEY_ID_BYTES);
    t->m.line = copy(&at, m->line, line);
    t->m.prev = copy(&at, m->prev, DB_MESSAGE_HASH_BYTES);
    t->m.hash = copy(&at, m->hash, DB_MESSAGE_HASH_BYTES);
    t->m.type = copy(&at, m->type, m->type_bytes);
    t->m.body = copy(&at, m->body, m->bytes);
    return t;
}

struct db_op *db_inbox_take_op(const struct db_inbox_message *m, const struct db_app_run *run,
                               void (*hold)(void *held), void *held)
{
    size_t bytes = 0;
    struct db_op *app = NULL;
    struct db_op *op = db_op_new(DB_OP_INBOX_TAKE, 0);
    if (run != NULL)
        app = db_app_op(run, hold, held); /* calls hold itself when there is none */
    else if (hold != NULL)
        hold(held);
    if (op == NULL || (run != NULL && app == NULL) ||
        (op->run = copy_message(m, &bytes)) == NULL) {
        db_op_free(app);
        db_op_free(op);
        return NULL;
    }
    op->drop_run = free;
    op->extra_bytes = bytes;
    if (app != NULL)
        db_op_add_part(op, app);
    return op;
}

enum db_inbox_verdict db_inbox_taken(const struct db_op *op)
{
    return ((const struct take *)op->run)->verdict;
}

const struct db_op *db_inbox_app_op(const struct db_op *op)
{
    return op->parts;
}

/* A sender's line, as it is known here. */
struct line {
    int64_t id; /* 0: nothing has come */
    uint64_t seq;
    bool has_hash;
    unsigned char hash[DB_MESSAGE_HASH_BYTES];
};

/* Column i of s is the hash of the message. */
static bool same_hash(sqlite3_stmt *s, int i, const struct db_inbox_message *m)
{
    return sqlite3_column_bytes(s, i) == DB_MESSAGE_HASH_BYTES &&
           memcmp(sqlite3_column_blob(s, i), m->hash, DB_MESSAGE_HASH_BYTES) == 0;
}

static enum db_result is_open(struct db_write *w, int64_t source, bool *open, bool *start_any)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_INBOX_OPEN,
                                        "SELECT start_any FROM inbox_source"
                                        " WHERE id = ?1 AND state = 'open'");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, source);
    int rc = sqlite3_step(s);
    *open = rc == SQLITE_ROW;
    *start_any = *open && sqlite3_column_int(s, 0) != 0;
    sqlite3_reset(s);
    return db_cause(rc);
}

/* Ends a look-up of one row that holds the message's hash in column 0. DB_NONE: there is none;
 * else the verdict is set. */
static enum db_result compare(sqlite3_stmt *s, struct take *t)
{
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        t->verdict = same_hash(s, 0, &t->m) ? DB_INBOX_AGAIN : DB_INBOX_CONFLICT;
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return rc == SQLITE_DONE ? DB_NONE : db_cause(rc);
}

static enum db_result seen(struct db_write *w, struct take *t)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_INBOX_SEEN,
                                        "SELECT hash FROM inbox_seen"
                                        " WHERE source = ?1 AND id = ?2");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, t->m.source);
    sqlite3_bind_text64(s, 2, t->m.id, t->m.id_bytes, SQLITE_STATIC, SQLITE_UTF8);
    return compare(s, t);
}

/* The hash of a number beyond the mark of a line. */
static const char ahead[] = "SELECT hash FROM inbox_ahead WHERE line = ?1 AND seq = ?2";

static enum db_result is_ahead(struct db_write *w, struct take *t, int64_t line)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_INBOX_AHEAD, ahead);
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, line);
    sqlite3_bind_int64(s, 2, (int64_t)t->m.seq);
    return compare(s, t);
}

static enum db_result find_line(struct db_write *w, const struct db_inbox_message *m,
                                struct line *line)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_INBOX_LINE,
                                        "SELECT id, seq, hash FROM inbox_line"
                                        " WHERE source = ?1 AND sender = ?2 AND line = ?3");
    *line = (struct line){0};
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, m->source);
    sqlite3_bind_blob(s, 2, m->sender, DB_KEY_ID_BYTES, SQLITE_STATIC);
    sqlite3_bind_text64(s, 3, m->line, m->line_bytes, SQLITE_STATIC, SQLITE_UTF8);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        line->id = sqlite3_column_int64(s, 0);
        line->seq = (uint64_t)sqlite3_column_int64(s, 1);
        line->has_hash = sqlite3_column_bytes(s, 2) == DB_MESSAGE_HASH_BYTES;
        if (line->has_hash)
            memcpy(line->hash, sqlite3_column_blob(s, 2), DB_MESSAGE_HASH_BYTES);
    }
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return db_cause(rc);
}

static enum db_result new_line(struct db_write *w, const struct db_inbox_message *m,
                               struct line *line)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_INBOX_LINE_NEW,
                                        "INSERT INTO inbox_line (source, sender, line, seq)"
                                        " VALUES (?1, ?2, ?3, 0)");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, m->source);
    sqlite3_bind_blob(s, 2, m->sender, DB_KEY_ID_BYTES, SQLITE_STATIC);
    sqlite3_bind_text64(s, 3, m->line, m->line_bytes, SQLITE_STATIC, SQLITE_UTF8);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    line->id = sqlite3_last_insert_rowid(w->conn->db);
    return result;
}

/* Moves the mark of the line to where it is now, and forgets what was ahead and is not any more. */
static enum db_result save_line(struct db_write *w, const struct line *line)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_INBOX_LINE_MOVE,
                                        "UPDATE inbox_line SET seq = ?2, hash = ?3 WHERE id = ?1");
    sqlite3_stmt *passed = db_conn_statement(w->conn, SLOT_INBOX_AHEAD_PASSED,
                                             "DELETE FROM inbox_ahead"
                                             " WHERE line = ?1 AND seq <= ?2");
    if (s == NULL || passed == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, line->id);
    sqlite3_bind_int64(s, 2, (int64_t)line->seq);
    if (line->has_hash)
        sqlite3_bind_blob(s, 3, line->hash, DB_MESSAGE_HASH_BYTES, SQLITE_STATIC);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    if (result != DB_OK)
        return result;
    sqlite3_bind_int64(passed, 1, line->id);
    sqlite3_bind_int64(passed, 2, (int64_t)line->seq);
    return db_cause(db_conn_run(passed));
}

/* Puts those that are ahead without a gap behind the mark. *moved: there were some. */
static enum db_result settle(struct db_write *w, struct line *line, bool *moved)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_INBOX_AHEAD, ahead);
    int rc = SQLITE_ROW;
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, line->id);
    for (int i = 0; i < SETTLE_MAX && rc == SQLITE_ROW; i++) {
        sqlite3_bind_int64(s, 2, (int64_t)line->seq + 1);
        rc = sqlite3_step(s);
        if (rc == SQLITE_ROW) {
            *moved = true;
            line->seq++;
            line->has_hash = sqlite3_column_bytes(s, 0) == DB_MESSAGE_HASH_BYTES;
            if (line->has_hash)
                memcpy(line->hash, sqlite3_column_blob(s, 0), DB_MESSAGE_HASH_BYTES);
        }
        sqlite3_reset(s);
    }
    return db_cause(rc);
}

static enum db_result add_ahead(struct db_write *w, const struct db_inbox_message *m, int64_t line)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_INBOX_AHEAD_NEW,
                                        "INSERT INTO inbox_ahead (line, seq, hash)"
                                        " VALUES (?1, ?2, ?3)");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, line);
    sqlite3_bind_int64(s, 2, (int64_t)m->seq);
    sqlite3_bind_blob(s, 3, m->hash, DB_MESSAGE_HASH_BYTES, SQLITE_STATIC);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result;
}

/* Its id is not known, and its number is behind the mark. When it is so old that its id may have
 * been forgotten, it came before; else it is another message. */
static enum db_inbox_verdict judge_old(const struct db_write *w, const struct db_inbox_message *m,
                                       const struct line *line)
{
    if (m->seq == line->seq && line->has_hash)
        return memcmp(m->hash, line->hash, DB_MESSAGE_HASH_BYTES) == 0 ? DB_INBOX_AGAIN
                                                                       : DB_INBOX_CONFLICT;
    return m->sent < w->now_s - DB_INBOX_SEEN_DAYS * INT64_C(86400) ? DB_INBOX_AGAIN
                                                                    : DB_INBOX_CONFLICT;
}

/* The message before it is the one that has come. */
static bool follows(const struct db_inbox_message *m, const struct line *line)
{
    static const unsigned char zero[DB_MESSAGE_HASH_BYTES];
    if (line->seq > 0 && !line->has_hash)
        return true; /* it began in the middle */
    return memcmp(m->prev, line->seq > 0 ? line->hash : zero, DB_MESSAGE_HASH_BYTES) == 0;
}

/* Finds out whether the message is the one that is wanted of its line; then STORED. */
static enum db_result judge_place(struct db_write *w, struct take *t, bool start_any,
                                  struct line *line)
{
    const struct db_inbox_message *m = &t->m;
    bool moved = false;
    enum db_result result = find_line(w, m, line);
    if (result == DB_OK && line->id != 0)
        result = settle(w, line, &moved);
    if (result == DB_OK && moved)
        result = save_line(w, line);
    if (result != DB_OK)
        return result;
    t->verdict = DB_INBOX_STORED;
    if (line->id == 0 && start_any && m->fifo)
        return DB_OK;
    if (m->seq > INT64_MAX) {
        t->verdict = DB_INBOX_CONFLICT;
    } else if (m->seq <= line->seq) {
        t->verdict = judge_old(w, m, line);
    } else if (m->seq == line->seq + 1) {
        t->verdict = follows(m, line) ? DB_INBOX_STORED : DB_INBOX_CONFLICT;
    } else {
        result = line->id != 0 ? is_ahead(w, t, line->id) : DB_NONE;
        if (result == DB_NONE && m->fifo)
            t->verdict = DB_INBOX_GAP;
        return result == DB_NONE ? DB_OK : result;
    }
    return DB_OK;
}

/* Notes that the message has come, at its place. */
static enum db_result note_place(struct db_write *w, const struct db_inbox_message *m,
                                 struct line *line)
{
    bool first = line->id == 0, moved = false;
    enum db_result result = first ? new_line(w, m, line) : DB_OK;
    if (result != DB_OK)
        return result;
    if (m->seq != line->seq + 1 && !(first && m->fifo))
        return add_ahead(w, m, line->id);
    line->seq = m->seq;
    line->has_hash = true;
    memcpy(line->hash, m->hash, DB_MESSAGE_HASH_BYTES);
    result = settle(w, line, &moved);
    return result == DB_OK ? save_line(w, line) : result;
}

static enum db_result note_id(struct db_write *w, const struct db_inbox_message *m)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_INBOX_NOTE,
                                        "INSERT INTO inbox_seen (source, id, hash, received)"
                                        " VALUES (?1, ?2, ?3, ?4)");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, m->source);
    sqlite3_bind_text64(s, 2, m->id, m->id_bytes, SQLITE_STATIC, SQLITE_UTF8);
    sqlite3_bind_blob(s, 3, m->hash, DB_MESSAGE_HASH_BYTES, SQLITE_STATIC);
    sqlite3_bind_int64(s, 4, w->now_s);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result;
}

static enum db_result store(struct db_write *w, const struct db_inbox_message *m)
{
    const char *body = m->body != NULL ? m->body : "";
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_INBOX_STORE,
        "INSERT INTO inbox (source, id, sender, line, seq, type, sent, received, hash, body)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, m->source);
    sqlite3_bind_text64(s, 2, m->id, m->id_bytes, SQLITE_STATIC, SQLITE_UTF8);
    if (m->sender != NULL) {
        sqlite3_bind_blob(s, 3, m->sender, DB_KEY_ID_BYTES, SQLITE_STATIC);
        sqlite3_bind_text64(s, 4, m->line, m->line_bytes, SQLITE_STATIC, SQLITE_UTF8);
        sqlite3_bind_int64(s, 5, (int64_t)m->seq);
    }
    sqlite3_bind_text64(s, 6, m->type, m->type_bytes, SQLITE_STATIC, SQLITE_UTF8);
    sqlite3_bind_int64(s, 7, m->sent);
    sqlite3_bind_int64(s, 8, w->now_s);
    sqlite3_bind_blob(s, 9, m->hash, DB_MESSAGE_HASH_BYTES, SQLITE_STATIC);
    if (m->text)
        sqlite3_bind_text64(s, 10, body, m->bytes, SQLITE_STATIC, SQLITE_UTF8);
    else
        sqlite3_bind_blob64(s, 10, body, m->bytes, SQLITE_STATIC);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result;
}

/* Runs the app's script. */
static enum db_result hand_over(struct db_write *w, struct take *t, struct db_op *app,
                                db_apply_one_fn *do_op)
{
    enum db_result ended = do_op(w, app);
    if (ended != DB_OK || app->result != DB_OK)
        return ended != DB_OK ? ended : app->result;
    if (db_app_op_stopped(app))
        t->verdict = DB_INBOX_STOPPED;
    return DB_OK;
}

/* The verdict, when nothing is to be stored; STORED when it is. */
static enum db_result judge(struct db_write *w, struct take *t, struct line *line)
{
    bool open = false, start_any = false;
    enum db_result result = is_open(w, t->m.source, &open, &start_any);
    t->verdict = DB_INBOX_CLOSED;
    if (result != DB_OK || !open)
        return result;
    result = seen(w, t);
    if (result != DB_NONE)
        return result;
    t->verdict = DB_INBOX_STORED;
    return t->m.sender != NULL ? judge_place(w, t, start_any, line) : DB_OK;
}

enum db_result db_inbox_take(struct db_write *w, struct db_op *op, db_apply_one_fn *do_op)
{
    struct take *t = op->run;
    struct line line = {0};
    enum db_result result = judge(w, t, &line);
    op->seq = t->verdict == DB_INBOX_GAP ? line.seq + 1 : t->m.sender != NULL ? t->m.seq : 0;
    if (result != DB_OK || t->verdict != DB_INBOX_STORED)
        return result;
    if (t->m.sender != NULL)
        result = note_place(w, &t->m, &line);
    if (result == DB_OK)
        result = note_id(w, &t->m);
    if (result == DB_OK && !t->m.skipped)
        result = store(w, &t->m);
    if (result == DB_OK && !t->m.skipped && op->parts != NULL)
        result = hand_over(w, t, op->parts, do_op);
    return result;
}
