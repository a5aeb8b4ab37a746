#include "db/burst.h"

#include <string.h>
#include <time.h>

#include "db/inbox_internal.h"
#include "db/once.h"
#include "db/write.h"

static db_apply_fn *const apply_table[DB_OP_KINDS] = {
    [DB_OP_PUT] = db_doc_put,
    [DB_OP_DELETE] = db_doc_delete,
    [DB_OP_PATCH] = db_doc_patch,
    [DB_OP_TOKEN_NEW] = db_token_new,
    [DB_OP_TOKEN_REVOKE] = db_token_revoke,
    [DB_OP_USER_NEW] = db_user_new,
    [DB_OP_USER_PASSWORD] = db_user_password,
    [DB_OP_USER_GRANT] = db_user_grant,
    [DB_OP_USER_REMOVE] = db_user_remove,
    [DB_OP_USER_RENEW] = db_user_renew,
    [DB_OP_SESSION_NEW] = db_session_new,
    [DB_OP_SESSION_TOUCH] = db_session_touch,
    [DB_OP_SESSION_END] = db_session_end,
    [DB_OP_SESSION_END_ALL] = db_session_end_all,
    [DB_OP_SESSION_END_USER] = db_session_end_user,
    [DB_OP_SEARCH_ADD] = db_search_add,
    [DB_OP_SEARCH_REMOVE] = db_search_remove,
    [DB_OP_SEARCH_REBUILD] = db_search_rebuild,
    [DB_OP_SEARCH_SYNC] = db_search_sync,
    [DB_OP_SECRET] = db_secret_new,
    [DB_OP_INBOX_SET] = db_inbox_set,
    [DB_OP_INBOX_STATE] = db_inbox_state,
    [DB_OP_INBOX_REMOVE] = db_inbox_remove,
    [DB_OP_LINE_SET] = db_line_set,
    [DB_OP_LINE_STATE] = db_line_state,
    [DB_OP_LINE_REMOVE] = db_line_remove,
    [DB_OP_SEND] = db_send,
    [DB_OP_SEND_RETRY] = db_send_retry,
    [DB_OP_SEND_SKIP] = db_send_skip,
    [DB_OP_SEND_REPLAY] = db_send_replay,
    [DB_OP_COURIER_LEASE] = db_courier_lease,
    [DB_OP_COURIER_MARKS] = db_courier_marks,
    [DB_OP_APP_SCHEMA] = db_app_schema_apply,
};

uint64_t db_clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

int db_write_bind(sqlite3_stmt *s, int n, const struct db_op *op, int i)
{
    const struct db_value *v = &op->values[i];
    switch ((enum db_value_type)v->type) {
    case DB_VALUE_TEXT:
        return sqlite3_bind_text64(s, n, v->p, v->n, SQLITE_STATIC, SQLITE_UTF8);
    case DB_VALUE_BLOB:
        return sqlite3_bind_blob64(s, n, v->p, v->n, SQLITE_STATIC);
    case DB_VALUE_INT:
        return sqlite3_bind_int64(s, n, v->i);
    case DB_VALUE_REAL:
        return sqlite3_bind_double(s, n, v->r);
    case DB_VALUE_FILE:
        return sqlite3_bind_zeroblob64(s, n, v->n);
    case DB_VALUE_NONE:
        break;
    }
    return sqlite3_bind_null(s, n);
}

static bool ends_burst(enum db_result result)
{
    return result == DB_FULL || result == DB_NO_MEMORY || result == DB_BROKEN ||
           result == DB_BUSY;
}

static enum db_result last_seq(struct db_conn *c, uint64_t *seq)
{
    sqlite3_stmt *s = db_conn_statement(c, SLOT_SEQ, "SELECT " DB_LAST_SEQ);
    if (s == NULL)
        return db_conn_failed(c);
    int rc = sqlite3_step(s);
    *seq = rc == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(s, 0) : 0;
    sqlite3_reset(s);
    return db_cause(rc);
}

static enum db_result apply_parts(struct db_write *w, struct db_op *op);
static enum db_result apply_guarded(struct db_write *w, struct db_op *op);

/* It is done in several steps, of which all stay or none. */
static bool wants_savepoint(const struct db_op *op)
{
    return op->kind == DB_OP_APP || op->kind == DB_OP_APP_SCHEMA ||
           op->kind == DB_OP_INBOX_TAKE || op->kind == DB_OP_INBOX_SET ||
           op->kind == DB_OP_LINE_SET || op->kind == DB_OP_SEND_REPLAY ||
           op->kind == DB_OP_COURIER_MARKS;
}

/* Applies an operation, notes its result, and returns what ends the burst (DB_OK: nothing). Never
 * looks for its idempotency key. */
static enum db_result apply_one(struct db_write *w, struct db_op *op)
{
    enum db_result ended;
    if (op->kind == DB_OP_BATCH) {
        ended = apply_parts(w, op);
    } else if (wants_savepoint(op)) {
        ended = apply_guarded(w, op);
    } else {
        db_apply_fn *apply = apply_table[op->kind];
        op->result = apply != NULL ? apply(w, op) : DB_CONFLICT;
        ended = ends_burst(op->result) ? op->result : DB_OK;
    }
    if (ended == DB_OK && sqlite3_get_autocommit(w->conn->db))
        ended = DB_INVALID; /* somebody's trigger ended the transaction, or a script was stopped */
    if (ended == DB_OK && w->careful)
        ended = last_seq(w->conn, &w->seq);
    if (ended == DB_OK && w->careful && op->result == DB_OK && op->run == NULL)
        ended = db_doc_read_seq(w, op);
    return ended;
}

/* Prepares also what will be needed to get out of it again. */
static enum db_result begin_savepoint(struct db_conn *c)
{
    if (db_conn_statement(c, SLOT_UNDO, "ROLLBACK TO batch") == NULL ||
        db_conn_statement(c, SLOT_RELEASE, "RELEASE batch") == NULL)
        return db_conn_failed(c);
    return db_cause(db_conn_do(c, SLOT_SAVEPOINT, "SAVEPOINT batch"));
}

/* Undoes, or keeps, what was done since begin_savepoint. */
static enum db_result end_savepoint(struct db_conn *c, bool undo)
{
    int rc = undo ? db_conn_do(c, SLOT_UNDO, "ROLLBACK TO batch") : SQLITE_DONE;
    if (rc == SQLITE_DONE)
        rc = db_conn_do(c, SLOT_RELEASE, "RELEASE batch");
    enum db_result result = db_cause(rc);
    return result == DB_OK || ends_burst(result) ? result : DB_BROKEN;
}

/* What a savepoint goes back to. */
struct mark {
    uint64_t seq;
    int changes; /* that are still there */
};

static struct mark mark(const struct db_write *w)
{
    return (struct mark){w->seq, sqlite3_total_changes(w->conn->db) - w->undone};
}

/* True when what the operation did is to stay. */
static bool stays(const struct db_op *op)
{
    return op->result == DB_OK && !(op->kind == DB_OP_APP && db_app_op_stopped(op)) &&
           !(op->kind == DB_OP_INBOX_TAKE && db_inbox_taken(op) == DB_INBOX_STOPPED);
}

/* Ends the savepoint that was begun behind the mark; unless the operation went well, all is as it
 * was there. */
static enum db_result end_marked(struct db_write *w, const struct db_op *op, struct mark m)
{
    bool undo = !stays(op);
    if (undo) {
        w->undone = sqlite3_total_changes(w->conn->db) - m.changes;
        w->seq = m.seq;
    }
    return end_savepoint(w->conn, undo);
}

/* All or none: the first part that fails undoes those before it. */
static enum db_result apply_parts(struct db_write *w, struct db_op *op)
{
    struct mark before = mark(w);
    uint32_t index = 0;
    enum db_result ended = begin_savepoint(w->conn);
    op->result = ended;
    for (struct db_op *part = op->parts; part != NULL && op->result == DB_OK; part = part->next) {
        ended = apply_one(w, part);
        op->result = ended != DB_OK && part->result == DB_OK ? ended : part->result;
        op->failed_part = index++;
    }
    if (ended != DB_OK)
        return ended;
    ended = end_marked(w, op, before);
    op->seq = w->seq;
    return ended;
}

static enum db_result apply_steps(struct db_write *w, struct db_op *op)
{
    return op->kind == DB_OP_APP          ? db_app_apply(w, op, apply_one)
           : op->kind == DB_OP_INBOX_TAKE ? db_inbox_take(w, op, apply_one)
                                          : apply_table[op->kind](w, op);
}

/* All of it or nothing, whatever the statements of an app do. */
static enum db_result apply_guarded(struct db_write *w, struct db_op *op)
{
    struct mark before = mark(w);
    enum db_result ended = begin_savepoint(w->conn);
    op->result = ended;
    if (ended != DB_OK)
        return ended;
    op->result = apply_steps(w, op);
    if (ends_burst(op->result))
        return op->result;
    if (sqlite3_get_autocommit(w->conn->db))
        return DB_OK; /* there is no savepoint any more: apply_one sees it */
    ended = end_marked(w, op, before);
    if (op->kind == DB_OP_APP || op->kind == DB_OP_APP_SCHEMA) /* others have their own, or none */
        op->seq = w->seq;
    return ended;
}

/* With an idempotency key: not a second time; and its record stands when its effect does. */
static enum db_result apply_once(struct db_write *w, struct db_op *op)
{
    struct mark before = mark(w);
    if (w->now.wall_s == 0)
        w->now = db_clock_now();
    op->result = db_once_find(w, op);
    if (op->result != DB_NONE)
        return ends_burst(op->result) ? op->result : DB_OK;
    enum db_result ended = begin_savepoint(w->conn);
    if (ended == DB_OK)
        ended = apply_one(w, op);
    if (ended != DB_OK)
        return ended;
    if (stays(op))
        op->result = db_once_note(w, op);
    return ends_burst(op->result) ? op->result : end_marked(w, op, before);
}

/* The operation ended the transaction: the others are applied again, without it. */
static void refuse(struct db_op *op)
{
    op->refused = true;
    if (op->result == DB_OK)
        op->result = DB_INVALID;
}

/* Operations foresee the sequence number that the triggers will give. A trigger that somebody added
 * may change further documents; then each number is read back (careful). */
static enum db_result apply_all(struct db_conn *c, struct db_op *list, bool careful, bool *wrote)
{
    struct db_write w = {.conn = c, .now_s = time(NULL), .careful = careful};
    int before = sqlite3_total_changes(c->db);
    enum db_result result = last_seq(c, &w.seq);
    for (struct db_op *op = list; op != NULL && result == DB_OK; op = op->next) {
        if (op->refused)
            continue;
        db_op_forget(op);
        w.shared_body = 0;
        result = op->once != NULL ? apply_once(&w, op) : apply_one(&w, op);
        if (result == DB_INVALID)
            refuse(op);
    }
    *wrote = sqlite3_total_changes(c->db) - before != w.undone;
    if (result != DB_OK || !*wrote || careful)
        return result;
    uint64_t given = 0;
    result = last_seq(c, &given);
    return result == DB_OK && given != w.seq ? DB_PRECONDITION : result;
}

static enum db_result transaction(struct db_conn *c, struct db_op *list, bool careful, bool *wrote)
{
    enum db_result result = db_cause(db_conn_do(c, SLOT_BEGIN_WRITE, "BEGIN IMMEDIATE"));
    return result == DB_OK ? apply_all(c, list, careful, wrote) : result;
}

/* Ends what is open, also when memory is too short to prepare the statement for it. False: it is
 * still open, so nothing more may be written through this connection. */
static bool roll_back(struct db_conn *c)
{
    if (!sqlite3_get_autocommit(c->db))
        db_conn_do(c, SLOT_ROLLBACK, "ROLLBACK");
    if (!sqlite3_get_autocommit(c->db))
        sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL);
    return sqlite3_get_autocommit(c->db) != 0;
}

/* All fail for the same reason, but for those that were refused for their own. */
static void fail_all(struct db_op *list, enum db_result result)
{
    for (struct db_op *op = list; op != NULL; op = op->next)
        if (!op->refused)
            op->result = result;
}

/* One attempt after the other, until none ends the transaction. Each leaves out one more. */
static enum db_result apply_list(struct db_conn *c, struct db_op *list, bool *wrote)
{
    bool careful = false;
    for (;;) {
        enum db_result result = transaction(c, list, careful, wrote);
        if (result != DB_PRECONDITION && result != DB_INVALID)
            return result;
        careful |= result == DB_PRECONDITION;
        if (!roll_back(c))
            return DB_BROKEN;
    }
}

enum db_result db_burst_run(struct db_conn *c, struct db_op *list, uint64_t *commit_us)
{
    bool wrote = false;
    *commit_us = 0;
    enum db_result result = apply_list(c, list, &wrote);
    if (result == DB_OK && wrote) {
        uint64_t start = db_clock_us();
        result = db_cause(db_conn_do(c, SLOT_COMMIT, "COMMIT"));
        *commit_us = db_clock_us() - start;
    }
    if (!roll_back(c))
        result = DB_BROKEN;
    if (result != DB_OK)
        fail_all(list, result);
    return result;
}

static enum db_result prune(struct db_conn *c, int64_t from, int64_t until)
{
    sqlite3_stmt *s = db_conn_statement(
        c, SLOT_PRUNE,
        "DELETE FROM change WHERE seq IN"
        " (SELECT prev FROM change WHERE seq > ?1 AND seq <= ?2 AND prev IS NOT NULL)");
    sqlite3_stmt *note = db_conn_statement(c, SLOT_PRUNE_NOTE,
                                           "UPDATE meta SET value = ?1 WHERE name = 'pruned'");
    if (s == NULL || note == NULL)
        return db_conn_failed(c);
    sqlite3_bind_int64(s, 1, from);
    sqlite3_bind_int64(s, 2, until);
    enum db_result result = db_cause(db_conn_run(s));
    if (result != DB_OK)
        return result;
    sqlite3_bind_int64(note, 1, until);
    return db_cause(db_conn_run(note));
}

static enum db_result pruned_until(struct db_conn *c, int64_t *seq)
{
    sqlite3_stmt *s = db_conn_statement(c, SLOT_PRUNED,
                                        "SELECT value FROM meta WHERE name = 'pruned'");
    if (s == NULL)
        return db_conn_failed(c);
    int rc = sqlite3_step(s);
    *seq = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_reset(s);
    return db_cause(rc);
}

enum db_result db_burst_prune(struct db_conn *c, unsigned look, uint64_t *left)
{
    uint64_t newest = 0;
    int64_t from = 0;
    *left = 0;
    enum db_result result = db_cause(db_conn_do(c, SLOT_BEGIN_WRITE, "BEGIN IMMEDIATE"));
    if (result != DB_OK)
        return result;
    result = last_seq(c, &newest);
    if (result == DB_OK)
        result = pruned_until(c, &from);
    if (result == DB_OK && (uint64_t)from < newest) {
        uint64_t until = newest - (uint64_t)from > look ? (uint64_t)from + look : newest;
        *left = newest - until;
        result = prune(c, from, (int64_t)until);
    }
    if (result == DB_OK)
        result = db_cause(db_conn_do(c, SLOT_COMMIT, "COMMIT"));
    return roll_back(c) ? result : DB_BROKEN;
}
