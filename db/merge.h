/* JSON merge patches (RFC 7396). Private to db/; the writer's thread.
 *
 * Not SQLite's json_patch, for two reasons: in 3.40 "\u0061" and "a" are two names to it, and its
 * time grows with the square of the members of a patch (26 s for 100,000), while nobody else can
 * write. Here it grows with the bytes. SQLite still says what is JSON.
 *
 * What the patch does not name stays byte for byte: large numbers, 1.50, \u0000, order. White space
 * between members goes. Of a name that the patch has twice the last one counts; of one that the
 * document has twice, all are meant. */
#ifndef HANJI_DB_MERGE_H
#define HANJI_DB_MERGE_H

#include "db/conn.h"

struct db_merge {
    const char *target, *patch; /* JSON, when it is: that is looked at */
    size_t target_len, patch_len;
    size_t head;        /* bytes left free before the result */
    unsigned char *out; /* head, then the result; from malloc, the caller's */
    size_t out_len;     /* with head */
};

/* DB_OK: out is there. DB_INVALID: the patch is not JSON. DB_CONFLICT: the target is not.
 * DB_TOO_LARGE: one of them is (DB_PATCH_BYTES_MAX). DB_NO_MEMORY. */
enum db_result db_merge(struct db_conn *c, struct db_merge *m) __attribute__((warn_unused_result));

#endif
