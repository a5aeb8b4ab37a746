/* handlers/sends_seal: which keys a message is sealed to, and what is refused. */
#include "handlers/sends_seal.h"

#include <string.h>

#include "tests/unit/run.h"
#include "tests/unit/temp.h"

enum { NOW = 1800000000, DAY = 86400 };

static struct db_line_key key(unsigned char id, unsigned char owner, int64_t from, int64_t until)
{
    struct db_line_key k = {.valid_from = from, .valid_until = until, .horizon_s = 45 * DAY};
    memset(k.id, id, sizeof k.id);
    memset(k.key, id, sizeof k.key);
    memset(k.owner, owner, sizeof k.owner);
    return k;
}

static struct seal_recipient to[DB_LINE_KEYS_MAX];
static int64_t expires;

START_TEST(the_newest_of_each_owner)
{
    const struct db_line_key keys[] = {
        key(9, 1, NOW + DAY, NOW + 60 * DAY), /* not yet */
        key(8, 1, NOW - DAY, NOW + 30 * DAY),
        key(7, 2, NOW - 2 * DAY, NOW + 10 * DAY),
        key(6, 1, NOW - 30 * DAY, NOW + 2 * DAY),
        key(5, 2, NOW - 60 * DAY, NOW + 1),
        key(4, 3, NOW - 60 * DAY, NOW), /* no more */
    };
    ck_assert_uint_eq(sends_recipients(keys, COUNT(keys), NOW, to, &expires), 2);
    ck_assert_uint_eq(to[0].id[0], 8);
    ck_assert_uint_eq(to[1].id[0], 7);
    ck_assert_int_eq(expires, NOW + 75 * DAY);
}
END_TEST

START_TEST(a_key_without_an_end)
{
    const struct db_line_key keys[] = {key(2, 1, 0, 0), key(1, 2, NOW - DAY, NOW + DAY)};
    ck_assert_uint_eq(sends_recipients(keys, 2, NOW, to, &expires), 2);
    ck_assert_int_eq(expires, 0);
}
END_TEST

START_TEST(none_is_valid)
{
    const struct db_line_key keys[] = {key(2, 1, NOW + 1, 0), key(1, 1, 0, NOW)};
    ck_assert_uint_eq(sends_recipients(keys, 2, NOW, to, &expires), 0);
    ck_assert_uint_eq(sends_recipients(keys, 0, NOW, to, &expires), 0);
    ck_assert_int_eq(expires, 0);
}
END_TEST

START_TEST(all_that_a_line_can_have)
{
    static struct db_line_key keys[DB_LINE_KEYS_MAX];
    for (int i = 0; i < DB_LINE_KEYS_MAX; i++)
        keys[i] = key((unsigned char)i, (unsigned char)i, 0, 0);
    ck_assert_uint_eq(sends_recipients(keys, DB_LINE_KEYS_MAX, NOW, to, &expires), DB_LINE_KEYS_MAX);
}
END_TEST

/* ---- messages ---- */

static struct db_send_made made;
static struct db_error error;

static enum db_result make(const void *body, size_t n, const struct db_line_key *keys, unsigned count,
                           const struct seal_keys *own)
{
    const struct db_send_draft draft = {.line = "orders", .type = "text/plain", .body = body, .bytes = n,
                                        .keys = keys, .key_count = count, .now_s = NOW};
    return sends_make(own, &draft, &made, &error);
}

START_TEST(a_message_that_is_not_sealed)
{
    static char first[DB_MESSAGE_ID_LEN + 1];
    ck_assert_int_eq(make("tea", 3, NULL, 0, NULL), DB_OK);
    ck_assert_ptr_null(made.body);
    ck_assert_uint_eq(made.bytes, 3);
    ck_assert_int_eq(made.expires, 0);
    ck_assert_uint_eq(strlen(made.id), DB_MESSAGE_ID_LEN);
    ck_assert_int_eq(strncmp(made.id, "msg_", 4), 0);
    memcpy(first, made.id, sizeof first);
    ck_assert_int_eq(make("tea", 3, NULL, 0, NULL), DB_OK);
    ck_assert_int_lt(strcmp(first, made.id), 0); /* in order of time */
    ck_assert_int_eq(make("", 0, NULL, 0, NULL), DB_OK);
}
END_TEST

START_TEST(what_is_no_text_is_not_sent_as_it_is)
{
    ck_assert_int_eq(make("\xff", 1, NULL, 0, NULL), DB_INVALID);
    ck_assert_ptr_nonnull(strstr(error.text, "orders"));
    ck_assert_int_eq(make("a\xc3", 2, NULL, 0, NULL), DB_INVALID);
    ck_assert_int_eq(make("\xed\xa0\x80", 3, NULL, 0, NULL), DB_INVALID);
}
END_TEST

START_TEST(too_large)
{
    static char body[DB_SEND_MAX + 1];
    ck_assert_int_eq(make(body, DB_SEND_MAX, NULL, 0, NULL), DB_OK);
    ck_assert_int_eq(make(body, DB_SEND_MAX + 1, NULL, 0, NULL), DB_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(error.text, "262144"));
}
END_TEST

static struct db_line_key real_key(const struct seal_key *k)
{
    struct db_line_key line = {.valid_from = k->valid_from, .valid_until = k->valid_until, .horizon_s = DAY};
    memcpy(line.id, k->id, sizeof line.id);
    memcpy(line.key, k->key, sizeof line.key);
    return line;
}

static void new_keys(struct seal_keys **own, struct seal_key *sealing)
{
    struct seal_error why;
    struct seal_key identity;
    const char *folder = temp_path("keys");
    ck_assert(seal_key_new(folder, SEAL_IDENTITY, NOW - DAY, 0, &identity, &why));
    ck_assert(seal_key_new(folder, SEAL_SEALING, NOW - DAY, NOW + 10 * DAY, sealing, &why));
    ck_assert_msg(seal_keys_load(folder, own, &why), "%s", why.text);
}

START_TEST(a_sealed_message)
{
    static const char secret[] = "\xff\x00 nobody reads this";
    struct seal_keys *own;
    struct seal_key sealing;
    new_keys(&own, &sealing);
    struct db_line_key line = real_key(&sealing);
    ck_assert_msg(make(secret, sizeof secret, &line, 1, own) == DB_OK, "%s", error.text);
    ck_assert_ptr_nonnull(made.body);
    ck_assert_ptr_null(memmem(made.body, made.bytes, "nobody", 6));
    ck_assert_int_eq(made.expires, NOW + 11 * DAY);
    ck_assert_uint_le(made.bytes, DB_WIRE_SEND_MAX);
    free(made.body);
    seal_keys_free(own);
}
END_TEST

START_TEST(the_largest_sealed_message)
{
    static char body[DB_SEND_MAX + 1];
    struct seal_keys *own;
    struct seal_key sealing;
    new_keys(&own, &sealing);
    struct db_line_key line = real_key(&sealing);
    ck_assert_int_eq(make(body, DB_SEND_MAX, &line, 1, own), DB_OK);
    ck_assert_uint_le(made.bytes, DB_WIRE_SEND_MAX);
    free(made.body);
    ck_assert_int_eq(make(body, DB_SEND_MAX + 1, &line, 1, own), DB_TOO_LARGE);
    seal_keys_free(own);
}
END_TEST

START_TEST(nobody_to_seal_to)
{
    struct seal_keys *own;
    struct seal_key sealing;
    new_keys(&own, &sealing);
    struct db_line_key line = real_key(&sealing);
    line.valid_until = NOW;
    ck_assert_int_eq(make("x", 1, &line, 1, own), DB_CONFLICT);
    ck_assert_ptr_null(made.body);
    ck_assert_ptr_nonnull(strstr(error.text, "orders"));
    line = real_key(&sealing);
    memset(line.key, 0, sizeof line.key); /* of low order */
    ck_assert_int_eq(make("x", 1, &line, 1, own), DB_CONFLICT);
    ck_assert_ptr_null(made.body);
    seal_keys_free(own);
}
END_TEST

START_TEST(nothing_to_sign_with)
{
    struct seal_keys *own, *empty;
    struct seal_error why;
    struct seal_key sealing;
    new_keys(&own, &sealing);
    struct db_line_key line = real_key(&sealing);
    ck_assert(seal_keys_load(temp_path("nothing"), &empty, &why));
    ck_assert_int_eq(make("x", 1, &line, 1, empty), DB_REFUSED);
    ck_assert_ptr_null(made.body);
    ck_assert_ptr_nonnull(strstr(error.text, "hanji key new"));
    seal_keys_free(own);
    seal_keys_free(empty);
}
END_TEST

static void begin(void)
{
    ck_assert(seal_init());
}

int main(void)
{
    Suite *s = suite_create("sends_seal");
    TCase *t = run_case(s, "recipients");
    tcase_add_test(t, the_newest_of_each_owner);
    tcase_add_test(t, a_key_without_an_end);
    tcase_add_test(t, none_is_valid);
    tcase_add_test(t, all_that_a_line_can_have);
    t = run_case(s, "messages");
    temp_use(t);
    tcase_add_checked_fixture(t, begin, NULL);
    tcase_add_test(t, a_message_that_is_not_sealed);
    tcase_add_test(t, what_is_no_text_is_not_sent_as_it_is);
    tcase_add_test(t, too_large);
    tcase_add_test(t, a_sealed_message);
    tcase_add_test(t, the_largest_sealed_message);
    tcase_add_test(t, nobody_to_seal_to);
    tcase_add_test(t, nothing_to_sign_with);
    return run_suite(s);
}
