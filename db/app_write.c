/* Running scripts of apps in a burst (DB_OP_APP).
 *
 * All statements run in order, in the savepoint that db/burst.c holds around them. What functions
 * queued is done behind each statement, by the server and not by the app. The operation belongs to
 * the writer's thread meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "db/app_internal.h"
#include "db/burst.h"

/* What such an operation has: behind it the values, then their bytes. */
struct app_write {
    struct db_app_run run;
    void (*hold)(void *held);
    void *held;
    bool stopped;
    struct db_app_fault fault;
    struct db_value value[];
};

static void drop(void *run)
{
    struct app_write *a = run;
    if (a->hold != NULL)
        a->hold(a->held);
    free(a);
}

static bool has_bytes(const struct db_value *v)
{
    return v->type == DB_VALUE_TEXT || v->type == DB_VALUE_BLOB;
}

/* A copy of the run with its values; NULL: memory is short. *bytes is its size. */
static struct app_write *copy_run(const struct db_app_run *run, size_t *bytes)
{
    unsigned names = run->script->names;
    *bytes = sizeof(struct app_write) + names * sizeof(struct db_value);
    for (unsigned i = 0; i < names; i++)
        *bytes += has_bytes(&run->value[i]) ? run->value[i].n : 0;
    struct app_write *a = calloc(1, *bytes);
    if (a == NULL)
        return NULL;
    unsigned char *at = (unsigned char *)(a->value + names);
    a->run = *run;
    a->run.value = a->value;
    for (unsigned i = 0; i < names; i++) {
        struct db_value *v = &a->value[i];
        *v = run->value[i];
        if (!has_bytes(v))
            continue;
        if (v->n > 0)
            memcpy(at, v->p, v->n);
        v->p = at;
        at += v->n;
    }
    return a;
}

struct db_op *db_app_op(const struct db_app_run *run, void (*hold)(void *held), void *held)
{
    size_t bytes;
    struct db_op *op = db_op_new(DB_OP_APP, 0);
    struct app_write *a = op != NULL ? copy_run(run, &bytes) : NULL;
    if (a == NULL) {
        db_op_free(op);
        if (hold != NULL)
            hold(held);
        return NULL;
    }
    a->hold = hold;
    a->held = held;
    op->run = a;
    op->drop_run = drop;
    op->extra_bytes = bytes;
    return op;
}

bool db_app_op_stopped(const struct db_op *op)
{
    return ((const struct app_write *)op->run)->stopped;
}

const struct db_app_fault *db_app_write_fault(const struct db_op *op)
{
    return &((const struct app_write *)op->run)->fault;
}

/* A script that is being run. */
struct running {
    struct db_write *w;
    struct db_op *op;
    struct app_write *a;
    db_apply_one_fn *do_op;
    struct db_app_values values;
    struct db_recorder recorder;
    struct db_op **part; /* where the next of op's parts goes */
};

static enum db_result failed(struct running *r, const struct db_statement *of, int code)
{
    return db_app_failed(r->w->conn, &r->a->fault, of->line, code);
}

static enum db_result not_recorded(struct running *r, const struct db_statement *of)
{
    r->a->fault.line = of->line;
    db_set_error(&r->a->fault.error, r->recorder.too_large
                                         ? "the rows that are returned have more than 1 MiB"
                                         : "memory is short");
    return r->recorder.too_large ? DB_TOO_LARGE : DB_NO_MEMORY;
}

/* True when the row says that the script is to end and nothing of it is to stay. */
static bool says_stop(const struct db_statement *of, sqlite3_stmt *s)
{
    for (unsigned i = 0; of->steers && i < of->columns; i++)
        if (strcmp(of->column[i], "_status") == 0)
            return sqlite3_column_int64(s, (int)i) >= 400;
    return false;
}

/* Steps a bound statement to its end, or to a row that stops the script. */
static enum db_result step_all(struct running *r, const struct db_statement *of, sqlite3_stmt *s,
                               bool recorded)
{
    bool kept = false;
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        if (recorded && !db_record_row(&r->recorder, s, of->columns))
            return not_recorded(r, of);
        if (of->set && !kept && !db_app_keep(&r->values, of, s))
            return DB_NO_MEMORY;
        kept = true;
        r->a->stopped = says_stop(of, s);
        if (r->a->stopped)
            return DB_OK;
    }
    return rc == SQLITE_DONE ? DB_OK : failed(r, of, rc);
}

static enum db_result run_statement(struct running *r, unsigned index)
{
    const struct db_script *script = r->a->run.script;
    const struct db_statement *of = &script->statement[index];
    bool recorded = of->returns && (of->name != NULL || of->steers);
    int rc;
    sqlite3_stmt *s = db_app_statement(r->w->conn, script, of->slot, of->text, of->bytes, &rc);
    if (s != NULL)
        rc = db_app_bind(&r->values, of, s);
    if (s == NULL || rc != SQLITE_OK)
        return failed(r, of, rc);
    if (recorded && !db_record_begin(&r->recorder, index, of))
        return not_recorded(r, of);
    enum db_result result = step_all(r, of, s, recorded);
    if (recorded)
        db_record_end(&r->recorder);
    rc = sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return result == DB_OK && rc != SQLITE_OK ? failed(r, of, rc) : result;
}

/* Does what the functions of a statement asked for. The first that fails, fails the script. */
static enum db_result do_queued(struct running *r, const struct db_statement *of)
{
    struct db_op *queued = db_guard_take(r->w->conn), *next;
    enum db_result result = DB_OK;
    if (queued == NULL)
        return DB_OK;
    db_guard_pause(r->w->conn);
    for (; queued != NULL; queued = next) {
        next = queued->next;
        queued->next = NULL;
        *r->part = queued;
        r->part = &queued->next;
        r->op->part_count++;
        if (result != DB_OK)
            continue;
        enum db_result ended = r->do_op(r->w, queued);
        result = ended != DB_OK ? ended : queued->result;
        if (queued->kind == DB_OP_DELETE && queued->result == DB_NONE)
            result = ended;
        if (result != DB_OK) {
            r->a->fault.line = of->line;
            db_set_error(&r->a->fault.error, "what a function asked for: %s",
                         db_result_text(result));
        }
    }
    db_guard_resume(r->w->conn);
    return result;
}

static enum db_result run_all(struct running *r)
{
    const struct db_script *script = r->a->run.script;
    enum db_result result = DB_OK;
    for (unsigned i = 0; i < script->count && result == DB_OK && !r->a->stopped; i++) {
        result = run_statement(r, i);
        if (result == DB_OK && !r->a->stopped)
            result = do_queued(r, &script->statement[i]);
    }
    return result;
}

enum db_result db_app_apply(struct db_write *w, struct db_op *op, db_apply_one_fn *do_op)
{
    struct app_write *a = op->run;
    struct running r = {.w = w, .op = op, .a = a, .do_op = do_op, .part = &op->parts};
    while (op->parts != NULL) { /* of an attempt before */
        struct db_op *part = op->parts;
        op->parts = part->next;
        db_op_free(part);
    }
    op->part_count = 0;
    a->stopped = false;
    a->fault = (struct db_app_fault){0};
    r.values.script = a->run.script;
    r.values.given = a->run.value;
    r.recorder.max_bytes = op->once != NULL ? DB_APP_ONCE_ANSWER_MAX : DB_APP_ANSWER_MAX;
    enum db_result result = db_guard_enter(w->conn, a->run.grant, DB_GUARD_WRITE,
                                           db_clock_us() + a->run.limit_us, w->now_s);
    if (result != DB_OK)
        return result;
    result = run_all(&r);
    db_guard_leave(w->conn);
    db_app_forget(&r.values);
    if (result != DB_OK) {
        free(r.recorder.p);
        return result;
    }
    op->answer = r.recorder.p;
    op->answer_bytes = r.recorder.len;
    return DB_OK;
}
