/* Snapshots: reading at one state of the file.
 *
 * A reader belongs to one thread. Between db_reader_begin and db_reader_end every read sees the
 * same commit, the newest one at the first read. Snapshots are short (a round of the loop): a long
 * one would keep the write-ahead log from being reused. */
#ifndef HANJI_DB_READER_H
#define HANJI_DB_READER_H

#include "db/db.h"

struct db_reader;

/* The file must exist with a current schema. On failure *reader is NULL and error says why. */
enum db_result db_reader_open(const struct db_config *config, struct db_reader **reader,
                              struct db_error *error) __attribute__((warn_unused_result));
void db_reader_close(struct db_reader *r);

enum db_result db_reader_begin(struct db_reader *r) __attribute__((warn_unused_result));

/* Ends the snapshot; everything read from it is dead. Safe without a begin. */
void db_reader_end(struct db_reader *r);

/* The last sequence number given, and the number of documents, in this snapshot. */
enum db_result db_reader_totals(struct db_reader *r, uint64_t *seq, uint64_t *documents)
    __attribute__((warn_unused_result));

#endif
