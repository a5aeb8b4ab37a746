#include "handlers/access.h"

#include <string.h>
#include <strings.h>

#include "db/session.h"
#include "db/token.h"
#include "fcgi/conf.h"
#include "fcgi/path.h"
#include "handlers/basic.h"
#include "handlers/cookie.h"
#include "handlers/origin.h"
#include "handlers/store.h"
#include "seal/token.h"

enum {
    TOUCH_EVERY_S = 3600, /* how exact session.seen is */
    TOUCH_AGAIN_S = 60,   /* the same session again, while the note is on its way */
};

_Static_assert((int)DB_SESSION_HASH_BYTES == (int)DB_TOKEN_HASH_BYTES, "a credential holds one");
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
        struct str one = conf_next(&list);
        if (one.n > 0 && !access_add_prefix(out, one))
            return false;
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

bool access_covers_or_public(const struct call *c, struct str lines, struct str path)
{
    return access_covers(lines, path) || is_public(c, path);
}

/* The scheme's name is case-insensitive (RFC 9110 11.1). */
struct str access_credentials(struct str header, const char *scheme)
{
    size_t at = strlen(scheme);
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

static enum access judge_nobody(const struct call *c, struct str path, bool write)
{
    return !write && is_public(c, path) ? ACCESS_OK : ACCESS_NO_CREDENTIAL;
}

/* Notes that the session is in use, when that was noted long enough ago. */
static void touch(struct call *c, const struct credential *who, int64_t seen_s)
{
    struct session *s = session_of(c);
    int64_t every_s = (int64_t)(s->store->conf->session_idle_ms / 4000);
    if (every_s > TOUCH_EVERY_S)
        every_s = TOUCH_EVERY_S;
    bool just_noted = c->now_s - s->touched_s < TOUCH_AGAIN_S &&
                      memcmp(s->touched, who->hash, sizeof s->touched) == 0;
    if (c->now_s - seen_s < every_s || just_noted)
        return;
    struct db_op *op = db_op_new(DB_OP_SESSION_TOUCH, sizeof who->hash);
    if (op == NULL)
        return;
    db_op_copy(op, 0, DB_VALUE_BLOB, who->hash, sizeof who->hash);
    store_note(c, op);
    memcpy(s->touched, who->hash, sizeof s->touched);
    s->touched_s = c->now_s;
}

enum access access_session(struct call *c, const unsigned char *hash, struct db_session *session)
{
    struct db_reader *reader = session_reader(c);
    int64_t idle_s = (int64_t)(session_of(c)->store->conf->session_idle_ms / 1000);
    enum db_result result = reader ? db_session_find(reader, hash, session) : DB_BROKEN;
    if (result == DB_NONE)
        return ACCESS_NO_CREDENTIAL;
    if (result != DB_OK)
        return ACCESS_NO_STORE;
    bool over = session->expires <= c->now_s || session->seen <= c->now_s - idle_s;
    return over ? ACCESS_NO_CREDENTIAL : ACCESS_OK;
}

static enum access judge_session(struct call *c, struct credential *who, struct str path,
                                 bool write)
{
    struct db_session session;
    enum access access = access_session(c, who->hash, &session);
    if (access == ACCESS_NO_CREDENTIAL) {
        *who = (struct credential){.kind = CREDENTIAL_NONE};
        return judge_nobody(c, path, write);
    }
    if (access != ACCESS_OK)
        return access;
    who->user = session.user;
    touch(c, who, session.seen);
    struct str lines = write ? (struct str){session.write, session.write_len}
                             : (struct str){session.read, session.read_len};
    return judge_lines(c, lines, path, write);
}

static enum access judge(struct call *c, struct credential *who, struct str path, bool write)
{
    switch (who->kind) {
    case CREDENTIAL_NONE:
        return judge_nobody(c, path, write);
    case CREDENTIAL_TOKEN:
        return judge_token(c, who, path, write);
    case CREDENTIAL_SESSION:
        return judge_session(c, who, path, write);
    case CREDENTIAL_BASIC:
        return basic_judge(c, who, path, write);
    case CREDENTIAL_OPERATOR:
        break;
    }
    return ACCESS_OK;
}

bool access_cookie(const struct call *c, unsigned char hash[DB_TOKEN_HASH_BYTES])
{
    char name[COOKIE_NAME_MAX];
    if (c->req->cookie.n == 0)
        return false;
    size_t n = cookie_name(name, c->req->mount, origin_https(c->req));
    struct str value = cookie_find(c->req->cookie, (struct str){name, n});
    return value.n > 0 && seal_session_hash(value.p, value.n, hash);
}

/* Who the request says it comes from. ACCESS_OK, or why that cannot be. */
static enum access identify(struct call *c, struct credential *who)
{
    const struct req *req = c->req;
    *who = (struct credential){.kind = CREDENTIAL_NONE};
    if (req->operator_) {
        who->kind = CREDENTIAL_OPERATOR;
    } else if (req->authorization.n > 0) {
        struct str token = access_credentials(req->authorization, "bearer");
        struct str basic = access_credentials(req->authorization, "basic");
        if (basic.n > 0 && session_of(c)->offers_basic)
            return basic_identify(c, basic, who);
        who->kind = basic.n > 0 ? CREDENTIAL_BASIC : CREDENTIAL_TOKEN;
        if (token.n == 0 || !seal_token_hash(token.p, token.n, who->hash))
            return ACCESS_BAD_CREDENTIAL;
    } else if (access_cookie(c, who->hash)) {
        who->kind = CREDENTIAL_SESSION;
    }
    return ACCESS_OK;
}

enum access access_judge(struct call *c, const struct credential *who, struct str path, bool write)
{
    struct credential copy = *who;
    return judge(c, &copy, path, write);
}

enum access access_check_path(struct call *c, struct str path, bool write)
{
    struct session *s = session_of(c);
    bool safe = (c->req->method & (METHOD_GET | METHOD_HEAD)) != 0;
    const struct buf *basic = &s->store->basic;
    s->offers_basic = safe && access_covers((struct str){(const char *)basic->data, basic->len},
                                            path);
    enum access access = identify(c, &s->who);
    if (access == ACCESS_OK)
        access = judge(c, &s->who, path, write);
    /* Also when this path is not covered: a request that names its paths goes on. */
    bool good = access == ACCESS_OK || access == ACCESS_FORBIDDEN;
    if (good && !safe && s->who.kind == CREDENTIAL_SESSION && origin_of(c->req) != ORIGIN_SAME)
        return ACCESS_ORIGIN;
    return access;
}

enum access access_check(struct call *c, bool write)
{
    return access_check_path(c, c->req->path, write);
}

const struct credential *access_who(const struct call *c)
{
    return &session_of(c)->who;
}
