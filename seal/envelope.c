#include "seal/envelope.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "seal/envelope_internal.h"

#define HEADER_DOMAIN "hanji/envelope/header/1"
#define COMMIT_DOMAIN "hanji/envelope/commit/1"
#define SIGN_DOMAIN "hanji/envelope/sign/1"
#define PLACE_DOMAIN "hanji/envelope/place/1"
#define SKIP_DOMAIN "hanji/envelope/skip/1"
#define MESSAGE_DOMAIN "hanji/message/1"

static const unsigned char magic[8] = "hanji/1";
/* Of XChaCha20-Poly1305: a content key is used once. */
static const unsigned char nonce[crypto_aead_xchacha20poly1305_ietf_NPUBBYTES];

enum {
    CLASS_MIN = 128,    /* the smallest size of a padded text */
    CLASS_STEP = 4096,  /* up to here powers of two, from here multiples */
    SIGNED_MAX = 32 + 4 * SEAL_HASH_BYTES,
    PLACE_MAX = 32 + 4 + SEAL_MESSAGE_ID_LEN + 4 + SEAL_LINE_MAX + 1 + 8 + 2 * SEAL_HASH_BYTES,
};

_Static_assert((int)SEAL_STANZA_BYTES == SEAL_BOXED_BYTES + (int)crypto_box_SEALBYTES, "boxes");
_Static_assert((int)SEAL_TAG_BYTES == (int)crypto_aead_xchacha20poly1305_ietf_ABYTES, "tag");
_Static_assert((int)SEAL_CONTENT_KEY_BYTES == (int)crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
               "content key");

/* ---- hashes --------------------------------------------------------------------------------- */

static void add(crypto_generichash_state *h, const void *p, size_t n)
{
    crypto_generichash_update(h, p, n);
}

/* A text with its length before it, so that no two lists of texts are the same bytes. */
static void add_text(crypto_generichash_state *h, struct seal_text t)
{
    unsigned char len[4];
    for (int i = 0; i < 4; i++)
        len[i] = (unsigned char)(t.n >> 8 * i);
    add(h, len, sizeof len);
    if (t.n > 0)
        add(h, t.p, t.n);
}

static void number_bytes(uint64_t v, unsigned char out[8])
{
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)(v >> 8 * i);
}

static void begin(crypto_generichash_state *h, const char *domain)
{
    crypto_generichash_init(h, NULL, 0, SEAL_HASH_BYTES);
    add_text(h, (struct seal_text){domain, strlen(domain)});
}

static void end(crypto_generichash_state *h, unsigned char hash[SEAL_HASH_BYTES])
{
    crypto_generichash_final(h, hash, SEAL_HASH_BYTES);
}

/* What the header says: everything that is not ciphertext or made from it. */
struct header {
    struct seal_text id, line, type;
    int64_t created;
    const unsigned char *from;
    const struct seal_stanza *stanza; /* their ids */
    unsigned count;
};

static void hash_header(const struct header *of, unsigned char hash[SEAL_HASH_BYTES])
{
    static const char alg[] = SEAL_ENVELOPE_ALG;
    crypto_generichash_state h;
    unsigned char number[8];
    begin(&h, HEADER_DOMAIN);
    add_text(&h, (struct seal_text){alg, sizeof alg - 1});
    add_text(&h, of->id);
    add_text(&h, of->line);
    add_text(&h, of->type);
    number_bytes((uint64_t)of->created, number);
    add(&h, number, sizeof number);
    add(&h, of->from, SEAL_KEY_ID_BYTES);
    number_bytes(of->count, number);
    add(&h, number, sizeof number);
    for (unsigned i = 0; i < of->count; i++)
        add(&h, of->stanza[i].id, SEAL_KEY_ID_BYTES);
    end(&h, hash);
}

/* Binds the content key, so that one envelope opens to one text whoever opens it. */
static void commit(const unsigned char key[SEAL_CONTENT_KEY_BYTES],
                   const unsigned char header[SEAL_HASH_BYTES],
                   unsigned char commitment[SEAL_HASH_BYTES])
{
    crypto_generichash_state h;
    crypto_generichash_init(&h, key, SEAL_CONTENT_KEY_BYTES, SEAL_HASH_BYTES);
    add(&h, COMMIT_DOMAIN, sizeof COMMIT_DOMAIN - 1);
    add(&h, header, SEAL_HASH_BYTES);
    end(&h, commitment);
    sodium_memzero(&h, sizeof h);
}

/* The text that sig signs; its hash is the message's. */
struct signed_text {
    unsigned char p[SIGNED_MAX];
    size_t n;
};

static void put(struct signed_text *t, const void *p, size_t n)
{
    memcpy(t->p + t->n, p, n);
    t->n += n;
}

static void sign_text(struct signed_text *t, const unsigned char header[SEAL_HASH_BYTES],
                      const unsigned char commitment[SEAL_HASH_BYTES],
                      const struct seal_stanza *stanza, unsigned count, struct seal_text ct)
{
    unsigned char hash[SEAL_HASH_BYTES];
    crypto_generichash_state h;
    t->n = 0;
    put(t, SIGN_DOMAIN, sizeof SIGN_DOMAIN - 1);
    put(t, header, SEAL_HASH_BYTES);
    put(t, commitment, SEAL_HASH_BYTES);
    crypto_generichash_init(&h, NULL, 0, SEAL_HASH_BYTES);
    for (unsigned i = 0; i < count; i++)
        add(&h, stanza[i].box, SEAL_STANZA_BYTES);
    end(&h, hash);
    put(t, hash, sizeof hash);
    crypto_generichash(hash, sizeof hash, (const unsigned char *)ct.p, ct.n, NULL, 0);
    put(t, hash, sizeof hash);
}

static void hash_signed(const struct signed_text *t, unsigned char hash[SEAL_HASH_BYTES])
{
    crypto_generichash_state h;
    begin(&h, MESSAGE_DOMAIN);
    add_text(&h, (struct seal_text){(const char *)t->p, t->n});
    end(&h, hash);
}

void seal_message_hash(struct seal_text id, struct seal_text type, struct seal_text body,
                       unsigned char hash[SEAL_HASH_BYTES])
{
    crypto_generichash_state h;
    begin(&h, MESSAGE_DOMAIN);
    add_text(&h, id);
    add_text(&h, type);
    add_text(&h, body);
    end(&h, hash);
}

/* ---- sealing -------------------------------------------------------------------------------- */

size_t seal_padded_bytes(size_t body_bytes)
{
    size_t n = SEAL_HEAD_BYTES + body_bytes + 1, class_ = CLASS_MIN;
    while (class_ < n && class_ < CLASS_STEP)
        class_ *= 2;
    return n <= class_ ? class_ : (n + CLASS_STEP - 1) / CLASS_STEP * CLASS_STEP;
}

/* The text that is encrypted: magic, the header's hash, the body, 0x80 and noughts (ISO/IEC
 * 7816-4). With room for the tag; NULL: memory is short. */
static unsigned char *plaintext(struct seal_text body, const unsigned char *header, size_t *n)
{
    *n = seal_padded_bytes(body.n);
    unsigned char *p = malloc(*n + SEAL_TAG_BYTES);
    if (p == NULL)
        return NULL;
    memcpy(p, magic, sizeof magic);
    memcpy(p + sizeof magic, header, SEAL_HASH_BYTES);
    if (body.n > 0)
        memcpy(p + SEAL_HEAD_BYTES, body.p, body.n);
    p[SEAL_HEAD_BYTES + body.n] = 0x80;
    memset(p + SEAL_HEAD_BYTES + body.n + 1, 0, *n - SEAL_HEAD_BYTES - body.n - 1);
    return p;
}

/* Boxes the content key for everybody. False: a key is of low order. */
static bool box_all(struct seal_draft *d, const unsigned char key[SEAL_CONTENT_KEY_BYTES],
                    const unsigned char header[SEAL_HASH_BYTES])
{
    unsigned char boxed[SEAL_BOXED_BYTES];
    bool ok = true;
    memcpy(boxed, key, SEAL_CONTENT_KEY_BYTES);
    memcpy(boxed + SEAL_CONTENT_KEY_BYTES, header, SEAL_HASH_BYTES);
    for (unsigned i = 0; i < d->letter->to_count && ok; i++)
        ok = crypto_box_seal(d->stanza[i].box, boxed, sizeof boxed, d->letter->to[i].key) == 0;
    sodium_memzero(boxed, sizeof boxed);
    return ok;
}

/* Seals the letter into the draft; ct is to be freed, also on failure. */
static enum seal_envelope seal_draft(struct seal_draft *d, const unsigned char *header,
                                     unsigned char **ct)
{
    unsigned char key[SEAL_CONTENT_KEY_BYTES];
    unsigned long long n;
    size_t padded;
    *ct = plaintext(d->letter->body, header, &padded);
    if (*ct == NULL)
        return SEAL_ENVELOPE_NO_MEMORY;
    randombytes_buf(key, sizeof key);
    crypto_aead_xchacha20poly1305_ietf_encrypt(*ct, &n, *ct, padded, header, SEAL_HASH_BYTES,
                                               NULL, nonce, key);
    commit(key, header, d->commitment);
    bool ok = box_all(d, key, header);
    sodium_memzero(key, sizeof key);
    d->ct = *ct;
    d->ct_bytes = (size_t)n;
    return ok ? SEAL_ENVELOPE_OK : SEAL_ENVELOPE_MALFORMED;
}

enum seal_envelope seal_envelope_make(const struct seal_keys *keys, const struct seal_letter *l,
                                      char *out, size_t *n, unsigned char hash[SEAL_HASH_BYTES])
{
    struct seal_draft d = {.letter = l};
    struct signed_text text;
    unsigned char header[SEAL_HASH_BYTES], *ct;
    const struct seal_key *identity = seal_keys_current(keys, SEAL_IDENTITY, l->created);
    if (!seal_letter_ok(l))
        return SEAL_ENVELOPE_MALFORMED;
    if (identity == NULL)
        return SEAL_ENVELOPE_SENDER;
    memcpy(d.from, identity->id, SEAL_KEY_ID_BYTES);
    for (unsigned i = 0; i < l->to_count; i++)
        memcpy(d.stanza[i].id, l->to[i].id, SEAL_KEY_ID_BYTES);
    hash_header(&(struct header){l->id, l->line, l->type, l->created, d.from, d.stanza,
                                 l->to_count}, header);
    enum seal_envelope result = seal_draft(&d, header, &ct);
    if (result == SEAL_ENVELOPE_OK) {
        sign_text(&text, header, d.commitment, d.stanza, l->to_count,
                  (struct seal_text){(const char *)d.ct, d.ct_bytes});
        hash_signed(&text, hash);
        if (!seal_keys_sign(keys, identity, text.p, text.n, d.signature))
            result = SEAL_ENVELOPE_SENDER;
        else
            *n = seal_envelope_write(&d, out);
    }
    free(ct);
    return result;
}

/* ---- places --------------------------------------------------------------------------------- */

/* What a proof signs. id: of a tombstone. */
static size_t place_text(const struct seal_place *p, const struct seal_text *id,
                         unsigned char out[PLACE_MAX])
{
    const char *domain = id != NULL ? SKIP_DOMAIN : PLACE_DOMAIN;
    size_t n = strlen(domain);
    memcpy(out, domain, n);
    if (id != NULL) {
        out[n++] = (unsigned char)id->n;
        memcpy(out + n, id->p, id->n);
        n += id->n;
    }
    out[n++] = (unsigned char)p->line.n;
    memcpy(out + n, p->line.p, p->line.n);
    n += p->line.n;
    out[n++] = p->fifo;
    number_bytes(p->seq, out + n);
    memcpy(out + n + 8, p->prev, SEAL_HASH_BYTES);
    memcpy(out + n + 8 + SEAL_HASH_BYTES, p->hash, SEAL_HASH_BYTES);
    return n + 8 + 2 * SEAL_HASH_BYTES;
}

bool seal_place_sign(const struct seal_keys *keys, const struct seal_key *identity,
                     const struct seal_place *p, unsigned char proof[SEAL_SIGNATURE_BYTES])
{
    unsigned char text[PLACE_MAX];
    return seal_place_ok(p) &&
           seal_keys_sign(keys, identity, text, place_text(p, NULL, text), proof);
}

size_t seal_tombstone_make(const struct seal_keys *keys, const struct seal_key *identity,
                           struct seal_text id, const struct seal_place *p, char *out)
{
    unsigned char text[PLACE_MAX], proof[SEAL_SIGNATURE_BYTES];
    if (!seal_message_id_ok(id) || !seal_place_ok(p) ||
        !seal_keys_sign(keys, identity, text, place_text(p, &id, text), proof))
        return 0;
    return seal_tombstone_write(id, identity->id, p, proof, out);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Everything that is needed on the way. */
struct opening {
    const struct seal_keys *keys;
    struct seal_parsed parsed;
    unsigned char header[SEAL_HASH_BYTES];
};

static bool signed_by(const unsigned char signature[SEAL_SIGNATURE_BYTES], const void *p, size_t n,
                      const unsigned char key[SEAL_KEY_BYTES])
{
    return crypto_sign_verify_detached(signature, p, n, key) == 0;
}

/* Both signatures, before anything is opened. */
static bool verify(struct opening *o, const unsigned char key[SEAL_KEY_BYTES])
{
    struct seal_parsed *p = &o->parsed;
    struct signed_text text;
    unsigned char place[PLACE_MAX];
    if (p->skip)
        return signed_by(p->proof, place, place_text(&p->place, &p->id, place), key);
    hash_header(&(struct header){p->id, p->line, {p->type, p->type_bytes}, p->created, p->from,
                                 p->stanza, p->count}, o->header);
    sign_text(&text, o->header, p->commitment, p->stanza, p->count,
              (struct seal_text){(const char *)p->ct, p->ct_bytes});
    hash_signed(&text, p->place.hash);
    return signed_by(p->signature, text.p, text.n, key) &&
           signed_by(p->proof, place, place_text(&p->place, NULL, place), key);
}

/* The content key out of the first box that is for a key of ours. */
static enum seal_envelope open_box(const struct opening *o, unsigned char boxed[SEAL_BOXED_BYTES])
{
    const struct seal_parsed *p = &o->parsed;
    const struct seal_key *key = NULL;
    unsigned i = 0;
    for (; i < p->count && key == NULL; i++)
        key = seal_keys_find(o->keys, SEAL_SEALING, p->stanza[i].id);
    if (key == NULL)
        return SEAL_ENVELOPE_RECIPIENT;
    return seal_keys_open(o->keys, key, p->stanza[i - 1].box, SEAL_STANZA_BYTES, boxed)
               ? SEAL_ENVELOPE_OK
               : SEAL_ENVELOPE_UNOPENABLE;
}

/* The end of the body in a padded text. 0: it is not padded as it must be. */
static size_t unpad(const unsigned char *p, size_t n)
{
    size_t end = n;
    while (end > SEAL_HEAD_BYTES && p[end - 1] == 0)
        end--;
    if (end <= SEAL_HEAD_BYTES || p[end - 1] != 0x80)
        return 0;
    return seal_padded_bytes(end - 1 - SEAL_HEAD_BYTES) == n ? end - 1 : 0;
}

/* Decrypts in place and compares what is inside with what is outside. */
static enum seal_envelope open_text(struct opening *o, const unsigned char boxed[SEAL_BOXED_BYTES],
                                    struct seal_text *body)
{
    struct seal_parsed *p = &o->parsed;
    unsigned char commitment[SEAL_HASH_BYTES];
    unsigned long long n = 0;
    commit(boxed, o->header, commitment);
    if (sodium_memcmp(boxed + SEAL_CONTENT_KEY_BYTES, o->header, SEAL_HASH_BYTES) != 0 ||
        sodium_memcmp(commitment, p->commitment, SEAL_HASH_BYTES) != 0 ||
        crypto_aead_xchacha20poly1305_ietf_decrypt(p->ct, &n, NULL, p->ct, p->ct_bytes, o->header,
                                                   SEAL_HASH_BYTES, nonce, boxed) != 0)
        return SEAL_ENVELOPE_UNOPENABLE;
    size_t end = unpad(p->ct, (size_t)n);
    if (end == 0 || memcmp(p->ct, magic, sizeof magic) != 0 ||
        sodium_memcmp(p->ct + sizeof magic, o->header, SEAL_HASH_BYTES) != 0)
        return SEAL_ENVELOPE_UNOPENABLE;
    *body = (struct seal_text){(const char *)p->ct + SEAL_HEAD_BYTES, end - SEAL_HEAD_BYTES};
    return SEAL_ENVELOPE_OK;
}

static enum seal_envelope open_parsed(struct opening *o, seal_trust_fn *trust, void *arg,
                                      struct seal_text *body)
{
    unsigned char key[SEAL_KEY_BYTES], boxed[SEAL_BOXED_BYTES];
    if (!trust(arg, o->parsed.from, key))
        return SEAL_ENVELOPE_SENDER;
    if (!verify(o, key))
        return SEAL_ENVELOPE_SIGNATURE;
    if (o->parsed.skip)
        return SEAL_ENVELOPE_OK;
    enum seal_envelope result = open_box(o, boxed);
    if (result == SEAL_ENVELOPE_OK)
        result = open_text(o, boxed, body);
    sodium_memzero(boxed, sizeof boxed);
    return result;
}

enum seal_envelope seal_envelope_open(const struct seal_keys *keys, struct seal_text json,
                                      seal_trust_fn *trust, void *arg, struct seal_opened *opened)
{
    struct opening o = {.keys = keys};
    struct seal_text body = {NULL, 0};
    const struct seal_parsed *p = &o.parsed;
    *opened = (struct seal_opened){0};
    enum seal_envelope result = seal_envelope_parse(json, &o.parsed);
    if (result == SEAL_ENVELOPE_OK)
        result = open_parsed(&o, trust, arg, &body);
    if (result != SEAL_ENVELOPE_OK) {
        if (p->ct_bytes > 0)
            sodium_memzero(p->ct, p->ct_bytes);
        free(p->memory);
        return result;
    }
    opened->id = p->id;
    opened->type = (struct seal_text){p->type, p->type_bytes};
    opened->place = p->place;
    opened->created = p->created;
    opened->skipped = p->skip;
    opened->body = body;
    opened->memory = p->memory;
    memcpy(opened->from, p->from, SEAL_KEY_ID_BYTES);
    return SEAL_ENVELOPE_OK;
}

void seal_opened_free(struct seal_opened *opened)
{
    if (opened->body.n > 0)
        sodium_memzero((void *)(uintptr_t)opened->body.p, opened->body.n);
    free(opened->memory);
    *opened = (struct seal_opened){0};
}
