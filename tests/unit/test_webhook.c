/* seal/webhook: the published vectors of Standard Webhooks, and what must not verify. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "seal/base64.h"
#include "seal/webhook.h"
#include "tests/unit/temp.h"

static const struct {
    const char *secret, *id, *body, *entry;
    int64_t time;
} vectors[] = {
    {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek",
     "{\"test\": 2432232314}", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", 1614265330},
    {"whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
     "{\"email\":\"test@example.com\",\"username\":\"test_user\"}",
     "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=", 1649367553},
};

static struct seal_text text(const char *s)
{
    return (struct seal_text){s, strlen(s)};
}

START_TEST(v1_is_that_of_the_published_vectors)
{
    unsigned char secret[SEAL_WHSEC_MAX];
    size_t n;
    char entry[SEAL_WEBHOOK_ENTRY_MAX + 1];
    ck_assert(seal_whsec_read(text(vectors[_i].secret), secret, &n));
    struct seal_attempt a = {text(vectors[_i].id), vectors[_i].time, text(vectors[_i].body)};
    ck_assert(seal_webhook_v1(&a, secret, n, entry));
    ck_assert_str_eq(entry, vectors[_i].entry);
}
END_TEST

/* Vector C, whose secret is shorter than the standard's least: the bytes give its signature, the text is no secret of ours. */
START_TEST(a_short_secret_signs_and_is_not_read)
{
    static const char C[] = "whsec_plJ3nmyCDGBKInavdOK15jsl";
    unsigned char secret[SEAL_WHSEC_MAX];
    size_t n = 0;
    char entry[SEAL_WEBHOOK_ENTRY_MAX + 1];
    ck_assert(!seal_whsec_read(text(C), secret, &n));
    ck_assert(seal_base64_decode(C + 6, strlen(C + 6), secret, &n) && n == 18);
    struct seal_attempt a = {text("msg_loFOjxBNrRLzqYUf"), 1731705121,
                             text("{\"event_type\":\"ping\",\"data\":{\"success\":true}}")};
    ck_assert(seal_webhook_v1(&a, secret, n, entry));
    ck_assert_str_eq(entry, "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=");
}
END_TEST

/* Of vector D. */
static const unsigned char public_key[1][SEAL_KEY_BYTES] = {
    {0xd5, 0x28, 0x80, 0xe2, 0x8f, 0x61, 0xca, 0xa4, 0xc2, 0xa4, 0x8a, 0x82, 0xe5, 0x5f, 0x47, 0x51,
     0xa9, 0x22, 0x89, 0xa7, 0x80, 0x09, 0xea, 0x9f, 0x65, 0x32, 0x27, 0x0c, 0x16, 0xce, 0x8a, 0xbe}};
#define RIGHT "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
#define WRONG "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= "
#define WRONG7 WRONG WRONG WRONG WRONG WRONG WRONG WRONG
_Static_assert(SEAL_WEBHOOK_SIGNATURES_MAX == 8, "the table below counts on it");
#define V1A "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="

static enum seal_webhook verify_a(const char *time, const char *signature, bool secret, bool key,
                                  int64_t now_s)
{
    unsigned char bytes[SEAL_WHSEC_MAX];
    size_t n;
    int64_t at;
    ck_assert(seal_whsec_read(text(vectors[0].secret), bytes, &n));
    struct seal_delivery d = {text(vectors[0].id), text(time), text(signature),
                              text(vectors[0].body)};
    struct seal_webhook_keys keys = {secret ? bytes : NULL, n, public_key, key};
    return seal_webhook_verify(&d, &keys, now_s, &at);
}

static const struct {
    const char *time, *signature;
    bool secret, key;
    int64_t off;
    enum seal_webhook result;
} deliveries[] = {
    {"1614265330", V1A, false, true, 0, SEAL_WEBHOOK_OK},
    {"1614265330", V1A, true, true, 300, SEAL_WEBHOOK_OK},
    {"1614265330", V1A, true, true, 301, SEAL_WEBHOOK_TIMESTAMP},
    {"1614265330", V1A, true, true, -301, SEAL_WEBHOOK_TIMESTAMP},
    {"1614265330", V1A, true, false, 0, SEAL_WEBHOOK_SIGNATURE}, /* no public key is known */
    {"1614265330", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", false, true, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= v2,x " V1A, true, true, 0, SEAL_WEBHOOK_OK},
    {"1614265330", "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc=", true, false, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", " v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", true, false, 0, SEAL_WEBHOOK_OK},
    {"1614265330.9", V1A, true, true, 0, SEAL_WEBHOOK_MISSING},
    {"01614265330", V1A, true, true, 0, SEAL_WEBHOOK_MISSING},
    {"+1614265330", V1A, true, true, 0, SEAL_WEBHOOK_MISSING},
    {"", V1A, true, true, 0, SEAL_WEBHOOK_MISSING},
    {"1614265330", "", true, true, 0, SEAL_WEBHOOK_MISSING},
    {"1614265330", "v1", true, true, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265331", V1A, true, true, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", RIGHT, true, true, -300, SEAL_WEBHOOK_OK},
    {" 1614265330", RIGHT, true, true, 0, SEAL_WEBHOOK_MISSING},
    {"1614265330 ", RIGHT, true, true, 0, SEAL_WEBHOOK_MISSING},
    {"1614_265330", RIGHT, true, true, 0, SEAL_WEBHOOK_MISSING},
    {"-1614265330", RIGHT, true, true, 0, SEAL_WEBHOOK_MISSING},
    {"0x60381A32", RIGHT, true, true, 0, SEAL_WEBHOOK_MISSING},
    {"0", RIGHT, true, true, 0, SEAL_WEBHOOK_MISSING},
    {"999999999999", RIGHT, true, true, 0, SEAL_WEBHOOK_TIMESTAMP},
    {"1614265330000", RIGHT, true, true, 0, SEAL_WEBHOOK_MISSING},
    {"99999999999999999999999999", RIGHT, true, true, 0, SEAL_WEBHOOK_MISSING},
    /* eight entries are looked at */
    {"1614265330", WRONG7 RIGHT, true, false, 0, SEAL_WEBHOOK_OK},
    {"1614265330", WRONG7 WRONG RIGHT, true, false, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", "x x x x x x x x " RIGHT, true, false, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", RIGHT " trailing,junk", true, false, 0, SEAL_WEBHOOK_OK},
    {"1614265330", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE", true, false, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", "v1,g0hM9SsE-OTPJTGt_tmIKtSyZlE3uFJELVlNIOLJ1OE=", true, false, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OF=", true, false, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", RIGHT "=", true, false, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", RIGHT "\t" RIGHT, true, false, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", RIGHT ",", true, false, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", "v1,", true, true, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", "v1a,", true, true, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", ",", true, true, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", "     ", true, true, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", "V1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", true, true, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", "v1ag0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", true, true, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", "v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", true, true, 0, SEAL_WEBHOOK_SIGNATURE},
    {"1614265330", "v1,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==", true, true, 0,
     SEAL_WEBHOOK_SIGNATURE},
};

START_TEST(a_delivery_is_judged)
{
    ck_assert_int_eq(verify_a(deliveries[_i].time, deliveries[_i].signature, deliveries[_i].secret,
                              deliveries[_i].key, 1614265330 + deliveries[_i].off),
                     deliveries[_i].result);
}
END_TEST

/* ---- signing with v1a ----------------------------------------------------------------------- */

/* A set with the transport key of vector D. */
static struct seal_keys *transport_keys(void)
{
    static const char file[] = "hanji key 1\nkind transport\ncreated 1\nfrom 1\nuntil 0\nretired 0\n"
                               "secret 6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbc=\n";
    struct seal_keys *keys;
    struct seal_error error;
    unsigned char id[SEAL_KEY_ID_BYTES];
    char name[100] = "keys/transport-";
    seal_key_id(SEAL_TRANSPORT, public_key[0], id);
    seal_key_hex(id, name + strlen(name));
    strcat(name, ".key");
    unsetenv("CREDENTIALS_DIRECTORY");
    ck_assert_int_eq(mkdir(temp_path("keys"), 0700), 0);
    ck_assert_int_eq(chmod(temp_file(name, file, sizeof file - 1), 0600), 0);
    ck_assert_msg(seal_keys_load(temp_path("keys"), &keys, &error), "%s", error.text);
    return keys;
}

START_TEST(v1a_is_that_of_the_published_vector)
{
    char entry[SEAL_WEBHOOK_ENTRY_MAX + 1], whpk[5 + 44 + 1];
    struct seal_keys *keys = transport_keys(), *none = seal_keys_none();
    const struct seal_key *key = seal_keys_current(keys, SEAL_TRANSPORT, 2);
    struct seal_attempt a = {text(vectors[0].id), vectors[0].time, text(vectors[0].body)};
    ck_assert(seal_webhook_v1a(&a, keys, key, entry));
    ck_assert_str_eq(entry, V1A);
    seal_whpk_write(key->key, whpk);
    ck_assert_str_eq(whpk, "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=");
    ck_assert(!seal_webhook_v1a(&a, none, key, entry));
    seal_keys_free(none);
    seal_keys_free(keys);
}
END_TEST

static const struct {
    const char *id;
    int64_t time;
} unsigned_[] = {{"", 1}, {"a.b", 1}, {"a b", 1}, {"a\nb", 1}, {"\xc3\xa9", 1}, {"a", 0}, {"a", -1}, {"a", 1000000000000}};

START_TEST(what_cannot_be_told_apart_is_not_signed)
{
    char entry[SEAL_WEBHOOK_ENTRY_MAX + 1];
    static const unsigned char secret[SEAL_WHSEC_MIN];
    struct seal_attempt a = {text(unsigned_[_i].id), unsigned_[_i].time, text("body")};
    ck_assert(!seal_webhook_v1(&a, secret, sizeof secret, entry));
    a = (struct seal_attempt){text("a"), 999999999999, text("body")};
    ck_assert(seal_webhook_v1(&a, secret, sizeof secret, entry));
    ck_assert(!seal_webhook_v1(&a, secret, 0, entry));
}
END_TEST

/* ---- secrets -------------------------------------------------------------------------------- */

static const char *const not_secrets[] = {
    "", "whsec_", "whsec", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=",
    "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==",
    "whsec_whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=", /* as one who pastes might */
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", " whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa-_",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAB==", /* bits that mean nothing are not nought */
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw====", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaQ=", /* 23 bytes */
    "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", /* 65 */
};

START_TEST(what_is_no_secret_is_not_read)
{
    unsigned char secret[SEAL_WHSEC_MAX];
    size_t n;
    ck_assert(!seal_whsec_read(text(not_secrets[_i]), secret, &n));
}
END_TEST

START_TEST(a_new_secret_is_read)
{
    char one[SEAL_WHSEC_TEXT_MAX + 1], other[SEAL_WHSEC_TEXT_MAX + 1];
    unsigned char secret[SEAL_WHSEC_MAX];
    size_t n;
    seal_whsec_new(one);
    seal_whsec_new(other);
    ck_assert(seal_whsec_read(text(one), secret, &n) && n == 32);
    ck_assert_str_ne(one, other);
    memset(secret, 255, sizeof secret);
    memcpy(one, "whsec_", 6);
    seal_base64_encode(one + 6, secret, SEAL_WHSEC_MAX);
    ck_assert(seal_whsec_read(text(one), secret, &n) && n == SEAL_WHSEC_MAX);
}
END_TEST

/* ---- forgeries ------------------------------------------------------------------------------ */

/* Whoever knows the public key can make an HMAC with it. */
START_TEST(a_public_key_is_no_secret)
{
    char entry[SEAL_WEBHOOK_ENTRY_MAX + 1], as_v1a[SEAL_WEBHOOK_ENTRY_MAX + 2];
    struct seal_attempt a = {text(vectors[0].id), vectors[0].time, text(vectors[0].body)};
    ck_assert(seal_webhook_v1(&a, public_key[0], SEAL_KEY_BYTES, entry));
    snprintf(as_v1a, sizeof as_v1a, "v1a,%s", entry + 3);
    ck_assert_int_eq(verify_a("1614265330", entry, false, true, 1614265330), SEAL_WEBHOOK_SIGNATURE);
    ck_assert_int_eq(verify_a("1614265330", entry, true, true, 1614265330), SEAL_WEBHOOK_SIGNATURE);
    ck_assert_int_eq(verify_a("1614265330", as_v1a, false, true, 1614265330), SEAL_WEBHOOK_SIGNATURE);
}
END_TEST

static enum seal_webhook verify_with(const struct seal_webhook_keys *keys, struct seal_text id, const char *signature)
{
    int64_t at;
    struct seal_delivery d = {id, text("1614265330"), text(signature), text(vectors[0].body)};
    return seal_webhook_verify(&d, keys, 1614265330, &at);
}

START_TEST(a_short_secret_verifies_nothing)
{
    static const unsigned char secret[SEAL_WHSEC_MIN];
    char entry[SEAL_WEBHOOK_ENTRY_MAX + 1];
    struct seal_attempt a = {text("a"), 1614265330, text(vectors[0].body)};
    struct seal_webhook_keys keys = {.secret = secret, .secret_bytes = SEAL_WHSEC_MIN - 1};
    ck_assert(seal_webhook_v1(&a, secret, SEAL_WHSEC_MIN - 1, entry)); /* HMAC fills a key with noughts: it is the same */
    ck_assert_int_eq(verify_with(&keys, a.id, entry), SEAL_WEBHOOK_SIGNATURE);
    keys.secret_bytes = 0;
    ck_assert_int_eq(verify_with(&keys, a.id, entry), SEAL_WEBHOOK_SIGNATURE);
    keys.secret_bytes = SEAL_WHSEC_MIN;
    ck_assert_int_eq(verify_with(&keys, a.id, entry), SEAL_WEBHOOK_OK);
}
END_TEST

START_TEST(without_keys_nothing_verifies)
{
    struct seal_webhook_keys keys = {0};
    ck_assert_int_eq(verify_with(&keys, text(vectors[0].id), RIGHT " " V1A), SEAL_WEBHOOK_SIGNATURE);
}
END_TEST

/* A key of low order would make a signature of noughts one of everything. */
START_TEST(a_public_key_of_low_order_verifies_nothing)
{
    unsigned char low[1][SEAL_KEY_BYTES] = {{(unsigned char)_i}};
    unsigned char noughts[SEAL_SIGNATURE_BYTES] = {(unsigned char)_i};
    char entry[SEAL_WEBHOOK_ENTRY_MAX + 1] = "v1a,";
    struct seal_webhook_keys keys = {.public_keys = low, .public_count = 1};
    seal_base64_encode(entry + 4, noughts, sizeof noughts);
    ck_assert_int_eq(verify_with(&keys, text(vectors[0].id), entry), SEAL_WEBHOOK_SIGNATURE);
}
END_TEST

/* S and S + L are the same number modulo the group's order: only the smaller one is taken. */
START_TEST(there_is_one_form_of_a_signature)
{
    static const unsigned char L[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
                                        0xa2, 0xde, 0xf9, 0xde, 0x14, [31] = 0x10};
    unsigned char signature[SEAL_SIGNATURE_BYTES + 3];
    char entry[SEAL_WEBHOOK_ENTRY_MAX + 1] = "v1a,";
    struct seal_webhook_keys keys = {.public_keys = public_key, .public_count = 1};
    size_t n;
    unsigned carry = 0;
    ck_assert(seal_base64_decode(V1A + 4, 88, signature, &n));
    for (unsigned i = 0; i < 32; i++) {
        carry += signature[32 + i] + L[i];
        signature[32 + i] = (unsigned char)carry;
        carry >>= 8;
    }
    seal_base64_encode(entry + 4, signature, SEAL_SIGNATURE_BYTES);
    ck_assert_int_eq(verify_with(&keys, text(vectors[0].id), V1A), SEAL_WEBHOOK_OK);
    ck_assert_int_eq(verify_with(&keys, text(vectors[0].id), entry), SEAL_WEBHOOK_SIGNATURE);
}
END_TEST

START_TEST(a_signature_of_any_length_is_only_wrong)
{
    char entry[4096];
    struct seal_webhook_keys keys = {.secret = public_key[0], .secret_bytes = 32, .public_keys = public_key, .public_count = 1};
    for (unsigned n = 0; n + 5 < sizeof entry; n += n < 200 ? 1 : 1000) {
        memset(entry, 'A', sizeof entry);
        memcpy(entry, n % 2 == 0 ? "v1a," : "v1,A", 4);
        entry[4 + n] = 0;
        ck_assert_int_eq(verify_with(&keys, text(vectors[0].id), entry), SEAL_WEBHOOK_SIGNATURE);
    }
}
END_TEST

START_TEST(the_second_public_key_verifies)
{
    unsigned char both[2][SEAL_KEY_BYTES] = {{9}};
    struct seal_webhook_keys keys = {.public_keys = both, .public_count = 2};
    memcpy(both[1], public_key[0], SEAL_KEY_BYTES);
    ck_assert_int_eq(verify_with(&keys, text(vectors[0].id), V1A), SEAL_WEBHOOK_OK);
}
END_TEST

START_TEST(an_id_that_could_be_read_otherwise_is_malformed)
{
    static const char *const ids[] = {"", "msg.p5", ".", "msg p5", "msg\tp5", "msg\x7f", "msg\xc3\xa9"};
    char longest[SEAL_WEBHOOK_ID_MAX + 2];
    struct seal_webhook_keys keys = {.public_keys = public_key, .public_count = 1};
    for (unsigned i = 0; i < COUNT(ids); i++)
        ck_assert_int_eq(verify_with(&keys, text(ids[i]), V1A), SEAL_WEBHOOK_MISSING);
    ck_assert_int_eq(verify_with(&keys, (struct seal_text){"a\0b", 3}, V1A), SEAL_WEBHOOK_MISSING);
    memset(longest, 'a', sizeof longest);
    ck_assert_int_eq(verify_with(&keys, (struct seal_text){longest, SEAL_WEBHOOK_ID_MAX}, V1A), SEAL_WEBHOOK_SIGNATURE);
    ck_assert_int_eq(verify_with(&keys, (struct seal_text){longest, SEAL_WEBHOOK_ID_MAX + 1}, V1A), SEAL_WEBHOOK_MISSING);
}
END_TEST

static void begin(void)
{
    ck_assert(seal_init());
}

static Suite *suite(void)
{
    Suite *s = suite_create("webhook");
    TCase *t = run_case(s, "webhook");
    temp_use(t);
    tcase_add_checked_fixture(t, begin, NULL);
    tcase_add_loop_test(t, v1_is_that_of_the_published_vectors, 0, COUNT(vectors));
    tcase_add_test(t, a_short_secret_signs_and_is_not_read);
    tcase_add_loop_test(t, a_delivery_is_judged, 0, COUNT(deliveries));
    tcase_add_test(t, v1a_is_that_of_the_published_vector);
    tcase_add_loop_test(t, what_cannot_be_told_apart_is_not_signed, 0, COUNT(unsigned_));
    tcase_add_loop_test(t, what_is_no_secret_is_not_read, 0, COUNT(not_secrets));
    tcase_add_test(t, a_new_secret_is_read);
    tcase_add_test(t, a_public_key_is_no_secret);
    tcase_add_test(t, a_short_secret_verifies_nothing);
    tcase_add_test(t, without_keys_nothing_verifies);
    tcase_add_loop_test(t, a_public_key_of_low_order_verifies_nothing, 0, 2);
    tcase_add_test(t, there_is_one_form_of_a_signature);
    tcase_add_test(t, a_signature_of_any_length_is_only_wrong);
    tcase_add_test(t, the_second_public_key_verifies);
    tcase_add_test(t, an_id_that_could_be_read_otherwise_is_malformed);
    return s;
}

int main(void)
{
    return run_suite(suite());
}
