/* Copying the write-ahead log back into the file, and its bound. Private to db/; writer's thread.
 *
 * The rule: SQLite 3.7.0 to 3.51.2 can corrupt a file when one connection resets the log while
 * another writes or checkpoints. So the only checkpoint of this process runs here, PASSIVE, on a
 * second connection, while the first holds the write lock: nobody can write meanwhile. The
 * transaction that held the lock is rolled back; the next one restarts the log when all of it was
 * copied and no reader needs it, and journal_size_limit then shrinks the file.
 *
 * A log that has grown long, because a backup or another reader kept it, would hold up all writes
 * for as long as it takes to copy. So most of it is copied beside the writes first, PASSIVE as
 * well, on a thread of its own, and what came meanwhile under the lock as always. The fault needs a
 * log that is reset meanwhile: a read transaction of ours at a mark within the log, begun before
 * the copy and ended after it, keeps everybody from that. */
#ifndef HANJI_DB_CHECKPOINT_H
#define HANJI_DB_CHECKPOINT_H

#include <pthread.h>
#include <stdatomic.h>

#include "db/conn.h"

struct db_checkpoint {
    struct db_conn conn; /* only checkpoints; of the thread while that runs */
    const char *path;    /* the caller's */
    int shm_fd;          /* the -shm file, to ask who holds a lock; closed after every connection */
    struct db_conn pin;  /* keeps the log from being reset while the thread copies */
    pthread_t thread;
    bool running;
    atomic_bool done; /* set by the thread at its end */
    int rc, frames, copied; /* of the thread */
};

/* After the schema is there. path must outlive it. */
enum db_result db_checkpoint_open(struct db_checkpoint *c, const char *path,
                                  struct db_error *error) __attribute__((warn_unused_result));
void db_checkpoint_close(struct db_checkpoint *c);

/* Copies what no reader needs any more. writer must hold no transaction. *left_frames says how many
 * frames of the log were not copied (0: all were). */
enum db_result db_checkpoint_run(struct db_checkpoint *c, struct db_conn *writer,
                                 uint64_t *left_frames) __attribute__((warn_unused_result));

/* Begins to copy the log on a thread of its own. The writer must hold no transaction and must know
 * that the log holds frames that were not copied. DB_OK: db_checkpoint_end follows. */
enum db_result db_checkpoint_begin(struct db_checkpoint *c) __attribute__((warn_unused_result));

/* Whether a copy was begun and not ended, and whether it is still at work. */
bool db_checkpoint_begun(const struct db_checkpoint *c);
bool db_checkpoint_works(const struct db_checkpoint *c);

/* Waits for the copy and ends it. *copied_frames says how many frames of the log are copied now. */
enum db_result db_checkpoint_end(struct db_checkpoint *c, uint64_t *copied_frames)
    __attribute__((warn_unused_result));

/* The process, other than this one, that holds a read lock on the log; 0 when unknown. */
int64_t db_checkpoint_pinned_by(const struct db_checkpoint *c);

#endif
