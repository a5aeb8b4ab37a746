/* seal/envelope: what is sealed opens to the same, and nothing that was changed does. */
#include <stdlib.h>
#include <string.h>

#include "seal/envelope.h"
#include "tests/unit/run.h"
#include "tests/unit/temp.h"

static struct seal_keys *keys;
static struct seal_recipient to;
static const struct seal_key *identity;

static void begin(void)
{
    struct seal_error error;
    struct seal_key made;
    ck_assert(seal_init());
    for (unsigned kind = 0; kind < SEAL_KEY_KINDS; kind++)
        ck_assert(seal_key_new(temp_path("keys"), kind, 1000, 0, &made, &error));
    ck_assert_msg(seal_keys_load(temp_path("keys"), &keys, &error), "%s", error.text);
    const struct seal_key *sealing = seal_keys_current(keys, SEAL_SEALING, 2000);
    identity = seal_keys_current(keys, SEAL_IDENTITY, 2000);
    memcpy(to.id, sealing->id, sizeof to.id);
    memcpy(to.key, sealing->key, sizeof to.key);
}

static void end(void)
{
    seal_keys_free(keys);
}

static bool trust(void *arg, const unsigned char id[SEAL_KEY_ID_BYTES],
                  unsigned char key[SEAL_KEY_BYTES])
{
    (void)arg;
    const struct seal_key *k = seal_keys_find(keys, SEAL_IDENTITY, id);
    if (k != NULL)
        memcpy(key, k->key, SEAL_KEY_BYTES);
    return k != NULL;
}

/* An envelope as it travels; n its length. From malloc. */
static char *sealed(size_t body_bytes, size_t *n)
{
    char *body = malloc(body_bytes + 1);
    memset(body, 'x', body_bytes);
    struct seal_letter l = {
        .id = {"msg_01234567890123456789abcdef", SEAL_MESSAGE_ID_LEN},
        .line = {"orders", 6},
        .type = {"text/plain; charset=\"utf-8\"", 27},
        .body = {body, body_bytes},
        .created = 2000,
        .to = &to,
        .to_count = 1,
    };
    struct seal_place place = {.line = l.line, .seq = 42, .fifo = true};
    unsigned char proof[SEAL_SIGNATURE_BYTES];
    char *stored = malloc(seal_envelope_bytes(&l) + 1);
    size_t stored_bytes;
    ck_assert_int_eq(seal_envelope_make(keys, &l, stored, &stored_bytes, place.hash), SEAL_ENVELOPE_OK);
    ck_assert_uint_lt(stored_bytes, seal_envelope_bytes(&l) + 1);
    ck_assert(seal_place_sign(keys, identity, &place, proof));
    char *wire = malloc(stored_bytes + SEAL_PLACE_JSON_MAX);
    *n = seal_envelope_send((struct seal_text){stored, stored_bytes}, &place, proof, wire);
    ck_assert_uint_lt(*n, stored_bytes + SEAL_PLACE_JSON_MAX);
    free(stored);
    free(body);
    return wire;
}

static const size_t sizes[] = {0, 1, 86, 87, 88, 1000, 4055, 4056, 10000, 262144};

START_TEST(what_is_sealed_opens)
{
    size_t n;
    struct seal_opened o;
    char *wire = sealed(sizes[_i], &n);
    ck_assert_int_eq(seal_envelope_open(keys, (struct seal_text){wire, n}, trust, NULL, &o), SEAL_ENVELOPE_OK);
    ck_assert_uint_eq(o.body.n, sizes[_i]);
    for (size_t i = 0; i < o.body.n; i++)
        ck_assert_int_eq(o.body.p[i], 'x');
    ck_assert_uint_eq(o.place.seq, 42);
    ck_assert_int_eq(o.created, 2000);
    ck_assert_mem_eq(o.from, identity->id, SEAL_KEY_ID_BYTES);
    ck_assert_uint_eq(o.type.n, 27);
    ck_assert_mem_eq(o.type.p, "text/plain; charset=\"utf-8\"", 27);
    seal_opened_free(&o);
    free(wire);
}
END_TEST

START_TEST(a_byte_that_was_changed_is_seen)
{
    size_t n;
    struct seal_opened o;
    char *wire = sealed(10, &n);
    for (size_t i = 0; i < n; i++)
        for (unsigned bit = 0; bit < 8; bit += SANITIZED ? 3 : 1) {
            wire[i] = (char)(wire[i] ^ 1 << bit);
            ck_assert_msg(seal_envelope_open(keys, (struct seal_text){wire, n}, trust, NULL, &o) != SEAL_ENVELOPE_OK,
                          "byte %zu bit %u of %s", i, bit, wire);
            wire[i] = (char)(wire[i] ^ 1 << bit);
        }
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(seal_envelope_open(keys, (struct seal_text){wire, i}, trust, NULL, &o), SEAL_ENVELOPE_MALFORMED);
    free(wire);
}
END_TEST

START_TEST(a_tombstone_opens)
{
    char text[SEAL_TOMBSTONE_MAX];
    struct seal_opened o;
    struct seal_place place = {.line = {"orders", 6}, .seq = 7, .hash = {1, 2, 3}};
    size_t n = seal_tombstone_make(keys, identity, (struct seal_text){"msg_01234567890123456789abcdef", 30}, &place, text);
    ck_assert_uint_gt(n, 0);
    ck_assert_int_eq(seal_envelope_open(keys, (struct seal_text){text, n}, trust, NULL, &o), SEAL_ENVELOPE_OK);
    ck_assert(o.skipped && o.place.seq == 7 && o.place.hash[2] == 3 && !o.place.fifo);
    seal_opened_free(&o);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("envelope");
    TCase *t = run_case(s, "envelope");
    temp_use(t);
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_loop_test(t, what_is_sealed_opens, 0, COUNT(sizes));
    tcase_add_test(t, a_byte_that_was_changed_is_seen);
    tcase_add_test(t, a_tombstone_opens);
    return s;
}

int main(void)
{
    return run_suite(suite());
}
