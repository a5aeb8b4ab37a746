#include "handlers/apps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "db/user.h"
#include "fcgi/log.h"
#include "fcgi/path.h"
#include "handlers/app_accept.h"
#include "handlers/app_get.h"
#include "handlers/app_param.h"
#include "handlers/app_post.h"
#include "handlers/app_set.h"
#include "handlers/app_static.h"
#include "handlers/basic.h"
#include "handlers/changes.h"
#include "handlers/dispatch.h"
#include "handlers/origin.h"
#include "handlers/param.h"
#include "handlers/problem.h"

enum { APPS_LEN = sizeof "/apps/" - 1, ALLOW_MAX = 64 };

static const char nothing[] = "There is nothing at this address.";

static bool is_read(const struct req *r)
{
    return (r->method & (METHOD_GET | METHOD_HEAD)) != 0;
}

/* ---- the secret of cursors ------------------------------------------------------------------- */

static const char secret_name[] = "cursor";

static enum db_result read_secret(struct db_reader *r, unsigned char secret[DB_SECRET_BYTES])
{
    enum db_result result = db_reader_begin(r);
    if (result == DB_OK)
        result = db_secret_get(r, secret_name, secret);
    db_reader_end(r);
    return result;
}

/* One that is there already stays. */
static enum db_result make_secret(struct store *s)
{
    unsigned char random[DB_SECRET_BYTES];
    struct db_op *op = db_op_new(DB_OP_SECRET, sizeof secret_name + sizeof random);
    if (op == NULL || getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        db_op_free(op);
        return DB_NO_MEMORY;
    }
    db_op_copy(op, 0, DB_VALUE_TEXT, secret_name, sizeof secret_name - 1);
    db_op_copy(op, 1, DB_VALUE_BLOB, random, sizeof random);
    enum db_result result = store_apply(s, op);
    db_op_free(op);
    return result;
}

struct cursor_keys *apps_cursors(struct store *s)
{
    unsigned char secret[DB_SECRET_BYTES];
    struct db_error error;
    struct db_reader *r = NULL;
    struct cursor_keys *keys = malloc(sizeof *keys);
    enum db_result result = keys != NULL ? db_reader_open(&s->db, &r, &error) : DB_NO_MEMORY;
    if (result == DB_OK)
        result = read_secret(r, secret);
    if (result == DB_NONE)
        result = make_secret(s);
    if (result == DB_OK)
        result = read_secret(r, secret);
    db_reader_close(r);
    if (result == DB_OK) {
        cursor_keys_make(secret, keys);
        return keys;
    }
    log_line(LOG_WARN, "lists of apps have no pages but the first", "reason",
             db_result_text(result), NULL);
    free(keys);
    return NULL;
}

/* ---- rights ---------------------------------------------------------------------------------- */

/* What the app's rule makes of a judgement of its path. */
static enum access by_rule(enum app_access rule, enum access access, enum credential_kind kind)
{
    bool person = kind == CREDENTIAL_SESSION || kind == CREDENTIAL_BASIC;
    if (rule == APP_PUBLIC && (access == ACCESS_NO_CREDENTIAL || access == ACCESS_FORBIDDEN))
        return ACCESS_OK;
    if (rule == APP_USERS && access == ACCESS_FORBIDDEN && person)
        return ACCESS_OK;
    return access;
}

/* What changes something must not have been asked for by a page of another site, whoever asks:
 * an app may be open to anybody. A token is not sent unasked. */
static bool foreign(const struct call *c, enum credential_kind kind)
{
    return !is_read(c->req) && kind != CREDENTIAL_TOKEN && origin_of(c->req) == ORIGIN_OTHER;
}

static enum access judge(struct call *c, const struct app *app)
{
    bool read = is_read(c->req);
    enum access access = access_check(c, !read);
    enum credential_kind kind = access_who(c)->kind;
    access = by_rule(read ? app->read : app->write, access, kind);
    return access == ACCESS_OK && foreign(c, kind) ? ACCESS_ORIGIN : access;
}

enum access apps_judge_documents(struct call *c, const struct credential *who, struct str prefix)
{
    char path[1 + APPS_LEN + DB_APP_NAME_MAX + 1] = "/";
    const char *slash = prefix.n >= APPS_LEN - 1
                            ? memchr(prefix.p + APPS_LEN - 1, '/', prefix.n - (APPS_LEN - 1))
                            : NULL;
    size_t n = slash != NULL ? (size_t)(slash - prefix.p) + 1 : 0;
    bool broken;
    if (n == 0 || n >= sizeof path)
        return ACCESS_FORBIDDEN;
    memcpy(path + 1, prefix.p, n);
    struct str name = {path + APPS_LEN, n - APPS_LEN};
    const struct app *app = app_find(session_of(c), name, &broken);
    if (app == NULL)
        return ACCESS_FORBIDDEN;
    return by_rule(app->read, access_judge(c, who, (struct str){path, n + 1}, false), who->kind);
}

/* ---- the request ----------------------------------------------------------------------------- */

/* Which of a route's scripts a method runs. False: none has that method. */
static bool method_of(const struct req *r, enum app_method *method)
{
    switch (r->method) {
    case METHOD_GET:
    case METHOD_HEAD:
        *method = APP_GET;
        return true;
    case METHOD_POST:
        *method = APP_POST;
        return true;
    case METHOD_PUT:
        *method = APP_PUT;
        return true;
    case METHOD_DELETE:
        *method = APP_DELETE;
        return true;
    default:
        return false;
    }
}

static const char *const method_names[APP_METHODS] = {
    [APP_GET] = "GET", [APP_POST] = "POST", [APP_PUT] = "PUT", [APP_DELETE] = "DELETE"};

static bool has_method(const struct app_route *route, enum app_method method)
{
    return route->script[method] != NULL || (method == APP_GET && route->page != NULL);
}

static void wrong_method(struct call *c, const char *allow)
{
    problem_with(c, 405, "This address does not know that method; Allow says which.",
                 (struct problem_header){"Allow", allow});
}

static void wrong_method_of(struct call *c, const struct app_route *route)
{
    char allow[ALLOW_MAX] = "";
    int n = 0;
    for (enum app_method m = APP_GET; m < APP_METHODS; m++)
        if (has_method(route, m))
            n += snprintf(allow + n, sizeof allow - (size_t)n, "%s%s%s", n > 0 ? ", " : "",
                          method_names[m], m == APP_GET ? ", HEAD" : "");
    wrong_method(c, allow);
}

/* The name of the person who asks. False: the file cannot be read. */
static bool take_user(struct call *c, struct app_visit *v)
{
    const struct credential *who = access_who(c);
    struct db_reader *reader;
    struct db_session session;
    struct db_user user;
    enum access access;
    switch (who->kind) {
    case CREDENTIAL_SESSION:
        access = access_session(c, who->hash, &session);
        if (access == ACCESS_OK)
            v->user = (struct str){session.name, strlen(session.name)};
        return access != ACCESS_NO_STORE;
    case CREDENTIAL_BASIC:
        reader = session_reader(c);
        if (reader == NULL || db_user_get(reader, who->user, &user) != DB_OK)
            return false;
        v->user = (struct str){user.name, strlen(user.name)};
        return true;
    case CREDENTIAL_NONE:
    case CREDENTIAL_TOKEN:
    case CREDENTIAL_OPERATOR:
        break;
    }
    return true;
}

/* Which form the answer has. False: the query asks for one that there is not. */
static bool take_format(struct call *c, struct app_visit *v)
{
    struct buf *text = &session_of(c)->value;
    bool read = is_read(c->req), page = v->route->page != NULL;
    enum query_result found = QUERY_NONE;
    if (read && v->query.n > 0)
        found = query_find(v->query, "format", text);
    if (v->script == NULL) {
        v->format = APP_FORMAT_HTML;
        return true;
    }
    if (found == QUERY_NONE) {
        /* a browser that sends a form is led on to a page, whatever this route has */
        v->format = app_accept(c->req->accept, page || !read);
        return true;
    }
    struct str name = {(const char *)text->data, text->len};
    if (found == QUERY_OK && app_format_named(name, &v->format) &&
        (page || v->format != APP_FORMAT_HTML))
        return true;
    param_refuse(c, "format", page ? "is json, html, csv or ndjson" : "is json, csv or ndjson");
    return false;
}

/* The result that ?result= names, in the desk's memory. */
static bool take_result(struct call *c, struct app_visit *v)
{
    struct buf *text = &session_of(c)->value;
    if (v->query.n == 0 || (v->format != APP_FORMAT_CSV && v->format != APP_FORMAT_LINES))
        return true;
    switch (query_find(v->query, "result", text)) {
    case QUERY_NONE:
        return true;
    case QUERY_OK:
        v->result = (struct str){(const char *)text->data, text->len};
        return true;
    case QUERY_BAD:
    case QUERY_TWICE:
        break;
    }
    param_refuse(c, "result", "is one name of a result");
    return false;
}

static enum verdict visit(struct call *c, struct app_visit *v, size_t base_len)
{
    app_count(&session_of(c)->store->app_stats.requests);
    if (!take_format(c, v))
        return REPLY;
    if (!take_user(c, v)) {
        problem_result(c, DB_BROKEN, 0);
        return REPLY;
    }
    if (!app_visit_start(c, v, base_len))
        return FAIL;
    if (!is_read(c->req))
        return app_post(c, v, base_len);
    if (!app_params_take(c, v, NULL) || !take_result(c, v))
        return REPLY;
    return app_get(c, v, NULL);
}

static bool refused(struct call *c, const struct app *app, enum verdict *verdict)
{
    enum access access = judge(c, app);
    *verdict = REPLY;
    if (access == ACCESS_VERIFY) {
        *verdict = basic_verify(c);
        return true;
    }
    return dispatch_refused(c, access);
}

/* What every app has besides its routes. False: it is none of that. */
static bool served(struct call *c, const struct app *app, struct str path, enum verdict *verdict)
{
    char prefix[APPS_LEN + DB_APP_NAME_MAX + 1];
    bool file = app_static_is(path), feed = str_eq(path, STR_LIT("_changes"));
    if (!file && !feed)
        return false;
    *verdict = REPLY;
    if (!is_read(c->req)) {
        wrong_method(c, "GET, HEAD");
        return true;
    }
    if (refused(c, app, verdict))
        return true;
    if (file) {
        *verdict = app_static(c, app, path);
        return true;
    }
    size_t n = strlen(app->name);
    memcpy(prefix, "apps/", APPS_LEN - 1);
    memcpy(prefix + APPS_LEN - 1, app->name, n);
    prefix[APPS_LEN - 1 + n] = '/';
    *verdict = changes_of_app(c, (struct str){prefix, APPS_LEN + n});
    return true;
}

enum verdict apps_serve(struct call *c, const struct app *app, size_t base_len)
{
    const struct req *req = c->req;
    const struct store *store = session_of(c)->store;
    struct app_visit v;
    enum app_method method;
    enum verdict verdict;
    struct str path = {req->path.p + base_len, req->path.n - base_len};
    if (served(c, app, path, &verdict))
        return verdict;
    v.segments = 0;
    v.route = app_match(app, path, v.segment, &v.segments);
    if (v.route == NULL) {
        problem(c, 404, nothing);
        return REPLY;
    }
    if (!method_of(req, &method) || !has_method(v.route, method)) {
        wrong_method_of(c, v.route);
        return REPLY;
    }
    if (refused(c, app, &verdict))
        return verdict;
    v.app = app;
    v.script = v.route->script[method];
    v.cursors = store->cursors;
    v.spool = store->conf->spool;
    v.https = origin_https(req);
    v.person = false;
    v.method = method_names[method];
    v.now_s = c->now_s;
    v.mount = req->mount;
    v.path = req->path;
    v.query = req->query;
    v.cookie = req->cookie;
    v.request_id = req->request_id;
    v.user = v.result = v.error = (struct str){NULL, 0};
    v.status = 0;
    v.input = NULL;
    return visit(c, &v, base_len);
}

/* /apps/NAME: the app is one slash further. */
static enum verdict add_slash(struct call *c)
{
    struct buf *link = &session_of(c)->link;
    struct str query = c->req->query;
    if (!is_read(c->req)) {
        wrong_method(c, "GET, HEAD");
        return REPLY;
    }
    link->len = 0;
    if (!path_encode(link, c->req->mount) || !path_encode(link, c->req->path) ||
        !buf_add(link, "/", 1, RESP_HEAD_MAX) ||
        (query.n > 0 && (!buf_add(link, "?", 1, RESP_HEAD_MAX) ||
                         !buf_add(link, query.p, query.n, RESP_HEAD_MAX))))
        return FAIL;
    resp_start(c->resp, 308);
    resp_header(c->resp, "Location", (struct str){(const char *)link->data, link->len});
    resp_header(c->resp, "Cache-Control", STR_LIT("no-cache"));
    resp_body(c->resp, NULL, 0);
    return REPLY;
}

enum verdict apps(struct call *c)
{
    struct str rest = {c->req->path.p + APPS_LEN, c->req->path.n - APPS_LEN};
    const char *slash = rest.n > 0 ? memchr(rest.p, '/', rest.n) : NULL;
    struct str name = {rest.p, slash != NULL ? (size_t)(slash - rest.p) : rest.n};
    bool broken = false;
    const struct app *app = app_find(session_of(c), name, &broken);
    if (app == NULL || app->grant.console) {
        if (broken)
            problem(c, 500, "This app does not compile. Its owner finds what is wrong in the "
                            "server's log, and by `hanji app check`.");
        else
            problem(c, 404, nothing);
        return REPLY;
    }
    return slash != NULL ? apps_serve(c, app, APPS_LEN + name.n + 1) : add_slash(c);
}
