#include "fcgi/req.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "fcgi/codec.h"
#include "fcgi/path.h"

enum { ARENA_BLOCK_BYTES = 32768, ARENA_ALIGN = _Alignof(max_align_t) };

struct arena_block {
    struct arena_block *next;
    size_t size;
    _Alignas(ARENA_ALIGN) unsigned char data[];
};

void *arena_alloc(struct arena *a, size_t n)
{
    n = (n + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (a->blocks == NULL || n > a->blocks->size - a->used) {
        size_t size = n > ARENA_BLOCK_BYTES ? n : ARENA_BLOCK_BYTES;
        struct arena_block *b = malloc(sizeof *b + size);
        if (b == NULL)
            return NULL;
        b->next = a->blocks;
        b->size = size;
        a->blocks = b;
        a->used = 0;
    }
    void *p = a->blocks->data + a->used;
    a->used += n;
    return p;
}

static void free_blocks(struct arena_block *b)
{
    while (b != NULL) {
        struct arena_block *next = b->next;
        free(b);
        b = next;
    }
}

void arena_reset(struct arena *a)
{
    a->used = 0;
    if (a->blocks == NULL)
        return;
    if (a->blocks->next != NULL) {
        free_blocks(a->blocks->next);
        a->blocks->next = NULL;
    }
    if (a->blocks->size > ARENA_BLOCK_BYTES)
        arena_free(a);
}

void arena_free(struct arena *a)
{
    free_blocks(a->blocks);
    *a = (struct arena){0};
}

/* What a second parameter of the same name means. Web servers differ in whether they join repeated
 * headers, so each is decided here. */
enum repeat {
    REPEAT_REFUSE, /* 400: whoever reads the first and whoever reads the last would disagree */
    REPEAT_JOIN,   /* a list: the same as one with commas between */
    REPEAT_CRUMBS, /* Cookie: the same as one with "; " between (RFC 9113 8.2.3) */
    REPEAT_IGNORE, /* the first counts */
};

struct field {
    const char *name;
    uint8_t name_len;
    uint8_t repeat;
    uint16_t offset;
};

#define FIELD(name, member, repeat)                                                               \
    {                                                                                             \
        name, sizeof name - 1, repeat, offsetof(struct req, member)                               \
    }

static const struct field fields[] = {
    FIELD("REQUEST_ID", request_id, REPEAT_IGNORE),
    FIELD("REQUEST_URI", request_uri, REPEAT_REFUSE),
    FIELD("SCRIPT_NAME", mount, REPEAT_REFUSE),
    FIELD("HTTP_RANGE", range, REPEAT_REFUSE),
    FIELD("HTTP_ACCEPT", accept, REPEAT_JOIN),
    FIELD("CONTENT_TYPE", content_type, REPEAT_REFUSE),
    FIELD("DOCUMENT_URI", document_uri, REPEAT_REFUSE),
    FIELD("QUERY_STRING", query, REPEAT_REFUSE),
    FIELD("HTTP_IF_MATCH", if_match, REPEAT_JOIN),
    FIELD("HTTP_IF_RANGE", if_range, REPEAT_REFUSE),
    FIELD("REQUEST_METHOD", method_name, REPEAT_REFUSE),
    FIELD("CONTENT_LENGTH", content_length, REPEAT_REFUSE),
    FIELD("HTTP_AUTHORIZATION", authorization, REPEAT_REFUSE),
    FIELD("HTTP_LAST_EVENT_ID", last_event_id, REPEAT_REFUSE),
    FIELD("HTTP_IF_NONE_MATCH", if_none_match, REPEAT_JOIN),
    FIELD("HTTP_IDEMPOTENCY_KEY", idempotency_key, REPEAT_REFUSE),
    FIELD("HTTP_WEBHOOK_ID", webhook_id, REPEAT_REFUSE),
    FIELD("HTTP_WEBHOOK_TIMESTAMP", webhook_timestamp, REPEAT_REFUSE),
    FIELD("HTTP_WEBHOOK_SIGNATURE", webhook_signature, REPEAT_REFUSE),
    FIELD("HTTP_IF_MODIFIED_SINCE", if_modified_since, REPEAT_REFUSE),
    FIELD("HTTP_IF_UNMODIFIED_SINCE", if_unmodified_since, REPEAT_REFUSE),
    FIELD("HTTPS", https, REPEAT_REFUSE),
    FIELD("HTTP_HOST", host, REPEAT_REFUSE),
    FIELD("HTTP_COOKIE", cookie, REPEAT_CRUMBS),
    FIELD("HTTP_ORIGIN", origin, REPEAT_REFUSE),
    FIELD("REMOTE_ADDR", remote_addr, REPEAT_REFUSE),
    FIELD("HTTP_REFERER", referer, REPEAT_REFUSE),
    FIELD("HTTP_USER_AGENT", user_agent, REPEAT_IGNORE),
    FIELD("HANJI_CHECK_URI", check_uri, REPEAT_REFUSE),
    FIELD("HTTP_SEC_FETCH_SITE", fetch_site, REPEAT_REFUSE),
    FIELD("HTTP_ACCESS_CONTROL_REQUEST_METHOD", requested_method, REPEAT_IGNORE),
    FIELD("HANJI_SENDFILE", sendfile, REPEAT_REFUSE),
};

struct decoding {
    struct req *req;
    struct arena *arena;
};

static const struct field *field_of(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].name_len == n && memcmp(fields[i].name, name, n) == 0)
            return &fields[i];
    return NULL;
}

static void fault(struct req *r, uint16_t status, const char *text)
{
    if (r->fault_status != 0)
        return;
    r->fault_status = status;
    r->fault = text;
}

/* Copies value behind what is there already, with two characters between. */
static bool store(struct decoding *d, struct str *to, const char *value, const char *between)
{
    size_t n = strlen(value), sep = to->p != NULL && to->n > 0 ? 2 : 0;
    char *p = arena_alloc(d->arena, to->n + sep + n + 1);
    if (p == NULL)
        return false;
    if (sep > 0) {
        memcpy(p, to->p, to->n);
        memcpy(p + to->n, between, 2);
    }
    memcpy(p + to->n + sep, value, n + 1);
    *to = (struct str){p, to->n + sep + n};
    return true;
}

static bool take_param(void *arg, const char *pair, size_t name_len)
{
    struct decoding *d = arg;
    const struct field *f = field_of(pair, name_len);
    if (f == NULL)
        return true;
    struct str *to = (struct str *)(void *)((char *)d->req + f->offset);
    if (to->p != NULL && f->repeat == REPEAT_IGNORE)
        return true;
    if (to->p != NULL && f->repeat == REPEAT_REFUSE)
        fault(d->req, 400, "A header that may stand only once was sent more than once.");
    return store(d, to, pair + name_len + 1, f->repeat == REPEAT_CRUMBS ? "; " : ", ");
}

static enum method method_of(struct str name)
{
    static const struct {
        struct str name;
        enum method method;
    } known[] = {
        {{"GET", 3}, METHOD_GET},       {{"HEAD", 4}, METHOD_HEAD}, {{"PUT", 3}, METHOD_PUT},
        {{"DELETE", 6}, METHOD_DELETE}, {{"POST", 4}, METHOD_POST}, {{"PATCH", 5}, METHOD_PATCH},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (str_eq(name, known[i].name))
            return known[i].method;
    return METHOD_OTHER;
}

/* The truth about the body is its STDIN stream; a length that disagrees means that somebody
 * between the client and here lost or added bytes. Empty and absent mean that none was declared. */
static void check_length(struct req *r, const struct frame *f)
{
    struct str s = r->content_length;
    uint64_t declared = 0;
    if (s.n == 0 || (r->check_uri.n > 0 && f->body_bytes == 0))
        return; /* an auth_request has the length of a body that stays with the web server */
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || i >= 19) {
            fault(r, 400, "Content-Length is not a decimal number of bytes.");
            return;
        }
        declared = declared * 10 + (uint64_t)(s.p[i] - '0');
    }
    if (declared != f->body_bytes)
        fault(r, 400, "The body does not have the length that Content-Length declares.");
}

static bool set_path(struct arena *a, struct req *r)
{
    struct str path = r->document_uri;
    if (path.n == 0) {
        char *out = arena_alloc(a, r->request_uri.n + 1);
        if (out == NULL)
            return false;
        size_t n = path_normalise(r->request_uri, out);
        out[n] = 0;
        path = (struct str){out, n};
    }
    if (!path_ok(path)) {
        fault(r, 400, "The path is malformed.");
        path = STR_LIT("/");
    }
    if (r->mount.n > 0 && r->mount.p[r->mount.n - 1] == '/') {
        r->mount.n--;
        *(char *)(uintptr_t)(r->mount.p + r->mount.n) = 0; /* memory of the arena */
    }
    if (r->mount.n > 0) {
        bool below = str_starts(path, r->mount) &&
                     (path.n == r->mount.n || path.p[r->mount.n] == '/');
        if (below) {
            path.p += r->mount.n;
            path.n -= r->mount.n;
        } else {
            fault(r, 404, "The path is not below the prefix this is mounted on (SCRIPT_NAME).");
        }
        if (path.n == 0)
            path = STR_LIT("/");
    }
    r->path = path;
    return true;
}

static struct str copy_text(char **to, struct str text)
{
    struct str copy = {text.p ? *to : NULL, text.n};
    if (text.p == NULL)
        return copy;
    memcpy(*to, text.p, text.n);
    (*to)[text.n] = 0;
    *to += text.n + 1;
    return copy;
}

struct req *req_copy(const struct req *r)
{
    size_t bytes = sizeof *r + r->path.n + 1;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        bytes += ((const struct str *)(const void *)((const char *)r + fields[i].offset))->n + 1;
    struct req *copy = malloc(bytes);
    if (copy == NULL)
        return NULL;
    char *to = (char *)(copy + 1);
    *copy = *r;
    copy->path = copy_text(&to, r->path);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        struct str *text = (struct str *)(void *)((char *)copy + fields[i].offset);
        *text = copy_text(&to, *text);
    }
    return copy;
}

struct req *req_decode(struct arena *a, struct frame *f)
{
    struct req *r = arena_alloc(a, sizeof *r);
    if (r == NULL)
        return NULL;
    *r = (struct req){.frame = f};
    struct decoding d = {r, a};
    if (!codec_decode(f, take_param, &d))
        return NULL;
    r->method = method_of(r->method_name);
    if (r->method_name.n == 0)
        fault(r, 400, "The web server sent no REQUEST_METHOD.");
    if (r->mount.p == NULL)
        r->mount = STR_LIT("");
    if (!set_path(a, r))
        return NULL;
    check_length(r, f);
    if (f->body_state == FRAME_BODY_TOO_LARGE)
        fault(r, 413, "The body is larger than max_body allows.");
    else if (f->body_state == FRAME_BODY_NO_MEMORY)
        fault(r, 503, "The memory for request bodies is in use; try again shortly.");
    else if (f->body_state == FRAME_BODY_NO_SPACE)
        fault(r, 507, "The disk is full. Nothing was changed; reading goes on.");
    return r;
}
