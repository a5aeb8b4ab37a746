/* fcgi/frame: bodies, their limit and the memory of all of them; name-value pairs. */
#include <stdlib.h>
#include <string.h>

#include "fcgi/frame.h"
#include "tests/unit/records.h"
#include "tests/unit/run.h"

static char text[1 << 20];

static void fill(void)
{
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 31 + i / 251);
}

/* Feeds a request with a body of n bytes in records of at most split. */
static enum frame_result feed_body(struct frame *f, size_t body_max, size_t n, size_t split)
{
    struct buf in = {0};
    rec_begin(&in, 1);
    rec(&in, FCGI_PARAMS, 1, NULL, 0, 0);
    rec_stdin(&in, 1, text, n, split);
    enum frame_result result = rec_feed(f, body_max, &in);
    buf_free(&in);
    return result;
}

/* How much a single body may be now, found by trying. */
static size_t budget(void)
{
    size_t low = 0, high = sizeof text;
    while (low < high) {
        struct frame f = {0};
        size_t n = (low + high + 1) / 2;
        ck_assert_int_eq(feed_body(&f, n, n, 65535), FRAME_REQUEST);
        bool ok = f.body_state == FRAME_BODY_OK;
        frame_free(&f);
        if (ok)
            low = n;
        else
            high = n - 1;
    }
    return low;
}

/* ---- the limit of one body ------------------------------------------------------------------- */

static const size_t sizes[] = {0, 1, 8, 511, 512, 513, 65535, 65536, 100000, 1 << 20};

START_TEST(a_body_of_exactly_the_limit_is_kept)
{
    struct frame f = {0};
    ck_assert_int_eq(feed_body(&f, sizes[_i], sizes[_i], 4000), FRAME_REQUEST);
    ck_assert_int_eq(f.body_state, FRAME_BODY_OK);
    ck_assert_uint_eq(f.body.len, sizes[_i]);
    ck_assert_uint_eq(f.body_bytes, sizes[_i]);
    if (f.body.len > 0)
        ck_assert_mem_eq(f.body.data, text, f.body.len);
    frame_free(&f);
}
END_TEST

START_TEST(one_byte_more_is_counted_and_not_kept)
{
    struct frame f = {0};
    if (sizes[_i] > 0) {
        ck_assert_int_eq(feed_body(&f, sizes[_i] - 1, sizes[_i], 4000), FRAME_REQUEST);
        ck_assert_int_eq(f.body_state, FRAME_BODY_TOO_LARGE);
        ck_assert_uint_eq(f.body_bytes, sizes[_i]);
        ck_assert_uint_eq(f.body.len, 0);
        ck_assert_uint_eq(f.charged, 0);
    }
    frame_free(&f);
}
END_TEST

START_TEST(a_body_that_is_too_large_holds_no_memory)
{
    struct frame f = {0};
    ck_assert_int_eq(feed_body(&f, 1000, sizeof text, 65535), FRAME_REQUEST);
    ck_assert_uint_eq(f.body_bytes, sizeof text);
    ck_assert_uint_eq(f.body.cap, 0);
    frame_free(&f);
}
END_TEST

START_TEST(the_next_body_is_judged_by_itself)
{
    struct frame f = {0};
    ck_assert_int_eq(feed_body(&f, 1000, 1001, 500), FRAME_REQUEST);
    frame_reset(&f);
    ck_assert_int_eq(feed_body(&f, 1000, 1000, 500), FRAME_REQUEST);
    ck_assert_int_eq(f.body_state, FRAME_BODY_OK);
    ck_assert_uint_eq(f.body.len, 1000);
    frame_free(&f);
}
END_TEST

/* ---- taking a body --------------------------------------------------------------------------- */

START_TEST(a_body_is_handed_over)
{
    struct frame f = {0};
    size_t n;
    ck_assert_int_eq(feed_body(&f, 3000, 3000, 777), FRAME_REQUEST);
    unsigned char *body = frame_take_body(&f, &n);
    ck_assert_uint_eq(n, 3000);
    frame_reset(&f);
    frame_free(&f);
    ck_assert_mem_eq(body, text, 3000);
    free(body);
}
END_TEST

START_TEST(a_body_is_handed_over_once)
{
    struct frame f = {0};
    size_t n;
    ck_assert_int_eq(feed_body(&f, 3000, 3000, 777), FRAME_REQUEST);
    free(frame_take_body(&f, &n));
    ck_assert_ptr_null(frame_take_body(&f, &n));
    ck_assert_uint_eq(n, 0);
    frame_free(&f);
}
END_TEST

START_TEST(there_is_nothing_to_take_of_an_empty_body)
{
    struct frame f = {0};
    size_t n = 9;
    ck_assert_int_eq(feed_body(&f, 3000, 0, 1), FRAME_REQUEST);
    ck_assert_ptr_null(frame_take_body(&f, &n));
    ck_assert_uint_eq(n, 0);
    frame_free(&f);
}
END_TEST

/* ---- the memory of all bodies ---------------------------------------------------------------- */

START_TEST(a_body_beyond_the_budget_is_counted_and_not_kept)
{
    struct frame f = {0};
    frame_set_budget(65536);
    ck_assert_int_eq(feed_body(&f, sizeof text, 65537, 1000), FRAME_REQUEST);
    ck_assert_int_eq(f.body_state, FRAME_BODY_NO_MEMORY);
    ck_assert_uint_eq(f.body_bytes, 65537);
    ck_assert_uint_eq(f.body.cap, 0);
    ck_assert_uint_eq(f.charged, 0);
    ck_assert_uint_eq(budget(), 65536);
    frame_free(&f);
}
END_TEST

START_TEST(no_budget_at_all)
{
    struct frame f = {0};
    frame_set_budget(0);
    ck_assert_int_eq(feed_body(&f, 1000, 0, 1), FRAME_REQUEST);
    ck_assert_int_eq(f.body_state, FRAME_BODY_OK);
    frame_reset(&f);
    ck_assert_int_eq(feed_body(&f, 1000, 1, 1), FRAME_REQUEST);
    ck_assert_int_eq(f.body_state, FRAME_BODY_NO_MEMORY);
    frame_free(&f);
}
END_TEST

START_TEST(a_body_that_was_taken_is_no_longer_counted)
{
    struct frame a = {0}, b = {0};
    size_t n;
    frame_set_budget(65536);
    ck_assert_int_eq(feed_body(&a, 65536, 65536, 4096), FRAME_REQUEST);
    unsigned char *body = frame_take_body(&a, &n);
    ck_assert_int_eq(feed_body(&b, 65536, 65536, 4096), FRAME_REQUEST);
    ck_assert_int_eq(b.body_state, FRAME_BODY_OK);
    free(body);
    frame_free(&a);
    frame_free(&b);
}
END_TEST

START_TEST(bodies_share_the_budget)
{
    struct frame a = {0}, b = {0};
    frame_set_budget(100000);
    ck_assert_int_eq(feed_body(&a, 65536, 65536, 4096), FRAME_REQUEST);
    ck_assert_int_eq(a.body_state, FRAME_BODY_OK);
    ck_assert_int_eq(feed_body(&b, 65536, 65536, 4096), FRAME_REQUEST);
    ck_assert_int_eq(b.body_state, FRAME_BODY_NO_MEMORY);
    frame_reset(&a);
    frame_reset(&b);
    ck_assert_int_eq(feed_body(&b, 65536, 65536, 4096), FRAME_REQUEST);
    ck_assert_int_eq(b.body_state, FRAME_BODY_OK);
    frame_free(&a);
    frame_free(&b);
}
END_TEST

/* The ways a body ends; after each the whole budget must be there again. */
static void kept_then_reset(struct frame *f)
{
    ck_assert_int_eq(feed_body(f, 50000, 50000, 999), FRAME_REQUEST);
    frame_reset(f);
}

static void kept_then_freed(struct frame *f)
{
    ck_assert_int_eq(feed_body(f, 50000, 50000, 999), FRAME_REQUEST);
    frame_free(f);
    *f = (struct frame){0};
}

static void taken(struct frame *f)
{
    size_t n;
    ck_assert_int_eq(feed_body(f, 50000, 50000, 999), FRAME_REQUEST);
    ck_assert_uint_gt(f->charged, 0);
    free(frame_take_body(f, &n));
    frame_reset(f);
}

static void empty_taken(struct frame *f)
{
    size_t n;
    ck_assert_int_eq(feed_body(f, 50000, 0, 999), FRAME_REQUEST);
    ck_assert_ptr_null(frame_take_body(f, &n));
    frame_reset(f);
}

static void too_large(struct frame *f)
{
    ck_assert_int_eq(feed_body(f, 50000, 50001, 999), FRAME_REQUEST);
    frame_reset(f);
}

static void beyond_the_budget(struct frame *f)
{
    ck_assert_int_eq(feed_body(f, sizeof text, 200000, 999), FRAME_REQUEST);
    frame_reset(f);
}

static void aborted(struct frame *f)
{
    struct buf in = {0};
    rec_begin(&in, 1);
    rec(&in, FCGI_PARAMS, 1, NULL, 0, 0);
    rec(&in, FCGI_STDIN, 1, text, 40000, 0);
    rec(&in, FCGI_ABORT_REQUEST, 1, NULL, 0, 0);
    ck_assert_int_eq(rec_feed(f, 50000, &in), FRAME_ABORTED);
    ck_assert_uint_gt(f->charged, 0);
    frame_reset(f);
    buf_free(&in);
}

static void broken_off(struct frame *f)
{
    struct buf in = {0};
    rec_begin(&in, 1);
    rec(&in, FCGI_PARAMS, 1, NULL, 0, 0);
    rec(&in, FCGI_STDIN, 1, text, 40000, 0);
    ck_assert_int_eq(rec_feed(f, 50000, &in), FRAME_MORE);
    frame_free(f);
    *f = (struct frame){0};
    buf_free(&in);
}

static void (*const endings[])(struct frame *f) = {kept_then_reset, kept_then_freed,   taken,   empty_taken,
                                                   too_large,       beyond_the_budget, aborted, broken_off};

START_TEST(the_budget_comes_back)
{
    struct frame f = {0};
    frame_set_budget(131072);
    for (int i = 0; i < 200; i++)
        endings[_i](&f);
    frame_free(&f);
    ck_assert_uint_eq(budget(), 131072);
}
END_TEST

START_TEST(the_budget_comes_back_whatever_happens)
{
    struct frame f = {0};
    frame_set_budget(131072);
    for (size_t i = 0; i < 400; i++)
        endings[i * i % COUNT(endings)](&f);
    frame_free(&f);
    ck_assert_uint_eq(budget(), 131072);
}
END_TEST

/* ---- name-value pairs ------------------------------------------------------------------------ */

static const struct str good_pairs[] = {
    STR_LIT(""),
    STR_LIT("\1\0a"),
    STR_LIT("\1\1ab"),
    STR_LIT("\1\1ab\2\0cd"),
    STR_LIT("\200\0\0\1\1ab"),
    STR_LIT("\1\200\0\0\1ab"),
    STR_LIT("\200\0\0\1\200\0\0\0a"),
    STR_LIT("\1\3a=b="),
    STR_LIT("\1\1a\n\2\2\r\n\377\377"),
};

START_TEST(pairs_that_are_well_formed)
{
    ck_assert(frame_pairs_ok((const unsigned char *)good_pairs[_i].p, good_pairs[_i].n));
}
END_TEST

static const struct str bad_pairs[] = {
    /* cut */
    STR_LIT("\1"),
    STR_LIT("\1\1"),
    STR_LIT("\1\1a"),
    STR_LIT("\1\0"),
    STR_LIT("\1\1ab\1"),
    STR_LIT("\1\1ab\1\1c"),
    STR_LIT("\200"),
    STR_LIT("\200\0"),
    STR_LIT("\200\0\0"),
    STR_LIT("\200\0\0\1"),
    STR_LIT("\1\200\0\0"),
    STR_LIT("\200\0\0\1\200\0\0"),
    /* lengths that lie */
    STR_LIT("\177\0a"),
    STR_LIT("\1\177ab"),
    STR_LIT("\377\377\377\377\0a"),
    STR_LIT("\1\377\377\377\377a"),
    STR_LIT("\377\377\377\377\377\377\377\377ab"),
    STR_LIT("\200\1\0\0\0a"),
    STR_LIT("\200\0\1\0\0a"),
    /* names */
    STR_LIT("\0\0"),
    STR_LIT("\0\1a"),
    STR_LIT("\1\1ab\0\0"),
    STR_LIT("\200\0\0\0\0"),
    STR_LIT("\1\1=b"),
    STR_LIT("\3\1a=bc"),
    STR_LIT("\1\1\0b"),
    STR_LIT("\2\1a\0b"),
    /* a NUL in a value */
    STR_LIT("\1\1a\0"),
    STR_LIT("\1\3ab\0c"),
    STR_LIT("\1\1ab\1\1a\0"),
};

START_TEST(pairs_that_are_malformed)
{
    ck_assert(!frame_pairs_ok((const unsigned char *)bad_pairs[_i].p, bad_pairs[_i].n));
}
END_TEST

START_TEST(pairs_are_counted)
{
    static unsigned char pairs[(FRAME_PAIRS_MAX + 1) * 3];
    for (size_t i = 0; i <= FRAME_PAIRS_MAX; i++)
        memcpy(pairs + 3 * i, "\1\0a", 3);
    ck_assert(frame_pairs_ok(pairs, sizeof pairs - 3));
    ck_assert(!frame_pairs_ok(pairs, sizeof pairs));
}
END_TEST

START_TEST(a_pair_is_taken_apart)
{
    struct buf pairs = {0};
    struct str name, value;
    static char long_name[128], long_value[70000];
    memset(long_name, 'n', sizeof long_name);
    memset(long_value, 'v', sizeof long_value);
    rec_text(&pairs, "NAME", "value");
    rec_pair(&pairs, (struct str){long_name, 127}, (struct str){long_value, 127});
    rec_pair(&pairs, (struct str){long_name, 128}, (struct str){long_value, 70000});
    ck_assert_uint_eq(frame_pair(pairs.data, pairs.len, &name, &value), 11);
    ck_assert(str_eq(name, STR_LIT("NAME")) && str_eq(value, STR_LIT("value")));
    ck_assert_uint_eq(frame_pair(pairs.data + 11, pairs.len - 11, &name, &value), 2 + 254);
    ck_assert_uint_eq(name.n + value.n, 254);
    ck_assert_uint_eq(frame_pair(pairs.data + 267, pairs.len - 267, &name, &value), 8 + 128 + 70000);
    ck_assert_uint_eq(name.n, 128);
    ck_assert_uint_eq(value.n, 70000);
    ck_assert_int_eq(value.p[69999], 'v');
    buf_free(&pairs);
}
END_TEST

START_TEST(a_pair_that_is_cut_takes_nothing)
{
    struct buf pairs = {0};
    struct str name, value;
    static char long_value[300];
    rec_pair(&pairs, STR_LIT("NAME"), (struct str){long_value, sizeof long_value});
    for (size_t n = 0; n < pairs.len; n++)
        ck_assert_uint_eq(frame_pair(pairs.data, n, &name, &value), 0);
    ck_assert_uint_eq(frame_pair(pairs.data, pairs.len, &name, &value), pairs.len);
    buf_free(&pairs);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("frame_body");
    TCase *t = run_case(s, "limit");
    fill();
    tcase_add_loop_test(t, a_body_of_exactly_the_limit_is_kept, 0, COUNT(sizes));
    tcase_add_loop_test(t, one_byte_more_is_counted_and_not_kept, 0, COUNT(sizes));
    tcase_add_test(t, a_body_that_is_too_large_holds_no_memory);
    tcase_add_test(t, the_next_body_is_judged_by_itself);
    t = run_case(s, "take");
    tcase_add_test(t, a_body_is_handed_over);
    tcase_add_test(t, a_body_is_handed_over_once);
    tcase_add_test(t, there_is_nothing_to_take_of_an_empty_body);
    t = run_case(s, "budget");
    tcase_add_test(t, a_body_beyond_the_budget_is_counted_and_not_kept);
    tcase_add_test(t, no_budget_at_all);
    tcase_add_test(t, a_body_that_was_taken_is_no_longer_counted);
    tcase_add_test(t, bodies_share_the_budget);
    tcase_add_loop_test(t, the_budget_comes_back, 0, COUNT(endings));
    tcase_add_test(t, the_budget_comes_back_whatever_happens);
    t = run_case(s, "pairs");
    tcase_add_loop_test(t, pairs_that_are_well_formed, 0, COUNT(good_pairs));
    tcase_add_loop_test(t, pairs_that_are_malformed, 0, COUNT(bad_pairs));
    tcase_add_test(t, pairs_are_counted);
    tcase_add_test(t, a_pair_is_taken_apart);
    tcase_add_test(t, a_pair_that_is_cut_takes_nothing);
    return run_suite(s);
}
