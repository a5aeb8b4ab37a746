/* HTTP dates (RFC 9110 5.6.7). Written digit by digit: strftime costs more than the rest of a
 * small response's head, and depends on the locale. */
#include <string.h>

#include "fcgi/resp.h"

static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/* Civil date from days since 1970-01-01, proleptic Gregorian: the year is taken to start in March,
 * so that the leap day is its last. */
static void civil(int64_t day, int64_t *year, unsigned *month, unsigned *mday)
{
    day += 719468;
    int64_t era = (day >= 0 ? day : day - 146096) / 146097;
    unsigned doe = (unsigned)(day - era * 146097);
    unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    unsigned mp = (5 * doy + 2) / 153;
    *mday = doy - (153 * mp + 2) / 5 + 1;
    *month = mp < 10 ? mp + 3 : mp - 9;
    *year = (int64_t)yoe + era * 400 + (*month <= 2);
}

static int64_t days_from_civil(int64_t year, unsigned month, unsigned mday)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    unsigned yoe = (unsigned)(year - era * 400);
    unsigned doy = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + mday - 1;
    return era * 146097 + (int64_t)(yoe * 365 + yoe / 4 - yoe / 100 + doy) - 719468;
}

static void two(char *p, unsigned v)
{
    p[0] = (char)('0' + v / 10 % 10);
    p[1] = (char)('0' + v % 10);
}

static void clock_time(char *p, unsigned second_of_day)
{
    two(p, second_of_day / 3600);
    p[2] = ':';
    two(p + 3, second_of_day / 60 % 60);
    p[5] = ':';
    two(p + 6, second_of_day % 60);
}

static int64_t split(int64_t unix_s, unsigned *second_of_day)
{
    int64_t day = unix_s / 86400, rest = unix_s % 86400;
    if (rest < 0) {
        rest += 86400;
        day--;
    }
    *second_of_day = (unsigned)rest;
    return day;
}

void put_http_date(char *p, int64_t unix_s)
{
    int64_t year;
    unsigned month, mday, second;
    int64_t day = split(unix_s, &second);
    civil(day, &year, &month, &mday);
    memcpy(p, days[((day + 4) % 7 + 7) % 7], 3);
    memcpy(p + 3, ", ", 2);
    two(p + 5, mday);
    p[7] = ' ';
    memcpy(p + 8, months[month - 1], 3);
    p[11] = ' ';
    two(p + 12, (unsigned)(year / 100));
    two(p + 14, (unsigned)(year % 100));
    p[16] = ' ';
    clock_time(p + 17, second);
    memcpy(p + 25, " GMT", 4);
}

void put_rfc3339(char *p, int64_t unix_s)
{
    int64_t year;
    unsigned month, mday, second;
    civil(split(unix_s, &second), &year, &month, &mday);
    two(p, (unsigned)(year / 100));
    two(p + 2, (unsigned)(year % 100));
    p[4] = '-';
    two(p + 5, month);
    p[7] = '-';
    two(p + 8, mday);
    p[10] = 'T';
    clock_time(p + 11, second);
    p[19] = 'Z';
}

struct cursor {
    const char *p;
    const char *end;
    bool ok;
};

static unsigned number(struct cursor *c, size_t digits)
{
    unsigned v = 0;
    if (!c->ok || (size_t)(c->end - c->p) < digits) {
        c->ok = false;
        return 0;
    }
    for (size_t i = 0; i < digits; i++) {
        char d = *c->p++;
        if (d == ' ' && i == 0)
            d = '0'; /* asctime pads the day with a space */
        if (d < '0' || d > '9')
            c->ok = false;
        v = v * 10 + (unsigned)(d - '0');
    }
    return v;
}

static void expect(struct cursor *c, const char *text)
{
    size_t n = strlen(text);
    if (!c->ok || (size_t)(c->end - c->p) < n || memcmp(c->p, text, n) != 0)
        c->ok = false;
    else
        c->p += n;
}

static unsigned month_name(struct cursor *c)
{
    for (unsigned m = 0; m < 12 && c->ok && c->end - c->p >= 3; m++)
        if (memcmp(c->p, months[m], 3) == 0) {
            c->p += 3;
            return m + 1;
        }
    c->ok = false;
    return 1;
}

static unsigned time_of_day(struct cursor *c)
{
    unsigned h = number(c, 2);
    expect(c, ":");
    unsigned m = number(c, 2);
    expect(c, ":");
    unsigned s = number(c, 2);
    if (h > 23 || m > 59 || s > 60)
        c->ok = false;
    return h * 3600 + m * 60 + s;
}

/* Two digits mean the most recent year that ends so and is not more than 50 years ahead; for the
 * documents kept here that is 1970 to 2069. */
static unsigned century(unsigned year)
{
    return year < 70 ? 2000 + year : 1900 + year;
}

bool parse_http_date(struct str s, int64_t *unix_s)
{
    if (s.n == 0)
        return false;
    struct cursor c = {s.p, s.p + s.n, true};
    const char *comma = memchr(s.p, ',', s.n);
    unsigned year, month, mday, second;
    if (comma == NULL) { /* asctime: Sun Nov  6 08:49:37 1994 */
        if (s.n != 24)
            return false;
        c.p += 3;
        expect(&c, " ");
        month = month_name(&c);
        expect(&c, " ");
        mday = number(&c, 2);
        expect(&c, " ");
        second = time_of_day(&c);
        expect(&c, " ");
        year = number(&c, 4);
    } else { /* Sun, 06 Nov 1994 08:49:37 GMT, or as in RFC 850 Sunday, 06-Nov-94 08:49:37 GMT */
        bool fix = comma - s.p == 3;
        const char *sep = fix ? " " : "-";
        c.p = comma + 1;
        expect(&c, " ");
        mday = number(&c, 2);
        expect(&c, sep);
        month = month_name(&c);
        expect(&c, sep);
        year = fix ? number(&c, 4) : century(number(&c, 2));
        expect(&c, " ");
        second = time_of_day(&c);
        expect(&c, " GMT");
    }
    if (!c.ok || c.p != c.end)
        return false;
    int64_t day = days_from_civil(year, month, mday), same_year;
    unsigned same_month, same_mday;
    civil(day, &same_year, &same_month, &same_mday);
    if (same_month != month || same_mday != mday) /* the month has no such day */
        return false;
    *unix_s = day * 86400 + second;
    return true;
}
