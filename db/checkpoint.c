#include "db/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Bytes of the -shm file that readers lock: WAL_READ_LOCK(0..4), see "WAL-index locks" in SQLite's
 * file-format documentation. */
enum { READ_LOCKS_AT = 123, READ_LOCKS = 5, CHECKPOINT_CACHE_BYTES = 65536 };

enum db_result db_checkpoint_open(struct db_checkpoint *c, const char *path,
                                  struct db_error *error)
{
    char shm[4096];
    c->shm_fd = -1;
    enum db_result result = db_conn_open(&c->conn, path, DB_WRITE, CHECKPOINT_CACHE_BYTES, error);
    if (result != DB_OK)
        return result;
    db_conn_keep_wal(&c->conn);
    /* A connection that has never read the file does nothing when told to checkpoint. */
    if (sqlite3_exec(c->conn.db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL) !=
        SQLITE_OK) {
        db_set_error(error, "%s: %s", path, sqlite3_errmsg(c->conn.db));
        return db_cause(sqlite3_extended_errcode(c->conn.db));
    }
    if (snprintf(shm, sizeof shm, "%s-shm", path) < (int)sizeof shm)
        c->shm_fd = open(shm, O_RDWR | O_CLOEXEC);
    return DB_OK;
}

void db_checkpoint_close(struct db_checkpoint *c)
{
    db_conn_close(&c->conn);
    if (c->shm_fd >= 0)
        close(c->shm_fd);
    c->shm_fd = -1;
}

enum db_result db_checkpoint_run(struct db_checkpoint *c, struct db_conn *writer,
                                 uint64_t *left_frames)
{
    int frames = 0, copied = 0;
    int rc = db_conn_do(writer, SLOT_BEGIN_WRITE, "BEGIN IMMEDIATE");
    if (rc != SQLITE_DONE)
        return db_cause(rc);
    rc = sqlite3_wal_checkpoint_v2(c->conn.db, "main", SQLITE_CHECKPOINT_PASSIVE, &frames,
                                   &copied);
    db_conn_do(writer, SLOT_ROLLBACK, "ROLLBACK");
    if (rc != SQLITE_OK)
        return db_cause(rc);
    *left_frames = frames > copied ? (uint64_t)(frames - copied) : 0;
    return DB_OK;
}

int64_t db_checkpoint_pinned_by(const struct db_checkpoint *c)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = READ_LOCKS_AT, .l_len = READ_LOCKS};
    if (c->shm_fd < 0 || fcntl(c->shm_fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
        return 0;
    return lock.l_pid;
}
