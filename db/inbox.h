/* Inboxes: who may post, and what came.
 *
 * Sources are set by operations (DB_OP_INBOX_*). A message is stored with its mark in one operation
 * (DB_OP_INBOX_TAKE), and handed to an app in the same transaction: so each message is there once,
 * with its effect, however often it is sent. */
#ifndef HANJI_DB_INBOX_H
#define HANJI_DB_INBOX_H

#include "db/app.h"
#include "db/line.h"

enum {
    DB_INBOX_KEYS_MAX = 64,
    DB_INBOX_SEEN_DAYS = 30, /* that ids are known for, counted from the last message that came */
    DB_INBOX_EVENT_MAX = 64, /* bytes of the name of an app's event */
    DB_INBOX_ID_MAX = 256,   /* of a webhook-id */
    DB_INBOX_SECRET_MAX = 512, /* of a secret that is hidden */
};

enum db_inbox_key_kind { DB_INBOX_IDENTITY, DB_INBOX_TRANSPORT };

/* A sender's key (Ed25519). root: the same for all keys of a sender, the id of one of its
 * identities. Where an inbox knows one of these identities already, or did, the operation puts the
 * root that it has there: so a sender that takes another identity goes on where it was. */
struct db_inbox_key {
    enum db_inbox_key_kind kind;
    unsigned char id[DB_KEY_ID_BYTES], key[DB_KEY_BYTES], root[DB_KEY_ID_BYTES];
    int64_t valid_from, valid_until; /* Unix seconds, 0: no end */
};

/* Pointers die at the next read of the same reader. NULL where there is nothing. */
struct db_inbox {
    int64_t id;
    const char *name, *app, *event;
    const unsigned char *secret; /* hidden */
    size_t secret_bytes;
    bool start_any, closed;
    int64_t created;
    int64_t last_received; /* Unix seconds, of the newest message that is there; 0: none */
    uint32_t keys;
};

enum db_result db_inbox_find(struct db_reader *r, const char *name, size_t n, struct db_inbox *in)
    __attribute__((warn_unused_result));

/* In order of name, behind `after` ("": from the first), at most `most`; until each returns
 * false. */
enum db_result db_inbox_list(struct db_reader *r, const char *after, unsigned most,
                             bool (*each)(void *arg, const struct db_inbox *in), void *arg)
    __attribute__((warn_unused_result));

/* The keys of a source, at most DB_INBOX_KEYS_MAX into keys. */
enum db_result db_inbox_keys(struct db_reader *r, int64_t source, struct db_inbox_key *keys,
                             unsigned *count) __attribute__((warn_unused_result));

/* How far a sender's line has come here. */
struct db_inbox_mark {
    const unsigned char *sender; /* DB_KEY_ID_BYTES: the root of its keys */
    const char *line;
    uint64_t seq;   /* all up to it have come */
    uint64_t ahead; /* beyond it that have come */
};
enum db_result db_inbox_marks(struct db_reader *r, int64_t source, unsigned most,
                              bool (*each)(void *arg, const struct db_inbox_mark *mark), void *arg)
    __attribute__((warn_unused_result));

/* What an inbox is set to (DB_OP_INBOX_SET), as db_line_set: checked by the caller, the secret
 * hidden already. It replaces what is there, keys and all; its state stays. op->created says that
 * it is new; DB_EXISTS with only_new and one of that name there. */
struct db_inbox_set {
    const char *name, *app, *event; /* app and event: NULL none */
    const unsigned char *secret;    /* NULL: none */
    size_t secret_bytes;
    const struct db_inbox_key *keys;
    unsigned key_count;
    bool start_any;
    bool keep_secret; /* of an inbox that is there: secret is not looked at */
    bool only_new;
};
struct db_op *db_inbox_set_op(const struct db_inbox_set *set) __attribute__((warn_unused_result));

/* DB_OP_INBOX_STATE and DB_OP_INBOX_REMOVE; DB_NONE: no such inbox. What came to one that is
 * removed can be seen no more at once, and is deleted in steps when it is quiet. */
struct db_op *db_inbox_state_op(const char *name, bool closed)
    __attribute__((warn_unused_result));
struct db_op *db_inbox_remove_op(const char *name) __attribute__((warn_unused_result));

/* A message that was verified and opened. Texts and bytes are copied. */
struct db_inbox_message {
    int64_t source;
    const char *id; /* webhook-id */
    size_t id_bytes;
    const unsigned char *sender; /* root of it; NULL: no envelope, and no line, seq, prev */
    const char *line;
    size_t line_bytes;
    uint64_t seq;
    bool fifo, skipped;               /* skipped: a tombstone, only the mark is stored */
    const unsigned char *prev, *hash; /* DB_MESSAGE_HASH_BYTES; prev zero for the first. Without
                                         an envelope hash is that of the body */
    const char *type;
    size_t type_bytes;
    int64_t sent; /* Unix seconds, as the sender says */
    const void *body;
    size_t bytes;
    bool text; /* valid UTF-8 without NUL: stored as TEXT */
};

enum db_inbox_verdict {
    DB_INBOX_STORED,
    DB_INBOX_AGAIN,    /* these very bytes have come before: nothing was changed */
    DB_INBOX_GAP,      /* numbers are missing before it: op->seq is the one that is expected */
    DB_INBOX_CONFLICT, /* another message of that id or number has come, or prev is not what did */
    DB_INBOX_CLOSED,   /* closed, or not there any more */
    DB_INBOX_STOPPED,  /* the app's script said so by a _status of 400 or more: nothing stored */
};

/* run: the app's EVENT.inbox.sql, NULL none. Its values are copied; hold is called with held when
 * the operation is freed, also when none can be made. op->result is DB_OK for every verdict; when
 * the script fails it is that of the script, and nothing of the message is stored. op->seq: the
 * message's number on its line, without one 0. */
struct db_op *db_inbox_take_op(const struct db_inbox_message *m, const struct db_app_run *run,
                               void (*hold)(void *held), void *held)
    __attribute__((warn_unused_result));
enum db_inbox_verdict db_inbox_taken(const struct db_op *op);

/* The operation of the script (DB_OP_APP: its fault, its rows); NULL: there is none. It is not run
 * unless the message is new. */
const struct db_op *db_inbox_app_op(const struct db_op *op);

struct db_inbox_row {
    int64_t number; /* inbox.n */
    const char *id, *line, *type; /* line NULL: no envelope */
    const unsigned char *sender;  /* NULL likewise */
    uint64_t seq;
    int64_t sent, received;
    const void *body; /* NULL: not asked for, or empty */
    size_t bytes;
    bool text;
};

/* Messages of a source behind `after` in order of arrival, at most `most`, until each returns
 * false; body only with with_body. */
enum db_result db_inbox_messages(struct db_reader *r, int64_t source, int64_t after, unsigned most,
                                 bool with_body,
                                 bool (*each)(void *arg, const struct db_inbox_row *row), void *arg)
    __attribute__((warn_unused_result));
enum db_result db_inbox_message(struct db_reader *r, int64_t source, int64_t number,
                                struct db_inbox_row *row) __attribute__((warn_unused_result));

#endif
