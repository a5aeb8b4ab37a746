#include "handlers/several.h"

#include <stdio.h>
#include <stdlib.h>

#include "handlers/access.h"
#include "handlers/content.h"
#include "handlers/dispatch.h"
#include "handlers/docs.h"
#include "handlers/json_check.h"
#include "handlers/json_read.h"
#include "handlers/store.h"

static void not_json(struct call *c, uint64_t at)
{
    char detail[96];
    snprintf(detail, sizeof detail, "The body is not JSON: what stands at byte %llu cannot be.",
             (unsigned long long)at);
    problem(c, 400, detail);
}

bool several_body(struct call *c, struct several *s)
{
    size_t n;
    uint64_t wrong;
    *s = (struct several){0};
    if (!content_is_json(c->req->content_type)) {
        problem(c, 415, "The body must be sent as Content-Type: application/json.");
        return false;
    }
    if (c->req->frame->body_bytes > SEVERAL_BODY_MAX) {
        problem(c, 413, "The body of such a request has at most 4 MiB.");
        return false;
    }
    unsigned char *bytes = frame_take_body(c->req->frame, &n);
    if (bytes == NULL && n > 0)
        problem_result(c, DB_NO_MEMORY, 0);
    else if (!json_check_all(bytes, n, &wrong))
        not_json(c, wrong);
    else
        s->bytes = bytes;
    if (s->bytes == NULL) {
        free(bytes);
        return false;
    }
    s->text = (struct str){(const char *)bytes, n};
    s->value = json_value(s->text);
    return true;
}

void several_free(struct several *s)
{
    free(s->bytes);
    *s = (struct several){0};
}

bool several_allowed(struct call *c, const struct problem_part *part, bool write)
{
    const struct buf *path = &session_of(c)->link;
    if (!docs_key_ok(session_of(c), part->key)) {
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
