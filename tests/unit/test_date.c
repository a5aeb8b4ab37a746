/* fcgi/date: HTTP dates (RFC 9110 5.6.7) and RFC 3339, written and read, against the C library. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fcgi/resp.h"
#include "tests/unit/run.h"

static const int64_t day_s = 86400;

static int64_t at(int year, int month, int day, int second)
{
    struct tm t = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day, .tm_sec = second};
    return timegm(&t);
}

/* What the C library writes for it. */
static const char *libc(int64_t when, const char *format)
{
    static char text[64];
    time_t t = (time_t)when;
    struct tm tm;
    gmtime_r(&t, &tm);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (strftime(text, sizeof text, format, &tm) == 0)
        ck_abort_msg("%s", format);
#pragma GCC diagnostic pop
    return text;
}

static void same_as_libc(int64_t when)
{
    char http[HTTP_DATE_LEN + 1] = "", rfc3339[RFC3339_LEN + 1] = "";
    put_http_date(http, when);
    put_rfc3339(rfc3339, when);
    if (strcmp(http, libc(when, "%a, %d %b %Y %H:%M:%S GMT")) != 0)
        ck_abort_msg("%" PRId64 ": %s", when, http);
    if (strcmp(rfc3339, libc(when, "%Y-%m-%dT%H:%M:%SZ")) != 0)
        ck_abort_msg("%" PRId64 ": %s", when, rfc3339);
}

START_TEST(the_example_of_the_rfc)
{
    char text[HTTP_DATE_LEN + 1] = "", other[RFC3339_LEN + 1] = "";
    put_http_date(text, 784111777);
    put_rfc3339(other, 784111777);
    ck_assert_str_eq(text, "Sun, 06 Nov 1994 08:49:37 GMT");
    ck_assert_str_eq(other, "1994-11-06T08:49:37Z");
}
END_TEST

START_TEST(only_its_own_bytes_are_written)
{
    char text[HTTP_DATE_LEN + 2], other[RFC3339_LEN + 2];
    memset(text, 'x', sizeof text);
    memset(other, 'x', sizeof other);
    put_http_date(text + 1, 0);
    put_rfc3339(other + 1, 0);
    ck_assert_mem_eq(text, "xThu, 01 Jan 1970 00:00:00 GMT", HTTP_DATE_LEN + 1);
    ck_assert_mem_eq(other, "x1970-01-01T00:00:00Z", RFC3339_LEN + 1);
}
END_TEST

START_TEST(every_day_of_six_centuries)
{
    for (int64_t day = at(1700, 1, 1, 0) / day_s; day < at(2300, 1, 1, 0) / day_s; day++)
        same_as_libc(day * day_s + (day % day_s + day_s) % day_s);
}
END_TEST

START_TEST(every_second_of_a_day)
{
    for (int64_t s = 0; s < day_s; s++)
        same_as_libc(at(2024, 2, 29, 0) + s);
}
END_TEST

START_TEST(both_sides_of_every_border)
{
    static const struct {
        int year, month, day;
    } borders[] = {
        {1970, 1, 1}, {1969, 12, 31}, {1972, 2, 29}, {1999, 12, 31}, {2000, 1, 1}, {2000, 2, 29}, {2000, 3, 1},
        {2001, 2, 28}, {2023, 3, 1}, {2024, 2, 29}, {2024, 12, 31}, {2038, 1, 19}, {2100, 2, 28}, {2100, 3, 1},
        {2106, 2, 7}, {2400, 2, 29}, {1600, 2, 29}, {1900, 3, 1}, {1000, 1, 1}, {9999, 12, 31},
    };
    for (size_t i = 0; i < COUNT(borders); i++)
        for (int s = -2; s <= 2; s++)
            if (borders[i].year != 9999 && (borders[i].year != 1000 || s >= 0))
                same_as_libc(at(borders[i].year, borders[i].month, borders[i].day, s));
    same_as_libc(at(9999, 12, 31, 86399));
}
END_TEST

static int64_t parsed(const char *text)
{
    int64_t when = -1;
    ck_assert_msg(parse_http_date((struct str){text, strlen(text)}, &when), "%s", text);
    return when;
}

START_TEST(the_three_forms)
{
    ck_assert_int_eq(parsed("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
    ck_assert_int_eq(parsed("Sunday, 06-Nov-94 08:49:37 GMT"), 784111777);
    ck_assert_int_eq(parsed("Sun Nov  6 08:49:37 1994"), 784111777);
}
END_TEST

START_TEST(a_two_digit_day_of_asctime)
{
    ck_assert_int_eq(parsed("Wed Nov 16 08:49:37 1994"), at(1994, 11, 16, 8 * 3600 + 49 * 60 + 37));
}
END_TEST

START_TEST(every_month)
{
    static const char *const names[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    for (int m = 0; m < 12; m++) {
        char text[64];
        snprintf(text, sizeof text, "Mon, 01 %s 2024 00:00:00 GMT", names[m]);
        ck_assert_int_eq(parsed(text), at(2024, m + 1, 1, 0));
    }
}
END_TEST

START_TEST(years_of_two_digits)
{
    ck_assert_int_eq(parsed("Saturday, 01-Jan-00 00:00:00 GMT"), at(2000, 1, 1, 0));
    ck_assert_int_eq(parsed("Thursday, 01-Jan-26 00:00:00 GMT"), at(2026, 1, 1, 0));
    ck_assert_int_eq(parsed("Friday, 31-Dec-99 23:59:59 GMT"), at(1999, 12, 31, 86399));
}
END_TEST

/* Minutes and dates apart, so that all parts change. */
START_TEST(what_is_written_is_read_back)
{
    for (int64_t when = at(1970, 1, 1, 0); when < at(2060, 1, 1, 0); when += 9 * day_s + 10007) {
        char text[HTTP_DATE_LEN];
        int64_t back = -1;
        put_http_date(text, when);
        ck_assert(parse_http_date((struct str){text, sizeof text}, &back));
        ck_assert_int_eq(back, when);
        ck_assert_int_eq(parsed(libc(when, "%A, %d-%b-%y %H:%M:%S GMT")), when);
        ck_assert_int_eq(parsed(libc(when, "%a %b %e %H:%M:%S %Y")), when);
    }
}
END_TEST

START_TEST(leap_days_are_dates)
{
    ck_assert_int_eq(parsed("Thu, 29 Feb 2024 00:00:00 GMT"), at(2024, 2, 29, 0));
    ck_assert_int_eq(parsed("Tue, 29 Feb 2000 00:00:00 GMT"), at(2000, 2, 29, 0));
    ck_assert_int_eq(parsed("Thu Feb 29 00:00:00 2024"), at(2024, 2, 29, 0));
}
END_TEST

START_TEST(a_leap_second_is_the_next_second)
{
    ck_assert_int_eq(parsed("Sat, 31 Dec 2016 23:59:60 GMT"), at(2017, 1, 1, 0));
}
END_TEST

static const char *const malformed[] = {
    "",
    "0",
    "GMT",
    ",",
    "Sun,",
    "Sun, ",
    "Sunday, ",
    "784111777",
    "1994-11-06T08:49:37Z",
    "2027-01-31",
    "Sun, 06 Nov 1994",
    "Sun, 06 Nov 1994 08:49:37",
    "Sun, 06 Nov 1994 08:49:37 ",
    "Sun, 06 Nov 1994 08:49:37 GMT ",
    " Sun, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 gmt",
    "Sun, 06 Nov 1994 08:49:37 UTC",
    "Sun, 06 Nov 1994 08:49:37 +0000",
    "Sun, 06 Nov 1994 08:49:37 EST",
    "Sun, 06 Nov 1994 08:49:37GMT",
    "Sun,06 Nov 1994 08:49:37 GMT",
    "Sun  06 Nov 1994 08:49:37 GMT",
    "Sun; 06 Nov 1994 08:49:37 GMT",
    "Sun, 6 Nov 1994 08:49:37 GMT",
    "Sun, 006 Nov 1994 08:49:37 GMT",
    "Sun, 06 nov 1994 08:49:37 GMT",
    "Sun, 06 Non 1994 08:49:37 GMT",
    "Sun, 06 11 1994 08:49:37 GMT",
    "Sun, 06 November 1994 08:49:37 GMT",
    "Sun, 06 Nov 94 08:49:37 GMT",
    "Sun, 06 Nov 19940 08:49:37 GMT",
    "Sun, 06-Nov-1994 08:49:37 GMT",
    "Sun, 06-Nov-94 08:49:37 GMT",
    "Sun, -6 Nov 1994 08:49:37 GMT",
    "Sun, +6 Nov 1994 08:49:37 GMT",
    "Sun, 0x Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49 GMT",
    "Sun, 06 Nov 1994 08:49:7 GMT",
    "Sun, 06 Nov 1994 08:49:37.0 GMT",
    "Sun, 06 Nov 1994 08.49.37 GMT",
    "Sun, 06 Nov 1994 8:49:37 AM GMT",
    "Sun, 00 Nov 1994 08:49:37 GMT",
    "Sun, 32 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 24:00:00 GMT",
    "Sun, 06 Nov 1994 08:60:37 GMT",
    "Sun, 06 Nov 1994 08:49:61 GMT",
    "Sunday, 06 Nov 1994 08:49:37 GMT",
    "Sunday, 06-Nov-1994 08:49:37 GMT",
    "Sunday, 06-Nov-94",
    "Sunday, 06-Nov-94 08:49:37",
    "Sunday, 06-Nov-94 08:49:37 UTC",
    "Sunday, 32-Nov-94 08:49:37 GMT",
    "Sunday, 06-Nov 94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994 ",
    "Sun Nov  6 08:49:37 199",
    "Sun Nov  6 08:49:37 94",
    "Sun Nov 6 08:49:37 1994",
    "Sun Nov  6 08:49:37 1994 GMT",
    "Sun Nov  6 08:49 1994",
    "Sun Nov  0 08:49:37 1994",
    "Sun Nov 32 08:49:37 1994",
    "Sun Nov  6 08:49:37 19x4",
    "Sun Nov  6  8:49:37 AM  ",
    "Sun Nox  6 08:49:37 1994",
    "xxxxxxxxxxxxxxxxxxxxxxxx",
    "                        ",
    ",,,,,,,,,,,,,,,,,,,,,,,,,,,,,",
};

START_TEST(what_is_no_date)
{
    int64_t when = 42;
    ck_assert_msg(!parse_http_date((struct str){malformed[_i], strlen(malformed[_i])}, &when), "%s", malformed[_i]);
}
END_TEST

START_TEST(no_text_is_no_date)
{
    int64_t when;
    ck_assert(!parse_http_date((struct str){NULL, 0}, &when));
    ck_assert(!parse_http_date(STR_LIT("Sun, 06 Nov 1994 08:49:37\0GMT"), &when));
}
END_TEST

/* Every shortening of the three forms. */
START_TEST(a_date_that_is_cut)
{
    static const char *const whole[] = {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                                        "Sun Nov  6 08:49:37 1994"};
    int64_t when;
    for (size_t i = 0; i < COUNT(whole); i++)
        for (size_t n = 0; n < strlen(whole[i]); n++)
            ck_assert(!parse_http_date((struct str){whole[i], n}, &when));
}
END_TEST

/* Days that no calendar has. */
static const char *const impossible[] = {
    "Thu, 31 Feb 2024 00:00:00 GMT", "Fri, 30 Feb 2024 00:00:00 GMT",  "Wed, 29 Feb 2023 00:00:00 GMT",
    "Mon, 29 Feb 2100 00:00:00 GMT", "Wed, 31 Apr 2024 00:00:00 GMT",  "Mon, 31 Jun 2024 00:00:00 GMT",
    "Tue, 31 Sep 2024 00:00:00 GMT", "Sunday, 31-Nov-24 00:00:00 GMT", "Thu Feb 30 00:00:00 2024",
};

START_TEST(a_day_the_month_does_not_have)
{
    int64_t when;
    ck_assert_msg(!parse_http_date((struct str){impossible[_i], strlen(impossible[_i])}, &when), "%s",
                  impossible[_i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("date");
    TCase *t = run_case(s, "write");
    tcase_add_test(t, the_example_of_the_rfc);
    tcase_add_test(t, only_its_own_bytes_are_written);
    tcase_add_test(t, every_day_of_six_centuries);
    tcase_add_test(t, every_second_of_a_day);
    tcase_add_test(t, both_sides_of_every_border);
    t = run_case(s, "read");
    tcase_add_test(t, the_three_forms);
    tcase_add_test(t, a_two_digit_day_of_asctime);
    tcase_add_test(t, every_month);
    tcase_add_test(t, years_of_two_digits);
    tcase_add_test(t, what_is_written_is_read_back);
    tcase_add_test(t, leap_days_are_dates);
    tcase_add_test(t, a_leap_second_is_the_next_second);
    t = run_case(s, "malformed");
    tcase_add_loop_test(t, what_is_no_date, 0, COUNT(malformed));
    tcase_add_test(t, no_text_is_no_date);
    tcase_add_test(t, a_date_that_is_cut);
    tcase_add_loop_test(t, a_day_the_month_does_not_have, 0, COUNT(impossible));
    return run_suite(s);
}
