/* Cards: the public keys of a hanji, as one line of JSON that people exchange and compare.
 *
 *   {"hanji":"card/1","identity":KEY,"previous":[KEY with "sig"…],"transport":[KEY…],
 *    "sealing":[KEY…],"horizon":SECONDS,"made":UNIX,"sig":BASE64}
 *   KEY: {"key":BASE64,"from":UNIX,"until":UNIX}
 *
 * Signed by the identity over a canonical binary form of everything in it, so sealing and transport
 * keys are vouched for; each previous identity comes with its signature over the one that followed
 * it. Ids are not in it: they follow from the keys. The order of members and white space are free,
 * so that it survives being carried in other JSON. The fingerprint is that of the identity: compare
 * it by another channel before a card is believed. Pure functions, any thread. */
#ifndef HANJI_SEAL_CARD_H
#define HANJI_SEAL_CARD_H

#include "seal/keys.h"

enum {
    SEAL_CARD_MAX = 16384, /* bytes of its text, with a NUL */
    SEAL_CARD_KEYS_MAX = 8, /* of each kind */
    /* "abcd efgh …": eight groups of four of base32 */
    SEAL_FINGERPRINT_LEN = 8 * 5 - 1,
};

struct seal_card_key {
    unsigned char id[SEAL_KEY_ID_BYTES];
    unsigned char key[SEAL_KEY_BYTES];
    int64_t valid_from, valid_until; /* Unix seconds, 0: no end */
};

struct seal_card {
    struct seal_card_key identity[SEAL_CARD_KEYS_MAX]; /* the current one first, then older ones */
    struct seal_card_key transport[SEAL_CARD_KEYS_MAX];
    struct seal_card_key sealing[SEAL_CARD_KEYS_MAX]; /* newest first */
    unsigned identities, transports, sealings;
    int64_t horizon_s; /* for which sealing keys open behind valid_until */
    int64_t made;      /* Unix seconds */
};

/* Writes the card of a set of keys, NUL-terminated, without white space; its length, 0: there is no
 * identity, or no sealing or transport key. */
size_t seal_card_make(const struct seal_keys *keys, int64_t now_s, char text[SEAL_CARD_MAX])
    __attribute__((warn_unused_result));

/* Reads and verifies one. False with error set: malformed, unknown or missing members, a bad
 * signature, a key that is not sound (seal_key_sound) or there twice. Judges no times. */
bool seal_card_read(struct seal_text text, struct seal_card *card, struct seal_error *error)
    __attribute__((warn_unused_result));

/* The first 160 bits of BLAKE2b-256 of a domain string and the key, in Crockford's base32. */
void seal_fingerprint(const unsigned char identity[SEAL_KEY_BYTES],
                      char text[SEAL_FINGERPRINT_LEN + 1]);

#endif
