/* handlers/courier_plan: what follows from a try, with a clock and dice that the test holds. */
#include "handlers/courier_plan.h"

#include <string.h>

#include "tests/unit/run.h"

#define S INT64_C(1000)
#define MINUTE (60 * S)
#define H (60 * MINUTE)
#define DAY (24 * H)
#define NOW (INT64_C(1764547200) * S)

static const struct courier_times usual = {.first_ms = 5 * S, .most_ms = DAY, .age_ms = 4 * DAY, .line_ms = 5 * DAY};

/* A message's first try, just accepted, on a line that works. */
static struct courier_about about(void)
{
    return (struct courier_about){.times = &usual, .now_ms = NOW, .seq = 7, .due_ms = NOW - 3, .created_s = NOW / S};
}

static struct courier_end answered(enum courier_outcome outcome, unsigned status)
{
    return (struct courier_end){.outcome = outcome, .sent = true, .status = status};
}

static struct courier_end unsent(enum courier_outcome outcome)
{
    return (struct courier_end){.outcome = outcome};
}

START_TEST(names)
{
    for (int i = 0; i < COURIER_OUTCOMES; i++) {
        const char *name = courier_outcome_name((enum courier_outcome)i);
        ck_assert_ptr_nonnull(name);
        ck_assert_uint_lt(strlen(name), DB_MARK_WORD_MAX);
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(name, courier_outcome_name((enum courier_outcome)j));
    }
}
END_TEST

START_TEST(delivered)
{
    struct courier_about a = about();
    struct courier_end end = answered(COURIER_DELIVERED, 200);
    a.failing_s = NOW / S - 10 * DAY / S;
    a.strikes = 4;
    struct courier_plan p = courier_plan(&a, &end);
    ck_assert_int_eq(p.state, DB_SEND_DELIVERED);
    ck_assert(p.works && !p.fails && p.counted && !p.half_open && p.strikes == 0);
    ck_assert_int_eq(p.wait_until_ms, 0);
    ck_assert_int_eq(p.line_state, DB_LINE_OPEN);
    end.outcome = COURIER_DUPLICATE;
    ck_assert_int_eq(courier_plan(&a, &end).state, DB_SEND_DELIVERED);
}
END_TEST

START_TEST(tombstone)
{
    struct courier_about a = about();
    struct courier_end end = answered(COURIER_DELIVERED, 200);
    a.skipped = true;
    ck_assert_int_eq(courier_plan(&a, &end).state, DB_SEND_SKIPPED);
    end = answered(COURIER_ERROR, 500);
    ck_assert_int_eq(courier_plan(&a, &end).state, DB_SEND_WAITING);
}
END_TEST

/* Each pause is between half of what the schedule says and all of it; behind the last one it is parked. */
START_TEST(schedule)
{
    static const int64_t pauses[] = {5 * S,  5 * MINUTE, 30 * MINUTE, 2 * H,  5 * H,
                                     10 * H, 14 * H,     20 * H,      24 * H, -1};
    const struct courier_end end = answered(COURIER_ERROR, 500);
    for (unsigned tries = 0; tries < COUNT(pauses); tries++) {
        struct courier_about a = about();
        int64_t shortest = INT64_MAX, longest = 0;
        a.tries = tries;
        for (int i = 0; i < 400; i++) {
            a.random = (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15);
            struct courier_plan p = courier_plan(&a, &end);
            ck_assert_int_eq(p.state, pauses[tries] < 0 ? DB_SEND_PARKED : DB_SEND_WAITING);
            ck_assert(p.counted && p.fails && !p.works);
            shortest = p.due_ms - NOW < shortest ? p.due_ms - NOW : shortest;
            longest = p.due_ms - NOW > longest ? p.due_ms - NOW : longest;
        }
        if (pauses[tries] > 0) {
            ck_assert_int_ge(shortest, pauses[tries] / 2);
            ck_assert_int_le(longest, pauses[tries]);
            ck_assert_int_lt(shortest, pauses[tries] * 54 / 100);
            ck_assert_int_gt(longest, pauses[tries] * 96 / 100);
        }
    }
}
END_TEST

START_TEST(settings)
{
    static const struct courier_times quick = {.first_ms = 20, .most_ms = 50, .age_ms = 1000, .line_ms = 2000};
    struct courier_about a = about();
    a.times = &quick;
    for (a.tries = 0; a.tries < 9; a.tries++) {
        const struct courier_end end = answered(COURIER_ERROR, 500);
        int64_t pause = courier_plan(&a, &end).due_ms - NOW;
        ck_assert_int_ge(pause, a.tries == 0 ? 10 : 25);
        ck_assert_int_le(pause, a.tries == 0 ? 20 : 50);
    }
    for (int i = COURIER_TIMEOUT; i <= COURIER_LOCAL; i++) {
        const struct courier_end end = unsent((enum courier_outcome)i);
        a.failing_s = NOW / S - 3600;
        ck_assert_int_le(courier_plan(&a, &end).wait_until_ms - NOW, 50);
    }
}
END_TEST

START_TEST(too_old)
{
    const struct courier_end end = answered(COURIER_ERROR, 500);
    struct courier_about a = about();
    a.created_s = (NOW - 4 * DAY) / S + 1;
    ck_assert_int_eq(courier_plan(&a, &end).state, DB_SEND_WAITING);
    a.created_s -= 1;
    ck_assert_int_eq(courier_plan(&a, &end).state, DB_SEND_PARKED);
    /* but what gets through is delivered, however old */
    const struct courier_end good = answered(COURIER_DELIVERED, 204);
    ck_assert_int_eq(courier_plan(&a, &good).state, DB_SEND_DELIVERED);
}
END_TEST

/* Nothing was sent: the message stays as it is, the line waits, whatever its age and tries. */
START_TEST(nothing_sent)
{
    static const enum courier_outcome outcomes[] = {COURIER_DNS, COURIER_REFUSED, COURIER_TLS,
                                                    COURIER_BLOCKED_ADDRESS, COURIER_TIMEOUT, COURIER_CUT};
    for (size_t i = 0; i < COUNT(outcomes); i++) {
        struct courier_about a = about();
        const struct courier_end end = unsent(outcomes[i]);
        a.tries = 50;
        a.created_s -= 30 * DAY / S;
        struct courier_plan p = courier_plan(&a, &end);
        ck_assert(!p.counted && p.fails && !p.works && p.half_open);
        ck_assert_int_eq(p.state, DB_SEND_WAITING);
        ck_assert_int_eq(p.due_ms, a.due_ms);
        ck_assert_int_ge(p.wait_until_ms, NOW + 2500);
        ck_assert_int_le(p.wait_until_ms, NOW + 5 * S);
    }
}
END_TEST

/* Looks again after half of the time it has failed, at least every quarter of an hour. */
START_TEST(line_pauses)
{
    static const struct {
        int64_t failing, pause;
    } cases[] = {{0, 5 * S},        {1 * S, 5 * S},         {20 * S, 10 * S},      {10 * MINUTE, 5 * MINUTE},
                 {H, 15 * MINUTE},  {4 * DAY, 15 * MINUTE}, {-5 * DAY, 5 * S}};
    const struct courier_end end = unsent(COURIER_REFUSED);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct courier_about a = about();
        a.failing_s = cases[i].failing == 0 ? 0 : (NOW - cases[i].failing) / S;
        for (int j = 0; j < 100; j++) {
            a.random = (uint64_t)j * UINT64_C(0x9e3779b97f4a7c15);
            int64_t pause = courier_plan(&a, &end).wait_until_ms - NOW;
            ck_assert_int_ge(pause, cases[i].pause / 2);
            ck_assert_int_le(pause, cases[i].pause);
        }
    }
}
END_TEST

START_TEST(line_disabled)
{
    struct courier_about a = about();
    const struct courier_end ends[] = {unsent(COURIER_REFUSED), answered(COURIER_ERROR, 500),
                                       answered(COURIER_THROTTLED, 503), answered(COURIER_UNAUTHORIZED, 401),
                                       answered(COURIER_TIMEOUT, 0)};
    for (size_t i = 0; i < COUNT(ends); i++) {
        a.failing_s = (NOW - 5 * DAY) / S + 1;
        ck_assert_int_eq(courier_plan(&a, &ends[i]).line_state, DB_LINE_OPEN);
        a.failing_s -= 1;
        ck_assert_int_eq(courier_plan(&a, &ends[i]).line_state, DB_LINE_DISABLED);
    }
    /* not for what is wrong with one message, nor for what is wrong here */
    const struct courier_end others[] = {answered(COURIER_REJECTED, 422), answered(COURIER_UNKNOWN_KEY, 422),
                                         unsent(COURIER_LOCAL), answered(COURIER_DELIVERED, 200),
                                         answered(COURIER_BUSY, 409), answered(COURIER_GAP, 409)};
    for (size_t i = 0; i < COUNT(others); i++)
        ck_assert_int_eq(courier_plan(&a, &others[i]).line_state, DB_LINE_OPEN);
}
END_TEST

START_TEST(local)
{
    struct courier_about a = about();
    const struct courier_end end = unsent(COURIER_LOCAL);
    struct courier_plan p = courier_plan(&a, &end);
    ck_assert(!p.counted && !p.fails && !p.works && p.half_open);
    ck_assert_int_ge(p.wait_until_ms, NOW + 30 * S);
    ck_assert_int_le(p.wait_until_ms, NOW + 60 * S);
}
END_TEST

/* Others would fare alike: the line waits, and one message looks. */
START_TEST(held)
{
    static const unsigned statuses[] = {429, 502, 503, 504, 401};
    for (size_t i = 0; i < COUNT(statuses); i++) {
        struct courier_about a = about();
        const struct courier_end end =
            answered(statuses[i] == 401 ? COURIER_UNAUTHORIZED : COURIER_THROTTLED, statuses[i]);
        struct courier_plan p = courier_plan(&a, &end);
        ck_assert(p.counted && p.fails && p.half_open);
        ck_assert_int_eq(p.state, DB_SEND_WAITING);
        ck_assert_int_ge(p.wait_until_ms - NOW, statuses[i] == 401 ? 150 * S : 2500);
        ck_assert_int_le(p.wait_until_ms - NOW, statuses[i] == 401 ? 300 * S : 5 * S);
    }
}
END_TEST

START_TEST(strikes)
{
    struct courier_about a = about();
    const struct courier_end end = answered(COURIER_ERROR, 500), slow = answered(COURIER_TIMEOUT, 0);
    for (unsigned i = 0; i < COURIER_STRIKES; i++) {
        struct courier_plan p = courier_plan(&a, &end);
        ck_assert_uint_eq(p.strikes, i + 1);
        ck_assert_int_eq(p.half_open, i + 1 >= COURIER_STRIKES);
        ck_assert_int_eq(p.wait_until_ms != 0, i + 1 >= COURIER_STRIKES);
        a.strikes = p.strikes;
    }
    a.strikes = 0;
    ck_assert_uint_eq(courier_plan(&a, &slow).strikes, 2);
}
END_TEST

static const struct {
    int64_t said_s, pause_ms; /* 0: as if it had not been said */
} retry_after[] = {
    {0, 0},          {-1, 0},         {-350638288, 0}, {INT64_MIN, 0},
    {1, 5 * S},      {120, 120 * S},  {3600, H},       {86400, DAY},
    {86401, DAY},    {864000, DAY},   {INT64_MAX, DAY},
};

/* Never before it was asked for, never more than a day and half a minute, and for all of the line. */
START_TEST(retry_after_forms)
{
    static const unsigned statuses[] = {429, 503, 500};
    for (size_t i = 0; i < COUNT(retry_after); i++)
        for (size_t j = 0; j < COUNT(statuses); j++)
            for (int k = 0; k < 50; k++) {
                struct courier_about a = about();
                struct courier_end end =
                    answered(statuses[j] == 500 ? COURIER_ERROR : COURIER_THROTTLED, statuses[j]);
                end.retry_after_s = retry_after[i].said_s;
                a.random = (uint64_t)k * UINT64_C(0x9e3779b97f4a7c15);
                struct courier_plan p = courier_plan(&a, &end);
                int64_t due = p.due_ms - NOW, wait = p.wait_until_ms - NOW;
                ck_assert_int_ge(due, retry_after[i].said_s >= 5 ? retry_after[i].pause_ms : 1000);
                ck_assert_int_le(due, (retry_after[i].pause_ms ? retry_after[i].pause_ms : 5 * S) + 30 * S);
                if (retry_after[i].said_s > 0) {
                    ck_assert(p.half_open);
                    ck_assert_int_ge(wait, retry_after[i].said_s >= 5 ? retry_after[i].pause_ms : 1000);
                    ck_assert_int_le(wait, retry_after[i].pause_ms + 30 * S);
                } else if (statuses[j] == 500) {
                    ck_assert_int_eq(p.wait_until_ms, 0);
                }
            }
}
END_TEST

/* The schedule's pause, when that is longer. */
START_TEST(retry_after_shorter)
{
    struct courier_about a = about();
    struct courier_end end = answered(COURIER_THROTTLED, 429);
    end.retry_after_s = 10;
    a.tries = 3;
    struct courier_plan p = courier_plan(&a, &end);
    ck_assert_int_ge(p.due_ms - NOW, H);
    ck_assert_int_le(p.wait_until_ms - NOW, 12 * S);
}
END_TEST

START_TEST(permanent)
{
    static const struct {
        enum courier_outcome outcome;
        unsigned status;
        bool coded;
        unsigned tries; /* the one it is parked at */
    } cases[] = {
        {COURIER_REJECTED, 400, true, 1},    {COURIER_REJECTED, 400, false, 3}, {COURIER_TOO_LARGE, 413, true, 1},
        {COURIER_TOO_LARGE, 413, false, 3},  {COURIER_REJECTED, 422, false, 3}, {COURIER_ID_CONFLICT, 422, true, 1},
        {COURIER_UNKNOWN_KEY, 422, true, 1}, {COURIER_REJECTED, 404, false, 10}, {COURIER_REJECTED, 403, false, 10},
        {COURIER_DOES_NOT_OPEN, 422, true, 1}, {COURIER_REDIRECT, 301, false, 10},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (unsigned tries = 0; tries < COURIER_TRIES; tries++) {
            struct courier_about a = about();
            struct courier_end end = answered(cases[i].outcome, cases[i].status);
            end.coded = cases[i].coded;
            a.tries = tries;
            struct courier_plan p = courier_plan(&a, &end);
            ck_assert_int_eq(p.state, tries + 1 >= cases[i].tries ? DB_SEND_PARKED : DB_SEND_WAITING);
            ck_assert_int_eq(p.fails, cases[i].tries == COURIER_TRIES);
        }
}
END_TEST

START_TEST(unopenable)
{
    struct courier_about a = about();
    struct courier_end end = answered(COURIER_UNKNOWN_KEY, 422);
    a.expires_s = NOW / S + 1;
    ck_assert_int_eq(courier_plan(&a, &end).state, DB_SEND_PARKED);
    a.expires_s = NOW / S;
    ck_assert_int_eq(courier_plan(&a, &end).state, DB_SEND_UNOPENABLE);
    end.outcome = COURIER_DOES_NOT_OPEN;
    ck_assert_int_eq(courier_plan(&a, &end).state, DB_SEND_PARKED);
}
END_TEST

START_TEST(gone)
{
    struct courier_about a = about();
    const struct courier_end end = answered(COURIER_GONE, 410);
    struct courier_plan p = courier_plan(&a, &end);
    ck_assert_int_eq(p.line_state, DB_LINE_PAUSED);
    ck_assert_int_eq(p.state, DB_SEND_WAITING);
    a.tries = 30;
    ck_assert_int_eq(courier_plan(&a, &end).state, DB_SEND_WAITING);
}
END_TEST

START_TEST(gap)
{
    struct courier_about a = about();
    struct courier_end end = answered(COURIER_GAP, 409);
    end.expected = 4;
    struct courier_plan p = courier_plan(&a, &end);
    ck_assert_uint_eq(p.send_again_from, 4);
    ck_assert(!p.counted && !p.fails && p.wait_until_ms == 0);
    ck_assert_int_eq(p.due_ms, a.due_ms);
    /* the same again, though it was sent: as any failure, and asked for once more */
    a.gap = 4;
    p = courier_plan(&a, &end);
    ck_assert_uint_eq(p.send_again_from, 4);
    ck_assert(p.counted);
    ck_assert_int_gt(p.due_ms, NOW);
    a.gap = 3;
    ck_assert(!courier_plan(&a, &end).counted);
}
END_TEST

/* A number that cannot be is not believed. */
START_TEST(gap_impossible)
{
    static const uint64_t numbers[] = {0, 7, 8, UINT64_MAX};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        struct courier_about a = about();
        struct courier_end end = answered(COURIER_GAP, 409);
        end.expected = numbers[i];
        struct courier_plan p = courier_plan(&a, &end);
        ck_assert_uint_eq(p.send_again_from, 0);
        ck_assert(p.counted);
        ck_assert_int_gt(p.due_ms, NOW);
    }
}
END_TEST

START_TEST(busy)
{
    struct courier_about a = about();
    struct courier_end end = answered(COURIER_BUSY, 409);
    a.tries = 9;
    struct courier_plan p = courier_plan(&a, &end);
    ck_assert_int_eq(p.state, DB_SEND_WAITING);
    ck_assert(!p.counted && !p.fails);
    ck_assert_int_ge(p.due_ms - NOW, S);
    ck_assert_int_le(p.due_ms - NOW, 2 * S);
    end.retry_after_s = 60;
    ck_assert_int_ge(courier_plan(&a, &end).due_ms - NOW, 60 * S);
    a.created_s -= 4 * DAY / S;
    ck_assert_int_eq(courier_plan(&a, &end).state, DB_SEND_PARKED);
}
END_TEST

/* Whatever comes in: nothing is due in the past, nothing waits longer than a day and half a minute, and only what is
 * delivered is said to be. */
START_TEST(everything)
{
    static const int64_t numbers[] = {INT64_MIN, -1, 0, 1, 5, 3600, 1 << 20, INT64_MAX};
    unsigned wrong = 0;
    for (int outcome = 0; outcome < COURIER_OUTCOMES; outcome++)
        for (unsigned status = 0; status < 1000; status += 1 + status % 29)
            for (unsigned i = 0; i < 1024; i++) {
                struct courier_about a = about();
                struct courier_end end = answered((enum courier_outcome)outcome, status);
                end.sent = i & 1;
                end.coded = i & 2;
                end.retry_after_s = numbers[i >> 2 & 7];
                end.expected = (uint64_t)numbers[i >> 5 & 7];
                a.tries = i >> 8 & 1 ? 9 : i % 9;
                a.failing_s = i >> 9 & 1 ? NOW / S - i * 1000 : 0;
                a.random = i * UINT64_C(0x9e3779b97f4a7c15) ^ status;
                struct courier_plan p = courier_plan(&a, &end);
                bool good = end.sent && (outcome == COURIER_DELIVERED || outcome == COURIER_DUPLICATE);
                wrong += p.works != good || (p.state == DB_SEND_DELIVERED) != good || (p.works && p.fails);
                wrong += p.due_ms != a.due_ms && (p.due_ms <= NOW || p.due_ms > NOW + DAY + 30 * S);
                wrong += p.wait_until_ms != 0 && (p.wait_until_ms <= NOW || p.wait_until_ms > NOW + DAY + 30 * S);
                wrong += (p.counted && !end.sent) || p.send_again_from >= a.seq;
            }
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

/* A receiver that is down for a day: looked at often enough, and no message pays for it. */
START_TEST(a_day_down)
{
    struct courier_about a = about();
    const struct courier_end end = unsent(COURIER_REFUSED);
    unsigned looks = 0;
    for (int64_t from = a.now_ms; a.now_ms < from + DAY; looks++) {
        a.random = looks * UINT64_C(0x9e3779b97f4a7c15);
        struct courier_plan p = courier_plan(&a, &end);
        ck_assert(!p.counted && p.state == DB_SEND_WAITING && p.line_state == DB_LINE_OPEN);
        if (a.failing_s == 0)
            a.failing_s = a.now_ms / S;
        ck_assert_int_le(p.wait_until_ms - a.now_ms, 15 * MINUTE);
        a.now_ms = p.wait_until_ms;
    }
    ck_assert_uint_ge(looks, 96);
    ck_assert_uint_le(looks, 250);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("courier_plan");
    TCase *c = run_case(s, "plan");
    tcase_add_test(c, names);
    tcase_add_test(c, delivered);
    tcase_add_test(c, tombstone);
    tcase_add_test(c, schedule);
    tcase_add_test(c, settings);
    tcase_add_test(c, too_old);
    tcase_add_test(c, nothing_sent);
    tcase_add_test(c, line_pauses);
    tcase_add_test(c, line_disabled);
    tcase_add_test(c, local);
    tcase_add_test(c, held);
    tcase_add_test(c, strikes);
    tcase_add_test(c, retry_after_forms);
    tcase_add_test(c, retry_after_shorter);
    tcase_add_test(c, permanent);
    tcase_add_test(c, unopenable);
    tcase_add_test(c, gone);
    tcase_add_test(c, gap);
    tcase_add_test(c, gap_impossible);
    tcase_add_test(c, busy);
    tcase_add_test(c, everything);
    tcase_add_test(c, a_day_down);
    return run_suite(s);
}
