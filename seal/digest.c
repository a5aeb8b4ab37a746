#include "seal/digest.h"

#include <sodium.h>
#include <stdint.h>

enum { ALIGN = 64 };

_Static_assert(sizeof(crypto_generichash_state) + ALIGN - 1 <=
                   sizeof((struct seal_digest *)0)->room,
               "room for libsodium's state");

/* Aligned by hand: not every stack that a compiler or a sanitizer makes keeps such an alignment. */
static crypto_generichash_state *state(struct seal_digest *d)
{
    size_t off = (ALIGN - (uintptr_t)d->room % ALIGN) % ALIGN;
    return (crypto_generichash_state *)(void *)(d->room + off);
}

void seal_digest_init(struct seal_digest *d)
{
    crypto_generichash_init(state(d), NULL, 0, SEAL_DIGEST_BYTES);
}

void seal_digest_add(struct seal_digest *d, const void *p, size_t n)
{
    crypto_generichash_update(state(d), p, n);
}

void seal_digest_end(struct seal_digest *d, unsigned char out[SEAL_DIGEST_BYTES])
{
    crypto_generichash_final(state(d), out, SEAL_DIGEST_BYTES);
}

void seal_digest_hex(const unsigned char digest[SEAL_DIGEST_BYTES],
                     char out[SEAL_DIGEST_HEX_LEN + 1])
{
    sodium_bin2hex(out, SEAL_DIGEST_HEX_LEN + 1, digest, SEAL_DIGEST_BYTES);
}
