/* Rows as JSON, as CSV, and as lines of JSON.
 *
 * JSON has every result that has a name, and a bound of rows: a list that may grow is read in
 * pages. CSV and lines have one result, from its beginning to its end, and no bound but time and
 * the disk: what does not fit memory goes to a file without a name, so that an error in the middle
 * is still an error, not an answer that is cut. */
#include <stdlib.h>
#include <string.h>

#include "fcgi/spool.h"
#include "handlers/app_read.h"
#include "handlers/app_steer.h"

enum {
    SPILL_BYTES = 64 << 10,
    LINKS_MAX = 4096, /* bytes of Link in a head */
};

#define SPILLED_MAX (UINT64_C(1) << 30)

/* What is being written. */
struct writing {
    struct app_reading *x;
    struct app_out out;
    struct app_columns columns;
    uint64_t rows;
};

static bool failed(struct writing *w)
{
    if (!w->out.failed)
        return false;
    w->x->too_large = w->out.too_large;
    if (!w->out.too_large)
        w->x->result = DB_NO_MEMORY;
    return true;
}

/* Makes the names of the columns ready. */
static bool start_rows(struct writing *w, const struct db_cursor *cursor)
{
    w->x->pieces->len = 0;
    w->rows = 0;
    if (app_out_columns(cursor, w->x->pieces, &w->columns))
        return true;
    w->x->result = DB_NO_MEMORY;
    return false;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static bool json_rows(struct writing *w, const struct db_statement *of, struct db_cursor *cursor)
{
    struct app_reading *x = w->x;
    uint64_t most = x->visit->app->rows_max;
    if (!start_rows(w, cursor))
        return false;
    while ((x->result = db_cursor_next(cursor)) == DB_OK) {
        if (w->rows++ == most)
            return app_read_fault(x, of->line, "%s has more than %llu rows: page it", of->name,
                                  (unsigned long long)most);
        if (w->rows > 1)
            app_out_add(&w->out, ",\n", 2);
        app_out_json(&w->out, cursor, &w->columns, x->pieces, false);
        if (failed(w))
            return false;
    }
    if (x->result != DB_NONE)
        return false;
    x->result = DB_OK;
    return true;
}

/* The name of a member that belongs to a page: next, or items_next. */
static void put_name(struct writing *w, const struct db_statement *of, const char *name)
{
    app_out_add(&w->out, ",\"", 2);
    if (strcmp(of->name, "rows") != 0) {
        app_out_add(&w->out, of->name, strlen(of->name));
        app_out_add(&w->out, "_", 1);
    }
    app_out_add(&w->out, name, strlen(name));
    app_out_add(&w->out, "\":", 2);
}

/* The header that says the same (RFC 8288), for the page that is the list, unless the head would
 * become too long: a query that comes back in each link may have thousands of bytes. */
static bool put_link(struct writing *w, const struct buf *link, const char *relation)
{
    struct buf *head = w->x->answer->head;
    if (head->len + link->len > LINKS_MAX)
        return true;
    bool ok = buf_add(head, "Link: <", 7, RESP_HEAD_MAX) &&
              buf_add(head, link->data, link->len, RESP_HEAD_MAX) &&
              buf_add(head, ">; rel=\"", 8, RESP_HEAD_MAX) &&
              buf_add(head, relation, 4, RESP_HEAD_MAX) &&
              buf_add(head, "\"\r\n", 3, RESP_HEAD_MAX);
    if (!ok)
        w->x->result = DB_NO_MEMORY;
    return ok;
}

static bool put_links(struct writing *w, unsigned statement, const struct db_page_read *page)
{
    const struct db_statement *of = &w->x->visit->script->statement[statement];
    bool list = strcmp(of->name, "rows") == 0;
    struct buf *link = w->x->answer->spare;
    for (int next = 1; next >= 0; next--) {
        if (!app_read_link(w->x, statement, page, next != 0, link))
            return false;
        put_name(w, of, next ? "next" : "prev");
        if (link->len == 0)
            app_out_add(&w->out, "null", 4);
        else
            app_out_string(&w->out, (const char *)link->data, link->len);
        if (link->len > 0 && list && !put_link(w, link, next ? "next" : "prev"))
            return false;
    }
    return true;
}

static bool json_page(struct writing *w, unsigned statement)
{
    const struct db_statement *of = &w->x->visit->script->statement[statement];
    struct db_page_read page;
    bool ok = app_read_page(w->x, statement, &page) && json_rows(w, of, page.cursor);
    if (ok) {
        app_out_add(&w->out, "]", 1);
        ok = put_links(w, statement, &page);
    }
    db_page_read_free(&page);
    return ok;
}

static bool json_whole(struct writing *w, unsigned statement)
{
    struct db_cursor *cursor = NULL;
    w->x->result = db_app_open(w->x->reader, statement, &cursor);
    bool ok = w->x->result == DB_OK &&
              json_rows(w, &w->x->visit->script->statement[statement], cursor);
    db_cursor_close(cursor);
    if (ok)
        app_out_add(&w->out, "]", 1);
    return ok;
}

static void json_name(struct app_out *o, const char *name, bool first)
{
    app_out_add(o, first ? "{\"" : ",\n\"", first ? 2 : 3);
    app_out_add(o, name, strlen(name));
    app_out_add(o, "\":[", 3);
}

bool app_rows_json(struct app_reading *x)
{
    const struct db_script *s = x->visit->script;
    struct writing w = {.x = x, .out = {.text = x->answer->text, .max_bytes = x->max_bytes}};
    bool first = true;
    for (unsigned i = 0; s != NULL && i < s->count; i++) {
        if (!app_read_shows(&s->statement[i]))
            continue;
        json_name(&w.out, s->statement[i].name, first);
        first = false;
        if (!(s->statement[i].page != NULL ? json_page(&w, i) : json_whole(&w, i)))
            return false;
    }
    app_out_add(&w.out, first ? "{}\n" : "}\n", first ? 3 : 2);
    x->answer->type = "application/json";
    return !failed(&w);
}

bool app_rows_recorded(struct app_reading *x, struct db_rows rows)
{
    struct writing w = {.x = x, .out = {.text = x->answer->text, .max_bytes = x->max_bytes}};
    const char *name;
    unsigned statement;
    bool first = true, ok = true;
    for (unsigned i = 0; ok && db_rows_result(rows, i, &name, &statement); i++) {
        struct db_cursor *cursor = NULL;
        if (name[0] == 0)
            continue;
        json_name(&w.out, name, first);
        first = false;
        x->result = db_rows_open(rows, statement, &cursor);
        ok = x->result == DB_OK &&
             json_rows(&w, &x->visit->script->statement[statement], cursor);
        db_cursor_close(cursor);
        app_out_add(&w.out, "]", 1);
    }
    app_out_add(&w.out, first ? "{}\n" : "}\n", first ? 3 : 2);
    x->answer->type = "application/json";
    return ok && !failed(&w);
}

/* ---- CSV and lines --------------------------------------------------------------------------- */

/* Moves what is there to the file. */
static bool spill(struct writing *w, size_t at_least)
{
    struct app_reading *x = w->x;
    struct app_answer *a = x->answer;
    if (!x->may_spill || a->text->len < at_least)
        return true;
    if (a->fd < 0)
        a->fd = spool_open(x->visit->spool);
    if (a->fd < 0 || !spool_write(a->fd, a->text->data, a->text->len)) {
        x->result = DB_FULL;
        return false;
    }
    a->bytes += a->text->len;
    a->text->len = 0;
    return a->bytes <= SPILLED_MAX ||
           app_read_fault(x, 0, "the answer is larger than 1 GiB");
}

static bool line_rows(struct writing *w, struct db_cursor *cursor)
{
    struct app_reading *x = w->x;
    bool csv = x->visit->format == APP_FORMAT_CSV;
    while ((x->result = db_cursor_next(cursor)) == DB_OK) {
        if (csv) {
            app_out_csv(&w->out, cursor, &w->columns);
        } else {
            app_out_json(&w->out, cursor, &w->columns, x->pieces, true);
            app_out_add(&w->out, "\n", 1);
        }
        if (failed(w) || !spill(w, SPILL_BYTES))
            return false;
    }
    if (x->result != DB_NONE)
        return false;
    x->result = DB_OK;
    return true;
}

static bool start_lines(struct writing *w, const struct db_cursor *cursor)
{
    if (!start_rows(w, cursor))
        return false;
    if (w->x->visit->format == APP_FORMAT_CSV)
        app_out_csv_head(&w->out, cursor, &w->columns);
    return true;
}

static bool lines_whole(struct writing *w, unsigned statement)
{
    struct db_cursor *cursor = NULL;
    w->x->result = db_app_open(w->x->reader, statement, &cursor);
    bool ok = w->x->result == DB_OK && start_lines(w, cursor) && line_rows(w, cursor);
    db_cursor_close(cursor);
    return ok;
}

/* Keys of the last row, in memory of their own: those of a page die with it. */
static bool keep_keys(struct buf *memory, const struct db_page_read *page, unsigned keys,
                      struct db_page_at *at)
{
    size_t from[DB_PAGE_KEYS_MAX];
    memory->len = 0;
    at->from = DB_PAGE_AFTER;
    for (unsigned i = 0; i < keys; i++) {
        const struct db_cell *cell = &page->last[i];
        struct db_value *v = &at->key[i];
        *v = (struct db_value){.type = DB_VALUE_NONE};
        if (cell->type == DB_CELL_INT)
            *v = (struct db_value){.type = DB_VALUE_INT, .i = cell->i};
        if (cell->type == DB_CELL_REAL)
            *v = (struct db_value){.type = DB_VALUE_REAL, .r = cell->r};
        from[i] = memory->len;
        if (cell->type != DB_CELL_TEXT && cell->type != DB_CELL_BLOB)
            continue;
        v->type = cell->type == DB_CELL_TEXT ? DB_VALUE_TEXT : DB_VALUE_BLOB;
        v->n = cell->n;
        if (!buf_add(memory, cell->p, cell->n, APP_ANSWER_MAX))
            return false;
    }
    for (unsigned i = 0; i < keys; i++)
        if (at->key[i].type == DB_VALUE_TEXT || at->key[i].type == DB_VALUE_BLOB)
            at->key[i].p = memory->data + from[i];
    return true;
}

/* All pages, one after the other: in their order, and in memory that does not grow. */
static bool lines_paged(struct writing *w, unsigned statement)
{
    struct app_reading *x = w->x;
    struct db_page_at at = {.from = DB_PAGE_FIRST};
    struct buf keys = {0};
    bool ok = true, more = true, first = true;
    while (ok && more) {
        struct db_page_read page = {0};
        x->result = db_app_page(x->reader, statement, &at, &page);
        ok = x->result == DB_OK && (!first || start_lines(w, page.cursor)) &&
             line_rows(w, page.cursor);
        more = ok && page.after;
        first = false;
        if (more && !keep_keys(&keys, &page, x->visit->script->statement[statement].page->keys,
                               &at)) {
            x->result = DB_NO_MEMORY;
            ok = false;
        }
        db_page_read_free(&page);
    }
    buf_free(&keys);
    return ok;
}

/* The result that was asked for, or the last. False: there is none, and that was said. */
static bool choose(struct app_reading *x, unsigned *statement)
{
    const struct db_script *s = x->visit->script;
    struct str wanted = x->visit->result;
    bool found = false;
    for (unsigned i = 0; s != NULL && i < s->count; i++) {
        const struct db_statement *of = &s->statement[i];
        if (!app_read_shows(of) ||
            (wanted.p != NULL && !str_eq(wanted, (struct str){of->name, strlen(of->name)})))
            continue;
        *statement = i;
        found = true;
    }
    return found || app_read_refuse(x, "There is no result of that name to give in this format.");
}

/* NAME-route.csv */
static bool put_file_name(struct app_reading *x)
{
    const struct app_visit *v = x->visit;
    char name[80];
    size_t n = 0;
    const char *parts[] = {v->app->name, v->route->pattern[0] != 0 ? "-" : "", v->route->pattern,
                           v->format == APP_FORMAT_CSV ? ".csv" : ".ndjson"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const char *p = parts[i]; *p != 0 && n + 1 < sizeof name; p++)
            if (*p != ':')
                name[n++] = *p == '/' ? '-' : *p;
    if (app_disposition(x->answer->head, (struct str){name, n}))
        return true;
    x->result = DB_NO_MEMORY;
    return false;
}

bool app_rows_lines(struct app_reading *x)
{
    struct writing w = {.x = x, .out = {.text = x->answer->text, .max_bytes = x->max_bytes}};
    unsigned statement = 0;
    if (!choose(x, &statement) || !put_file_name(x))
        return false;
    bool paged = x->visit->script->statement[statement].page != NULL;
    if (!(paged ? lines_paged(&w, statement) : lines_whole(&w, statement)) || failed(&w))
        return false;
    x->answer->type = x->visit->format == APP_FORMAT_CSV
                          ? "text/csv; charset=utf-8; header=present"
                          : "application/x-ndjson";
    return x->answer->fd < 0 || spill(&w, 1);
}
