#include "seal/digest.h"

#include <sodium.h>

_Static_assert(sizeof(crypto_generichash_state) <= sizeof((struct seal_digest *)0)->state,
               "room for libsodium's state");

static crypto_generichash_state *state(struct seal_digest *d)
{
    return (crypto_generichash_state *)(void *)d->state;
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
