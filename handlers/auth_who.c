/* GET /auth/session and nginx's auth_request: who is it, and what may he? */
#include <string.h>

#include "db/token.h"
#include "db/user.h"
#include "fcgi/path.h"
#include "handlers/auth.h"
#include "handlers/basic.h"
#include "handlers/dispatch.h"
#include "handlers/json.h"
#include "handlers/problem.h"
#include "handlers/store.h"

/* Whoever asks, as the file knows him. Pointers die at the next read. */
struct person {
    const char *kind;
    const char *name;
    struct str read, write;
    int64_t expires_s; /* 0: never */
};

static enum access look_token(struct call *c, struct person *p)
{
    struct db_token t;
    struct db_reader *reader = session_reader(c);
    if (reader == NULL || db_token_find(reader, access_who(c)->hash, &t) != DB_OK)
        return ACCESS_NO_STORE;
    *p = (struct person){"token", t.name, {t.read, t.read_len}, {t.write, t.write_len}, t.expires};
    return ACCESS_OK;
}

static enum access look_session(struct call *c, struct person *p)
{
    struct db_session s;
    enum access access = access_session(c, access_who(c)->hash, &s);
    if (access == ACCESS_OK)
        *p = (struct person){"user", s.name, {s.read, s.read_len}, {s.write, s.write_len},
                             s.expires};
    return access;
}

static enum access look_user(struct call *c, struct person *p)
{
    struct db_user u;
    struct db_reader *reader = session_reader(c);
    if (reader == NULL || db_user_get(reader, access_who(c)->user, &u) != DB_OK)
        return ACCESS_NO_STORE;
    *p = (struct person){"user", u.name, {u.read, u.read_len}, {"", 0}, 0};
    return ACCESS_OK;
}

/* For a call whose credential was judged. */
static enum access look(struct call *c, struct person *p)
{
    switch (access_who(c)->kind) {
    case CREDENTIAL_TOKEN:
        return look_token(c, p);
    case CREDENTIAL_SESSION:
        return look_session(c, p);
    case CREDENTIAL_BASIC:
        return look_user(c, p);
    case CREDENTIAL_NONE:
    case CREDENTIAL_OPERATOR:
        break;
    }
    return ACCESS_NO_CREDENTIAL;
}

static void put_lines(struct json *j, const char *name, struct str lines)
{
    const char *comma = "";
    json_raw(j, ",\"");
    json_raw(j, name);
    json_raw(j, "\":[");
    for (size_t at = 0; at < lines.n;) {
        const char *end = memchr(lines.p + at, '\n', lines.n - at);
        size_t n = end ? (size_t)(end - lines.p) - at : lines.n - at;
        json_raw(j, comma);
        json_string(j, (struct str){lines.p + at, n});
        comma = ",";
        at += n + 1;
    }
    json_raw(j, "]");
}

/* A credential is asked for, but no right: everybody may know who he is. */
enum verdict auth_session(struct call *c)
{
    struct person p = {.kind = "", .name = ""};
    enum access access = access_check(c, false);
    if (access == ACCESS_VERIFY)
        return basic_verify(c);
    if (access == ACCESS_FORBIDDEN || access == ACCESS_OK)
        access = look(c, &p);
    if (dispatch_refused(c, access))
        return REPLY;
    struct json j = json_start(&session_of(c)->text);
    json_raw(&j, "{\"kind\":");
    json_string(&j, (struct str){p.kind, strlen(p.kind)});
    json_raw(&j, ",\"name\":");
    json_string(&j, (struct str){p.name, strlen(p.name)});
    put_lines(&j, "read", p.read);
    put_lines(&j, "write", p.write);
    json_raw(&j, ",\"expires\":");
    if (p.expires_s > 0) {
        char expires[RFC3339_LEN];
        put_rfc3339(expires, p.expires_s);
        json_string(&j, (struct str){expires, sizeof expires});
    } else {
        json_raw(&j, "null");
    }
    json_raw(&j, "}\n");
    if (j.failed)
        return FAIL;
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    resp_header(c->resp, "Cache-Control", STR_LIT("no-store"));
    resp_body(c->resp, session_of(c)->text.data, session_of(c)->text.len);
    return REPLY;
}

/* The path that nginx asks about, below the mount if it is there. One outside that looks like a
 * path of ours would have two meanings. */
static bool checked_path(const struct call *c, struct str *path)
{
    struct str uri = c->req->check_uri, mount = c->req->mount;
    if (!path_ok(uri))
        return false;
    if (mount.n > 0 && str_starts(uri, mount) && (uri.n == mount.n || uri.p[mount.n] == '/')) {
        *path = (struct str){uri.p + mount.n, uri.n - mount.n};
        if (path->n == 0)
            *path = STR_LIT("/");
        return true;
    }
    *path = uri;
    return mount.n == 0 || route_find(uri) == NULL;
}

enum verdict auth_check(struct call *c)
{
    struct person p = {.kind = "", .name = ""};
    struct str path;
    bool write = (c->req->method & (METHOD_GET | METHOD_HEAD)) == 0;
    if (c->req->check_uri.p == NULL) {
        problem(c, 404, "There is nothing at this address.");
        return REPLY;
    }
    enum access access = checked_path(c, &path) ? access_check_path(c, path, write)
                                                : ACCESS_FORBIDDEN;
    if (access == ACCESS_VERIFY)
        return basic_verify(c);
    if (dispatch_refused(c, access))
        return REPLY;
    access = look(c, &p);
    if (access == ACCESS_NO_STORE && dispatch_refused(c, access))
        return REPLY;
    resp_start(c->resp, 204);
    resp_header(c->resp, "Cache-Control", STR_LIT("no-store"));
    if (p.kind[0] != 0)
        resp_header(c->resp, p.kind[0] == 'u' ? "X-Hanji-User" : "X-Hanji-Token",
                    (struct str){p.name, strlen(p.name)});
    resp_no_body(c->resp);
    return REPLY;
}
