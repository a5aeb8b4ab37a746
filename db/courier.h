/* What the courier reads, and what it reports: marks, applied by the server in its bursts.
 *
 * The courier never writes. It takes a fence (DB_OP_COURIER_LEASE: op->seq is the number), reads
 * with a reader of its own, and reports (DB_OP_COURIER_MARKS) with that fence; the report of one
 * whose fence is not the last given is DB_PRECONDITION, and nothing of it is applied. A mark about
 * a message that is not waiting any more (a person skipped it meanwhile) writes its attempt and
 * leaves the state. Losing a report only repeats a delivery. */
#ifndef HANJI_DB_COURIER_H
#define HANJI_DB_COURIER_H

#include "db/line.h"

/* DB_OP_COURIER_LEASE. */
struct db_op *db_courier_lease_op(int64_t pid) __attribute__((warn_unused_result));

enum {
    DB_MARK_DETAIL_MAX = 512,
    DB_MARK_WORD_MAX = 40,
    DB_MARKS_MAX = 1000,
    DB_PROOF_BYTES = 64,
    DB_ATTEMPTS_KEPT = 100, /* of a message, the newest */
};

/* One try of a message, or news of a line. */
struct db_mark {
    int64_t line;    /* line.id */
    int64_t message; /* outbox.n; 0: only about the line */
    /* of the message */
    bool attempted; /* there was a try: it is logged (at_ms … detail) */
    bool counted;   /* and counted in tries: something of the message was sent */
    bool skipped;   /* what was tried is the tombstone: skipped of struct db_due_message */
    int64_t at_ms, took_ms;
    unsigned status; /* of HTTP, 0: none came */
    char outcome[DB_MARK_WORD_MAX];  /* of [a-z0-9_ .-]; others become '_' */
    char detail[DB_MARK_DETAIL_MAX]; /* printable UTF-8, cut; what is not becomes '?' */
    enum db_send_state state;        /* that it has now: WAITING (due_ms), DELIVERED, PARKED,
                                        UNOPENABLE; SKIPPED: a tombstone was delivered */
    int64_t due_ms;
    bool has_proof;
    unsigned char proof[DB_PROOF_BYTES];
    /* of the line */
    int64_t wait_until_ms; /* 0: as it is */
    bool works;            /* something got through: it is not failing any more */
    bool fails;            /* it did not: failing since at_ms, unless it is already */
    enum db_line_state line_state; /* OPEN: as it is; PAUSED, DISABLED: with reason = outcome,
                                      if it is open */
    uint64_t send_again_from; /* the receiver misses numbers from here on: those that are over
                                 wait again; where they are gone the line is paused. 0: no */
};

/* count marks, at most DB_MARKS_MAX; applied in order, all or none. */
struct db_op *db_courier_marks_op(uint64_t fence, const struct db_mark *marks, unsigned count)
    __attribute__((warn_unused_result));

/* Lines whose due time is not behind now_ms, the most overdue first, at most `most`. */
enum db_result db_courier_lines(struct db_reader *r, int64_t now_ms, unsigned most,
                                bool (*each)(void *arg, const struct db_line *line), void *arg)
    __attribute__((warn_unused_result));

/* A message that may be sent. Pointers die at the next read. */
struct db_due_message {
    int64_t number; /* outbox.n */
    const char *id, *type;
    uint64_t seq;
    const unsigned char *prev, *hash, *proof; /* prev NULL: the first; proof NULL: none yet */
    const void *body;
    size_t bytes;
    bool sealed, skipped; /* skipped: a tombstone is wanted in its place */
    int64_t due_ms, expires, created;
    unsigned tries;
};

/* Of a line, what waits, at most `most`. Of a fifo line in order of number, behind after_seq, up to
 * the first that is parked; due or not: the courier sees by due_ms where it must stop. Of another,
 * those due at now_ms behind (after_due_ms, after_seq), in order of both. */
enum db_result db_courier_messages(struct db_reader *r, int64_t line, bool fifo, int64_t now_ms,
                                   int64_t after_due_ms, uint64_t after_seq, unsigned most,
                                   bool (*each)(void *arg, const struct db_due_message *m),
                                   void *arg) __attribute__((warn_unused_result));

/* The earliest due time of any line, Unix milliseconds, -1: nothing waits. */
enum db_result db_courier_due(struct db_reader *r, int64_t *due_ms)
    __attribute__((warn_unused_result));

#endif
