#include "seal/token.h"

#include <sodium.h>
#include <string.h>

static const char token_mark[] = "hanji_", session_mark[] = "hanjis_";

enum { RANDOM_BYTES = 32 };

bool seal_init(void)
{
    return sodium_init() >= 0;
}

/* mark, 32 random bytes in base64url, NUL. */
static void make(char *text, const char *mark, size_t len)
{
    unsigned char secret[RANDOM_BYTES];
    size_t mark_len = strlen(mark);
    randombytes_buf(secret, sizeof secret);
    memcpy(text, mark, mark_len);
    sodium_bin2base64(text + mark_len, len + 1 - mark_len, secret, sizeof secret,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(secret, sizeof secret);
}

static bool hash_marked(struct seal_text text, const char *mark, size_t len, unsigned char *hash)
{
    if (text.n != len || memcmp(text.p, mark, strlen(mark)) != 0)
        return false;
    return crypto_generichash(hash, SEAL_TOKEN_HASH_BYTES, (const unsigned char *)text.p, text.n,
                              NULL, 0) == 0;
}

void seal_token_new(char token[SEAL_TOKEN_LEN + 1])
{
    make(token, token_mark, SEAL_TOKEN_LEN);
}

bool seal_token_hash(const char *text, size_t n, unsigned char hash[SEAL_TOKEN_HASH_BYTES])
{
    return hash_marked((struct seal_text){text, n}, token_mark, SEAL_TOKEN_LEN, hash);
}

void seal_session_new(char session[SEAL_SESSION_LEN + 1])
{
    make(session, session_mark, SEAL_SESSION_LEN);
}

bool seal_session_hash(const char *text, size_t n, unsigned char hash[SEAL_TOKEN_HASH_BYTES])
{
    return hash_marked((struct seal_text){text, n}, session_mark, SEAL_SESSION_LEN, hash);
}

bool seal_token_same(const unsigned char a[SEAL_TOKEN_HASH_BYTES],
                     const unsigned char b[SEAL_TOKEN_HASH_BYTES])
{
    return sodium_memcmp(a, b, SEAL_TOKEN_HASH_BYTES) == 0;
}
