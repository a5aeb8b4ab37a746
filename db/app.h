/* Running the scripts of apps: reading in a snapshot, writing in a burst, and their tables.
 *
 * Statements are prepared once a connection, kept by script, and dropped when others were used
 * more lately. Every run has a deadline. Nothing of a run that failed stays. */
#ifndef HANJI_DB_APP_H
#define HANJI_DB_APP_H

#include "db/guard.h"
#include "db/reader.h"
#include "db/rows.h"
#include "db/script.h"

enum {
    DB_APP_ANSWER_MAX = 1 << 20,     /* bytes of the rows that a write returns */
    DB_APP_ONCE_ANSWER_MAX = 64 << 10, /* the same with an Idempotency-Key */
};

/* Why a run failed, for the owner of the app. line is 0 where no statement is to blame. */
struct db_app_fault {
    unsigned line;
    struct db_error error;
};

/* What is run. Pointers belong to the caller, and outlive the run. */
struct db_app_run {
    const struct db_grant *grant;
    const struct db_script *script;
    const struct db_value *value; /* one for each of script->name; those it sets itself: ignored */
    uint64_t limit_us;            /* how long it may take */
    int64_t now_s;
};

/* Compiles every statement of a parsed script in the reader's file and fills in what is known only
 * then. False when a fault was told. */
bool db_script_check(struct db_reader *r, const struct db_grant *grant, struct db_script *s,
                     struct db_faults *faults) __attribute__((warn_unused_result));

/* Reading. One run at a time on a reader, whose snapshot is begun. Runs the `-- set` statements,
 * in order; the others are opened as they are wanted. From DB_OK on db_app_end must be called,
 * before anything else is read with this reader. fault is filled by whatever fails until then. */
enum db_result db_app_begin(struct db_reader *r, const struct db_app_run *run,
                            struct db_app_fault *fault) __attribute__((warn_unused_result));
void db_app_end(struct db_reader *r);

/* A cursor over the rows of a statement, all of them, in the page's order if it has one. Several
 * may be open, of different statements or the same (the statement is prepared once more for that).
 * Closed at the latest by the caller before db_app_end. */
enum db_result db_app_open(struct db_reader *r, unsigned statement, struct db_cursor **cursor)
    __attribute__((warn_unused_result));

/* What a `-- set` gave a name (its index in the script) in this run. False: nothing, as yet. The
 * cell dies at db_app_end. */
bool db_app_value(struct db_reader *r, unsigned name, struct db_cell *cell);

/* Where a page begins. */
enum db_page_from { DB_PAGE_FIRST, DB_PAGE_AFTER, DB_PAGE_BEFORE };

struct db_page_at {
    enum db_page_from from;
    struct db_value key[DB_PAGE_KEYS_MAX]; /* of the row it begins behind, or ends before */
};

/* A page that was read. cursor goes over its rows, in their order; first and last are its outermost
 * rows' keys, which belong to the page. Without rows, nothing is said of what is on either side. */
struct db_page_read {
    struct db_cursor *cursor;
    unsigned rows;
    bool before; /* there are rows ahead, or there were: a page behind a row does not look */
    bool after;  /* there are rows behind */
    struct db_cell first[DB_PAGE_KEYS_MAX], last[DB_PAGE_KEYS_MAX];
    void *memory;
};

/* Reads a page of a statement that has `-- page`. Where nothing is ahead of the row that it ends
 * before, it is the first page. The caller frees it, whatever came back. */
enum db_result db_app_page(struct db_reader *r, unsigned statement, const struct db_page_at *at,
                           struct db_page_read *page) __attribute__((warn_unused_result));
void db_page_read_free(struct db_page_read *page);

/* Writing: an operation (DB_OP_APP) that runs a script in a burst, in a savepoint of its own.
 * run->value is copied; grant and script must live until the operation is freed: hold is called
 * with held when it is. In op->answer come the rows, as struct db_rows; op->result is DB_OK also
 * when a row had a _status of 400 or more: then nothing of it was kept, and op->stopped is true.
 * Otherwise DB_TIMEOUT, DB_INVALID, DB_CONFLICT, DB_REFUSED … with op->fault set. */
struct db_op *db_app_op(const struct db_app_run *run, void (*hold)(void *held), void *held)
    __attribute__((warn_unused_result));

/* Why a DB_OP_APP or DB_OP_APP_SCHEMA failed; {0, ""} when it did not. *file is the file of the
 * schema that failed, else NULL. */
const struct db_app_fault *db_app_op_fault(const struct db_op *op, const char **file);

/* True when nothing of a DB_OP_APP was kept because a row said so by its _status. */
bool db_app_op_stopped(const struct db_op *op);

/* Tables: an operation (DB_OP_APP_SCHEMA) that runs those files of schema/ that were not run yet,
 * in order, all or none. The scripts' files end in names ("001-score.sql") whose numbers rise.
 * One that was run before and reads differently now is DB_CONFLICT, and nothing is run. grant and
 * files must live until the operation is freed: hold is called with held when it is. */
struct db_op *db_app_schema_op(const struct db_grant *grant, const struct db_script *const *files,
                               unsigned count, void (*hold)(void *held), void *held)
    __attribute__((warn_unused_result));

/* Which files would be run; the same refusals. In the reader's snapshot. */
enum db_result db_app_schema_due(struct db_reader *r, const struct db_grant *grant,
                                 const struct db_script *const *files, unsigned count,
                                 unsigned *due, struct db_app_fault *fault)
    __attribute__((warn_unused_result));

/* 32 random bytes that this file keeps under a name, for tokens that must outlive the process:
 * made at first use by the operation DB_OP_SECRET. DB_NONE: not made yet. */
enum { DB_SECRET_BYTES = 32 };
enum db_result db_secret_get(struct db_reader *r, const char *name,
                             unsigned char secret[DB_SECRET_BYTES])
    __attribute__((warn_unused_result));

/* How many prepared statements the reader keeps for apps. */
unsigned db_app_prepared(const struct db_reader *r);

#endif
