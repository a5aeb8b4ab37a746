/* Verifies a file: SQLite's own check and the invariants of the schema. Reads only. */
#ifndef HANJI_DB_CHECK_H
#define HANJI_DB_CHECK_H

#include "db/db.h"

/* Calls each with every finding, one sentence. DB_OK when there was none, DB_INVALID when there
 * were, another cause when the file cannot be read (then error says why). */
typedef void db_check_fn(void *arg, const char *finding);
enum db_result db_check(const struct db_config *config, db_check_fn *each, void *arg,
                        struct db_error *error) __attribute__((warn_unused_result));

#endif
