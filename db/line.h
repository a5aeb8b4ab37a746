/* Lines and what waits on them. Read with a reader; changed by operations that are made here
 * (DB_OP_LINE_*, DB_OP_SEND*).
 *
 * Invariants, kept by every operation. A message's number follows that of the one before it on its
 * line, and is given in the transaction that stores it. line.due is when the next message of the
 * line may be tried: of a fifo line when the first that is neither delivered nor skipped is due
 * (nothing, when that one is parked), of another when the first that waits is; never before
 * wait_until; nothing unless the line is open. Keeping it costs the same however many messages and
 * lines there are. */
#ifndef HANJI_DB_LINE_H
#define HANJI_DB_LINE_H

#include "db/op.h"
#include "db/reader.h"

enum {
    DB_LINE_NAME_MAX = 64, /* [a-z0-9][a-z0-9._-]{0,63} */
    DB_LINE_KEYS_MAX = 64,
    DB_LINE_URL_MAX = 2048,
    DB_LINE_CA_MAX = 65536,
    DB_LINE_SECRET_MAX = 512,     /* of a secret that is hidden */
    DB_LINE_REASON_MAX = 200,     /* why it is not open */
    DB_LINE_WAITING_MAX = 1000000,
    DB_LINES_MAX = 10000,
    DB_KEY_ID_BYTES = 16,
    DB_KEY_BYTES = 32,
    DB_MESSAGE_HASH_BYTES = 32,
    DB_MESSAGE_ID_LEN = 30,
    DB_MESSAGE_TYPE_MAX = 255,    /* of a Content-Type */
    DB_SEND_MAX = 256 << 10,      /* bytes of a body before it is sealed */
    DB_WIRE_SEND_MAX = 512 << 10, /* of what is stored and travels */
    DB_SEND_STEP_MAX = 10000,     /* messages that one operation on several changes */
};

/* True when it is a line's name. */
bool db_line_name_ok(const char *name, size_t n);

/* A key that a line is sealed to. */
struct db_line_key {
    unsigned char id[DB_KEY_ID_BYTES], key[DB_KEY_BYTES], owner[DB_KEY_ID_BYTES];
    int64_t valid_from, valid_until, horizon_s; /* Unix seconds, 0: no end; seconds */
};

enum db_line_state { DB_LINE_OPEN, DB_LINE_PAUSED, DB_LINE_DISABLED };

/* Pointers die at the next read of the same reader. NULL where there is nothing. */
struct db_line {
    int64_t id;
    const char *name, *url, *ca, *reason;
    bool fifo, private_;
    double rate; /* a second, 0: no limit */
    const unsigned char *secret; /* hidden; NULL: none */
    size_t secret_bytes;
    enum db_line_state state;
    uint32_t version;
    uint64_t seq;
    int64_t wait_until_ms, due_ms; /* due_ms -1: nothing */
    int64_t failing_s;             /* 0: it works */
    uint64_t waiting, parked;      /* parked: unopenable ones, too */
    int64_t created;
    uint32_t keys;
};

enum db_result db_line_find(struct db_reader *r, const char *name, size_t n, struct db_line *line)
    __attribute__((warn_unused_result));

/* In order of name, behind `after` ("": from the first), at most `most`; until each returns
 * false. */
enum db_result db_line_list(struct db_reader *r, const char *after, unsigned most,
                            bool (*each)(void *arg, const struct db_line *line), void *arg)
    __attribute__((warn_unused_result));

/* The keys of a line, newest first, at most DB_LINE_KEYS_MAX into keys. */
enum db_result db_line_keys(struct db_reader *r, int64_t line, struct db_line_key *keys,
                            unsigned *count) __attribute__((warn_unused_result));

/* What a line is set to, for DB_OP_LINE_SET: made as one value. Strings are NUL-terminated and
 * checked (form, lengths) by the caller; the secret is hidden already. Of a line that is there
 * everything but its state is replaced, keys and all; op->created says that it is new. DB_EXISTS:
 * only_new, and there is one; DB_TOO_LARGE: there are DB_LINES_MAX. */
struct db_line_set {
    const char *name, *url, *ca; /* ca NULL: none */
    bool fifo, private_;
    double rate;
    const unsigned char *secret; /* NULL: none */
    size_t secret_bytes;
    const struct db_line_key *keys;
    unsigned key_count;
    bool keep_secret; /* of a line that is there: secret is not looked at */
    bool only_new;
};
struct db_op *db_line_set_op(const struct db_line_set *set) __attribute__((warn_unused_result));

/* DB_OP_LINE_STATE: opened again it is tried at once, and has failed for no time. reason: of one
 * that is not open, NULL none. DB_NONE: no such line. */
struct db_op *db_line_state_op(const char *name, enum db_line_state state, const char *reason)
    __attribute__((warn_unused_result));

/* DB_OP_LINE_REMOVE. Its messages can be seen no more at once, and are deleted in steps when it is
 * quiet. DB_NONE: no such line. */
struct db_op *db_line_remove_op(const char *name) __attribute__((warn_unused_result));

/* ---- messages ---- */

enum db_send_state {
    DB_SEND_WAITING,
    DB_SEND_DELIVERED,
    DB_SEND_PARKED,
    DB_SEND_SKIPPED,
    DB_SEND_UNOPENABLE,
    DB_SEND_STATES
};

/* "waiting", …; NULL for any other number. */
const char *db_send_state_name(enum db_send_state state);

/* A message to be queued (DB_OP_SEND). It goes to one line or to several (parts of a batch, with
 * one body: share says that the body is that of the part before). version: of the line when its
 * keys were read, so that one whose keys changed meanwhile is refused (DB_PRECONDITION: seal it
 * again); 0: not sealed, refused likewise when the line has keys. */
struct db_send {
    const char *line, *id, *type; /* id: DB_MESSAGE_ID_LEN, in order of time if it can be */
    const void *body; /* an envelope, or what was given (UTF-8 or bytes); copied */
    size_t bytes;
    const unsigned char *hash; /* DB_MESSAGE_HASH_BYTES */
    bool sealed, share;
    uint32_t version;
    int64_t expires; /* Unix seconds at which no recipient can open it any more, 0 never */
};

/* In op->seq: the message's number on its line. DB_NONE: no such line; a paused or disabled line
 * takes messages all the same. DB_OVERLOAD: the line has DB_LINE_WAITING_MAX waiting. DB_EXISTS: a
 * message of that id is there. With an idempotency key: op->replayed, and op->answer has the id
 * that it was given the first time, also in the parts of a batch. */
struct db_op *db_send_op(const struct db_send *send) __attribute__((warn_unused_result));

/* DB_OP_SEND_RETRY: a message that is parked, unopenable or waits for its next try is due now; id
 * NULL: all of the line that are parked, and all that wait for their next try, the first
 * DB_SEND_STEP_MAX of each. Tries stay. op->seq: how many there were. DB_NONE: no such line or
 * message; DB_CONFLICT: it is delivered or skipped. */
struct db_op *db_send_retry_op(const char *line, const char *id)
    __attribute__((warn_unused_result));

/* DB_OP_SEND_SKIP: a sealed message waits on, and a tombstone goes in its place; another is skipped
 * at once. Errors as above. */
struct db_op *db_send_skip_op(const char *line, const char *id)
    __attribute__((warn_unused_result));

/* DB_OP_SEND_REPLAY: those with numbers from `from` to `to` (0: the last) that were delivered or
 * skipped wait again, the first DB_SEND_STEP_MAX; op->seq: how many. DB_NONE: no such line;
 * DB_CONFLICT: not all of them are there any more, op->seq: the first that is (0: none). */
struct db_op *db_send_replay_op(const char *line, uint64_t from, uint64_t to)
    __attribute__((warn_unused_result));

/* Making a message inside a transaction, where seal/ cannot be reached: for send() of SQL and for
 * what the server itself tells. Set once at start; the writer's thread calls it. */
struct db_send_draft {
    const char *line, *type;
    const void *body;
    size_t bytes;
    const struct db_line_key *keys; /* none: it is not sealed */
    unsigned key_count;
    int64_t now_s;
};
struct db_send_made {
    char id[DB_MESSAGE_ID_LEN + 1];
    unsigned char hash[DB_MESSAGE_HASH_BYTES];
    unsigned char *body; /* from malloc: the envelope; NULL: the draft's own, not sealed */
    size_t bytes;
    int64_t expires;
};
typedef enum db_result db_send_make_fn(void *arg, const struct db_send_draft *draft,
                                       struct db_send_made *made, struct db_error *error);
void db_send_set_maker(db_send_make_fn *make, void *arg);

/* Pointers die at the next read of the same reader. */
struct db_message {
    const char *id, *line, *type, *reason; /* reason NULL: none */
    uint64_t seq, bytes;
    bool sealed;
    bool skip; /* it waits, or is parked, as a tombstone */
    enum db_send_state state;
    int64_t due_ms, created, ended; /* ended 0: not */
    unsigned tries;
};

/* Those of a line with numbers above `after`, in order, in that state (DB_SEND_STATES: all), at
 * most `most`, until each returns false. By an index. */
enum db_result db_message_list(struct db_reader *r, int64_t line, enum db_send_state state,
                               uint64_t after, unsigned most,
                               bool (*each)(void *arg, const struct db_message *m), void *arg)
    __attribute__((warn_unused_result));

/* number: outbox.n, for db_attempt_list. */
enum db_result db_message_find(struct db_reader *r, const char *id, size_t n,
                               struct db_message *m, int64_t *number)
    __attribute__((warn_unused_result));

struct db_attempt {
    unsigned number, status;
    int64_t at_ms, took_ms;
    const char *outcome, *detail;
};

/* Of a message (its number), the newest first, at most `most`, until each returns false. */
enum db_result db_attempt_list(struct db_reader *r, int64_t number, unsigned most,
                               bool (*each)(void *arg, const struct db_attempt *a), void *arg)
    __attribute__((warn_unused_result));

/* How many lines there are, and are disabled; what waits and is parked in all; the earliest due
 * time of any line in Unix milliseconds (-1: nothing). Cost does not grow with messages. */
struct db_send_totals {
    uint64_t lines, waiting, parked, disabled;
    int64_t due_ms;
};
enum db_result db_send_totals(struct db_reader *r, struct db_send_totals *totals)
    __attribute__((warn_unused_result));

#endif
