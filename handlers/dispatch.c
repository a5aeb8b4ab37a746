#include "handlers/dispatch.h"

#include <stdio.h>

#include "handlers/access.h"
#include "handlers/basic.h"
#include "handlers/cors.h"
#include "handlers/problem.h"
#include "handlers/routes.h"
#include "handlers/store.h"

static void answer_fault(struct call *c)
{
    const struct req *req = c->req;
    char detail[128];
    if (req->fault_status == 413) {
        snprintf(detail, sizeof detail, "The body is larger than the limit of %llu bytes.",
                 (unsigned long long)session_of(c)->store->conf->max_body_bytes);
        problem(c, 413, detail);
    } else if (req->fault_status == 503) {
        problem_with(c, 503, req->fault, (struct problem_header){"Retry-After", "1"});
    } else {
        problem(c, req->fault_status, req->fault);
    }
}

size_t dispatch_methods(const struct route *route, char out[DISPATCH_METHODS_MAX])
{
    static const struct {
        enum method method;
        const char *name;
    } names[] = {
        {METHOD_GET, "GET"},       {METHOD_HEAD, "HEAD"}, {METHOD_PUT, "PUT"},
        {METHOD_DELETE, "DELETE"}, {METHOD_POST, "POST"}, {METHOD_PATCH, "PATCH"},
    };
    size_t len = 0;
    out[0] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (route->methods & names[i].method)
            len += (size_t)snprintf(out + len, DISPATCH_METHODS_MAX - len, "%s%s",
                                    len > 0 ? ", " : "", names[i].name);
    return len;
}

static void answer_method(struct call *c, const struct route *route)
{
    static const char only[] = "This address knows these methods only: ";
    char allow[DISPATCH_METHODS_MAX], detail[sizeof only + sizeof allow];
    dispatch_methods(route, allow);
    snprintf(detail, sizeof detail, "%s%s.", only, allow);
    problem_with(c, 405, detail, (struct problem_header){"Allow", allow});
}

/* How to authenticate here. Basic comes first where it is taken: programs that know nothing else
 * may not look further. */
#define BASIC "Basic realm=\"hanji\", charset=\"UTF-8\", "
#define BEARER "Bearer realm=\"hanji\""

static void unauthorized(struct call *c, bool bad)
{
    enum credential_kind kind = session_of(c)->who.kind;
    bool basic = c->req != NULL && session_of(c)->offers_basic;
    const char *detail = !bad ? "Log in, or send a token: Authorization: Bearer hanji_..."
                         : kind != CREDENTIAL_BASIC ? "This token is unknown, revoked or expired."
                         : basic ? "This name and password do not belong together."
                                 : "A name and a password (HTTP Basic) are not taken here.";
    const char *how = bad && kind == CREDENTIAL_TOKEN
                          ? (basic ? BASIC BEARER ", error=\"invalid_token\""
                                   : BEARER ", error=\"invalid_token\"")
                          : (basic ? BASIC BEARER : BEARER);
    problem_with(c, 401, detail, (struct problem_header){"WWW-Authenticate", how});
}

bool dispatch_refused(struct call *c, enum access access)
{
    switch (access) {
    case ACCESS_OK:
        return false;
    case ACCESS_NO_CREDENTIAL:
    case ACCESS_BAD_CREDENTIAL:
        unauthorized(c, access == ACCESS_BAD_CREDENTIAL);
        return true;
    case ACCESS_FORBIDDEN:
        problem(c, 403, "This credential does not cover that path.");
        return true;
    case ACCESS_ORIGIN:
        problem(c, 403, "It is not clear that a page of this site asked for this: neither "
                        "Sec-Fetch-Site nor Origin nor Referer says so.");
        return true;
    case ACCESS_VERIFY:
    case ACCESS_NO_STORE:
        break;
    }
    problem_result(c, DB_BROKEN, 0);
    return true;
}

/* For a request that names its paths itself: not covering this one is no fault. */
static enum access judge_credential(struct call *c, bool write)
{
    enum access access = access_check(c, write);
    bool later = access == ACCESS_FORBIDDEN || (access == ACCESS_NO_CREDENTIAL && !write);
    return later ? ACCESS_OK : access;
}

static enum access judge(struct call *c, const struct route *route)
{
    bool write = (c->req->method & (METHOD_GET | METHOD_HEAD)) == 0;
    switch (route->need) {
    case NEED_NOTHING:
        return ACCESS_OK;
    case NEED_READ:
        return access_check(c, false);
    case NEED_RIGHTS:
        return access_check(c, write);
    case NEED_EACH_READ:
        return judge_credential(c, false);
    case NEED_EACH_WRITE:
        return judge_credential(c, true);
    case NEED_EACH:
        return judge_credential(c, write);
    case NEED_OPERATOR:
        break;
    }
    return ACCESS_OK;
}

enum verdict dispatch(struct call *c)
{
    struct session *s = session_of(c);
    s->mount = c->req->mount;
    s->who = (struct credential){.kind = CREDENTIAL_NONE}; /* not that of the call before */
    s->offers_basic = false;
    cors_apply(s->store->cors, c);
    if (c->req->fault_status != 0) {
        answer_fault(c);
        return REPLY;
    }
    const struct route *route = route_find(c->req->path);
    if (route == NULL || (route->need == NEED_OPERATOR && !c->req->operator_)) {
        problem(c, 404, "There is nothing at this address.");
        return REPLY;
    }
    if (cors_preflight(c, route))
        return REPLY;
    if (!(route->methods & c->req->method) && route->match != ROUTE_BELOW) {
        answer_method(c, route);
        return REPLY;
    }
    enum access access = judge(c, route);
    if (access == ACCESS_VERIFY)
        return basic_verify(c);
    if (dispatch_refused(c, access))
        return REPLY;
    return dispatch_settle(c, route->handler(c));
}

enum verdict dispatch_settle(struct call *c, enum verdict verdict)
{
    if (verdict == FAIL || (verdict == REPLY && c->resp->no_memory))
        problem_result(c, DB_NO_MEMORY, 0);
    else if (verdict == REPLY && c->resp->failed)
        problem(c, 500, "The answer could not be built: its head is broken or too long.");
    else
        return verdict;
    return REPLY;
}
