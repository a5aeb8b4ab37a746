#include "db/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Bytes of the -shm file that readers lock: WAL_READ_LOCK(0..4), see "WAL-index locks" in SQLite's
 * file-format documentation. */
enum {
    READ_LOCKS_AT = 123,
    READ_LOCKS = 5,
    CACHE_BYTES = 65536,
    STACK_BYTES = 256 << 10,
};

enum db_result db_checkpoint_open(struct db_checkpoint *c, const char *path,
                                  struct db_error *error)
{
    char shm[4096];
    *c = (struct db_checkpoint){.path = path, .shm_fd = -1};
    enum db_result result = db_conn_open(&c->conn, path, DB_WRITE, CACHE_BYTES, error);
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
    uint64_t copied;
    if (c->running)
        (void)!db_checkpoint_end(c, &copied);
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

static void *copy(void *arg)
{
    struct db_checkpoint *c = arg;
    c->rc = sqlite3_wal_checkpoint_v2(c->conn.db, "main", SQLITE_CHECKPOINT_PASSIVE, &c->frames,
                                      &c->copied);
    atomic_store(&c->done, true);
    return NULL;
}

static bool start_thread(struct db_checkpoint *c)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0)
        return false;
    bool ok = pthread_attr_setstacksize(&attr, STACK_BYTES) == 0 &&
              pthread_create(&c->thread, &attr, copy, c) == 0;
    pthread_attr_destroy(&attr);
    return ok;
}

/* A read transaction takes a mark within the log, since not all of it was copied. */
static enum db_result hold_pin(struct db_checkpoint *c)
{
    struct db_error error;
    enum db_result result = db_conn_open(&c->pin, c->path, DB_READ, CACHE_BYTES, &error);
    if (result != DB_OK)
        return result;
    db_conn_keep_wal(&c->pin);
    int rc = sqlite3_exec(c->pin.db, "BEGIN; SELECT count(*) FROM meta", NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        db_conn_close(&c->pin);
    return db_cause(rc);
}

enum db_result db_checkpoint_begin(struct db_checkpoint *c)
{
    enum db_result result = hold_pin(c);
    if (result != DB_OK)
        return result;
    c->frames = c->copied = 0;
    atomic_store(&c->done, false);
    c->running = start_thread(c);
    if (c->running)
        return DB_OK;
    db_conn_close(&c->pin);
    return DB_NO_MEMORY;
}

bool db_checkpoint_begun(const struct db_checkpoint *c)
{
    return c->running;
}

bool db_checkpoint_works(const struct db_checkpoint *c)
{
    return c->running && !atomic_load(&c->done);
}

enum db_result db_checkpoint_end(struct db_checkpoint *c, uint64_t *copied_frames)
{
    pthread_join(c->thread, NULL);
    c->running = false;
    db_conn_close(&c->pin);
    *copied_frames = c->rc == SQLITE_OK && c->copied > 0 ? (uint64_t)c->copied : 0;
    return db_cause(c->rc);
}

int64_t db_checkpoint_pinned_by(const struct db_checkpoint *c)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = READ_LOCKS_AT, .l_len = READ_LOCKS};
    if (c->shm_fd < 0 || fcntl(c->shm_fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
        return 0;
    return lock.l_pid;
}
