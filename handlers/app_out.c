#include "handlers/app_out.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fcgi/path.h"
#include "fcgi/resp.h"
#include "handlers/json.h"
#include "handlers/json_check.h"
#include "seal/base64.h"

enum { DIGITS_MAX = 20, PIECES_MAX = 1 << 20 };

static const char replacement[] = "\xef\xbf\xbd";

/* Room for n more bytes; NULL when it failed. */
static char *room(struct app_out *o, size_t n)
{
    if (o->failed)
        return NULL;
    if (n <= o->text->cap - o->text->len && o->text->len + n <= o->max_bytes)
        return (char *)o->text->data + o->text->len;
    o->too_large = n > o->max_bytes || o->text->len > o->max_bytes - n;
    o->failed = o->too_large || !buf_reserve(o->text, n, o->max_bytes);
    return o->failed ? NULL : (char *)o->text->data + o->text->len;
}

void app_out_add(struct app_out *o, const char *p, size_t n)
{
    char *to = room(o, n);
    if (to == NULL || n == 0)
        return;
    memcpy(to, p, n);
    o->text->len += n;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Bytes of the character at p, which may be broken: then 0. */
static size_t character(const char *p, size_t n)
{
    unsigned char c = (unsigned char)*p;
    size_t bytes = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    return bytes <= n && utf8_ok(p, bytes) ? bytes : 0;
}

static void escape(struct app_out *o, unsigned char c)
{
    static const char digits[] = "0123456789abcdef", from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    char text[6] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
    const char *at = c != 0 ? strchr(from, c) : NULL;
    if (at != NULL)
        text[1] = to[at - from];
    app_out_add(o, text, at != NULL ? 2 : 6);
}

/* Behind its plain beginning: characters that need care. */
static void careful_string(struct app_out *o, const char *p, size_t n)
{
    while (n > 0 && !o->failed) {
        size_t plain = json_plain(p, n);
        app_out_add(o, p, plain);
        p += plain;
        n -= plain;
        if (n == 0)
            break;
        unsigned char c = (unsigned char)*p;
        size_t bytes = c < 0x80 ? 1 : character(p, n);
        if (c < 0x80)
            escape(o, c);
        else
            app_out_add(o, bytes > 0 ? p : replacement, bytes > 0 ? bytes : 3);
        bytes = bytes > 0 ? bytes : 1;
        p += bytes;
        n -= bytes;
    }
}

void app_out_string(struct app_out *o, const char *p, size_t n)
{
    size_t plain = json_plain(p, n);
    char *to = room(o, plain + 2);
    if (to == NULL)
        return;
    *to++ = '"';
    if (plain > 0)
        memcpy(to, p, plain);
    o->text->len += plain + 1;
    if (plain < n)
        careful_string(o, p + plain, n - plain);
    app_out_add(o, "\"", 1);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static size_t put_i64(char *to, int64_t i)
{
    if (i >= 0)
        return put_u64(to, (uint64_t)i);
    *to = '-';
    return 1 + put_u64(to + 1, 0 - (uint64_t)i);
}

/* Numbers with few places: a whole number divided by a power of ten is rounded as reading its
 * decimal form is, so that form is read back as the same. 0: it is not one of them. */
static size_t put_short(char *to, double r)
{
    static const double powers[] = {1, 10, 100, 1e3, 1e4, 1e5, 1e6};
    double a = fabs(r);
    if (!(a < 1e9) || (a == 0 && signbit(r)))
        return 0;
    for (unsigned places = 0; places < sizeof powers / sizeof *powers; places++) {
        double scaled = floor(a * powers[places] + 0.5);
        if (scaled / powers[places] != a)
            continue;
        char digits[DIGITS_MAX], *p = to;
        size_t n = put_u64(digits, (uint64_t)scaled);
        if (r < 0)
            *p++ = '-';
        if (n <= places) { /* 0.05 */
            *p++ = '0';
        } else {
            memcpy(p, digits, n - places);
            p += n - places;
        }
        *p++ = '.';
        for (size_t i = n; i < places; i++)
            *p++ = '0';
        size_t behind = n < places ? n : places;
        memcpy(p, digits + n - behind, behind);
        p += behind;
        if (places == 0)
            *p++ = '0';
        return (size_t)(p - to);
    }
    return 0;
}

size_t app_out_real(char to[APP_REAL_MAX], double r)
{
    size_t n = put_short(to, r);
    if (n > 0)
        return n;
    for (int digits = fabs(r) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        int got = snprintf(to, APP_REAL_MAX, "%.*g", digits, r);
        n = got > 0 ? (size_t)got : 0;
        if (strtod(to, NULL) == r)
            break;
    }
    if (strpbrk(to, ".e") == NULL) {
        memcpy(to + n, ".0", 2);
        n += 2;
    }
    return n;
}

/* ---- cells ----------------------------------------------------------------------------------- */

static void put_base64(struct app_out *o, const void *p, size_t n)
{
    size_t len = seal_base64_len(n);
    char *to = room(o, len + 1);
    if (to == NULL || len == 0)
        return;
    seal_base64_encode(to, p, n);
    o->text->len += len;
}

/* JSON as it stands; outside of strings a line break is only a blank. */
static void put_inline(struct app_out *o, const char *p, size_t n, bool line)
{
    char *to = room(o, n);
    if (to == NULL)
        return;
    memcpy(to, p, n);
    for (size_t i = 0; line && i < n; i++)
        if (to[i] == '\n' || to[i] == '\r')
            to[i] = ' ';
    o->text->len += n;
}

static void put_number(struct app_out *o, const struct db_cell *cell)
{
    char *to = room(o, APP_REAL_MAX);
    if (to == NULL)
        return;
    if (cell->type == DB_CELL_INT)
        o->text->len += put_i64(to, cell->i);
    else
        o->text->len += app_out_real(to, cell->r);
}

static bool is_number(const struct db_cell *cell)
{
    return cell->type == DB_CELL_INT || (cell->type == DB_CELL_REAL && isfinite(cell->r));
}

static void put_json(struct app_out *o, const struct db_cell *cell, bool json, bool line)
{
    if (is_number(cell)) {
        put_number(o, cell);
    } else if (cell->type == DB_CELL_TEXT) {
        if (json && json_check_all(cell->p, cell->n, NULL))
            put_inline(o, cell->p, cell->n, line);
        else
            app_out_string(o, cell->p, cell->n);
    } else if (cell->type == DB_CELL_BLOB) {
        app_out_add(o, "\"", 1);
        put_base64(o, cell->p, cell->n);
        app_out_add(o, "\"", 1);
    } else {
        app_out_add(o, "null", 4); /* NULL, and what no number of JSON is */
    }
}

bool app_out_text(const struct db_cell *cell, struct buf *to, struct str *text)
{
    struct app_out o = {.text = to, .max_bytes = SIZE_MAX / 2};
    *text = (struct str){cell->p, cell->n};
    if (cell->type == DB_CELL_TEXT)
        return true;
    to->len = 0;
    if (is_number(cell))
        put_number(&o, cell);
    else if (cell->type == DB_CELL_BLOB)
        put_base64(&o, cell->p, cell->n);
    *text = (struct str){to->len > 0 ? (const char *)to->data : "", to->len};
    return !o.failed;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static struct str shown_name(const struct db_cursor *cursor, const struct app_column *c)
{
    const char *name = db_cursor_column(cursor, c->index);
    return (struct str){name, strlen(name) - (c->json ? 5 : 0)};
}

bool app_out_columns(const struct db_cursor *cursor, struct buf *text, struct app_columns *columns)
{
    struct app_out o = {.text = text, .max_bytes = PIECES_MAX};
    columns->count = 0;
    for (unsigned i = 0; i < db_cursor_columns(cursor); i++) {
        const char *name = db_cursor_column(cursor, i);
        size_t n = strlen(name);
        if (name[0] == '_' || columns->count == sizeof columns->column / sizeof *columns->column)
            continue;
        struct app_column *c = &columns->column[columns->count];
        *c = (struct app_column){.index = i, .at = (uint32_t)text->len};
        c->json = n > 5 && memcmp(name + n - 5, ":json", 5) == 0;
        app_out_add(&o, columns->count++ > 0 ? "," : "{", 1);
        app_out_string(&o, name, n - (c->json ? 5 : 0));
        app_out_add(&o, ":", 1);
        c->n = (uint32_t)text->len - c->at;
    }
    return !o.failed;
}

void app_out_json(struct app_out *o, const struct db_cursor *cursor, const struct app_columns *c,
                  const struct buf *pieces, bool line)
{
    struct db_cell cell;
    for (unsigned i = 0; i < c->count; i++) {
        const struct app_column *column = &c->column[i];
        app_out_add(o, (const char *)pieces->data + column->at, column->n);
        db_cursor_cell(cursor, column->index, &cell);
        put_json(o, &cell, column->json, line);
    }
    app_out_add(o, c->count > 0 ? "}" : "{}", c->count > 0 ? 1 : 2);
}

static void csv_text(struct app_out *o, const char *p, size_t n)
{
    bool quoted = n == 0 || memchr(p, '"', n) != NULL || memchr(p, ',', n) != NULL ||
                  memchr(p, '\n', n) != NULL || memchr(p, '\r', n) != NULL || p[0] == ' ' ||
                  p[n - 1] == ' ';
    bool ok = utf8_ok(p, n);
    if (quoted)
        app_out_add(o, "\"", 1);
    for (size_t i = 0; i < n && !o->failed;) {
        const char *quote = memchr(p + i, '"', n - i);
        size_t until = quote != NULL ? (size_t)(quote - p) + 1 : n;
        for (; ok == false && i < until;) {
            size_t bytes = character(p + i, n - i);
            app_out_add(o, bytes > 0 ? p + i : replacement, bytes > 0 ? bytes : 3);
            i += bytes > 0 ? bytes : 1;
        }
        if (i < until)
            app_out_add(o, p + i, until - i);
        i = until;
        if (quote != NULL)
            app_out_add(o, "\"", 1);
    }
    if (quoted)
        app_out_add(o, "\"", 1);
}

static void csv_cell(struct app_out *o, const struct db_cell *cell)
{
    if (is_number(cell))
        put_number(o, cell);
    else if (cell->type == DB_CELL_TEXT)
        csv_text(o, cell->p, cell->n);
    else if (cell->type == DB_CELL_BLOB)
        put_base64(o, cell->p, cell->n);
}

void app_out_csv(struct app_out *o, const struct db_cursor *cursor, const struct app_columns *c)
{
    struct db_cell cell;
    for (unsigned i = 0; i < c->count; i++) {
        if (i > 0)
            app_out_add(o, ",", 1);
        db_cursor_cell(cursor, c->column[i].index, &cell);
        csv_cell(o, &cell);
    }
    app_out_add(o, "\r\n", 2);
}

void app_out_csv_head(struct app_out *o, const struct db_cursor *cursor,
                      const struct app_columns *c)
{
    for (unsigned i = 0; i < c->count; i++) {
        struct str name = shown_name(cursor, &c->column[i]);
        if (i > 0)
            app_out_add(o, ",", 1);
        csv_text(o, name.p, name.n);
    }
    app_out_add(o, "\r\n", 2);
}
