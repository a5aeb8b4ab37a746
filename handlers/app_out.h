/* Rows of an app's statements, written out: as JSON, CSV (RFC 4180) or lines of JSON.
 *
 * Numbers are exact: integers as their digits, reals in the fewest digits that are read back as the
 * same number. Text is UTF-8 (what is not becomes U+FFFD), bytes are base64. Columns whose names
 * begin with '_' steer the answer and are left out; "x:json" is x, and its text stands there as it
 * is when it is JSON. Into a buffer with a bound. Pure but for the cursor, any thread. */
#ifndef HANJI_HANDLERS_APP_OUT_H
#define HANJI_HANDLERS_APP_OUT_H

#include "db/rows.h"
#include "fcgi/buf.h"

enum app_format { APP_FORMAT_JSON, APP_FORMAT_HTML, APP_FORMAT_CSV, APP_FORMAT_LINES };

/* Where it is written. Sticky failure: then nothing more is added. */
struct app_out {
    struct buf *text;
    size_t max_bytes;
    bool too_large; /* it failed because of max_bytes */
    bool failed;
};

void app_out_add(struct app_out *o, const char *p, size_t n);

/* A string of JSON with its quotes. */
void app_out_string(struct app_out *o, const char *p, size_t n);

/* A cell as text for people: "" for NULL, digits, text as it is, bytes in base64. Into `to`, unless
 * it is text, which is lent; false: memory is short. */
bool app_out_text(const struct db_cell *cell, struct buf *to, struct str *text)
    __attribute__((warn_unused_result));

enum { APP_REAL_MAX = 32 };

/* The digits of a finite real, which has a point or an exponent in them; returns how many. */
size_t app_out_real(char to[APP_REAL_MAX], double r);

/* The columns of a cursor as they are written, made once for all its rows. */
struct app_columns {
    unsigned count;
    struct app_column {
        unsigned index; /* in the cursor */
        uint32_t at, n; /* its name in the text of pieces: `"name":` with a comma before it */
        bool json;      /* its text is JSON */
    } column[100];
};

/* Fills it; pieces are appended to text. False: memory is short. */
bool app_out_columns(const struct db_cursor *cursor, struct buf *text, struct app_columns *columns)
    __attribute__((warn_unused_result));

/* The row that the cursor is at, as an object; in lines it has no line break inside. */
void app_out_json(struct app_out *o, const struct db_cursor *cursor, const struct app_columns *c,
                  const struct buf *pieces, bool line);

/* As a line of CSV, which ends in CRLF; and the line with the names. NULL is nothing, "" is "". */
void app_out_csv(struct app_out *o, const struct db_cursor *cursor, const struct app_columns *c);
void app_out_csv_head(struct app_out *o, const struct db_cursor *cursor,
                      const struct app_columns *c);

#endif
