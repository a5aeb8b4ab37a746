/* Keeping the search index in line with the documents. Private to db/; writer's thread.
 *
 * The operations DB_OP_SEARCH_* are in db/write.h. */
#ifndef HANJI_DB_SEARCH_INDEX_H
#define HANJI_DB_SEARCH_INDEX_H

#include "db/conn.h"

/* One bounded step in a transaction of its own; none is begun when no collection is searchable.
 * *more: there is more to do. A damaged index is noted in the file and is no failure here. */
enum db_result db_search_step(struct db_conn *c, bool *more) __attribute__((warn_unused_result));

#endif
