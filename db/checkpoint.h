/* Copying the write-ahead log back into the file, and its bound. Private to db/; writer's thread.
 *
 * The rule: SQLite 3.7.0 to 3.51.2 can corrupt a file when one connection resets the log while
 * another writes or checkpoints. So the only checkpoint of this process runs here, PASSIVE, on a
 * second connection, while the first holds the write lock: nobody can write meanwhile. The
 * transaction that held the lock is rolled back; the next one restarts the log when all of it was
 * copied and no reader needs it, and journal_size_limit then shrinks the file. */
#ifndef HANJI_DB_CHECKPOINT_H
#define HANJI_DB_CHECKPOINT_H

#include "db/conn.h"

struct db_checkpoint {
    struct db_conn conn; /* only checkpoints */
    int shm_fd;          /* the -shm file, to ask who holds a lock; closed after every connection */
};

/* After the schema is there. */
enum db_result db_checkpoint_open(struct db_checkpoint *c, const char *path,
                                  struct db_error *error) __attribute__((warn_unused_result));
void db_checkpoint_close(struct db_checkpoint *c);

/* Copies what no reader needs any more. writer must hold no transaction. *left_frames says how many
 * frames of the log were not copied (0: all were). */
enum db_result db_checkpoint_run(struct db_checkpoint *c, struct db_conn *writer,
                                 uint64_t *left_frames) __attribute__((warn_unused_result));

/* The process, other than this one, that holds a read lock on the log; 0 when unknown. */
int64_t db_checkpoint_pinned_by(const struct db_checkpoint *c);

#endif
