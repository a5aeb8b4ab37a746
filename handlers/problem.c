#include "handlers/problem.h"

#include <stdio.h>
#include <string.h>

#include "fcgi/log.h"
#include "fcgi/path.h"
#include "handlers/auth.h"
#include "handlers/html.h"
#include "handlers/json.h"
#include "handlers/store.h"

enum { LINK_MAX_BYTES = 65536 };

struct about {
    struct str request_id;
    bool browser;
};

static bool accepts(struct str accept, const char *type)
{
    return accept.n > 0 && memmem(accept.p, accept.n, type, strlen(type)) != NULL;
}

bool problem_for_browser(const struct req *req)
{
    return accepts(req->accept, "text/html") && !accepts(req->accept, "json");
}

/* A request that was parked is known by what its park remembers. */
static struct about about(const struct call *c)
{
    if (c->req != NULL)
        return (struct about){c->req->request_id, problem_for_browser(c->req)};
    return (struct about){{c->park->request_id, strlen(c->park->request_id)}, c->park->browser};
}

/* What is said. */
struct saying {
    unsigned status;
    const char *detail;
    struct str request_id;
    const struct problem_part *part; /* NULL: the whole request */
    const struct problem_cause *cause; /* NULL: it has no code */
    struct str login; /* a link to where one can log in, or nothing */
};

static void as_json(struct json *j, const struct saying *s)
{
    json_raw(j, "{\"type\":\"about:blank\",\"title\":");
    json_string(j, (struct str){resp_reason(s->status), strlen(resp_reason(s->status))});
    json_raw(j, ",\"status\":");
    json_u64(j, s->status);
    json_raw(j, ",\"detail\":");
    json_string(j, (struct str){s->detail, strlen(s->detail)});
    json_raw(j, ",\"request_id\":");
    json_string(j, s->request_id);
    if (s->cause != NULL) {
        json_raw(j, ",\"code\":");
        json_string(j, (struct str){s->cause->code, strlen(s->cause->code)});
    }
    if (s->cause != NULL && s->cause->expected > 0) {
        json_raw(j, ",\"expected\":");
        json_u64(j, s->cause->expected);
    }
    if (s->part != NULL) {
        json_raw(j, ",\"index\":");
        json_u64(j, s->part->index);
    }
    if (s->part != NULL && s->part->key.n > 0) {
        json_raw(j, ",\"key\":");
        json_string(j, s->part->key);
    }
    json_raw(j, "}\n");
}

static void as_page(struct json *j, const struct saying *s)
{
    const char *title = resp_reason(s->status);
    json_raw(j, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
                "<meta name=\"viewport\" content=\"width=device-width\">"
                "<meta name=\"color-scheme\" content=\"light dark\"><title>");
    json_raw(j, title);
    json_raw(j, "</title><style>body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;"
                "margin:15vh auto;padding:0 1rem;color:#222;background:#fdfcf8}"
                "small{color:#666}a{display:inline-block;padding:.75rem 0}"
                "@media(prefers-color-scheme:dark){"
                "body{color:#ece7dc;background:#1d1b18}a{color:#9fd3c3}small{color:#a8a196}}"
                "</style><main><h1>");
    json_u64(j, s->status);
    json_raw(j, " ");
    json_raw(j, title);
    json_raw(j, "</h1><p>");
    html_text(j, (struct str){s->detail, strlen(s->detail)});
    json_raw(j, "</p>");
    if (s->login.n > 0) {
        json_raw(j, "<p><a href=\"");
        html_text(j, s->login);
        json_raw(j, "\">Log in</a></p>");
    }
    if (s->request_id.n > 0) {
        json_raw(j, "<p><small>Request ");
        html_text(j, s->request_id);
        json_raw(j, "</small></p>");
    }
    json_raw(j, "</main></html>\n");
}

/* Where a person may log in and then come back to what was asked for. */
static struct str login_link(struct call *c)
{
    static const char login[] = "/auth/login", with_next[] = "/auth/login?next=";
    struct session *s = session_of(c);
    struct buf *next = &s->value, *link = &s->link;
    struct str query = c->req->query;
    next->len = link->len = 0;
    bool ok = path_encode(next, c->req->mount) && path_encode(next, c->req->path) &&
              (query.n == 0 || (buf_add(next, "?", 1, LINK_MAX_BYTES) &&
                                buf_add(next, query.p, query.n, LINK_MAX_BYTES)));
    struct str back = {(const char *)next->data, next->len};
    ok = ok && path_encode(link, c->req->mount);
    if (ok && auth_next_ok(back))
        ok = buf_add(link, with_next, sizeof with_next - 1, LINK_MAX_BYTES) &&
             path_encode(link, back);
    else if (ok)
        ok = buf_add(link, login, sizeof login - 1, LINK_MAX_BYTES);
    return ok ? (struct str){(const char *)link->data, link->len} : STR_LIT("");
}

static bool printable(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x21 || s.p[i] > 0x7e)
            return false;
    return true;
}

/* Says it; the request's id is filled in. */
static void answer(struct call *c, struct saying s, struct problem_header header)
{
    struct about a = about(c);
    struct buf *text = &session_of(c)->text;
    struct json j = json_start(text);
    unsigned status = s.status;
    if (!printable(a.request_id))
        a.request_id = STR_LIT("");
    s.request_id = a.request_id;
    if (status == 401 && a.browser && c->req != NULL && c->req->method == METHOD_GET)
        s.login = login_link(c);
    if (a.browser)
        as_page(&j, &s);
    else
        as_json(&j, &s);
    if (status >= 500)
        log_line(status == 500 ? LOG_WARN : LOG_DEBUG, s.detail, "status", resp_reason(status),
                 "request", a.request_id.p, "method", c->req ? c->req->method_name.p : "", "path",
                 c->req ? c->req->path.p : "", NULL);
    resp_reset(c->resp);
    resp_start(c->resp, status);
    resp_header(c->resp, "Content-Type",
                a.browser ? STR_LIT("text/html; charset=utf-8")
                          : STR_LIT("application/problem+json"));
    resp_header(c->resp, "Cache-Control", STR_LIT("no-store"));
    if (header.name != NULL)
        resp_header(c->resp, header.name, (struct str){header.value, strlen(header.value)});
    resp_body(c->resp, text->data, j.failed ? 0 : text->len);
}

void problem_with(struct call *c, unsigned status, const char *detail,
                  struct problem_header header)
{
    answer(c, (struct saying){.status = status, .detail = detail}, header);
}

void problem(struct call *c, unsigned status, const char *detail)
{
    answer(c, (struct saying){.status = status, .detail = detail},
           (struct problem_header){NULL, NULL});
}

void problem_at(struct call *c, unsigned status, const char *detail,
                const struct problem_part *part)
{
    answer(c, (struct saying){.status = status, .detail = detail, .part = part},
           (struct problem_header){NULL, NULL});
}

void problem_coded(struct call *c, unsigned status, const char *detail,
                   const struct problem_cause *cause)
{
    answer(c, (struct saying){.status = status, .detail = detail, .cause = cause}, cause->header);
}

static void wal_limit(struct call *c, int64_t pid)
{
    char detail[160] = "A reader keeps an old state of the database open; writes wait for it.";
    if (pid > 0)
        snprintf(detail, sizeof detail,
                 "Process %lld keeps an old state of the database open; writes wait for it.",
                 (long long)pid);
    problem_with(c, 503, detail, (struct problem_header){"Retry-After", "5"});
}

void problem_result(struct call *c, enum db_result result, int64_t pid)
{
    struct problem_header retry = {"Retry-After", "1"};
    switch (result) {
    case DB_NONE:
        problem(c, 404, "There is nothing of that name.");
        return;
    case DB_PRECONDITION:
        problem(c, 412, "The document is not in the state that the request requires.");
        return;
    case DB_INVALID:
        problem(c, 400, "The body is not what its Content-Type says.");
        return;
    case DB_EXISTS:
        problem(c, 409, "There is one of that name already.");
        return;
    case DB_CONFLICT:
        problem(c, 409, "The document is not one that this can be done with.");
        return;
    case DB_TOO_LARGE:
        problem(c, 413, "What would come of this is larger than the limit.");
        return;
    case DB_REUSED:
        problem(c, 422, "This Idempotency-Key was used for another request.");
        return;
    case DB_OVERLOAD:
        problem_with(c, 503, "Too many writes are waiting; try again shortly.", retry);
        return;
    case DB_BUSY:
        problem_with(c, 503, "Another program holds the database; try again shortly.", retry);
        return;
    case DB_NO_MEMORY:
        problem_with(c, 503, "Memory is short; try again shortly.", retry);
        return;
    case DB_TIMEOUT:
        problem_with(c, 503, "It took too long and was given up; ask for less.", retry);
        return;
    case DB_WAL_LIMIT:
        wal_limit(c, pid);
        return;
    case DB_FULL:
        problem(c, 507, "The disk is full. Nothing was changed; reading goes on.");
        return;
    case DB_OK:
    case DB_BROKEN:
    case DB_REFUSED:
        break;
    }
    problem(c, 500, "The database cannot be read or written; the server's log says more.");
}
