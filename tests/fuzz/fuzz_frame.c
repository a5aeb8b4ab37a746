/* FastCGI records. The first byte chooses how the rest, a connection's input, is cut into pieces.
 *
 * Fed at once and fed in pieces, the same requests must come out; each must end with the records that end it, and hold
 * exactly the parameters and the body that its records carried. */
#include "fcgi/frame.h"
#include "tests/fuzz/must.h"

enum { BODY_MAX = 3000, BUDGET = 20000, TRACE_MAX = 64 << 20 };

static void note(struct buf *trace, const void *p, size_t n)
{
    MUST(buf_add(trace, &n, sizeof n, TRACE_MAX) && buf_add(trace, p, n, TRACE_MAX));
}

/* Counts what the records of request id carry in p[0..n), from its BEGIN on, and checks how they end. */
static void check_request(const struct frame *f, const uint8_t *p, size_t n)
{
    size_t params = 0, body = 0, at = 0;
    bool begun = false, params_end = false, whole = false;
    while (at < n) {
        const uint8_t *h = p + at;
        MUST(n - at >= FRAME_HEADER_BYTES);
        unsigned id = (unsigned)(h[2] << 8 | h[3]);
        size_t content = (size_t)(h[4] << 8 | h[5]);
        if (id == f->id && h[1] == FCGI_BEGIN_REQUEST && content == 8 && !begun)
            begun = h[8] == 0 && h[9] == FRAME_RESPONDER;
        else if (id == f->id && h[1] == FCGI_PARAMS && begun)
            params += content, params_end = content == 0;
        else if (id == f->id && h[1] == FCGI_STDIN && begun)
            body += content, whole = content == 0;
        at += FRAME_HEADER_BYTES + content + h[6];
        MUST(!whole || at == n);
    }
    MUST(begun && params_end && whole);
    MUST(params == (f->params.len > 0 ? f->params.len - FRAME_PARAMS_AT : 0));
    MUST(body == f->body_bytes);
    MUST(f->body_state != FRAME_BODY_OK || f->body.len == body);
    MUST(f->body_state == FRAME_BODY_OK || (f->body.len == 0 && f->charged == 0));
    MUST((f->body_state == FRAME_BODY_TOO_LARGE) == (body > BODY_MAX));
}

static void note_event(struct frame *f, enum frame_result result, struct buf *trace)
{
    note(trace, &result, sizeof result);
    note(trace, f->replies.data, f->replies.len);
    if (result == FRAME_REQUEST || result == FRAME_ABORTED)
        note(trace, &f->id, sizeof f->id);
    if (result == FRAME_REQUEST) {
        note(trace, &f->keep, sizeof f->keep);
        bool some = f->params.len > FRAME_PARAMS_AT;
        note(trace, some ? f->params.data + FRAME_PARAMS_AT : NULL, some ? f->params.len - FRAME_PARAMS_AT : 0);
        note(trace, f->body.data, f->body.len);
    }
    buf_free(&f->replies);
}

/* Feeds p in pieces of 1 to `most` bytes (0: at once), as a connection does. */
static void run(const uint8_t *p, size_t n, size_t most, struct buf *trace)
{
    struct frame f = {0};
    struct frame_limits limits = {BODY_MAX};
    enum frame_result result = FRAME_MORE;
    size_t since = 0, at = 0;
    uint32_t random = (uint32_t)most;
    frame_set_budget(BUDGET);
    while (at < n && result != FRAME_BAD) {
        random = random * 1664525 + 1013904223;
        size_t piece = most > 0 ? 1 + (random >> 16) % most : n - at, used = SIZE_MAX;
        if (piece > n - at)
            piece = n - at;
        result = frame_feed(&f, &limits, p + at, piece, &used);
        MUST(used <= piece && (result != FRAME_MORE || used == piece));
        MUST(f.replies.len <= FRAME_REPLIES_MAX && f.charged <= BUDGET);
        at += used;
        if (result == FRAME_MORE)
            continue;
        if (result == FRAME_REQUEST)
            check_request(&f, p + since, at - since);
        note_event(&f, result, trace);
        frame_reset(&f);
        MUST(frame_idle(&f));
        since = at;
    }
    if (result != FRAME_BAD)
        note_event(&f, FRAME_MORE, trace);
    frame_free(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf once = {0}, pieces = {0};
    if (size < 1)
        return 0;
    run(data + 1, size - 1, 0, &once);
    run(data + 1, size - 1, 1 + data[0], &pieces);
    MUST(once.len == pieces.len && (once.len == 0 || memcmp(once.data, pieces.data, once.len) == 0));
    buf_free(&once);
    buf_free(&pieces);
    return 0;
}
