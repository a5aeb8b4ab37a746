/* Inside seal/: the files that keys are kept in. */
#ifndef HANJI_SEAL_KEY_FILE_H
#define HANJI_SEAL_KEY_FILE_H

#include "seal/keys.h"

enum {
    SEAL_SECRET_BYTES = 64, /* Ed25519: seed and public key; else 32, the rest is unused */
    SEAL_KEY_NAME_MAX = 9 + 1 + SEAL_KEY_ID_HEX + 4 + 1, /* "transport-ID.key" and a NUL */
};

/* What a file says, but for the secret. */
struct seal_key_file {
    struct seal_key key;
    unsigned previous_count;
    struct seal_previous previous[SEAL_PREVIOUS_MAX];
};

/* Fills error; the macro is false. */
void seal_key_say(struct seal_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define SEAL_FAIL(...) (seal_key_say(__VA_ARGS__), false)

/* Makes what is public of a key from its kind and its secret's first 32 bytes, completes the
 * secret, and names it. */
void seal_key_derive(struct seal_key *key, unsigned char secret[SEAL_SECRET_BYTES]);

/* The name of a key's file. */
void seal_key_name(const struct seal_key *key, char name[SEAL_KEY_NAME_MAX]);

/* Reads and verifies one file of an open folder. credential: it is one of systemd's, which may
 * belong to root. secret is the caller's guarded memory. */
bool seal_key_file_read(int folder, const char *name, bool credential, struct seal_key_file *f,
                        unsigned char secret[SEAL_SECRET_BYTES], struct seal_error *error)
    __attribute__((warn_unused_result));

/* The folder opened, -1 with errno when it is not there or error set for another reason (then errno
 * is 0). */
int seal_key_folder(const char *folder, bool credentials, struct seal_error *error);

#endif
