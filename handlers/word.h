/* Eight bytes of text looked at in one go, as a number: which of them are special. */
#ifndef HANJI_HANDLERS_WORD_H
#define HANJI_HANDLERS_WORD_H

#include <stdint.h>

/* Eight times the byte. */
#define WORD_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* The high bit of each byte of w that is below n, which is at most 0x80, and maybe of those above
 * it in a byte that follows: so it is 0 exactly when there is none. */
static inline uint64_t word_below(uint64_t w, uint64_t n)
{
    return (w - WORD_EACH(n)) & ~w & WORD_EACH(0x80);
}

/* The same for each byte of w that is c. */
static inline uint64_t word_has(uint64_t w, uint64_t c)
{
    return word_below(w ^ WORD_EACH(c), 1);
}

#endif
