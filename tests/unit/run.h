/* What every unit test program starts with: check, and main's last line. */
#ifndef HANJI_TESTS_UNIT_RUN_H
#define HANJI_TESTS_UNIT_RUN_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Elements of an array. */
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* A new case of the suite, 60 s for each of its tests: sanitizers and emulators are slow. */
TCase *run_case(Suite *s, const char *name);

/* Runs all tests, each in a process of its own, and frees the suite. Returns main's exit status. */
int run_suite(Suite *s);

#endif
