#include "handlers/auth.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fcgi/path.h"
#include "handlers/auth_page.h"
#include "handlers/cookie.h"
#include "handlers/dispatch.h"
#include "handlers/json.h"
#include "handlers/origin.h"
#include "handlers/problem.h"
#include "handlers/verify.h"

enum { NAME_ROOM = 256, NEXT_MAX = 2048, BODY_MAX = 8192 };

static const char wrong[] = "This name and password do not belong together.";

/* What a login says. */
struct login {
    char name[NAME_ROOM]; /* cut: then nobody has it */
    size_t name_len;
    char password[SEAL_PASSWORD_MAX + 1]; /* likewise */
    size_t password_len;
    char next[NEXT_MAX + 1]; /* "" without one */
};

/* What is needed to answer it, after the request is gone. */
struct login_call {
    struct verify verify;
    bool https;
    bool browser;
    char next[NEXT_MAX + 1];
    char label[DB_SESSION_LABEL_MAX + 1];
};

/* … and once more, behind the write of the session. */
struct logged_in {
    char cookie[SEAL_SESSION_LEN + 1];
    int64_t expires_s;
    uint64_t max_age_s;
    bool https;
    bool browser;
    char name[DB_USER_NAME_MAX + 1];
    char next[NEXT_MAX + 1];
};

bool auth_next_ok(struct str next)
{
    if (next.n == 0 || next.n > NEXT_MAX || next.p[0] != '/' || (next.n > 1 && next.p[1] == '/'))
        return false;
    for (size_t i = 0; i < next.n; i++)
        if (next.p[i] <= 0x20 || next.p[i] >= 0x7f || next.p[i] == '\\')
            return false;
    return true;
}

static size_t copy_cut(char *to, size_t room, const void *p, size_t n)
{
    size_t take = n < room ? n : room;
    if (take > 0)
        memcpy(to, p, take);
    return take;
}

/* Reads `next` from a query or a form. False: it is malformed, and 400 was answered. */
static bool take_next(struct call *c, struct str fields, char next[NEXT_MAX + 1])
{
    struct buf *value = &session_of(c)->value;
    enum query_result result = query_find(fields, "next", value);
    next[0] = 0;
    if (result == QUERY_NONE || (result == QUERY_OK && value->len == 0))
        return true;
    struct str text = {(const char *)value->data, value->len};
    if (result != QUERY_OK || !auth_next_ok(text)) {
        problem(c, 400, "next: a path of this site that begins with one '/' is expected.");
        return false;
    }
    memcpy(next, text.p, text.n);
    next[text.n] = 0;
    return true;
}

/* A field of the form; what is wrong with it, or NULL. */
static const char *form_field(struct call *c, struct str body, const char *name,
                              const char *missing)
{
    switch (query_find(body, name, &session_of(c)->value)) {
    case QUERY_OK:
        return NULL;
    case QUERY_NONE:
        return missing;
    case QUERY_BAD:
    case QUERY_TWICE:
        break;
    }
    return "A field of the form is malformed, too long or there twice.";
}

static bool take_form(struct call *c, struct str body, struct login *login)
{
    struct buf *value = &session_of(c)->value;
    if (!take_next(c, body, login->next))
        return false;
    const char *why = form_field(c, body, "user", "user: the field is missing.");
    if (why == NULL) {
        login->name_len = copy_cut(login->name, sizeof login->name, value->data, value->len);
        why = form_field(c, body, "password", "password: the field is missing.");
    }
    if (why == NULL) {
        login->password_len =
            copy_cut(login->password, sizeof login->password, value->data, value->len);
        seal_wipe(value->data, value->len);
        return true;
    }
    problem(c, 400, why);
    return false;
}

static bool take_json(struct call *c, struct str body, struct login *login)
{
    struct db_login fields;
    struct db_reader *reader = session_reader(c);
    enum db_result result = reader ? db_login_json(reader, body.p, body.n, &fields) : DB_BROKEN;
    if (result == DB_INVALID) {
        problem(c, 400, "A JSON object with the strings \"user\" and \"password\" is expected.");
        return false;
    }
    if (result != DB_OK) {
        problem_result(c, result, 0);
        return false;
    }
    login->name_len = copy_cut(login->name, sizeof login->name, fields.user, fields.user_len);
    login->password_len = copy_cut(login->password, sizeof login->password, fields.password,
                                   fields.password_len);
    return true;
}

static bool is_type(struct str type, struct str name)
{
    return type.n >= name.n && strncasecmp(type.p, name.p, name.n) == 0 &&
           (type.n == name.n || strchr("; \t", type.p[name.n]) != NULL);
}

static bool is_form(const struct call *c)
{
    return is_type(c->req->content_type, STR_LIT("application/x-www-form-urlencoded"));
}

/* What the body says; false when an error was answered. */
static bool take_login(struct call *c, struct str body, struct login *login)
{
    if (is_form(c))
        return take_form(c, body, login);
    if (is_type(c->req->content_type, STR_LIT("application/json")))
        return take_json(c, body, login);
    problem(c, 415, "A login is application/x-www-form-urlencoded or application/json.");
    return false;
}

static void see_other(struct call *c, const char *next)
{
    struct session *s = session_of(c);
    s->link.len = 0;
    struct str to = {next, strlen(next)};
    if (to.n == 0) {
        if (!path_encode(&s->link, s->mount) || !buf_add(&s->link, "/auth/login", 11, NEXT_MAX * 8))
            c->resp->failed = true;
        to = (struct str){(const char *)s->link.data, s->link.len};
    }
    resp_header(c->resp, "Location", to);
    resp_body(c->resp, NULL, 0);
}

static void answer_wrong(struct call *c, bool browser, const char *name, const char *next)
{
    if (!browser) {
        problem_with(c, 401, wrong,
                     (struct problem_header){"WWW-Authenticate", "Bearer realm=\"hanji\""});
        return;
    }
    struct auth_page page = {.status = 401,
                             .name = {name, strlen(name)},
                             .next = {next, strlen(next)},
                             .error = wrong};
    auth_page(c, &page);
}

/* The session is in the file. */
static void answer_right(struct write *w, struct call *c)
{
    struct session *s = session_of(c);
    const struct logged_in *l = w->more;
    s->mount = (struct str){w->mount, w->mount_len};
    if (w->op->result == DB_PRECONDITION) { /* another password since it was compared */
        answer_wrong(c, l->browser, l->name, l->next);
        return;
    }
    if (w->op->result != DB_OK) {
        problem_result(c, w->op->result, w->op->pid);
        return;
    }
    resp_start(c->resp, l->browser ? 303 : 200);
    resp_header(c->resp, "Cache-Control", STR_LIT("no-store"));
    cookie_set(c->resp, s->mount, l->https, l->cookie, l->max_age_s);
    if (l->browser) {
        see_other(c, l->next);
        return;
    }
    char expires[RFC3339_LEN];
    put_rfc3339(expires, l->expires_s);
    struct json j = json_start(&s->text);
    json_raw(&j, "{\"user\":");
    json_string(&j, (struct str){l->name, strlen(l->name)});
    json_raw(&j, ",\"expires\":");
    json_string(&j, (struct str){expires, sizeof expires});
    json_raw(&j, "}\n");
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    resp_body(c->resp, s->text.data, j.failed ? 0 : s->text.len);
}

static enum verdict begin_session(struct call *c, const struct login_call *l)
{
    unsigned char hash[SEAL_TOKEN_HASH_BYTES];
    struct logged_in more = {.https = l->https, .browser = l->browser};
    size_t hash_len = strlen(l->verify.hash), label_len = strlen(l->label);
    struct db_op *op = db_op_new(DB_OP_SESSION_NEW, sizeof hash + hash_len + label_len);
    seal_session_new(more.cookie);
    if (op == NULL || !seal_session_hash(more.cookie, SEAL_SESSION_LEN, hash)) {
        db_op_free(op);
        problem_result(c, DB_NO_MEMORY, 0);
        return REPLY;
    }
    more.max_age_s = session_of(c)->store->conf->session_max_ms / 1000;
    more.expires_s = c->now_s + (int64_t)more.max_age_s;
    memcpy(more.name, l->verify.known, sizeof more.name);
    memcpy(more.next, l->next, sizeof more.next);
    db_op_copy(op, 0, DB_VALUE_BLOB, hash, sizeof hash);
    db_op_int(op, 1, l->verify.user);
    db_op_copy(op, 2, DB_VALUE_TEXT, l->verify.hash, hash_len);
    db_op_int(op, 3, more.expires_s);
    db_op_copy(op, 4, DB_VALUE_TEXT, l->label, label_len);
    enum verdict verdict = store_write_more(c, op, answer_right, &more, sizeof more);
    seal_wipe(&more, sizeof more);
    return verdict;
}

static enum verdict compared(struct verify *v, struct call *c)
{
    const struct login_call *l = (const struct login_call *)v;
    if (v->result == SEAL_PASSWORD_RIGHT)
        return begin_session(c, l);
    answer_wrong(c, l->browser, v->name, l->next);
    return REPLY;
}

/* The beginning of the User-Agent, printable ASCII only. */
static void take_label(struct str agent, char label[DB_SESSION_LABEL_MAX + 1])
{
    size_t n = copy_cut(label, DB_SESSION_LABEL_MAX, agent.p, agent.n);
    for (size_t i = 0; i < n; i++)
        if (label[i] < 0x20 || label[i] > 0x7e)
            label[i] = '?';
    label[n] = 0;
}

static enum verdict start(struct call *c, const struct login *login)
{
    struct login_call *l = verify_new(c, sizeof *l, (struct str){login->name, login->name_len},
                                      (struct str){login->password, login->password_len});
    if (l == NULL)
        return REPLY;
    l->https = origin_https(c->req);
    l->browser = problem_for_browser(c->req);
    memcpy(l->next, login->next, sizeof l->next);
    take_label(c->req->user_agent, l->label);
    l->verify.answer = compared;
    return verify_run(c, &l->verify);
}

static enum verdict post_login(struct call *c)
{
    struct login login = {.name_len = 0};
    size_t n;
    if (origin_of(c->req) == ORIGIN_OTHER) {
        problem(c, 403, "A page of another site asked for this login.");
        return REPLY;
    }
    if (c->req->frame->body_bytes > BODY_MAX) {
        problem(c, 413, "The body is larger than the limit of 8192 bytes.");
        return REPLY;
    }
    unsigned char *body = frame_take_body(c->req->frame, &n);
    enum verdict verdict = REPLY;
    if (body == NULL && n > 0)
        problem_result(c, DB_NO_MEMORY, 0);
    else if (take_login(c, (struct str){(const char *)body, n}, &login))
        verdict = start(c, &login);
    if (body != NULL)
        seal_wipe(body, n);
    free(body);
    seal_wipe(&login, sizeof login);
    return verdict;
}

/* nginx shows this page in the place of one that it protects: the request was for another one. */
static bool in_place(const struct call *c)
{
    static const char own[] = "/auth/login";
    struct str uri = c->req->request_uri, mount = c->req->mount;
    if (uri.n == 0 || !auth_next_ok(uri))
        return false;
    bool below = uri.n >= mount.n + sizeof own - 1 && str_starts(uri, mount) &&
                 memcmp(uri.p + mount.n, own, sizeof own - 1) == 0;
    return !below;
}

static enum verdict get_login(struct call *c)
{
    char next[NEXT_MAX + 1];
    unsigned char hash[DB_SESSION_HASH_BYTES];
    struct db_session session;
    struct auth_page page = {.status = 200};
    if (in_place(c)) {
        page.status = 401;
        page.next = c->req->request_uri;
        if (!problem_for_browser(c->req)) {
            (void)!dispatch_refused(c, ACCESS_NO_CREDENTIAL);
            return REPLY;
        }
    } else if (!take_next(c, c->req->query, next)) {
        return REPLY;
    } else {
        page.next = (struct str){next, strlen(next)};
    }
    if (page.status == 200 && access_cookie(c, hash) &&
        access_session(c, hash, &session) == ACCESS_OK)
        page.user = (struct str){session.name, strlen(session.name)};
    auth_page(c, &page);
    return REPLY;
}

enum verdict auth_login(struct call *c)
{
    return c->req->method == METHOD_POST ? post_login(c) : get_login(c);
}

struct logged_out {
    bool https;
    bool browser;
};

static void answer_out(struct call *c, const struct logged_out *l)
{
    struct session *s = session_of(c);
    resp_start(c->resp, l->browser ? 303 : 204);
    resp_header(c->resp, "Cache-Control", STR_LIT("no-store"));
    cookie_set(c->resp, s->mount, l->https, NULL, 0);
    if (l->browser)
        see_other(c, "");
    else
        resp_no_body(c->resp);
}

static void ended(struct write *w, struct call *c)
{
    session_of(c)->mount = (struct str){w->mount, w->mount_len};
    if (w->op->result != DB_OK && w->op->result != DB_NONE)
        problem_result(c, w->op->result, w->op->pid);
    else
        answer_out(c, w->more);
}

/* `everywhere=1` in the form. */
static bool wants_all(struct call *c)
{
    size_t n;
    struct buf *value = &session_of(c)->value;
    if (!is_form(c) || c->req->frame->body_bytes > BODY_MAX)
        return false;
    unsigned char *body = frame_take_body(c->req->frame, &n);
    bool all = body != NULL &&
               query_find((struct str){(const char *)body, n}, "everywhere", value) == QUERY_OK &&
               value->len == 1 && value->data[0] == '1';
    free(body);
    return all;
}

enum verdict auth_logout(struct call *c)
{
    unsigned char hash[DB_SESSION_HASH_BYTES];
    struct logged_out more = {origin_https(c->req), problem_for_browser(c->req)};
    bool cookie = access_cookie(c, hash);
    enum origin origin = origin_of(c->req);
    /* Without a cookie, too: a browser may have kept it from another site's page, and would still
     * forget it when the answer says so. */
    bool meant = origin == ORIGIN_SAME || (origin == ORIGIN_UNKNOWN && !cookie);
    if (dispatch_refused(c, meant ? ACCESS_OK : ACCESS_ORIGIN))
        return REPLY;
    if (!cookie) {
        answer_out(c, &more);
        return REPLY;
    }
    struct db_op *op = db_op_new(wants_all(c) ? DB_OP_SESSION_END_ALL : DB_OP_SESSION_END,
                                 sizeof hash);
    if (op != NULL)
        db_op_copy(op, 0, DB_VALUE_BLOB, hash, sizeof hash);
    return store_write_more(c, op, ended, &more, sizeof more);
}
