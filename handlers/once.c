#include "handlers/once.h"

#include <stdlib.h>
#include <string.h>

#include "handlers/access.h"
#include "handlers/problem.h"

_Static_assert((int)SEAL_DIGEST_BYTES == (int)DB_ONCE_HASH_BYTES, "one size of hash");

/* The inside of a string of RFC 9651, without its escapes. */
static bool take_string(struct str s, char *out, size_t *n)
{
    size_t i = 1;
    for (; i < s.n && s.p[i] != '"'; i++) {
        if (s.p[i] == '\\' && (++i == s.n || (s.p[i] != '"' && s.p[i] != '\\')))
            return false;
        if (s.p[i] < 0x20 || s.p[i] > 0x7e || *n == ONCE_KEY_MAX)
            return false;
        out[(*n)++] = s.p[i];
    }
    return i + 1 == s.n;
}

bool once_key(struct str header, char *out, size_t *n)
{
    *n = 0;
    if (header.n > 0 && header.p[0] == '"')
        return take_string(header, out, n) && *n > 0;
    if (header.n == 0 || header.n > ONCE_KEY_MAX)
        return false;
    for (size_t i = 0; i < header.n; i++)
        if (header.p[i] < 0x21 || header.p[i] > 0x7e)
            return false;
    memcpy(out, header.p, header.n);
    *n = header.n;
    return true;
}

/* With its length before it, so that two texts never look like two others. */
static void add(struct seal_digest *d, const void *p, size_t n)
{
    uint64_t length = n;
    seal_digest_add(d, &length, sizeof length);
    if (n > 0)
        seal_digest_add(d, p, n);
}

/* A person is the same by every browser and by Basic. */
static void add_credential(struct seal_digest *d, const struct credential *who)
{
    bool person = who->kind == CREDENTIAL_SESSION || who->kind == CREDENTIAL_BASIC;
    unsigned char kind = (unsigned char)(person ? CREDENTIAL_SESSION : who->kind);
    add(d, &kind, 1);
    if (person)
        add(d, &who->user, sizeof who->user);
    else
        add(d, who->hash, sizeof who->hash);
}

static void hash_scope(struct call *c, const char *key, size_t n, unsigned char *out)
{
    struct seal_digest d;
    seal_digest_init(&d);
    add_credential(&d, access_who(c));
    add(&d, c->req->method_name.p, c->req->method_name.n);
    add(&d, c->req->path.p, c->req->path.n);
    add(&d, key, n);
    seal_digest_end(&d, out);
}

void once_begin(struct seal_digest *d, struct str type)
{
    seal_digest_init(d);
    add(d, type.p, type.n);
}

void once_end(struct seal_digest *d, struct db_op *op)
{
    seal_digest_end(d, op->once->request);
}

void once_body(struct db_op *op, struct str type, struct str body)
{
    struct seal_digest d;
    if (op->once == NULL)
        return;
    once_begin(&d, type);
    if (body.n > 0)
        seal_digest_add(&d, body.p, body.n);
    once_end(&d, op);
}

bool once_take(struct call *c, struct db_op *op, unsigned status)
{
    char key[ONCE_KEY_MAX];
    size_t n;
    if (c->req->idempotency_key.p == NULL)
        return true;
    if (!once_key(c->req->idempotency_key, key, &n)) {
        problem(c, 400, "The header Idempotency-Key has 1 to 255 visible ASCII characters.");
        return false;
    }
    op->once = calloc(1, sizeof *op->once);
    if (op->once == NULL) {
        problem_result(c, DB_NO_MEMORY, 0);
        return false;
    }
    op->once->status = (uint16_t)status;
    hash_scope(c, key, n, op->once->scope);
    return true;
}

void once_header(struct call *c, const struct db_op *op)
{
    if (op->replayed)
        resp_header(c->resp, "Idempotency-Replayed", STR_LIT("true"));
}
