#include "seal/password.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { PASSES = 2, MEMORY_KIB = 19456 };
/* What a string may ask for. */
enum { PASSES_MAX = 16, MEMORY_KIB_MIN = 8, MEMORY_KIB_MAX = 262144, OUT_BYTES = 32 };

_Static_assert((int)SEAL_PASSWORD_HASH_MAX == (int)crypto_pwhash_argon2id_STRBYTES,
               "room for libsodium's string");

/* What a string says. */
struct parts {
    unsigned long kib, passes;
    unsigned char salt[crypto_pwhash_SALTBYTES];
    unsigned char out[OUT_BYTES];
};

/* Reads "NAME=N" and what follows it; NULL when it is not there. */
static const char *number(const char *p, const char *name, const char *end, unsigned long *n)
{
    char *stop;
    size_t len = strlen(name);
    if (strncmp(p, name, len) != 0 || p[len] < '0' || p[len] > '9')
        return NULL;
    *n = strtoul(p + len, &stop, 10);
    return strncmp(stop, end, strlen(end)) == 0 ? stop + strlen(end) : NULL;
}

/* Reads base64 of exactly n bytes; what follows it, or NULL. */
static const char *bytes(const char *p, unsigned char *out, size_t n)
{
    const char *end = NULL;
    size_t got = 0;
    if (sodium_base642bin(out, n, p, strlen(p), NULL, &got, &end,
                          sodium_base64_VARIANT_ORIGINAL_NO_PADDING) != 0)
        return NULL;
    return got == n ? end : NULL;
}

static bool parse(const char *hash, struct parts *s)
{
    static const char begin[] = "$argon2id$v=19$";
    unsigned long lanes = 0;
    *s = (struct parts){0};
    if (hash == NULL || strncmp(hash, begin, sizeof begin - 1) != 0)
        return false;
    const char *p = number(hash + sizeof begin - 1, "m=", ",", &s->kib);
    p = p ? number(p, "t=", ",", &s->passes) : NULL;
    p = p ? number(p, "p=", "$", &lanes) : NULL;
    p = p ? bytes(p, s->salt, sizeof s->salt) : NULL;
    p = p && *p == '$' ? bytes(p + 1, s->out, sizeof s->out) : NULL;
    return p != NULL && *p == 0 && lanes == 1 && s->kib >= MEMORY_KIB_MIN &&
           s->kib <= MEMORY_KIB_MAX && s->passes >= 1 && s->passes <= PASSES_MAX;
}

bool seal_password_hash(struct seal_text password, char hash[SEAL_PASSWORD_HASH_MAX])
{
    return crypto_pwhash_argon2id_str(hash, password.p, password.n, PASSES,
                                      (size_t)MEMORY_KIB * 1024) == 0;
}

/* libsodium's own comparison does not tell a wrong password from memory that is short. */
enum seal_password seal_password_check(const char *hash, struct seal_text password)
{
    struct parts want;
    unsigned char out[OUT_BYTES];
    bool usable = parse(hash, &want);
    if (!usable)
        want = (struct parts){.kib = MEMORY_KIB, .passes = PASSES};
    if (crypto_pwhash(out, sizeof out, password.p, password.n, want.salt, want.passes,
                      want.kib * 1024, crypto_pwhash_ALG_ARGON2ID13) != 0)
        return SEAL_PASSWORD_NO_MEMORY;
    bool same = sodium_memcmp(out, want.out, sizeof out) == 0;
    sodium_memzero(out, sizeof out);
    return same && usable ? SEAL_PASSWORD_RIGHT : SEAL_PASSWORD_WRONG;
}

bool seal_password_outdated(const char *hash)
{
    struct parts s;
    return !parse(hash, &s) || s.kib != MEMORY_KIB || s.passes != PASSES;
}

void seal_pair_key(unsigned char key[SEAL_PAIR_KEY_BYTES])
{
    randombytes_buf(key, SEAL_PAIR_KEY_BYTES);
}

void seal_pair(const unsigned char key[SEAL_PAIR_KEY_BYTES], const char *hash,
               struct seal_text password, unsigned char pair[SEAL_PAIR_BYTES])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, key, SEAL_PAIR_KEY_BYTES, SEAL_PAIR_BYTES);
    crypto_generichash_update(&state, (const unsigned char *)hash, strlen(hash) + 1);
    crypto_generichash_update(&state, (const unsigned char *)password.p, password.n);
    crypto_generichash_final(&state, pair, SEAL_PAIR_BYTES);
    sodium_memzero(&state, sizeof state);
}

void seal_wipe(void *p, size_t n)
{
    if (n > 0)
        sodium_memzero(p, n);
}
