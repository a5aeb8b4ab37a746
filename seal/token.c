#include "seal/token.h"

#include <sodium.h>
#include <string.h>

static const char mark[] = "hanji_";

enum { RANDOM_BYTES = 32, MARK_LEN = sizeof mark - 1 };

bool seal_init(void)
{
    return sodium_init() >= 0;
}

void seal_token_new(char token[SEAL_TOKEN_LEN + 1])
{
    unsigned char secret[RANDOM_BYTES];
    randombytes_buf(secret, sizeof secret);
    memcpy(token, mark, MARK_LEN);
    sodium_bin2base64(token + MARK_LEN, SEAL_TOKEN_LEN + 1 - MARK_LEN, secret, sizeof secret,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(secret, sizeof secret);
}

bool seal_token_hash(const char *text, size_t n, unsigned char hash[SEAL_TOKEN_HASH_BYTES])
{
    if (n != SEAL_TOKEN_LEN || memcmp(text, mark, MARK_LEN) != 0)
        return false;
    return crypto_generichash(hash, SEAL_TOKEN_HASH_BYTES, (const unsigned char *)text, n, NULL,
                              0) == 0;
}

bool seal_token_same(const unsigned char a[SEAL_TOKEN_HASH_BYTES],
                     const unsigned char b[SEAL_TOKEN_HASH_BYTES])
{
    return sodium_memcmp(a, b, SEAL_TOKEN_HASH_BYTES) == 0;
}
