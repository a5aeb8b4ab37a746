#include "handlers/access.h"

#include <string.h>
#include <strings.h>

#include "db/token.h"
#include "fcgi/path.h"
#include "handlers/store.h"
#include "seal/token.h"

_Static_assert((int)SEAL_TOKEN_HASH_BYTES == (int)DB_TOKEN_HASH_BYTES, "one size of hash");

static bool covers(struct str prefix, struct str path)
{
    if (!str_starts(path, prefix) || prefix.n == 0)
        return false;
    return prefix.p[prefix.n - 1] == '/' || path.n == prefix.n || path.p[prefix.n] == '/';
}

bool access_covers(struct str lines, struct str path)
{
    for (size_t at = 0; at < lines.n;) {
        const char *end = memchr(lines.p + at, '\n', lines.n - at);
        size_t n = end ? (size_t)(end - lines.p) - at : lines.n - at;
        if (covers((struct str){lines.p + at, n}, path))
            return true;
        at += n + 1;
    }
    return false;
}

bool access_add_prefix(struct buf *out, struct str text)
{
    bool is_path = text.n > 0 && text.p[0] == '/';
    size_t from = out->len > 0 ? out->len + 1 : 0;
    bool ok = (out->len == 0 || buf_add(out, "\n", 1, DB_TOKEN_PREFIXES_MAX)) &&
              (is_path || buf_add(out, "/docs/", 6, DB_TOKEN_PREFIXES_MAX)) &&
              buf_add(out, text.p, text.n, DB_TOKEN_PREFIXES_MAX);
    return ok && path_ok((struct str){(const char *)out->data + from, out->len - from});
}

bool access_public(const char *list, struct buf *out)
{
    while (*list != 0) {
        size_t n = strcspn(list, ",");
        size_t lead = strspn(list, " \t");
        struct str one = {list + lead, n > lead ? n - lead : 0};
        while (one.n > 0 && (one.p[one.n - 1] == ' ' || one.p[one.n - 1] == '\t'))
            one.n--;
        if (one.n > 0 && !access_add_prefix(out, one))
            return false;
        list += n + (list[n] == ',');
    }
    return true;
}

static bool listed(const struct buf *lines, struct str path)
{
    return lines->len > 0 && access_covers((struct str){(const char *)lines->data, lines->len},
                                           path);
}

static enum access_public public_kind(const struct call *c, struct str path)
{
    const struct store *store = session_of(c)->store;
    if (listed(&store->sites, path))
        return ACCESS_SITE;
    return listed(&store->public_, path) ? ACCESS_PUBLIC : ACCESS_PRIVATE;
}

static bool is_public(const struct call *c, struct str path)
{
    return public_kind(c, path) != ACCESS_PRIVATE;
}

enum access_public access_public_kind(const struct call *c)
{
    return public_kind(c, c->req->path);
}

/* The token of an Authorization header; the scheme's name is case-insensitive (RFC 9110 11.1). */
static struct str bearer(struct str header)
{
    static const char scheme[] = "bearer";
    size_t at = sizeof scheme - 1;
    if (header.n <= at || strncasecmp(header.p, scheme, at) != 0 || header.p[at] != ' ')
        return (struct str){NULL, 0};
    while (at < header.n && header.p[at] == ' ')
        at++;
    size_t n = header.n - at;
    while (n > 0 && header.p[at + n - 1] == ' ')
        n--;
    return (struct str){header.p + at, n};
}

/* Whose lines cover the path; for a credential that is good. */
static enum access judge_lines(struct call *c, struct str lines, struct str path, bool write)
{
    if (access_covers(lines, path) || (!write && is_public(c, path)))
        return ACCESS_OK;
    return ACCESS_FORBIDDEN;
}

static enum access judge_token(struct call *c, struct credential *who, struct str path, bool write)
{
    struct db_token token;
    struct db_reader *reader = session_reader(c);
    enum db_result result = reader ? db_token_find(reader, who->hash, &token) : DB_BROKEN;
    if (result == DB_NONE)
        return ACCESS_BAD_CREDENTIAL;
    if (result != DB_OK)
        return ACCESS_NO_STORE;
    if (!seal_token_same(who->hash, token.hash))
        return ACCESS_BAD_CREDENTIAL;
    if (token.expires != 0 && token.expires <= c->now_s)
        return ACCESS_BAD_CREDENTIAL;
    struct str lines = write ? (struct str){token.write, token.write_len}
                             : (struct str){token.read, token.read_len};
    return judge_lines(c, lines, path, write);
}

/* Who the request says it comes from; false when that is malformed. */
static bool identify(const struct req *req, struct credential *who)
{
    *who = (struct credential){.kind = CREDENTIAL_NONE};
    if (req->operator_) {
        who->kind = CREDENTIAL_OPERATOR;
    } else if (req->authorization.n > 0) {
        struct str token = bearer(req->authorization);
        who->kind = CREDENTIAL_TOKEN;
        return token.n > 0 && seal_token_hash(token.p, token.n, who->hash);
    }
    return true;
}

static enum access judge(struct call *c, struct credential *who, struct str path, bool write)
{
    switch (who->kind) {
    case CREDENTIAL_NONE:
        return !write && is_public(c, path) ? ACCESS_OK : ACCESS_NO_CREDENTIAL;
    case CREDENTIAL_TOKEN:
        return judge_token(c, who, path, write);
    case CREDENTIAL_OPERATOR:
        break;
    }
    return ACCESS_OK;
}

enum access access_judge(struct call *c, const struct credential *who, struct str path, bool write)
{
    struct credential copy = *who;
    return judge(c, &copy, path, write);
}

enum access access_check(struct call *c, bool write)
{
    struct credential *who = &session_of(c)->who;
    return identify(c->req, who) ? judge(c, who, c->req->path, write) : ACCESS_BAD_CREDENTIAL;
}

const struct credential *access_who(const struct call *c)
{
    return &session_of(c)->who;
}
