/* Operations: writes as values that own their bytes.
 *
 * A handler fills one, the writer applies it inside a burst and notes what came of it, the handler
 * answers from that. Also the wire form between operator commands and a running server. An
 * operation belongs to one thread at a time; passing it on passes it whole. */
#ifndef HANJI_DB_OP_H
#define HANJI_DB_OP_H

#include "db/db.h"

enum db_op_kind {
    DB_OP_PUT,          /* key, type, body */
    DB_OP_DELETE,       /* key */
    DB_OP_TOKEN_NEW,    /* name, hash, read, write, expires (0: never) */
    DB_OP_TOKEN_REVOKE, /* name */
    DB_OP_KINDS
};

enum { DB_OP_VALUES = 5 };

enum db_value_type { DB_VALUE_NONE, DB_VALUE_TEXT, DB_VALUE_BLOB, DB_VALUE_INT };

struct db_value {
    uint8_t type;
    const void *p; /* text is not NUL-terminated */
    size_t n;
    int64_t i;
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

struct db_op {
    struct db_op *next;
    void *owner; /* the caller's */
    uint8_t kind;
    uint8_t validate_json; /* the value at index 2 must parse as JSON */
    struct db_value values[DB_OP_VALUES];
    struct db_precond precond;
    size_t charged_bytes; /* of the writer's queue */
    /* filled by the writer */
    enum db_result result;
    uint8_t created;
    uint8_t refused; /* its value was found wrong before the transaction */
    uint64_t seq;
    int64_t pid; /* with DB_WAL_LIMIT: who pins the log, 0 if unknown */
    void *taken; /* freed with the operation */
    size_t room, used;
    unsigned char bytes[];
};

/* An operation with room for that many bytes of copied values. NULL when memory is short. */
struct db_op *db_op_new(enum db_op_kind kind, size_t room_bytes)
    __attribute__((warn_unused_result));
void db_op_free(struct db_op *op);

/* Sets value i to a copy of n bytes, which must fit the room given at birth. */
void db_op_copy(struct db_op *op, int i, enum db_value_type type, const void *p, size_t n);

/* Sets value i to memory from malloc that the operation frees. At most one. */
void db_op_take(struct db_op *op, int i, enum db_value_type type, void *p, size_t n);
void db_op_int(struct db_op *op, int i, int64_t v);

/* Memory it holds, for the bounds of the queue. */
size_t db_op_bytes(const struct db_op *op);

/* True when the row's state satisfies the precondition. */
bool db_precond_holds(const struct db_precond *p, bool exists, uint64_t seq, int64_t modified);

/* The wire form: returns the bytes needed, writes them when they fit cap. No preconditions. */
size_t db_op_encode(const struct db_op *op, unsigned char *out, size_t cap);

/* NULL when the bytes are not a well-formed operation, or memory is short. */
struct db_op *db_op_decode(const unsigned char *p, size_t n) __attribute__((warn_unused_result));

#endif
