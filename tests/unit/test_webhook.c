/* seal/webhook: the published vectors of Standard Webhooks, and what must not verify. */
#include <string.h>

#include "seal/webhook.h"
#include "tests/unit/run.h"

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

/* Of vector A. */
static const unsigned char public_key[1][SEAL_KEY_BYTES] = {
    {0xd5, 0x28, 0x80, 0xe2, 0x8f, 0x61, 0xca, 0xa4, 0xc2, 0xa4, 0x8a, 0x82, 0xe5, 0x5f, 0x47, 0x51,
     0xa9, 0x22, 0x89, 0xa7, 0x80, 0x09, 0xea, 0x9f, 0x65, 0x32, 0x27, 0x0c, 0x16, 0xce, 0x8a, 0xbe}};
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
};

START_TEST(a_delivery_is_judged)
{
    ck_assert_int_eq(verify_a(deliveries[_i].time, deliveries[_i].signature, deliveries[_i].secret,
                              deliveries[_i].key, 1614265330 + deliveries[_i].off),
                     deliveries[_i].result);
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
    tcase_add_checked_fixture(t, begin, NULL);
    tcase_add_loop_test(t, v1_is_that_of_the_published_vectors, 0, COUNT(vectors));
    tcase_add_loop_test(t, a_delivery_is_judged, 0, COUNT(deliveries));
    return s;
}

int main(void)
{
    return run_suite(suite());
}
