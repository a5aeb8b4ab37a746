/* seal/token: the form of a token and the hash it is stored under. */
#include "seal/token.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

static void init(void)
{
    ck_assert(seal_init());
}

START_TEST(a_new_token_has_the_known_form)
{
    char token[SEAL_TOKEN_LEN + 2];
    memset(token, '!', sizeof token);
    seal_token_new(token);
    ck_assert_uint_eq(strlen(token), SEAL_TOKEN_LEN);
    ck_assert_int_eq(token[SEAL_TOKEN_LEN + 1], '!');
    ck_assert_int_eq(strncmp(token, "hanji_", 6), 0);
    static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    ck_assert_uint_eq(strspn(token + 6, base64url), 43);
}
END_TEST

/* 32 bytes are 43 digits of six bits; the last one carries four, so it is one of sixteen. */
START_TEST(a_new_token_carries_32_bytes)
{
    char token[SEAL_TOKEN_LEN + 1];
    for (int i = 0; i < 200; i++) {
        seal_token_new(token);
        ck_assert_ptr_nonnull(strchr("AEIMQUYcgkosw048", token[SEAL_TOKEN_LEN - 1]));
    }
}
END_TEST

START_TEST(no_token_comes_twice)
{
    static char tokens[500][SEAL_TOKEN_LEN + 1];
    for (size_t i = 0; i < COUNT(tokens); i++) {
        seal_token_new(tokens[i]);
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(tokens[i], tokens[k]);
    }
}
END_TEST

/* BLAKE2b-256 of the text, as other programs compute it (Python: hashlib.blake2b(text, digest_size=32)). */
START_TEST(the_hash_of_a_known_token)
{
    static const char token[] = "hanji_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    static const unsigned char expected[] = {
        0x74, 0xbd, 0x50, 0xff, 0x62, 0x0d, 0xc8, 0xd6, 0x00, 0xc4, 0xab, 0x09, 0xf2, 0x37, 0x6f, 0x8b,
        0xc5, 0x9d, 0x5b, 0x1d, 0xb9, 0x32, 0xf7, 0x45, 0xe6, 0x44, 0xf3, 0xa6, 0x56, 0xba, 0x1e, 0x86,
    };
    unsigned char hash[SEAL_TOKEN_HASH_BYTES + 1] = {0};
    hash[SEAL_TOKEN_HASH_BYTES] = 0xee;
    ck_assert(seal_token_hash(token, SEAL_TOKEN_LEN, hash));
    ck_assert_mem_eq(hash, expected, sizeof expected);
    ck_assert_int_eq(hash[SEAL_TOKEN_HASH_BYTES], 0xee);
}
END_TEST

START_TEST(every_bit_of_a_token_matters)
{
    char token[SEAL_TOKEN_LEN + 1];
    unsigned char hash[SEAL_TOKEN_HASH_BYTES], other[SEAL_TOKEN_HASH_BYTES];
    seal_token_new(token);
    ck_assert(seal_token_hash(token, SEAL_TOKEN_LEN, hash));
    for (int i = 6; i < SEAL_TOKEN_LEN; i++) {
        char was = token[i];
        token[i] = was == 'x' ? 'y' : 'x';
        ck_assert(seal_token_hash(token, SEAL_TOKEN_LEN, other));
        ck_assert_mem_ne(hash, other, sizeof hash);
        token[i] = was;
    }
}
END_TEST

START_TEST(hashes_are_compared)
{
    unsigned char a[SEAL_TOKEN_HASH_BYTES] = {0}, b[SEAL_TOKEN_HASH_BYTES] = {0};
    ck_assert(seal_token_same(a, b));
    for (size_t i = 0; i < sizeof a; i++) {
        b[i] = 0x80;
        ck_assert(!seal_token_same(a, b));
        a[i] = 0x80;
        ck_assert(seal_token_same(a, b));
    }
}
END_TEST

static const struct str {
    const char *p;
    size_t n;
} wrong[] = {
    {"", 0},
    {NULL, 0},
    {"hanji_", 6},
    {"hanji_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 48},
    {"hanji_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 50},
    {"Hanji_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 49},
    {"hanji-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 49},
    {" hanji_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 49},
    {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 49},
    {"hanji_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n", 50},
};

START_TEST(another_form_has_no_hash)
{
    unsigned char hash[SEAL_TOKEN_HASH_BYTES];
    ck_assert(!seal_token_hash(wrong[_i].p, wrong[_i].n, hash));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("token");
    TCase *t = run_case(s, "token");
    tcase_add_checked_fixture(t, init, NULL);
    tcase_add_test(t, a_new_token_has_the_known_form);
    tcase_add_test(t, a_new_token_carries_32_bytes);
    tcase_add_test(t, no_token_comes_twice);
    tcase_add_test(t, the_hash_of_a_known_token);
    tcase_add_test(t, every_bit_of_a_token_matters);
    tcase_add_test(t, hashes_are_compared);
    tcase_add_loop_test(t, another_form_has_no_hash, 0, COUNT(wrong));
    return run_suite(s);
}
