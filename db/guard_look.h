/* Looking at the text of SQL for what the authorizer is not asked about. Private to the guard; pure
 * functions, any thread.
 *
 * The text is taken apart into words as SQLite does it. What is found here is refused also where
 * SQLite would refuse it later. */
#ifndef HANJI_DB_GUARD_LOOK_H
#define HANJI_DB_GUARD_LOOK_H

#include "db/db.h"

enum {
    DB_LOOK_VIEWS_MAX = 200,        /* of an app */
    DB_LOOK_DEPTH_MAX = 24,         /* of views and WITH in each other */
    DB_LOOK_TERMS_MAX = 100, /* UNION and the like; SQLite goes down a stack for each */
    DB_LOOK_BYTES_MAX = 512 << 10,  /* of a statement with all that it names written out */
};

/* A view of the app. */
struct db_look_view {
    const char *name, *sql;
    size_t bytes;   /* written out; 0: not known yet */
    unsigned depth, terms;
    bool busy; /* being looked at: a circle, or another thing of that name */
};

struct db_look {
    struct db_look_view *view;
    unsigned views;
};

/* True when the text ends a transaction: RAISE(ROLLBACK, …), OR ROLLBACK, ON CONFLICT ROLLBACK. */
bool db_look_rolls_back(const char *sql, size_t n);

/* True when tables are joined by the names of columns: NATURAL, or USING and a bracket. SQLite asks
 * the authorizer neither for the columns that this compares nor for those that it puts out. */
bool db_look_joins_by_names(const char *sql, size_t n);

/* True when a word of it begins with "sqlite_". */
bool db_look_names_catalogue(const char *sql, size_t n);

/* Whether what the statement names by views and WITH, written out each time, stays within bounds:
 * SQLite writes it out in memory, and forty lines can make it 2^40 copies. */
bool db_look_is_small(struct db_look *look, const char *sql, size_t n);

/* The table that an FTS5 table takes its content from, as a copy in name; "" when it has none. */
void db_look_content(const char *sql, char name[64]);

#endif
