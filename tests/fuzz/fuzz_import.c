/* A file for `hanji import`, whole and in two pieces: the same lines, or the same fault. The first byte says where to cut. */
#include <stdint.h>
#include <string.h>

#include "handlers/import_line.h"
#include "tests/fuzz/must.h"

struct seen {
    unsigned lines, documents;
    uint64_t sum; /* over keys, types and bodies */
    const char *fault;
};

static uint64_t mix(uint64_t sum, const struct buf *b)
{
    for (size_t i = 0; i < b->len; i++)
        sum = (sum ^ b->data[i]) * 1099511628211u;
    return sum * 31 + b->len;
}

static void note(const struct import_line *l, struct seen *s)
{
    s->lines++;
    if (l->kind != IMPORT_DOCUMENT)
        return;
    s->documents++;
    MUST(l->key.len >= 1 && l->key.len <= 512 && l->type.len >= 1 && l->type.len <= 255 && l->body.len <= 4096);
    s->sum = mix(mix(mix(s->sum, &l->key), &l->type), &l->body) + (uint64_t)l->modified;
}

static bool feed(struct import_line *l, const uint8_t *p, size_t n, struct seen *s)
{
    for (size_t at = 0; at < n;) {
        size_t used = 0;
        enum import_result result = import_line_feed(l, p + at, n - at, &used);
        MUST(used > 0 && used <= n - at);
        at += used;
        MUST(result != IMPORT_MORE || at == n);
        if (result == IMPORT_LINE)
            note(l, s);
        if (result == IMPORT_FAULT) {
            MUST(l->fault != NULL);
            s->fault = l->fault;
            return false;
        }
    }
    return true;
}

static struct seen read_in(const uint8_t *p, size_t n, size_t cut)
{
    struct import_line l;
    struct seen s = {0};
    import_line_init(&l, 4096);
    if (feed(&l, p, cut, &s) && feed(&l, p + cut, n - cut, &s)) {
        enum import_result result = import_line_finish(&l);
        if (result == IMPORT_LINE)
            note(&l, &s);
        if (result == IMPORT_FAULT)
            s.fault = l.fault;
    }
    import_line_free(&l);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    if (n == 0)
        return 0;
    struct seen whole = read_in(p + 1, n - 1, 0), cut = read_in(p + 1, n - 1, (n - 1) * p[0] / 255);
    MUST(whole.lines == cut.lines && whole.documents == cut.documents && whole.sum == cut.sum);
    MUST((whole.fault == NULL) == (cut.fault == NULL));
    return 0;
}
