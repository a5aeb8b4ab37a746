#include "handlers/range.h"

#include <strings.h>

enum { DIGITS_MAX = 18 };

struct scan {
    const char *p, *end;
    bool vast;
};

static void skip_blank(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
        s->p++;
}

/* A decimal number. False when there is none. What is too large to count becomes 2^62: it is
 * beyond the end of anything. */
static bool number(struct scan *s, uint64_t *v)
{
    const uint64_t most = UINT64_C(1) << 62;
    const char *start = s->p;
    *v = 0;
    for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++)
        *v = *v >= most / 10 ? most : *v * 10 + (uint64_t)(*s->p - '0');
    s->vast |= s->p - start > DIGITS_MAX;
    return s->p > start;
}

/* first-last, first- or -suffix. False when malformed; r->bytes is 0 when it is outside. */
static bool one(struct scan *s, uint64_t size, struct range *r)
{
    uint64_t first = 0, last = 0;
    bool has_first = number(s, &first);
    if (s->p == s->end || *s->p != '-')
        return false;
    s->p++;
    bool has_last = number(s, &last);
    *r = (struct range){0};
    if (!has_first) {
        if (!has_last || (last > 0 && size == 0))
            return false; /* the end of nothing is all of it */
        r->bytes = last < size ? last : size;
        r->from = size - r->bytes;
        return true;
    }
    if (has_last && last < first)
        return false;
    if (first < size) {
        uint64_t end = has_last && last < size ? last + 1 : size;
        *r = (struct range){first, end - first};
    }
    return true;
}

static bool unit_is_bytes(struct scan *s)
{
    static const char unit[] = "bytes=";
    size_t n = sizeof unit - 1;
    if ((size_t)(s->end - s->p) < n || strncasecmp(s->p, unit, n) != 0)
        return false;
    s->p += n;
    return true;
}

enum range_result range_parse(struct str header, uint64_t size, struct ranges *ranges)
{
    struct scan s = {header.p, header.p + header.n, false};
    bool some = false;
    uint64_t sum = 0;
    *ranges = (struct ranges){0};
    if (header.n == 0 || !unit_is_bytes(&s))
        return RANGE_WHOLE;
    for (;;) {
        skip_blank(&s);
        if (s.p < s.end && *s.p != ',') {
            struct range r;
            if (!one(&s, size, &r))
                return RANGE_WHOLE;
            some = true;
            sum += r.bytes;
            if (r.bytes > 0 && ranges->count == RANGES_MAX)
                return RANGE_WHOLE;
            if (r.bytes > 0)
                ranges->list[ranges->count++] = r;
            skip_blank(&s);
        }
        if (s.p == s.end)
            break;
        if (*s.p++ != ',')
            return RANGE_WHOLE;
    }
    ranges->vast = s.vast;
    if (!some)
        return RANGE_WHOLE;
    if (ranges->count == 0)
        return RANGE_UNSATISFIABLE;
    return ranges->count > 1 && sum > size ? RANGE_WHOLE : RANGE_PARTS;
}
