/* Lines and what waits on them: reading. Changed by operations (DB_OP_LINE_*, DB_OP_SEND*). */
#ifndef HANJI_DB_LINE_H
#define HANJI_DB_LINE_H

#include "db/op.h"
#include "db/reader.h"

enum {
    DB_LINE_NAME_MAX = 64, /* [a-z0-9][a-z0-9._-]{0,63} */
    DB_LINE_KEYS_MAX = 64,
    DB_LINE_URL_MAX = 2048,
    DB_LINE_CA_MAX = 65536,
    DB_LINES_MAX = 10000,
    DB_KEY_ID_BYTES = 16,
    DB_KEY_BYTES = 32,
    DB_MESSAGE_HASH_BYTES = 32,
    DB_MESSAGE_ID_LEN = 30,
    DB_SEND_MAX = 256 << 10, /* bytes of a body before it is sealed */
    DB_WIRE_SEND_MAX = 512 << 10, /* of what is stored and travels */
};

/* Why the name is no line's, NULL: it is one. */
bool db_line_name_ok(const char *name, size_t n);

/* A key that a line is sealed to. */
struct db_line_key {
    unsigned char id[DB_KEY_ID_BYTES], key[DB_KEY_BYTES], owner[DB_KEY_ID_BYTES];
    int64_t valid_from, valid_until, horizon_s; /* Unix seconds, 0: no end */
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
    uint64_t waiting, parked;
    int64_t created;
    uint32_t keys;
};

enum db_result db_line_find(struct db_reader *r, const char *name, size_t n, struct db_line *line)
    __attribute__((warn_unused_result));

/* In order of name, behind `after` ("": from the first), at most `most`; until each returns false. */
enum db_result db_line_list(struct db_reader *r, const char *after, unsigned most,
                            bool (*each)(void *arg, const struct db_line *line), void *arg)
    __attribute__((warn_unused_result));

/* The keys of a line, newest first, at most DB_LINE_KEYS_MAX into keys. */
enum db_result db_line_keys(struct db_reader *r, int64_t line, struct db_line_key *keys,
                            unsigned *count) __attribute__((warn_unused_result));

/* What a line is set to, for DB_OP_LINE_SET: made as one value. Strings are NUL-terminated and
 * checked (form, lengths) by the caller; the secret is hidden already. */
struct db_line_set {
    const char *name, *url, *ca; /* ca NULL: none */
    bool fifo, private_;
    double rate;
    const unsigned char *secret; /* NULL: none */
    size_t secret_bytes;
    const struct db_line_key *keys;
    unsigned key_count;
    bool keep_secret; /* of a line that is there: secret is not looked at */
    bool only_new;    /* DB_EXISTS where there is one */
};
struct db_op *db_line_set_op(const struct db_line_set *set) __attribute__((warn_unused_result));

/* ---- messages ---- */

enum db_send_state { DB_SEND_WAITING, DB_SEND_DELIVERED, DB_SEND_PARKED, DB_SEND_SKIPPED, DB_SEND_UNOPENABLE,
                     DB_SEND_STATES };
const char *db_send_state_name(enum db_send_state state);

/* A message to be queued (DB_OP_SEND). It goes to one line or to several (parts of a batch, with one
 * body: share says that the body is that of the part before). version: of the line when its keys
 * were read, so that one whose keys changed meanwhile is refused (DB_PRECONDITION: seal it again);
 * 0: not sealed, refused likewise when the line has keys. */
struct db_send {
    const char *line, *id, *type; /* id: DB_MESSAGE_ID_LEN */
    const void *body; /* an envelope, or what was given (UTF-8 or bytes) */
    size_t bytes;
    const unsigned char *hash; /* DB_MESSAGE_HASH_BYTES */
    bool sealed, share;
    uint32_t version;
    int64_t expires; /* Unix seconds at which no recipient can open it any more, 0 never */
};
/* In op->seq: the message's number on its line. DB_NONE: no such line; DB_CONFLICT: a paused or disabled line takes
 * messages, so never for that; DB_OVERLOAD: the line has DB_LINE_WAITING_MAX waiting. */
enum { DB_LINE_WAITING_MAX = 1000000 };
struct db_op *db_send_op(const struct db_send *send) __attribute__((warn_unused_result));

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

struct db_message {
    const char *id, *line, *type, *reason;
    uint64_t seq, bytes;
    bool sealed;
    enum db_send_state state;
    int64_t due_ms, created, ended; /* 0: not */
    unsigned tries;
};

/* Those of a line with numbers above `after`, in order, in that state (DB_SEND_STATES: all). By an index. */
enum db_result db_message_list(struct db_reader *r, int64_t line, enum db_send_state state,
                               uint64_t after, unsigned most,
                               bool (*each)(void *arg, const struct db_message *m), void *arg)
    __attribute__((warn_unused_result));
enum db_result db_message_find(struct db_reader *r, const char *id, size_t n,
                               struct db_message *m, int64_t *number) __attribute__((warn_unused_result));

struct db_attempt {
    unsigned number, status;
    int64_t at_ms, took_ms;
    const char *outcome, *detail;
};
/* Of a message (its number), the newest first, at most `most`. */
enum db_result db_attempt_list(struct db_reader *r, int64_t number, unsigned most,
                               bool (*each)(void *arg, const struct db_attempt *a), void *arg)
    __attribute__((warn_unused_result));

/* What waits, is parked and was delivered in all, and the earliest due time of any line in Unix
 * milliseconds (-1: nothing). Cost does not grow with messages. */
struct db_send_totals {
    uint64_t lines, waiting, parked, disabled;
    int64_t due_ms;
};
enum db_result db_send_totals(struct db_reader *r, struct db_send_totals *totals)
    __attribute__((warn_unused_result));

#endif
