/* Range headers, against a reading of the grammar that is slow and plain: two lines, the size and the header. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "handlers/range.h"
#include "tests/fuzz/must.h"

enum { MANY = 4096 };

/* Digits as a number; all that are larger than 62 bits can hold are the same. */
static size_t digits(const char *p, size_t n, uint64_t *v)
{
    const uint64_t most = UINT64_C(1) << 62;
    size_t i = 0;
    for (*v = 0; i < n && isdigit((unsigned char)p[i]); i++) {
        *v = *v > most / 10 ? most : *v * 10 + (uint64_t)(p[i] - '0');
        *v = *v > most ? most : *v;
    }
    return i;
}

/* One element: 0 malformed, 1 outside, 2 inside. */
static int element(const char *p, size_t n, uint64_t size, struct range *r)
{
    uint64_t first, last;
    size_t a = digits(p, n, &first);
    if (a == n || p[a] != '-')
        return 0;
    size_t b = digits(p + a + 1, n - a - 1, &last);
    if (a + 1 + b != n || (a == 0 && b == 0) || (a > 0 && b > 0 && last < first))
        return 0;
    if (a == 0 && last > 0 && size == 0)
        return 0;
    if (a == 0) {
        first = last < size ? size - last : 0;
        last = size - 1;
        if (first == size)
            return 1;
    } else if (b == 0 || last >= size) {
        last = size - 1;
    }
    if (size == 0 || first >= size)
        return 1;
    *r = (struct range){first, last - first + 1};
    return 2;
}

static enum range_result plain(const char *p, size_t n, uint64_t size, struct range *list, unsigned *count)
{
    bool some = false;
    uint64_t sum = 0;
    *count = 0;
    if (n < 6 || strncasecmp(p, "bytes=", 6) != 0)
        return RANGE_WHOLE;
    for (size_t at = 6; at <= n;) {
        const char *comma = at < n ? memchr(p + at, ',', n - at) : NULL;
        size_t end = comma ? (size_t)(comma - p) : n, from = at, to = end;
        while (from < to && (p[from] == ' ' || p[from] == '\t'))
            from++;
        while (to > from && (p[to - 1] == ' ' || p[to - 1] == '\t'))
            to--;
        at = end + 1;
        if (from == to)
            continue;
        int what = element(p + from, to - from, size, &list[*count]);
        if (what == 0)
            return RANGE_WHOLE;
        some = true;
        if (what == 2)
            sum += list[(*count)++].bytes;
    }
    if (!some || *count > RANGES_MAX || (*count > 1 && sum > size))
        return RANGE_WHOLE;
    return *count == 0 ? RANGE_UNSATISFIABLE : RANGE_PARTS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct range list[MANY];
    struct ranges got;
    unsigned count;
    uint64_t of;
    const char *p = (const char *)data;
    size_t at = digits(p, size, &of);
    if (at == size || p[at] != '\n' || of > 1000000000 || size - at > MANY)
        return 0;
    p += at + 1;
    size -= at + 1;
    enum range_result result = range_parse((struct str){p, size}, of, &got);
    MUST(result == plain(p, size, of, list, &count));
    if (result != RANGE_PARTS)
        return 0;
    MUST(got.count == count);
    for (unsigned i = 0; i < count; i++) {
        MUST(got.list[i].from == list[i].from && got.list[i].bytes == list[i].bytes);
        MUST(got.list[i].bytes > 0 && got.list[i].from + got.list[i].bytes <= of);
    }
    return 0;
}
