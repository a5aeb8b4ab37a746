/* Reading the outbox: a thread that has a reader of the store and the keys, and hands over messages
 * that are ready to be sent, so that the loop only sends. It is asked for a look at all lines, or
 * for messages of one; answers come in the order of what was asked. */
#ifndef HANJI_HANDLERS_COURIER_READ_H
#define HANJI_HANDLERS_COURIER_READ_H

#include "handlers/courier_lines.h"

struct keyring;
struct courier_reader;

/* One thing that is asked for, and what came of it. */
struct courier_job {
    struct courier_job *next;
    struct courier_line *line; /* NULL: a look */
    int64_t now_ms;            /* lines due until then; messages due then */
    /* of a line */
    int64_t id, after_due_ms;
    uint64_t after_seq;
    unsigned most;
    char name[DB_LINE_NAME_MAX + 1];
    /* what came of it; failed: the store could not be read, or memory is short */
    bool failed;
    struct courier_row *rows; /* from malloc */
    unsigned count;
    struct courier_item *items; /* in order */
    bool full;
    int64_t next_ms; /* when the next of the line is due; INT64_MAX: nobody knows */
};

/* wake is called, on the reader's thread, when something was done. NULL with error set: the file
 * cannot be opened, or memory is short. */
struct courier_reader *courier_reader_new(const struct db_config *db, struct keyring *keys,
                                          void (*wake)(void *arg), void *arg,
                                          struct db_error *error);
void courier_reader_free(struct courier_reader *r); /* ends the thread; safe with NULL */

/* Asks; the job is the reader's until it comes back. */
void courier_reader_ask(struct courier_reader *r, struct courier_job *job);

/* What was done, in order; NULL: nothing. */
struct courier_job *courier_reader_done(struct courier_reader *r);

void courier_job_free(struct courier_job *job); /* and what came of it; safe with NULL */

/* A hash of scheme, host and port of a URL: who is asked for how much at once. */
uint32_t courier_host(const char *url);

#endif
