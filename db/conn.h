/* One SQLite connection with the settings of this house, and its prepared statements.
 *
 * Settings that must hold on every connection of ours, whatever it is for: no automatic checkpoint
 * (only the writer's thread checkpoints, holding the write lock), no memory mapping, freed space
 * overwritten only where that costs no further page, synchronous=FULL. Private to db/. A connection
 * belongs to one thread. */
#ifndef HANJI_DB_CONN_H
#define HANJI_DB_CONN_H

#include <sqlite3.h>

#include "db/db.h"

/* The last sequence number given, as an SQL expression. sqlite_sequence is behind the feed after a
 * statement that failed half-way (OR FAIL). */
#define DB_LAST_SEQ                                                                                \
    "max(coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name = 'change'), 0),"               \
    " coalesce((SELECT max(seq) FROM change), 0))"

/* Slots of prepared statements. */
enum db_slot {
    SLOT_BEGIN_READ,
    SLOT_BEGIN_WRITE,
    SLOT_COMMIT,
    SLOT_ROLLBACK,
    SLOT_SAVEPOINT,
    SLOT_UNDO,
    SLOT_RELEASE,
    SLOT_SEQ,
    SLOT_META,
    SLOT_JSON_VALID,
    SLOT_DOC_GET,
    SLOT_DOC_SEQ,
    SLOT_DOC_INSERT,
    SLOT_DOC_UPDATE,
    SLOT_DOC_DELETE,
    SLOT_DOC_BODY,
    SLOT_BODY_SAVEPOINT,
    SLOT_BODY_UNDO,
    SLOT_BODY_RELEASE,
    SLOT_ONCE_FIND,
    SLOT_ONCE_NOTE,
    SLOT_ONCE_OLD,
    SLOT_ONCE_OLDEST,
    SLOT_ONCE_NEWEST,
    SLOT_ONCE_CORRECT,
    SLOT_DOC_LIST,
    SLOT_EXPORT,
    SLOT_EXPORT_END,
    SLOT_EXPORT_FIND,
    SLOT_PRUNE,
    SLOT_PRUNE_NOTE,
    SLOT_PRUNED,
    SLOT_CHANGE_BOUNDS,
    SLOT_CHANGE_LIST,
    SLOT_CHANGE_VERSION,
    SLOT_TOKEN_FIND,
    SLOT_TOKEN_NEW,
    SLOT_TOKEN_REVOKE,
    SLOT_TOKEN_LIST,
    SLOT_USER_FIND,
    SLOT_USER_GET,
    SLOT_USER_LIST,
    SLOT_USER_NEW,
    SLOT_USER_PASSWORD,
    SLOT_USER_GRANT,
    SLOT_USER_REMOVE,
    SLOT_USER_RENEW,
    SLOT_SESSION_FIND,
    SLOT_SESSION_USER,
    SLOT_SESSION_TRIM,
    SLOT_SESSION_NEW,
    SLOT_SESSION_TOUCH,
    SLOT_SESSION_END,
    SLOT_SESSION_END_ALL,
    SLOT_SESSION_END_USER,
    SLOT_LOGIN_JSON,
    SLOT_APP_SCHEMA,
    SLOT_APP_NEWEST,
    SLOT_APP_FOREIGN,
    SLOT_APP_NOTE,
    SLOT_SECRET,
    SLOT_SECRET_NEW,
    SLOT_APP_LOOK,
    SLOT_APP_UNIQUE,
    SLOT_SEARCH_WANTED,
    SLOT_SEARCH_SAVE,
    SLOT_SEARCH_UNDO,
    SLOT_SEARCH_FLUSH,
    SLOT_SEARCH_FLUSHED,
    SLOT_SEARCH_RELEASE,
    SLOT_SEARCH_DAMAGED,
    SLOT_SEARCH_FOLLOW,
    SLOT_SEARCH_NOTE,
    SLOT_SEARCH_COVER,
    SLOT_SEARCH_ITEM,
    SLOT_SEARCH_ITEM_INSERT,
    SLOT_SEARCH_ITEM_DELETE,
    SLOT_SEARCH_DOC,
    SLOT_SEARCH_JSON,
    SLOT_SEARCH_TEXT_INSERT,
    SLOT_SEARCH_TEXT_DELETE,
    SLOT_SEARCH_UNREADY,
    SLOT_SEARCH_BUILD,
    SLOT_SEARCH_CLEAR,
    SLOT_SEARCH_STATE,
    SLOT_SEARCH_FORGET,
    SLOT_SEARCH_START,
    SLOT_SEARCH_ADD,
    SLOT_SEARCH_CHANGE,
    SLOT_SEARCH_RESTART,
    SLOT_SEARCH_EMPTY,
    SLOT_SEARCH_AGAIN,
    SLOT_SEARCH_LOOK,
    SLOT_SEARCH_LAG,
    SLOT_SEARCH_FIND,
    SLOT_SEARCH_SNIPPET,
    SLOT_SEARCH_SNIPPETS,
    SLOT_SEARCH_LIST,
    SLOT_LINE_FIND,
    SLOT_LINE_LIST,
    SLOT_LINE_KEYS,
    SLOT_LINE_TOTALS,
    SLOT_LINE_COUNT,
    SLOT_LINE_PUT,
    SLOT_LINE_KEY_CLEAR,
    SLOT_LINE_KEY_PUT,
    SLOT_LINE_STATE,
    SLOT_LINE_REMOVE,
    SLOT_LINE_HOLD,
    SLOT_LINE_CLOSE,
    SLOT_LINE_NOTICE,
    SLOT_LINE_TOLD,
    SLOT_LINE_ALERTS,
    SLOT_OUTBOX_LINE,
    SLOT_OUTBOX_SETTLE,
    SLOT_OUTBOX_INSERT,
    SLOT_OUTBOX_GIVEN,
    SLOT_OUTBOX_GIVEN_DUE,
    SLOT_OUTBOX_FIND,
    SLOT_OUTBOX_CHANGE,
    SLOT_OUTBOX_RETRY,
    SLOT_OUTBOX_HURRY,
    SLOT_OUTBOX_HOLE,
    SLOT_OUTBOX_FIRST,
    SLOT_OUTBOX_COUNT,
    SLOT_OUTBOX_AGAIN,
    SLOT_OUTBOX_OLD,
    SLOT_OUTBOX_OLD_LINE,
    SLOT_OUTBOX_GONE,
    SLOT_OUTBOX_GONE_END,
    SLOT_OUTBOX_DELETE,
    SLOT_OUTBOX_BODY,
    SLOT_OUTBOX_REF,
    SLOT_MESSAGE_FIND,
    SLOT_MESSAGE_LIST,
    SLOT_MESSAGE_STATE,
    SLOT_ATTEMPT_LIST,
    SLOT_ATTEMPT_NOTE,
    SLOT_ATTEMPT_TRIM,
    SLOT_COURIER_LINES,
    SLOT_COURIER_DUE,
    SLOT_COURIER_FIFO,
    SLOT_COURIER_ANY,
    SLOT_COURIER_LEASE,
    SLOT_COURIER_FENCE,
    SLOT_MARK_FIND,
    SLOT_MARK_WRITE,
    SLOT_GUARD_FOREIGN,
    SLOT_GUARD_KEYS,
    SLOT_GUARD_OBJECTS,
    SLOT_GUARD_DOC,
    SLOT_GUARD_SEND,
    SLOT_GUARD_HEAD,
    SLOT_INBOX_FIND,
    SLOT_INBOX_LIST,
    SLOT_INBOX_KEYS,
    SLOT_INBOX_MARKS,
    SLOT_INBOX_MESSAGES,
    SLOT_INBOX_MESSAGE,
    SLOT_INBOX_ID,
    SLOT_INBOX_CHANGE,
    SLOT_INBOX_NEW,
    SLOT_INBOX_ROOT,
    SLOT_INBOX_KEY_NEW,
    SLOT_INBOX_KEYS_DELETE,
    SLOT_INBOX_STATE,
    SLOT_INBOX_HIDE,
    SLOT_INBOX_FORGET,
    SLOT_INBOX_REMOVED,
    SLOT_INBOX_DELETE_MESSAGES,
    SLOT_INBOX_DELETE_SEEN,
    SLOT_INBOX_DELETE_AHEAD,
    SLOT_INBOX_DELETE_LINES,
    SLOT_INBOX_DELETE,
    SLOT_INBOX_OPEN,
    SLOT_INBOX_SEEN,
    SLOT_INBOX_LINE,
    SLOT_INBOX_LINE_NEW,
    SLOT_INBOX_LINE_MOVE,
    SLOT_INBOX_AHEAD,
    SLOT_INBOX_AHEAD_NEW,
    SLOT_INBOX_AHEAD_PASSED,
    SLOT_INBOX_NOTE,
    SLOT_INBOX_STORE,
    SLOTS
};

enum db_access { DB_READ, DB_WRITE, DB_CREATE };

enum db_guard_mode {
    DB_GUARD_OFF,    /* the server's own statements */
    DB_GUARD_READ,   /* a GET: nothing is written */
    DB_GUARD_WRITE,  /* inside a burst */
    DB_GUARD_SCHEMA, /* a file of schema/: CREATE, ALTER and DROP of what is its own */
};

struct db_grant;
struct db_op;

/* The state of a connection's guard. */
struct db_guard {
    bool installed;
    enum db_guard_mode mode;
    const struct db_grant *grant;
    uint64_t deadline_us; /* of the monotonic clock (db_clock_us) */
    bool stopped;         /* the deadline has passed, and a statement was stopped for it */
    bool refused;         /* the authorizer refused something: why */
    char why[200];
    bool loop;            /* it runs where others wait: long values are left for later */
    bool text_ok;         /* of a file of schema/, as db_guard_schema_text found it */
    bool declares;        /* the authorizer was asked for what a virtual table does at first */
    enum db_guard_mode paused;
    uint64_t paused_us;  /* when that began */
    uint64_t pardon_us;  /* what such pauses may still add to the deadline */
    int limit_length;     /* what is set back by leave */
    unsigned looks;       /* of the authorizer */
    unsigned steps;       /* of the run, by LOOP_STEPS or STEPS of the virtual machine */
    int64_t now_s;
    uint64_t foreign;     /* what a schema has that is not the app's, as a hash */
    struct db_op *queue, **queue_tail; /* what functions of this statement want done, in order */
    unsigned queued;
    size_t queued_bytes;
    unsigned sealed;      /* messages that this run had sealed, and their bytes */
    size_t sealed_bytes;
};

/* The prepared statements of apps (db/app_cache.c). */
struct db_app_cache;
void db_app_cache_free(struct db_app_cache *cache); /* safe with NULL */

struct db_conn {
    sqlite3 *db;
    sqlite3_stmt *statements[SLOTS];
    int64_t busy_limit_ms; /* how long the busy handler waits before it gives up */
    int64_t busy_since_ms;
    uint64_t cache_bytes; /* of pages, at most */
    struct db_guard guard;
    struct db_app_cache *apps; /* made at the first run of an app */
    bool waited; /* it waited since this was last set to false: somebody else writes */
};

/* Opens path; c must not move afterwards. DB_CREATE makes the file (mode 0640) when it is not
 * there, and may be used only before this process has another connection to it (closing the
 * descriptor would drop that one's POSIX locks). cache_bytes bounds the page cache. On failure
 * nothing is left open and error says why. */
enum db_result db_conn_open(struct db_conn *c, const char *path, enum db_access access,
                            uint64_t cache_bytes, struct db_error *error)
    __attribute__((warn_unused_result));

/* Leaves -wal and -shm there when the last connection closes: a reader that may not write needs
 * them. Only for a file that is known to be ours. */
void db_conn_keep_wal(struct db_conn *c);

/* Closes; safe on a zeroed struct. */
void db_conn_close(struct db_conn *c);

/* The statement of a slot, prepared from sql at its first use, reset and without bindings. NULL
 * when it cannot be prepared. */
sqlite3_stmt *db_conn_statement(struct db_conn *c, enum db_slot slot, const char *sql);

/* Steps a statement that returns no rows, and resets it. SQLite's result code, SQLITE_DONE for
 * success. */
int db_conn_run(sqlite3_stmt *s);

/* Prepares (at first use) and runs a statement without parameters. */
int db_conn_do(struct db_conn *c, enum db_slot slot, const char *sql);

/* The named cause of the last failure on this connection, never DB_OK: for a statement that could
 * not be prepared. */
enum db_result db_conn_failed(struct db_conn *c);

/* The named cause for an SQLite result code. */
enum db_result db_cause(int sqlite_code);

/* DB_REFUSED, and an error that says why of path. */
enum db_result db_refuse(struct db_error *error, const char *path, const char *why);

void db_set_error(struct db_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
