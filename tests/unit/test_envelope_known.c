/* seal/envelope with fixed keys: envelopes that another implementation made (tests/data/envelope) open, or do not; no
 * memory that is given back has plaintext in it; and what cannot be sealed is refused. */
#include <malloc.h>
#include <stdio.h>
#include <sys/stat.h>

#include "seal/base64.h"
#include "seal/envelope_internal.h"
#include "seal/key_file.h"
#include "tests/unit/temp.h"

#define DATA "tests/data/envelope/"
#define TEXT(s) ((struct seal_text){(s), sizeof(s) - 1})
#define ID "msg_01kbc0000000000000000000xy"
#define BODY "{\"said\":\"the plaintext of the stored envelope, \xc3\xa9t\xc3\xa9\"}"
#define NOW 1764556800

static struct seal_keys *keys;
static struct seal_key identity, second, first;

/* ---- what is given back --------------------------------------------------------------------- */

static unsigned leaks; /* blocks that were freed with plaintext in them */
static bool watching;

#if !SANITIZED
void __libc_free(void *p);

/* Every free of this program and its libraries: is there plaintext in it? */
void free(void *p)
{
    if (watching && p != NULL && memmem(p, malloc_usable_size(p), "the plaintext", 13) != NULL)
        leaks++;
    __libc_free(p);
}
#endif

/* ---- keys ----------------------------------------------------------------------------------- */

/* Writes a key whose secret is the 32 bytes that count up from one. */
static struct seal_key put_key(enum seal_key_kind kind, unsigned from, const char *until)
{
    struct seal_key key = {.kind = kind};
    unsigned char secret[SEAL_SECRET_BYTES];
    char base64[45], name[SEAL_KEY_NAME_MAX], path[SEAL_KEY_NAME_MAX + 5], text[400];
    for (unsigned i = 0; i < 32; i++)
        secret[i] = from + i;
    seal_base64_encode(base64, secret, 32);
    seal_key_derive(&key, secret);
    seal_key_name(&key, name);
    snprintf(path, sizeof path, "keys/%s", name);
    int n = snprintf(text, sizeof text, "hanji key 1\nkind %s\ncreated 1\nfrom 1\nuntil %s\nretired 0\nsecret %s\n",
                     seal_key_kind_name(kind), until, base64);
    ck_assert_int_eq(chmod(temp_file(path, text, n), 0600), 0);
    return key;
}

static void load(void)
{
    struct seal_error error;
    seal_keys_free(keys);
    ck_assert_msg(seal_keys_load(temp_path("keys"), &keys, &error), "%s", error.text);
}

static void begin(void)
{
    ck_assert(seal_init());
    unsetenv("CREDENTIALS_DIRECTORY");
    ck_assert_int_eq(mkdir(temp_path("keys"), 0700), 0);
    identity = put_key(SEAL_IDENTITY, 0, "0");
    second = put_key(SEAL_SEALING, 32, "0");
    load();
}

static void end(void)
{
    watching = false;
    seal_keys_free(keys);
}

static bool trust(void *arg, const unsigned char id[SEAL_KEY_ID_BYTES], unsigned char key[SEAL_KEY_BYTES])
{
    (*(unsigned *)arg)++;
    memcpy(key, identity.key, SEAL_KEY_BYTES);
    return memcmp(id, identity.id, SEAL_KEY_ID_BYTES) == 0;
}

/* Opens a file of the data; what was opened is the caller's. */
static enum seal_envelope open_file(const char *name, struct seal_opened *opened, char **wire)
{
    size_t n;
    unsigned asked = 0;
    char path[100];
    snprintf(path, sizeof path, DATA "%s.json", name);
    *wire = temp_read(path, &n);
    enum seal_envelope result = seal_envelope_open(keys, (struct seal_text){*wire, n}, trust, &asked, opened);
    ck_assert_uint_le(asked, 1);
    return result;
}

static bool same(struct seal_text t, const char *with)
{
    return t.n == strlen(with) && memcmp(t.p, with, t.n) == 0;
}

/* ---- opening -------------------------------------------------------------------------------- */

static const unsigned char sound_hash[SEAL_HASH_BYTES] = {
    0xec, 0x19, 0x19, 0xcb, 0x4c, 0x79, 0x5a, 0x88, 0x38, 0x33, 0xd5, 0x4f, 0x08, 0x09, 0xec, 0xad,
    0xa7, 0xe1, 0xf5, 0xad, 0x0b, 0x53, 0x8e, 0x09, 0x9d, 0x09, 0x69, 0xd8, 0x3e, 0x93, 0x75, 0x0d};

static void sound_opens(void)
{
    struct seal_opened o;
    char *wire;
    ck_assert_int_eq(open_file("sound", &o, &wire), SEAL_ENVELOPE_OK);
    ck_assert(same(o.body, BODY));
    ck_assert(same(o.id, ID));
    ck_assert(same(o.type, "application/json; profile=\"a\\b\""));
    ck_assert(same(o.place.line, "orders"));
    ck_assert(o.place.fifo && o.place.seq == 42 && o.created == NOW && !o.skipped);
    ck_assert_int_eq(o.place.prev[0], 96);
    ck_assert_mem_eq(o.place.hash, sound_hash, sizeof sound_hash);
    ck_assert_mem_eq(o.from, identity.id, sizeof o.from);
    seal_opened_free(&o);
    free(wire);
}

START_TEST(the_known_envelope_opens_with_the_second_key)
{
    sound_opens();
}
END_TEST

START_TEST(the_known_envelope_opens_with_the_first_key)
{
    char name[SEAL_KEY_NAME_MAX], path[SEAL_KEY_NAME_MAX + 5];
    seal_key_name(&second, name);
    snprintf(path, sizeof path, "keys/%s", name);
    ck_assert_int_eq(remove(temp_path(path)), 0);
    first = put_key(SEAL_SEALING, 64, "0");
    load();
    sound_opens();
}
END_TEST

START_TEST(the_known_tombstone_opens)
{
    struct seal_opened o;
    char *wire;
    ck_assert_int_eq(open_file("skipped", &o, &wire), SEAL_ENVELOPE_OK);
    ck_assert(o.skipped && o.place.seq == 42 && o.body.n == 0 && o.type.n == 0);
    ck_assert_mem_eq(o.place.hash, sound_hash, sizeof sound_hash);
    seal_opened_free(&o);
    free(wire);
}
END_TEST

static const char *const unsound[] = {"split", "uncommitted", "inner", "magic", "endless", "wide"};

START_TEST(what_does_not_agree_inside_does_not_open)
{
    struct seal_opened o;
    struct seal_opened none = {0};
    char *wire;
    memset(&o, 0xff, sizeof o);
    ck_assert_int_eq(open_file(unsound[_i], &o, &wire), SEAL_ENVELOPE_UNOPENABLE);
    ck_assert(o.body.p == NULL && o.memory == NULL && o.id.p == NULL && o.place.seq == none.place.seq);
    seal_opened_free(&o);
    seal_opened_free(&o);
    free(wire);
}
END_TEST

START_TEST(without_a_key_it_is_for_somebody_else)
{
    struct seal_opened o;
    char *wire;
    seal_keys_free(keys);
    keys = seal_keys_none();
    ck_assert_int_eq(open_file("sound", &o, &wire), SEAL_ENVELOPE_RECIPIENT);
    seal_opened_free(&o);
    free(wire);
}
END_TEST

static bool trusts_low_order(void *arg, const unsigned char id[SEAL_KEY_ID_BYTES], unsigned char key[SEAL_KEY_BYTES])
{
    (void)id;
    memset(key, 0, SEAL_KEY_BYTES);
    key[0] = *(unsigned char *)arg;
    return true;
}

/* With such a key a signature of noughts would be one of everything. */
START_TEST(an_identity_of_low_order_signs_nothing)
{
    size_t n;
    struct seal_opened o;
    char *wire = temp_read(DATA "skipped.json", &n);
    char *proof = strstr(wire, "\"proof\":\"") + 9;
    unsigned char low = _i;
    unsigned char noughts[SEAL_SIGNATURE_BYTES] = {low};
    char end_of = proof[88];
    seal_base64_encode(proof, noughts, sizeof noughts);
    proof[88] = end_of;
    ck_assert_int_eq(seal_envelope_open(keys, (struct seal_text){wire, n}, trusts_low_order, &low, &o), SEAL_ENVELOPE_SIGNATURE);
    seal_opened_free(&o);
    free(wire);
}
END_TEST

/* ---- no plaintext is left ------------------------------------------------------------------- */

START_TEST(freed_memory_has_no_plaintext)
{
    struct seal_opened o;
    char *wire;
    char body[] = BODY;
    char out[4096];
    size_t n;
    unsigned char hash[SEAL_HASH_BYTES];
    struct seal_recipient to;
    memcpy(to.id, second.id, sizeof to.id);
    memcpy(to.key, second.key, sizeof to.key);
    struct seal_letter l = {TEXT(ID), TEXT("orders"), TEXT("text/plain"), {body, sizeof body - 1}, NOW, &to, 1};
    watching = true;
    ck_assert_int_eq(seal_envelope_make(keys, &l, out, &n, hash), SEAL_ENVELOPE_OK);
    memset(to.key, 0, sizeof to.key);
    ck_assert_int_eq(seal_envelope_make(keys, &l, out, &n, hash), SEAL_ENVELOPE_MALFORMED);
    ck_assert_int_eq(open_file("sound", &o, &wire), SEAL_ENVELOPE_OK);
    seal_opened_free(&o);
    free(wire);
    for (unsigned i = 0; i < COUNT(unsound); i++) {
        ck_assert_int_eq(open_file(unsound[i], &o, &wire), SEAL_ENVELOPE_UNOPENABLE);
        seal_opened_free(&o);
        free(wire);
    }
    ck_assert_uint_eq(leaks, 0);
    free(strdup(BODY)); /* would be seen */
    ck_assert(SANITIZED || leaks == 1);
}
END_TEST

/* ---- sealing -------------------------------------------------------------------------------- */

static struct seal_recipient many[SEAL_RECIPIENTS_MAX + 1];
static char long_type[SEAL_TYPE_MAX + 1], long_line[SEAL_LINE_MAX + 1];

static struct seal_letter letter(void)
{
    for (unsigned i = 0; i < COUNT(many); i++) {
        memcpy(many[i].id, second.id, sizeof many[i].id);
        memcpy(many[i].key, second.key, sizeof many[i].key);
    }
    memset(long_type, '"', sizeof long_type);
    memset(long_line, 'l', sizeof long_line);
    return (struct seal_letter){TEXT(ID), TEXT("orders"), TEXT("text/plain"), TEXT("x"), NOW, many, 1};
}

/* Into memory of just that size, so that AddressSanitizer sees a byte more. */
static enum seal_envelope make(const struct seal_letter *l)
{
    size_t n = 0, room = seal_envelope_bytes(l) + 1;
    char *out = malloc(room);
    unsigned char hash[SEAL_HASH_BYTES], from[SEAL_KEY_ID_BYTES];
    enum seal_envelope result = seal_envelope_make(keys, l, out, &n, hash);
    ck_assert_uint_lt(n, room);
    ck_assert(n == 0 || out[n] == 0);
    ck_assert_int_eq(seal_envelope_from((struct seal_text){out, n}, from), result == SEAL_ENVELOPE_OK);
    ck_assert(n == 0 || memcmp(from, identity.id, sizeof from) == 0);
    free(out);
    return result;
}

START_TEST(the_largest_letter_has_room)
{
    struct seal_letter l = letter();
    l.type = (struct seal_text){long_type, SEAL_TYPE_MAX};
    l.line = (struct seal_text){long_line, SEAL_LINE_MAX};
    l.created = INT64_MAX;
    l.to_count = SEAL_RECIPIENTS_MAX;
    ck_assert_int_eq(make(&l), SEAL_ENVELOPE_OK);
}
END_TEST

static void no_recipient(struct seal_letter *l) { l->to_count = 0; }
static void too_many(struct seal_letter *l) { l->to_count = SEAL_RECIPIENTS_MAX + 1; }
static void no_id(struct seal_letter *l) { l->id.n = 0; }
static void short_id(struct seal_letter *l) { l->id.n--; }
static void another_id(struct seal_letter *l) { l->id = TEXT("evt_01kbc0000000000000000000xy"); }
static void id_with_a_dot(struct seal_letter *l) { l->id = TEXT("msg_01kbc000000000000000000.xy"); }
static void id_in_capitals(struct seal_letter *l) { l->id = TEXT("msg_01KBC0000000000000000000XY"); }
static void no_line(struct seal_letter *l) { l->line.n = 0; }
static void long_name(struct seal_letter *l) { l->line = (struct seal_text){long_line, SEAL_LINE_MAX + 1}; }
static void line_with_a_quote(struct seal_letter *l) { l->line = TEXT("or\"ders"); }
static void line_with_a_newline(struct seal_letter *l) { l->line = TEXT("orders\r\n"); }
static void line_with_a_nul(struct seal_letter *l) { l->line = TEXT("ord\0ers"); }
static void line_of_a_dot(struct seal_letter *l) { l->line = TEXT(".orders"); }
static void line_of_a_nul(struct seal_letter *l) { l->line = TEXT("\0orders"); }
static void no_type(struct seal_letter *l) { l->type.n = 0; }
static void type_too_long(struct seal_letter *l) { l->type = (struct seal_text){long_type, SEAL_TYPE_MAX + 1}; }
static void type_with_a_newline(struct seal_letter *l) { l->type = TEXT("text/plain\n"); }
static void type_with_a_nul(struct seal_letter *l) { l->type = TEXT("text\0plain"); }
static void type_not_ascii(struct seal_letter *l) { l->type = TEXT("text/\xc3\xa9"); }
static void no_time(struct seal_letter *l) { l->created = 0; }
static void time_before(struct seal_letter *l) { l->created = -1; }
static void low_order(struct seal_letter *l) { memset(many[l->to_count++].key, 0, SEAL_KEY_BYTES); }

static void (*const spoil[])(struct seal_letter *l) = {
    no_recipient, too_many, no_id, short_id, another_id, id_with_a_dot, id_in_capitals, no_line, long_name, line_with_a_quote,
    line_with_a_newline, line_with_a_nul, line_of_a_dot, line_of_a_nul, no_type, type_too_long, type_with_a_newline,
    type_with_a_nul, type_not_ascii, no_time, time_before, low_order};

START_TEST(what_has_no_such_form_is_not_sealed)
{
    struct seal_letter l = letter();
    spoil[_i](&l);
    ck_assert_int_eq(make(&l), SEAL_ENVELOPE_MALFORMED);
}
END_TEST

START_TEST(without_an_identity_nothing_is_sealed)
{
    struct seal_letter l = letter();
    seal_keys_free(keys);
    keys = seal_keys_none();
    ck_assert_int_eq(make(&l), SEAL_ENVELOPE_SENDER);
}
END_TEST

START_TEST(an_identity_whose_time_is_over_seals_nothing)
{
    struct seal_letter l = letter();
    identity = put_key(SEAL_IDENTITY, 0, "1764556800");
    load();
    ck_assert_int_eq(make(&l), SEAL_ENVELOPE_SENDER);
    l.created--;
    ck_assert_int_eq(make(&l), SEAL_ENVELOPE_OK);
}
END_TEST

/* Bodies and the padded text that they give: with 8 bytes of magic, 32 of the header's hash and one that ends them. */
static const struct {
    size_t body, padded;
} classes[] = {{0, 128},     {87, 128},    {88, 256},    {215, 256},   {216, 512},    {471, 512},      {472, 1024},  {983, 1024},
               {984, 2048},  {2007, 2048}, {2008, 4096}, {4055, 4096}, {4056, 8192}, {8151, 8192}, {8152, 12288},
               {262144, 266240}};

START_TEST(a_body_is_padded_to_its_class)
{
    ck_assert_uint_eq(seal_padded_bytes(classes[_i].body), classes[_i].padded);
}
END_TEST

static size_t tombstone(struct seal_text id, struct seal_text line, uint64_t seq, const struct seal_key *by)
{
    char out[SEAL_TOMBSTONE_MAX];
    struct seal_place place = {.line = line, .seq = seq};
    unsigned char proof[SEAL_SIGNATURE_BYTES];
    if (id.n == SEAL_MESSAGE_ID_LEN && memcmp(id.p, ID, id.n) == 0) /* a place has no id */
        ck_assert_int_eq(seal_place_sign(keys, by, &place, proof), seal_tombstone_make(keys, by, id, &place, out) > 0);
    return seal_tombstone_make(keys, by, id, &place, out);
}

START_TEST(what_has_no_such_form_has_no_place)
{
    letter();
    ck_assert_uint_gt(tombstone(TEXT(ID), TEXT("orders"), 1, &identity), 0);
    ck_assert_uint_gt(tombstone(TEXT(ID), (struct seal_text){long_line, SEAL_LINE_MAX}, INT64_MAX, &identity), 0);
    ck_assert_uint_eq(tombstone(TEXT(ID), (struct seal_text){long_line, SEAL_LINE_MAX + 1}, 1, &identity), 0);
    ck_assert_uint_eq(tombstone(TEXT(ID), TEXT("or\"ders"), 1, &identity), 0);
    ck_assert_uint_eq(tombstone(TEXT(ID), TEXT(""), 1, &identity), 0);
    ck_assert_uint_eq(tombstone(TEXT(ID), TEXT("orders"), 0, &identity), 0);
    ck_assert_uint_eq(tombstone(TEXT(ID), TEXT("orders"), UINT64_MAX, &identity), 0);
    ck_assert_uint_eq(tombstone(TEXT(ID), TEXT("orders"), 1, &second), 0); /* a sealing key signs nothing */
    ck_assert_uint_eq(tombstone(TEXT("msg_\"1kbc0000000000000000000xy"), TEXT("orders"), 1, &identity), 0);
    ck_assert_uint_eq(tombstone(TEXT("msg_"), TEXT("orders"), 1, &identity), 0);
}
END_TEST

/* ---- hashes --------------------------------------------------------------------------------- */

START_TEST(a_message_that_is_not_sealed_has_the_known_hash)
{
    static const unsigned char known[SEAL_HASH_BYTES] = {
        0x11, 0x95, 0x50, 0x2d, 0xed, 0xff, 0x2a, 0xc3, 0x98, 0xd9, 0xda, 0xa4, 0xa2, 0x6c, 0x49, 0xec,
        0xe7, 0x02, 0x94, 0x29, 0xc5, 0xbd, 0xc1, 0xae, 0x06, 0x62, 0xa2, 0x69, 0x13, 0xb3, 0x6e, 0xc2};
    unsigned char hash[SEAL_HASH_BYTES], other[SEAL_HASH_BYTES];
    seal_message_hash(TEXT(ID), TEXT("text/plain"), TEXT("not sealed"), hash);
    ck_assert_mem_eq(hash, known, sizeof known);
    seal_message_hash(TEXT(ID), TEXT("text/plain not"), TEXT(" sealed"), other);
    ck_assert_mem_ne(hash, other, sizeof other);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("envelope_known");
    TCase *t = run_case(s, "known");
    temp_use(t);
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, the_known_envelope_opens_with_the_second_key);
    tcase_add_test(t, the_known_envelope_opens_with_the_first_key);
    tcase_add_test(t, the_known_tombstone_opens);
    tcase_add_loop_test(t, what_does_not_agree_inside_does_not_open, 0, COUNT(unsound));
    tcase_add_test(t, without_a_key_it_is_for_somebody_else);
    tcase_add_loop_test(t, an_identity_of_low_order_signs_nothing, 0, 2);
    tcase_add_test(t, freed_memory_has_no_plaintext);
    tcase_add_test(t, the_largest_letter_has_room);
    tcase_add_loop_test(t, what_has_no_such_form_is_not_sealed, 0, COUNT(spoil));
    tcase_add_test(t, without_an_identity_nothing_is_sealed);
    tcase_add_test(t, an_identity_whose_time_is_over_seals_nothing);
    tcase_add_loop_test(t, a_body_is_padded_to_its_class, 0, COUNT(classes));
    tcase_add_test(t, what_has_no_such_form_has_no_place);
    tcase_add_test(t, a_message_that_is_not_sealed_has_the_known_hash);
    return s;
}

int main(void)
{
    return run_suite(suite());
}
