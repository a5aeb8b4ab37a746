/* Running scripts of apps in a snapshot. */
#include <stdlib.h>
#include <string.h>

#include "db/app_internal.h"
#include "db/burst.h"

enum db_result db_app_failed(struct db_conn *c, struct db_app_fault *fault, unsigned line, int code)
{
    fault->line = line;
    return db_guard_cause(c, code, &fault->error);
}

/* ---- parameters ---- */

static int bind_value(sqlite3_stmt *s, int n, const struct db_value *v)
{
    switch ((enum db_value_type)v->type) {
    case DB_VALUE_TEXT:
        return sqlite3_bind_text64(s, n, v->n > 0 ? v->p : "", v->n, SQLITE_STATIC, SQLITE_UTF8);
    case DB_VALUE_BLOB:
        return v->n > 0 ? sqlite3_bind_blob64(s, n, v->p, v->n, SQLITE_STATIC)
                        : sqlite3_bind_zeroblob(s, n, 0);
    case DB_VALUE_INT:
        return sqlite3_bind_int64(s, n, v->i);
    case DB_VALUE_REAL:
        return sqlite3_bind_double(s, n, v->r);
    case DB_VALUE_FILE:
    case DB_VALUE_NONE:
        break;
    }
    return SQLITE_OK; /* NULL, as it was cleared */
}

int db_app_bind(const struct db_app_values *v, const struct db_statement *of, sqlite3_stmt *s)
{
    int rc = SQLITE_OK;
    for (unsigned i = 0; i < of->parameters && rc == SQLITE_OK; i++) {
        unsigned name = of->parameter[i];
        if (!v->script->name[name].own)
            rc = bind_value(s, (int)i + 1, &v->given[name]);
        else if (v->own[name] != NULL)
            rc = sqlite3_bind_value(s, (int)i + 1, v->own[name]);
    }
    return rc;
}

static bool keep_column(struct db_app_values *v, const char *column, sqlite3_value *value)
{
    for (unsigned i = 0; i < v->script->names; i++) {
        const struct db_script_name *name = &v->script->name[i];
        if (!name->own || strcmp(name->name, column) != 0)
            continue;
        sqlite3_value_free(v->own[i]);
        v->own[i] = sqlite3_value_dup(value);
        if (v->own[i] == NULL)
            return false;
    }
    return true;
}

bool db_app_keep(struct db_app_values *v, const struct db_statement *of, sqlite3_stmt *s)
{
    for (unsigned i = 0; i < of->columns; i++)
        if (!keep_column(v, of->column[i], sqlite3_column_value(s, (int)i)))
            return false;
    return true;
}

void db_app_forget(struct db_app_values *v)
{
    for (unsigned i = 0; v->script != NULL && i < v->script->names; i++)
        sqlite3_value_free(v->own[i]);
    memset(v, 0, sizeof *v);
}

/* ---- reading ---- */

void db_app_reading_free(struct db_app_reading *a)
{
    free(a);
}

unsigned db_app_prepared(const struct db_reader *r)
{
    return db_app_cache_count(r->conn.apps);
}

/* Steps a `-- set` statement once: a SELECT has no effects behind its first row. */
static enum db_result run_set(struct db_reader *r, const struct db_statement *of)
{
    struct db_app_reading *a = r->app;
    int rc;
    sqlite3_stmt *s = db_app_statement(&r->conn, a->run.script, of->slot, of->text, of->bytes, &rc);
    if (s != NULL)
        rc = db_app_bind(&a->values, of, s);
    if (s != NULL && rc == SQLITE_OK)
        rc = sqlite3_step(s);
    if (rc == SQLITE_ROW && !db_app_keep(&a->values, of, s))
        rc = SQLITE_NOMEM;
    enum db_result result = DB_OK;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        result = db_app_failed(&r->conn, a->fault, of->line, rc);
    sqlite3_reset(s);
    return result;
}

enum db_result db_app_begin(struct db_reader *r, const struct db_app_run *run,
                            struct db_app_fault *fault)
{
    *fault = (struct db_app_fault){0};
    db_reader_lend(r, NULL);
    if (r->app == NULL)
        r->app = calloc(1, sizeof *r->app);
    if (r->app == NULL)
        return DB_NO_MEMORY;
    struct db_app_reading *a = r->app;
    enum db_result result = db_guard_enter(&r->conn, run->grant, DB_GUARD_READ,
                                           db_clock_us() + run->limit_us, run->now_s);
    if (result != DB_OK)
        return result;
    a->on = true;
    a->run = *run;
    a->fault = fault;
    a->values.script = run->script;
    a->values.given = run->value;
    for (unsigned i = 0; i < run->script->count && result == DB_OK; i++)
        if (run->script->statement[i].set)
            result = run_set(r, &run->script->statement[i]);
    if (result != DB_OK)
        db_app_end(r);
    return result;
}

void db_app_end(struct db_reader *r)
{
    struct db_app_reading *a = r->app;
    if (a == NULL || !a->on)
        return;
    a->on = false;
    db_app_forget(&a->values);
    db_guard_leave(&r->conn);
}

enum db_result db_app_open(struct db_reader *r, unsigned statement, struct db_cursor **cursor)
{
    struct db_app_reading *a = r->app;
    const struct db_statement *of = &a->run.script->statement[statement];
    int rc;
    *cursor = NULL;
    const char *sql = of->page != NULL ? of->page->text[0].sql : of->text;
    size_t bytes = of->page != NULL ? of->page->text[0].bytes : of->bytes;
    sqlite3_stmt *s = db_app_take(&r->conn, a->run.script, of->slot, sql, bytes, &rc);
    if (s == NULL)
        return db_app_failed(&r->conn, a->fault, of->line, rc);
    rc = db_app_bind(&a->values, of, s);
    if (rc != SQLITE_OK) {
        enum db_result result = db_app_failed(&r->conn, a->fault, of->line, rc);
        db_app_give(&r->conn, a->run.script->id, of->slot, s);
        return result;
    }
    *cursor = db_cursor_of(&r->conn, a, of, s);
    return *cursor != NULL ? DB_OK : DB_NO_MEMORY;
}

bool db_app_value(struct db_reader *r, unsigned name, struct db_cell *cell)
{
    sqlite3_value *v = r->app->values.own[name];
    *cell = (struct db_cell){.type = DB_CELL_NULL};
    if (v == NULL)
        return false;
    switch (sqlite3_value_type(v)) {
    case SQLITE_INTEGER:
        *cell = (struct db_cell){.type = DB_CELL_INT, .i = sqlite3_value_int64(v)};
        break;
    case SQLITE_FLOAT:
        *cell = (struct db_cell){.type = DB_CELL_REAL, .r = sqlite3_value_double(v)};
        break;
    case SQLITE_TEXT:
        *cell = (struct db_cell){.type = DB_CELL_TEXT, .p = sqlite3_value_text(v),
                                 .n = (size_t)sqlite3_value_bytes(v)};
        break;
    case SQLITE_BLOB:
        *cell = (struct db_cell){.type = DB_CELL_BLOB, .p = sqlite3_value_blob(v),
                                 .n = (size_t)sqlite3_value_bytes(v)};
        break;
    default:
        break;
    }
    return true;
}
