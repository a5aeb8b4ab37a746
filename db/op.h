/* Operations: writes as values that own their bytes.
 *
 * A handler fills one, the writer applies it inside a burst and notes what came of it, the handler
 * answers from that. Also the wire form between operator commands and a running server. An
 * operation belongs to one thread at a time; passing it on passes it whole. */
#ifndef HANJI_DB_OP_H
#define HANJI_DB_OP_H

#include "db/db.h"

enum db_op_kind {
    DB_OP_PUT,              /* key, type, body; for an import also those of enum db_put_value */
    DB_OP_DELETE,           /* key */
    DB_OP_TOKEN_NEW,        /* name, hash, read, write, expires (0: never) */
    DB_OP_TOKEN_REVOKE,     /* name */
    DB_OP_BATCH,            /* its parts, all or none */
    DB_OP_USER_NEW,         /* name, hash, read, write */
    DB_OP_USER_PASSWORD,    /* name, hash; ends the user's sessions */
    DB_OP_USER_GRANT,       /* name, read, write */
    DB_OP_USER_REMOVE,      /* name; ends the user's sessions */
    DB_OP_USER_RENEW,       /* id, hash, another hash of the same password */
    DB_OP_SESSION_NEW,      /* hash, user's id, user's hash that was verified, expires, label */
    DB_OP_SESSION_TOUCH,    /* hash: it is in use */
    DB_OP_SESSION_END,      /* hash */
    DB_OP_SESSION_END_ALL,  /* hash: all sessions of its user */
    DB_OP_SESSION_END_USER, /* name: all sessions of that user */
    DB_OP_PATCH,            /* key, most bytes of the result, merge patch (RFC 7396) */
    DB_OP_SEARCH_ADD,       /* prefix of a collection */
    DB_OP_SEARCH_REMOVE,    /* prefix */
    DB_OP_SEARCH_REBUILD,   /* prefix, or none: all */
    DB_OP_SEARCH_SYNC,      /* one step of the index, for all that ask in a burst */
    DB_OP_SECRET,           /* name, 32 bytes that are kept unless there are some */
    DB_OP_LINE_SET,         /* db_line_set_op */
    DB_OP_LINE_STATE,       /* name, enum db_line_state, reason or none */
    DB_OP_LINE_REMOVE,      /* name; with all that is on it */
    DB_OP_SEND,             /* db_send_op */
    DB_OP_SEND_RETRY,       /* line's name, id of a parked message, or none: all of them */
    DB_OP_SEND_SKIP,        /* line's name, id */
    DB_OP_SEND_REPLAY,      /* line's name, first and last number: what was delivered goes again */
    DB_OP_COURIER_LEASE,    /* db_courier_lease_op */
    DB_OP_COURIER_MARKS,    /* db_courier_marks_op */
    DB_OP_INBOX_SET,        /* db_inbox_set_op */
    DB_OP_INBOX_STATE,      /* name, 1: closed, 0: open */
    DB_OP_INBOX_REMOVE,     /* name; with its messages and marks */
    DB_OP_WIRE_KINDS,       /* those from here on are never on the wire */
    DB_OP_APP = DB_OP_WIRE_KINDS, /* a script of an app (db/app.h); parts: what it had done */
    DB_OP_APP_SCHEMA,       /* files of an app's schema (db/app.h) */
    DB_OP_INBOX_TAKE,       /* db_inbox_take_op */
    DB_OP_KINDS
};

enum {
    DB_OP_VALUES = 5,
    DB_OP_PARTS_MAX = 1000, /* of one batch */
    /* Of the wire form: the largest document there can be, and room around it. */
    DB_OP_WIRE_MAX = (256 << 20) + (1 << 20),
};

/* Values of DB_OP_PUT that are seldom there. */
enum db_put_value {
    DB_PUT_MODIFIED = 3, /* an integer: Unix seconds, instead of now */
    DB_PUT_ABSENT = 4,   /* an integer: leave a document that is there as it is */
};

enum db_value_type {
    DB_VALUE_NONE,
    DB_VALUE_TEXT,
    DB_VALUE_BLOB,
    DB_VALUE_INT,
    DB_VALUE_REAL, /* r; never on the wire */
    DB_VALUE_FILE, /* n bytes of an open file, stored as BLOB; never on the wire */
};

struct db_value {
    uint8_t type;
    const void *p; /* text is not NUL-terminated */
    size_t n;
    union {
        int64_t i; /* the integer, or the descriptor of the file */
        double r;
    };
};

/* What must be true of the row for the operation to be applied. Lists are cut at DB_TAGS_MAX. */
enum { DB_TAGS_MAX = 16 };

struct db_tags {
    uint8_t given; /* the header was there */
    uint8_t any;   /* it was "*" */
    uint8_t count;
    uint64_t seq[DB_TAGS_MAX];
};

struct db_precond {
    struct db_tags match;      /* If-Match: the row exists and its seq is one of these */
    struct db_tags none_match; /* If-None-Match: the row is absent, or its seq is none of these */
    uint8_t unmodified_given;
    int64_t unmodified_since; /* Unix seconds */
};

enum { DB_ONCE_HASH_BYTES = 32 };

/* An idempotency key: the same operation is not applied a second time. */
struct db_once {
    unsigned char scope[DB_ONCE_HASH_BYTES];   /* of whose key it is, for what, and the key */
    unsigned char request[DB_ONCE_HASH_BYTES]; /* of what is asked for */
    uint16_t status;                           /* that it will be answered with, for people */
};

struct db_op {
    struct db_op *next;
    void *owner; /* the caller's */
    uint8_t kind;
    uint8_t wants_answer;  /* patch: the answer is the type of the document, then its bytes */
    size_t type_bytes;     /* of such an answer, those of the type; filled by the writer */
    size_t extra_bytes;    /* that applying it will cost, counted in the bounds of the queue */
    struct db_value values[DB_OP_VALUES];
    struct db_precond precond;
    void *run; /* of DB_OP_APP and DB_OP_APP_SCHEMA: db/app's */
    void (*drop_run)(void *run); /* called when the operation is freed */
    struct db_op *parts; /* of a batch, in order, by next; freed with it */
    struct db_op *last_part;
    uint32_t part_count;
    struct db_once *once; /* from malloc, freed with it; NULL: it has no key */
    size_t charged_bytes; /* of the writer's queue */
    /* filled by the writer */
    enum db_result result; /* of a batch: DB_OK, or that of the part that failed */
    uint8_t created;
    uint8_t refused;  /* it ended the transaction it was in: result stands, it is not tried again */
    uint8_t replayed; /* it was done before; of a put the answer is the key it had then */
    uint32_t failed_part; /* of a batch that a part made fail: its index */
    uint64_t seq; /* of the row; of a batch: the last one given when it was done */
    int64_t pid; /* with DB_WAL_LIMIT: who pins the log, 0 if unknown */
    unsigned char *answer; /* what it gives back, from malloc; freed with it */
    size_t answer_bytes;
    void *taken; /* freed with the operation */
    size_t room, used;
    unsigned char bytes[];
};

/* An operation with room for that many bytes of copied values. NULL when memory is short. */
struct db_op *db_op_new(enum db_op_kind kind, size_t room_bytes)
    __attribute__((warn_unused_result));
void db_op_free(struct db_op *op);

/* Gives a part to a batch, which frees it. At most DB_OP_PARTS_MAX, and no batch among them. */
void db_op_add_part(struct db_op *batch, struct db_op *part);

/* Sets value i to a copy of n bytes, which must fit the room given at birth. */
void db_op_copy(struct db_op *op, int i, enum db_value_type type, const void *p, size_t n);

/* Sets value i to memory from malloc that the operation frees. At most one. */
void db_op_take(struct db_op *op, int i, enum db_value_type type, void *p, size_t n);
void db_op_int(struct db_op *op, int i, int64_t v);

/* Sets value i to the first n bytes of a file, whose descriptor the operation closes. */
void db_op_file(struct db_op *op, int i, int fd, uint64_t n);

/* Forgets what an attempt to apply it left, in its parts too. */
void db_op_forget(struct db_op *op);

/* Memory it holds, with its parts, for the bounds of the queue. */
size_t db_op_bytes(const struct db_op *op);

/* True when the row's state satisfies the precondition. */
bool db_precond_holds(const struct db_precond *p, bool exists, uint64_t seq, int64_t modified);

/* The wire form: returns the bytes needed, writes them when they fit cap. A batch has its parts;
 * there are no preconditions. */
size_t db_op_encode(const struct db_op *op, unsigned char *out, size_t cap);

/* NULL when the bytes are not a well-formed operation, or memory is short. */
struct db_op *db_op_decode(const unsigned char *p, size_t n) __attribute__((warn_unused_result));

#endif
