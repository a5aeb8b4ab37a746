/* What the operations on lines and messages share. Private to db/; the writer's thread. */
#ifndef HANJI_DB_OUTBOX_H
#define HANJI_DB_OUTBOX_H

#include "db/courier.h"
#include "db/write.h"

enum {
    DB_SEQ_BITS = 40,     /* of outbox.n: line << 40 | seq */
    DB_SEND_VALUE_ID = 1, /* the value of DB_OP_SEND that is the message's id */
};

static inline int64_t db_outbox_number(int64_t line, uint64_t seq)
{
    return (int64_t)((uint64_t)line << DB_SEQ_BITS | seq);
}

/* A line, as operations need it. */
struct db_outbox_line {
    int64_t id;
    uint64_t seq, waiting, parked;
    uint32_t version, keys;
    bool fifo, open, has_hash;
    unsigned char hash[DB_MESSAGE_HASH_BYTES];
    int64_t wait_until_ms, due_ms; /* due_ms -1: nothing */
};

/* The line that value i of the operation names; DB_NONE: there is none. */
enum db_result db_outbox_find(struct db_write *w, const struct db_op *op, int i,
                              struct db_outbox_line *line) __attribute__((warn_unused_result));

/* What became of a line's messages, and how it fares. */
struct db_outbox_change {
    int64_t line;
    int waiting, parked; /* so many more or fewer */
    enum { DB_FAILING_KEPT, DB_FAILING_NOT, DB_FAILING_SINCE, DB_FAILING_ANEW } failing;
    int64_t failing_s; /* of SINCE, which keeps an earlier time, and ANEW */
};

/* Adds a message that goes from one state to another. */
void db_outbox_moved(struct db_outbox_change *change, enum db_send_state from,
                     enum db_send_state to);

/* Writes that to the line, and its due time, which follows from its messages. */
enum db_result db_outbox_settle(struct db_write *w, const struct db_outbox_change *change)
    __attribute__((warn_unused_result));

/* As they stand in the file. The state of a message of that name; DB_SEND_STATES: none. */
const char *db_outbox_line_state(enum db_line_state state);
enum db_send_state db_outbox_state(const char *name);

/* Until when nothing is tried on a line, Unix milliseconds, 0: it is not held. */
enum db_result db_outbox_hold(struct db_write *w, int64_t line, int64_t wait_until_ms)
    __attribute__((warn_unused_result));

/* Pauses or disables a line that is open; *closed: it was. */
enum db_result db_outbox_close(struct db_write *w, int64_t line, enum db_line_state state,
                               const char *reason, bool *closed)
    __attribute__((warn_unused_result));

/* Messages from one outbox.n to another of the same line, that are over, wait again: at most
 * DB_SEND_STEP_MAX, the first; *changed says how many. DB_CONFLICT: not all are there; *first:
 * from where on they are, 0: none is. */
enum db_result db_outbox_again(struct db_write *w, int64_t from, int64_t to, int *changed,
                               int64_t *first) __attribute__((warn_unused_result));

/* An operation that sends the draft's body on its line, sealed by the maker if the line has keys,
 * as it is in the open transaction (draft->keys are looked up here). DB_NONE: no such line;
 * DB_REFUSED: there is no maker; else what the maker said, with error. */
enum db_result db_outbox_draft(struct db_conn *c, struct db_send_draft draft, struct db_op **op,
                               struct db_error *error) __attribute__((warn_unused_result));

/* Tells a line's owner how it is, by the document hanji/lines/NAME, and, when alert is true, on the
 * line `alerts`. What cannot be told is not; only what ends the burst is returned. */
enum db_result db_outbox_notice(struct db_write *w, int64_t line, bool alert)
    __attribute__((warn_unused_result));

/* In a transaction of its own: deletes at most `most` messages that ended before the time, or whose
 * line is gone, with their tries. *more: there may be more. *oldest_s: when the first of those that
 * are still there ended, Unix seconds, 0: none has. */
enum db_result db_outbox_prune(struct db_conn *c, int64_t before_s, unsigned most, bool *more,
                               int64_t *oldest_s) __attribute__((warn_unused_result));

#endif
