/* seal/webhook over any id, time, signature and body, each on a line of its own: nobody without a key is believed. */
#include "seal/webhook.h"
#include "tests/fuzz/must.h"

static struct seal_text line(const uint8_t **data, size_t *size)
{
    const uint8_t *end = *size > 0 ? memchr(*data, '\n', *size) : NULL;
    size_t n = end != NULL ? (size_t)(end - *data) : *size, used = end != NULL ? n + 1 : n;
    struct seal_text t = {(const char *)*data, n};
    *data += used;
    *size -= used;
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char keys[2][SEAL_KEY_BYTES], secret[SEAL_WHSEC_MAX] = "not that of any input in the corpus";
    unsigned char read[SEAL_WHSEC_MAX];
    size_t n = 0;
    int64_t at = 0;
    if (!seal_init())
        return 0;
    memset(keys, 7, sizeof keys);
    struct seal_delivery d;
    d.id = line(&data, &size);
    d.timestamp = line(&data, &size);
    d.signature = line(&data, &size);
    d.body = (struct seal_text){(const char *)data, size};
    struct seal_webhook_keys known = {secret, 32, keys, 2};
    enum seal_webhook result = seal_webhook_verify(&d, &known, 1614265330, &at);
    MUST(result != SEAL_WEBHOOK_OK && result != SEAL_WEBHOOK_NO_MEMORY);
    MUST(result == SEAL_WEBHOOK_MISSING || at > 0);
    if (seal_whsec_read(d.signature, read, &n))
        MUST(n >= SEAL_WHSEC_MIN && n <= SEAL_WHSEC_MAX);
    return 0;
}
