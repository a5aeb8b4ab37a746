/* Idempotency keys: operations that are applied at most once. Private to db/ but for struct db_once
 * (db/op.h); the writer's thread.
 *
 * The record stands in the same transaction as the effect, so it is there exactly when the effect
 * is, also after a crash. It is 24 hours old when the clock that runs through says so
 * (CLOCK_BOOTTIME): a wall clock that is set to another year neither ends a record early nor keeps
 * it for ever. Only after the machine was started again the wall clock is asked, and only when what
 * it says can be true; else the hours since that start count. */
#ifndef HANJI_DB_ONCE_H
#define HANJI_DB_ONCE_H

#include "db/write.h"

enum {
    DB_ONCE_SECONDS = 24 * 3600,
    DB_ONCE_ROWS_MAX = 100000,
    DB_ONCE_JUMP_SECONDS = 60, /* of the wall clock against the other, that are noticed */
};

/* True when a record of that time has expired. */
bool db_once_expired(const struct db_clock *made, const struct db_clock *now);

/* Reads the clocks of this machine. */
struct db_clock db_clock_now(void);

/* Looks for the record of an operation that has a key. DB_OK: the operation was done before; it is
 * filled as it was then, and its answer is the key of the document that was put. DB_REUSED: the key
 * was used for another request. DB_NONE: it is new. */
enum db_result db_once_find(struct db_write *w, struct db_op *op)
    __attribute__((warn_unused_result));

/* Writes the record of an operation that was just applied, and removes the oldest beyond the
 * bound. */
enum db_result db_once_note(struct db_write *w, const struct db_op *op)
    __attribute__((warn_unused_result));

/* In a transaction of its own: removes what has expired, at most `most` rows, and corrects the wall
 * times of this start's records when the clock was set meanwhile. *more: there may be more. */
enum db_result db_once_prune(struct db_conn *c, const struct db_clock *now, unsigned most,
                             bool *more) __attribute__((warn_unused_result));

#endif
