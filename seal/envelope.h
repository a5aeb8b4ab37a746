/* Envelopes: a message sealed to its recipients and signed by its sender, as JSON that travels.
 *
 *   {"v":1,"alg":"…","id":"msg_…","line":"orders","type":"application/json","created":UNIX,
 *    "from":KEYID,"to":[{"key":KEYID,"box":BASE64}],"kc":BASE64,"ct":BASE64,"sig":BASE64
 *    ,"ord":"fifo","seq":42,"prev":BASE64,"proof":BASE64}
 *
 * in this order and without white space: there is one spelling of an envelope, any other is
 * refused.
 *
 * Made when a message is accepted: everything up to sig. seq and prev are known only in the
 * transaction that stores it, so the courier adds ord, seq, prev and the proof, which it signs with
 * the identity, when it first sends. docs/envelope.md has the canonical header, domain strings and
 * hashes byte by byte. One suite, closed:
 * X25519-XSalsa20-Poly1305 sealed boxes around a content key, XChaCha20-Poly1305 (IETF) with the
 * header's hash as associated data for the body, padded to size classes; BLAKE2b; Ed25519. The
 * header's hash is also inside every box and in the plaintext. A key commitment makes the content
 * key the same for all. Pure functions, any thread. */
#ifndef HANJI_SEAL_ENVELOPE_H
#define HANJI_SEAL_ENVELOPE_H

#include "seal/keys.h"

#define SEAL_ENVELOPE_ALG "x25519-xsalsa20poly1305-seal+xchacha20poly1305+ed25519"

enum {
    SEAL_HASH_BYTES = 32,
    SEAL_RECIPIENTS_MAX = 64,
    SEAL_LINE_MAX = 64,      /* bytes of a line's name */
    SEAL_MESSAGE_ID_LEN = 30, /* "msg_" and 26 */
    SEAL_TYPE_MAX = 255,
};

/* Who it is sealed to. */
struct seal_recipient {
    unsigned char id[SEAL_KEY_ID_BYTES];
    unsigned char key[SEAL_KEY_BYTES];
};

struct seal_letter {
    struct seal_text id, line, type, body; /* id: SEAL_MESSAGE_ID_LEN bytes */
    int64_t created; /* Unix seconds */
    const struct seal_recipient *to;
    unsigned to_count; /* 1 … SEAL_RECIPIENTS_MAX */
};

enum seal_envelope {
    SEAL_ENVELOPE_OK,
    SEAL_ENVELOPE_MALFORMED,  /* not the JSON above: members, lengths, base64, version, suite */
    SEAL_ENVELOPE_SENDER,     /* from is not an identity the caller trusts */
    SEAL_ENVELOPE_SIGNATURE,  /* sig or proof does not verify */
    SEAL_ENVELOPE_RECIPIENT,  /* none of the keys is one of ours */
    SEAL_ENVELOPE_UNOPENABLE, /* box, commitment or text does not open, or they do not agree */
    SEAL_ENVELOPE_NO_MEMORY,
};

/* Bytes of the JSON of a letter up to sig, with the closing brace. */
size_t seal_envelope_bytes(const struct seal_letter *l);

/* Seals and signs into out, which has that room (and one more for a NUL); *n is its length, hash
 * the message's, for the chain. OK, NO_MEMORY, MALFORMED (a recipient's key is of low order, a text
 * is too long or has no such form), SENDER (the set has no identity now). Copies of the plaintext
 * are overwritten. */
enum seal_envelope seal_envelope_make(const struct seal_keys *keys, const struct seal_letter *l,
                                      char *out, size_t *n, unsigned char hash[SEAL_HASH_BYTES])
    __attribute__((warn_unused_result));

/* The hash of a message that is not sealed, for its line's chain. */
void seal_message_hash(struct seal_text id, struct seal_text type, struct seal_text body,
                       unsigned char hash[SEAL_HASH_BYTES]);

/* Where a message stands on its line, and the courier's signature over it. False: the identity is
 * not there, or line or seq have no such form. */
struct seal_place {
    struct seal_text line;
    uint64_t seq; /* 1 … INT64_MAX */
    bool fifo;
    unsigned char prev[SEAL_HASH_BYTES]; /* zero for the first */
    unsigned char hash[SEAL_HASH_BYTES];
};
bool seal_place_sign(const struct seal_keys *keys, const struct seal_key *identity,
                     const struct seal_place *p, unsigned char proof[SEAL_SIGNATURE_BYTES])
    __attribute__((warn_unused_result));

/* The bytes on the wire: the stored envelope with its place, into out with room for n +
 * SEAL_PLACE_JSON_MAX; returns the length. */
enum { SEAL_PLACE_JSON_MAX = 256 };
size_t seal_envelope_send(struct seal_text stored, const struct seal_place *p,
                          const unsigned char proof[SEAL_SIGNATURE_BYTES], char *out);

/* The identity that signed a stored envelope of ours (its from). False: it is not one. */
bool seal_envelope_from(struct seal_text stored, unsigned char id[SEAL_KEY_ID_BYTES])
    __attribute__((warn_unused_result));

/* What is sent in the place of a message that a person skipped: a signed tombstone, so that the
 * receiver's chain stays whole.
 *   {"v":1,"skip":true,"id":…,"line":…,"from":…,"ord":…,"seq":…,"prev":…,"hash":…,"proof":…}
 * Returns the length in out (SEAL_TOMBSTONE_MAX), 0: no such key, or a text has no such form. */
enum { SEAL_TOMBSTONE_MAX = 1024 };
size_t seal_tombstone_make(const struct seal_keys *keys, const struct seal_key *identity,
                           struct seal_text id, const struct seal_place *p, char *out)
    __attribute__((warn_unused_result));

/* An envelope that was taken apart; texts and places point into the JSON or into memory. */
struct seal_opened {
    struct seal_text id, type;
    struct seal_place place;
    unsigned char from[SEAL_KEY_ID_BYTES];
    int64_t created;
    bool skipped; /* it was a tombstone: there is no body */
    struct seal_text body; /* of seal_envelope_open; overwritten and freed by seal_opened_free */
    void *memory;
};

/* Finds the key of an identity the caller trusts. False: it does not. */
typedef bool seal_trust_fn(void *arg, const unsigned char id[SEAL_KEY_ID_BYTES],
                           unsigned char key[SEAL_KEY_BYTES]);

/* Parses, verifies both signatures, opens, compares; in that order, and nothing of the plaintext is
 * there unless all of it held. seal_opened_free in any case. */
enum seal_envelope seal_envelope_open(const struct seal_keys *keys, struct seal_text json,
                                      seal_trust_fn *trust, void *arg, struct seal_opened *opened)
    __attribute__((warn_unused_result));
void seal_opened_free(struct seal_opened *opened);

#endif
