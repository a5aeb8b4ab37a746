/* Pages: a route's template over the results of its SQL.
 *
 * Nothing is built: the template asks for a name, and a result is opened when it is first asked
 * for; a section over it steps the statement while its rows are written. Outermost names are the
 * results, what `-- set` gave, next and prev of pages, and those that begin with '_'. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fcgi/path.h"
#include "handlers/app_param.h"
#include "handlers/app_read.h"
#include "handlers/mustache.h"

enum { WALKS_MAX = 16, NUMBER_MAX = 40 };

/* The rows of a result, once through. */
struct rows {
    bool paged, at_row;
    bool lent; /* to a walk, or by those that are kept: they close it */
    struct db_cursor *cursor;
    struct db_page_read page; /* owns the cursor where paged */
};

/* A section that walks over a result. */
struct walk {
    bool used;
    unsigned statement;
    uint64_t count;
    struct rows rows;
};

struct result {
    enum { ANY_UNKNOWN, ANY_NONE, ANY_SOME } any;
    struct rows *first; /* stands on the first row; NULL: not wanted so far */
    struct rows *page;  /* of a result that has pages: read once, for its rows and its links */
};

struct page {
    struct app_reading *x;
    struct result result[DB_SCRIPT_STATEMENTS_MAX];
    struct walk walk[WALKS_MAX];
    char number[NUMBER_MAX];
};

static const struct db_script *script_of(const struct page *p)
{
    return p->x->visit->script;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool open_rows(struct page *p, unsigned statement, struct rows *rows)
{
    struct app_reading *x = p->x;
    *rows = (struct rows){.paged = script_of(p)->statement[statement].page != NULL};
    if (rows->paged) {
        bool ok = app_read_page(x, statement, &rows->page);
        rows->cursor = rows->page.cursor;
        return ok;
    }
    x->result = db_app_open(x->reader, statement, &rows->cursor);
    return x->result == DB_OK;
}

static void close_rows(struct rows *rows)
{
    if (rows->paged)
        db_page_read_free(&rows->page);
    else if (!rows->lent)
        db_cursor_close(rows->cursor);
    rows->cursor = NULL;
}

/* Goes on to the next row; rows->at_row says whether there is one. */
static bool step(struct page *p, struct rows *rows)
{
    struct app_reading *x = p->x;
    x->result = db_cursor_next(rows->cursor);
    rows->at_row = x->result == DB_OK;
    if (x->result == DB_NONE)
        x->result = DB_OK;
    return x->result == DB_OK;
}

/* Rows that are kept until the page is written. NULL: failed. */
static struct rows *keep_rows(struct page *p, unsigned statement)
{
    struct rows *rows = malloc(sizeof *rows);
    if (rows == NULL) {
        p->x->result = DB_NO_MEMORY;
        return NULL;
    }
    if (open_rows(p, statement, rows))
        return rows;
    close_rows(rows);
    free(rows);
    return NULL;
}

static void free_rows(struct rows *rows)
{
    if (rows != NULL)
        close_rows(rows);
    free(rows);
}

static bool want_page(struct page *p, unsigned statement)
{
    struct result *r = &p->result[statement];
    if (r->page == NULL)
        r->page = keep_rows(p, statement);
    return r->page != NULL;
}

static bool want_first(struct page *p, unsigned statement)
{
    struct result *r = &p->result[statement];
    if (r->first != NULL)
        return true;
    r->first = keep_rows(p, statement);
    if (r->first == NULL || !step(p, r->first))
        return false;
    r->any = r->first->at_row ? ANY_SOME : ANY_NONE;
    return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void set_text(struct mustache_value *value, struct str text)
{
    value->kind = text.n > 0 ? MUSTACHE_TEXT : MUSTACHE_FALSE;
    value->text = text;
}

/* Zero is written, but a section over it is left out. */
static bool set_cell(struct page *p, const struct db_cell *cell, struct mustache_value *value)
{
    struct str text;
    if (!app_out_text(cell, p->x->answer->spare, &text)) {
        p->x->result = DB_NO_MEMORY;
        return false;
    }
    set_text(value, text);
    if ((cell->type == DB_CELL_INT && cell->i == 0) ||
        (cell->type == DB_CELL_REAL && fpclassify(cell->r) == FP_ZERO))
        value->kind = MUSTACHE_FALSE;
    return true;
}

/* A column of the row that the cursor is at; "x:json" is x. */
static bool find_column(struct page *p, const struct db_cursor *row, struct str name,
                        struct mustache_value *value)
{
    struct db_cell cell;
    for (unsigned i = 0; i < db_cursor_columns(row); i++) {
        const char *column = db_cursor_column(row, i);
        if (strncmp(column, name.p, name.n) != 0 ||
            (column[name.n] != 0 && strcmp(column + name.n, ":json") != 0))
            continue;
        db_cursor_cell(row, i, &cell);
        return set_cell(p, &cell, value);
    }
    return true;
}

/* What was sent: the body of the form that is shown again, else the query. */
static bool find_input(struct page *p, struct str name, struct mustache_value *value)
{
    const struct app_visit *v = p->x->visit;
    struct buf *text = p->x->answer->spare;
    char key[64];
    for (unsigned i = 0; v->input != NULL && i < v->input->count; i++) {
        const struct app_field *f = app_input_field(v->input, i);
        struct db_cell cell = {.type = DB_CELL_NULL, .i = f->i, .r = f->r};
        if (!str_eq(f->name, name))
            continue;
        if (f->kind == APP_FIELD_INT || f->kind == APP_FIELD_REAL) {
            cell.type = f->kind == APP_FIELD_INT ? DB_CELL_INT : DB_CELL_REAL;
            return set_cell(p, &cell, value);
        }
        set_text(value, f->kind == APP_FIELD_TEXT ? f->value : (struct str){"", 0});
        return true;
    }
    value->kind = MUSTACHE_FALSE;
    if (v->input != NULL || name.n >= sizeof key || v->query.n == 0)
        return true;
    memcpy(key, name.p, name.n);
    key[name.n] = 0;
    if (query_find(v->query, key, text) == QUERY_OK)
        set_text(value, (struct str){(const char *)text->data, text->len});
    return true;
}

static struct str text_of(const char *s)
{
    return (struct str){s, strlen(s)};
}

/* The names that begin with '_'. */
static bool find_own(struct page *p, struct str name, struct mustache_value *value)
{
    const struct app_visit *v = p->x->visit;
    const struct {
        struct str name, text;
    } own[] = {
        {STR_LIT("_user"), v->user},
        {STR_LIT("_title"), text_of(v->app->title)},
        {STR_LIT("_app"), v->base},
        {STR_LIT("_mount"), v->mount},
        {STR_LIT("_path"), v->path},
        {STR_LIT("_request_id"), v->request_id},
        {STR_LIT("_error"), v->error},
        {STR_LIT("_method"), text_of(v->method)},
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (!str_eq(own[i].name, name))
            continue;
        set_text(value, own[i].text);
        return true;
    }
    if (str_eq(name, STR_LIT("_now"))) {
        struct db_cell now = {.type = DB_CELL_INT, .i = v->now_s};
        return set_cell(p, &now, value);
    }
    if (str_eq(name, STR_LIT("_input")))
        value->kind = MUSTACHE_CONTEXT; /* the one context that is of nothing */
    return true;
}

static bool named(const struct db_statement *of, struct str name)
{
    return app_read_shows(of) && strncmp(of->name, name.p, name.n) == 0 && of->name[name.n] == 0;
}

/* next and prev of the page that is called rows, items_next and items_prev of that called items. */
static bool is_link(const struct db_statement *of, struct str name, bool *next)
{
    struct str result = text_of(of->name);
    if (name.n < 4)
        return false;
    struct str last = {name.p + name.n - 4, 4};
    *next = str_eq(last, STR_LIT("next"));
    if (!*next && !str_eq(last, STR_LIT("prev")))
        return false;
    if (str_eq(result, STR_LIT("rows")))
        return name.n == 4;
    return name.n == result.n + 5 && str_starts(name, result) && name.p[result.n] == '_';
}

static bool find_link(struct page *p, struct str name, struct mustache_value *value, bool *found)
{
    const struct db_script *s = script_of(p);
    struct buf *link = p->x->answer->spare;
    bool next;
    for (unsigned i = 0; i < s->count; i++) {
        if (!app_read_shows(&s->statement[i]) || s->statement[i].page == NULL ||
            !is_link(&s->statement[i], name, &next))
            continue;
        *found = true;
        if (!want_page(p, i) || !app_read_link(p->x, i, &p->result[i].page->page, next, link))
            return false;
        set_text(value, (struct str){(const char *)link->data, link->len});
        return true;
    }
    return true;
}

static bool find_outermost(struct page *p, struct str name, struct mustache_value *value)
{
    const struct db_script *s = script_of(p);
    struct db_cell cell;
    bool found = false;
    if (name.n > 0 && name.p[0] == '_')
        return find_own(p, name, value);
    for (unsigned i = 0; s != NULL && i < s->count; i++) {
        if (!named(&s->statement[i], name))
            continue;
        value->kind = MUSTACHE_LIST;
        value->index = i;
        return true;
    }
    for (unsigned i = 0; s != NULL && i < s->names; i++) {
        struct str own = text_of(s->name[i].name);
        if (s->name[i].own && str_eq(own, name))
            return !db_app_value(p->x->reader, i, &cell) || set_cell(p, &cell, value);
    }
    return s == NULL || find_link(p, name, value, &found);
}

/* ---- the source ------------------------------------------------------------------------------ */

static bool find(void *arg, const struct mustache_value *context, struct str name,
                 struct mustache_value *value)
{
    struct page *p = arg;
    if (context == NULL)
        return find_outermost(p, name, value);
    if (context->kind == MUSTACHE_LIST) { /* {{items.name}}: of the first row */
        unsigned statement = (unsigned)context->index;
        if (!want_first(p, statement))
            return false;
        const struct rows *rows = p->result[statement].first;
        return !rows->at_row || find_column(p, rows->cursor, name, value);
    }
    const struct walk *w = context->of;
    return w != NULL ? find_column(p, w->rows.cursor, name, value) : find_input(p, name, value);
}

/* Gives a walk its rows: of a page those that were read, the first time. */
static bool walk_rows(struct page *p, struct walk *w)
{
    struct result *r = &p->result[w->statement];
    if (script_of(p)->statement[w->statement].page == NULL)
        return open_rows(p, w->statement, &w->rows);
    if (!want_page(p, w->statement))
        return false;
    if (r->page->lent)
        return open_rows(p, w->statement, &w->rows);
    r->page->lent = true;
    w->rows = (struct rows){.cursor = r->page->cursor, .lent = true};
    return true;
}

static struct walk *begin_walk(struct page *p, unsigned statement)
{
    struct walk *w = p->walk;
    while (w < p->walk + WALKS_MAX && w->used)
        w++;
    if (w == p->walk + WALKS_MAX) {
        app_read_fault(p->x, 0, "more than %d lists are open within each other", WALKS_MAX);
        return NULL;
    }
    *w = (struct walk){.used = true, .statement = statement};
    return walk_rows(p, w) ? w : NULL;
}

static bool next(void *arg, const struct mustache_value *list, struct mustache_value *item)
{
    struct page *p = arg;
    unsigned statement = (unsigned)list->index;
    const struct db_statement *of = &script_of(p)->statement[statement];
    uint64_t most = p->x->visit->app->rows_max;
    struct walk *w = item->kind == MUSTACHE_ABSENT ? begin_walk(p, statement) : item->of;
    if (w == NULL || !step(p, &w->rows))
        return false;
    if (w->rows.at_row && w->count++ == most)
        return app_read_fault(p->x, of->line, "%s has more than %llu rows: page it", of->name,
                              (unsigned long long)most);
    item->kind = w->rows.at_row ? MUSTACHE_CONTEXT : MUSTACHE_ABSENT;
    item->of = w;
    if (!w->rows.at_row) {
        p->result[statement].any = w->count > 0 ? ANY_SOME : ANY_NONE;
        close_rows(&w->rows);
        w->used = false;
    }
    return true;
}

static bool some(void *arg, const struct mustache_value *list, bool *any)
{
    struct page *p = arg;
    unsigned statement = (unsigned)list->index;
    struct result *r = &p->result[statement];
    if (r->any == ANY_UNKNOWN && r->page != NULL)
        r->any = r->page->page.rows > 0 ? ANY_SOME : ANY_NONE;
    if (r->any == ANY_UNKNOWN && !want_first(p, statement))
        return false;
    *any = r->any == ANY_SOME;
    return true;
}

static void close_all(struct page *p)
{
    for (unsigned i = 0; script_of(p) != NULL && i < script_of(p)->count; i++) {
        free_rows(p->result[i].first);
        free_rows(p->result[i].page);
    }
    for (unsigned i = 0; i < WALKS_MAX; i++)
        if (p->walk[i].used)
            close_rows(&p->walk[i].rows);
}

static bool judge(struct app_reading *x, enum mustache_result result)
{
    switch (result) {
    case MUSTACHE_OK:
    case MUSTACHE_FAILED: /* the source has said why */
        break;
    case MUSTACHE_TOO_LARGE:
        x->too_large = true;
        break;
    case MUSTACHE_NO_MEMORY:
        x->result = DB_NO_MEMORY;
        break;
    case MUSTACHE_TOO_DEEP:
    case MUSTACHE_TOO_LONG:
        return app_read_fault(x, 0, "the template: %s", mustache_says(result));
    }
    return result == MUSTACHE_OK;
}

bool app_page(struct app_reading *x)
{
    struct page *p = malloc(sizeof *p);
    if (p == NULL) {
        x->result = DB_NO_MEMORY;
        return false;
    }
    p->x = x;
    if (x->visit->script != NULL) /* it is large: only what is used is cleared */
        memset(p->result, 0, x->visit->script->count * sizeof *p->result);
    for (unsigned i = 0; i < WALKS_MAX; i++)
        p->walk[i].used = false;
    const struct mustache_source source = {.arg = p, .find = find, .next = next, .some = some};
    const struct mustache_out out = {x->answer->text, x->pieces, x->max_bytes};
    enum mustache_result result = mustache_render(x->visit->route->page, &source, &out);
    close_all(p);
    free(p);
    x->answer->type = "text/html; charset=utf-8";
    return judge(x, result);
}
