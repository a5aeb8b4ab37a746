#include "util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void die(const char *format, ...)
{
    va_list arguments;

    (void)fputs("hanji-bench: ", stderr);
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
    exit(2);
}

static int64_t read_clock(clockid_t clock)
{
    struct timespec time;

    if (clock_gettime(clock, &time) != 0)
        die("clock_gettime failed");
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(0x2545F4914F6CDD1D);
}

uint64_t parse_number(const char *what, const char *text, uint64_t low, uint64_t high)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value < low || value > high)
        die("%s: %s is not a whole number from %llu to %llu", what, text, (unsigned long long)low,
            (unsigned long long)high);
    return value;
}

double parse_fraction(const char *what, const char *text)
{
    char *end;
    double value;

    errno = 0;
    value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !(value >= 0 && value < 1e12))
        die("%s: %s is not a number >= 0", what, text);
    return value;
}
