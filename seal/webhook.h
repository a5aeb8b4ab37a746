/* Standard Webhooks: signing a try of a delivery, and verifying one that came.
 *
 * Signed is ID '.' TIMESTAMP '.' BODY. `v1` is HMAC-SHA256 with the endpoint's secret (whsec_ and
 * base64 of 24 to 64 bytes), `v1a` Ed25519 (whpk_ and base64 of the public key, whsk_ of the secret
 * one: seed, or seed and public key). The verifier takes the algorithm from the kind of key it has,
 * never from the token. Pure functions, any thread. */
#ifndef HANJI_SEAL_WEBHOOK_H
#define HANJI_SEAL_WEBHOOK_H

#include "seal/keys.h"

enum {
    SEAL_WHSEC_MIN = 24, /* bytes of a secret */
    SEAL_WHSEC_MAX = 64,
    SEAL_WHSEC_TEXT_MAX = 6 + 88,
    SEAL_WEBHOOK_ID_MAX = 256,
    SEAL_WEBHOOK_SIGNATURES_MAX = 8, /* entries of the header that are looked at */
    SEAL_WEBHOOK_TOLERANCE_S = 300,
    SEAL_WEBHOOK_ENTRY_MAX = 4 + 88, /* "v1a," and base64 */
};

/* A secret in its text form, checked; *n bytes into secret. False: not one, or too short or
 * long. */
bool seal_whsec_read(struct seal_text text, unsigned char secret[SEAL_WHSEC_MAX], size_t *n)
    __attribute__((warn_unused_result));
void seal_whsec_new(char text[SEAL_WHSEC_TEXT_MAX + 1]); /* 32 random bytes */
void seal_whpk_write(const unsigned char key[SEAL_KEY_BYTES], char text[5 + 44 + 1]);

/* What is signed. */
struct seal_attempt {
    struct seal_text id; /* 1 to SEAL_WEBHOOK_ID_MAX visible characters, no '.' */
    int64_t timestamp_s; /* of this try, above 0 */
    struct seal_text body;
};

/* Entries of webhook-signature, each NUL-terminated. False: memory is short, the key is not there
 * (or n is 0), or id or time cannot be signed. */
bool seal_webhook_v1(const struct seal_attempt *a, const unsigned char *secret, size_t n,
                     char entry[SEAL_WEBHOOK_ENTRY_MAX + 1]) __attribute__((warn_unused_result));
bool seal_webhook_v1a(const struct seal_attempt *a, const struct seal_keys *keys,
                      const struct seal_key *transport, char entry[SEAL_WEBHOOK_ENTRY_MAX + 1])
    __attribute__((warn_unused_result));

/* What came: the headers as they are. */
struct seal_delivery {
    struct seal_text id, timestamp, signature, body;
};

struct seal_webhook_keys {
    const unsigned char *secret; /* NULL, or below SEAL_WHSEC_MIN bytes: `v1` is not accepted */
    size_t secret_bytes;
    const unsigned char (*public_keys)[SEAL_KEY_BYTES]; /* none: `v1a` is not */
    unsigned public_count;
};

enum seal_webhook {
    SEAL_WEBHOOK_OK,
    SEAL_WEBHOOK_MISSING,   /* a header is missing or malformed */
    SEAL_WEBHOOK_TIMESTAMP, /* too old or too new: no signature was looked at */
    SEAL_WEBHOOK_SIGNATURE, /* no entry verifies */
    SEAL_WEBHOOK_NO_MEMORY,
};

/* Verifies over the very bytes of the timestamp that came; *timestamp_s is its value. Strict:
 * ^[1-9][0-9]{0,11}$, id of 1 to 256 visible characters without '.'. Entries of unknown versions
 * are passed over, so are those beyond SEAL_WEBHOOK_SIGNATURES_MAX. Compares in constant time. */
enum seal_webhook seal_webhook_verify(const struct seal_delivery *d,
                                      const struct seal_webhook_keys *keys, int64_t now_s,
                                      int64_t *timestamp_s) __attribute__((warn_unused_result));

#endif
