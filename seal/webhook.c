#include "seal/webhook.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "seal/base64.h"

enum {
    ID_MAX = SEAL_WEBHOOK_ID_MAX,
    TIME_MAX = 12,  /* digits */
    VERIFY_MAX = 16, /* Ed25519 signatures that are computed for one delivery */
};

_Static_assert((int)crypto_auth_hmacsha256_BYTES == 32, "v1");
_Static_assert((int)crypto_sign_BYTES == (int)SEAL_SIGNATURE_BYTES, "v1a");

static bool starts(struct seal_text t, const char *with)
{
    size_t n = strlen(with);
    return t.n >= n && memcmp(t.p, with, n) == 0;
}

/* ---- texts of keys -------------------------------------------------------------------------- */

bool seal_whsec_read(struct seal_text text, unsigned char secret[SEAL_WHSEC_MAX], size_t *n)
{
    unsigned char bytes[SEAL_WHSEC_TEXT_MAX];
    bool ok = starts(text, "whsec_") && text.n <= SEAL_WHSEC_TEXT_MAX &&
              seal_base64_decode(text.p + 6, text.n - 6, bytes, n) && *n >= SEAL_WHSEC_MIN &&
              *n <= SEAL_WHSEC_MAX;
    if (ok)
        memcpy(secret, bytes, *n);
    sodium_memzero(bytes, sizeof bytes);
    return ok;
}

void seal_whsec_new(char text[SEAL_WHSEC_TEXT_MAX + 1])
{
    unsigned char secret[32];
    randombytes_buf(secret, sizeof secret);
    memcpy(text, "whsec_", 6);
    seal_base64_encode(text + 6, secret, sizeof secret);
    sodium_memzero(secret, sizeof secret);
}

void seal_whpk_write(const unsigned char key[SEAL_KEY_BYTES], char text[5 + 44 + 1])
{
    memcpy(text, "whpk_", 5);
    seal_base64_encode(text + 5, key, SEAL_KEY_BYTES);
}

/* ---- what is signed ------------------------------------------------------------------------- */

/* The parts before the body, "ID.TIMESTAMP.". */
struct head {
    char text[ID_MAX + 1 + TIME_MAX + 1];
    size_t n;
};

/* The digits of a time that can be signed. False: there are none, or too many. */
static bool head_time(struct head *h, int64_t timestamp_s)
{
    char digits[TIME_MAX];
    size_t n = 0;
    for (; timestamp_s > 0 && n < TIME_MAX; timestamp_s /= 10)
        digits[n++] = (char)('0' + timestamp_s % 10);
    if (n == 0 || timestamp_s > 0)
        return false;
    while (n > 0)
        h->text[h->n++] = digits[--n];
    h->text[h->n++] = '.';
    return true;
}

static bool id_ok(struct seal_text id)
{
    if (id.n == 0 || id.n > ID_MAX)
        return false;
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] <= ' ' || id.p[i] > '~' || id.p[i] == '.')
            return false;
    return true;
}

static bool head_begin(struct head *h, struct seal_text id)
{
    h->n = id.n;
    if (!id_ok(id))
        return false;
    memcpy(h->text, id.p, id.n);
    h->text[h->n++] = '.';
    return true;
}

static void hmac(const struct head *h, struct seal_text body, const unsigned char *secret,
                 size_t n, unsigned char out[32])
{
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, secret, n);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)h->text, h->n);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)body.p, body.n);
    crypto_auth_hmacsha256_final(&state, out);
    sodium_memzero(&state, sizeof state);
}

/* Everything in one piece: Ed25519 of libsodium that comes in pieces is another signature. NULL:
 * memory is short. */
static unsigned char *whole(const struct head *h, struct seal_text body)
{
    unsigned char *p = malloc(h->n + body.n);
    if (p == NULL)
        return NULL;
    memcpy(p, h->text, h->n);
    if (body.n > 0)
        memcpy(p + h->n, body.p, body.n);
    return p;
}

/* ---- signing -------------------------------------------------------------------------------- */

bool seal_webhook_v1(const struct seal_attempt *a, const unsigned char *secret, size_t n,
                     char entry[SEAL_WEBHOOK_ENTRY_MAX + 1])
{
    struct head h;
    unsigned char mac[32];
    if (n == 0 || !head_begin(&h, a->id) || !head_time(&h, a->timestamp_s))
        return false;
    hmac(&h, a->body, secret, n, mac);
    memcpy(entry, "v1,", 3);
    seal_base64_encode(entry + 3, mac, sizeof mac);
    return true;
}

bool seal_webhook_v1a(const struct seal_attempt *a, const struct seal_keys *keys,
                      const struct seal_key *transport, char entry[SEAL_WEBHOOK_ENTRY_MAX + 1])
{
    struct head h;
    unsigned char signature[SEAL_SIGNATURE_BYTES];
    if (!head_begin(&h, a->id) || !head_time(&h, a->timestamp_s))
        return false;
    unsigned char *text = whole(&h, a->body);
    bool ok = text != NULL && seal_keys_sign(keys, transport, text, h.n + a->body.n, signature);
    free(text);
    if (!ok)
        return false;
    memcpy(entry, "v1a,", 4);
    seal_base64_encode(entry + 4, signature, sizeof signature);
    return true;
}

/* ---- verifying ------------------------------------------------------------------------------ */

/* ^[1-9][0-9]{0,11}$ */
static bool read_time(struct seal_text t, int64_t *timestamp_s)
{
    if (t.n == 0 || t.n > TIME_MAX || t.p[0] == '0')
        return false;
    *timestamp_s = 0;
    for (size_t i = 0; i < t.n; i++) {
        if (t.p[i] < '0' || t.p[i] > '9')
            return false;
        *timestamp_s = *timestamp_s * 10 + (t.p[i] - '0');
    }
    return true;
}

/* A delivery that is being verified. */
struct verifying {
    struct head head;
    struct seal_text body;
    const struct seal_webhook_keys *keys;
    unsigned char mac[32];  /* as it should be, where there is a secret */
    unsigned char *text;    /* head and body, where there are public keys */
    unsigned verified;      /* Ed25519 signatures so far */
};

/* The bytes of a signature of exactly that length. */
static bool read_signature(struct seal_text base64, unsigned char *out, size_t bytes)
{
    unsigned char room[SEAL_SIGNATURE_BYTES + 3];
    size_t n;
    if (base64.n != seal_base64_len(bytes) || !seal_base64_decode(base64.p, base64.n, room, &n) ||
        n != bytes)
        return false;
    memcpy(out, room, bytes);
    return true;
}

/* A secret that is shorter than any may be is none: whoever guesses it is not believed. */
static bool has_secret(const struct seal_webhook_keys *keys)
{
    return keys->secret != NULL && keys->secret_bytes >= SEAL_WHSEC_MIN;
}

static bool by_secret(const struct verifying *v, struct seal_text base64)
{
    unsigned char mac[32];
    return has_secret(v->keys) && read_signature(base64, mac, sizeof mac) &&
           crypto_verify_32(mac, v->mac) == 0;
}

static bool by_public_key(struct verifying *v, struct seal_text base64)
{
    unsigned char signature[SEAL_SIGNATURE_BYTES];
    if (v->text == NULL || !read_signature(base64, signature, sizeof signature))
        return false;
    for (unsigned i = 0; i < v->keys->public_count && v->verified < VERIFY_MAX; i++, v->verified++)
        if (crypto_sign_verify_detached(signature, v->text, v->head.n + v->body.n,
                                        v->keys->public_keys[i]) == 0)
            return true;
    return false;
}

/* One entry of the header. Its version only says where to look: each kind of key has one way. */
static bool entry_verifies(struct verifying *v, struct seal_text entry)
{
    if (starts(entry, "v1,"))
        return by_secret(v, (struct seal_text){entry.p + 3, entry.n - 3});
    if (starts(entry, "v1a,"))
        return by_public_key(v, (struct seal_text){entry.p + 4, entry.n - 4});
    return false;
}

static bool some_entry_verifies(struct verifying *v, struct seal_text list)
{
    unsigned count = 0;
    while (list.n > 0 && count < SEAL_WEBHOOK_SIGNATURES_MAX) {
        const char *space = memchr(list.p, ' ', list.n);
        size_t n = space != NULL ? (size_t)(space - list.p) : list.n;
        if (n > 0) {
            count++;
            if (entry_verifies(v, (struct seal_text){list.p, n}))
                return true;
        }
        size_t used = space != NULL ? n + 1 : n;
        list.p += used;
        list.n -= used;
    }
    return false;
}

enum seal_webhook seal_webhook_verify(const struct seal_delivery *d,
                                      const struct seal_webhook_keys *keys, int64_t now_s,
                                      int64_t *timestamp_s)
{
    struct verifying v = {.body = d->body, .keys = keys};
    if (!head_begin(&v.head, d->id) || !read_time(d->timestamp, timestamp_s) ||
        d->signature.n == 0)
        return SEAL_WEBHOOK_MISSING;
    if (*timestamp_s < now_s - SEAL_WEBHOOK_TOLERANCE_S ||
        *timestamp_s > now_s + SEAL_WEBHOOK_TOLERANCE_S)
        return SEAL_WEBHOOK_TIMESTAMP;
    memcpy(v.head.text + v.head.n, d->timestamp.p, d->timestamp.n);
    v.head.n += d->timestamp.n;
    v.head.text[v.head.n++] = '.';
    if (has_secret(keys))
        hmac(&v.head, d->body, keys->secret, keys->secret_bytes, v.mac);
    if (keys->public_count > 0) {
        v.text = whole(&v.head, d->body);
        if (v.text == NULL)
            return SEAL_WEBHOOK_NO_MEMORY;
    }
    bool ok = some_entry_verifies(&v, d->signature);
    free(v.text);
    sodium_memzero(v.mac, sizeof v.mac);
    return ok ? SEAL_WEBHOOK_OK : SEAL_WEBHOOK_SIGNATURE;
}
