/* The writer: one thread that commits operations in bursts (group commit).
 *
 * Invariants. Operations are applied in the order they were submitted. An operation is delivered
 * exactly once, with its result, after the sync that made it durable or after it failed. The queue
 * is bounded in operations and bytes. Only this thread writes and checkpoints.
 *
 * A lone writer never waits. When the last bursts held several, the next one gathers for them,
 * bounded by a fraction of the last commit: without that, closed-loop clients split into bursts of
 * 1 and N-1 and each rides every second sync. */
#ifndef HANJI_DB_WRITER_H
#define HANJI_DB_WRITER_H

#include "db/op.h"

struct db_writer;

struct db_writer_hooks {
    /* On the writer's thread: operations (list by next) with their results; they belong to the
     * callee now. Must not block. */
    void (*deliver)(void *arg, struct db_op *list);
    /* On the writer's thread, once: the store must not be written again (a sync failed, the file is
     * damaged); every operation from now on gets DB_BROKEN. */
    void (*broken)(void *arg);
    void *arg;
};

enum { DB_BURST_CLASSES = 17 };

struct db_writer_stats {
    uint64_t bursts;
    uint64_t operations;
    uint64_t histogram[DB_BURST_CLASSES]; /* bursts of up to 2^i operations, more than 2^(i-1) */
    uint64_t commit_us_sum;
    uint64_t commit_p50_us, commit_p99_us; /* of the last 1024 commits */
    uint64_t queue_operations, queue_bytes;
    uint64_t wal_bytes; /* frames in use, not the file's size */
    uint64_t checkpoints;
    int64_t pinned_by; /* pid that pins the log, when that was looked at last */
};

/* Opens (or creates and migrates) the file and starts the thread. config is copied but for path,
 * which must outlive the writer. */
enum db_result db_writer_start(const struct db_config *config, const struct db_writer_hooks *hooks,
                               struct db_writer **writer, struct db_error *error)
    __attribute__((warn_unused_result));

/* Any thread: asks for room in the queue. False: full; the caller answers so and frees op. After
 * true the operation is submitted or released. */
bool db_writer_reserve(struct db_writer *w, struct db_op *op) __attribute__((warn_unused_result));

/* Any thread: gives the room back of an operation that will not be submitted after all. */
void db_writer_release(struct db_writer *w, const struct db_op *op);

/* Any thread: queues operations that were reserved, in order of the list. */
void db_writer_submit(struct db_writer *w, struct db_op *list);

/* Commits and delivers what is queued, checkpoints, ends the thread, closes the file. */
void db_writer_stop(struct db_writer *w);

void db_writer_get_stats(struct db_writer *w, struct db_writer_stats *stats);

/* Without a thread, for operator commands when no server runs: opens, applies one operation with
 * its own sync, closes. Returns what opening said, or the operation's result. */
enum db_result db_writer_once(const struct db_config *config, struct db_op *op,
                              struct db_error *error) __attribute__((warn_unused_result));

#endif
