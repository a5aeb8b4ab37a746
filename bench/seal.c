/*
 * seal: a bare loop of the calls of libsodium that sealing one message takes, and nothing else: no HTTP, no JSON, no database.
 *
 *   seal [-s BYTES] [-r RECIPIENTS] [-d SECONDS]
 *
 * In the order of seal/envelope.c: a random content key and its commitment; the hash of a header; for each recipient a sealed
 * box with the content key and that hash; the body, padded, under XChaCha20-Poly1305; hashes of header and ciphertext, signed
 * with Ed25519. Each message is opened once every 1000, so that nothing of it is left out by mistake. Prints one line of JSON.
 */
#include "util.h"

#include <getopt.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HASH = 32,
    INNER = 32 + HASH, /* of a box: the content key and the header's hash */
    HEADER_BYTES = 256, /* as long as a canonical header with one recipient is, about */
    RECIPIENTS_MOST = 64,
    BODY_MOST = 262144,
};

struct party {
    unsigned char public_key[32];
    unsigned char secret_key[32];
};

static struct party recipients[RECIPIENTS_MOST];
static unsigned char signer_public[32];
static unsigned char signer_secret[64];

static uint64_t size = 1024;
static uint64_t recipients_len = 1;

static unsigned char header[HEADER_BYTES];
static unsigned char plain[HASH + BODY_MOST * 2];
static unsigned char cipher[HASH + BODY_MOST * 2 + 16];
static unsigned char boxes[RECIPIENTS_MOST][INNER + crypto_box_SEALBYTES];

struct sealed {
    unsigned long long cipher_len;
    unsigned char hash[HASH];
    unsigned char commitment[HASH];
    unsigned char signature[64];
};

static void hash_of(unsigned char out[HASH], const void *bytes, size_t len, const unsigned char *key)
{
    if (crypto_generichash(out, HASH, bytes, len, key, key != NULL ? 32 : 0) != 0)
        die("crypto_generichash failed");
}

/* The next power of two, from 256 on, up to 4 KiB; then steps of 4 KiB. */
static size_t padded(size_t len)
{
    size_t to = 256;

    while (to < len && to < 4096)
        to *= 2;
    return len <= to ? to : (len + 4095) / 4096 * 4096;
}

static void seal_one(struct sealed *s)
{
    static const unsigned char nonce[24];
    unsigned char content_key[32];
    unsigned char inner[INNER];
    unsigned char signed_bytes[32 + HASH * 2] = "hanji-bench/signed";
    size_t len = padded(HASH + size + 1);

    randombytes_buf(content_key, sizeof content_key);
    hash_of(s->commitment, header, 64, content_key);
    memcpy(header, s->commitment, HASH);
    hash_of(s->hash, header, sizeof header, NULL);
    memcpy(inner, content_key, 32);
    memcpy(inner + 32, s->hash, HASH);
    for (uint64_t i = 0; i < recipients_len; i++)
        if (crypto_box_seal(boxes[i], inner, sizeof inner, recipients[i].public_key) != 0)
            die("crypto_box_seal failed");
    memcpy(plain, s->hash, HASH);
    memset(plain + HASH + size, 0, len - HASH - size);
    plain[HASH + size] = 0x80;
    if (crypto_aead_xchacha20poly1305_ietf_encrypt(cipher, &s->cipher_len, plain, len, s->hash, HASH, NULL, nonce,
                                                   content_key) != 0)
        die("encrypting failed");
    memcpy(signed_bytes + 32, s->hash, HASH);
    hash_of(signed_bytes + 32 + HASH, cipher, (size_t)s->cipher_len, NULL);
    if (crypto_sign_detached(s->signature, NULL, signed_bytes, sizeof signed_bytes, signer_secret) != 0)
        die("crypto_sign_detached failed");
    sodium_memzero(content_key, sizeof content_key);
    sodium_memzero(inner, sizeof inner);
}

/* Whether what was sealed last opens to what it was. */
static bool opens(const struct sealed *s)
{
    static const unsigned char nonce[24];
    static unsigned char opened[sizeof plain];
    unsigned char inner[INNER];
    unsigned long long len;
    const struct party *last = &recipients[recipients_len - 1];

    return crypto_box_seal_open(inner, boxes[recipients_len - 1], sizeof boxes[0], last->public_key, last->secret_key) == 0 &&
           memcmp(inner + 32, s->hash, HASH) == 0 &&
           crypto_aead_xchacha20poly1305_ietf_decrypt(opened, &len, NULL, cipher, s->cipher_len, s->hash, HASH, nonce,
                                                      inner) == 0 &&
           memcmp(opened, plain, (size_t)len) == 0;
}

int main(int argc, char **argv)
{
    double seconds = 2.5;
    uint64_t sealed = 0;
    uint64_t wrong = 0;
    struct sealed s;
    int letter;

    while ((letter = getopt(argc, argv, "s:r:d:")) != -1) {
        if (letter == 's')
            size = parse_number("-s", optarg, 0, BODY_MOST);
        else if (letter == 'r')
            recipients_len = parse_number("-r", optarg, 1, RECIPIENTS_MOST);
        else if (letter == 'd')
            seconds = parse_fraction("-d", optarg);
        else
            die("usage: seal [-s BYTES] [-r RECIPIENTS] [-d SECONDS]");
    }
    if (sodium_init() < 0)
        die("sodium_init failed");
    for (uint64_t i = 0; i < recipients_len; i++)
        (void)crypto_box_keypair(recipients[i].public_key, recipients[i].secret_key);
    (void)crypto_sign_keypair(signer_public, signer_secret);
    randombytes_buf(plain, HASH + size);

    int64_t start = now_ns();
    int64_t end = start + (int64_t)(seconds * 1e9);

    while (now_ns() < end) {
        seal_one(&s);
        if (++sealed % 1000 == 1)
            wrong += !opens(&s);
    }

    double took = (double)(now_ns() - start) / 1e9;

    (void)printf("{\"answered\":%" PRIu64 ",\"compared\":%" PRIu64 ",\"errors_total\":%" PRIu64
                 ",\"errors\":{},\"issued\":%" PRIu64 ",\"seconds\":%.6f,\"rate\":%.1f,\"cpu_us_per_request\":%.2f}\n",
                 sealed, (sealed + 999) / 1000, wrong, sealed, took, (double)sealed / took,
                 (double)cpu_ns() / 1000.0 / (double)sealed);
    return wrong == 0 ? 0 : 1;
}
