/* The change feed: what changed, in order.
 *
 * A position in it is a sequence number: everything up to it is known. Entries become visible in
 * the order of their numbers, since the file has one writer at a time; so a reader that goes on
 * from the last number it saw misses nothing and sees nothing twice. An entry of a document that
 * changed again later may be gone (it is pruned in the background); the last one of each never
 * is. */
#ifndef HANJI_DB_CHANGE_H
#define HANJI_DB_CHANGE_H

#include "db/reader.h"

/* One entry. The key is dead when the callback returns. */
struct db_change {
    uint64_t seq;
    const char *key;
    size_t key_len;
    bool deleted;
};

/* Where a feed may go on from, in a snapshot: from no number below horizon (the database was
 * restored there: what was seen before is of another life of it) and none above last. */
struct db_change_bounds {
    uint64_t horizon; /* 0: from the beginning */
    uint64_t last;    /* sequence number given last */
};

enum db_result db_change_bounds(struct db_reader *r, struct db_change_bounds *bounds)
    __attribute__((warn_unused_result));

/* Calls each for the entries behind since, in order, at most limit, until it returns false. */
enum db_result db_change_list(struct db_reader *r, uint64_t since, unsigned limit,
                              bool (*each)(void *arg, const struct db_change *change), void *arg)
    __attribute__((warn_unused_result));

/* A number that differs from the one before when any other connection, of this process or another,
 * has committed meanwhile. Outside a snapshot. */
enum db_result db_change_version(struct db_reader *r, uint64_t *version)
    __attribute__((warn_unused_result));

#endif
