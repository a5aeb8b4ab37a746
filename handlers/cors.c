#include "handlers/cors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fcgi/conf.h"
#include "handlers/dispatch.h"

enum { ORIGINS_MAX = 64, ORIGIN_MAX = 180, LINES_MAX = 512 };

struct allowed {
    struct str origin; /* points into lines; "*": any */
    size_t bytes;
    char lines[LINES_MAX];
};

struct cors {
    unsigned count;
    struct allowed allowed[];
};

/* What scripts may see besides the headers that they always may. */
#define EXPOSED                                                                                    \
    "Access-Control-Expose-Headers: ETag, Location, Link, Content-Range, Accept-Ranges, "          \
    "Retry-After, Allow, Accept-Patch, Content-Location, Idempotency-Replayed\r\n"
static const char origin_header[] = "Access-Control-Allow-Origin: ";

/* scheme://host[:port] as browsers write it (RFC 6454 6.1), or "*". */
static bool origin_ok(struct str s)
{
    const char *colon = memmem(s.p, s.n, "://", 3);
    if (s.n == 1 && s.p[0] == '*')
        return true;
    if (colon == NULL || colon == s.p || s.n > ORIGIN_MAX)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char ch = (unsigned char)s.p[i];
        bool scheme = s.p + i < colon;
        if (ch <= 0x20 || ch >= 0x7f || (ch >= 'A' && ch <= 'Z') || strchr("\"'\\,;*?#@", ch) ||
            (ch == '/' && (scheme || s.p + i > colon + 2)))
            return false;
    }
    return s.p + s.n > colon + 3;
}

static void allow(struct allowed *a, struct str origin)
{
    bool any = origin.n == 1 && origin.p[0] == '*';
    int n = snprintf(a->lines, sizeof a->lines, "%s%.*s\r\n%s%s", origin_header, (int)origin.n,
                     origin.p, any ? "" : "Vary: Origin\r\n", EXPOSED);
    a->bytes = n > 0 ? (size_t)n : 0;
    a->origin = (struct str){a->lines + sizeof origin_header - 1, origin.n};
}

struct cors *cors_new(const char *list)
{
    unsigned most = 1;
    for (const char *p = list; *p != 0; p++)
        most += *p == ',';
    struct cors *cors = most <= ORIGINS_MAX
                            ? calloc(1, sizeof *cors + most * sizeof cors->allowed[0])
                            : NULL;
    while (cors != NULL && *list != 0) {
        struct str one = conf_next(&list);
        if (one.n > 0 && !origin_ok(one)) {
            free(cors);
            return NULL;
        }
        if (one.n > 0)
            allow(&cors->allowed[cors->count++], one);
    }
    return cors;
}

void cors_free(struct cors *cors)
{
    free(cors);
}

/* For those who get no more: a cache must not give their answer to a script that may have it. */
static const char vary[] = "Vary: Origin\r\n";

void cors_apply(const struct cors *cors, struct call *c)
{
    struct str origin = c->req->origin, lines = {vary, cors->count > 0 ? sizeof vary - 1 : 0};
    for (unsigned i = 0; i < cors->count; i++) {
        const struct allowed *a = &cors->allowed[i];
        bool any = str_eq(a->origin, STR_LIT("*"));
        if (any)
            lines = (struct str){NULL, 0};
        if (origin.n > 0 && (any || str_eq(a->origin, origin))) {
            lines = (struct str){a->lines, a->bytes};
            break;
        }
    }
    resp_extra(c->resp, lines);
}

bool cors_preflight(struct call *c, const struct route *route)
{
    static const char lines[] =
        "Access-Control-Allow-Headers: Authorization, Content-Type, If-Match, If-None-Match, "
        "If-Modified-Since, If-Unmodified-Since, If-Range, Range, Idempotency-Key, "
        "Last-Event-ID\r\nAccess-Control-Max-Age: 600\r\n";
    char methods[DISPATCH_METHODS_MAX];
    if (c->resp->extra.n < sizeof vary || c->req->requested_method.n == 0 ||
        !str_eq(c->req->method_name, STR_LIT("OPTIONS")))
        return false;
    if (c->req->check_uri.p != NULL)
        return false; /* nginx asks about another part of the site: any 2xx would let it through */
    resp_start(c->resp, 204);
    resp_header(c->resp, "Access-Control-Allow-Methods",
                (struct str){methods, dispatch_methods(route, methods)});
    resp_fixed(c->resp, lines, sizeof lines - 1);
    resp_no_body(c->resp);
    return true;
}
