#include "handlers/courier_plan.h"

#define SECOND_MS INT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)

static const int64_t line_pause_most_ms = 15 * MINUTE_MS;
static const int64_t slow_ms = 5 * MINUTE_MS;
static const int64_t local_ms = 1 * MINUTE_MS;
static const int64_t busy_ms = 1 * SECOND_MS;
static const int64_t jitter_most_ms = 30 * SECOND_MS;

/* Pauses behind the first, second … failure (Standard Webhooks); the first is a setting. */
static const int64_t pauses_ms[COURIER_TRIES - 1] = {
    0,           5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS,  5 * HOUR_MS,
    10 * HOUR_MS, 14 * HOUR_MS, 20 * HOUR_MS,   24 * HOUR_MS,
};

const char *courier_outcome_name(enum courier_outcome outcome)
{
    static const char *const names[COURIER_OUTCOMES] = {
        [COURIER_DELIVERED] = "delivered",
        [COURIER_DUPLICATE] = "duplicate",
        [COURIER_GAP] = "gap",
        [COURIER_BUSY] = "busy",
        [COURIER_REJECTED] = "rejected",
        [COURIER_GONE] = "gone",
        [COURIER_TOO_LARGE] = "too_large",
        [COURIER_THROTTLED] = "throttled",
        [COURIER_ERROR] = "error",
        [COURIER_REDIRECT] = "redirect",
        [COURIER_UNAUTHORIZED] = "unauthorized",
        [COURIER_UNKNOWN_KEY] = "unknown_recipient_key",
        [COURIER_DOES_NOT_OPEN] = "does_not_open",
        [COURIER_ID_CONFLICT] = "id_conflict",
        [COURIER_TIMEOUT] = "timeout",
        [COURIER_DNS] = "dns",
        [COURIER_REFUSED] = "refused",
        [COURIER_TLS] = "tls",
        [COURIER_BLOCKED_ADDRESS] = "blocked_address",
        [COURIER_CUT] = "cut",
        [COURIER_LOCAL] = "local",
    };
    return names[outcome];
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A time between half of base and base. */
static int64_t jittered(int64_t base, uint64_t random)
{
    return base - (int64_t)(random % (uint64_t)(base / 2 + 1));
}

static int64_t schedule(const struct courier_about *a)
{
    unsigned i = a->tries < COURIER_TRIES - 1 ? a->tries : COURIER_TRIES - 2;
    return jittered(least(most(pauses_ms[i], a->times->first_ms), a->times->most_ms), a->random);
}

/* Grows with the time the line has been failing, and needs no count that a restart would lose. */
static int64_t line_pause(const struct courier_about *a)
{
    int64_t failing = a->failing_s == 0 ? 0 : most(0, a->now_ms - a->failing_s * SECOND_MS);
    int64_t pause = least(most(failing / 2, a->times->first_ms), line_pause_most_ms);
    return jittered(least(pause, a->times->most_ms), a->random);
}

/* 0: none. A receiver may not stop a line for ever, nor be asked before its time. */
static int64_t retry_after(const struct courier_about *a, const struct courier_end *end)
{
    if (end->retry_after_s <= 0)
        return 0;
    int64_t ms = least(end->retry_after_s, COURIER_RETRY_AFTER_MAX_S) * SECOND_MS;
    return ms + (int64_t)(a->random % (uint64_t)(least(ms / 10, jitter_most_ms) + 1));
}

static void hold(const struct courier_about *a, struct courier_plan *p, int64_t pause_ms)
{
    p->half_open = true;
    p->wait_until_ms = most(p->wait_until_ms, a->now_ms + pause_ms);
}

static bool too_old(const struct courier_about *a)
{
    return a->now_ms - a->created_s * SECOND_MS >= a->times->age_ms;
}

/* Again by the schedule, or parked. */
static void again(const struct courier_about *a, const struct courier_end *end,
                  struct courier_plan *p)
{
    int64_t asked = retry_after(a, end);
    p->counted = true;
    if (asked > 0)
        hold(a, p, asked);
    if (a->tries + 1 >= COURIER_TRIES || too_old(a))
        p->state = DB_SEND_PARKED;
    p->due_ms = a->now_ms + most(schedule(a), asked);
}

/* The line is at fault, or looks so: everybody waits, then one goes and looks. */
static void line_fails(const struct courier_about *a, struct courier_plan *p)
{
    p->fails = true;
    hold(a, p, line_pause(a));
}

static void strike(const struct courier_about *a, struct courier_plan *p, unsigned weight)
{
    p->fails = true;
    p->strikes = a->strikes + weight;
    if (p->strikes >= COURIER_STRIKES)
        hold(a, p, line_pause(a));
}

/* A receiver that always misses the same one (it may be gone here) is not asked about it in a
 * circle. */
static void gap(const struct courier_about *a, const struct courier_end *end,
                struct courier_plan *p)
{
    bool possible = end->expected >= 1 && end->expected < a->seq;
    if (!possible || end->expected == a->gap)
        again(a, end, p);
    if (possible)
        p->send_again_from = end->expected;
}

/* The receiver finds the message wrong, and would tomorrow. */
static void refused(const struct courier_about *a, const struct courier_end *end,
                    struct courier_plan *p)
{
    again(a, end, p);
    if (end->coded || a->tries + 1 >= COURIER_TRIES_REFUSED)
        p->state = DB_SEND_PARKED;
}

static void park(const struct courier_about *a, struct courier_plan *p, bool unopenable)
{
    bool late = a->expires_s != 0 && a->now_ms >= a->expires_s * SECOND_MS;
    p->counted = true;
    p->state = unopenable && late ? DB_SEND_UNOPENABLE : DB_SEND_PARKED;
}

/* Answers that are an error of the receiver, or none that means anything. */
static void failed(const struct courier_about *a, const struct courier_end *end,
                   struct courier_plan *p)
{
    again(a, end, p);
    if (end->status == 429 || (end->status >= 502 && end->status <= 504))
        line_fails(a, p);
    else if (end->outcome == COURIER_UNAUTHORIZED) {
        p->fails = true;
        hold(a, p, jittered(least(slow_ms, a->times->most_ms), a->random));
    } else {
        strike(a, p, end->outcome == COURIER_TIMEOUT ? 2 : 1);
    }
}

static void plan_sent(const struct courier_about *a, const struct courier_end *end,
                      struct courier_plan *p)
{
    bool wrong = end->status == 400 || end->status == 413 || end->status == 422;
    switch (end->outcome) {
    case COURIER_DELIVERED:
    case COURIER_DUPLICATE:
        p->counted = p->works = true;
        p->strikes = 0;
        p->state = a->skipped ? DB_SEND_SKIPPED : DB_SEND_DELIVERED;
        break;
    case COURIER_GAP:
        gap(a, end, p);
        break;
    case COURIER_BUSY:
        again(a, end, p);
        if (!too_old(a)) /* only that ends it */
            p->state = DB_SEND_WAITING;
        p->counted = false;
        p->due_ms = a->now_ms + most(busy_ms + jittered(busy_ms, a->random), retry_after(a, end));
        break;
    case COURIER_GONE:
        p->counted = true;
        p->line_state = DB_LINE_PAUSED;
        break;
    case COURIER_UNKNOWN_KEY:
    case COURIER_DOES_NOT_OPEN:
    case COURIER_ID_CONFLICT:
        park(a, p, end->outcome == COURIER_UNKNOWN_KEY);
        break;
    default:
        if (wrong)
            refused(a, end, p);
        else
            failed(a, end, p);
    }
}

struct courier_plan courier_plan(const struct courier_about *a, const struct courier_end *end)
{
    struct courier_plan p = {
        .state = DB_SEND_WAITING,
        .due_ms = a->due_ms,
        .line_state = DB_LINE_OPEN,
        .strikes = a->strikes,
    };
    if (end->outcome == COURIER_LOCAL)
        hold(a, &p, jittered(least(local_ms, a->times->most_ms), a->random));
    else if (!end->sent)
        line_fails(a, &p);
    else
        plan_sent(a, end, &p);
    if (p.fails && a->failing_s != 0 &&
        a->now_ms - a->failing_s * SECOND_MS >= a->times->line_ms)
        p.line_state = DB_LINE_DISABLED;
    return p;
}
