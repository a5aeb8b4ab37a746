/* A backup: the store as it is at one moment, as one verified file, while the server goes on.
 *
 * The file appears under its name only when it is whole, synced and verified; until then it is a
 * hidden file beside it. A link at that name is never followed, and the store's own files are never
 * written. Called by operator commands, in a process of their own. */
#ifndef HANJI_DB_BACKUP_H
#define HANJI_DB_BACKUP_H

#include "db/check.h"
#include "db/watch.h"

struct db_backup {
    const char *dest; /* a file, or a folder: then the name is hanji-YYYYMMDD-HHMMSS.db (UTC) */
    bool replace;     /* an existing file may be replaced */
    db_check_fn *each; /* findings of the verification */
    void *arg;
    struct db_watch *watch;
    /* filled */
    char path[PATH_MAX];
    uint64_t size_bytes;
    uint64_t documents;
    uint64_t seq;
    uint64_t held_ms; /* how long the log was kept from being used again */
};

/* DB_OK; DB_REFUSED when dest must not be written (error says why); DB_INVALID when the copy has
 * faults, which the database then has as well; DB_FULL; or another cause. Unless it is DB_OK
 * nothing is left and what was there before is as it was. */
enum db_result db_backup(const struct db_config *config, struct db_backup *backup,
                         struct db_error *error) __attribute__((warn_unused_result));

#endif
