#include "seal/base64.h"

#include <sodium.h>

size_t seal_base64_len(size_t n)
{
    return (n + 2) / 3 * 4;
}

void seal_base64_encode(char *text, const void *p, size_t n)
{
    sodium_bin2base64(text, seal_base64_len(n) + 1, p, n, sodium_base64_VARIANT_ORIGINAL);
}

bool seal_base64_decode(const char *text, size_t len, void *out, size_t *n)
{
    const char *end = text;
    *n = 0;
    return len == 0 || (sodium_base642bin(out, len / 4 * 3, text, len, NULL, n, &end,
                                          sodium_base64_VARIANT_ORIGINAL) == 0 &&
                        end == text + len);
}
