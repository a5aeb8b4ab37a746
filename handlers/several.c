#include "handlers/several.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fcgi/spool.h"
#include "handlers/access.h"
#include "handlers/content.h"
#include "handlers/dispatch.h"
#include "handlers/docs.h"
#include "handlers/json_check.h"
#include "handlers/json_read.h"
#include "handlers/store.h"

enum { LARGE_BYTES = 65536 };

bool several_take(struct call *c, struct several *s)
{
    size_t n;
    *s = (struct several){.fd = -1};
    if (!content_is_json(c->req->content_type)) {
        problem(c, 415, "The body must be sent as Content-Type: application/json.");
        return false;
    }
    if (c->req->frame->body_bytes > SEVERAL_BODY_MAX) {
        problem(c, 413, "The body of such a request has at most 4 MiB.");
        return false;
    }
    s->text.n = (size_t)c->req->frame->body_bytes;
    s->fd = frame_take_spool(c->req->frame);
    if (s->fd < 0)
        s->bytes = frame_take_body(c->req->frame, &n);
    return true;
}

bool several_large(const struct several *s)
{
    return s->text.n > LARGE_BYTES;
}

enum several_state several_read(struct several *s)
{
    if (s->fd >= 0) {
        s->bytes = malloc(s->text.n);
        if (s->bytes == NULL || !spool_read(s->fd, s->bytes, s->text.n, 0))
            return SEVERAL_NO_MEMORY;
    }
    s->text.p = (const char *)s->bytes;
    if (!json_check_all(s->bytes, s->text.n, &s->wrong))
        return SEVERAL_NOT_JSON;
    s->value = json_value(s->text);
    return SEVERAL_OK;
}

void several_fault(struct call *c, const struct several *s, enum several_state state)
{
    char detail[96];
    if (state == SEVERAL_NO_MEMORY) {
        problem_result(c, DB_NO_MEMORY, 0);
        return;
    }
    snprintf(detail, sizeof detail, "The body is not JSON: what stands at byte %llu cannot be.",
             (unsigned long long)s->wrong);
    problem(c, 400, detail);
}

void several_free(struct several *s)
{
    if (s->fd >= 0)
        close(s->fd);
    free(s->bytes);
    *s = (struct several){.fd = -1};
}

bool several_allowed(struct call *c, const struct problem_part *part, bool write)
{
    struct buf *path = &session_of(c)->link;
    if (!docs_key_ok(path, part->key)) {
        problem_at(c, 400, "This is not the key of a document.", part);
        return false;
    }
    struct str at = {(const char *)path->data, path->len};
    enum access access = access_judge(c, access_who(c), at, write);
    if (access != ACCESS_FORBIDDEN)
        return !dispatch_refused(c, access);
    problem_at(c, 403, "This credential does not cover that document.", part);
    return false;
}
