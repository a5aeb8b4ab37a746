/* An app called shop in a store of the test's folder, and what its SQL is answered. */
#ifndef HANJI_TESTS_UNIT_GUARDED_H
#define HANJI_TESTS_UNIT_GUARDED_H

#include "db/guard.h"
#include "tests/unit/tdb.h"

/* A checked fixture: a store with the tables of shop (item, list, note), those of another app (shops_secret) and a
 * document. guarded_conn is the writer's connection, guarded_reader a reader's. */
extern struct db_conn guarded_conn, guarded_reader;
extern struct db_grant guarded_grant;
extern struct db_error guarded_error;
extern char guarded_first[256]; /* the first column of the first row that came last */
void guarded_open(void);
void guarded_close(void);

/* Runs all statements of sql as the app: those of a GET on the reader, others on the writer's connection in a savepoint,
 * which is kept if all goes well. */
enum db_result guarded_run(enum db_guard_mode mode, const char *sql);

/* The same with so many milliseconds. */
enum db_result guarded_run_ms(enum db_guard_mode mode, const char *sql, unsigned ms);

/* A file of schema/ with what belongs to it: db_guard_text before each statement, db_guard_schema_ok at the end. */
enum db_result guarded_schema(const char *sql);

/* What a GET's first row begins with, in the text guarded_first; the test fails when there is none. */
const char *guarded_ask(const char *sql);

#endif
