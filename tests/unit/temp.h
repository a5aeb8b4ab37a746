/* A folder of its own for every test; nothing of it is left behind, also when a test crashes. */
#ifndef HANJI_TESTS_UNIT_TEMP_H
#define HANJI_TESTS_UNIT_TEMP_H

#include "tests/unit/run.h"

/* Gives every test of the case a new, empty folder. */
void temp_use(TCase *t);

/* The name of a file in the test's folder; "" for the folder itself. Valid until the eighth next call. */
const char *temp_path(const char *name);

/* Writes a file of n bytes into the folder and returns its name. */
const char *temp_file(const char *name, const void *p, size_t n);

/* Reads a whole file into memory from malloc and sets *n; fails the test when it cannot. */
char *temp_read(const char *path, size_t *n);

/* Captures what is written to descriptor 2 until the second call, which returns it as a string from malloc. */
void temp_capture_stderr(void);
char *temp_captured(void);

#endif
