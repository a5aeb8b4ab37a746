/* BLAKE2b-256 (RFC 7693) of bytes that come in pieces: names of files by their content. */
#ifndef HANJI_SEAL_DIGEST_H
#define HANJI_SEAL_DIGEST_H

#include <stddef.h>

enum { SEAL_DIGEST_BYTES = 32, SEAL_DIGEST_HEX_LEN = 64 };

/* Stays where it is between init and end: what is inside knows its address. */
struct seal_digest {
    unsigned char room[384 + 63]; /* for libsodium's state, which is aligned to 64 bytes in here */
};

void seal_digest_init(struct seal_digest *d);
void seal_digest_add(struct seal_digest *d, const void *p, size_t n);
void seal_digest_end(struct seal_digest *d, unsigned char out[SEAL_DIGEST_BYTES]);

/* Lower-case hex of a digest, NUL-terminated. */
void seal_digest_hex(const unsigned char digest[SEAL_DIGEST_BYTES],
                     char out[SEAL_DIGEST_HEX_LEN + 1]);

#endif
