#include "tests/unit/adb.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

enum { SCRIPTS_MAX = 64, VALUES_MAX = DB_SCRIPT_NAMES_MAX, FILES_MAX = 8 };

struct db_conn adb_conn;
struct db_reader *adb_reader;
struct db_grant adb_grant = {.app = "shop", .read = "", .write = ""};
char adb_faults[4096];

static struct db_script *scripts[SCRIPTS_MAX];
static unsigned script_count;
static struct db_value values[8][VALUES_MAX];
static unsigned values_used;

static void told(void *arg, const char *file, unsigned line, const char *text)
{
    (void)arg;
    size_t n = strlen(adb_faults);
    snprintf(adb_faults + n, sizeof adb_faults - n, "%s:%u: %s\n", file, line, text);
}

struct db_faults adb_tell(void)
{
    adb_faults[0] = 0;
    return (struct db_faults){.tell = told};
}

void adb_open(void)
{
    struct db_error error;
    tdb_init();
    tdb_open(&adb_conn);
    ck_assert_int_eq(db_reader_open(&tdb_config, &adb_reader, &error), DB_OK);
    enum db_result result = adb_schema("001-item.sql",
                                       "CREATE TABLE shop_item (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
                                       " price INTEGER CHECK (price >= 0))", NULL);
    ck_assert_msg(result == DB_OK, "%s", adb_faults);
}

void adb_close(void)
{
    db_reader_close(adb_reader);
    db_conn_close(&adb_conn);
    for (unsigned i = 0; i < script_count; i++)
        db_script_free(scripts[i]);
    script_count = 0;
    tdb_is_sound();
}

static struct db_script *keep(struct db_script *s)
{
    ck_assert_msg(s != NULL && script_count < SCRIPTS_MAX, "%s", adb_faults);
    scripts[script_count++] = s;
    return s;
}

struct db_script *adb_script(enum db_script_kind kind, const char *text)
{
    struct db_faults faults = adb_tell();
    struct db_script *s = keep(db_script_parse(kind, "shop/test.sql", text, strlen(text), &faults));
    ck_assert_int_eq(db_reader_begin(adb_reader), DB_OK);
    bool ok = db_script_check(adb_reader, &adb_grant, s, &faults);
    db_reader_end(adb_reader);
    ck_assert_msg(ok, "%s", adb_faults);
    return s;
}

struct db_app_run adb_run(const struct db_script *s, ...)
{
    struct db_value *value = values[values_used++ % COUNT(values)];
    va_list args;
    memset(value, 0, sizeof values[0]);
    va_start(args, s);
    for (const char *name; (name = va_arg(args, const char *)) != NULL;) {
        const char *text = va_arg(args, const char *);
        bool known = false;
        for (unsigned i = 0; i < s->names; i++)
            if (strcmp(s->name[i].name, name) == 0) {
                value[i] = (struct db_value){.type = DB_VALUE_TEXT, .p = text, .n = strlen(text)};
                known = true;
            }
        ck_assert_msg(known, "no parameter %s", name);
    }
    va_end(args);
    return (struct db_app_run){.grant = &adb_grant, .script = s, .value = value, .limit_us = 50000, .now_s = 1800000000};
}

struct db_op *adb_op(const struct db_app_run *run)
{
    struct db_op *op = db_app_op(run, NULL, NULL);
    ck_assert_ptr_nonnull(op);
    return op;
}

struct db_op *adb_post(const struct db_app_run *run)
{
    struct db_op *op = adb_op(run);
    ck_assert_int_eq(tdb_burst(&adb_conn, op), DB_OK);
    return op;
}

static size_t put_cell(char *out, size_t room, const struct db_cell *cell)
{
    switch ((enum db_cell_type)cell->type) {
    case DB_CELL_INT:
        return (size_t)snprintf(out, room, "%" PRId64, cell->i);
    case DB_CELL_REAL:
        return (size_t)snprintf(out, room, "%.17g", cell->r);
    case DB_CELL_TEXT:
    case DB_CELL_BLOB:
        return (size_t)snprintf(out, room, "%.*s", (int)cell->n, (const char *)cell->p);
    case DB_CELL_NULL:
        break;
    }
    return (size_t)snprintf(out, room, "-");
}

const char *adb_rows(struct db_cursor *c)
{
    static char out[65536];
    size_t n = 0;
    enum db_result result;
    struct db_cell cell;
    out[0] = 0;
    while ((result = db_cursor_next(c)) == DB_OK) {
        n += (size_t)snprintf(out + n, sizeof out - n, "%s", n > 0 ? ";" : "");
        for (unsigned i = 0; i < db_cursor_columns(c); i++) {
            n += (size_t)snprintf(out + n, sizeof out - n, "%s", i > 0 ? "|" : "");
            db_cursor_cell(c, i, &cell);
            n += put_cell(out + n, sizeof out - n, &cell);
        }
    }
    db_cursor_close(c);
    ck_assert_msg(result == DB_NONE, "%s", db_result_text(result));
    return out;
}

const char *adb_answer(const struct db_op *op)
{
    struct db_rows rows = {op->answer, op->answer_bytes};
    struct db_cursor *c;
    const char *name;
    unsigned statement;
    if (!db_rows_result(rows, 0, &name, &statement))
        return "none";
    ck_assert_int_eq(db_rows_open(rows, statement, &c), DB_OK);
    return adb_rows(c);
}

enum db_result adb_schema(const char *name, const char *text, ...)
{
    const struct db_script *files[FILES_MAX];
    unsigned count = 0;
    char path[128];
    const char *file;
    struct db_faults faults = adb_tell();
    va_list args;
    va_start(args, text);
    for (; name != NULL; name = va_arg(args, const char *), text = name != NULL ? va_arg(args, const char *) : NULL) {
        snprintf(path, sizeof path, "shop/schema/%s", name);
        files[count++] = keep(db_script_parse(DB_SCRIPT_SCHEMA, path, text, strlen(text), &faults));
    }
    va_end(args);
    struct db_op *op = db_app_schema_op(&adb_grant, files, count, NULL, NULL);
    ck_assert_ptr_nonnull(op);
    ck_assert_int_eq(tdb_burst(&adb_conn, op), DB_OK);
    const struct db_app_fault *fault = db_app_op_fault(op, &file);
    if (op->result != DB_OK)
        snprintf(adb_faults, sizeof adb_faults, "%s:%u: %s", file != NULL ? file : "", fault->line, fault->error.text);
    enum db_result result = op->result;
    tdb_free(op);
    return result;
}
