/* A burst: several operations in one transaction with one sync. Private to db/; writer's thread. */
#ifndef HANJI_DB_BURST_H
#define HANJI_DB_BURST_H

#include "db/conn.h"
#include "db/op.h"

/* Applies every operation of the list in order and commits. Fills result (and created, seq) of
 * each. An operation whose precondition fails, fails alone; anything that ends the transaction
 * fails all of them, and nothing of the burst is in the file then. *commit_us is the time of the
 * COMMIT, 0 when nothing was written. Returns DB_BROKEN when the store must not be written
 * again. */
enum db_result db_burst_run(struct db_conn *c, struct db_op *list, uint64_t *commit_us)
    __attribute__((warn_unused_result));

/* Removes change entries that later ones made useless, in a transaction of its own that looks at up
 * to `look` later ones. *left says how many are still to be looked at. */
enum db_result db_burst_prune(struct db_conn *c, unsigned look, uint64_t *left)
    __attribute__((warn_unused_result));

/* Microseconds of the monotonic clock. */
uint64_t db_clock_us(void);

#endif
