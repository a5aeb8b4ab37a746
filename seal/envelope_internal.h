/* Private to seal/: what envelopes are made of, between their JSON and their cryptography. */
#ifndef HANJI_SEAL_ENVELOPE_INTERNAL_H
#define HANJI_SEAL_ENVELOPE_INTERNAL_H

#include "seal/envelope.h"

enum {
    SEAL_CONTENT_KEY_BYTES = 32,
    SEAL_BOXED_BYTES = SEAL_CONTENT_KEY_BYTES + SEAL_HASH_BYTES, /* in the box of a recipient */
    SEAL_STANZA_BYTES = SEAL_BOXED_BYTES + 48,                   /* crypto_box_SEALBYTES */
    SEAL_TAG_BYTES = 16,
    SEAL_HEAD_BYTES = 8 + SEAL_HASH_BYTES, /* before the body: magic, the header's hash */
};

struct seal_stanza {
    unsigned char id[SEAL_KEY_ID_BYTES];
    unsigned char box[SEAL_STANZA_BYTES];
};

/* An envelope taken apart: texts point into the JSON, memory is one piece from malloc. */
struct seal_parsed {
    bool skip; /* a tombstone: type, created, stanzas, kc, ct and sig are not there */
    struct seal_text id, line;
    char *type; /* without its escapes */
    size_t type_bytes;
    int64_t created;
    unsigned char from[SEAL_KEY_ID_BYTES];
    struct seal_stanza *stanza;
    unsigned count;
    unsigned char commitment[SEAL_HASH_BYTES];
    unsigned char *ct;
    size_t ct_bytes;
    unsigned char signature[SEAL_SIGNATURE_BYTES];
    struct seal_place place; /* its hash only of a tombstone */
    unsigned char proof[SEAL_SIGNATURE_BYTES];
    void *memory;
};

/* Reads one: exactly the bytes that writing it would give, else MALFORMED. NO_MEMORY, OK. The
 * caller frees p->memory in any case. */
enum seal_envelope seal_envelope_parse(struct seal_text json, struct seal_parsed *p)
    __attribute__((warn_unused_result));

/* What stands in an envelope before it has a place; ct has room for its bytes. */
struct seal_draft {
    const struct seal_letter *letter;
    unsigned char from[SEAL_KEY_ID_BYTES];
    struct seal_stanza stanza[SEAL_RECIPIENTS_MAX];
    unsigned char commitment[SEAL_HASH_BYTES];
    const unsigned char *ct;
    size_t ct_bytes;
    unsigned char signature[SEAL_SIGNATURE_BYTES];
};

/* Writes it, NUL-terminated; its length. */
size_t seal_envelope_write(const struct seal_draft *d, char *out);

/* Writes a tombstone, NUL-terminated; its length. */
size_t seal_tombstone_write(struct seal_text id, const unsigned char from[SEAL_KEY_ID_BYTES],
                            const struct seal_place *p,
                            const unsigned char proof[SEAL_SIGNATURE_BYTES], char *out);

/* True for what an envelope can have: only that is signed. */
bool seal_letter_ok(const struct seal_letter *l);
bool seal_message_id_ok(struct seal_text id);
bool seal_place_ok(const struct seal_place *p);

/* Bytes of a body once it is padded and sealed: a class of sizes. */
size_t seal_padded_bytes(size_t body_bytes);

#endif
