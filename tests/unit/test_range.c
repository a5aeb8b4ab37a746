/* handlers/range: which parts a Range header asks for (RFC 9110 14). */
#include "handlers/range.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

#define BIG 10000 /* the representation of most rows: that of the examples in RFC 9110 14.1.2 */

static const struct {
    const char *header;
    uint64_t size;
    enum range_result result;
    unsigned count;
    struct range list[4];
} rows[] = {
    /* the examples of RFC 9110 14.1.2 */
    {"bytes=0-499", BIG, RANGE_PARTS, 1, {{0, 500}}},
    {"bytes=500-999", BIG, RANGE_PARTS, 1, {{500, 500}}},
    {"bytes=-500", BIG, RANGE_PARTS, 1, {{9500, 500}}},
    {"bytes=9500-", BIG, RANGE_PARTS, 1, {{9500, 500}}},
    {"bytes=0-0,-1", BIG, RANGE_PARTS, 2, {{0, 1}, {9999, 1}}},
    {"bytes= 0-999, 4500-5499, -1000", BIG, RANGE_PARTS, 3, {{0, 1000}, {4500, 1000}, {9000, 1000}}},
    {"bytes=500-600,601-999", BIG, RANGE_PARTS, 2, {{500, 101}, {601, 399}}},
    {"bytes=500-700,601-999", BIG, RANGE_PARTS, 2, {{500, 201}, {601, 399}}},
    /* the ends */
    {"bytes=0-", BIG, RANGE_PARTS, 1, {{0, BIG}}},
    {"bytes=9999-", BIG, RANGE_PARTS, 1, {{9999, 1}}},
    {"bytes=9999-9999", BIG, RANGE_PARTS, 1, {{9999, 1}}},
    {"bytes=9999-10000", BIG, RANGE_PARTS, 1, {{9999, 1}}},
    {"bytes=0-99999999", BIG, RANGE_PARTS, 1, {{0, BIG}}},
    {"bytes=-10000", BIG, RANGE_PARTS, 1, {{0, BIG}}},
    {"bytes=-99999999", BIG, RANGE_PARTS, 1, {{0, BIG}}},
    {"bytes=0-0", 1, RANGE_PARTS, 1, {{0, 1}}},
    {"bytes=10000-", BIG, RANGE_UNSATISFIABLE, 0, {{0, 0}}},
    {"bytes=10000-10001", BIG, RANGE_UNSATISFIABLE, 0, {{0, 0}}},
    {"bytes=-0", BIG, RANGE_UNSATISFIABLE, 0, {{0, 0}}},
    {"bytes=-0", 0, RANGE_UNSATISFIABLE, 0, {{0, 0}}},
    {"bytes=0-", 0, RANGE_UNSATISFIABLE, 0, {{0, 0}}},
    {"bytes=0-0", 0, RANGE_UNSATISFIABLE, 0, {{0, 0}}},
    {"bytes=-1", 0, RANGE_WHOLE, 0, {{0, 0}}},
    /* some inside, some outside: those inside */
    {"bytes=10000-,5-6", BIG, RANGE_PARTS, 1, {{5, 2}}},
    {"bytes=5-6,-0,20000-30000", BIG, RANGE_PARTS, 1, {{5, 2}}},
    /* order and overlap are the client's */
    {"bytes=7-8,1-2", BIG, RANGE_PARTS, 2, {{7, 2}, {1, 2}}},
    {"bytes=1-2,1-2", BIG, RANGE_PARTS, 2, {{1, 2}, {1, 2}}},
    {"bytes=0-,0-", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=0-5000,5000-", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    /* white space, empty elements, the unit's spelling */
    {"Bytes=1-2", BIG, RANGE_PARTS, 1, {{1, 2}}},
    {"BYTES=1-2", BIG, RANGE_PARTS, 1, {{1, 2}}},
    {"bytes=,1-2", BIG, RANGE_PARTS, 1, {{1, 2}}},
    {"bytes=1-2,,\t, 3-4 ,", BIG, RANGE_PARTS, 2, {{1, 2}, {3, 2}}},
    {"bytes=001-0002", BIG, RANGE_PARTS, 1, {{1, 2}}},
    /* numbers nobody has */
    {"bytes=0-18446744073709551615", BIG, RANGE_PARTS, 1, {{0, BIG}}},
    {"bytes=0-99999999999999999999999999999999", BIG, RANGE_PARTS, 1, {{0, BIG}}},
    {"bytes=18446744073709551616-", BIG, RANGE_UNSATISFIABLE, 0, {{0, 0}}},
    {"bytes=18446744073709551615-18446744073709551616", BIG, RANGE_UNSATISFIABLE, 0, {{0, 0}}},
    {"bytes=-18446744073709551616", BIG, RANGE_PARTS, 1, {{0, BIG}}},
    {"bytes=0-0", UINT64_C(1) << 40, RANGE_PARTS, 1, {{0, 1}}},
    {"bytes=1099511627775-", UINT64_C(1) << 40, RANGE_PARTS, 1, {{(UINT64_C(1) << 40) - 1, 1}}},
    /* malformed, or not ours: as if it were not there */
    {"", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes= ", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=,", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=-", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=--1", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=1", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=a-b", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=1-b", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=1-2x", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=0x1-0x2", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=+1-2", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=1 -2", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=1- 2", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=2-1", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=1-2,2-1", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=1-2;3-4", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=1-2 3-4", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=1-2-3", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=1-2\n", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes =1-2", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {" bytes=1-2", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes:1-2", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"byte=1-2", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytess=1-2", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"lines=1-2", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"1-2", BIG, RANGE_WHOLE, 0, {{0, 0}}},
    {"none", BIG, RANGE_WHOLE, 0, {{0, 0}}},
};

START_TEST(a_header_asks_for)
{
    struct ranges got;
    memset(&got, 0xaa, sizeof got);
    enum range_result result = range_parse((struct str){rows[_i].header, strlen(rows[_i].header)},
                                           rows[_i].size, &got);
    ck_assert_msg(result == rows[_i].result, "%s: %d", rows[_i].header, result);
    if (result != RANGE_PARTS)
        return;
    ck_assert_uint_eq(got.count, rows[_i].count);
    for (unsigned i = 0; i < got.count; i++) {
        ck_assert_uint_eq(got.list[i].from, rows[_i].list[i].from);
        ck_assert_uint_eq(got.list[i].bytes, rows[_i].list[i].bytes);
    }
}
END_TEST

/* "bytes=0-0,2-2,…": n ranges of a byte each. */
static enum range_result parse_many(unsigned n, struct ranges *got)
{
    char header[4096];
    int at = snprintf(header, sizeof header, "bytes=");
    for (unsigned i = 0; i < n; i++)
        at += snprintf(header + at, sizeof header - (size_t)at, "%s%u-%u", i > 0 ? "," : "", 2 * i, 2 * i);
    return range_parse((struct str){header, (size_t)at}, BIG, got);
}

START_TEST(as_many_as_there_is_room_for)
{
    struct ranges got;
    ck_assert_int_eq(parse_many(RANGES_MAX, &got), RANGE_PARTS);
    ck_assert_uint_eq(got.count, RANGES_MAX);
    ck_assert_int_eq(parse_many(RANGES_MAX + 1, &got), RANGE_WHOLE);
    ck_assert_int_eq(parse_many(500, &got), RANGE_WHOLE);
}
END_TEST

START_TEST(a_number_with_many_digits_is_told)
{
    struct ranges got;
    ck_assert_int_eq(range_parse(STR_LIT("bytes=1-999999999999999999"), BIG, &got), RANGE_PARTS);
    ck_assert(!got.vast);
    ck_assert_int_eq(range_parse(STR_LIT("bytes=1-9999999999999999999"), BIG, &got), RANGE_PARTS);
    ck_assert(got.vast);
    ck_assert_int_eq(range_parse(STR_LIT("bytes=0000000000000000001-2"), BIG, &got), RANGE_PARTS);
    ck_assert(got.vast);
}
END_TEST

/* A header is text with a length: what lies behind it is not looked at. */
START_TEST(nothing_behind_the_header_is_read)
{
    struct ranges got;
    static const char text[] = "bytes=1-23,4-5";
    ck_assert_int_eq(range_parse((struct str){text, 9}, BIG, &got), RANGE_PARTS);
    ck_assert_uint_eq(got.list[0].bytes, 2);
    ck_assert_int_eq(range_parse((struct str){text, 6}, BIG, &got), RANGE_WHOLE);
    ck_assert_int_eq(range_parse((struct str){text, 5}, BIG, &got), RANGE_WHOLE);
    ck_assert_int_eq(range_parse((struct str){NULL, 0}, BIG, &got), RANGE_WHOLE);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("range");
    TCase *t = run_case(s, "range");
    tcase_add_loop_test(t, a_header_asks_for, 0, COUNT(rows));
    tcase_add_test(t, as_many_as_there_is_room_for);
    tcase_add_test(t, a_number_with_many_digits_is_told);
    tcase_add_test(t, nothing_behind_the_header_is_read);
    return run_suite(s);
}
