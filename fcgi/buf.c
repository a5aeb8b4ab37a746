#include "fcgi/buf.h"

#include <stdlib.h>
#include <string.h>

bool buf_reserve(struct buf *b, size_t extra, size_t max_bytes)
{
    if (extra > max_bytes || b->len > max_bytes - extra)
        return false;
    if (extra <= b->cap - b->len)
        return true;
    size_t need = b->len + extra;
    size_t cap = b->cap ? b->cap : 512;
    if (cap > max_bytes)
        cap = max_bytes;
    while (cap < need)
        cap = cap > max_bytes / 2 ? max_bytes : cap * 2;
    unsigned char *data = realloc(b->data, cap);
    if (data == NULL)
        return false;
    b->data = data;
    b->cap = cap;
    return true;
}

bool buf_add(struct buf *b, const void *p, size_t n, size_t max_bytes)
{
    if (!buf_reserve(b, n, max_bytes))
        return false;
    if (n > 0)
        memcpy(b->data + b->len, p, n);
    b->len += n;
    return true;
}

void buf_free(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}

bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool str_starts(struct str s, struct str prefix)
{
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}
