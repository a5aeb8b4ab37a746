#include "db/page.h"

#include <string.h>

enum { ALL_SLOT, SCAN_SLOTS }; /* from there on */

static const char head[] = "SELECT * FROM (\n";
static const char tail[] = "\n)";
static const char limit[] = " LIMIT coalesce(?,-1)"; /* NULL: without a bound */

/* Where text goes; p is NULL: it is only counted. */
struct text {
    char *p;
    size_t n;
};

unsigned db_page_slots(const struct db_page *page)
{
    return SCAN_SLOTS + page->keys * DB_PAGE_SCAN_KINDS;
}

unsigned db_page_slot(struct db_page_scan scan)
{
    return SCAN_SLOTS + scan.key * DB_PAGE_SCAN_KINDS + scan.kind;
}

static void put(struct text *out, const char *text)
{
    size_t n = strlen(text);
    if (out->p != NULL)
        memcpy(out->p + out->n, text, n + 1);
    out->n += n;
}

/* A name of letters, digits and '_'; in brackets it is never a word of SQL, nor text. */
static void put_key(struct text *out, const struct db_page_key *key)
{
    put(out, "[");
    put(out, key->column);
    put(out, "]");
}

static void put_where(struct text *out, const struct db_page *page, struct db_page_scan scan,
                      enum db_page_floor floor)
{
    static const char *const last[DB_PAGE_SCAN_KINDS] = {
        [DB_PAGE_ABOVE] = " > ?",
        [DB_PAGE_NOT_NULL] = " IS NOT NULL",
        [DB_PAGE_BELOW] = " < ?",
        [DB_PAGE_NULL] = " IS NULL",
    };
    const char *end = last[scan.kind];
    if (scan.kind == DB_PAGE_NOT_NULL && floor == DB_PAGE_FLOOR_NUMBER)
        end = " >= -9e999";
    if (scan.kind == DB_PAGE_NOT_NULL && floor == DB_PAGE_FLOOR_TEXT)
        end = " >= ''";
    put(out, " WHERE ");
    for (unsigned i = 0; i < scan.key; i++) {
        put_key(out, &page->key[i]);
        put(out, " IS ? AND ");
    }
    put_key(out, &page->key[scan.key]);
    put(out, end);
}

/* By the keys from the first on; turned: each the other way. */
static void put_order(struct text *out, const struct db_page *page, unsigned first, bool turned)
{
    for (unsigned i = first; i < page->keys; i++) {
        put(out, i == first ? " ORDER BY " : ", ");
        put_key(out, &page->key[i]);
        put(out, page->key[i].descending != turned ? " DESC" : "");
    }
}

static void put_scan(struct text *out, const struct db_page *page, unsigned slot,
                     const enum db_page_floor *floors)
{
    unsigned nth = slot - SCAN_SLOTS;
    struct db_page_scan scan = {nth / DB_PAGE_SCAN_KINDS,
                                (enum db_page_scan_kind)(nth % DB_PAGE_SCAN_KINDS)};
    bool down = scan.kind == DB_PAGE_BELOW || scan.kind == DB_PAGE_NULL;
    put_where(out, page, scan, floors[scan.key]);
    put_order(out, page, scan.key + (scan.kind == DB_PAGE_NULL),
              page->key[scan.key].descending != down);
}

size_t db_page_sql(const struct db_statement *of, const enum db_page_floor *floors, unsigned slot,
                   char *p)
{
    struct text out = {.p = p};
    put(&out, head);
    put(&out, of->text);
    put(&out, tail);
    if (slot == ALL_SLOT)
        put_order(&out, of->page, 0, false);
    else
        put_scan(&out, of->page, slot, floors);
    put(&out, limit);
    return out.n;
}

unsigned db_page_scans(const struct db_page *page, const struct db_cell *keys, bool before,
                       struct db_page_scan scans[DB_PAGE_SCANS_MAX])
{
    unsigned count = 0;
    for (unsigned i = page->keys; i-- > 0;) {
        bool null = keys[i].type == DB_CELL_NULL;
        if (page->key[i].descending == before) {
            scans[count++] = (struct db_page_scan){i, null ? DB_PAGE_NOT_NULL : DB_PAGE_ABOVE};
        } else if (!null) {
            scans[count++] = (struct db_page_scan){i, DB_PAGE_BELOW};
            scans[count++] = (struct db_page_scan){i, DB_PAGE_NULL};
        }
    }
    return count;
}
