/* Reading a page of a statement: its rows are recorded, so that they can be turned round. */
#include <stdlib.h>
#include <string.h>

#include "db/app_internal.h"
#include "db/page.h"

enum { PAGE_BYTES_MAX = 4 << 20 };

/* A page being read. */
struct paging {
    struct db_reader *r;
    const struct db_statement *of;
    unsigned statement; /* its index */
    bool before;        /* rows come last first */
    bool more;          /* there are others behind those that were taken */
    unsigned rows;
    struct db_recorder rec;
    uint32_t *start; /* of each row in rec, in the order in which they came */
    size_t first, last; /* where the outermost rows are, in their order */
};

static enum db_result failed(const struct paging *g, int code)
{
    return db_app_failed(&g->r->conn, g->r->app->fault, g->of->line, code);
}

static enum db_result not_recorded(const struct paging *g)
{
    struct db_app_fault *fault = g->r->app->fault;
    if (g->rec.no_memory)
        return DB_NO_MEMORY;
    fault->line = g->of->line;
    db_set_error(&fault->error, "a page of more than %d MiB", PAGE_BYTES_MAX >> 20);
    return DB_TOO_LARGE;
}

/* ---- statements --------------------------------------------------------------------------- */

static void cell_of(const struct db_value *v, struct db_cell *cell)
{
    *cell = (struct db_cell){.type = DB_CELL_NULL, .p = v->p, .n = v->n};
    switch ((enum db_value_type)v->type) {
    case DB_VALUE_TEXT: cell->type = DB_CELL_TEXT; break;
    case DB_VALUE_BLOB: cell->type = DB_CELL_BLOB; break;
    case DB_VALUE_INT:
        cell->type = DB_CELL_INT;
        cell->i = v->i;
        break;
    case DB_VALUE_REAL:
        cell->type = DB_CELL_REAL;
        cell->r = v->r;
        break;
    case DB_VALUE_NONE:
    case DB_VALUE_FILE: break;
    }
}

static int bind_cell(sqlite3_stmt *s, int n, const struct db_cell *cell)
{
    switch ((enum db_cell_type)cell->type) {
    case DB_CELL_INT: return sqlite3_bind_int64(s, n, cell->i);
    case DB_CELL_REAL: return sqlite3_bind_double(s, n, cell->r);
    case DB_CELL_TEXT:
        return sqlite3_bind_text64(s, n, cell->n > 0 ? cell->p : "", cell->n, SQLITE_STATIC,
                                   SQLITE_UTF8);
    case DB_CELL_BLOB:
        return cell->n > 0 ? sqlite3_bind_blob64(s, n, cell->p, cell->n, SQLITE_STATIC)
                           : sqlite3_bind_zeroblob(s, n, 0);
    case DB_CELL_NULL: break;
    }
    return sqlite3_bind_null(s, n);
}

/* The statement of a slot with the run's values, so many keys, and how many rows at most. NULL:
 * *code says why. */
static sqlite3_stmt *ready(const struct paging *g, unsigned slot, const struct db_cell *keys,
                           unsigned count, unsigned limit, int *code)
{
    struct db_app_reading *a = g->r->app;
    const struct db_page_text *text = &g->of->page->text[slot];
    sqlite3_stmt *s = db_app_statement(&g->r->conn, a->run.script, g->of->slot + slot, text->sql,
                                       text->bytes, code);
    if (s == NULL)
        return NULL;
    int n = (int)g->of->parameters;
    *code = db_app_bind(&a->values, g->of, s);
    for (unsigned i = 0; i < count && *code == SQLITE_OK; i++)
        *code = bind_cell(s, ++n, &keys[i]);
    if (*code == SQLITE_OK)
        *code = sqlite3_bind_int64(s, ++n, limit);
    return *code == SQLITE_OK ? s : NULL;
}

static sqlite3_stmt *ready_scan(const struct paging *g, struct db_page_scan scan,
                                const struct db_cell *keys, unsigned limit, int *code)
{
    bool compares = scan.kind == DB_PAGE_ABOVE || scan.kind == DB_PAGE_BELOW;
    return ready(g, db_page_slot(scan), keys, scan.key + compares, limit, code);
}

/* ---- rows --------------------------------------------------------------------------------- */

static enum db_result take_rows(struct paging *g, sqlite3_stmt *s)
{
    enum db_result result = DB_OK;
    int rc;
    while (result == DB_OK && (rc = sqlite3_step(s)) != SQLITE_DONE) {
        if (rc != SQLITE_ROW) {
            result = failed(g, rc);
        } else if (g->rows == g->of->page->rows) {
            g->more = true;
            break;
        } else {
            g->start[g->rows] = (uint32_t)g->rec.len;
            if (db_record_row(&g->rec, s, g->of->columns))
                g->rows++;
            else
                result = not_recorded(g);
        }
    }
    sqlite3_reset(s);
    return result;
}

/* One more than the page has is asked for, to see whether there is. */
static unsigned wanted(const struct paging *g)
{
    return g->of->page->rows - g->rows + 1;
}

static enum db_result take_first(struct paging *g)
{
    int rc;
    sqlite3_stmt *s = ready(g, 0, NULL, 0, wanted(g), &rc);
    return s != NULL ? take_rows(g, s) : failed(g, rc);
}

static enum db_result take_scans(struct paging *g, const struct db_cell *keys)
{
    struct db_page_scan scans[DB_PAGE_SCANS_MAX];
    unsigned count = db_page_scans(g->of->page, keys, g->before, scans);
    enum db_result result = DB_OK;
    for (unsigned i = 0; i < count && result == DB_OK && !g->more; i++) {
        int rc;
        sqlite3_stmt *s = ready_scan(g, scans[i], keys, wanted(g), &rc);
        result = s != NULL ? take_rows(g, s) : failed(g, rc);
    }
    return result;
}

/* Whether the statement has a row: SQLITE_ROW, SQLITE_DONE, or what failed. code is why there is no
 * statement. */
static int has_row(sqlite3_stmt *s, int code)
{
    if (s == NULL)
        return code;
    code = sqlite3_step(s);
    if (code == SQLITE_ROW || code == SQLITE_DONE)
        sqlite3_reset(s);
    return code;
}

/* Whether there is a row behind one with those keys: each scan in turn, the outermost first, which
 * is likely to have one. */
static enum db_result look_behind(const struct paging *g, const struct db_cell *keys, bool *found)
{
    struct db_page_scan scans[DB_PAGE_SCANS_MAX];
    unsigned count = db_page_scans(g->of->page, keys, false, scans);
    int rc = SQLITE_DONE;
    while (count-- > 0 && rc == SQLITE_DONE) {
        sqlite3_stmt *s = ready_scan(g, scans[count], keys, 1, &rc);
        rc = has_row(s, rc);
    }
    *found = rc == SQLITE_ROW;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? DB_OK : failed(g, rc);
}

/* Puts the rows that came last first into their order. */
static bool turn(struct paging *g)
{
    unsigned char *p = malloc(g->rec.len);
    size_t at = g->first;
    if (p == NULL)
        return false;
    memcpy(p, g->rec.p, at);
    for (unsigned i = g->rows; i-- > 0;) {
        size_t end = i + 1 < g->rows ? g->start[i + 1] : g->rec.len;
        g->last = at;
        memcpy(p + at, g->rec.p + g->start[i], end - g->start[i]);
        at += end - g->start[i];
    }
    free(g->rec.p);
    g->rec.p = p;
    return true;
}

static bool take_keys(const struct paging *g, size_t row, struct db_cell *keys)
{
    struct db_cell cells[DB_APP_COLUMNS_MAX];
    if (!db_record_cells(&g->rec, row, g->of->columns, cells))
        return false;
    for (unsigned i = 0; i < g->of->page->keys; i++)
        if (cells[g->of->page->key[i].index].type != DB_CELL_NULL)
            keys[i] = cells[g->of->page->key[i].index];
    return true;
}

/* The rows in their order, the keys of the outermost, and a cursor. */
static enum db_result finish(struct paging *g, struct db_page_read *page)
{
    db_record_end(&g->rec);
    if (g->rows > 0) {
        g->first = g->start[0];
        g->last = g->start[g->rows - 1];
        if (g->before && g->rows > 1 && !turn(g))
            return DB_NO_MEMORY;
        if (!take_keys(g, g->first, page->first) || !take_keys(g, g->last, page->last))
            return DB_BROKEN;
    }
    return db_rows_open((struct db_rows){g->rec.p, g->rec.len}, g->statement, &page->cursor);
}

/* Rows ahead of a page behind a row are not looked for: whoever asks for it came from them. If they
 * have gone since, the page before it is the first. */
static enum db_result look_around(const struct paging *g, enum db_page_from from,
                                  struct db_page_read *page)
{
    if (g->rows == 0)
        return DB_OK;
    page->before = from == DB_PAGE_AFTER || (g->before && g->more);
    page->after = g->more && !g->before;
    return g->before ? look_behind(g, page->last, &page->after) : DB_OK;
}

static enum db_result take(struct paging *g, const struct db_page_at *at)
{
    struct db_cell keys[DB_PAGE_KEYS_MAX];
    if (at->from == DB_PAGE_FIRST)
        return take_first(g);
    for (unsigned i = 0; i < g->of->page->keys; i++)
        cell_of(&at->key[i], &keys[i]);
    enum db_result result = take_scans(g, keys);
    if (result != DB_OK || g->rows > 0 || !g->before)
        return result;
    g->before = false;
    return take_first(g);
}

static enum db_result read_page(struct paging *g, const struct db_page_at *at,
                                struct db_page_read *page)
{
    if (!db_record_begin(&g->rec, g->statement, g->of))
        return not_recorded(g);
    enum db_result result = take(g, at);
    if (result == DB_OK)
        result = finish(g, page);
    return result == DB_OK ? look_around(g, at->from, page) : result;
}

enum db_result db_app_page(struct db_reader *r, unsigned statement, const struct db_page_at *at,
                           struct db_page_read *page)
{
    uint32_t start[DB_PAGE_ROWS_MAX];
    struct paging g = {
        .r = r,
        .start = start,
        .of = &r->app->run.script->statement[statement],
        .statement = statement,
        .before = at->from == DB_PAGE_BEFORE,
        .rec.max_bytes = PAGE_BYTES_MAX,
    };
    *page = (struct db_page_read){0};
    enum db_result result = read_page(&g, at, page);
    page->memory = g.rec.p;
    page->rows = g.rows;
    if (result != DB_OK)
        db_page_read_free(page);
    return result;
}

void db_page_read_free(struct db_page_read *page)
{
    db_cursor_close(page->cursor);
    free(page->memory);
    *page = (struct db_page_read){0};
}
