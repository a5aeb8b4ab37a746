/* The SQL of a page: the statement of an app, in pages by keys.
 *
 * A page behind a row is read by several scans, innermost first. For keys a, b and the row (1, 2):
 * those with a = 1 and b beyond 2; then those with a beyond 1. NULL comes before everything else,
 * as SQLite sorts it. Each scan is one range of an index that has the keys in their order, however
 * their directions are mixed and however many rows are alike; and each goes on where the one before
 * it ended. Before a row it is the same with all directions turned round. Private to db/. */
#ifndef HANJI_DB_PAGE_H
#define HANJI_DB_PAGE_H

#include "db/rows.h"
#include "db/script.h"

/* What the last key of a scan is; those before it are equal to the row's. */
enum db_page_scan_kind {
    DB_PAGE_ABOVE,    /* greater, upwards */
    DB_PAGE_NOT_NULL, /* anything but NULL, upwards: the row has NULL */
    DB_PAGE_BELOW,    /* less, and not NULL, downwards */
    DB_PAGE_NULL,     /* NULL, behind all others downwards */
    DB_PAGE_SCAN_KINDS
};

struct db_page_scan {
    unsigned key; /* which is the last; all up to it are bound, but of NULL and NOT_NULL itself */
    enum db_page_scan_kind kind;
};

enum { DB_PAGE_SCANS_MAX = 2 * DB_PAGE_KEYS_MAX };

/* What is not greater than any value of a key but NULL, when SQLite compares with it; then NOT_NULL
 * is a range of an index too. */
enum db_page_floor { DB_PAGE_FLOOR_UNKNOWN, DB_PAGE_FLOOR_NUMBER, DB_PAGE_FLOOR_TEXT };

/* The statements of a page: slot 0 reads it all, in order; then those of each key. */
unsigned db_page_slots(const struct db_page *page);
unsigned db_page_slot(struct db_page_scan scan);

/* Writes the text for a slot, and a NUL, to p; NULL: nowhere. Its bytes, without the NUL. Its last
 * parameter, behind those of the scan, is how many rows at most: NULL or negative: all. */
size_t db_page_sql(const struct db_statement *of, const enum db_page_floor *floors, unsigned slot,
                   char *p);

/* The scans behind (or, with before, ahead of) a row with those keys, in the order in which their
 * rows come. */
unsigned db_page_scans(const struct db_page *page, const struct db_cell *keys, bool before,
                       struct db_page_scan scans[DB_PAGE_SCANS_MAX]);

#endif
