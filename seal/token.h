/* API tokens and the cookies of sessions: making them and the hash they are stored under.
 *
 * A token is "hanji_" and 32 random bytes in base64url (RFC 4648 5, no padding), a session's cookie
 * "hanjis_" and 32 of its own: neither can be given for the other. Their hash is BLAKE2b-256; a
 * slow hash would add nothing, they have 256 bits of entropy. Knows no table. */
#ifndef HANJI_SEAL_TOKEN_H
#define HANJI_SEAL_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

enum { SEAL_TOKEN_LEN = 6 + 43, SEAL_SESSION_LEN = 7 + 43, SEAL_TOKEN_HASH_BYTES = 32 };

/* A slice of bytes that somebody else owns. */
struct seal_text {
    const char *p;
    size_t n;
};

/* Call once before anything else of seal/. False: the library cannot be used. */
bool seal_init(void) __attribute__((warn_unused_result));

/* Makes a token, NUL-terminated. */
void seal_token_new(char token[SEAL_TOKEN_LEN + 1]);

/* True when the text has the form of a token; then hash is filled. */
bool seal_token_hash(const char *text, size_t n, unsigned char hash[SEAL_TOKEN_HASH_BYTES])
    __attribute__((warn_unused_result));

/* The same for a session's cookie. */
void seal_session_new(char session[SEAL_SESSION_LEN + 1]);
bool seal_session_hash(const char *text, size_t n, unsigned char hash[SEAL_TOKEN_HASH_BYTES])
    __attribute__((warn_unused_result));

/* Compares two hashes in a time that does not tell where they differ. */
bool seal_token_same(const unsigned char a[SEAL_TOKEN_HASH_BYTES],
                     const unsigned char b[SEAL_TOKEN_HASH_BYTES])
    __attribute__((warn_unused_result));

#endif
