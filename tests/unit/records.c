#include "tests/unit/records.h"

#include <string.h>

#include "tests/unit/run.h"

static void add(struct buf *out, const void *p, size_t n)
{
    ck_assert(buf_add(out, p, n, RECORDS_MAX));
}

void rec(struct buf *out, unsigned type, unsigned id, const void *content, size_t n, unsigned padding)
{
    static const unsigned char zeroes[256];
    unsigned char header[8] = {1, (unsigned char)type, (unsigned char)(id >> 8), (unsigned char)id,
                               (unsigned char)(n >> 8), (unsigned char)n, (unsigned char)padding, 0};
    ck_assert_uint_le(n, 65535);
    add(out, header, sizeof header);
    add(out, content, n);
    add(out, zeroes, padding);
}

void rec_begin(struct buf *out, unsigned id)
{
    rec(out, FCGI_BEGIN_REQUEST, id, "\0\1\1\0\0\0\0", 8, 0);
}

static void add_length(struct buf *pairs, size_t n)
{
    unsigned char p[4] = {(unsigned char)(0x80 | n >> 24), (unsigned char)(n >> 16), (unsigned char)(n >> 8),
                          (unsigned char)n};
    if (n < 0x80)
        add(pairs, p + 3, 1);
    else
        add(pairs, p, 4);
}

void rec_pair(struct buf *pairs, struct str name, struct str value)
{
    add_length(pairs, name.n);
    add_length(pairs, value.n);
    add(pairs, name.p, name.n);
    add(pairs, value.p, value.n);
}

void rec_text(struct buf *pairs, const char *name, const char *value)
{
    rec_pair(pairs, (struct str){name, strlen(name)}, (struct str){value, strlen(value)});
}

static void stream(struct buf *out, unsigned type, unsigned id, const struct str content, size_t split)
{
    for (size_t at = 0; at < content.n; at += split)
        rec(out, type, id, content.p + at, content.n - at < split ? content.n - at : split, 0);
    rec(out, type, id, NULL, 0, 0);
}

void rec_params(struct buf *out, unsigned id, const struct buf *pairs, size_t split)
{
    stream(out, FCGI_PARAMS, id, (struct str){(const char *)pairs->data, pairs->len}, split);
}

void rec_stdin(struct buf *out, unsigned id, const void *body, size_t n, size_t split)
{
    stream(out, FCGI_STDIN, id, (struct str){body, n}, split);
}

void rec_request(struct buf *out, const struct buf *pairs, const void *body, size_t n)
{
    rec_begin(out, 1);
    rec_params(out, 1, pairs, 65535);
    rec_stdin(out, 1, body, n, 32768);
}

enum frame_result rec_feed(struct frame *f, size_t body_max, const struct buf *in)
{
    struct frame_limits limits = {.body_max = body_max, .memory_max = body_max};
    size_t used = 0;
    enum frame_result result = frame_feed(f, &limits, in->data, in->len, &used);
    ck_assert_uint_eq(used, in->len);
    return result;
}
