/* Cursors of pages: where a page of an app begins, as clients carry it.
 *
 * A cursor is the keys of the row that a page lies behind or before, sealed (seal/box.h) and bound
 * to the page it is of: the app, the file, the result and the order. Anything else is refused, so
 * nobody can look from a place that was not shown to him. */
#ifndef HANJI_HANDLERS_CURSOR_H
#define HANJI_HANDLERS_CURSOR_H

#include "db/app.h"
#include "fcgi/buf.h"
#include "seal/box.h"

/* Made of the file's secret; constant afterwards. */
struct cursor_keys {
    struct seal_box_keys box;
};

void cursor_keys_make(const unsigned char secret[DB_SECRET_BYTES], struct cursor_keys *keys);

enum { CURSOR_MAX = SEAL_BOX_TEXT_MAX };

/* Writes the cursor of a row of that page, NUL-terminated; returns its length. 0: the keys are too
 * long for one. */
size_t cursor_write(const struct cursor_keys *keys, const char *app, const struct db_script *script,
                    const struct db_statement *page, const struct db_cell *row,
                    char text[CURSOR_MAX + 1]) __attribute__((warn_unused_result));

/* What a cursor says, with its text in memory, which has room for SEAL_BOX_MAX bytes. False: it is
 * none of that page. */
bool cursor_read(const struct cursor_keys *keys, const char *app, const struct db_script *script,
                 const struct db_statement *page, struct str text, unsigned char *memory,
                 struct db_value key[DB_PAGE_KEYS_MAX]) __attribute__((warn_unused_result));

#endif
