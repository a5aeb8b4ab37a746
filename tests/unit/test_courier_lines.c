/* handlers/courier_lines: who may send, who is read, and what a line that fails takes from the others: nothing. */
#include "handlers/courier_lines.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

static struct courier_lines l;
static int64_t now = INT64_C(1764547200000), mono = 5000;

static void start(void)
{
    courier_lines_start(&l);
}

static void stop(void)
{
    courier_lines_free(&l);
}

static struct courier_row row(int64_t id, bool fifo)
{
    struct courier_row r = {.id = id, .fifo = fifo, .open = true, .host = (uint32_t)id, .seq = 100, .waiting = 100,
                            .due_ms = now - 1};
    snprintf(r.name, sizeof r.name, "line%lld", (long long)id);
    return r;
}

/* A look that sees these. */
static void look(const struct courier_row *rows, unsigned n)
{
    courier_lines_look_begin(&l);
    for (unsigned i = 0; i < n; i++)
        ck_assert(courier_lines_look(&l, &rows[i], now));
    courier_lines_look_end(&l);
}

static void look_at(unsigned lines, bool fifo)
{
    struct courier_row rows[200];
    for (unsigned i = 0; i < lines; i++)
        rows[i] = row(i + 1, fifo);
    look(rows, lines);
}

static unsigned next_number;

/* n messages of b bytes, as a read gives them. */
static struct courier_item *items(unsigned n, size_t b)
{
    struct courier_item *first = NULL, **tail = &first;
    for (unsigned i = 0; i < n; i++) {
        struct courier_item *item = calloc(1, sizeof *item);
        item->number = item->seq = ++next_number;
        item->due_ms = now - 1;
        item->bytes = b;
        *tail = item;
        tail = &item->next;
    }
    return first;
}

/* Reads every line that wants it, as if it had no end. How many there were. */
static unsigned read_all(size_t bytes)
{
    struct courier_line *line;
    unsigned most, n = 0;
    for (; (line = courier_lines_read(&l, now, &most)) != NULL; n++) {
        ck_assert_uint_ge(most, 1);
        ck_assert_uint_le(most, COURIER_READ_MOST);
        courier_lines_was_read(&l, line, items(most, bytes), true, INT64_MAX);
    }
    return n;
}

static struct courier_item *next(void)
{
    return courier_lines_next(&l, now, mono);
}

static const struct courier_plan done = {.works = true, .counted = true, .state = DB_SEND_DELIVERED};
static const struct courier_plan again = {.fails = true, .counted = true, .state = DB_SEND_WAITING, .strikes = 1};

static void end(struct courier_item *item, const struct courier_plan *plan)
{
    courier_lines_ended(&l, item, plan, now);
    courier_lines_reported(&l, item);
    courier_item_free(item);
}

/* It cannot be reached: as courier_plan says it. */
static void lost(struct courier_item *item, int64_t pause_ms)
{
    struct courier_plan plan = {.fails = true, .half_open = true, .state = DB_SEND_WAITING, .wait_until_ms = now + pause_ms};
    plan.due_ms = item->due_ms;
    end(item, &plan);
}

/* Sends all that may be, up to n. */
static unsigned send_all(struct courier_item **out, unsigned n)
{
    unsigned count = 0;
    while (count < n && (out[count] = next()) != NULL)
        count++;
    return count;
}

START_TEST(nothing)
{
    unsigned most;
    ck_assert_ptr_null(next());
    ck_assert_ptr_null(courier_lines_read(&l, now, &most));
    ck_assert(!courier_lines_busy(&l));
    ck_assert_int_eq(courier_lines_wait(&l, now, mono), -1);
    look(NULL, 0);
    ck_assert_ptr_null(next());
}
END_TEST

START_TEST(fifo_is_one_at_a_time)
{
    look_at(1, true);
    ck_assert_uint_ge(read_all(10), 1);
    for (uint64_t seq = 1; seq < 50; seq++) {
        struct courier_item *item = next();
        ck_assert_ptr_nonnull(item);
        ck_assert_uint_eq(item->seq, seq);
        ck_assert_ptr_null(next());
        end(item, &done);
        read_all(10);
    }
}
END_TEST

/* What did not get through comes again before what is behind it. */
START_TEST(fifo_failure)
{
    look_at(1, true);
    read_all(10);
    end(next(), &done);
    struct courier_item *item = next();
    courier_lines_ended(&l, item, &again, now);
    ck_assert_ptr_null(next());
    unsigned most;
    ck_assert_ptr_null(courier_lines_read(&l, now, &most)); /* not before the store knows */
    courier_lines_reported(&l, item);
    courier_item_free(item);
    struct courier_line *line = courier_lines_read(&l, now, &most);
    ck_assert_ptr_nonnull(line);
    ck_assert_uint_eq(line->after_seq, 0);
    courier_lines_was_read(&l, line, NULL, false, now + 5000); /* its head is not due */
    ck_assert_ptr_null(courier_lines_read(&l, now, &most));
    ck_assert_int_eq(courier_lines_wait(&l, now, mono), 5000);
    ck_assert_ptr_nonnull(courier_lines_read(&l, now + 5000, &most));
}
END_TEST

/* Each that gets through doubles it: 1, 2, 8, and no more. */
START_TEST(ramp)
{
    struct courier_item *flying[COURIER_FLYING];
    static const unsigned expected[] = {1, 2, 8, 8, 8};
    look_at(1, false);
    for (size_t i = 0; i < COUNT(expected); i++) {
        unsigned n = 0;
        read_all(10);
        while ((flying[n] = next()) != NULL)
            n++;
        ck_assert_uint_eq(n, expected[i]);
        for (unsigned j = 0; j < n; j++)
            courier_lines_ended(&l, flying[j], &done, now);
        for (unsigned j = 0; j < n; j++) {
            courier_lines_reported(&l, flying[j]);
            courier_item_free(flying[j]);
        }
    }
}
END_TEST

START_TEST(half_open)
{
    struct courier_item *flying[COURIER_FLYING];
    look_at(1, false);
    for (int i = 0; i < 8; i++) {
        read_all(10);
        end(next(), &done);
    }
    read_all(10);
    unsigned n = send_all(flying, COURIER_FLYING);
    ck_assert_uint_eq(n, 8);
    for (unsigned i = 0; i < n; i++)
        lost(flying[i], 5000);
    read_all(10);
    ck_assert_ptr_null(next());
    ck_assert_int_eq(courier_lines_wait(&l, now, mono), 5000);
    now += 5000;
    read_all(10);
    struct courier_item *probe = next();
    ck_assert_ptr_nonnull(probe);
    ck_assert_ptr_null(next());
    read_all(10);
    ck_assert_ptr_null(next());
    end(probe, &done);
    read_all(10);
    ck_assert_uint_eq(send_all(flying, COURIER_FLYING), 2); /* and so on */
    end(flying[0], &done);
    end(flying[1], &done);
}
END_TEST

/* Another courier found it so. */
START_TEST(half_open_from_the_start)
{
    struct courier_row r = row(1, false);
    r.failing_s = now / 1000 - 60;
    r.wait_until_ms = now - 10;
    look(&r, 1);
    read_all(10);
    struct courier_item *item = next();
    ck_assert(item->line->half_open);
    ck_assert_int_eq(item->line->trust, COURIER_TROUBLED);
    ck_assert_ptr_null(next());
    courier_item_free(item);
}
END_TEST

START_TEST(one_host)
{
    struct courier_row rows[10];
    struct courier_item *flying[COURIER_FLYING];
    for (unsigned i = 0; i < 10; i++) {
        rows[i] = row(i + 1, false);
        rows[i].host = 77;
    }
    look(rows, 10);
    for (int i = 0; i < 200; i++) {
        read_all(10);
        end(next(), &done);
    }
    read_all(10);
    ck_assert_uint_eq(send_all(flying, COURIER_FLYING), COURIER_FLYING_HOST);
    for (unsigned i = 0; i < COURIER_FLYING_HOST; i++)
        end(flying[i], &done);
}
END_TEST

START_TEST(all_together)
{
    struct courier_item *flying[COURIER_FLYING + 1];
    look_at(100, false);
    for (int i = 0; i < 1000; i++) {
        read_all(10);
        end(next(), &done);
    }
    read_all(10);
    ck_assert_uint_eq(send_all(flying, COURIER_FLYING + 1), COURIER_FLYING);
    for (unsigned i = 0; i < COURIER_FLYING; i++)
        end(flying[i], &done);
}
END_TEST

/* Lines that nobody knows, and that hang, leave room for those that work. */
START_TEST(unproven_leave_room)
{
    struct courier_item *flying[COURIER_FLYING + 1], *good[COURIER_FLYING];
    struct courier_row rows[101];
    for (unsigned i = 0; i < 101; i++)
        rows[i] = row(i + 1, false);
    look(rows, 1);
    for (int i = 0; i < 8; i++) {
        read_all(10);
        end(next(), &done);
    }
    unsigned n = 0;
    look(rows, 101);
    read_all(10);
    for (struct courier_item *item; (item = next()) != NULL;)
        if (item->line->id == 1)
            good[0] = item, end(item, &done), read_all(10);
        else {
            flying[n++] = item;
            if (n == COURIER_FLYING_UNPROVEN)
                break;
        }
    read_all(10);
    ck_assert_uint_eq(send_all(good, COURIER_FLYING), COURIER_FLYING_LINE);
    for (unsigned i = 0; i < COURIER_FLYING_LINE; i++) {
        ck_assert_int_eq(good[i]->line->id, 1);
        end(good[i], &done);
    }
    for (unsigned i = 0; i < n; i++)
        end(flying[i], &done);
}
END_TEST

/* A hundred lines of which each probe hangs: sixteen at a time. */
START_TEST(troubled_share)
{
    struct courier_row rows[100];
    struct courier_item *flying[COURIER_FLYING];
    for (unsigned i = 0; i < 100; i++) {
        rows[i] = row(i + 1, false);
        rows[i].failing_s = now / 1000 - 60;
        rows[i].wait_until_ms = now - 10;
    }
    look(rows, 100);
    read_all(10);
    ck_assert_uint_eq(send_all(flying, COURIER_FLYING), COURIER_FLYING_TROUBLED);
    for (unsigned i = 0; i < COURIER_FLYING_TROUBLED; i++)
        for (unsigned j = 0; j < i; j++)
            ck_assert_ptr_ne(flying[i]->line, flying[j]->line);
    for (unsigned i = 0; i < COURIER_FLYING_TROUBLED; i++)
        lost(flying[i], 5000);
}
END_TEST

START_TEST(turns)
{
    unsigned counts[21] = {0};
    look_at(20, true);
    for (int i = 0; i < 2000; i++) {
        read_all(10);
        struct courier_item *item = next();
        counts[item->line->id]++;
        end(item, &done);
    }
    for (int i = 1; i <= 20; i++)
        ck_assert_uint_eq(counts[i], 100);
}
END_TEST

/* A hundred lines, simulated: each delivery takes 10 ms, of the last line one that hangs for 30 s. The others deliver as if it
 * were not there. */
START_TEST(dead_among_a_hundred)
{
    unsigned delivered[2] = {0};
    for (int dead = 0; dead < 2; dead++) {
        struct courier_item *flying[COURIER_FLYING + 1];
        int64_t ends[COURIER_FLYING];
        unsigned n = 0;
        courier_lines_start(&l);
        look_at(100, false);
        for (int64_t until = now + 20000; now < until; now++, mono++) {
            for (unsigned i = 0; i < n;)
                if (ends[i] <= now) {
                    if (dead && flying[i]->line->id == 100)
                        lost(flying[i], 5000);
                    else {
                        delivered[dead] += flying[i]->line->id < 100;
                        end(flying[i], &done);
                    }
                    n--;
                    flying[i] = flying[n];
                    ends[i] = ends[n];
                } else
                    i++;
            read_all(100);
            while ((flying[n] = next()) != NULL) {
                ends[n] = now + (dead && flying[n]->line->id == 100 ? 30000 : 10);
                n++;
            }
        }
        for (unsigned i = 0; i < n; i++)
            end(flying[i], &done);
        if (dead == 0)
            courier_lines_free(&l);
    }
    ck_assert_uint_gt(delivered[0], 100000);
    ck_assert_uint_gt(delivered[1], delivered[0] / 100 * 97);
}
END_TEST

START_TEST(rate)
{
    static const struct {
        double rate;
        unsigned least, most; /* in ten seconds */
    } cases[] = {{0.5, 5, 6}, {1, 10, 11}, {10, 100, 101}, {100, 990, 1010}, {1000, 9900, 10100}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct courier_row r = row((int64_t)i + 1, false);
        unsigned n = 0;
        r.rate = cases[i].rate;
        look(&r, 1);
        for (int64_t until = mono + 10000; mono < until;) {
            read_all(10);
            struct courier_item *item = next();
            if (item != NULL) {
                n++;
                end(item, &done);
                continue;
            }
            int64_t wait = courier_lines_wait(&l, now, mono);
            ck_assert_int_ge(wait, 1);
            ck_assert_int_le(wait, 2001);
            mono += wait;
            now += wait;
        }
        ck_assert_uint_ge(n, cases[i].least);
        ck_assert_uint_le(n, cases[i].most);
    }
}
END_TEST

START_TEST(memory_is_bounded)
{
    look_at(100, false);
    for (int round = 0; round < 20; round++) {
        struct courier_item *flying[COURIER_FLYING];
        read_all(400 << 10);
        size_t bytes = 0;
        for (int i = 0; i < COURIER_TRUSTS; i++)
            bytes += l.trust_bytes[i];
        /* what a read may bring more */
        ck_assert_uint_le(bytes, COURIER_HELD_BYTES + COURIER_READ_MOST * (400 << 10));
        unsigned n = send_all(flying, COURIER_FLYING);
        ck_assert_uint_gt(n, 0);
        for (unsigned i = 0; i < n; i++)
            end(flying[i], &done);
    }
}
END_TEST

START_TEST(server_away)
{
    static struct courier_item *gone[COURIER_UNREPORTED + 1];
    unsigned n = 0;
    look_at(10, false);
    for (;; n++) {
        read_all(10);
        gone[n] = next();
        if (gone[n] == NULL)
            break;
        courier_lines_ended(&l, gone[n], &done, now);
    }
    ck_assert_uint_eq(n, COURIER_UNREPORTED);
    ck_assert_int_eq(courier_lines_wait(&l, now, mono), -1);
    for (unsigned i = 0; i < n; i++) {
        courier_lines_reported(&l, gone[i]);
        courier_item_free(gone[i]);
    }
    struct courier_item *item = next();
    ck_assert_ptr_nonnull(item);
    end(item, &done);
}
END_TEST

/* It was removed, or paused: what is ready goes, what flies may end. */
START_TEST(line_goes)
{
    struct courier_row rows[2] = {row(1, true), row(2, true)};
    look(rows, 2);
    read_all(10);
    struct courier_item *flying[3];
    ck_assert_uint_eq(send_all(flying, 3), 2);
    look(rows + 1, 1);
    ck_assert_uint_eq(l.count, 2);
    end(flying[0], &done);
    end(flying[1], &done);
    unsigned most;
    struct courier_item *item = next();
    ck_assert_int_eq(item->line->id, 2);
    ck_assert_ptr_null(next());
    end(item, &done);
    look(rows + 1, 1);
    ck_assert_uint_eq(l.count, 1);
    rows[1].open = false;
    look(rows + 1, 1);
    ck_assert_ptr_null(next());
    ck_assert_ptr_null(courier_lines_read(&l, now, &most));
    rows[1].open = true;
    look(rows + 1, 1);
    ck_assert_ptr_nonnull(courier_lines_read(&l, now, &most));
}
END_TEST

/* While it is read. */
START_TEST(line_goes_while_read)
{
    struct courier_row r = row(1, true);
    unsigned most;
    look(&r, 1);
    struct courier_line *line = courier_lines_read(&l, now, &most);
    look(NULL, 0);
    courier_lines_was_read(&l, line, items(5, 10), true, INT64_MAX);
    ck_assert_ptr_null(next());
    ck_assert(!courier_lines_busy(&l));
    look(NULL, 0);
    ck_assert_uint_eq(l.count, 0);
}
END_TEST

/* A look that began before a mark was applied does not know that the line waits. */
START_TEST(old_look)
{
    struct courier_row r = row(1, false);
    look(&r, 1);
    read_all(10);
    struct courier_item *item = next();
    courier_lines_look_begin(&l);
    lost(item, 5000);
    ck_assert(courier_lines_look(&l, &r, now));
    courier_lines_look_end(&l);
    read_all(10);
    ck_assert_ptr_null(next());
    /* one that begins later does */
    r.wait_until_ms = 0;
    look(&r, 1);
    read_all(10);
    ck_assert_ptr_nonnull(item = next());
    end(item, &done);
}
END_TEST

/* The clock was put back by a year. */
START_TEST(clock_goes_back)
{
    struct courier_row r = row(1, false);
    r.wait_until_ms = now + INT64_C(365) * 86400 * 1000;
    look(&r, 1);
    read_all(10);
    struct courier_item *item = next();
    ck_assert_ptr_nonnull(item);
    end(item, &done);
}
END_TEST

/* What is read of a line goes on behind what was read, and from the beginning when all of it is over. */
START_TEST(cursor)
{
    struct courier_row r = row(1, false);
    unsigned most;
    look(&r, 1);
    struct courier_line *line = courier_lines_read(&l, now, &most);
    ck_assert_int_eq(line->after_due_ms, -1);
    struct courier_item *list = items(2, 10);
    uint64_t last = list->next->seq;
    courier_lines_was_read(&l, line, list, true, INT64_MAX);
    ck_assert_ptr_eq(courier_lines_read(&l, now, &most), line);
    ck_assert_uint_eq(line->after_seq, last);
    courier_lines_was_read(&l, line, NULL, false, INT64_MAX);
    end(next(), &done);
    end(next(), &done);
    ck_assert_ptr_null(courier_lines_read(&l, now, &most)); /* nothing new is known */
    r.seq++;
    look(&r, 1);
    ck_assert_ptr_eq(courier_lines_read(&l, now, &most), line);
    ck_assert_uint_eq(line->after_seq, 0);
}
END_TEST

START_TEST(many_lines)
{
    static struct courier_row rows[10000];
    for (unsigned i = 0; i < COUNT(rows); i++)
        rows[i] = row((int64_t)(i * 7919 % 10000) + 1, true);
    look(rows, COUNT(rows));
    ck_assert_uint_eq(l.count, COUNT(rows));
    for (unsigned i = 1; i < l.count; i++)
        ck_assert(l.all[i - 1]->id < l.all[i]->id);
    look(NULL, 0);
    ck_assert_uint_eq(l.count, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("courier_lines");
    TCase *c = run_case(s, "admission");
    tcase_add_checked_fixture(c, start, stop);
    tcase_add_test(c, nothing);
    tcase_add_test(c, fifo_is_one_at_a_time);
    tcase_add_test(c, fifo_failure);
    tcase_add_test(c, ramp);
    tcase_add_test(c, half_open);
    tcase_add_test(c, half_open_from_the_start);
    tcase_add_test(c, one_host);
    tcase_add_test(c, all_together);
    tcase_add_test(c, unproven_leave_room);
    tcase_add_test(c, troubled_share);
    tcase_add_test(c, turns);
    tcase_add_test(c, dead_among_a_hundred);
    tcase_add_test(c, rate);
    tcase_add_test(c, memory_is_bounded);
    tcase_add_test(c, server_away);
    tcase_add_test(c, line_goes);
    tcase_add_test(c, line_goes_while_read);
    tcase_add_test(c, old_look);
    tcase_add_test(c, clock_goes_back);
    tcase_add_test(c, cursor);
    tcase_add_test(c, many_lines);
    return run_suite(s);
}
