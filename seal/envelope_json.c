/* The JSON of envelopes: one spelling, so that reading is comparing. Members have one order, there
 * is no white space, numbers have no sign and no leading nought, base64 has its padding and nothing
 * behind it, a text escapes '"' and '\' only. */
#include <stdlib.h>
#include <string.h>

#include "seal/base64.h"
#include "seal/envelope_internal.h"

enum { NUMBER_MAX = 19 }; /* digits */

/* ---- texts ---------------------------------------------------------------------------------- */

static bool all_in(struct seal_text t, const char *more)
{
    for (size_t i = 0; i < t.n; i++) {
        char c = t.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c != 0 && strchr(more, c))))
            return false;
    }
    return true;
}

bool seal_message_id_ok(struct seal_text id)
{
    return id.n == SEAL_MESSAGE_ID_LEN && memcmp(id.p, "msg_", 4) == 0 &&
           all_in((struct seal_text){id.p + 4, id.n - 4}, "");
}

static bool line_ok(struct seal_text line)
{
    return line.n >= 1 && line.n <= SEAL_LINE_MAX && strchr("._-", line.p[0]) == NULL &&
           all_in(line, "._-");
}

bool seal_place_ok(const struct seal_place *p)
{
    return line_ok(p->line) && p->seq >= 1 && p->seq <= INT64_MAX;
}

/* A media type is visible ASCII and spaces. */
static bool type_ok(struct seal_text type)
{
    if (type.n == 0 || type.n > SEAL_TYPE_MAX)
        return false;
    for (size_t i = 0; i < type.n; i++)
        if (type.p[i] < ' ' || type.p[i] > '~')
            return false;
    return true;
}

bool seal_letter_ok(const struct seal_letter *l)
{
    return seal_message_id_ok(l->id) && line_ok(l->line) && type_ok(l->type) && l->created > 0 &&
           l->to_count >= 1 && l->to_count <= SEAL_RECIPIENTS_MAX;
}

/* ---- writing -------------------------------------------------------------------------------- */

static char *put(char *at, const char *text)
{
    size_t n = strlen(text);
    memcpy(at, text, n);
    return at + n;
}

static char *put_bytes(char *at, struct seal_text t)
{
    memcpy(at, t.p, t.n);
    return at + t.n;
}

static char *put_text(char *at, struct seal_text t)
{
    for (size_t i = 0; i < t.n; i++) {
        if (t.p[i] == '"' || t.p[i] == '\\')
            *at++ = '\\';
        *at++ = t.p[i];
    }
    return at;
}

static char *put_number(char *at, uint64_t v)
{
    char digits[20];
    size_t n = 0;
    do
        digits[n++] = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    while (n > 0)
        *at++ = digits[--n];
    return at;
}

static char *put_base64(char *at, const void *p, size_t n)
{
    seal_base64_encode(at, p, n);
    return at + seal_base64_len(n);
}

static char *put_id(char *at, const unsigned char id[SEAL_KEY_ID_BYTES])
{
    seal_key_hex(id, at);
    return at + SEAL_KEY_ID_HEX;
}

size_t seal_envelope_bytes(const struct seal_letter *l)
{
    size_t fixed = sizeof "{\"v\":1,\"alg\":\"" SEAL_ENVELOPE_ALG "\",\"id\":\"\",\"line\":\"\","
                          "\"type\":\"\",\"created\":,\"from\":\"\",\"to\":[],\"kc\":\"\","
                          "\"ct\":\"\",\"sig\":\"\"}";
    size_t stanza = sizeof "{\"key\":\"\",\"box\":\"\"}," + SEAL_KEY_ID_HEX +
                    seal_base64_len(SEAL_STANZA_BYTES);
    return fixed + l->id.n + l->line.n + 2 * l->type.n + NUMBER_MAX + SEAL_KEY_ID_HEX +
           l->to_count * stanza + seal_base64_len(SEAL_HASH_BYTES) +
           seal_base64_len(seal_padded_bytes(l->body.n) + SEAL_TAG_BYTES) +
           seal_base64_len(SEAL_SIGNATURE_BYTES);
}

size_t seal_envelope_write(const struct seal_draft *d, char *out)
{
    const struct seal_letter *l = d->letter;
    char *at = put(out, "{\"v\":1,\"alg\":\"" SEAL_ENVELOPE_ALG "\",\"id\":\"");
    at = put(put_bytes(at, l->id), "\",\"line\":\"");
    at = put(put_bytes(at, l->line), "\",\"type\":\"");
    at = put(put_text(at, l->type), "\",\"created\":");
    at = put(put_number(at, (uint64_t)l->created), ",\"from\":\"");
    at = put(put_id(at, d->from), "\",\"to\":[");
    for (unsigned i = 0; i < l->to_count; i++) {
        at = put(put_id(put(at, i == 0 ? "{\"key\":\"" : ",{\"key\":\""), d->stanza[i].id),
                 "\",\"box\":\"");
        at = put(put_base64(at, d->stanza[i].box, SEAL_STANZA_BYTES), "\"}");
    }
    at = put_base64(put(at, "],\"kc\":\""), d->commitment, SEAL_HASH_BYTES);
    at = put_base64(put(at, "\",\"ct\":\""), d->ct, d->ct_bytes);
    at = put_base64(put(at, "\",\"sig\":\""), d->signature, SEAL_SIGNATURE_BYTES);
    at = put(at, "\"}");
    *at = 0;
    return (size_t)(at - out);
}

/* "ord" to "prev", and the rest by the caller. */
static char *put_place(char *at, const struct seal_place *p)
{
    at = put_number(put(at, p->fifo ? ",\"ord\":\"fifo\",\"seq\":" : ",\"ord\":\"any\",\"seq\":"),
                    p->seq);
    return put_base64(put(at, ",\"prev\":\""), p->prev, SEAL_HASH_BYTES);
}

static char *put_proof(char *at, const unsigned char proof[SEAL_SIGNATURE_BYTES])
{
    at = put(put_base64(put(at, "\",\"proof\":\""), proof, SEAL_SIGNATURE_BYTES), "\"}");
    *at = 0;
    return at;
}

size_t seal_envelope_send(struct seal_text stored, const struct seal_place *p,
                          const unsigned char proof[SEAL_SIGNATURE_BYTES], char *out)
{
    char *at = put_bytes(out, (struct seal_text){stored.p, stored.n - (stored.n > 0)});
    return (size_t)(put_proof(put_place(at, p), proof) - out);
}

size_t seal_tombstone_write(struct seal_text id, const unsigned char from[SEAL_KEY_ID_BYTES],
                            const struct seal_place *p,
                            const unsigned char proof[SEAL_SIGNATURE_BYTES], char *out)
{
    char *at = put_bytes(put(out, "{\"v\":1,\"skip\":true,\"id\":\""), id);
    at = put_bytes(put(at, "\",\"line\":\""), p->line);
    at = put_id(put(at, "\",\"from\":\""), from);
    at = put_place(put(at, "\""), p);
    at = put_base64(put(at, "\",\"hash\":\""), p->hash, SEAL_HASH_BYTES);
    return (size_t)(put_proof(at, proof) - out);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* What is still to be read; ok is false from the first thing that is not as it must be. */
struct reading {
    struct seal_text rest;
    bool ok;
};

static void skip(struct reading *r, size_t n)
{
    r->rest.p += n;
    r->rest.n -= n;
}

static bool at_text(const struct reading *r, const char *text)
{
    size_t n = strlen(text);
    return r->ok && r->rest.n >= n && memcmp(r->rest.p, text, n) == 0;
}

static void expect(struct reading *r, const char *text)
{
    r->ok = at_text(r, text);
    if (r->ok)
        skip(r, strlen(text));
}

/* Up to the next quote, which is left. */
static struct seal_text until_quote(struct reading *r)
{
    const char *quote = r->ok && r->rest.n > 0 ? memchr(r->rest.p, '"', r->rest.n) : NULL;
    r->ok = quote != NULL;
    struct seal_text t = {r->rest.p, quote != NULL ? (size_t)(quote - r->rest.p) : 0};
    if (r->ok)
        skip(r, t.n);
    return t;
}

static uint64_t read_number(struct reading *r)
{
    uint64_t v = 0;
    size_t n = 0;
    while (r->ok && n < r->rest.n && n < NUMBER_MAX && r->rest.p[n] >= '0' && r->rest.p[n] <= '9')
        v = v * 10 + (uint64_t)(r->rest.p[n++] - '0');
    r->ok = n > 0 && r->rest.p[0] != '0' && v <= INT64_MAX;
    if (r->ok)
        skip(r, n);
    return v;
}

/* Base64 of exactly n bytes. */
static void read_base64(struct reading *r, unsigned char *out, size_t n)
{
    size_t got = 0, len = seal_base64_len(n);
    r->ok = r->ok && r->rest.n >= len && seal_base64_decode(r->rest.p, len, out, &got) &&
            got == n;
    if (r->ok)
        skip(r, len);
}

static void read_hash(struct reading *r, unsigned char hash[SEAL_HASH_BYTES])
{
    unsigned char room[SEAL_HASH_BYTES + 3];
    read_base64(r, room, SEAL_HASH_BYTES);
    if (r->ok)
        memcpy(hash, room, SEAL_HASH_BYTES);
}

static void read_signature(struct reading *r, unsigned char signature[SEAL_SIGNATURE_BYTES])
{
    unsigned char room[SEAL_SIGNATURE_BYTES + 3];
    read_base64(r, room, SEAL_SIGNATURE_BYTES);
    if (r->ok)
        memcpy(signature, room, SEAL_SIGNATURE_BYTES);
}

/* Small letters only: one text for one id. */
static void read_id(struct reading *r, unsigned char id[SEAL_KEY_ID_BYTES])
{
    struct seal_text hex = {r->rest.p, SEAL_KEY_ID_HEX};
    r->ok = r->ok && r->rest.n >= SEAL_KEY_ID_HEX && all_in(hex, "") && seal_key_unhex(hex, id);
    if (r->ok)
        skip(r, SEAL_KEY_ID_HEX);
}

static void read_line(struct reading *r, struct seal_parsed *p)
{
    expect(r, "\",\"line\":\"");
    p->line = p->place.line = until_quote(r);
    r->ok = r->ok && line_ok(p->line);
}

/* A text whose only escapes are \" and \\. */
static void read_type(struct reading *r, struct seal_parsed *p)
{
    expect(r, "\",\"type\":\"");
    while (r->ok && r->rest.n > 0 && r->rest.p[0] != '"') {
        size_t escaped = r->rest.p[0] == '\\';
        r->ok = p->type_bytes < SEAL_TYPE_MAX && r->rest.n > escaped &&
                (!escaped || r->rest.p[1] == '"' || r->rest.p[1] == '\\');
        if (!r->ok)
            return;
        p->type[p->type_bytes++] = r->rest.p[escaped];
        skip(r, 1 + escaped);
    }
    r->ok = r->ok && type_ok((struct seal_text){p->type, p->type_bytes});
}

static void read_stanzas(struct reading *r, struct seal_parsed *p)
{
    unsigned char room[SEAL_STANZA_BYTES + 3];
    expect(r, "\",\"to\":[");
    do {
        struct seal_stanza *s = &p->stanza[p->count];
        r->ok = r->ok && p->count++ < SEAL_RECIPIENTS_MAX;
        expect(r, "{\"key\":\"");
        if (!r->ok)
            return;
        read_id(r, s->id);
        expect(r, "\",\"box\":\"");
        read_base64(r, room, SEAL_STANZA_BYTES);
        expect(r, "\"}");
        if (!r->ok)
            return;
        memcpy(s->box, room, SEAL_STANZA_BYTES);
        if (!at_text(r, ","))
            return;
        expect(r, ",");
    } while (r->ok);
}

/* The size is one that padding gives. */
static bool size_ok(size_t ct_bytes)
{
    if (ct_bytes < SEAL_TAG_BYTES + SEAL_HEAD_BYTES + 1)
        return false;
    size_t padded = ct_bytes - SEAL_TAG_BYTES;
    return seal_padded_bytes(padded - SEAL_HEAD_BYTES - 1) == padded;
}

static void read_ct(struct reading *r, struct seal_parsed *p)
{
    expect(r, "\",\"ct\":\"");
    struct seal_text base64 = until_quote(r);
    r->ok = r->ok && seal_base64_decode(base64.p, base64.n, p->ct, &p->ct_bytes) &&
            size_ok(p->ct_bytes);
}

static void read_place(struct reading *r, struct seal_parsed *p)
{
    p->place.fifo = at_text(r, ",\"ord\":\"fifo\"");
    expect(r, p->place.fifo ? ",\"ord\":\"fifo\",\"seq\":" : ",\"ord\":\"any\",\"seq\":");
    p->place.seq = read_number(r);
    expect(r, ",\"prev\":\"");
    read_hash(r, p->place.prev);
}

static void read_end(struct reading *r, struct seal_parsed *p)
{
    expect(r, "\",\"proof\":\"");
    read_signature(r, p->proof);
    expect(r, "\"}");
    r->ok = r->ok && r->rest.n == 0;
}

static void read_tombstone(struct reading *r, struct seal_parsed *p)
{
    expect(r, "{\"v\":1,\"skip\":true,\"id\":\"");
    p->id = until_quote(r);
    r->ok = r->ok && seal_message_id_ok(p->id);
    read_line(r, p);
    expect(r, "\",\"from\":\"");
    read_id(r, p->from);
    expect(r, "\"");
    read_place(r, p);
    expect(r, "\",\"hash\":\"");
    read_hash(r, p->place.hash);
    read_end(r, p);
}

static void read_envelope(struct reading *r, struct seal_parsed *p)
{
    expect(r, "{\"v\":1,\"alg\":\"" SEAL_ENVELOPE_ALG "\",\"id\":\"");
    p->id = until_quote(r);
    r->ok = r->ok && seal_message_id_ok(p->id);
    read_line(r, p);
    read_type(r, p);
    expect(r, "\",\"created\":");
    p->created = (int64_t)read_number(r);
    expect(r, ",\"from\":\"");
    read_id(r, p->from);
    read_stanzas(r, p);
    expect(r, "],\"kc\":\"");
    read_hash(r, p->commitment);
    read_ct(r, p);
    expect(r, "\",\"sig\":\"");
    read_signature(r, p->signature);
    expect(r, "\"");
    read_place(r, p);
    read_end(r, p);
}

/* One piece of memory: the boxes, the type, and what base64 of the whole text could be at most. */
static bool take_memory(struct seal_parsed *p, size_t json_bytes)
{
    size_t stanzas = SEAL_RECIPIENTS_MAX * sizeof *p->stanza;
    char *memory = malloc(stanzas + SEAL_TYPE_MAX + json_bytes);
    if (memory == NULL)
        return false;
    p->memory = memory;
    p->stanza = (struct seal_stanza *)memory; /* bytes only: no alignment */
    p->type = memory + stanzas;
    p->ct = (unsigned char *)p->type + SEAL_TYPE_MAX;
    return true;
}

enum seal_envelope seal_envelope_parse(struct seal_text json, struct seal_parsed *p)
{
    struct reading r = {json, true};
    *p = (struct seal_parsed){0};
    if (json.n == 0)
        return SEAL_ENVELOPE_MALFORMED;
    if (!take_memory(p, json.n))
        return SEAL_ENVELOPE_NO_MEMORY;
    p->skip = at_text(&r, "{\"v\":1,\"skip\"");
    if (p->skip)
        read_tombstone(&r, p);
    else
        read_envelope(&r, p);
    return r.ok ? SEAL_ENVELOPE_OK : SEAL_ENVELOPE_MALFORMED;
}

bool seal_envelope_from(struct seal_text stored, unsigned char id[SEAL_KEY_ID_BYTES])
{
    /* behind texts that are as they are written: the type may hold anything in quotes */
    struct seal_parsed p = {0};
    char type[SEAL_TYPE_MAX];
    struct reading r = {stored, true};
    p.type = type;
    expect(&r, "{\"v\":1,\"alg\":\"" SEAL_ENVELOPE_ALG "\",\"id\":\"");
    p.id = until_quote(&r);
    read_line(&r, &p);
    read_type(&r, &p);
    expect(&r, "\",\"created\":");
    (void)read_number(&r);
    expect(&r, ",\"from\":\"");
    read_id(&r, id);
    return r.ok;
}
