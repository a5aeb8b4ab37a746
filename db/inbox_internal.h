/* What the parts of db/inbox share with the writer. Private to db/. */
#ifndef HANJI_DB_INBOX_INTERNAL_H
#define HANJI_DB_INBOX_INTERNAL_H

#include "db/app_internal.h"
#include "db/inbox.h"

/* Runs DB_OP_INBOX_TAKE in the savepoint that db/burst.c holds around it; do_op runs the app's
 * script. */
enum db_result db_inbox_take(struct db_write *w, struct db_op *op, db_apply_one_fn *do_op)
    __attribute__((warn_unused_result));

/* One step, in a transaction of its own: forgets ids that came more than DB_INBOX_SEEN_DAYS before
 * the newest, and deletes what belongs to inboxes that were removed. About `most` rows; *more:
 * there is more. */
enum db_result db_inbox_tidy(struct db_conn *c, unsigned most, bool *more)
    __attribute__((warn_unused_result));

#endif
