/* What every fuzz target needs: its entry point, and MUST, which ends the program where something does not hold. */
#ifndef HANJI_TESTS_FUZZ_MUST_H
#define HANJI_TESTS_FUZZ_MUST_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(what)       \
    do                   \
        if (!(what))     \
            abort();     \
    while (0)

#endif
