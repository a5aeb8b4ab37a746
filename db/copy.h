/* A whole store at one state, copied into a new file. Private to db/.
 *
 * The state is held by one read transaction from the first page to the last: the copy never starts
 * over, however much is written meanwhile, and takes no lock that a writer waits for. What is
 * written meanwhile stays in the write-ahead log, which cannot be used again until the transaction
 * ends.
 *
 * The copy is an ordinary SQLite file without a log beside it (rollback journal in its header); the
 * server turns it into WAL mode when it opens it. */
#ifndef HANJI_DB_COPY_H
#define HANJI_DB_COPY_H

#include "db/conn.h"
#include "db/watch.h"

/* What a state holds. */
struct db_totals {
    uint64_t pages;
    uint64_t page_bytes;
    uint64_t documents;
    uint64_t seq; /* the last one given */
    int64_t schema;
};

/* Opens path for reading, refuses files that are not hanji's or too new, and begins the snapshot.
 * On failure nothing is left open. The caller ends it with db_conn_close. */
enum db_result db_copy_begin(struct db_conn *from, const char *path, struct db_totals *totals,
                             struct db_error *error) __attribute__((warn_unused_result));

/* Copies every page into the empty file that fd has open and that is called `to`, and syncs it. */
enum db_result db_copy_pages(struct db_conn *from, const char *to, int fd, struct db_watch *watch,
                             struct db_error *error) __attribute__((warn_unused_result));

/* Opens a copy for the changes that make it a store again: nothing is left beside it. */
enum db_result db_copy_open(struct db_conn *c, const char *path, struct db_error *error)
    __attribute__((warn_unused_result));

/* The totals of what c sees now. */
enum db_result db_copy_totals(struct db_conn *c, struct db_totals *totals, struct db_error *error)
    __attribute__((warn_unused_result));

/* Looks at a file before SQLite opens it: DB_REFUSED with the reason when it is no regular file, no
 * SQLite file, another program's, or shorter than its header says. A log beside it may hold the
 * rest; then only the kind of file is looked at. */
enum db_result db_copy_look(const char *path, struct db_error *error)
    __attribute__((warn_unused_result));

#endif
