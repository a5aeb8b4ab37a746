/* The keys of this hanji: identity, transport, sealing, local. In files, in guarded memory, by id.
 *
 *   identity   Ed25519: signs envelopes when they are made, their order on a line, and the card
 *   transport  Ed25519: signs each try of a delivery (Standard Webhooks, v1a)
 *   sealing    X25519: what others seal to, and what opens it
 *   local      32 random bytes: hides what the database must not show; never leaves the machine
 *
 * One file a key, KIND-ID.key, mode 0600, in one folder; files that end so in the folder of
 * systemd's credentials count, too. A key has a time it is valid in; a sealing key opens for a
 * horizon more, and is then destroyed: that is the forward secrecy there is. A set of keys is
 * constant once it is loaded, any thread uses it; a change of the folder is another set. Secrets
 * lie in memory that is locked, guarded and not dumped where the system lets us. */
#ifndef HANJI_SEAL_KEYS_H
#define HANJI_SEAL_KEYS_H

#include <stdint.h>

#include "seal/token.h"

enum {
    SEAL_KEY_BYTES = 32, /* of a public key, of a local key */
    SEAL_KEY_ID_BYTES = 16,
    SEAL_KEY_ID_HEX = 32,
    SEAL_SIGNATURE_BYTES = 64,
    SEAL_KEYS_MAX = 64,              /* of each kind, in one set */
    SEAL_PREVIOUS_MAX = 7,           /* identities before one that it remembers */
    SEAL_HORIZON_S = 45 * 24 * 3600, /* for which a sealing key opens behind its validity */
};

enum seal_key_kind { SEAL_IDENTITY, SEAL_TRANSPORT, SEAL_SEALING, SEAL_LOCAL, SEAL_KEY_KINDS };

/* "identity" … and back; SEAL_KEY_KINDS when it is no kind. */
const char *seal_key_kind_name(enum seal_key_kind kind);
enum seal_key_kind seal_key_kind_named(const char *name);

/* First 16 bytes of BLAKE2b-256 of "hanji/key/1/", the kind's name, a NUL and the public key (of a
 * local key: of what is derived from it). */
void seal_key_id(enum seal_key_kind kind, const unsigned char public_key[SEAL_KEY_BYTES],
                 unsigned char id[SEAL_KEY_ID_BYTES]);
void seal_key_hex(const unsigned char id[SEAL_KEY_ID_BYTES], char hex[SEAL_KEY_ID_HEX + 1]);
bool seal_key_unhex(struct seal_text hex, unsigned char id[SEAL_KEY_ID_BYTES])
    __attribute__((warn_unused_result));

/* True for a public key of that kind that may be used: its one encoding, not of low order, and for
 * a sealing key the top bit clear. Ask before a key that came from elsewhere is believed. */
bool seal_key_sound(enum seal_key_kind kind, const unsigned char public_key[SEAL_KEY_BYTES])
    __attribute__((warn_unused_result));

/* One key as people see it. Times are Unix seconds, 0: none. */
struct seal_key {
    enum seal_key_kind kind;
    unsigned char id[SEAL_KEY_ID_BYTES];
    unsigned char key[SEAL_KEY_BYTES]; /* public; of a local key zero */
    int64_t created, valid_from, valid_until;
    int64_t retired; /* since when it is not used for anything new */
    bool credential; /* from the folder of systemd's credentials: cannot be changed here */
};

/* Within its time; a retired one may be, too. */
bool seal_key_valid(const struct seal_key *key, int64_t now_s);

/* A sealing key whose time and horizon have passed: nothing may be opened with it, destroy it. */
bool seal_key_spent(const struct seal_key *key, int64_t now_s);

/* An identity before another one, whose key it signed (seal_key_succession). */
struct seal_previous {
    unsigned char key[SEAL_KEY_BYTES];
    int64_t valid_from, valid_until;
    unsigned char signature[SEAL_SIGNATURE_BYTES];
};

/* What an identity signs when another follows it: a domain string, its key, the other's. */
enum { SEAL_SUCCESSION_BYTES = 22 + 2 * SEAL_KEY_BYTES };
void seal_key_succession(const unsigned char before[SEAL_KEY_BYTES],
                         const unsigned char after[SEAL_KEY_BYTES],
                         unsigned char text[SEAL_SUCCESSION_BYTES]);

struct seal_error {
    char text[256];
};

struct seal_keys;

/* Reads the folder (and $CREDENTIALS_DIRECTORY). A folder that is not there, or empty, is an empty
 * set. False with error set: a file is malformed, readable by others, or its name is not its
 * key's. */
bool seal_keys_load(const char *folder, struct seal_keys **keys, struct seal_error *error)
    __attribute__((warn_unused_result));

/* A set without keys. NULL: memory is short. */
struct seal_keys *seal_keys_none(void) __attribute__((warn_unused_result));
void seal_keys_free(struct seal_keys *keys); /* overwrites; safe with NULL */

/* In order of kind and creation; NULL behind the last. */
const struct seal_key *seal_keys_at(const struct seal_keys *keys, unsigned i);

/* The one that is used now: the newest of its kind that is valid and not retired. NULL: none. */
const struct seal_key *seal_keys_current(const struct seal_keys *keys, enum seal_key_kind kind,
                                         int64_t now_s);
const struct seal_key *seal_keys_find(const struct seal_keys *keys, enum seal_key_kind kind,
                                      const unsigned char id[SEAL_KEY_ID_BYTES]);

/* The identities before one of the set, its predecessor first; how many, at most
 * SEAL_PREVIOUS_MAX. They live as long as the set. */
unsigned seal_keys_previous(const struct seal_keys *keys, const struct seal_key *identity,
                            const struct seal_previous **list);

/* Ed25519 (RFC 8032, pure) with an identity or transport key of the set. False: it is not there. */
bool seal_keys_sign(const struct seal_keys *keys, const struct seal_key *key, const void *p,
                    size_t n, unsigned char signature[SEAL_SIGNATURE_BYTES])
    __attribute__((warn_unused_result));

/* Opens a crypto_box_seal of n bytes with a sealing key of the set: n - 48 bytes into out. False
 * when it does not open. */
bool seal_keys_open(const struct seal_keys *keys, const struct seal_key *key, const void *p,
                    size_t n, void *out) __attribute__((warn_unused_result));

/* Hides n bytes for the database (XChaCha20-Poly1305 under a local key, its id in front), bound to
 * what they are about. out has room for n + SEAL_HIDDEN_EXTRA; how many were written. 0: there is
 * no local key. */
enum { SEAL_HIDDEN_EXTRA = 1 + 16 + 24 + 16 };
size_t seal_hide(const struct seal_keys *keys, struct seal_text about, const void *p, size_t n,
                 unsigned char *out) __attribute__((warn_unused_result));

/* What was hidden: *shown bytes into out, which has room for n. False: not with these keys, or not
 * about that. */
bool seal_show(const struct seal_keys *keys, struct seal_text about, const void *p, size_t n,
               unsigned char *out, size_t *shown) __attribute__((warn_unused_result));

/* Makes a key and writes its file, durably (temporary, fsync, rename, fsync of the folder), which
 * is made when it is not there (mode 0700). Run by root, file and folder belong to whom the folder
 * around belongs. */
bool seal_key_new(const char *folder, enum seal_key_kind kind, int64_t now_s, int64_t valid_until,
                  struct seal_key *made, struct seal_error *error)
    __attribute__((warn_unused_result));

/* Makes an identity that follows one of the set, which signs it; the file remembers both, and those
 * before. The old one is to be retired then. made->created and ->valid_until are given. */
bool seal_key_follow(const char *folder, const struct seal_keys *keys, const struct seal_key *old,
                     struct seal_key *made, struct seal_error *error)
    __attribute__((warn_unused_result));

/* Marks a key as retired from then on, with the time its validity ends. */
bool seal_key_retire(const char *folder, const struct seal_key *key, int64_t now_s,
                     int64_t valid_until, struct seal_error *error)
    __attribute__((warn_unused_result));

/* Overwrites and removes the file of a key. What the file system or the disk keeps of what was
 * overwritten is out of reach. */
bool seal_key_destroy(const char *folder, const struct seal_key *key, struct seal_error *error)
    __attribute__((warn_unused_result));

#endif
