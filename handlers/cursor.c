#include "handlers/cursor.h"

#include <stdio.h>
#include <string.h>

/* A key: its kind, then 8 bytes of a number, or a length in 2 bytes and so many bytes. */
enum { KIND_NULL, KIND_INT, KIND_REAL, KIND_TEXT, KIND_BLOB };

void cursor_keys_make(const unsigned char secret[DB_SECRET_BYTES], struct cursor_keys *keys)
{
    _Static_assert((int)DB_SECRET_BYTES == (int)SEAL_BOX_SECRET_BYTES, "one size of secret");
    seal_box_keys(secret, &keys->box);
}

struct writing {
    unsigned char *p;
    size_t n, room;
    bool full;
};

static void put(struct writing *w, const void *p, size_t n)
{
    if (w->full || n > w->room - w->n) {
        w->full = true;
        return;
    }
    if (n > 0)
        memcpy(w->p + w->n, p, n);
    w->n += n;
}

static void put_text(struct writing *w, const char *text)
{
    put(w, text, strlen(text) + 1); /* with its NUL: one text never runs into the next */
}

/* What a page is: its place, and the order of its rows. */
static bool about(const char *app, const struct db_script *script, const struct db_statement *page,
                  struct writing *w)
{
    put_text(w, app);
    put_text(w, script->file);
    put_text(w, page->name);
    for (unsigned i = 0; i < page->page->keys; i++) {
        put_text(w, page->page->key[i].column);
        put(w, page->page->key[i].descending ? "d" : "a", 1);
    }
    return !w->full;
}

static void put_cell(struct writing *w, const struct db_cell *cell)
{
    static const unsigned char kinds[] = {
        [DB_CELL_NULL] = KIND_NULL, [DB_CELL_INT] = KIND_INT,   [DB_CELL_REAL] = KIND_REAL,
        [DB_CELL_TEXT] = KIND_TEXT, [DB_CELL_BLOB] = KIND_BLOB,
    };
    unsigned char length[2] = {(unsigned char)(cell->n >> 8), (unsigned char)cell->n};
    put(w, &kinds[cell->type], 1);
    switch ((enum db_cell_type)cell->type) {
    case DB_CELL_NULL:
        break;
    case DB_CELL_INT:
        put(w, &cell->i, sizeof cell->i);
        break;
    case DB_CELL_REAL:
        put(w, &cell->r, sizeof cell->r);
        break;
    case DB_CELL_TEXT:
    case DB_CELL_BLOB:
        w->full |= cell->n > UINT16_MAX;
        put(w, length, sizeof length);
        put(w, cell->p, cell->n);
        break;
    }
}

size_t cursor_write(const struct cursor_keys *keys, const char *app, const struct db_script *script,
                    const struct db_statement *page, const struct db_cell *row,
                    char text[CURSOR_MAX + 1])
{
    unsigned char place[SEAL_BOX_ABOUT_MAX], plain[SEAL_BOX_MAX];
    struct writing of = {.p = place, .room = sizeof place};
    struct writing w = {.p = plain, .room = sizeof plain};
    for (unsigned i = 0; i < page->page->keys; i++)
        put_cell(&w, &row[i]);
    if (!about(app, script, page, &of) || w.full)
        return 0;
    return seal_box_close(&keys->box, (struct seal_text){(const char *)place, of.n}, plain, w.n,
                          text);
}

struct reading {
    const unsigned char *p;
    size_t n;
};

static bool take(struct reading *r, void *to, size_t n)
{
    if (n > r->n)
        return false;
    memcpy(to, r->p, n);
    r->p += n;
    r->n -= n;
    return true;
}

/* It was sealed by us; a form of before an upgrade is refused all the same. */
static bool take_key(struct reading *r, struct db_value *v)
{
    unsigned char kind, length[2];
    *v = (struct db_value){.type = DB_VALUE_NONE};
    if (!take(r, &kind, 1))
        return false;
    switch (kind) {
    case KIND_NULL:
        return true;
    case KIND_INT:
        v->type = DB_VALUE_INT;
        return take(r, &v->i, sizeof v->i);
    case KIND_REAL:
        v->type = DB_VALUE_REAL;
        return take(r, &v->r, sizeof v->r);
    case KIND_TEXT:
    case KIND_BLOB:
        v->type = kind == KIND_TEXT ? DB_VALUE_TEXT : DB_VALUE_BLOB;
        if (!take(r, length, sizeof length))
            return false;
        v->n = (size_t)length[0] << 8 | length[1];
        v->p = r->p;
        if (v->n > r->n)
            return false;
        r->p += v->n;
        r->n -= v->n;
        return true;
    default:
        return false;
    }
}

bool cursor_read(const struct cursor_keys *keys, const char *app, const struct db_script *script,
                 const struct db_statement *page, struct str text, unsigned char *memory,
                 struct db_value key[DB_PAGE_KEYS_MAX])
{
    unsigned char place[SEAL_BOX_ABOUT_MAX];
    struct writing of = {.p = place, .room = sizeof place};
    struct reading r = {.p = memory};
    if (!about(app, script, page, &of) ||
        !seal_box_open(&keys->box, (struct seal_text){(const char *)place, of.n},
                       (struct seal_text){text.p, text.n}, memory, &r.n))
        return false;
    for (unsigned i = 0; i < page->page->keys; i++)
        if (!take_key(&r, &key[i]))
            return false;
    return r.n == 0;
}
