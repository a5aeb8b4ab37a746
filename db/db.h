/* What every part of the store shares: results, errors, settings.
 *
 * The store is one SQLite file in WAL mode. db/ knows neither HTTP nor sockets, never prints and
 * never exits: it returns named causes. */
#ifndef HANJI_DB_DB_H
#define HANJI_DB_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DB_PROGRAM = 1, /* the file format this program writes; meta.min_program is compared with it */
    DB_APPLICATION_ID = 0x686e6a69, /* "hnji", at offset 68 of the file */
};

enum db_result {
    DB_OK,
    DB_NONE,         /* no such row */
    DB_PRECONDITION, /* the row is not in the state the caller required */
    DB_INVALID,      /* the value is not what its type says (JSON that does not parse) */
    DB_EXISTS,       /* a row of that name is there */
    DB_CONFLICT,     /* the row is not one that this can be done with */
    DB_TOO_LARGE,    /* the value, or what would come of it, is beyond a bound */
    DB_REUSED,       /* the idempotency key belongs to another request */
    DB_OVERLOAD,     /* the write queue is full */
    DB_BUSY,         /* somebody else held the write lock too long */
    DB_WAL_LIMIT,    /* the write-ahead log is at its bound: a reader pins it */
    DB_FULL,         /* the disk is full */
    DB_NO_MEMORY,
    DB_TIMEOUT, /* it took longer than the caller allows */
    DB_BROKEN, /* I/O error or damaged file: nothing more is written by this process */
    DB_REFUSED /* not our file, or one that needs a newer program */
};

struct db_error {
    char text[512];
};

struct db_config {
    const char *path;
    uint64_t read_cache_bytes;
    uint64_t write_cache_bytes;
    uint64_t checkpoint_bytes; /* of WAL, at which it is copied into the file */
    uint64_t wal_limit_bytes;  /* beyond which nothing is written */
    uint64_t queue_operations;
    uint64_t queue_bytes;
    uint64_t burst_operations;
    int64_t sends_keep_s; /* how long messages stay that were delivered or skipped */
};

/* Process-wide settings of SQLite; call once, before any other function here and before threads. */
enum db_result db_init(void) __attribute__((warn_unused_result));

/* Where SQLite puts temporary files (unlinked at once), instead of /var/tmp or /tmp, which may be
 * memory. After db_init, before threads. False: memory is short. */
bool db_temporary_folder(const char *folder) __attribute__((warn_unused_result));

/* "3.40.1", of the library that is linked now. */
const char *db_sqlite_version(void);

/* True when that version can corrupt a file if two connections write or checkpoint at once. */
bool db_sqlite_has_wal_race(void);

/* Commands for the sqlite3 shell that give a session the settings a writer beside the server must
 * have; ends with NULL. */
extern const char *const db_shell_commands[];

/* What the result means, for people. */
const char *db_result_text(enum db_result result);

#endif
