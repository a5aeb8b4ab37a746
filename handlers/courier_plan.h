/* What follows from how a try ended: for the message, and for its line. Pure; clock and random
 * numbers are given, so that a day is a moment in a test.
 *
 * Two things can be at fault. When nothing could be sent (no name, no connection, no proof of who
 * it is, an address that is not allowed) it is the line: the message's tries stay as they are, the
 * line is looked at again after a pause that grows with the time it has been failing, one message
 * at a time (half-open) until one gets through. When something was sent it is the message's try: it
 * follows the schedule of Standard Webhooks, at most COURIER_TRIES and no longer than its age
 * limit, and is then parked. What says that all others would fare alike (429, 502, 503, 504, 401,
 * several failures in a row) holds the line as well. Retry-After holds the line, is taken up to a
 * day, and jitter is only added to it. */
#ifndef HANJI_HANDLERS_COURIER_PLAN_H
#define HANJI_HANDLERS_COURIER_PLAN_H

#include "db/courier.h"

enum courier_outcome {
    COURIER_DELIVERED,
    COURIER_DUPLICATE, /* it had come before */
    COURIER_GAP,       /* numbers before it have not come */
    COURIER_BUSY,
    COURIER_REJECTED, /* 4xx */
    COURIER_GONE,
    COURIER_TOO_LARGE,
    COURIER_THROTTLED, /* 429, 503 */
    COURIER_ERROR,     /* 5xx, and what is no HTTP status */
    COURIER_REDIRECT,
    COURIER_UNAUTHORIZED,
    COURIER_UNKNOWN_KEY, /* it was sealed to a key the receiver does not have */
    COURIER_DOES_NOT_OPEN,
    COURIER_ID_CONFLICT,
    COURIER_TIMEOUT,
    COURIER_DNS,
    COURIER_REFUSED, /* no connection */
    COURIER_TLS,
    COURIER_BLOCKED_ADDRESS,
    COURIER_CUT,   /* the connection ended before there was an answer, or it is none */
    COURIER_LOCAL, /* our own fault */
    COURIER_OUTCOMES
};

/* As it stands in the log of tries. */
const char *courier_outcome_name(enum courier_outcome outcome);

enum {
    COURIER_TRIES = 10,         /* at most, of one message */
    COURIER_TRIES_REFUSED = 3,  /* of one that the receiver finds wrong without one of our codes */
    COURIER_STRIKES = 5,        /* failures in a row that make a line half-open */
    COURIER_RETRY_AFTER_MAX_S = 24 * 3600,
};

/* How it ended. */
struct courier_end {
    enum courier_outcome outcome;
    bool sent;             /* something of the message was */
    unsigned status;       /* of HTTP, 0: none came */
    int64_t retry_after_s; /* as the receiver said it; anything */
    uint64_t expected;     /* of GAP, as the receiver said it; anything */
    bool coded;            /* the answer has one of our codes */
};

/* Settings, in milliseconds. */
struct courier_times {
    int64_t first_ms; /* pause behind a message's first failure */
    int64_t most_ms;  /* no pause is longer, but for Retry-After */
    int64_t age_ms;   /* a message is parked at its first failure behind this */
    int64_t line_ms;  /* a line that has been failing for so long is disabled */
};

/* What was tried, and how its line is. */
struct courier_about {
    const struct courier_times *times;
    int64_t now_ms; /* Unix */
    uint64_t random;
    uint64_t seq;
    int64_t due_ms;
    int64_t created_s, expires_s; /* expires_s: nobody can open it from then on, 0 never */
    unsigned tries; /* before this one */
    bool skipped;   /* it was a tombstone */
    int64_t failing_s; /* of the line: since when, Unix, 0: it works */
    unsigned strikes;  /* in a row, before this one */
    uint64_t gap;      /* the number that was asked for last, and nothing got through since; 0 */
};

struct courier_plan {
    /* as in struct db_mark */
    bool counted, works, fails;
    enum db_send_state state;
    int64_t due_ms, wait_until_ms;
    enum db_line_state line_state;
    uint64_t send_again_from;
    /* of the line */
    bool half_open;
    unsigned strikes;
};

struct courier_plan courier_plan(const struct courier_about *a, const struct courier_end *end);

#endif
