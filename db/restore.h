/* Restoring a backup in place of the database.
 *
 * Kept true: until the copy is whole, verified, brought to this program's schema and synced,
 * nothing of the old database is touched; then one rename puts it in place, so that a crash at any
 * moment leaves the old store or the new one, each whole. The old one is kept under another name. A
 * log of the old one never stands beside the new one.
 *
 * Sequence numbers, and so ETags, are never given twice: the new store goes on from the next
 * multiple of 2^40 above all numbers that the backup and the old store know of. The step is as
 * large as that because numbers that were given after the backup by a store that is lost cannot be
 * known. It is written to meta as `horizon`: a feed asked from before it cannot be continued. */
#ifndef HANJI_DB_RESTORE_H
#define HANJI_DB_RESTORE_H

#include "db/check.h"
#include "db/watch.h"

struct db_restore {
    const char *source;
    db_check_fn *each; /* findings of the verification */
    void *arg;
    struct db_watch *watch;
    /* filled */
    uint64_t documents;
    uint64_t backup_seq; /* the last one of the backup */
    uint64_t horizon;    /* where the new store goes on */
    char kept[PATH_MAX]; /* where the old database is now; "" when there was none */
    bool unreadable;     /* it could not be opened; its log, if any, is kept beside it */
};

/* The caller holds the lock that keeps servers away. DB_OK; DB_REFUSED when the source is no backup
 * for this program or the database is in use (error says why); DB_INVALID when the source has
 * faults; DB_FULL; or another cause. Unless it is DB_OK the database is as it was. */
enum db_result db_restore(const struct db_config *config, struct db_restore *restore,
                          struct db_error *error) __attribute__((warn_unused_result));

#endif
