/* Results of apps' statements: a cursor over rows, whether they are being read or were recorded.
 *
 * A recorded result is bytes: a burst makes them and the loop answers from them, a page is read
 * into them so that it can be turned round, and the record of an Idempotency-Key keeps them. */
#ifndef HANJI_DB_ROWS_H
#define HANJI_DB_ROWS_H

#include "db/db.h"

enum db_cell_type { DB_CELL_NULL, DB_CELL_INT, DB_CELL_REAL, DB_CELL_TEXT, DB_CELL_BLOB };

/* Text is not NUL-terminated, may hold NULs, and is what SQLite holds: UTF-8 as far as it was
 * written so. */
struct db_cell {
    uint8_t type;
    const void *p; /* TEXT and BLOB; dies at the cursor's next row */
    size_t n;
    int64_t i;
    double r;
};

struct db_cursor;

unsigned db_cursor_columns(const struct db_cursor *c);
const char *db_cursor_column(const struct db_cursor *c, unsigned i);

/* Goes on to the next row: DB_OK, DB_NONE behind the last, else why it failed (see
 * db_app_fault). */
enum db_result db_cursor_next(struct db_cursor *c) __attribute__((warn_unused_result));

/* A cell of the row that next found. */
void db_cursor_cell(const struct db_cursor *c, unsigned column, struct db_cell *cell);

/* Frees it. Safe with NULL. */
void db_cursor_close(struct db_cursor *c);

/* Recorded results, of any number of statements. */
struct db_rows {
    const unsigned char *p;
    size_t n;
};

/* A cursor over the result of that statement (its index in the script) in rows, which must outlive
 * it. DB_NONE: it is not there. */
enum db_result db_rows_open(struct db_rows rows, unsigned statement, struct db_cursor **cursor)
    __attribute__((warn_unused_result));

/* What result i in rows is called ("" nothing), and which statement it is of; false behind the
 * last. */
bool db_rows_result(struct db_rows rows, unsigned i, const char **name, unsigned *statement);

#endif
