#include "seal/box.h"

#include <sodium.h>
#include <string.h>

enum { HASH_BYTES = crypto_shorthash_siphashx24_BYTES };

_Static_assert(HASH_BYTES + crypto_aead_xchacha20poly1305_ietf_ABYTES == SEAL_BOX_EXTRA,
               "what a box has around its text");
_Static_assert((int)SEAL_BOX_SECRET_BYTES == (int)crypto_kdf_KEYBYTES, "a secret makes keys");

void seal_box_keys(const unsigned char secret[SEAL_BOX_SECRET_BYTES], struct seal_box_keys *keys)
{
    crypto_kdf_derive_from_key(keys->nonce, sizeof keys->nonce, 1, "hanjibox", secret);
    crypto_kdf_derive_from_key(keys->cipher, sizeof keys->cipher, 2, "hanjibox", secret);
}

/* Depends on all that is sealed and authenticated: another text, or another thing that it is about,
 * has another nonce. */
static void make_nonce(const struct seal_box_keys *keys, struct seal_text about, const void *p,
                       size_t n, unsigned char out[HASH_BYTES])
{
    unsigned char all[2 + SEAL_BOX_ABOUT_MAX + SEAL_BOX_MAX];
    all[0] = (unsigned char)(about.n >> 8);
    all[1] = (unsigned char)about.n;
    if (about.n > 0)
        memcpy(all + 2, about.p, about.n);
    if (n > 0)
        memcpy(all + 2 + about.n, p, n);
    crypto_shorthash_siphashx24(out, all, 2 + about.n + n, keys->nonce);
}

static void pad(unsigned char nonce[crypto_aead_xchacha20poly1305_ietf_NPUBBYTES],
                const unsigned char hash[HASH_BYTES])
{
    memset(nonce, 0, crypto_aead_xchacha20poly1305_ietf_NPUBBYTES);
    memcpy(nonce, hash, HASH_BYTES);
}

size_t seal_box_close(const struct seal_box_keys *keys, struct seal_text about, const void *p,
                      size_t n, char *text)
{
    unsigned char box[SEAL_BOX_EXTRA + SEAL_BOX_MAX];
    unsigned char nonce[crypto_aead_xchacha20poly1305_ietf_NPUBBYTES];
    unsigned long long sealed = 0;
    if (n > SEAL_BOX_MAX || about.n > SEAL_BOX_ABOUT_MAX)
        return 0;
    make_nonce(keys, about, p, n, box);
    pad(nonce, box);
    crypto_aead_xchacha20poly1305_ietf_encrypt(box + HASH_BYTES, &sealed, p, n,
                                               (const unsigned char *)about.p, about.n, NULL,
                                               nonce, keys->cipher);
    sodium_bin2base64(text, SEAL_BOX_TEXT_MAX + 1, box, HASH_BYTES + (size_t)sealed,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    return strlen(text);
}

bool seal_box_open(const struct seal_box_keys *keys, struct seal_text about, struct seal_text text,
                   void *out, size_t *n)
{
    unsigned char box[SEAL_BOX_EXTRA + SEAL_BOX_MAX];
    unsigned char nonce[crypto_aead_xchacha20poly1305_ietf_NPUBBYTES];
    unsigned long long opened = 0;
    size_t bytes = 0;
    const char *end = NULL;
    if (about.n > SEAL_BOX_ABOUT_MAX || text.n > SEAL_BOX_TEXT_MAX ||
        sodium_base642bin(box, sizeof box, text.p, text.n, NULL, &bytes, &end,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0 ||
        end != text.p + text.n || bytes < SEAL_BOX_EXTRA)
        return false;
    pad(nonce, box);
    if (crypto_aead_xchacha20poly1305_ietf_decrypt(out, &opened, NULL, box + HASH_BYTES,
                                                   bytes - HASH_BYTES,
                                                   (const unsigned char *)about.p, about.n, nonce,
                                                   keys->cipher) != 0)
        return false;
    *n = (size_t)opened;
    return true;
}
