#include "handlers/json_read.h"

#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void skip_blank(struct json_walk *w)
{
    while (w->p < w->end && is_blank(*w->p))
        w->p++;
}

/* Behind the string that begins at p. */
static const char *string_end(const char *p, const char *end)
{
    const char *start = ++p;
    for (;;) {
        const char *quote = p < end ? memchr(p, '"', (size_t)(end - p)) : NULL;
        if (quote == NULL)
            return end;
        const char *escape = quote;
        while (escape > start && escape[-1] == '\\')
            escape--;
        p = quote + 1;
        if ((quote - escape) % 2 == 0)
            return p;
        start = p; /* what stands before this quote escapes it, and nothing behind it */
    }
}

static const char *nested_end(const char *p, const char *end)
{
    size_t depth = 0;
    while (p < end) {
        if (*p == '"') {
            p = string_end(p, end);
            continue;
        }
        if (*p == '{' || *p == '[')
            depth++;
        else if ((*p == '}' || *p == ']') && --depth == 0)
            return p + 1;
        p++;
    }
    return end;
}

static const char *value_end(const char *p, const char *end)
{
    if (p == end)
        return end;
    if (*p == '"')
        return string_end(p, end);
    if (*p == '{' || *p == '[')
        return nested_end(p, end);
    while (p < end && *p != ',' && *p != '}' && *p != ']' && !is_blank(*p))
        p++;
    return p;
}

/* Takes the value that comes next, and the white space around it. */
static struct str take_value(struct json_walk *w)
{
    skip_blank(w);
    struct str value = {w->p, 0};
    w->p = value_end(w->p, w->end);
    value.n = (size_t)(w->p - value.p);
    skip_blank(w);
    return value;
}

struct str json_value(struct str text)
{
    struct json_walk w = {text.p, text.p + text.n};
    return take_value(&w);
}

enum json_kind json_kind(struct str value)
{
    switch (value.n > 0 ? value.p[0] : 0) {
    case '{': return JSON_OBJECT;
    case '[': return JSON_ARRAY;
    case '"': return JSON_STRING;
    case 't': return JSON_TRUE;
    case 'f': return JSON_FALSE;
    case 'n': return JSON_NULL;
    default: return JSON_NUMBER;
    }
}

struct json_walk json_enter(struct str value)
{
    struct json_walk w = {value.p + 1, value.p + value.n - 1};
    skip_blank(&w);
    return w;
}

/* Takes the one byte that must come next. */
static void take(struct json_walk *w, char c)
{
    if (w->p < w->end && *w->p == c)
        w->p++;
    skip_blank(w);
}

bool json_item(struct json_walk *w, struct str *item)
{
    if (w->p >= w->end)
        return false;
    *item = take_value(w);
    take(w, ',');
    return true;
}

bool json_member(struct json_walk *w, struct str *name, struct str *value)
{
    if (w->p >= w->end)
        return false;
    *name = take_value(w);
    take(w, ':');
    *value = take_value(w);
    take(w, ',');
    return true;
}

/* The four hex digits at p. */
static unsigned hex4(const char *p)
{
    unsigned v = 0;
    for (int i = 0; i < 4; i++) {
        unsigned c = (unsigned char)p[i];
        v = v << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return v;
}

static size_t put_utf8(char out[4], unsigned c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t more = c >= 0x10000 ? 3 : c >= 0x800 ? 2 : 1;
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    for (size_t i = more; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (char)(first[more] | c);
    return more + 1;
}

/* Decodes the escape at p, which stands behind its backslash. Sets *n to the bytes it says, 0 for
 * half of a surrogate pair, and returns where it ends. */
static const char *take_escape(const char *p, const char *end, char out[4], size_t *n)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    *n = 1;
    if (*p != 'u') {
        const char *at = strchr(from, *p);
        out[0] = at != NULL && *p != 0 ? to[at - from] : *p;
        return p + 1;
    }
    *n = 0;
    if (end - p < 5)
        return end;
    unsigned c = hex4(p + 1);
    p += 5;
    if (c >= 0xd800 && c < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
        unsigned low = hex4(p + 2);
        if (low < 0xdc00 || low > 0xdfff)
            return p;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        p += 6;
    }
    if (c < 0xd800 || (c > 0xdfff && c < 0x110000))
        *n = put_utf8(out, c);
    return p;
}

/* Takes what comes next of the inside of a string: plain bytes as they stand, or an escape. */
static struct str take_piece(struct json_walk *w, char escape[4])
{
    struct str piece = {w->p, 0};
    if (*w->p != '\\') {
        const char *stop = memchr(w->p, '\\', (size_t)(w->end - w->p));
        w->p = stop != NULL ? stop : w->end;
        piece.n = (size_t)(w->p - piece.p);
    } else if (w->end - w->p < 2) {
        w->p = w->end;
    } else {
        w->p = take_escape(w->p + 1, w->end, escape, &piece.n);
        piece.p = escape;
    }
    return piece;
}

static struct json_walk inside(struct str string)
{
    return (struct json_walk){string.p + 1, string.p + string.n - 1};
}

bool json_says(struct str string, const char *text)
{
    struct json_walk w = inside(string);
    char escape[4];
    size_t left = strlen(text);
    while (w.p < w.end) {
        struct str piece = take_piece(&w, escape);
        if (piece.n == 0 || piece.n > left || memcmp(piece.p, text, piece.n) != 0)
            return false;
        text += piece.n;
        left -= piece.n;
    }
    return left == 0;
}

enum json_text json_text(struct str string, struct buf *out, size_t max_bytes)
{
    struct json_walk w = inside(string);
    char escape[4];
    while (w.p < w.end) {
        struct str piece = take_piece(&w, escape);
        if (piece.n == 0)
            return JSON_TEXT_HALF;
        if (!buf_add(out, piece.p, piece.n, max_bytes))
            return piece.n > max_bytes - out->len ? JSON_TEXT_LONG : JSON_TEXT_NO_MEMORY;
    }
    return JSON_TEXT_OK;
}
