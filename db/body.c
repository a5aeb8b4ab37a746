#include "db/body.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Small beside the page cache, large enough that the calls do not count. */
enum { PIECE_BYTES = 128 << 10 };

/* Exactly n bytes at offset. */
static bool read_file(int fd, unsigned char *p, size_t n, uint64_t offset)
{
    while (n > 0) {
        ssize_t got = pread(fd, p, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        p += got;
        n -= (size_t)got;
        offset += (uint64_t)got;
    }
    return true;
}

static enum db_result fill(sqlite3_blob *blob, int fd, uint64_t n, unsigned char *piece)
{
    for (uint64_t at = 0; at < n;) {
        size_t take = n - at < PIECE_BYTES ? (size_t)(n - at) : PIECE_BYTES;
        if (!read_file(fd, piece, take, at))
            return DB_BUSY; /* the spool, not the store, is at fault: the client may try again */
        int rc = sqlite3_blob_write(blob, piece, (int)take, (int)at);
        if (rc != SQLITE_OK)
            return db_cause(rc);
        at += take;
    }
    return DB_OK;
}

static enum db_result open_blob(struct db_conn *c, int64_t id, sqlite3_blob **blob)
{
    int rc = sqlite3_blob_open(c->db, "main", "doc", "body", id, 1, blob);
    return rc == SQLITE_ERROR ? DB_EXISTS : db_cause(rc);
}

enum db_result db_body_probe(struct db_conn *c, int64_t id)
{
    sqlite3_blob *blob = NULL;
    enum db_result result = open_blob(c, id, &blob);
    sqlite3_blob_close(blob);
    return result;
}

enum db_result db_body_fill(struct db_conn *c, int64_t id, int fd, uint64_t n)
{
    sqlite3_blob *blob = NULL;
    unsigned char *piece = malloc(PIECE_BYTES);
    enum db_result result = piece != NULL ? open_blob(c, id, &blob) : DB_NO_MEMORY;
    if (result == DB_OK)
        result = fill(blob, fd, n, piece);
    int rc = sqlite3_blob_close(blob);
    free(piece);
    return result == DB_OK ? db_cause(rc) : result;
}

static enum db_result pieces(sqlite3_blob *blob, uint64_t n, unsigned char *piece,
                             bool (*each)(void *arg, const void *p, size_t n), void *arg)
{
    if ((uint64_t)sqlite3_blob_bytes(blob) != n)
        return DB_INVALID;
    for (uint64_t at = 0; at < n;) {
        size_t take = n - at < PIECE_BYTES ? (size_t)(n - at) : PIECE_BYTES;
        int rc = sqlite3_blob_read(blob, piece, (int)take, (int)at);
        if (rc != SQLITE_OK)
            return db_cause(rc);
        if (!each(arg, piece, take))
            return DB_INVALID;
        at += take;
    }
    return DB_OK;
}

enum db_result db_body_read(struct db_conn *c, int64_t id, uint64_t n,
                            bool (*each)(void *arg, const void *p, size_t n), void *arg)
{
    sqlite3_blob *blob = NULL;
    unsigned char *piece = malloc(PIECE_BYTES);
    int rc = piece != NULL ? sqlite3_blob_open(c->db, "main", "doc", "body", id, 0, &blob)
                           : SQLITE_NOMEM;
    enum db_result result = rc == SQLITE_ERROR ? DB_NONE : db_cause(rc);
    if (result == DB_OK)
        result = pieces(blob, n, piece, each, arg);
    sqlite3_blob_close(blob);
    free(piece);
    return result;
}
