/* A growable byte buffer with a cap given by the caller at every growth.
 *
 * Invariant: len <= cap; data is NULL exactly when cap is 0. A buffer set to all zeroes is empty
 * and valid. Not shared between threads. */
#ifndef HANJI_FCGI_BUF_H
#define HANJI_FCGI_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
    unsigned char *data;
    size_t len;
    size_t cap;
};

/* A slice of text that somebody else owns. p may be NULL when n is 0: then the thing is absent. */
struct str {
    const char *p;
    size_t n;
};

#define STR_LIT(s) ((struct str){(s), sizeof(s) - 1})

/* Makes room for extra more bytes. False when that would pass max_bytes or memory is short; the
 * buffer is unchanged then. Growth doubles, so that n appends cost O(n). */
bool buf_reserve(struct buf *b, size_t extra, size_t max_bytes) __attribute__((warn_unused_result));

/* Appends n bytes; false as for buf_reserve. */
bool buf_add(struct buf *b, const void *p, size_t n, size_t max_bytes)
    __attribute__((warn_unused_result));

/* Frees the memory and leaves an empty buffer. */
void buf_free(struct buf *b);

bool str_eq(struct str a, struct str b);
bool str_starts(struct str s, struct str prefix);

#endif
