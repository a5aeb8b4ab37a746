#include "fcgi/frame.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fcgi/spool.h"

enum sink { SINK_DROP, SINK_SMALL, SINK_PARAMS, SINK_STDIN };

static atomic_size_t budget_left = 64u << 20;

void frame_set_budget(size_t bytes)
{
    atomic_store(&budget_left, bytes);
}

static bool charge(struct frame *f, size_t cap)
{
    if (cap <= f->charged)
        return true;
    size_t more = cap - f->charged;
    size_t left = atomic_load_explicit(&budget_left, memory_order_relaxed);
    do {
        if (left < more)
            return false;
    } while (!atomic_compare_exchange_weak(&budget_left, &left, left - more));
    f->charged = cap;
    return true;
}

static void discharge(struct frame *f)
{
    if (f->charged > 0)
        atomic_fetch_add(&budget_left, f->charged);
    f->charged = 0;
}

void frame_put_header(unsigned char *p, enum frame_type type, uint16_t id, size_t content)
{
    p[0] = 1;
    p[1] = (unsigned char)type;
    p[2] = (unsigned char)(id >> 8);
    p[3] = (unsigned char)id;
    p[4] = (unsigned char)(content >> 8);
    p[5] = (unsigned char)content;
    p[6] = 0;
    p[7] = 0;
}

void frame_put_end(unsigned char *p, uint16_t id, enum frame_protocol_status status)
{
    frame_put_header(p, FCGI_END_REQUEST, id, 8);
    memset(p + FRAME_HEADER_BYTES, 0, 8);
    p[FRAME_HEADER_BYTES + 4] = (unsigned char)status;
}

void frame_put_unknown(unsigned char *p, uint8_t type)
{
    frame_put_header(p, FCGI_UNKNOWN_TYPE, 0, 8);
    memset(p + FRAME_HEADER_BYTES, 0, 8);
    p[FRAME_HEADER_BYTES] = type;
}

static size_t pair_length(const unsigned char *p, size_t n, size_t *value)
{
    if (n == 0)
        return 0;
    if (p[0] < 0x80) {
        *value = p[0];
        return 1;
    }
    if (n < 4)
        return 0;
    *value = ((size_t)(p[0] & 0x7f) << 24) | ((size_t)p[1] << 16) | ((size_t)p[2] << 8) | p[3];
    return 4;
}

size_t frame_pair(const unsigned char *p, size_t n, struct str *name, struct str *value)
{
    size_t name_len = 0, value_len = 0;
    size_t at = pair_length(p, n, &name_len);
    if (at == 0)
        return 0;
    size_t more = pair_length(p + at, n - at, &value_len);
    if (more == 0)
        return 0;
    at += more;
    if (name_len > n - at || value_len > n - at - name_len)
        return 0;
    *name = (struct str){(const char *)p + at, name_len};
    *value = (struct str){(const char *)p + at + name_len, value_len};
    return at + name_len + value_len;
}

bool frame_pairs_ok(const unsigned char *p, size_t n)
{
    for (size_t pairs = 0, at = 0; at < n; pairs++) {
        struct str name, value;
        size_t used = frame_pair(p + at, n - at, &name, &value);
        if (used == 0 || pairs == FRAME_PAIRS_MAX || name.n == 0)
            return false;
        if (memchr(name.p, '=', name.n) || memchr(name.p, 0, name.n) ||
            (value.n > 0 && memchr(value.p, 0, value.n)))
            return false;
        at += used;
    }
    return true;
}

static bool reply(struct frame *f, const unsigned char *record, size_t n)
{
    return buf_add(&f->replies, record, n, FRAME_REPLIES_MAX);
}

static bool reply_end(struct frame *f, uint16_t id, enum frame_protocol_status status)
{
    unsigned char record[16];
    frame_put_end(record, id, status);
    return reply(f, record, sizeof record);
}

/* What is true of this process: connections are never multiplexed. The other two variables of the
 * specification are limits that we do not promise, so they are left out, as it allows. */
static bool reply_values(struct frame *f)
{
    static const char wanted[] = "FCGI_MPXS_CONNS";
    unsigned char out[FRAME_HEADER_BYTES + 2 + sizeof wanted];
    size_t len = 0;
    for (size_t at = 0; at < f->small_len;) {
        struct str name, value;
        size_t used = frame_pair(f->small + at, f->small_len - at, &name, &value);
        if (used == 0)
            return false;
        if (str_eq(name, STR_LIT(wanted)) && len == 0) {
            unsigned char *p = out + FRAME_HEADER_BYTES;
            p[0] = sizeof wanted - 1;
            p[1] = 1;
            memcpy(p + 2, wanted, sizeof wanted - 1);
            p[2 + sizeof wanted - 1] = '0';
            len = 2 + sizeof wanted;
        }
        at += used;
    }
    frame_put_header(out, FCGI_GET_VALUES_RESULT, 0, len);
    return reply(f, out, FRAME_HEADER_BYTES + len);
}

static bool management_header(struct frame *f)
{
    if (f->type == FCGI_GET_VALUES) {
        f->sink = SINK_SMALL;
        return f->content <= sizeof f->small;
    }
    unsigned char record[16];
    frame_put_unknown(record, f->type);
    f->type = 0; /* it means nothing for the request that may be open */
    f->sink = SINK_DROP;
    return reply(f, record, sizeof record);
}

static bool begin_header(struct frame *f, uint16_t id)
{
    if (f->content != 8 || (f->begun && f->id == id))
        return false;
    if (f->begun) {
        f->sink = SINK_DROP;
        return reply_end(f, id, FCGI_CANT_MPX_CONN);
    }
    f->sink = SINK_SMALL;
    f->id = id;
    return true;
}

/* Decides what happens to the content of the record whose header is complete. */
static bool record_header(struct frame *f)
{
    const unsigned char *h = f->header;
    uint16_t id = (uint16_t)(h[2] << 8 | h[3]);
    f->type = h[1];
    f->content = (uint16_t)(h[4] << 8 | h[5]);
    f->padding = h[6];
    f->empty = f->content == 0;
    f->small_len = 0;
    if (h[0] != 1)
        return false;
    if (id == 0)
        return management_header(f);
    if (f->type == FCGI_BEGIN_REQUEST)
        return begin_header(f, id);
    f->sink = SINK_DROP;
    if (!f->begun || id != f->id) {
        f->type = 0; /* for a request that is not open: the specification has it ignored */
        return h[1] >= FCGI_ABORT_REQUEST && h[1] <= FCGI_DATA;
    }
    switch (f->type) {
    case FCGI_ABORT_REQUEST:
        return true;
    case FCGI_PARAMS:
        f->sink = SINK_PARAMS;
        return !f->params_done;
    case FCGI_STDIN:
        f->sink = SINK_STDIN;
        return f->params_done;
    default:
        return false;
    }
}

static bool take_params(struct frame *f, const unsigned char *p, size_t n)
{
    if (f->params.len == 0) {
        if (!buf_reserve(&f->params, FRAME_PARAMS_AT, FRAME_PARAMS_MAX))
            return false;
        f->params.len = FRAME_PARAMS_AT;
    }
    return buf_add(&f->params, p, n, FRAME_PARAMS_AT + FRAME_PARAMS_MAX);
}

static void close_spool(struct frame *f)
{
    if (f->spooled)
        close(f->spool_fd);
    f->spooled = false;
}

static void drop_body(struct frame *f, enum frame_body why)
{
    f->body_state = why;
    buf_free(&f->body);
    discharge(f);
    close_spool(f);
}

/* The body goes to a file from here on, with what memory has of it. */
static bool start_spool(struct frame *f, const struct frame_limits *limits)
{
    if (limits->spool == NULL)
        return false;
    f->spool_fd = spool_open(limits->spool);
    if (f->spool_fd < 0)
        return false;
    f->spooled = true;
    if (!spool_write(f->spool_fd, f->body.data, f->body.len))
        return false;
    buf_free(&f->body);
    discharge(f);
    return true;
}

static bool in_memory(struct frame *f, const struct frame_limits *limits, const unsigned char *p,
                      size_t n)
{
    bool in_parts = limits->spool != NULL && !f->stays;
    size_t most = in_parts ? limits->memory_max : limits->body_max;
    if (!buf_reserve(&f->body, n, most) || !charge(f, f->body.cap))
        return false;
    memcpy(f->body.data + f->body.len, p, n);
    f->body.len += n;
    return true;
}

static enum frame_body cause(const struct frame_limits *limits)
{
    bool space = errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO;
    return limits->spool != NULL && space ? FRAME_BODY_NO_SPACE : FRAME_BODY_NO_MEMORY;
}

/* True when this body, for which memory_max is too little, is of those that must not be in a
 * file. */
static bool stays(struct frame *f, const struct frame_limits *limits)
{
    if (!f->stays && limits->unspooled != NULL && f->params.len > FRAME_PARAMS_AT)
        f->stays = frame_unspooled(f->params.data + FRAME_PARAMS_AT,
                                   f->params.len - FRAME_PARAMS_AT, limits->unspooled);
    return f->stays;
}

static void take_stdin(struct frame *f, const struct frame_limits *limits, const unsigned char *p,
                       size_t n)
{
    f->body_bytes += n;
    if (f->body_state != FRAME_BODY_OK)
        return;
    if (f->body_bytes > limits->body_max) {
        drop_body(f, FRAME_BODY_TOO_LARGE);
        return;
    }
    if (!f->spooled && in_memory(f, limits, p, n))
        return;
    if (!f->spooled && stays(f, limits)) {
        errno = ENOMEM;
        if (!in_memory(f, limits, p, n))
            drop_body(f, cause(limits));
        return;
    }
    if ((!f->spooled && !start_spool(f, limits)) || !spool_write(f->spool_fd, p, n))
        drop_body(f, cause(limits));
}

static bool take_content(struct frame *f, const struct frame_limits *limits,
                         const unsigned char *p, size_t n)
{
    switch (f->sink) {
    case SINK_SMALL:
        memcpy(f->small + f->small_len, p, n);
        f->small_len = (uint8_t)(f->small_len + n);
        return true;
    case SINK_PARAMS:
        return take_params(f, p, n);
    case SINK_STDIN:
        take_stdin(f, limits, p, n);
        return true;
    default:
        return true;
    }
}

static enum frame_result begin(struct frame *f)
{
    unsigned role = (unsigned)(f->small[0] << 8 | f->small[1]);
    if (role != FRAME_RESPONDER)
        return reply_end(f, f->id, FCGI_UNKNOWN_ROLE) ? FRAME_MORE : FRAME_BAD;
    f->keep = (f->small[2] & FRAME_KEEP_CONN) != 0;
    f->begun = true;
    return FRAME_MORE;
}

static enum frame_result record_end(struct frame *f)
{
    f->header_len = 0;
    switch (f->type) {
    case FCGI_BEGIN_REQUEST:
        return f->sink == SINK_SMALL ? begin(f) : FRAME_MORE;
    case FCGI_GET_VALUES:
        return f->sink != SINK_SMALL || reply_values(f) ? FRAME_MORE : FRAME_BAD;
    case FCGI_ABORT_REQUEST:
        return FRAME_ABORTED;
    case FCGI_PARAMS:
        if (f->empty)
            f->params_done = true;
        return FRAME_MORE;
    case FCGI_STDIN:
        return f->empty ? FRAME_REQUEST : FRAME_MORE;
    default:
        return FRAME_MORE;
    }
}

static size_t take_header(struct frame *f, const unsigned char *p, size_t n)
{
    size_t take = FRAME_HEADER_BYTES - (size_t)f->header_len;
    if (take > n)
        take = n;
    memcpy(f->header + f->header_len, p, take);
    f->header_len = (uint8_t)(f->header_len + take);
    return take;
}

enum frame_result frame_feed(struct frame *f, const struct frame_limits *limits,
                             const unsigned char *p, size_t n, size_t *used)
{
    enum frame_result result = FRAME_MORE;
    size_t at = 0;
    while (at < n && result == FRAME_MORE) {
        if (f->header_len < FRAME_HEADER_BYTES) {
            at += take_header(f, p + at, n - at);
            if (f->header_len < FRAME_HEADER_BYTES)
                break;
            if (!record_header(f))
                result = FRAME_BAD;
        } else if (f->content > 0) {
            size_t take = f->content < n - at ? f->content : n - at;
            if (!take_content(f, limits, p + at, take))
                result = FRAME_BAD;
            f->content = (uint16_t)(f->content - take);
            at += take;
        } else {
            size_t take = f->padding < n - at ? f->padding : n - at;
            f->padding = (uint8_t)(f->padding - take);
            at += take;
        }
        if (result == FRAME_MORE && f->header_len == FRAME_HEADER_BYTES && f->content == 0 &&
            f->padding == 0)
            result = record_end(f);
    }
    *used = at;
    return result;
}

bool frame_idle(const struct frame *f)
{
    return !f->begun && f->header_len == 0;
}

void frame_reset(struct frame *f)
{
    f->header_len = 0;
    f->begun = f->params_done = f->keep = false;
    f->id = 0;
    f->stays = false;
    f->body_state = FRAME_BODY_OK;
    f->body_bytes = 0;
    f->params.len = 0;
    buf_free(&f->body);
    discharge(f);
    close_spool(f);
}

void frame_free(struct frame *f)
{
    close_spool(f);
    buf_free(&f->params);
    buf_free(&f->body);
    buf_free(&f->replies);
    discharge(f);
}

static unsigned char *load_spool(struct frame *f, size_t *len)
{
    *len = (size_t)f->body_bytes;
    unsigned char *p = malloc(*len);
    if (p != NULL && !spool_read(f->spool_fd, p, *len, 0)) {
        free(p);
        p = NULL;
    }
    close_spool(f);
    return p;
}

unsigned char *frame_take_body(struct frame *f, size_t *len)
{
    unsigned char *p = f->body.data;
    if (f->spooled)
        return load_spool(f, len);
    *len = f->body.len;
    if (f->body.len == 0)
        return NULL;
    f->body = (struct buf){0};
    discharge(f);
    return p;
}

int frame_take_spool(struct frame *f)
{
    int fd = f->spooled ? f->spool_fd : -1;
    f->spooled = false;
    return fd;
}
