/* From the bytes of a connection to requests: frame, codec (libfcgi) and req together.
 *
 * The first byte says what the rest is: even, the input of a connection; odd, the parameters of one request, which are
 * put into records here. What libfcgi decodes must be what frame_pair reads, pair for pair. */
#include "fcgi/codec.h"
#include "fcgi/path.h"
#include "fcgi/req.h"
#include "tests/fuzz/must.h"

enum { BODY_MAX = 1000, INPUT_MAX = 1 << 20 };

static struct arena arena;

/* The block of parameters, as it stood before the codec put records around it. */
struct block {
    const unsigned char *p;
    size_t n;
    size_t at;
    bool first;
};

static bool compare(void *arg, const char *pair, size_t name_len)
{
    struct block *b = arg;
    struct str name, value;
    if (b->first) {
        b->first = false;
        MUST(strcmp(pair, "FCGI_ROLE=RESPONDER") == 0); /* libfcgi's own */
        return true;
    }
    size_t used = frame_pair(b->p + b->at, b->n - b->at, &name, &value);
    MUST(used > 0 && name.n == name_len && memcmp(pair, name.p, name.n) == 0 && pair[name_len] == '=');
    MUST(strlen(pair) == name.n + 1 + value.n && (value.n == 0 || memcmp(pair + name.n + 1, value.p, value.n) == 0));
    b->at += used;
    return true;
}

/* Decodes a copy of the parameters and compares. */
static void check_pairs(const struct frame *f)
{
    struct frame copy = {0};
    if (f->params.len <= FRAME_PARAMS_AT)
        return;
    MUST(buf_add(&copy.params, f->params.data, f->params.len, INPUT_MAX));
    struct block b = {f->params.data + FRAME_PARAMS_AT, f->params.len - FRAME_PARAMS_AT, 0, true};
    bool ok = codec_decode(&copy, compare, &b);
    MUST(ok == frame_pairs_ok(b.p, b.n));
    MUST(!ok || b.at == b.n);
    frame_free(&copy);
}

static void check_text(struct str s)
{
    MUST(s.p != NULL || s.n == 0);
    MUST(s.p == NULL || strlen(s.p) == s.n);
}

static void check_request(struct frame *f)
{
    check_pairs(f);
    struct req *r = req_decode(&arena, f);
    if (r != NULL) {
        MUST(path_ok(r->path));
        MUST(r->mount.n == 0 || r->fault_status != 0 || r->mount.p[r->mount.n - 1] != '/');
        MUST((r->fault_status == 0) == (r->fault == NULL));
        MUST(r->fault_status == 0 || r->fault_status == 400 || r->fault_status == 404 || r->fault_status == 413 ||
             r->fault_status == 503);
        MUST(f->body_state == FRAME_BODY_OK || r->fault_status != 0);
        struct str texts[] = {r->method_name, r->path, r->mount, r->query, r->request_id, r->content_type, r->content_length,
                              r->authorization, r->if_match, r->if_none_match, r->if_modified_since, r->if_unmodified_since,
                              r->accept};
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            check_text(texts[i]);
        size_t n;
        free(frame_take_body(f, &n));
    }
    arena_reset(&arena);
}

static void connection(const uint8_t *p, size_t n)
{
    struct frame f = {0};
    struct frame_limits limits = {BODY_MAX};
    enum frame_result result = FRAME_MORE;
    for (size_t at = 0, used; at < n && result != FRAME_BAD; at += used) {
        result = frame_feed(&f, &limits, p + at, n - at, &used);
        if (result == FRAME_REQUEST)
            check_request(&f);
        if (result != FRAME_MORE)
            frame_reset(&f);
        buf_free(&f.replies);
    }
    frame_free(&f);
}

static void add_record(struct buf *out, enum frame_type type, const void *content, size_t n)
{
    unsigned char header[FRAME_HEADER_BYTES];
    frame_put_header(header, type, 1, n);
    MUST(buf_add(out, header, sizeof header, INPUT_MAX) && buf_add(out, content, n, INPUT_MAX));
}

static void parameters(const uint8_t *p, size_t n)
{
    struct buf in = {0};
    if (n > 65535)
        return;
    add_record(&in, FCGI_BEGIN_REQUEST, "\0\1\1\0\0\0\0", 8);
    if (n > 0)
        add_record(&in, FCGI_PARAMS, p, n);
    add_record(&in, FCGI_PARAMS, NULL, 0);
    add_record(&in, FCGI_STDIN, NULL, 0);
    connection(in.data, in.len);
    buf_free(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    if (data[0] % 2 == 0)
        connection(data + 1, size - 1);
    else
        parameters(data + 1, size - 1);
    return 0;
}
