#include "handlers/inbox_app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "db/rows.h"
#include "handlers/app_set.h"
#include "handlers/content.h"
#include "handlers/json_check.h"
#include "handlers/json_read.h"
#include "handlers/problem.h"
#include "seal/keys.h"

enum { LIMIT_US = 50000 };

/* ---- the message ----------------------------------------------------------------------------- */

static bool keep_field(void *arg, const struct app_field *field)
{
    struct app_input *in = arg;
    for (unsigned i = 0; i < in->count; i++)
        if (str_eq(app_input_field(in, i)->name, field->name))
            return false;
    in->count++;
    return buf_add(&in->fields, field, sizeof *field, (APP_FIELDS_MAX + 1) * sizeof *field);
}

enum app_fields_result inbox_app_fields(struct app_input *in, struct str type, struct str body)
{
    struct app_fields_sink sink = {keep_field, in, NULL};
    if (!content_is_json(type) || !json_check_all(body.p, body.n, NULL) ||
        json_kind(json_value(body)) != JSON_OBJECT)
        return APP_FIELDS_OK;
    if (!buf_reserve(&in->text, body.n, body.n))
        return APP_FIELDS_NO_MEMORY;
    return app_fields_json(body, &in->text, &sink);
}

static struct db_value text_value(const void *p, size_t n)
{
    return (struct db_value){.type = DB_VALUE_TEXT, .p = p, .n = n};
}

static struct db_value int_value(int64_t i)
{
    return (struct db_value){.type = DB_VALUE_INT, .i = i};
}

/* What is known of a message, for its script. */
struct facts {
    const struct db_inbox_message *m;
    const char *request_id;
    char sender[SEAL_KEY_ID_HEX + 1];
};

static struct db_value own_value(const struct facts *f, const char *name)
{
    if (strcmp(name, "now") == 0)
        return int_value(time(NULL));
    if (strcmp(name, "request_id") == 0)
        return text_value(f->request_id, strlen(f->request_id));
    if (strcmp(name, "method") == 0)
        return text_value("INBOX", 5);
    return (struct db_value){.type = DB_VALUE_NONE};
}

/* True for what every message has; NULL where it is not in an envelope. */
static bool fact(const struct facts *f, const char *name, struct db_value *v)
{
    const struct db_inbox_message *m = f->m;
    *v = (struct db_value){.type = DB_VALUE_NONE};
    if (strcmp(name, "id") == 0)
        *v = text_value(m->id, m->id_bytes);
    else if (strcmp(name, "type") == 0)
        *v = text_value(m->type, m->type_bytes);
    else if (strcmp(name, "sent") == 0)
        *v = int_value(m->sent);
    else if (strcmp(name, "body") == 0)
        *v = (struct db_value){.type = m->text ? DB_VALUE_TEXT : DB_VALUE_BLOB,
                               .p = m->body != NULL ? m->body : "",
                               .n = m->bytes};
    else if (strcmp(name, "sender") != 0 && strcmp(name, "line") != 0 && strcmp(name, "seq") != 0)
        return false;
    else if (m->sender != NULL)
        *v = name[0] == 'l'   ? text_value(m->line, m->line_bytes)
             : name[2] == 'q' ? int_value((int64_t)m->seq)
                              : text_value(f->sender, SEAL_KEY_ID_HEX);
    return true;
}

static struct db_value member(const struct app_input *in, const char *name)
{
    for (unsigned i = 0; i < in->count; i++) {
        const struct app_field *f = app_input_field(in, i);
        if (!str_eq(f->name, (struct str){name, strlen(name)}))
            continue;
        if (f->kind == APP_FIELD_TEXT)
            return text_value(f->value.p, f->value.n);
        if (f->kind == APP_FIELD_INT)
            return int_value(f->i);
        if (f->kind == APP_FIELD_REAL)
            return (struct db_value){.type = DB_VALUE_REAL, .r = f->r};
        break;
    }
    return (struct db_value){.type = DB_VALUE_NONE};
}

/* ---- the script ------------------------------------------------------------------------------ */

static void fault(struct call *c, unsigned status, const char *detail)
{
    const struct problem_cause cause = {.code = "app", .header = {"Retry-After", "60"}};
    problem_coded(c, status, detail, &cause);
}

struct inbox_app *inbox_app_find(struct call *c, const char *app, const char *event,
                                 const struct app_input *input)
{
    bool broken;
    const struct app *found = app_find(session_of(c), (struct str){app, strlen(app)}, &broken);
    const struct db_script *script = found != NULL ? app_event(found, event) : NULL;
    if (script == NULL) {
        fault(c, 503, "The app that takes the messages of this inbox is not there now.");
        return NULL;
    }
    struct inbox_app *a = malloc(sizeof *a);
    if (a == NULL) {
        problem_result(c, DB_NO_MEMORY, 0);
        return NULL;
    }
    *a = (struct inbox_app){found, script, input};
    app_hold(found);
    return a;
}

void inbox_app_free(struct inbox_app *a)
{
    if (a != NULL)
        app_release(a->app);
    free(a);
}

static void let_go(void *held)
{
    app_release(held);
}

struct db_op *inbox_app_take(const struct db_inbox_message *m, const struct inbox_app *a,
                             const char *request_id)
{
    struct db_value value[DB_SCRIPT_NAMES_MAX];
    struct facts facts = {.m = m, .request_id = request_id};
    union {
        const struct app *app;
        void *held;
    } held = {.app = a != NULL ? a->app : NULL};
    if (a == NULL)
        return db_inbox_take_op(m, NULL, NULL, NULL);
    if (m->sender != NULL)
        seal_key_hex(m->sender, facts.sender);
    for (unsigned i = 0; i < a->script->names; i++) {
        const struct db_script_name *name = &a->script->name[i];
        if (name->name[0] == '_')
            value[i] = own_value(&facts, name->name + 1);
        else if (!fact(&facts, name->name, &value[i]) && name->sigil != '$')
            value[i] = member(a->input, name->name);
    }
    const struct db_app_run run = {
        .grant = &a->app->grant,
        .script = a->script,
        .value = value,
        .limit_us = LIMIT_US,
        .now_s = time(NULL),
    };
    app_hold(a->app);
    return db_inbox_take_op(m, &run, let_go, held.held);
}

/* ---- what it came to ------------------------------------------------------------------------- */

/* What the row says that the cursor is at. False: it has no _status that refuses. */
static bool read_row(const struct db_cursor *row, unsigned *status, char *message)
{
    struct db_cell cell;
    *status = 0;
    message[0] = 0;
    for (unsigned i = 0; i < db_cursor_columns(row); i++) {
        const char *name = db_cursor_column(row, i);
        db_cursor_cell(row, i, &cell);
        if (strcmp(name, "_status") == 0 && cell.type == DB_CELL_INT)
            *status = cell.i >= 400 && cell.i <= 599 ? (unsigned)cell.i : 500;
        if (strcmp(name, "message") == 0 && cell.type == DB_CELL_TEXT)
            snprintf(message, APP_MESSAGE_MAX + 1, "%.*s", (int)cell.n, (const char *)cell.p);
    }
    return *status != 0;
}

void inbox_app_stopped(struct call *c, const struct db_op *script)
{
    const struct db_rows rows = {script->answer, script->answer_bytes};
    struct problem_cause cause = {.code = "rejected"};
    char message[APP_MESSAGE_MAX + 1] = "";
    const char *name;
    unsigned status = 0, statement;
    bool found = false;
    for (unsigned i = 0; !found && db_rows_result(rows, i, &name, &statement); i++) {
        struct db_cursor *cursor = NULL;
        if (db_rows_open(rows, statement, &cursor) != DB_OK)
            break;
        while (!found && db_cursor_next(cursor) == DB_OK)
            found = read_row(cursor, &status, message);
        db_cursor_close(cursor);
    }
    if (!found || status >= 500 || status == 429)
        cause.header = (struct problem_header){"Retry-After", "60"};
    problem_coded(c, found ? status : 500,
                  message[0] != 0 ? message : "The app of this inbox does not take this message.",
                  &cause);
}

void inbox_app_failed(struct call *c, const struct inbox_app *a, const struct db_op *script)
{
    const struct db_app_fault *said = db_app_op_fault(script, &(const char *){NULL});
    if (said->error.text[0] != 0)
        app_news_add(a->app->news, a->script->file, said->line, said->error.text);
    if (script->result == DB_TIMEOUT)
        fault(c, 503, "The app of this inbox took longer than 50 ms; nothing was stored.");
    else
        fault(c, 500, "The app of this inbox has a fault here, and nothing was stored. Its owner "
                      "finds what is wrong in the server's log.");
}
