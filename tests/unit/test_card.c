/* seal/card: a card is read as it was made, and nothing else is a card. */
#include "seal/card.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "seal/base64.h"
#include "tests/unit/temp.h"

#define NOW 1764556800
#define DAY 86400

static struct seal_error error;
static struct seal_keys *keys;
static struct seal_card card;
static char folder[1024], text[SEAL_CARD_MAX];
static struct seal_key identity;

static struct seal_key make(enum seal_key_kind kind, int64_t now, int64_t until)
{
    struct seal_key made;
    ck_assert_msg(seal_key_new(folder, kind, now, until, &made, &error), "%s", error.text);
    return made;
}

static void load(void)
{
    seal_keys_free(keys);
    ck_assert_msg(seal_keys_load(folder, &keys, &error), "%s", error.text);
}

static void init(void)
{
    ck_assert(seal_init());
    unsetenv("CREDENTIALS_DIRECTORY");
    snprintf(folder, sizeof folder, "%s", temp_path("keys"));
    keys = NULL;
    identity = make(SEAL_IDENTITY, NOW, 0);
    make(SEAL_TRANSPORT, NOW, 0);
    make(SEAL_SEALING, NOW, NOW + 30 * DAY);
    make(SEAL_LOCAL, NOW, 0);
    load();
}

static void done(void)
{
    seal_keys_free(keys);
}

static bool read_text(const char *p, size_t n)
{
    char *copy = malloc(n > 0 ? n : 1); /* so that reading behind its end is noticed */
    memcpy(copy, p, n);
    bool ok = seal_card_read((struct seal_text){copy, n}, &card, &error);
    free(copy);
    return ok;
}

static void make_card(int64_t now)
{
    size_t n = seal_card_make(keys, now, text);
    ck_assert_uint_gt(n, 0);
    ck_assert_uint_eq(n, strlen(text));
}

static bool reads(void)
{
    return read_text(text, strlen(text));
}

/* Replaces the first `what` of the text. */
static void edit(const char *what, const char *by)
{
    char out[SEAL_CARD_MAX * 2];
    char *at = strstr(text, what);
    ck_assert_msg(at != NULL, "%s is not in %s", what, text);
    int n = snprintf(out, sizeof out, "%.*s%s%s", (int)(at - text), text, by, at + strlen(what));
    ck_assert_int_lt(n, SEAL_CARD_MAX);
    memcpy(text, out, (size_t)n + 1);
}

START_TEST(it_is_read_as_it_was_made)
{
    make_card(NOW + 1);
    ck_assert_msg(reads(), "%s", error.text);
    ck_assert_uint_eq(card.identities, 1);
    ck_assert_uint_eq(card.transports, 1);
    ck_assert_uint_eq(card.sealings, 1);
    ck_assert_mem_eq(card.identity[0].key, identity.key, SEAL_KEY_BYTES);
    ck_assert_mem_eq(card.identity[0].id, identity.id, SEAL_KEY_ID_BYTES);
    const struct seal_key *sealing = seal_keys_current(keys, SEAL_SEALING, NOW);
    ck_assert_mem_eq(card.sealing[0].id, sealing->id, SEAL_KEY_ID_BYTES);
    ck_assert_int_eq(card.sealing[0].valid_until, NOW + 30 * DAY);
    ck_assert_int_eq(card.sealing[0].valid_from, NOW);
    ck_assert_int_eq(card.horizon_s, 45 * DAY);
    ck_assert_int_eq(card.made, NOW + 1);
}
END_TEST

START_TEST(nothing_of_a_secret_is_in_it)
{
    char base64[SEAL_KEY_BYTES * 2];
    const struct seal_key *key;
    make_card(NOW);
    ck_assert_ptr_null(strstr(text, "local"));
    for (unsigned i = 0; (key = seal_keys_at(keys, i)) != NULL; i++) {
        char hex[SEAL_KEY_ID_HEX + 1], name[100];
        seal_key_hex(key->id, hex);
        snprintf(name, sizeof name, "keys/%s-%s.key", seal_key_kind_name(key->kind), hex);
        size_t n;
        char *file = temp_read(temp_path(name), &n);
        file = realloc(file, n + 1);
        file[n] = 0;
        snprintf(base64, sizeof base64, "%.44s", strstr(file, "secret ") + 7);
        ck_assert_ptr_null(strstr(text, base64));
        free(file);
    }
}
END_TEST

START_TEST(what_is_missing_makes_no_card)
{
    static const enum seal_key_kind need[] = {SEAL_IDENTITY, SEAL_TRANSPORT, SEAL_SEALING};
    ck_assert(seal_key_destroy(folder, seal_keys_current(keys, need[_i], NOW), &error));
    load();
    ck_assert_uint_eq(seal_card_make(keys, NOW, text), 0);
}
END_TEST

START_TEST(a_sealing_key_that_is_over_makes_no_card)
{
    ck_assert_uint_gt(seal_card_make(keys, NOW + 30 * DAY - 1, text), 0);
    ck_assert_uint_eq(seal_card_make(keys, NOW + 30 * DAY, text), 0);
}
END_TEST

START_TEST(keys_in_their_overlap_are_in_it_newest_first)
{
    struct seal_key old = *seal_keys_current(keys, SEAL_SEALING, NOW);
    struct seal_key new = make(SEAL_SEALING, NOW + DAY, NOW + 31 * DAY);
    ck_assert(seal_key_retire(folder, &old, NOW + DAY, NOW + 3 * DAY, &error));
    load();
    make_card(NOW + 2 * DAY);
    ck_assert(reads());
    ck_assert_uint_eq(card.sealings, 2);
    ck_assert_mem_eq(card.sealing[0].id, new.id, sizeof new.id);
    ck_assert_mem_eq(card.sealing[1].id, old.id, sizeof old.id);
    ck_assert_int_eq(card.sealing[1].valid_until, NOW + 3 * DAY);
    make_card(NOW + 3 * DAY);
    ck_assert(reads());
    ck_assert_uint_eq(card.sealings, 1);
}
END_TEST

START_TEST(no_more_than_eight_of_a_kind_are_in_it)
{
    for (int i = 1; i <= 10; i++)
        make(SEAL_TRANSPORT, NOW + i, 0);
    load();
    make_card(NOW + 11);
    ck_assert(reads());
    ck_assert_uint_eq(card.transports, SEAL_CARD_KEYS_MAX);
    const struct seal_key *newest = seal_keys_current(keys, SEAL_TRANSPORT, NOW + 11);
    ck_assert_mem_eq(card.transport[0].id, newest->id, sizeof newest->id);
}
END_TEST

static void follow(unsigned n)
{
    for (unsigned i = 1; i <= n; i++) {
        struct seal_key made = {.created = NOW + (int)i};
        ck_assert(seal_key_follow(folder, keys, &identity, &made, &error));
        ck_assert(seal_key_retire(folder, &identity, NOW + (int)i, NOW + (int)i + DAY, &error));
        identity = made;
        load();
    }
}

START_TEST(identities_before_it_are_in_it)
{
    struct seal_key first = identity;
    follow(2);
    make_card(NOW + 2);
    ck_assert_msg(reads(), "%s", error.text);
    ck_assert_uint_eq(card.identities, 3);
    ck_assert_mem_eq(card.identity[0].id, identity.id, sizeof first.id);
    ck_assert_mem_eq(card.identity[2].id, first.id, sizeof first.id);
    ck_assert_int_eq(card.identity[2].valid_until, NOW + 1 + DAY);
}
END_TEST

START_TEST(a_card_with_all_there_can_be_fits)
{
    follow(9);
    for (int i = 1; i <= 8; i++) {
        make(SEAL_TRANSPORT, NOW + i, NOW + 100 * DAY);
        make(SEAL_SEALING, NOW + i, NOW + 100 * DAY);
    }
    load();
    make_card(NOW + 10);
    ck_assert(reads());
    ck_assert_uint_eq(card.identities, SEAL_CARD_KEYS_MAX);
    ck_assert_uint_lt(strlen(text), SEAL_CARD_MAX / 2);
}
END_TEST

START_TEST(a_chain_without_a_link_is_refused)
{
    follow(2);
    make_card(NOW + 2);
    char *first = strstr(text, "\"previous\":[") + 12, *second = strstr(first, "},{") + 2;
    memmove(first, second, strlen(second) + 1);
    ck_assert(!reads());
}
END_TEST

START_TEST(white_space_and_order_are_free)
{
    make_card(NOW);
    edit("{\"hanji\":\"card/1\",", "  {\r\n\t");
    edit(",\"horizon\":", " , \"hanji\" : \"card/1\"\n,\"horizon\" :\t");
    text[strlen(text) - 1] = 0;
    strcat(text, " } \n");
    ck_assert_msg(reads(), "%s", error.text);
}
END_TEST

START_TEST(an_escaped_slash_is_a_slash)
{
    char *slash = NULL;
    for (int i = 0; slash == NULL; i++) { /* sig is another one each second; half of them have one */
        make_card(NOW + i);
        slash = strchr(strstr(text, "\"sig\""), '/');
    }
    memmove(slash + 1, slash, strlen(slash) + 1);
    *slash = '\\';
    ck_assert_msg(reads(), "%s", error.text);
}
END_TEST

START_TEST(a_cut_card_is_refused)
{
    make_card(NOW);
    for (size_t n = 0; n < strlen(text); n++)
        ck_assert(!read_text(text, n));
}
END_TEST

/* A character of it that is another one is refused, unless it is the same card still: there is none such. */
START_TEST(a_changed_card_is_refused)
{
    make_card(NOW);
    for (size_t i = 0; text[i] != 0; i++) {
        char was = text[i];
        text[i] = was == '0' ? '1' : was == 'A' ? 'B' : '0';
        ck_assert_msg(!reads(), "%s", text);
        text[i] = was;
    }
}
END_TEST

static const struct {
    const char *what, *by;
} wrong[] = {
    {"{\"hanji\"", "{\"Hanji\""},
    {"card/1", "card/2"},
    {"card/1", "card\\/1"},
    {"\"card/1\"", "1"},
    {"{\"hanji\":\"card/1\",", "{"},
    {"{\"hanji\":\"card/1\",", "{\"hanji\":\"card/1\",\"hanji\":\"card/1\","},
    {"{\"hanji\":\"card/1\",", "{\"hanji\":\"card/1\",\"more\":1,"},
    {"{\"hanji\":\"card/1\",", "{,\"hanji\":\"card/1\","},
    {"{\"hanji\":\"card/1\",", "[\"hanji\":\"card/1\","},
    {"\"previous\":[],", ""},
    {"\"previous\":[]", "\"previous\":null"},
    {"\"previous\":[]", "\"previous\":[,]"},
    {"\"previous\":[]", "\"previous\":[{}]"},
    {"\"previous\":[]", "\"previous\":[[]]"},
    {"\"until\":0", "\"until\":-1"},
    {"\"until\":0", "\"until\":00"},
    {"\"until\":0", "\"until\":0.0"},
    {"\"until\":0", "\"until\":0e0"},
    {"\"until\":0", "\"until\":\"0\""},
    {"\"until\":0", "\"until\":9007199254740992"},
    {"\"until\":0", "\"until\":99999999999999999999999"},
    {"\"until\":0", "\"until\":1"},
    {",\"until\":0", ""},
    {",\"until\":0", ",\"until\":0,\"sig\":\"\""},
    {"\"from\":1764556800", "\"from\":01764556800"},
    {"\"from\":1764556800", "\"from\": +1764556800"},
    {"\"key\":\"", "\"key\":\"A"},
    {"\"key\":\"", "\"key\":\" "},
    {"\"key\":\"", "\"key\":\"\\u0041"},
    {"\"key\":\"", "\"key\":\"\\"},
    {"=\"", "\""},
    {"=\"", "==\""},
    {"\"transport\":[", "\"transport\":["
                         "{\"key\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\",\"from\":0,\"until\":0},"},
    {"\"sealing\":[", "\"sealing\":["
                       "{\"key\":\"CQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAIA=\",\"from\":0,\"until\":0},"},
    {"\"horizon\":3888000", "\"horizon\":3888001"},
    {"\"horizon\":3888000", "\"horizon\":null"},
    {",\"made\":1764556800", ""},
    {"\"sig\":", "\"Sig\":"},
};

START_TEST(a_malformed_card_is_refused)
{
    make_card(NOW);
    edit(wrong[_i].what, wrong[_i].by);
    ck_assert(!reads());
    ck_assert_uint_eq(card.identities, 0);
    ck_assert_uint_gt(strlen(error.text), 10);
}
END_TEST

START_TEST(what_is_no_card_at_all)
{
    static const char *const texts[] = {"", " ", "{", "{}", "[]", "null", "\"", "{\"", "{\"hanji\"", "{\"hanji\":",
                                        "\xff\xfe", "{\"a\":1}", "whsec_AAAA", "{\"hanji\":\"card/1\"}"};
    ck_assert(!read_text(texts[_i], strlen(texts[_i])));
}
END_TEST

START_TEST(something_behind_it_is_refused)
{
    make_card(NOW);
    strcat(text, _i == 0 ? "}" : _i == 1 ? "{}" : "x");
    ck_assert(!reads());
}
END_TEST

START_TEST(what_is_too_long_is_refused)
{
    make_card(NOW);
    size_t n = strlen(text);
    memset(text + n, ' ', sizeof text - n);
    ck_assert(read_text(text, sizeof text - 1));
    ck_assert(!read_text(text, sizeof text));
}
END_TEST

/* A card that the identity did sign, of keys that it should not have: made with libsodium from the canonical form. */
static void forge(const unsigned char sealing[SEAL_KEY_BYTES], const unsigned char *second)
{
    unsigned char pk[32], sk[64], tk[32], what[600], sig[64], *to = what;
    unsigned char horizon[16] = {1};
    const unsigned char times[16] = {0}, one[4] = {1}, two[4] = {2};
    char k[64], t[64], s[64], s2[64] = "", g[100], more[200] = "";
    crypto_sign_keypair(pk, sk);
    crypto_sign_keypair(tk, (unsigned char[64]){0});
    to = mempcpy(mempcpy(to, "hanji/card/1", 13), horizon, 16);
    to = mempcpy(mempcpy(mempcpy(to, one, 4), pk, 32), times, 16);
    to = mempcpy(mempcpy(mempcpy(to, one, 4), tk, 32), times, 16);
    to = mempcpy(mempcpy(mempcpy(to, second != NULL ? two : one, 4), sealing, 32), times, 16);
    if (second != NULL) {
        to = mempcpy(mempcpy(to, second, 32), times, 16);
        seal_base64_encode(s2, second, 32);
        snprintf(more, sizeof more, ",{\"key\":\"%s\",\"from\":0,\"until\":0}", s2);
    }
    crypto_sign_detached(sig, NULL, what, (size_t)(to - what), sk);
    seal_base64_encode(k, pk, 32);
    seal_base64_encode(t, tk, 32);
    seal_base64_encode(s, sealing, 32);
    seal_base64_encode(g, sig, 64);
    snprintf(text, sizeof text,
             "{\"hanji\":\"card/1\",\"identity\":{\"key\":\"%s\",\"from\":0,\"until\":0},\"previous\":[],"
             "\"transport\":[{\"key\":\"%s\",\"from\":0,\"until\":0}],"
             "\"sealing\":[{\"key\":\"%s\",\"from\":0,\"until\":0}%s],\"horizon\":1,\"made\":0,\"sig\":\"%s\"}",
             k, t, s, more, g);
}

START_TEST(the_canonical_form_is_as_it_is_written_down)
{
    unsigned char sealing[32], secret[32], other[32];
    crypto_box_keypair(sealing, secret);
    crypto_box_keypair(other, secret);
    forge(sealing, NULL);
    ck_assert_msg(reads(), "%s", error.text);
    forge(sealing, other);
    ck_assert_msg(reads(), "%s", error.text);
    forge(sealing, sealing);
    ck_assert(!reads());
    ck_assert_ptr_nonnull(strstr(error.text, "twice"));
}
END_TEST

START_TEST(signed_weak_keys_are_refused)
{
    unsigned char key[32] = {0};
    if (_i == 1)
        key[0] = 1;
    if (_i == 2) {
        key[0] = 9;
        key[31] = 0x80;
    }
    forge(key, NULL);
    ck_assert(!reads());
    ck_assert_ptr_nonnull(strstr(error.text, "weak"));
}
END_TEST

START_TEST(a_fingerprint_is_the_identitys)
{
    char a[SEAL_FINGERPRINT_LEN + 1], b[SEAL_FINGERPRINT_LEN + 1];
    unsigned char key[32] = {0};
    seal_fingerprint(key, a);
    ck_assert_str_eq(a, "r438 n4h3 d15c ypg2 e538 acgr n2dm sse1");
    ck_assert_uint_eq(strlen(a), SEAL_FINGERPRINT_LEN);
    key[31] = 0x80;
    seal_fingerprint(key, b);
    ck_assert_str_ne(a, b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("card");
    TCase *t = run_case(s, "card");
    temp_use(t);
    tcase_add_checked_fixture(t, init, done);
    tcase_add_test(t, it_is_read_as_it_was_made);
    tcase_add_test(t, nothing_of_a_secret_is_in_it);
    tcase_add_loop_test(t, what_is_missing_makes_no_card, 0, 3);
    tcase_add_test(t, a_sealing_key_that_is_over_makes_no_card);
    tcase_add_test(t, keys_in_their_overlap_are_in_it_newest_first);
    tcase_add_test(t, no_more_than_eight_of_a_kind_are_in_it);
    tcase_add_test(t, identities_before_it_are_in_it);
    tcase_add_test(t, a_card_with_all_there_can_be_fits);
    tcase_add_test(t, a_chain_without_a_link_is_refused);
    tcase_add_test(t, white_space_and_order_are_free);
    tcase_add_test(t, an_escaped_slash_is_a_slash);
    tcase_add_test(t, a_cut_card_is_refused);
    tcase_add_test(t, a_changed_card_is_refused);
    tcase_add_loop_test(t, a_malformed_card_is_refused, 0, COUNT(wrong));
    tcase_add_loop_test(t, what_is_no_card_at_all, 0, 14);
    tcase_add_loop_test(t, something_behind_it_is_refused, 0, 3);
    tcase_add_test(t, what_is_too_long_is_refused);
    tcase_add_test(t, the_canonical_form_is_as_it_is_written_down);
    tcase_add_loop_test(t, signed_weak_keys_are_refused, 0, 3);
    tcase_add_test(t, a_fingerprint_is_the_identitys);
    return run_suite(s);
}
