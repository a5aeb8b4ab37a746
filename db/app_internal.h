/* What the parts of db/app share. Private to db/. */
#ifndef HANJI_DB_APP_INTERNAL_H
#define HANJI_DB_APP_INTERNAL_H

#include "db/app.h"
#include "db/reader_internal.h"
#include "db/write.h"

/* The statement of a slot of a script on this connection, prepared from n bytes of sql at its first
 * use; reset and without bindings. It stays the cache's. *code is SQLite's when it is NULL. The
 * guard is on: what is prepared is the app's. */
sqlite3_stmt *db_app_statement(struct db_conn *c, const struct db_script *s, unsigned slot,
                               const char *sql, size_t n, int *code);

/* The same, taken out of the cache, so that nobody else steps it; given back reset. */
sqlite3_stmt *db_app_take(struct db_conn *c, const struct db_script *s, unsigned slot,
                          const char *sql, size_t n, int *code);
void db_app_give(struct db_conn *c, uint64_t script_id, unsigned slot, sqlite3_stmt *statement);

unsigned db_app_cache_count(const struct db_app_cache *cache);

/* The parameters of a run: what was given, and what its `-- set` statements found. */
struct db_app_values {
    const struct db_script *script;
    const struct db_value *given;
    sqlite3_value *own[DB_SCRIPT_NAMES_MAX]; /* NULL: not set, and NULL to SQL */
};

/* Binds them to the statement's parameters. SQLite's code. */
int db_app_bind(const struct db_app_values *v, const struct db_statement *of, sqlite3_stmt *s);

/* Keeps the columns of the row that s stands on. False: memory is short. */
bool db_app_keep(struct db_app_values *v, const struct db_statement *of, sqlite3_stmt *s)
    __attribute__((warn_unused_result));
void db_app_forget(struct db_app_values *v);

/* The run that a reader is in. */
struct db_app_reading {
    bool on;
    struct db_app_run run;
    struct db_app_values values;
    struct db_app_fault *fault;
};

/* Notes in the fault of a run what SQLite's code means, and returns the cause. */
enum db_result db_app_failed(struct db_conn *c, struct db_app_fault *fault, unsigned line,
                             int code);

/* Rows being recorded, in memory from malloc that grows up to max_bytes. Zeroed but for max_bytes
 * at first. */
struct db_recorder {
    unsigned char *p;
    size_t len, cap, max_bytes;
    size_t begin;   /* of the result being recorded */
    uint32_t rows;  /* of it */
    bool too_large; /* what did not fit was left out */
    bool no_memory;
};

/* Between begin and end: the rows that a statement stands on, one by one. False: failed. */
bool db_record_begin(struct db_recorder *r, unsigned statement, const struct db_statement *of)
    __attribute__((warn_unused_result));
bool db_record_row(struct db_recorder *r, sqlite3_stmt *s, unsigned columns)
    __attribute__((warn_unused_result));
void db_record_end(struct db_recorder *r);

/* The cells of the row that was recorded at byte `at`; they die with what is recorded next. False:
 * there is none. */
bool db_record_cells(const struct db_recorder *r, size_t at, unsigned columns,
                     struct db_cell *cells) __attribute__((warn_unused_result));

/* A cursor over the rows of a statement of the run that was taken and bound; it gives it back.
 * NULL: memory is short, and it was given back. */
struct db_cursor *db_cursor_of(struct db_conn *c, const struct db_app_reading *a,
                               const struct db_statement *of, sqlite3_stmt *s)
    __attribute__((warn_unused_result));

/* The cell of a column where s stands. */
void db_cell_of(sqlite3_stmt *s, int column, struct db_cell *cell);

/* Runs DB_OP_APP; do_op applies an operation that a function queued. */
typedef enum db_result db_apply_one_fn(struct db_write *w, struct db_op *op);
enum db_result db_app_apply(struct db_write *w, struct db_op *op, db_apply_one_fn *do_op)
    __attribute__((warn_unused_result));
const struct db_app_fault *db_app_write_fault(const struct db_op *op);

#endif
