/* A store in the test's folder (tdb.h) with an app called shop, as the server runs it. */
#ifndef HANJI_TESTS_UNIT_ADB_H
#define HANJI_TESTS_UNIT_ADB_H

#include "db/app.h"
#include "tests/unit/tdb.h"

/* A checked fixture: makes a store, the writer's connection, a reader, and the tables
 *     shop_item (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, price INTEGER CHECK (price >= 0)). */
extern struct db_conn adb_conn;
extern struct db_reader *adb_reader;
extern struct db_grant adb_grant;
void adb_open(void);
void adb_close(void);

/* The faults that were told last: "file:line: text\n" each. */
extern char adb_faults[4096];
struct db_faults adb_tell(void);

/* A script that must parse and compile; adb_close frees it. */
struct db_script *adb_script(enum db_script_kind kind, const char *text);

/* Values for the names of a script: pairs of name and text, NULL at the end; those not given are NULL. */
struct db_app_run adb_run(const struct db_script *s, ...);

/* An operation that runs a script for 50 ms at most. */
struct db_op *adb_op(const struct db_app_run *run);

/* The same in a burst of its own. */
struct db_op *adb_post(const struct db_app_run *run);

/* The rows an operation returned for its first result: "a|b;c|d", NULL as "-". "none" without one. */
const char *adb_answer(const struct db_op *op);

/* The rows of a cursor in that form, which is closed. */
const char *adb_rows(struct db_cursor *c);

/* Files of the app's schema: name, text, …, NULL. The operation's result; adb_faults is its fault. */
enum db_result adb_schema(const char *name, const char *text, ...);

#endif
