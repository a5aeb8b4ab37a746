/* Passwords: Argon2id (RFC 9106), as libsodium's strings hold it.
 *
 * A hash costs 19 MiB for as long as it is computed and two passes over them (OWASP's second choice
 * of parameters: 16 ms on a current core, some 100 ms on a Raspberry Pi). The memory is mapped for
 * it and given back. So: never on a loop's thread, and few at a time. The parameters stand in the
 * string; a string from elsewhere that would cost far more is never computed. Knows no table. */
#ifndef HANJI_SEAL_PASSWORD_H
#define HANJI_SEAL_PASSWORD_H

#include "seal/token.h"

enum {
    SEAL_PASSWORD_MIN = 8, /* bytes; what they mean is the person's business */
    SEAL_PASSWORD_MAX = 1024,
    SEAL_PASSWORD_HASH_MAX = 128, /* bytes of the string, with its NUL */
};

enum seal_password { SEAL_PASSWORD_RIGHT, SEAL_PASSWORD_WRONG, SEAL_PASSWORD_NO_MEMORY };

/* Makes the string of a password. False: memory is short. */
bool seal_password_hash(struct seal_text password, char hash[SEAL_PASSWORD_HASH_MAX])
    __attribute__((warn_unused_result));

/* Compares. NULL, or a hash that is not one of ours, takes as long as one that is and is wrong, so
 * that the time does not tell who there is. */
enum seal_password seal_password_check(const char *hash, struct seal_text password)
    __attribute__((warn_unused_result));

/* True when the hash has other parameters than seal_password_hash uses now. */
bool seal_password_outdated(const char *hash);

enum { SEAL_PAIR_KEY_BYTES = 32, SEAL_PAIR_BYTES = 32 };

/* A random key for seal_pair. */
void seal_pair_key(unsigned char key[SEAL_PAIR_KEY_BYTES]);

/* A keyed hash of a password and the string it was compared with (BLAKE2b-256), under which the
 * result can be remembered for a while. Without the key it tells nothing. */
void seal_pair(const unsigned char key[SEAL_PAIR_KEY_BYTES], const char *hash,
               struct seal_text password, unsigned char pair[SEAL_PAIR_BYTES]);

/* Overwrites n bytes that were secret. */
void seal_wipe(void *p, size_t n);

#endif
