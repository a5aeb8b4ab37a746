#include "handlers/ask.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "fcgi/path.h"
#include "handlers/apps.h"
#include "handlers/dispatch.h"
#include "handlers/param.h"
#include "handlers/problem.h"
#include "handlers/store.h"

static const char docs[] = "/docs/";
enum { DOCS_LEN = sizeof docs - 1 };

static bool refuse(struct call *c, const char *what, const char *name, const char *rule)
{
    char detail[160];
    snprintf(detail, sizeof detail, "The %s %s %s.", what, name, rule);
    problem(c, 400, detail);
    return false;
}

static bool take_since(struct call *c, struct ask *ask)
{
    struct buf *text = &session_of(c)->value;
    struct str last = c->req->last_event_id;
    enum query_result found = query_find(c->req->query, "since", text);
    struct str since = {(char *)text->data, text->len};
    ask->now = found == QUERY_OK && str_eq(since, STR_LIT("now"));
    if (found != QUERY_NONE && !ask->now &&
        !(found == QUERY_OK && param_digits(since, INT64_MAX, &ask->since)))
        return refuse(c, "query parameter", "since", "is one sequence number, or now");
    if (!ask->stream || last.n == 0)
        return true;
    ask->now = false; /* a client that comes back knows better than its address */
    return param_digits(last, INT64_MAX, &ask->since) ||
           refuse(c, "header", "Last-Event-ID", "is not one that was sent with an event");
}

/* It must be possible that a key begins so. */
static bool prefix_ok(struct str prefix)
{
    char path[DOCS_LEN + DB_KEY_MAX + 1];
    if (prefix.n > DB_KEY_MAX)
        return false;
    memcpy(path, docs, DOCS_LEN);
    if (prefix.n > 0)
        memcpy(path + DOCS_LEN, prefix.p, prefix.n);
    path[DOCS_LEN + prefix.n] = 'x'; /* its last segment need not be whole yet */
    return path_ok((struct str){path, DOCS_LEN + prefix.n + 1});
}

static bool take_prefix(struct call *c, struct ask *ask)
{
    struct buf *text = &session_of(c)->value;
    enum query_result found = query_find(c->req->query, "prefix", text);
    struct str prefix = {(char *)text->data, text->len};
    if (found == QUERY_NONE)
        return true;
    if (found != QUERY_OK || !prefix_ok(prefix))
        return refuse(c, "query parameter", "prefix", "is one beginning of a document's key");
    ask->prefix_len = prefix.n;
    if (prefix.n > 0)
        memcpy(ask->prefix, prefix.p, prefix.n);
    return true;
}

/* True when one of the media ranges is text/event-stream by name, and not refused by ;q=0. */
static bool wants_stream(struct str accept)
{
    static const char type[] = "text/event-stream";
    size_t n = sizeof type - 1;
    for (size_t at = 0; at < accept.n;) {
        const char *p = accept.p + at;
        const char *comma = memchr(p, ',', accept.n - at);
        size_t len = comma ? (size_t)(comma - p) : accept.n - at;
        at += len + 1;
        for (; len > 0 && (*p == ' ' || *p == '\t'); p++)
            len--;
        if (len < n || strncasecmp(p, type, n) != 0 || (len > n && !strchr(" \t;", p[n])))
            continue;
        const char *q = memmem(p, len, "q=0", 3);
        return q == NULL || strspn(q + 3, ".0") < strcspn(q + 3, " \t,;");
    }
    return false;
}

bool ask_take(struct call *c, struct ask *ask)
{
    *ask = (struct ask){.limit = ASK_LIMIT_DEFAULT};
    ask->stream = wants_stream(c->req->accept);
    return take_since(c, ask) && param_number(c, "limit", ASK_LIMIT_MAX, &ask->limit) &&
           param_number(c, "wait", ASK_WAIT_MAX_S, &ask->wait_s) && take_prefix(c, ask);
}

enum access ask_judge(struct call *c, const struct credential *who, struct str prefix, bool of_app)
{
    if (of_app)
        return apps_judge_documents(c, who, prefix);
    char path[DOCS_LEN + DB_KEY_MAX];
    while (prefix.n > 0 && prefix.p[prefix.n - 1] != '/')
        prefix.n--;
    memcpy(path, docs, DOCS_LEN);
    if (prefix.n > 0)
        memcpy(path + DOCS_LEN, prefix.p, prefix.n);
    return access_judge(c, who, (struct str){path, DOCS_LEN + prefix.n}, false);
}

bool ask_refused(struct call *c, enum access access)
{
    if (access != ACCESS_FORBIDDEN)
        return dispatch_refused(c, access);
    problem(c, 403, "This credential does not cover all that was asked for. Ask for less: give as "
                    "prefix a collection that it may read, with its slash.");
    return true;
}

bool ask_bounds(struct call *c, struct ask *ask, struct db_change_bounds *bounds)
{
    char detail[240];
    struct db_reader *reader = session_reader(c);
    enum db_result result = reader ? db_change_bounds(reader, bounds) : DB_BROKEN;
    if (result != DB_OK) {
        problem_result(c, result, 0);
        return false;
    }
    if (ask->now)
        ask->since = bounds->last;
    if (ask->since >= bounds->horizon && ask->since <= bounds->last)
        return true;
    snprintf(detail, sizeof detail,
             "The feed cannot be continued from %llu: the database was restored, or is another "
             "one. List the documents again, then follow the feed from since=%llu.",
             (unsigned long long)ask->since, (unsigned long long)bounds->last);
    problem(c, 410, detail);
    return false;
}
