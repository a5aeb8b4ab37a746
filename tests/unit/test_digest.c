/* seal/digest: known answers of BLAKE2b-256, in one piece and in many. */
#include "seal/digest.h"

#include <string.h>

#include "tests/unit/run.h"

/* From `b2sum -l 256`. */
static const struct {
    const char *text, *hex;
} known[] = {
    {"", "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"},
    {"abc", "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"},
};

static void hex_of(const void *p, size_t n, size_t piece, char out[SEAL_DIGEST_HEX_LEN + 1])
{
    struct seal_digest d;
    unsigned char digest[SEAL_DIGEST_BYTES];
    seal_digest_init(&d);
    for (size_t at = 0; at < n; at += piece)
        seal_digest_add(&d, (const char *)p + at, n - at < piece ? n - at : piece);
    seal_digest_end(&d, digest);
    seal_digest_hex(digest, out);
}

START_TEST(known_answers)
{
    char hex[SEAL_DIGEST_HEX_LEN + 1];
    hex_of(known[_i].text, strlen(known[_i].text), 64, hex);
    ck_assert_str_eq(hex, known[_i].hex);
    ck_assert_uint_eq(strlen(hex), SEAL_DIGEST_HEX_LEN);
}
END_TEST

static const size_t pieces[] = {1, 2, 63, 64, 65, 127, 128, 129, 4096, 99999};

START_TEST(pieces_do_not_matter)
{
    static char text[100000];
    char whole[SEAL_DIGEST_HEX_LEN + 1], cut[SEAL_DIGEST_HEX_LEN + 1];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 7 + i / 300);
    hex_of(text, sizeof text, sizeof text, whole);
    hex_of(text, sizeof text, pieces[_i], cut);
    ck_assert_str_eq(cut, whole);
}
END_TEST

START_TEST(every_bit_counts)
{
    static char text[1000];
    char was[SEAL_DIGEST_HEX_LEN + 1], is[SEAL_DIGEST_HEX_LEN + 1];
    hex_of(text, sizeof text, 64, was);
    for (size_t i = 0; i < sizeof text; i += 37) {
        text[i] ^= 1;
        hex_of(text, sizeof text, 64, is);
        ck_assert_str_ne(is, was);
        text[i] ^= 1;
    }
    hex_of(text, sizeof text - 1, 64, is);
    ck_assert_str_ne(is, was);
}
END_TEST

/* Zero bytes at a time are nothing, wherever. */
START_TEST(nothing_added_changes_nothing)
{
    struct seal_digest d;
    unsigned char digest[SEAL_DIGEST_BYTES];
    char hex[SEAL_DIGEST_HEX_LEN + 1];
    seal_digest_init(&d);
    seal_digest_add(&d, "", 0);
    seal_digest_add(&d, "abc", 3);
    seal_digest_add(&d, "", 0);
    seal_digest_end(&d, digest);
    seal_digest_hex(digest, hex);
    ck_assert_str_eq(hex, known[1].hex);
}
END_TEST

/* Wherever it lies: on a thread's stack, in another struct. */
START_TEST(alignment_does_not_matter)
{
    static unsigned char memory[sizeof(struct seal_digest) + 64];
    for (size_t off = 0; off < 64; off++) {
        struct seal_digest *d = (struct seal_digest *)(void *)(memory + off);
        unsigned char digest[SEAL_DIGEST_BYTES];
        char hex[SEAL_DIGEST_HEX_LEN + 1];
        seal_digest_init(d);
        seal_digest_add(d, "ab", 2);
        seal_digest_add(d, "c", 1);
        seal_digest_end(d, digest);
        seal_digest_hex(digest, hex);
        ck_assert_str_eq(hex, known[1].hex);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("digest");
    TCase *t = run_case(s, "digest");
    tcase_add_loop_test(t, known_answers, 0, COUNT(known));
    tcase_add_loop_test(t, pieces_do_not_matter, 0, COUNT(pieces));
    tcase_add_test(t, every_bit_counts);
    tcase_add_test(t, alignment_does_not_matter);
    tcase_add_test(t, nothing_added_changes_nothing);
    return run_suite(s);
}
