/* Base64 (RFC 4648 4, with its padding): bytes in text and back. Pure functions, any thread. */
#ifndef HANJI_SEAL_BASE64_H
#define HANJI_SEAL_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Characters for n bytes. */
size_t seal_base64_len(size_t n);

/* Writes them to text, which has room for one more (a NUL). */
void seal_base64_encode(char *text, const void *p, size_t n);

/* The bytes of len characters: at most len / 4 * 3, into out; *n says how many. False when the text
 * is not base64 to its last character. */
bool seal_base64_decode(const char *text, size_t len, void *out, size_t *n)
    __attribute__((warn_unused_result));

#endif
