/* The sandbox for the SQL of apps.
 *
 * Each connection has one authorizer, one progress handler and one set of functions, installed
 * once: they ask which app is running on it (installing an authorizer again would prepare every
 * statement anew). While none is, they allow everything and cost nothing. An app reads and writes
 * the tables whose names begin with its own and '_'; reads what the server keeps only as far as its
 * grant says; and has no PRAGMA, ATTACH, transaction, temporary object or extension. What it runs
 * is stopped at its deadline. Private to db/ but for struct db_grant. */
#ifndef HANJI_DB_GUARD_H
#define HANJI_DB_GUARD_H

#include "db/conn.h"
#include "db/op.h"

enum { DB_APP_NAME_MAX = 30 };

/* What an app may do. Constant while it is used. */
struct db_grant {
    char app[DB_APP_NAME_MAX + 1]; /* [a-z][a-z0-9]*, not one of the server's own names */
    bool console;     /* the console: reads what the server keeps, and has functions to change it */
    bool documents;   /* may read the whole table doc */
    const char *read; /* key prefixes for doc(key), one a line, "" none; apps/NAME/ always */
    const char *write; /* the same for put_doc and delete_doc */
    const char *sends; /* names of lines for send(), one a line; NULL or "" none */
};

/* True when an app may be called that: the form, and none of the server's names. */
bool db_guard_name_ok(const char *name);

/* What functions of SQL need from above db/. Set once at start; any thread calls them. */
struct db_guard_hooks {
    /* console(what): JSON into memory from malloc, NULL when there is no such thing. */
    char *(*console)(void *arg, const char *what, size_t n);
    /* token_new(…): a token and the hash that is stored of it. */
    bool (*make_token)(void *arg, char token[64], unsigned char hash[32]);
    void *arg;
};
void db_guard_set_hooks(const struct db_guard_hooks *hooks);

/* Starts running an app on the connection: until db_guard_leave everything prepared and stepped on
 * it is the app's. Installs the guard at the first call. */
enum db_result db_guard_enter(struct db_conn *c, const struct db_grant *grant,
                              enum db_guard_mode mode, uint64_t deadline_us, int64_t now_s)
    __attribute__((warn_unused_result));

/* Frees what is still queued. Safe without enter. */
void db_guard_leave(struct db_conn *c);

/* Takes the operations that functions queued (a list by next, in order; NULL: none). */
struct db_op *db_guard_take(struct db_conn *c);

/* Between them the server's own statements run, with its own limits. The time they take is not the
 * app's: a large document may be stored (up to two seconds of it). */
void db_guard_pause(struct db_conn *c);
void db_guard_resume(struct db_conn *c);

/* Looks at a statement, before it is prepared for the first time, for what the authorizer cannot
 * see: the end of the transaction (OR ROLLBACK), views and WITH that grow without bound. False with
 * error set. A statement of a file of schema/ is refused what it needs unless this was called for
 * it. The guard is on. */
bool db_guard_text(struct db_conn *c, const char *sql, size_t n, struct db_error *error)
    __attribute__((warn_unused_result));

/* Whether what a file of schema/ left behind stays within the app: what the authorizer cannot see,
 * such as foreign keys. False with error set. */
bool db_guard_schema_ok(struct db_conn *c, const struct db_grant *grant, struct db_error *error)
    __attribute__((warn_unused_result));

/* What a failure of an app's statement means, and a sentence for its owner and for problem+json:
 * DB_TIMEOUT (stopped), DB_REFUSED (the authorizer), DB_CONFLICT (UNIQUE, PRIMARY KEY),
 * DB_INVALID (CHECK, NOT NULL, FOREIGN KEY, RAISE, datatype: the message is the statement's or
 * SQLite's), DB_TOO_LARGE, else db_cause. */
enum db_result db_guard_cause(struct db_conn *c, int sqlite_code, struct db_error *error);

#endif
