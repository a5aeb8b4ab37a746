/*
 * Small things every measuring program needs: a clock, a random number, a way to stop.
 * Nothing here keeps state.
 */
#ifndef BENCH_UTIL_H
#define BENCH_UTIL_H

#include <stdint.h>

/* Prints "hanji-bench: ..." on stderr and ends the program with status 2. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The monotonic clock in nanoseconds. */
int64_t now_ns(void);

/* CPU time of this process so far (user and system, all threads), in nanoseconds. */
int64_t cpu_ns(void);

/* The next number of a xorshift64* sequence; *state must not be 0. */
uint64_t random_next(uint64_t *state);

/* A whole decimal number in [low, high], or die naming `what`. */
uint64_t parse_number(const char *what, const char *text, uint64_t low, uint64_t high);

/* A decimal fraction >= 0, or die naming `what`. */
double parse_fraction(const char *what, const char *text);

#endif
