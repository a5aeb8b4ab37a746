/* What the parts of the guard share. Private to them. */
#ifndef HANJI_DB_GUARD_INTERNAL_H
#define HANJI_DB_GUARD_INTERNAL_H

#include "db/guard.h"

/* True when the deadline of what runs has passed; then it is noted that it was stopped. Long work
 * inside a function asks now and then; SQLite asks between its steps. */
bool db_guard_late(struct db_conn *c);

/* The authorizer; arg is the connection. */
int db_guard_authorize(void *arg, int action, const char *a, const char *b, const char *schema,
                       const char *within);

/* True when a table, an index, … of that name is the app's: NAME_…, compared as SQLite does. */
bool db_guard_owns(const struct db_grant *grant, const char *name);

/* Adds the functions of apps to a connection, and those that take the place of SQLite's. SQLite's
 * code. */
int db_guard_add_functions(struct db_conn *c);
int db_guard_add_text(struct db_conn *c);

/* Remembers what the file has besides the app's tables, to be compared by db_guard_schema_ok. */
enum db_result db_guard_schema_begin(struct db_conn *c, const struct db_grant *grant)
    __attribute__((warn_unused_result));

#endif
