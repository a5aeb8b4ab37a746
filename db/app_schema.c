/* The tables of apps, and secrets.
 *
 * Files of schema/ are run once, in the order of their numbers, all that are due or none. Their
 * text is kept: a file that reads differently later is told, not run again. */
#include <stdlib.h>
#include <string.h>

#include "db/app_internal.h"
#include "db/burst.h"

enum { SCHEMA_LIMIT_US = 60 * 1000000 }; /* an index over many rows takes its time */

/* A file, as text. */
struct file {
    const char *name;
    int64_t number;
    const struct db_script *script; /* whose statements point into the app's memory */
};

struct app_schema {
    const struct db_grant *grant;
    struct db_app_fault fault;
    char fault_file[96];
    void (*hold)(void *held);
    void *held;
    unsigned count;
    struct file file[];
};

static enum db_result refuse(struct app_schema *a, const struct file *f, enum db_result why,
                             const char *text)
{
    sqlite3_snprintf(sizeof a->fault_file, a->fault_file, "%s", f->script->file);
    a->fault.line = 1;
    db_set_error(&a->fault.error, "%s", text);
    return why;
}

/* Behind the last '/'. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static int64_t number_of(const char *name)
{
    int64_t n = 0;
    for (; *name >= '0' && *name <= '9' && n < 1000000000; name++)
        n = n * 10 + (*name - '0');
    return n;
}

static struct app_schema *collect(const struct db_grant *grant,
                                  const struct db_script *const *files, unsigned count)
{
    struct app_schema *a = calloc(1, sizeof *a + count * sizeof a->file[0]);
    if (a == NULL)
        return NULL;
    a->grant = grant;
    a->count = count;
    for (unsigned i = 0; i < count; i++) {
        a->file[i].script = files[i];
        a->file[i].name = base_name(files[i]->file);
        a->file[i].number = number_of(a->file[i].name);
    }
    return a;
}

/* The whole text that a script was made of: its statements, each with the notes before it. */
static char *whole_text(const struct db_script *s)
{
    size_t n = 1;
    for (unsigned i = 0; i < s->count; i++)
        n += s->statement[i].bytes + 2;
    char *text = malloc(n), *p = text;
    for (unsigned i = 0; text != NULL && i < s->count; i++) {
        memcpy(p, s->statement[i].text, s->statement[i].bytes);
        p += s->statement[i].bytes;
        memcpy(p, ";\n", 2);
        p += 2;
    }
    if (text != NULL)
        *p = 0;
    return text;
}

/* DB_OK: it was run, as it is. DB_NONE: it was not. DB_CONFLICT: it was another text then. */
static enum db_result was_run(struct db_conn *c, const char *app, const struct file *f)
{
    sqlite3_stmt *s = db_conn_statement(
        c, SLOT_APP_SCHEMA, "SELECT sql FROM app_schema WHERE app = ?1 AND number = ?2");
    char *text = whole_text(f->script);
    enum db_result result = DB_NONE;
    if (s == NULL || text == NULL) {
        free(text);
        return s == NULL ? db_conn_failed(c) : DB_NO_MEMORY;
    }
    sqlite3_bind_text(s, 1, app, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, f->number);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        const char *then = (const char *)sqlite3_column_text(s, 0);
        result = then != NULL && strcmp(then, text) == 0 ? DB_OK : DB_CONFLICT;
    }
    sqlite3_reset(s);
    free(text);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? result : db_cause(rc);
}

/* The largest number that was run, 0 for none. */
static enum db_result newest(struct db_conn *c, const char *app, int64_t *number)
{
    sqlite3_stmt *s = db_conn_statement(
        c, SLOT_APP_NEWEST, "SELECT coalesce(max(number), 0) FROM app_schema WHERE app = ?1");
    if (s == NULL)
        return db_conn_failed(c);
    sqlite3_bind_text(s, 1, app, -1, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    *number = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_reset(s);
    return db_cause(rc);
}

/* True when the file has tables and more that begin with the app's name, of somebody else. */
static enum db_result foreign(struct db_conn *c, const char *app, bool *is)
{
    sqlite3_stmt *s = db_conn_statement(
        c, SLOT_APP_FOREIGN,
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema"
        " WHERE lower(substr(name, 1, length(?1) + 1)) = ?1 || '_')");
    if (s == NULL)
        return db_conn_failed(c);
    sqlite3_bind_text(s, 1, app, -1, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    *is = rc == SQLITE_ROW && sqlite3_column_int(s, 0) != 0;
    sqlite3_reset(s);
    return db_cause(rc);
}

/* Which files come: those from *first on. Says no to what must not be. */
static enum db_result look(struct db_conn *c, struct app_schema *a, unsigned *first)
{
    int64_t last = 0;
    bool is_foreign = false;
    *first = 0;
    enum db_result result = newest(c, a->grant->app, &last);
    for (unsigned i = 0; i < a->count && result == DB_OK; i++) {
        const struct file *f = &a->file[i];
        if (f->number == 0 || (i > 0 && f->number <= a->file[i - 1].number))
            return refuse(a, f, DB_REFUSED, "its number is not above that of the file before");
        enum db_result ran = was_run(c, a->grant->app, f);
        if (ran == DB_CONFLICT)
            return refuse(a, f, DB_CONFLICT,
                          "it was changed after it was run: put it back, and what is new into a "
                          "file with the next number");
        if (ran == DB_NONE && f->number < last)
            return refuse(a, f, DB_CONFLICT,
                          "files with higher numbers were run before: give it the next number");
        if (ran == DB_OK)
            *first = i + 1;
        else if (ran != DB_NONE)
            result = ran;
    }
    if (result == DB_OK && last == 0 && a->count > 0)
        result = foreign(c, a->grant->app, &is_foreign);
    if (is_foreign)
        return refuse(a, &a->file[0], DB_REFUSED,
                      "the database has tables of that name already that this app did not make");
    return result;
}

enum db_result db_app_schema_due(struct db_reader *r, const struct db_grant *grant,
                                 const struct db_script *const *files, unsigned count,
                                 unsigned *due, struct db_app_fault *fault)
{
    unsigned first;
    struct app_schema *a = collect(grant, files, count);
    *fault = (struct db_app_fault){0};
    *due = 0;
    if (a == NULL)
        return DB_NO_MEMORY;
    db_reader_lend(r, NULL);
    enum db_result result = look(&r->conn, a, &first);
    if (result == DB_OK)
        *due = count - first;
    *fault = a->fault;
    if (a->fault_file[0] != 0)
        db_set_error(&fault->error, "%s: %s", a->fault_file, a->fault.error.text);
    free(a);
    return result;
}

/* ---- running them ---- */

static void drop(void *run)
{
    struct app_schema *a = run;
    if (a->hold != NULL)
        a->hold(a->held);
    free(a);
}

struct db_op *db_app_schema_op(const struct db_grant *grant, const struct db_script *const *files,
                               unsigned count, void (*hold)(void *held), void *held)
{
    struct db_op *op = db_op_new(DB_OP_APP_SCHEMA, 0);
    struct app_schema *a = op != NULL ? collect(grant, files, count) : NULL;
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
    return op;
}

/* A statement that has to be run to its end; what it returns is nobody's. */
static enum db_result run_one(struct db_conn *c, struct app_schema *a, const struct file *f,
                              const struct db_statement *of)
{
    sqlite3_stmt *s = NULL;
    if (!db_guard_text(c, of->text, of->bytes, &a->fault.error)) {
        sqlite3_snprintf(sizeof a->fault_file, a->fault_file, "%s", f->script->file);
        a->fault.line = of->line;
        return DB_REFUSED;
    }
    int rc = sqlite3_prepare_v2(c->db, of->text, (int)of->bytes, &s, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW)
        rc = s != NULL ? sqlite3_step(s) : SQLITE_DONE;
    enum db_result result = DB_OK;
    if (rc != SQLITE_DONE) {
        sqlite3_snprintf(sizeof a->fault_file, a->fault_file, "%s", f->script->file);
        result = db_app_failed(c, &a->fault, of->line, rc);
    }
    sqlite3_finalize(s);
    return result;
}

static enum db_result note(struct db_write *w, const char *app, const struct file *f)
{
    sqlite3_stmt *s = db_conn_statement(
        w->conn, SLOT_APP_NOTE,
        "INSERT INTO app_schema (app, number, file, sql, applied) VALUES (?1, ?2, ?3, ?4, ?5)");
    char *text = whole_text(f->script);
    if (s == NULL || text == NULL) {
        free(text);
        return s == NULL ? db_conn_failed(w->conn) : DB_NO_MEMORY;
    }
    sqlite3_bind_text(s, 1, app, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, f->number);
    sqlite3_bind_text(s, 3, f->name, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 4, text, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 5, w->now_s);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    free(text);
    return result;
}

static enum db_result run_file(struct db_write *w, struct app_schema *a, const struct file *f)
{
    enum db_result result = db_guard_enter(w->conn, a->grant, DB_GUARD_SCHEMA,
                                           db_clock_us() + SCHEMA_LIMIT_US, w->now_s);
    if (result != DB_OK)
        return result;
    for (unsigned i = 0; i < f->script->count && result == DB_OK; i++)
        result = run_one(w->conn, a, f, &f->script->statement[i]);
    db_guard_leave(w->conn);
    struct db_error error;
    if (result == DB_OK && !db_guard_schema_ok(w->conn, a->grant, &error))
        result = refuse(a, f, DB_REFUSED, error.text);
    return result == DB_OK ? note(w, a->grant->app, f) : result;
}

enum db_result db_app_schema_apply(struct db_write *w, struct db_op *op)
{
    struct app_schema *a = op->run;
    unsigned first;
    a->fault = (struct db_app_fault){0};
    a->fault_file[0] = 0;
    enum db_result result = look(w->conn, a, &first);
    for (unsigned i = first; i < a->count && result == DB_OK; i++)
        result = run_file(w, a, &a->file[i]);
    return result;
}

const struct db_app_fault *db_app_op_fault(const struct db_op *op, const char **file)
{
    const struct app_schema *a = op->run;
    *file = NULL;
    if (op->kind == DB_OP_APP)
        return db_app_write_fault(op);
    if (a->fault_file[0] != 0)
        *file = a->fault_file;
    return &a->fault;
}

/* ---- secrets ---- */

enum db_result db_secret_get(struct db_reader *r, const char *name,
                             unsigned char secret[DB_SECRET_BYTES])
{
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_SECRET,
                                        "SELECT value FROM secret WHERE name = ?1");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    const void *value = rc == SQLITE_ROW ? sqlite3_column_blob(s, 0) : NULL;
    bool ok = value != NULL && sqlite3_column_bytes(s, 0) == DB_SECRET_BYTES;
    if (ok)
        memcpy(secret, value, DB_SECRET_BYTES);
    sqlite3_reset(s);
    return ok ? DB_OK : rc == SQLITE_DONE ? DB_NONE : rc == SQLITE_ROW ? DB_BROKEN : db_cause(rc);
}

enum db_result db_secret_new(struct db_write *w, struct db_op *op)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_SECRET_NEW,
                                        "INSERT INTO secret (name, value) VALUES (?1, ?2)"
                                        " ON CONFLICT (name) DO NOTHING");
    if (s == NULL)
        return db_conn_failed(w->conn);
    db_write_bind(s, 1, op, 0);
    db_write_bind(s, 2, op, 1);
    enum db_result result = db_cause(db_conn_run(s));
    sqlite3_clear_bindings(s);
    return result;
}
