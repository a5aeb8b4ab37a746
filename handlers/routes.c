#include "handlers/routes.h"

#include <string.h>

#include "handlers/apps.h"
#include "handlers/auth.h"
#include "handlers/batch.h"
#include "handlers/changes.h"
#include "handlers/console.h"
#include "handlers/control.h"
#include "handlers/docs.h"
#include "handlers/inbox.h"
#include "handlers/keys.h"
#include "handlers/sends.h"
#include "handlers/snapshot.h"
#include "handlers/status.h"

#define READS (METHOD_GET | METHOD_HEAD)
#define ANY_METHOD ~0u

static const struct route routes[] = {
    {"/docs/", ROUTE_ITEM, READS | METHOD_PUT | METHOD_DELETE | METHOD_PATCH, NEED_RIGHTS,
     docs_item},
    {"/docs/", ROUTE_COLLECTION, READS | METHOD_POST, NEED_RIGHTS, docs_collection},
    {"/apps/", ROUTE_BELOW, READS | METHOD_PUT | METHOD_DELETE | METHOD_POST, NEED_NOTHING, apps},
    {"/console/", ROUTE_ITEM, READS | METHOD_POST, NEED_NOTHING, console},
    {"/console/", ROUTE_EXACT, READS, NEED_NOTHING, console},
    {"/console", ROUTE_EXACT, READS, NEED_NOTHING, console},
    {"/changes", ROUTE_EXACT, READS, NEED_EACH_READ, changes},
    {"/batch", ROUTE_EXACT, METHOD_POST, NEED_EACH_WRITE, batch},
    {"/snapshot", ROUTE_EXACT, METHOD_POST, NEED_EACH_READ, snapshot},
    {"/keys", ROUTE_EXACT, READS, NEED_NOTHING, keys_card},
    {"/inbox/", ROUTE_EXACT, READS, NEED_READ, inbox_list},
    {"/inbox/", ROUTE_ITEM, READS | METHOD_PUT | METHOD_DELETE | METHOD_POST, NEED_NOTHING, inbox},
    {"/sends/", ROUTE_EXACT, READS, NEED_READ, sends_lines},
    {"/sends/*", ROUTE_SHAPE, READS | METHOD_PUT | METHOD_DELETE | METHOD_POST, NEED_EACH,
     sends_line},
    {"/sends/*/retry", ROUTE_SHAPE, METHOD_POST, NEED_EACH_WRITE, sends_line_verb},
    {"/sends/*/pause", ROUTE_SHAPE, METHOD_POST, NEED_EACH_WRITE, sends_line_verb},
    {"/sends/*/resume", ROUTE_SHAPE, METHOD_POST, NEED_EACH_WRITE, sends_line_verb},
    {"/sends/*/replay", ROUTE_SHAPE, METHOD_POST, NEED_EACH_WRITE, sends_line_verb},
    {"/sends/*/*", ROUTE_SHAPE, READS, NEED_EACH_READ, sends_message},
    {"/sends/*/*/retry", ROUTE_SHAPE, METHOD_POST, NEED_EACH_WRITE, sends_message_verb},
    {"/sends/*/*/skip", ROUTE_SHAPE, METHOD_POST, NEED_EACH_WRITE, sends_message_verb},
    {"/health", ROUTE_EXACT, READS, NEED_NOTHING, status_health},
    {"/status", ROUTE_EXACT, READS, NEED_READ, status_json},
    {"/metrics", ROUTE_EXACT, READS, NEED_READ, status_metrics},
    {"/auth/login", ROUTE_EXACT, READS | METHOD_POST, NEED_NOTHING, auth_login},
    {"/auth/logout", ROUTE_EXACT, METHOD_POST, NEED_NOTHING, auth_logout},
    {"/auth/session", ROUTE_EXACT, READS, NEED_NOTHING, auth_session},
    {"/auth/check", ROUTE_EXACT, ANY_METHOD, NEED_NOTHING, auth_check},
    {"/control/op", ROUTE_EXACT, METHOD_POST, NEED_OPERATOR, control_op},
};

/* Segment by segment; each '*' of the shape stands for one that is not empty. */
static bool has_shape(struct str path, const char *shape)
{
    size_t at = 0;
    for (; *shape != 0; shape++) {
        size_t from = at;
        if (*shape == '*') {
            while (at < path.n && path.p[at] != '/')
                at++;
            if (at == from)
                return false;
        } else if (at == path.n || path.p[at++] != *shape) {
            return false;
        }
    }
    return at == path.n;
}

static bool matches(const struct route *r, struct str path)
{
    struct str base = {r->path, strlen(r->path)};
    if (r->match == ROUTE_SHAPE)
        return has_shape(path, r->path);
    if (!str_starts(path, base))
        return false;
    switch (r->match) {
    case ROUTE_EXACT:
        return path.n == base.n;
    case ROUTE_ITEM:
        return path.n > base.n && path.p[path.n - 1] != '/';
    case ROUTE_COLLECTION:
        return path.p[path.n - 1] == '/';
    case ROUTE_BELOW:
        return path.n > base.n;
    case ROUTE_SHAPE:
        break;
    }
    return false;
}

const struct route *route_find(struct str path)
{
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (matches(&routes[i], path))
            return &routes[i];
    return NULL;
}
