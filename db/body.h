/* Bodies too large for memory: from a file into a row, from a row in pieces. Private to db/. */
#ifndef HANJI_DB_BODY_H
#define HANJI_DB_BODY_H

#include "db/conn.h"

/* Writes n bytes of file fd into the body of document id, which is a zeroblob of that size. Within
 * the write transaction that made it. DB_EXISTS: SQLite does not write into the column piece by
 * piece, since an index reads it. */
enum db_result db_body_fill(struct db_conn *c, int64_t id, int fd, uint64_t n)
    __attribute__((warn_unused_result));

/* DB_OK when db_body_fill can write the body of document id, else as that. */
enum db_result db_body_probe(struct db_conn *c, int64_t id) __attribute__((warn_unused_result));

/* Calls each with the n bytes of the body of document id, in order, in pieces, until it returns
 * false (DB_INVALID). */
enum db_result db_body_read(struct db_conn *c, int64_t id, uint64_t n,
                            bool (*each)(void *arg, const void *p, size_t n), void *arg)
    __attribute__((warn_unused_result));

#endif
