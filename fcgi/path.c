#include "fcgi/path.h"

#include <stdint.h>
#include <string.h>

enum { PATH_ENCODED_MAX = 65536 };

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The byte an escape at s stands for, -1 when it is none. */
static int unescape(const char *s, size_t n)
{
    if (n < 3)
        return -1;
    int hi = hex(s[1]), lo = hex(s[2]);
    return hi < 0 || lo < 0 ? -1 : hi * 16 + lo;
}

/* Percent-decodes up to '?' or '#'; returns the length, 0 when malformed. */
static size_t decode(struct str in, char *out)
{
    size_t len = 0;
    for (size_t i = 0; i < in.n && in.p[i] != '?' && in.p[i] != '#'; i++) {
        int c = (unsigned char)in.p[i];
        if (c == '%') {
            c = unescape(in.p + i, in.n - i);
            i += 2;
        }
        if (c <= 0)
            return 0;
        out[len++] = (char)c;
    }
    return len;
}

/* Drops the last segment of out, which ends in '/'; false at the root. */
static bool go_up(const char *out, size_t *len)
{
    if (*len <= 1)
        return false;
    size_t n = *len - 1;
    while (out[n - 1] != '/')
        n--;
    *len = n;
    return true;
}

size_t path_normalise(struct str in, char *out)
{
    if (in.n == 0 || in.p[0] != '/')
        return 0;
    size_t n = decode(in, out), len = 0;
    for (size_t at = 0; at < n;) {
        const char *slash = memchr(out + at, '/', n - at);
        size_t end = slash ? (size_t)(slash - out) : n;
        size_t seg = end - at;
        bool dot = seg == 1 && out[at] == '.';
        bool up = seg == 2 && out[at] == '.' && out[at + 1] == '.';
        if (up && !go_up(out, &len))
            return 0;
        if (!dot && !up && seg > 0) {
            memmove(out + len, out + at, seg);
            len += seg;
        }
        if (slash && (len == 0 || out[len - 1] != '/'))
            out[len++] = '/';
        at = end + 1;
    }
    return len;
}

/* Eight bytes at once. */
static bool is_ascii(const uint64_t *eight)
{
    return (*eight & UINT64_C(0x8080808080808080)) == 0;
}

bool utf8_ok(const char *s, size_t n)
{
    if (n == 0)
        return true; /* s may be NULL then */
    const unsigned char *p = (const unsigned char *)s, *end = p + n;
    while (p < end) {
        uint64_t eight;
        while ((size_t)(end - p) >= sizeof eight && is_ascii(memcpy(&eight, p, sizeof eight)))
            p += sizeof eight;
        if (p == end)
            break;
        unsigned c = *p++;
        if (c < 0x80)
            continue;
        size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
        if (c < 0xc2 || c > 0xf4 || (size_t)(end - p) < more)
            return false;
        unsigned lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
        unsigned hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        if (*p < lo || *p > hi)
            return false;
        for (size_t i = 1; i < more; i++)
            if ((p[i] & 0xc0) != 0x80)
                return false;
        p += more;
    }
    return true;
}

static bool segment_ok(const char *p, size_t n, bool last)
{
    if (n == 0)
        return last;
    return !(p[0] == '.' && (n == 1 || (n == 2 && p[1] == '.')));
}

bool path_ok(struct str path)
{
    if (path.n == 0 || path.p[0] != '/')
        return false;
    bool ascii = true;
    size_t start = 1;
    for (size_t i = 1; i < path.n; i++) {
        unsigned char c = (unsigned char)path.p[i];
        if (c < 0x20 || c == 0x7f || c == '\\')
            return false;
        if (c >= 0x80)
            ascii = false;
        if (c == '/') {
            if (!segment_ok(path.p + start, i - start, false))
                return false;
            start = i + 1;
        }
    }
    return segment_ok(path.p + start, path.n - start, true) &&
           (ascii || utf8_ok(path.p, path.n));
}

static enum query_result query_value(const char *p, size_t n, struct buf *out)
{
    if (n > QUERY_VALUE_MAX * 3 || !buf_reserve(out, n + 1, QUERY_VALUE_MAX * 3 + 1))
        return QUERY_BAD;
    for (size_t i = 0; i < n; i++) {
        int c = (unsigned char)p[i];
        if (c == '+') {
            c = ' ';
        } else if (c == '%') {
            c = unescape(p + i, n - i);
            i += 2;
        }
        if (c <= 0)
            return QUERY_BAD;
        out->data[out->len++] = (unsigned char)c;
    }
    return out->len <= QUERY_VALUE_MAX && utf8_ok((char *)out->data, out->len) ? QUERY_OK
                                                                               : QUERY_BAD;
}

/* Sets *value to where the value begins in the parameter p when that is its name, decoded. */
static bool named(const char *p, size_t n, const char *name, size_t *value)
{
    size_t i = 0;
    for (; *name != 0; name++, i++) {
        int c = i < n ? (unsigned char)p[i] : '=';
        if (c == '=')
            return false;
        if (c == '%') {
            c = unescape(p + i, n - i);
            i += 2;
        }
        if (c != (unsigned char)*name)
            return false;
    }
    *value = i < n ? i + 1 : n;
    return i >= n || p[i] == '=';
}

enum query_result query_find(struct str query, const char *name, struct buf *out)
{
    enum query_result found = QUERY_NONE;
    for (size_t at = 0; at < query.n;) {
        const char *p = query.p + at;
        const char *amp = memchr(p, '&', query.n - at);
        size_t n = amp ? (size_t)(amp - p) : query.n - at;
        size_t skip;
        at += n + 1;
        if (!named(p, n, name, &skip))
            continue;
        if (found != QUERY_NONE)
            return QUERY_TWICE;
        out->len = 0;
        found = query_value(p + skip, n - skip, out);
        if (found == QUERY_BAD)
            return QUERY_BAD;
    }
    return found;
}

/* RFC 3986 2.3, and the slash. */
static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~' || c == '/';
}

bool path_encode(struct buf *out, struct str text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.n;) {
        size_t from = i;
        while (i < text.n && is_unreserved(text.p[i]))
            i++;
        if (!buf_add(out, text.p + from, i - from, PATH_ENCODED_MAX))
            return false;
        if (i == text.n)
            break;
        unsigned char c = (unsigned char)text.p[i++];
        char escaped[3] = {'%', digits[c >> 4], digits[c & 15]};
        if (!buf_add(out, escaped, sizeof escaped, PATH_ENCODED_MAX))
            return false;
    }
    return true;
}
