/* What is signed, byte by byte; numbers little-endian:
 *
 *     "hanji/card/1" NUL
 *     horizon: 8   made: 8
 *     then of identities (the current one and those before), transport and sealing keys, in the
 *     order of the card:
 *     how many: 4, and for each: key: 32   from: 8   until: 8
 *     the signatures of the identities before, 64 each */
#include "seal/card.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "seal/base64.h"
#include "seal/json.h"
#include "seal/key_file.h"

_Static_assert((int)SEAL_CARD_KEYS_MAX == (int)SEAL_PREVIOUS_MAX + 1, "the chain fits");

enum {
    KEY_BYTES = SEAL_KEY_BYTES + 8 + 8,
    SIGNED_MAX = 13 + 8 + 8 +
                 3 * (4 + SEAL_CARD_KEYS_MAX * KEY_BYTES) +
                 SEAL_PREVIOUS_MAX * SEAL_SIGNATURE_BYTES,
};

/* A card with the signatures that are not looked at once it is believed. */
struct whole {
    struct seal_card *card;
    unsigned previous;
    unsigned char link[SEAL_PREVIOUS_MAX][SEAL_SIGNATURE_BYTES];
    unsigned char signature[SEAL_SIGNATURE_BYTES];
    const char *why; /* it is refused */
};

void seal_fingerprint(const unsigned char identity[SEAL_KEY_BYTES],
                      char text[SEAL_FINGERPRINT_LEN + 1])
{
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    static const char domain[] = "hanji/fingerprint/1";
    unsigned char all[sizeof domain + SEAL_KEY_BYTES], digest[crypto_generichash_BYTES];
    memcpy(all, domain, sizeof domain);
    memcpy(all + sizeof domain, identity, SEAL_KEY_BYTES);
    crypto_generichash(digest, sizeof digest, all, sizeof all, NULL, 0);
    for (unsigned i = 0; i < 32; i++) {
        unsigned bit = i * 5, two = (unsigned)digest[bit / 8] << 8 | digest[bit / 8 + 1];
        if (i > 0 && i % 4 == 0)
            *text++ = ' ';
        *text++ = digits[two >> (11 - bit % 8) & 31];
    }
    *text = 0;
}

/* ---- what is signed ------------------------------------------------------------------------- */

static unsigned char *put_le(unsigned char *to, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        *to++ = (unsigned char)(v >> 8 * i);
    return to;
}

static unsigned char *put_keys(unsigned char *to, const struct seal_card_key *key, unsigned n)
{
    to = put_le(to, n, 4);
    for (unsigned i = 0; i < n; i++) {
        memcpy(to, key[i].key, SEAL_KEY_BYTES);
        to = put_le(to + SEAL_KEY_BYTES, (uint64_t)key[i].valid_from, 8);
        to = put_le(to, (uint64_t)key[i].valid_until, 8);
    }
    return to;
}

static size_t canonical(const struct whole *w, unsigned char out[SIGNED_MAX])
{
    static const char domain[] = "hanji/card/1";
    const struct seal_card *c = w->card;
    memcpy(out, domain, sizeof domain);
    unsigned char *to = put_le(out + sizeof domain, (uint64_t)c->horizon_s, 8);
    to = put_le(to, (uint64_t)c->made, 8);
    to = put_keys(to, c->identity, c->identities);
    to = put_keys(to, c->transport, c->transports);
    to = put_keys(to, c->sealing, c->sealings);
    for (unsigned i = 0; i < w->previous; i++, to += SEAL_SIGNATURE_BYTES)
        memcpy(to, w->link[i], SEAL_SIGNATURE_BYTES);
    return (size_t)(to - out);
}

/* ---- writing -------------------------------------------------------------------------------- */

struct text {
    char *p;
    size_t n;
};

static void add(struct text *t, const char *s)
{
    size_t n = strlen(s);
    memcpy(t->p + t->n, s, n + 1);
    t->n += n;
}

static void add_number(struct text *t, const char *name, int64_t v)
{
    char s[48];
    snprintf(s, sizeof s, "%s%lld", name, (long long)v);
    add(t, s);
}

static void add_bytes(struct text *t, const char *name, const unsigned char *p, size_t n)
{
    add(t, name);
    seal_base64_encode(t->p + t->n, p, n);
    t->n += seal_base64_len(n);
    add(t, "\"");
}

/* link: the signature of one that is before, NULL for others. */
static void add_key(struct text *t, const struct seal_card_key *k, const unsigned char *link)
{
    add_bytes(t, "{\"key\":\"", k->key, SEAL_KEY_BYTES);
    add_number(t, ",\"from\":", k->valid_from);
    add_number(t, ",\"until\":", k->valid_until);
    if (link != NULL)
        add_bytes(t, ",\"sig\":\"", link, SEAL_SIGNATURE_BYTES);
    add(t, "}");
}

static void add_keys(struct text *t, const char *name, const struct seal_card_key *k, unsigned n)
{
    add(t, name);
    for (unsigned i = 0; i < n; i++) {
        add(t, i > 0 ? "," : "");
        add_key(t, &k[i], NULL);
    }
    add(t, "]");
}

static size_t put_text(const struct whole *w, char text[SEAL_CARD_MAX])
{
    struct text t = {text, 0};
    const struct seal_card *c = w->card;
    add(&t, "{\"hanji\":\"card/1\",\"identity\":");
    add_key(&t, &c->identity[0], NULL);
    add(&t, ",\"previous\":[");
    for (unsigned i = 0; i < w->previous; i++) {
        add(&t, i > 0 ? "," : "");
        add_key(&t, &c->identity[i + 1], w->link[i]);
    }
    add_keys(&t, "],\"transport\":[", c->transport, c->transports);
    add_keys(&t, ",\"sealing\":[", c->sealing, c->sealings);
    add_number(&t, ",\"horizon\":", c->horizon_s);
    add_number(&t, ",\"made\":", c->made);
    add_bytes(&t, ",\"sig\":\"", w->signature, sizeof w->signature);
    add(&t, "}");
    return t.n;
}

/* Those of a kind that are valid now, newest first. */
static unsigned collect(const struct seal_keys *keys, enum seal_key_kind kind, int64_t now_s,
                        struct seal_card_key out[SEAL_CARD_KEYS_MAX])
{
    unsigned n = 0, all = 0;
    while (seal_keys_at(keys, all) != NULL)
        all++;
    for (unsigned i = all; i > 0 && n < SEAL_CARD_KEYS_MAX; i--) {
        const struct seal_key *k = seal_keys_at(keys, i - 1);
        if (k->kind != kind || !seal_key_valid(k, now_s))
            continue;
        memcpy(out[n].id, k->id, sizeof k->id);
        memcpy(out[n].key, k->key, sizeof k->key);
        out[n].valid_from = k->valid_from;
        out[n++].valid_until = k->valid_until;
    }
    return n;
}

static void name_key(enum seal_key_kind kind, struct seal_card_key *k)
{
    seal_key_id(kind, k->key, k->id);
}

/* The identities: the current one, and the chain behind it. Times of one whose file is still there
 * are those of the file: it may have been retired since. */
static void collect_identities(const struct seal_keys *keys, const struct seal_key *now,
                               struct whole *w)
{
    const struct seal_previous *list;
    struct seal_card *c = w->card;
    w->previous = seal_keys_previous(keys, now, &list);
    c->identities = w->previous + 1;
    memcpy(c->identity[0].key, now->key, SEAL_KEY_BYTES);
    c->identity[0].valid_from = now->valid_from;
    c->identity[0].valid_until = now->valid_until;
    name_key(SEAL_IDENTITY, &c->identity[0]);
    for (unsigned i = 0; i < w->previous; i++) {
        struct seal_card_key *k = &c->identity[i + 1];
        memcpy(k->key, list[i].key, SEAL_KEY_BYTES);
        name_key(SEAL_IDENTITY, k);
        const struct seal_key *there = seal_keys_find(keys, SEAL_IDENTITY, k->id);
        k->valid_from = there != NULL ? there->valid_from : list[i].valid_from;
        k->valid_until = there != NULL ? there->valid_until : list[i].valid_until;
        memcpy(w->link[i], list[i].signature, SEAL_SIGNATURE_BYTES);
    }
}

size_t seal_card_make(const struct seal_keys *keys, int64_t now_s, char text[SEAL_CARD_MAX])
{
    struct seal_card card = {.horizon_s = SEAL_HORIZON_S, .made = now_s};
    struct whole w = {.card = &card};
    unsigned char what[SIGNED_MAX];
    const struct seal_key *identity = seal_keys_current(keys, SEAL_IDENTITY, now_s);
    if (identity == NULL || seal_keys_current(keys, SEAL_TRANSPORT, now_s) == NULL ||
        seal_keys_current(keys, SEAL_SEALING, now_s) == NULL)
        return 0;
    collect_identities(keys, identity, &w);
    card.transports = collect(keys, SEAL_TRANSPORT, now_s, card.transport);
    card.sealings = collect(keys, SEAL_SEALING, now_s, card.sealing);
    if (!seal_keys_sign(keys, identity, what, canonical(&w, what), w.signature))
        return 0;
    return put_text(&w, text);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* One key being read. */
struct reading {
    struct seal_card_key *key;
    unsigned char *link; /* NULL: it has none */
};

static bool take_key_member(void *arg, unsigned i, struct seal_json *j)
{
    struct reading *r = arg;
    switch (i) {
    case 0:
        return seal_json_bytes(j, r->key->key, SEAL_KEY_BYTES);
    case 1:
        return seal_json_number(j, &r->key->valid_from);
    case 2:
        return seal_json_number(j, &r->key->valid_until);
    default:
        return seal_json_bytes(j, r->link, SEAL_SIGNATURE_BYTES);
    }
}

static bool take_key(struct seal_json *j, struct seal_card_key *key, unsigned char *link)
{
    static const char *const plain[] = {"key", "from", "until", NULL};
    static const char *const linked[] = {"key", "from", "until", "sig", NULL};
    struct reading r = {key, link};
    struct seal_json_shape shape = {link != NULL ? linked : plain, 0, take_key_member, &r};
    return seal_json_object(j, &shape, NULL) &&
           (key->valid_until == 0 || key->valid_from <= key->valid_until);
}

static bool take_previous(void *arg, unsigned i, struct seal_json *j)
{
    struct whole *w = arg;
    w->previous = i + 1;
    return take_key(j, &w->card->identity[i + 1], w->link[i]);
}

static bool take_transport(void *arg, unsigned i, struct seal_json *j)
{
    struct whole *w = arg;
    w->card->transports = i + 1;
    return take_key(j, &w->card->transport[i], NULL);
}

static bool take_sealing(void *arg, unsigned i, struct seal_json *j)
{
    struct whole *w = arg;
    w->card->sealings = i + 1;
    return take_key(j, &w->card->sealing[i], NULL);
}

static const char *const members[] = {"hanji",   "identity", "previous", "transport",
                                      "sealing", "horizon",  "made",     "sig",
                                      NULL};

static bool take_version(struct whole *w, struct seal_json *j)
{
    struct seal_text version;
    if (!seal_json_text(j, &version))
        return false;
    if (version.n == 6 && memcmp(version.p, "card/1", 6) == 0)
        return true;
    w->why = "this is a card of another version";
    return false;
}

static bool take_member(void *arg, unsigned i, struct seal_json *j)
{
    struct whole *w = arg;
    switch (i) {
    case 0:
        return take_version(w, j);
    case 1:
        return take_key(j, &w->card->identity[0], NULL);
    case 2:
        return seal_json_array(j, SEAL_PREVIOUS_MAX, take_previous, w);
    case 3:
        return seal_json_array(j, SEAL_CARD_KEYS_MAX, take_transport, w);
    case 4:
        return seal_json_array(j, SEAL_CARD_KEYS_MAX, take_sealing, w);
    case 5:
        return seal_json_number(j, &w->card->horizon_s);
    case 6:
        return seal_json_number(j, &w->card->made);
    default:
        return seal_json_bytes(j, w->signature, sizeof w->signature);
    }
}

/* Names the keys; false when one is not sound, or is there twice. */
static bool judge_keys(enum seal_key_kind kind, struct seal_card_key *k, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (!seal_key_sound(kind, k[i].key))
            return false;
        name_key(kind, &k[i]);
        for (unsigned before = 0; before < i; before++)
            if (memcmp(k[before].key, k[i].key, SEAL_KEY_BYTES) == 0)
                return false;
    }
    return true;
}

static bool signed_by_all(const struct whole *w)
{
    unsigned char what[SIGNED_MAX], text[SEAL_SUCCESSION_BYTES];
    const struct seal_card_key *id = w->card->identity;
    if (crypto_sign_verify_detached(w->signature, what, canonical(w, what), id[0].key) != 0)
        return false;
    for (unsigned i = 0; i < w->previous; i++) {
        seal_key_succession(id[i + 1].key, id[i].key, text);
        if (crypto_sign_verify_detached(w->link[i], text, sizeof text, id[i + 1].key) != 0)
            return false;
    }
    return true;
}

static const char *judge(struct whole *w)
{
    struct seal_card *c = w->card;
    c->identities = w->previous + 1;
    if (c->transports == 0 || c->sealings == 0)
        return "the card has no transport or no sealing key";
    if (!judge_keys(SEAL_IDENTITY, c->identity, c->identities) ||
        !judge_keys(SEAL_TRANSPORT, c->transport, c->transports) ||
        !judge_keys(SEAL_SEALING, c->sealing, c->sealings))
        return "a key of the card is weak, or there twice";
    return signed_by_all(w) ? NULL : "a signature of the card does not verify: it was changed";
}

bool seal_card_read(struct seal_text text, struct seal_card *card, struct seal_error *error)
{
    struct whole w = {.card = card};
    struct seal_json j = {text.p, text.p + text.n};
    struct seal_json_shape shape = {members, 0, take_member, &w};
    memset(card, 0, sizeof *card);
    if (text.n >= SEAL_CARD_MAX)
        w.why = "this is too long for a card";
    else if (text.n == 0 || !seal_json_object(&j, &shape, NULL) || !seal_json_end(&j))
        w.why = w.why != NULL ? w.why : "this is not a card, or a damaged one";
    else
        w.why = judge(&w);
    if (w.why == NULL)
        return true;
    memset(card, 0, sizeof *card);
    return SEAL_FAIL(error, "%s", w.why);
}
