/* Names for new things: short, in order of time, not to be guessed.
 *
 * An id is 128 bits in 26 characters of Crockford's base32, lower case: 48 bits of Unix time in
 * milliseconds, 80 random bits. Within a process each is behind those before it, in the order of
 * bytes, also within a millisecond and when the clock goes back. Any thread. */
#ifndef HANJI_SEAL_ID_H
#define HANJI_SEAL_ID_H

#include <stdint.h>

enum { SEAL_ID_LEN = 26 };

/* Makes one, NUL-terminated. now_ms: the wall clock. */
void seal_id_new(char id[SEAL_ID_LEN + 1], uint64_t now_ms);

#endif
