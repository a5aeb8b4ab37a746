/* Reading: the SQL of a GET is run in a snapshot, and its answer built.
 *
 * On the loop's thread at first, for as long as the loop can spare; else on a thread of the pool,
 * from the beginning. The same code in both places: a reading knows no call. */
#ifndef HANJI_HANDLERS_APP_READ_H
#define HANJI_HANDLERS_APP_READ_H

#include "handlers/app_visit.h"
#include "handlers/cursor.h"

struct app_reading {
    const struct app_visit *visit;
    struct db_reader *reader; /* its snapshot is begun */
    uint64_t limit_us;
    size_t max_bytes; /* of the answer in memory */
    bool may_spill;   /* CSV and lines may go on in a file */
    struct app_answer *answer;
    struct buf *pieces;
    /* filled when it failed */
    enum db_result result;
    struct db_app_fault fault;
    bool too_large; /* the answer: more than max_bytes */
};

enum app_read {
    APP_READ_OK,     /* the answer is what is to be sent, an error that SQL said as well */
    APP_READ_SLOW,   /* it was stopped when its time was over */
    APP_READ_LARGE,  /* the answer does not fit max_bytes */
    APP_READ_FAILED, /* result and fault say why */
};

enum app_read app_read(struct app_reading *x) __attribute__((warn_unused_result));

/* Fails a reading for what is the app's fault; always false. */
bool app_read_fault(struct app_reading *x, unsigned line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Answers that what the client sent is wrong; always false. */
bool app_read_refuse(struct app_reading *x, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Reads the page that the query asks for of a statement that has one. The caller frees page
 * whatever comes back. */
bool app_read_page(struct app_reading *x, unsigned statement, struct db_page_read *page)
    __attribute__((warn_unused_result));

/* Puts the path of the page behind, or before, one that was read into link; its length is 0 when
 * there is none. */
bool app_read_link(struct app_reading *x, unsigned statement, const struct db_page_read *page,
                   bool next, struct buf *link) __attribute__((warn_unused_result));

/* The rows of a statement in the formats that are not pages; see app_rows.c. */
bool app_rows_json(struct app_reading *x) __attribute__((warn_unused_result));
bool app_rows_lines(struct app_reading *x) __attribute__((warn_unused_result));

/* The rows that a write recorded, as JSON. */
bool app_rows_recorded(struct app_reading *x, struct db_rows rows)
    __attribute__((warn_unused_result));

/* handlers/app_page.c: the route's template. */
bool app_page(struct app_reading *x) __attribute__((warn_unused_result));

/* True when the statement's rows are a result that people see. */
static inline bool app_read_shows(const struct db_statement *s)
{
    return s->returns && !s->set && s->name != NULL;
}

#endif
