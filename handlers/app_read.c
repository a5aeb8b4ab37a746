#include "handlers/app_read.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fcgi/path.h"
#include "handlers/app_steer.h"

enum { LINK_MAX = 16384, PARAMETER_MAX = DB_NAME_MAX + sizeof "_before" };

bool app_read_fault(struct app_reading *x, unsigned line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(x->fault.error.text, sizeof x->fault.error.text, format, args);
    va_end(args);
    x->fault.line = line;
    x->result = DB_REFUSED;
    return false;
}

bool app_read_refuse(struct app_reading *x, const char *format, ...)
{
    struct app_answer *a = x->answer;
    va_list args;
    app_answer_reset(a);
    va_start(args, format);
    vsnprintf(a->message, sizeof a->message, format, args);
    va_end(args);
    a->status = 400;
    a->stopped = true;
    return false;
}

/* ---- steering -------------------------------------------------------------------------------- */

static bool steer_by(struct app_reading *x, const struct db_statement *of, struct db_cursor *row)
{
    x->result = db_cursor_next(row);
    if (x->result == DB_NONE)
        x->result = DB_OK;
    else if (x->result == DB_OK)
        switch (app_steer(x->visit, row, x->answer)) {
        case APP_STEER_OK:
            break;
        case APP_STEER_WRONG:
            return app_read_fault(x, of->line, "%s", x->answer->message);
        case APP_STEER_NO_MEMORY:
            x->result = DB_NO_MEMORY;
        }
    return x->result == DB_OK;
}

/* The first rows of those statements that say something about the answer. */
static bool steer(struct app_reading *x)
{
    const struct db_script *s = x->visit->script;
    for (unsigned i = 0; i < s->count && !x->answer->stopped; i++) {
        const struct db_statement *of = &s->statement[i];
        struct db_cursor *row = NULL;
        if (!of->steers || of->set || !of->returns)
            continue;
        x->result = db_app_open(x->reader, i, &row);
        bool ok = x->result == DB_OK && steer_by(x, of, row);
        db_cursor_close(row);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* The parameter that says where a page begins: after and before, those of a result that is not
 * `rows` with its name in front. */
static void parameter_name(const struct db_statement *of, bool next, char name[PARAMETER_MAX])
{
    size_t n = strcmp(of->name, "rows") == 0 ? 0 : strlen(of->name);
    if (n > 0) {
        memcpy(name, of->name, n);
        name[n++] = '_';
    }
    memcpy(name + n, next ? "after" : "before", next ? sizeof "after" : sizeof "before");
}

/* Takes one of the two. False: it was refused. */
static bool take_place(struct app_reading *x, unsigned statement, bool next, unsigned char *memory,
                       struct db_page_at *at)
{
    const struct app_visit *v = x->visit;
    const struct db_statement *of = &v->script->statement[statement];
    struct buf *text = x->answer->spare;
    char name[PARAMETER_MAX], other[PARAMETER_MAX];
    parameter_name(of, next, name);
    enum query_result found = query_find(v->query, name, text);
    if (found == QUERY_NONE)
        return true;
    if (at->from != DB_PAGE_FIRST) {
        parameter_name(of, !next, other);
        return app_read_refuse(x, "The query parameters %s and %s cannot be given both.", other,
                               name);
    }
    at->from = next ? DB_PAGE_AFTER : DB_PAGE_BEFORE;
    return (found == QUERY_OK && v->cursors != NULL &&
            cursor_read(v->cursors, v->app->name, v->script, of,
                        (struct str){(const char *)text->data, text->len}, memory, at->key)) ||
           app_read_refuse(x, "The query parameter %s is not one that a page of this list gave.",
                           name);
}

bool app_read_page(struct app_reading *x, unsigned statement, struct db_page_read *page)
{
    unsigned char memory[SEAL_BOX_MAX];
    struct db_page_at at = {.from = DB_PAGE_FIRST};
    memset(page, 0, sizeof *page);
    if (x->visit->query.n > 0 && (!take_place(x, statement, true, memory, &at) ||
                                  !take_place(x, statement, false, memory, &at)))
        return false;
    x->result = db_app_page(x->reader, statement, &at, page);
    return x->result == DB_OK;
}

static bool add(struct buf *to, const char *p, size_t n)
{
    return buf_add(to, p, n, LINK_MAX);
}

/* A piece of the query as it came, but for bytes that no URL has. */
static bool add_piece(struct buf *to, const char *p, size_t n)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        bool plain = c > 0x20 && c < 0x7f && strchr("\"<>\\^`{|}#'", c) == NULL;
        char escaped[3] = {'%', digits[c >> 4], digits[c & 15]};
        if (!add(to, plain ? p + i : escaped, plain ? 1 : 3))
            return false;
    }
    return true;
}

/* True when the piece is the parameter of that name, however it is spelled. */
static bool is_named(const char *p, size_t n, const char *name)
{
    char text[3 * PARAMETER_MAX];
    const char *equals = memchr(p, '=', n);
    size_t len = equals != NULL ? (size_t)(equals - p) : n, got;
    return len <= sizeof text && app_fields_unescape((struct str){p, len}, text, &got) &&
           got == strlen(name) && memcmp(text, name, got) == 0;
}

/* The query without the two parameters of this page, each piece with '&' behind it. */
static bool add_query(struct buf *to, struct str query, const struct db_statement *of)
{
    char after[PARAMETER_MAX], before[PARAMETER_MAX];
    parameter_name(of, true, after);
    parameter_name(of, false, before);
    for (size_t at = 0; at < query.n;) {
        const char *p = query.p + at, *amp = memchr(p, '&', query.n - at);
        size_t n = amp != NULL ? (size_t)(amp - p) : query.n - at;
        at += n + 1;
        if (n == 0 || is_named(p, n, after) || is_named(p, n, before))
            continue;
        if (!add_piece(to, p, n) || !add(to, "&", 1))
            return false;
    }
    return true;
}

bool app_read_link(struct app_reading *x, unsigned statement, const struct db_page_read *page,
                   bool next, struct buf *link)
{
    const struct app_visit *v = x->visit;
    const struct db_statement *of = &v->script->statement[statement];
    char name[PARAMETER_MAX], cursor[CURSOR_MAX + 1];
    link->len = 0;
    if (!(next ? page->after : page->before) || page->rows == 0)
        return true;
    if (v->cursors == NULL) {
        x->result = DB_BROKEN;
        return false;
    }
    size_t n = cursor_write(v->cursors, v->app->name, v->script, of,
                            next ? page->last : page->first, cursor);
    if (n == 0)
        return app_read_fault(x, of->line, "the keys of the page are too long for a link");
    parameter_name(of, next, name);
    bool ok = path_encode(link, v->mount) && path_encode(link, v->path) && add(link, "?", 1) &&
              add_query(link, v->query, of) && add(link, name, strlen(name)) &&
              add(link, "=", 1) && add(link, cursor, n);
    if (!ok)
        x->result = DB_NO_MEMORY;
    return ok;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool build(struct app_reading *x)
{
    if (x->visit->script != NULL && !steer(x))
        return false;
    if (x->answer->stopped || x->answer->raw)
        return true;
    switch (x->visit->format) {
    case APP_FORMAT_JSON:
        return app_rows_json(x);
    case APP_FORMAT_HTML:
        return app_page(x);
    case APP_FORMAT_CSV:
    case APP_FORMAT_LINES:
        break;
    }
    return app_rows_lines(x);
}

static enum app_read verdict(struct app_reading *x, bool ok)
{
    if (ok || (x->answer->stopped && x->result == DB_OK))
        return APP_READ_OK;
    if (x->result == DB_TIMEOUT)
        return APP_READ_SLOW;
    return x->too_large ? APP_READ_LARGE : APP_READ_FAILED;
}

enum app_read app_read(struct app_reading *x)
{
    const struct app_visit *v = x->visit;
    const struct db_app_run run = {
        .grant = &v->app->grant,
        .script = v->script,
        .value = v->value,
        .limit_us = x->limit_us,
        .now_s = v->now_s,
    };
    app_answer_reset(x->answer);
    x->result = DB_OK;
    x->too_large = false;
    x->fault.line = 0;
    x->fault.error.text[0] = 0;
    if (v->script == NULL)
        return verdict(x, build(x));
    x->result = db_app_begin(x->reader, &run, &x->fault);
    if (x->result != DB_OK)
        return verdict(x, false);
    bool ok = build(x);
    db_app_end(x->reader);
    return verdict(x, ok);
}
