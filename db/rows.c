/* Layout of a recorded result, numbers in little-endian order:
 *
 *     bytes of all of it (4), statement (2), columns (2), rows (4),
 *     its name, then the columns' names: each length (2), bytes, NUL;
 *     cells, row by row: type (1); INT and REAL 8 bytes; TEXT and BLOB length (4), bytes.
 */
#include "db/rows.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "db/app_internal.h"

enum { HEAD = 12, RECORD_FIRST = 512 };

/* A place in recorded rows. */
struct place {
    const unsigned char *p, *end;
};

struct db_cursor {
    unsigned columns;
    const char *const *names;
    /* being read */
    struct db_conn *conn;
    sqlite3_stmt *s;
    const struct db_statement *of;
    uint64_t script_id;
    struct db_app_fault *fault;
    /* recorded */
    struct place at;
    uint32_t left;
    struct db_cell *cell;
};

/* n is a constant wherever it matters: then these are one instruction. */
static inline uint64_t get(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, p, n);
    return le64toh(v);
}

static inline void put(unsigned char *p, size_t n, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, n);
}

/* ---- recording ---- */

/* Room for n more bytes; NULL: failed. */
static unsigned char *room(struct db_recorder *r, size_t n)
{
    if (n > r->max_bytes - r->len) {
        r->too_large = true;
        return NULL;
    }
    if (n > r->cap - r->len) {
        size_t cap = r->cap > 0 ? r->cap : RECORD_FIRST;
        while (cap - r->len < n)
            cap *= 2;
        unsigned char *p = realloc(r->p, cap);
        if (p == NULL) {
            r->no_memory = true;
            return NULL;
        }
        r->p = p;
        r->cap = cap;
    }
    r->len += n;
    return r->p + r->len - n;
}

static bool put_name(struct db_recorder *r, const char *name)
{
    size_t n = name != NULL ? strlen(name) : 0;
    unsigned char *p = n <= UINT16_MAX ? room(r, 2 + n + 1) : NULL;
    if (p == NULL)
        return false;
    put(p, 2, n);
    memcpy(p + 2, n > 0 ? name : "", n + 1);
    return true;
}

bool db_record_begin(struct db_recorder *r, unsigned statement, const struct db_statement *of)
{
    r->begin = r->len;
    r->rows = 0;
    unsigned char *p = room(r, HEAD);
    if (p == NULL)
        return false;
    put(p + 4, 2, statement);
    put(p + 6, 2, of->columns);
    bool ok = put_name(r, of->name);
    for (unsigned i = 0; ok && i < of->columns; i++)
        ok = put_name(r, of->column[i]);
    return ok;
}

static bool put_cell(struct db_recorder *r, const struct db_cell *cell)
{
    bool bytes = cell->type == DB_CELL_TEXT || cell->type == DB_CELL_BLOB;
    unsigned char *p = room(r, cell->type == DB_CELL_NULL ? 1 : bytes ? 5 + cell->n : 9);
    if (p == NULL)
        return false;
    *p++ = cell->type;
    if (cell->type == DB_CELL_INT) {
        put(p, 8, (uint64_t)cell->i);
    } else if (cell->type == DB_CELL_REAL) {
        uint64_t bits;
        memcpy(&bits, &cell->r, sizeof bits);
        put(p, 8, bits);
    } else if (bytes) {
        put(p, 4, cell->n);
        if (cell->n > 0)
            memcpy(p + 4, cell->p, cell->n);
    }
    return true;
}

bool db_record_row(struct db_recorder *r, sqlite3_stmt *s, unsigned columns)
{
    size_t len = r->len;
    struct db_cell cell;
    for (unsigned i = 0; i < columns; i++) {
        db_cell_of(s, (int)i, &cell);
        if (!put_cell(r, &cell)) {
            r->len = len;
            return false;
        }
    }
    r->rows++;
    return true;
}

void db_record_end(struct db_recorder *r)
{
    put(r->p + r->begin, 4, r->len - r->begin);
    put(r->p + r->begin + 8, 4, r->rows);
}

/* ---- cursors ---- */

/* The value itself is looked at, once: the connection has no mutex, so that it is as good as what
 * sqlite3_column_… give, and each of those looks again. */
void db_cell_of(sqlite3_stmt *s, int column, struct db_cell *cell)
{
    sqlite3_value *v = sqlite3_column_value(s, column);
    switch (sqlite3_value_type(v)) {
    case SQLITE_INTEGER:
        cell->type = DB_CELL_INT;
        cell->i = sqlite3_value_int64(v);
        break;
    case SQLITE_FLOAT:
        cell->type = DB_CELL_REAL;
        cell->r = sqlite3_value_double(v);
        break;
    case SQLITE_TEXT:
        cell->type = DB_CELL_TEXT;
        cell->p = sqlite3_value_text(v);
        cell->n = (size_t)sqlite3_value_bytes(v);
        break;
    case SQLITE_BLOB:
        cell->type = DB_CELL_BLOB;
        cell->p = sqlite3_value_blob(v);
        cell->n = (size_t)sqlite3_value_bytes(v);
        break;
    default:
        cell->type = DB_CELL_NULL;
        break;
    }
}

struct db_cursor *db_cursor_of(struct db_conn *c, const struct db_app_reading *a,
                               const struct db_statement *of, sqlite3_stmt *s)
{
    struct db_cursor *cursor = calloc(1, sizeof *cursor);
    if (cursor == NULL) {
        db_app_give(c, a->run.script->id, of->slot, s);
        return NULL;
    }
    cursor->columns = of->columns;
    cursor->names = of->column;
    cursor->conn = c;
    cursor->s = s;
    cursor->of = of;
    cursor->script_id = a->run.script->id;
    cursor->fault = a->fault;
    return cursor;
}

static const char *take_name(struct place *at)
{
    if (at->end - at->p < 3)
        return NULL;
    size_t n = (size_t)get(at->p, 2);
    const char *name = (const char *)at->p + 2;
    if ((size_t)(at->end - at->p) < n + 3 || name[n] != 0)
        return NULL;
    at->p += n + 3;
    return name;
}

/* Result i, behind its head, and the head's start; false: there is none. */
static bool result_at(struct db_rows rows, unsigned i, const unsigned char **head, struct place *at)
{
    const unsigned char *p = rows.p, *end = p + rows.n;
    for (; end - p >= HEAD; i--) {
        size_t bytes = (size_t)get(p, 4);
        if (bytes < HEAD || bytes > (size_t)(end - p))
            return false;
        if (i == 0) {
            *head = p;
            *at = (struct place){p + HEAD, p + bytes};
            return true;
        }
        p += bytes;
    }
    return false;
}

bool db_rows_result(struct db_rows rows, unsigned i, const char **name, unsigned *statement)
{
    const unsigned char *head;
    struct place at;
    if (rows.n == 0 || !result_at(rows, i, &head, &at))
        return false;
    *name = take_name(&at);
    *statement = (unsigned)get(head + 4, 2);
    return *name != NULL;
}

/* A cursor at the first row of the result whose names come next in at. */
static enum db_result open_at(const unsigned char *head, struct place at, struct db_cursor **cursor)
{
    unsigned columns = (unsigned)get(head + 6, 2);
    size_t cells = columns * sizeof(struct db_cell);
    struct db_cursor *c = calloc(1, sizeof *c + cells + columns * sizeof(char *));
    if (c == NULL)
        return DB_NO_MEMORY;
    c->cell = (struct db_cell *)(c + 1);
    const char **names = (const char **)(c->cell + columns);
    bool ok = take_name(&at) != NULL;
    for (unsigned i = 0; ok && i < columns; i++)
        ok = (names[i] = take_name(&at)) != NULL;
    c->columns = columns;
    c->names = names;
    c->at = at;
    c->left = (uint32_t)get(head + 8, 4);
    *cursor = c;
    if (ok)
        return DB_OK;
    db_cursor_close(c);
    *cursor = NULL;
    return DB_BROKEN;
}

enum db_result db_rows_open(struct db_rows rows, unsigned statement, struct db_cursor **cursor)
{
    const unsigned char *head;
    struct place at;
    *cursor = NULL;
    for (unsigned i = 0; rows.n > 0 && result_at(rows, i, &head, &at); i++)
        if (get(head + 4, 2) == statement)
            return open_at(head, at, cursor);
    return DB_NONE;
}

unsigned db_cursor_columns(const struct db_cursor *c)
{
    return c->columns;
}

const char *db_cursor_column(const struct db_cursor *c, unsigned i)
{
    return c->names[i];
}

static bool take_cell(struct place *at, struct db_cell *cell)
{
    size_t n = (size_t)(at->end - at->p);
    if (n < 1 || at->p[0] > DB_CELL_BLOB)
        return false;
    cell->type = *at->p++;
    if (cell->type == DB_CELL_NULL)
        return true;
    bool bytes = cell->type == DB_CELL_TEXT || cell->type == DB_CELL_BLOB;
    size_t head = bytes ? 4 : 8;
    if (n - 1 < head)
        return false;
    uint64_t v = bytes ? get(at->p, 4) : get(at->p, 8);
    at->p += head;
    if (cell->type == DB_CELL_INT)
        cell->i = (int64_t)v;
    else if (cell->type == DB_CELL_REAL)
        memcpy(&cell->r, &v, sizeof cell->r);
    if (!bytes)
        return true;
    if (v > n - 1 - head)
        return false;
    cell->p = at->p;
    cell->n = (size_t)v;
    at->p += v;
    return true;
}

bool db_record_cells(const struct db_recorder *r, size_t at, unsigned columns,
                     struct db_cell *cells)
{
    struct place place = {r->p + at, r->p + r->len};
    for (unsigned i = 0; i < columns; i++)
        if (!take_cell(&place, &cells[i]))
            return false;
    return true;
}

static enum db_result next_recorded(struct db_cursor *c)
{
    if (c->left == 0)
        return DB_NONE;
    c->left--;
    for (unsigned i = 0; i < c->columns; i++)
        if (!take_cell(&c->at, &c->cell[i]))
            return DB_BROKEN;
    return DB_OK;
}

enum db_result db_cursor_next(struct db_cursor *c)
{
    if (c->s == NULL)
        return next_recorded(c);
    int rc = sqlite3_step(c->s);
    if (rc == SQLITE_ROW)
        return DB_OK;
    return rc == SQLITE_DONE ? DB_NONE : db_app_failed(c->conn, c->fault, c->of->line, rc);
}

void db_cursor_cell(const struct db_cursor *c, unsigned column, struct db_cell *cell)
{
    if (c->s != NULL)
        db_cell_of(c->s, (int)column, cell);
    else
        *cell = c->cell[column];
}

void db_cursor_close(struct db_cursor *c)
{
    if (c == NULL)
        return;
    if (c->s != NULL)
        db_app_give(c->conn, c->script_id, c->of->slot, c->s);
    free(c);
}
