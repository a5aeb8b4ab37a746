#include "handlers/json.h"

#include <string.h>

#include "fcgi/path.h"
#include "fcgi/resp.h"
#include "handlers/word.h"

enum { JSON_MAX_BYTES = 64 << 20 };

struct json json_start(struct buf *out)
{
    out->len = 0;
    return (struct json){.out = out};
}

static void add(struct json *j, const char *p, size_t n)
{
    if (!j->failed && !buf_add(j->out, p, n, JSON_MAX_BYTES))
        j->failed = true;
}

void json_raw(struct json *j, const char *text)
{
    add(j, text, strlen(text));
}

void json_verbatim(struct json *j, struct str text)
{
    add(j, text.p, text.n);
}

void json_bytes(struct json *j, struct str text)
{
    add(j, text.p, text.n);
}

bool json_reserve(struct json *j, size_t n)
{
    if (!j->failed && !buf_reserve(j->out, n, JSON_MAX_BYTES))
        j->failed = true;
    return !j->failed;
}

void json_u64(struct json *j, uint64_t v)
{
    char digits[20];
    add(j, digits, put_u64(digits, v));
}

static size_t escape(char *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = c != 0 ? strchr(from, c) : NULL;
    out[0] = '\\';
    if (at != NULL) {
        out[1] = to[at - from];
        return 2;
    }
    memcpy(out + 1, "u00", 3);
    out[4] = hex[c >> 4];
    out[5] = hex[c & 15];
    return 6;
}

size_t json_plain(const char *p, size_t n)
{
    size_t i = 0;
    for (uint64_t w; i + sizeof w <= n; i += sizeof w) {
        memcpy(&w, p + i, sizeof w);
        if ((w & WORD_EACH(0x80)) | word_below(w, 0x20) | word_has(w, '"') | word_has(w, '\\'))
            break;
    }
    while (i < n && (unsigned char)p[i] >= 0x20 && (unsigned char)p[i] < 0x80 && p[i] != '"' &&
           p[i] != '\\')
        i++;
    return i;
}

/* Bytes that a row from outside may have and JSON may not: each becomes U+FFFD. */
static void broken_string(struct json *j, struct str s)
{
    add(j, "\"", 1);
    for (size_t i = 0; i < s.n;) {
        unsigned char c = (unsigned char)s.p[i];
        char escaped[6];
        size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4; /* as the first byte says */
        if (n > s.n - i || !utf8_ok(s.p + i, n)) {
            add(j, "\xef\xbf\xbd", 3);
            n = 1;
        } else if (c < 0x20 || c == '"' || c == '\\') {
            add(j, escaped, escape(escaped, c));
        } else {
            add(j, s.p + i, n);
        }
        i += n;
    }
    add(j, "\"", 1);
}

void json_string(struct json *j, struct str s)
{
    size_t from = 0, plain = json_plain(s.p, s.n);
    if (plain < s.n && !utf8_ok(s.p + plain, s.n - plain)) {
        broken_string(j, s);
        return;
    }
    add(j, "\"", 1);
    for (size_t i = plain; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        char escaped[6];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        add(j, s.p + from, i - from);
        add(j, escaped, escape(escaped, c));
        from = i + 1;
        i += json_plain(s.p + from, s.n - from);
    }
    if (from < s.n)
        add(j, s.p + from, s.n - from);
    add(j, "\"", 1);
}

void json_put_text(struct json *j, const char *name, const char *text)
{
    json_raw(j, name);
    if (text != NULL)
        json_string(j, (struct str){text, strlen(text)});
    else
        json_raw(j, "null");
}

void json_put_count(struct json *j, const char *name, int64_t n)
{
    json_raw(j, name);
    json_u64(j, n > 0 ? (uint64_t)n : 0);
}

void json_etag(struct json *j, uint64_t seq)
{
    json_raw(j, "\"\\\"");
    json_u64(j, seq);
    json_raw(j, "\\\"\"");
}
