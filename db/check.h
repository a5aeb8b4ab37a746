/* Verifies a store: SQLite's own check and what must hold between the tables. Reads only.
 *
 * A fault is something that the server relies on and that does not hold: feed, ETags, counts, the
 * objects of the schema. A note is a row that somebody wrote past the API and that the API would
 * not have taken; nothing breaks by it. */
#ifndef HANJI_DB_CHECK_H
#define HANJI_DB_CHECK_H

#include "db/db.h"

/* Called with every finding, one sentence. */
typedef void db_check_fn(void *arg, bool fault, const char *finding);

/* Checks the file at config->path as it is at one moment, also beside a busy server. DB_OK when
 * there was no fault, DB_INVALID when there were, another cause when the file cannot be read (then
 * error says why). */
enum db_result db_check(const struct db_config *config, db_check_fn *each, void *arg,
                        struct db_error *error) __attribute__((warn_unused_result));

struct db_conn;

/* Private to db/: the two halves, on an open connection whose state does not change meanwhile. The
 * rules are those of the steps that the file has. derived: also what can be made again from the
 * rest, the search index; a copy is no worse for a fault in it. */
enum db_result db_check_integrity(struct db_conn *c, db_check_fn *each, void *arg,
                                  struct db_error *error) __attribute__((warn_unused_result));
enum db_result db_check_rules(struct db_conn *c, bool derived, db_check_fn *each, void *arg,
                              struct db_error *error) __attribute__((warn_unused_result));

#endif
