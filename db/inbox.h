/* Inboxes: who may post, and what came. Sources are set by operations (DB_OP_INBOX_*); a message is
 * stored with its mark in one (DB_OP_INBOX_TAKE), and handed to an app in the same transaction. */
#ifndef HANJI_DB_INBOX_H
#define HANJI_DB_INBOX_H

#include "db/app.h"
#include "db/line.h"

enum { DB_INBOX_KEYS_MAX = 64, DB_INBOX_SEEN_DAYS = 30 };

enum db_inbox_key_kind { DB_INBOX_IDENTITY, DB_INBOX_TRANSPORT };

struct db_inbox_key {
    enum db_inbox_key_kind kind;
    unsigned char id[DB_KEY_ID_BYTES], key[DB_KEY_BYTES];
    unsigned char root[DB_KEY_ID_BYTES]; /* of the sender's first identity */
    int64_t valid_from, valid_until;     /* Unix seconds, 0: no end */
};

/* Pointers die at the next read of the same reader. NULL where there is nothing. */
struct db_inbox {
    int64_t id;
    const char *name, *app, *event;
    const unsigned char *secret; /* hidden */
    size_t secret_bytes;
    bool start_any, closed;
    int64_t created;
    uint32_t keys;
};

enum db_result db_inbox_find(struct db_reader *r, const char *name, size_t n, struct db_inbox *in)
    __attribute__((warn_unused_result));
enum db_result db_inbox_list(struct db_reader *r, const char *after, unsigned most,
                             bool (*each)(void *arg, const struct db_inbox *in), void *arg)
    __attribute__((warn_unused_result));
enum db_result db_inbox_keys(struct db_reader *r, int64_t source, struct db_inbox_key *keys,
                             unsigned *count) __attribute__((warn_unused_result));

/* What an inbox is set to (DB_OP_INBOX_SET), as db_line_set. */
struct db_inbox_set {
    const char *name, *app, *event; /* app and event: NULL none */
    const unsigned char *secret;
    size_t secret_bytes;
    const struct db_inbox_key *keys;
    unsigned key_count;
    bool start_any, only_new;
};
struct db_op *db_inbox_set_op(const struct db_inbox_set *set) __attribute__((warn_unused_result));

/* A message that was verified and opened. Texts and bytes are copied. */
struct db_inbox_message {
    int64_t source;
    const char *id; /* webhook-id */
    size_t id_bytes;
    const unsigned char *sender; /* root of it; NULL: no envelope; then line, seq … are not looked at */
    const char *line;
    size_t line_bytes;
    uint64_t seq;
    bool fifo, skipped; /* skipped: a tombstone, only the mark is stored */
    const unsigned char *prev, *hash; /* DB_MESSAGE_HASH_BYTES; prev zero for the first */
    const char *type;
    size_t type_bytes;
    int64_t sent;
    const void *body;
    size_t bytes;
};

enum db_inbox_verdict {
    DB_INBOX_STORED,
    DB_INBOX_AGAIN,    /* these very bytes have come before: nothing was changed */
    DB_INBOX_GAP,      /* numbers are missing before it: op->seq is the one that is expected */
    DB_INBOX_CONFLICT, /* another message of that id, or of that number, has come; or prev is not what came before */
    DB_INBOX_CLOSED,   /* closed, or not there any more */
};

/* run: the app's EVENT.inbox.sql, NULL none; its failure fails the message (op->result and the
 * fault as of db_app_op), and nothing of it is stored. hold is called with held when the operation
 * is freed. op->result is DB_OK for every verdict. op->seq: the message's number on its line. */
struct db_op *db_inbox_take_op(const struct db_inbox_message *m, const struct db_app_run *run,
                               void (*hold)(void *held), void *held)
    __attribute__((warn_unused_result));
enum db_inbox_verdict db_inbox_taken(const struct db_op *op);

struct db_inbox_row {
    int64_t number; /* inbox.n */
    const char *id, *line, *type;
    const unsigned char *sender;
    uint64_t seq;
    int64_t sent, received;
    const void *body;
    size_t bytes;
    bool text;
};

/* Messages of a source behind `after` in order of arrival; body only with with_body. */
enum db_result db_inbox_messages(struct db_reader *r, int64_t source, int64_t after, unsigned most,
                                 bool with_body,
                                 bool (*each)(void *arg, const struct db_inbox_row *row), void *arg)
    __attribute__((warn_unused_result));
enum db_result db_inbox_message(struct db_reader *r, int64_t source, int64_t number,
                                struct db_inbox_row *row) __attribute__((warn_unused_result));

#endif
