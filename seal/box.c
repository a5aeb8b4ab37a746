#include "seal/box.h"

#include <sodium.h>
#include <string.h>

enum { TAG_BYTES = crypto_shorthash_siphashx24_BYTES };

_Static_assert((int)TAG_BYTES == (int)SEAL_BOX_EXTRA, "what a box has before its text");
_Static_assert((int)TAG_BYTES >= (int)crypto_stream_chacha20_ietf_NONCEBYTES, "a tag has a nonce");
_Static_assert((int)SEAL_BOX_SECRET_BYTES == (int)crypto_kdf_KEYBYTES, "a secret makes keys");

void seal_box_keys(const unsigned char secret[SEAL_BOX_SECRET_BYTES], struct seal_box_keys *keys)
{
    crypto_kdf_derive_from_key(keys->tag, sizeof keys->tag, 1, "hanjibox", secret);
    crypto_kdf_derive_from_key(keys->cipher, sizeof keys->cipher, 2, "hanjibox", secret);
}

/* libsodium's base64 takes care that its timing tells nothing of the text; this one is public, and
 * is made twice for each page of a list. */
static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static size_t encode(const unsigned char *p, size_t n, char *text)
{
    char *to = text;
    for (; n >= 3; p += 3, n -= 3) {
        unsigned v = (unsigned)p[0] << 16 | (unsigned)p[1] << 8 | p[2];
        *to++ = digits[v >> 18];
        *to++ = digits[v >> 12 & 63];
        *to++ = digits[v >> 6 & 63];
        *to++ = digits[v & 63];
    }
    if (n > 0) {
        unsigned v = (unsigned)p[0] << 16 | (n == 2 ? (unsigned)p[1] << 8 : 0);
        *to++ = digits[v >> 18];
        *to++ = digits[v >> 12 & 63];
        if (n == 2)
            *to++ = digits[v >> 6 & 63];
    }
    *to = 0;
    return (size_t)(to - text);
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

/* out has room for text.n / 4 * 3 + 2 bytes. Bits that are left over must be 0: each box has one
 * text. */
static bool decode(struct seal_text text, unsigned char *out, size_t *n)
{
    unsigned v = 0, bits = 0;
    *n = 0;
    for (size_t i = 0; i < text.n; i++) {
        int digit = value_of(text.p[i]);
        if (digit < 0)
            return false;
        v = (v << 6 | (unsigned)digit) & 0xffff;
        bits += 6;
        if (bits < 8)
            continue;
        bits -= 8;
        out[(*n)++] = (unsigned char)(v >> bits);
    }
    return bits < 6 && (v & ((1u << bits) - 1)) == 0;
}

/* Depends on all that is sealed and on all that it is about. */
static void make_tag(const struct seal_box_keys *keys, struct seal_text about, const void *p,
                     size_t n, unsigned char tag[TAG_BYTES])
{
    unsigned char all[2 + SEAL_BOX_ABOUT_MAX + SEAL_BOX_MAX];
    all[0] = (unsigned char)(about.n >> 8);
    all[1] = (unsigned char)about.n;
    if (about.n > 0)
        memcpy(all + 2, about.p, about.n);
    if (n > 0)
        memcpy(all + 2 + about.n, p, n);
    crypto_shorthash_siphashx24(tag, all, 2 + about.n + n, keys->tag);
}

/* The key stream that belongs to a tag, whose first bytes are the nonce, added to n bytes. */
static void add_stream(const struct seal_box_keys *keys, const unsigned char tag[TAG_BYTES],
                       const void *p, size_t n, unsigned char *out)
{
    crypto_stream_chacha20_ietf_xor(out, p, n, tag, keys->cipher);
}

size_t seal_box_close(const struct seal_box_keys *keys, struct seal_text about, const void *p,
                      size_t n, char *text)
{
    unsigned char box[SEAL_BOX_EXTRA + SEAL_BOX_MAX];
    if (n > SEAL_BOX_MAX || about.n > SEAL_BOX_ABOUT_MAX)
        return 0;
    make_tag(keys, about, p, n, box);
    add_stream(keys, box, p, n, box + TAG_BYTES);
    return encode(box, TAG_BYTES + n, text);
}

bool seal_box_open(const struct seal_box_keys *keys, struct seal_text about, struct seal_text text,
                   void *out, size_t *n)
{
    unsigned char box[SEAL_BOX_EXTRA + SEAL_BOX_MAX + 4], tag[TAG_BYTES];
    size_t bytes = 0;
    if (about.n > SEAL_BOX_ABOUT_MAX || text.n > SEAL_BOX_TEXT_MAX ||
        !decode(text, box, &bytes) || bytes < SEAL_BOX_EXTRA ||
        bytes > SEAL_BOX_EXTRA + SEAL_BOX_MAX)
        return false;
    *n = bytes - TAG_BYTES;
    add_stream(keys, box, box + TAG_BYTES, *n, out);
    make_tag(keys, about, out, *n, tag);
    if (sodium_memcmp(tag, box, TAG_BYTES) == 0)
        return true;
    sodium_memzero(out, *n);
    return false;
}
