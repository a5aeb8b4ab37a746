/* A store in the test's folder (temp_use), as the server, as an operator and as a stranger see it. */
#ifndef HANJI_TESTS_UNIT_TDB_H
#define HANJI_TESTS_UNIT_TDB_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "db/burst.h"
#include "db/conn.h"
#include "db/reader.h"
#include "db/writer.h"
#include "tests/unit/temp.h"

/* A checked fixture: initialises SQLite and makes a store, whose settings are tdb_config. */
extern struct db_config tdb_config;
extern struct db_error tdb_error;
void tdb_make(void);

/* The same without a file. */
void tdb_init(void);

/* A connection such as the writer's: the file is made when it is not there, and brought to the schema. */
void tdb_open(struct db_conn *c);

/* A person's connection: the sqlite3 shell without any setting, but patient. */
sqlite3 *tdb_shell(void);

/* Runs SQL that must go well. */
void tdb_sql(sqlite3 *db, const char *sql);

/* Runs SQL and says whether it went well. */
bool tdb_try(sqlite3 *db, const char *sql);

/* One integer that a query gives. */
int64_t tdb_ask(sqlite3 *db, const char *sql);

/* The same in a connection of its own, which is closed. */
int64_t tdb_ask_file(const char *sql);

/* Fails the test when `hanji check` would find something, or the totals are not those. */
void tdb_is_sound(void);

/* Operations on documents of type text/plain. */
struct db_op *tdb_put(const char *key, const char *body);
struct db_op *tdb_delete(const char *key);
struct db_op *tdb_put_bytes(const char *key, const char *type, enum db_value_type form, const void *body, size_t n);

/* Links operations to a list: tdb_list(a, b, c, NULL). */
struct db_op *tdb_list(struct db_op *first, ...);
void tdb_free(struct db_op *list);

/* Runs the list in one burst of c. */
enum db_result tdb_burst(struct db_conn *c, struct db_op *list);

/* What a writer delivers. */
struct inbox {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct db_op *head, **tail;
    unsigned count;  /* delivered since tdb_start, taken or not */
    unsigned batches;
    atomic_uint broken;
};

/* Starts a writer that delivers into the inbox. */
struct db_writer *tdb_start(struct inbox *in);

/* Waits until n operations were delivered since the start and returns what is there (list by next). */
struct db_op *tdb_wait(struct inbox *in, unsigned n);

/* Reserves, submits and waits for one operation; its result. The operation is freed; *seq may be NULL. */
enum db_result tdb_write(struct db_writer *w, struct inbox *in, struct db_op *op, uint64_t *seq);

#endif
