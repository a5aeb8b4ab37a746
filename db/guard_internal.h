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
int db_guard_add_functions(struct db_conn *c); /* documents and what belongs to them */
int db_guard_add_text(struct db_conn *c);
int db_guard_add_encode(struct db_conn *c);
int db_guard_add_console(struct db_conn *c);
int db_guard_add_fts(struct db_conn *c);
int db_guard_add_printf(struct db_conn *c);
int db_guard_add_head(struct db_conn *c);

/* A function of SQL for the tables of those. */
struct db_guard_function {
    const char *name;
    void (*call)(sqlite3_context *ctx, int argc, sqlite3_value **argv);
    int args;
    int flags; /* SQLITE_DETERMINISTIC, … */
};
int db_guard_add(struct db_conn *c, const struct db_guard_function *f, size_t count);

/* The answer of a function that is not to go on: "NAME: TEXT". */
void db_guard_fail(sqlite3_context *ctx, const char *name, const char *text);

/* Puts an operation at the end of what the statement wants done, and owns it. False, and answered:
 * there is no more room, or op is NULL for want of memory. */
bool db_guard_queue(sqlite3_context *ctx, const char *name, struct db_op *op)
    __attribute__((warn_unused_result));

/* True when what runs may write; else the function has been answered. */
bool db_guard_writes(sqlite3_context *ctx, const char *name) __attribute__((warn_unused_result));

/* The text of an argument; p is NULL when it is NULL or memory is short. */
struct db_guard_str {
    const char *p;
    size_t n;
};
struct db_guard_str db_guard_str(sqlite3_value *v);

/* Remembers what the file has besides the app's tables, to be compared by db_guard_schema_ok. */
enum db_result db_guard_schema_begin(struct db_conn *c, const struct db_grant *grant)
    __attribute__((warn_unused_result));

#endif
