/* Short texts that only this database can make and read: sealed, and bound to what they are about.
 *
 * A synthetic IV, as in RFC 5297: the tag is a keyed hash (SipHash-2-4 of 128 bits) of everything,
 * and its first 96 bits are the nonce of the stream that hides the text (ChaCha20, RFC 8439). So
 * the same text about the same thing always looks the same, no random numbers are needed, and two
 * texts have the same nonce only by a chance of one in 2^96. It costs a fourth of
 * XChaCha20-Poly1305, and a page of a list has two. In base64url (RFC 4648 5, no padding). Pure
 * functions, any thread. */
#ifndef HANJI_SEAL_BOX_H
#define HANJI_SEAL_BOX_H

#include <stdbool.h>
#include <stddef.h>

#include "seal/token.h"

enum {
    SEAL_BOX_SECRET_BYTES = 32,
    SEAL_BOX_MAX = 1024,       /* bytes that can be sealed */
    SEAL_BOX_ABOUT_MAX = 1024, /* bytes of what they are about */
    SEAL_BOX_EXTRA = 16,       /* the tag */
    SEAL_BOX_TEXT_MAX = (SEAL_BOX_MAX + SEAL_BOX_EXTRA) * 4 / 3 + 2,
};

/* Made of a secret, for one use of it. */
struct seal_box_keys {
    unsigned char tag[16], cipher[32];
};

void seal_box_keys(const unsigned char secret[SEAL_BOX_SECRET_BYTES], struct seal_box_keys *keys);

/* Seals n bytes into text, which has room for SEAL_BOX_TEXT_MAX characters and a NUL; returns its
 * length. 0: one of both is too long. */
size_t seal_box_close(const struct seal_box_keys *keys, struct seal_text about, const void *p,
                      size_t n, char *text) __attribute__((warn_unused_result));

/* What was sealed, into out, which has room for SEAL_BOX_MAX bytes. False: this was not made with
 * these keys about that. */
bool seal_box_open(const struct seal_box_keys *keys, struct seal_text about, struct seal_text text,
                   void *out, size_t *n) __attribute__((warn_unused_result));

#endif
