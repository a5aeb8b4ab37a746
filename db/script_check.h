/* What the parts of checking a script share. Private to db/script. */
#ifndef HANJI_DB_SCRIPT_CHECK_H
#define HANJI_DB_SCRIPT_CHECK_H

#include <sqlite3.h>

#include "db/page.h"
#include "db/reader_internal.h"

struct db_check {
    struct db_reader *reader;
    struct db_script *script;
    struct db_faults *faults;
    unsigned told; /* faults that were told before */
    sqlite3_stmt *statement[DB_SCRIPT_STATEMENTS_MAX];
    unsigned names;
    struct db_script_name name[DB_SCRIPT_NAMES_MAX]; /* the texts are the statements' */
    int set_by[DB_SCRIPT_NAMES_MAX]; /* the first statement that does; -1: none */
    bool many_names;
    struct db_page *page[DB_SCRIPT_STATEMENTS_MAX];
    enum db_page_floor floor[DB_SCRIPT_STATEMENTS_MAX][DB_PAGE_KEYS_MAX];
};

/* Compiles SQL that is, or is made of, a statement. NULL: it was told why not. The guard is on. */
sqlite3_stmt *db_script_compile(struct db_check *k, const struct db_statement *of, const char *sql,
                                size_t bytes);

/* What must be true of pages: their keys are columns of the result, and each of their statements
 * compiles. The guard is on. */
void db_script_check_pages(struct db_check *k);

/* What SQLite tells about them: whether some key tells rows apart, and what stands below its
 * values. The guard is off. */
void db_script_look_at_pages(struct db_check *k);

#endif
