/* Not libsodium's, which takes a time that does not tell what the bytes are: that is for keys, and
 * twenty times slower. */
#include "seal/base64.h"

#include <stdint.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t seal_base64_len(size_t n)
{
    return (n + 2) / 3 * 4;
}

void seal_base64_encode(char *text, const void *p, size_t n)
{
    const unsigned char *from = p;
    for (; n >= 3; n -= 3, from += 3) {
        *text++ = digits[from[0] >> 2];
        *text++ = digits[(from[0] & 3) << 4 | from[1] >> 4];
        *text++ = digits[(from[1] & 15) << 2 | from[2] >> 6];
        *text++ = digits[from[2] & 63];
    }
    if (n > 0) {
        unsigned second = n == 2 ? from[1] : 0;
        *text++ = digits[from[0] >> 2];
        *text++ = digits[(from[0] & 3u) << 4 | second >> 4];
        *text++ = n == 2 ? digits[(second & 15) << 2] : '=';
        *text++ = '=';
    }
    *text = 0;
}

enum { NONE = 64 };

static void fill_values(uint8_t values[256])
{
    for (int i = 0; i < 256; i++)
        values[i] = NONE;
    for (uint8_t i = 0; i < 64; i++)
        values[(unsigned char)digits[i]] = i;
}

bool seal_base64_decode(const char *text, size_t len, void *out, size_t *n)
{
    uint8_t values[256];
    const unsigned char *from = (const unsigned char *)text;
    unsigned char *to = out;
    *n = 0;
    if (len % 4 != 0)
        return false;
    size_t padding = len == 0 || text[len - 1] != '=' ? 0 : text[len - 2] != '=' ? 1 : 2;
    fill_values(values);
    for (size_t i = 0; i < len; i += 4, from += 4) {
        bool last = i + 4 == len;
        unsigned a = values[from[0]], b = values[from[1]];
        unsigned c = last && padding == 2 ? 0 : values[from[2]];
        unsigned d = last && padding > 0 ? 0 : values[from[3]];
        if (((a | b | c | d) & NONE) != 0)
            return false;
        *to++ = (unsigned char)(a << 2 | b >> 4);
        if (!last || padding < 2)
            *to++ = (unsigned char)(b << 4 | c >> 2);
        if (!last || padding < 1)
            *to++ = (unsigned char)(c << 6 | d);
        if (last && ((padding == 2 && (b & 15) != 0) || (padding == 1 && (c & 3) != 0)))
            return false; /* bits that mean nothing must be nought: one text for the same bytes */
    }
    *n = (size_t)(to - (unsigned char *)out);
    return true;
}
