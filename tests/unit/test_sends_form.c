/* handlers/sends_form: settings of lines. */
#include "handlers/sends_form.h"

#include <string.h>

#include "tests/unit/run.h"

static struct sends_form f;

static struct str str_of(const char *s)
{
    return (struct str){s, strlen(s)};
}

static void begin(void)
{
    ck_assert(seal_init());
    sends_form_start(&f, str_of("orders"));
}

static void end(void)
{
    sends_form_free(&f);
}

static const struct {
    const char *text;
    double rate;
} rates[] = {{"10/s", 10}, {"0.5/s", 0.5}, {"3", 3}, {"0", 0}, {"1000000", 1e6}, {"2.", 2}};

START_TEST(a_rate)
{
    ck_assert(sends_form_rate(&f, str_of(rates[_i].text)));
    ck_assert_double_eq(f.rate, rates[_i].rate);
}
END_TEST

static const char *const no_rates[] = {"",   "/s",  "-1",   "1e3", "inf", "nan",     "10/m",   "1/s/s", " 1",
                                       "1 ", "0x1", ".5/s", "1,5", "1..2", "1000001", "10 / s",
                                       "99999999999999999999999999999999999"};

START_TEST(no_rate)
{
    ck_assert_msg(!sends_form_rate(&f, str_of(no_rates[_i])), "%s", no_rates[_i]);
    ck_assert_ptr_nonnull(strstr(f.wrong, "rate"));
}
END_TEST

START_TEST(an_order)
{
    ck_assert(sends_form_order(&f, str_of("any")) && !f.fifo);
    ck_assert(sends_form_order(&f, str_of("fifo")) && f.fifo);
    ck_assert(!sends_form_order(&f, str_of("")));
    ck_assert(!sends_form_order(&f, str_of("FIFO")));
    ck_assert(!sends_form_order(&f, str_of("fifo ")));
}
END_TEST

START_TEST(a_secret)
{
    ck_assert(sends_form_secret(&f, str_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")));
    ck_assert_uint_eq(f.secret_bytes, 24);
    ck_assert_str_eq(f.new_secret, "");
    ck_assert(sends_form_secret(&f, str_of("new")));
    ck_assert_uint_eq(f.secret_bytes, 32);
    ck_assert_int_eq(strncmp(f.new_secret, "whsec_", 6), 0);
    ck_assert(sends_form_secret(&f, str_of("none")));
    ck_assert_uint_eq(f.secret_bytes, 0);
    ck_assert_str_eq(f.new_secret, "");
}
END_TEST

static const char *const no_secrets[] = {"", "secret", "whsec_", "whsec_plJ3nmyCDGBKInavdOK15jsl", /* 18 bytes */
                                         "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=",
                                         "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa_w"};

START_TEST(no_secret)
{
    ck_assert_msg(!sends_form_secret(&f, str_of(no_secrets[_i])), "%s", no_secrets[_i]);
    ck_assert_ptr_null(strstr(f.wrong, "MfKQ")); /* it is not told */
}
END_TEST

START_TEST(certificates)
{
    static char pem[DB_LINE_CA_MAX + 1] = "-----BEGIN CERTIFICATE-----\n";
    ck_assert(sends_form_ca(&f, str_of(pem)) && f.ca != NULL);
    ck_assert(sends_form_ca(&f, str_of("")) && f.ca == NULL && f.has_ca);
    ck_assert(!sends_form_ca(&f, str_of("-----BEGIN PRIVATE KEY-----\n")));
    ck_assert(!sends_form_ca(&f, (struct str){pem, 40})); /* a NUL in it */
    memset(pem + strlen(pem), 'A', sizeof pem - strlen(pem));
    ck_assert(sends_form_ca(&f, (struct str){pem, DB_LINE_CA_MAX}));
    ck_assert(!sends_form_ca(&f, (struct str){pem, DB_LINE_CA_MAX + 1}));
}
END_TEST

START_TEST(no_card)
{
    ck_assert(!sends_form_card_text(&f, str_of("{}"), 1));
    ck_assert(!sends_form_card_text(&f, str_of("hanji"), 1));
    ck_assert_uint_eq(f.key_count, 0);
}
END_TEST

static struct seal_card card_of(unsigned char first, unsigned sealings)
{
    struct seal_card card = {.identities = 1, .sealings = sealings, .horizon_s = 100};
    for (unsigned i = 0; i < sealings; i++) {
        card.sealing[i].id[0] = (unsigned char)(first + i);
        card.sealing[i].valid_until = 1000;
    }
    card.identity[0].id[0] = first;
    return card;
}

START_TEST(keys_of_cards)
{
    struct seal_card one = card_of(1, 2), two = card_of(100, 8);
    ck_assert(sends_form_card(&f, &one, 10) && f.key_count == 2);
    ck_assert(sends_form_card(&f, &one, 10) && f.key_count == 2); /* the same */
    ck_assert(sends_form_card(&f, &two, 10) && f.key_count == 10);
    ck_assert_uint_eq(f.keys[2].owner[0], 100);
    ck_assert_int_eq(f.keys[2].horizon_s, 100);
    sends_form_no_keys(&f);
    ck_assert_uint_eq(f.key_count, 0);
    ck_assert(!sends_form_card(&f, &one, 1000)); /* none is valid any more */
    ck_assert_ptr_nonnull(strstr(f.wrong, "valid"));
}
END_TEST

START_TEST(more_keys_than_a_line_has)
{
    for (unsigned char i = 0; i < 8; i++) {
        struct seal_card card = card_of((unsigned char)(i * 8), 8);
        ck_assert(sends_form_card(&f, &card, 10));
    }
    struct seal_card card = card_of(200, 1);
    ck_assert_uint_eq(f.key_count, DB_LINE_KEYS_MAX);
    ck_assert(!sends_form_card(&f, &card, 10));
}
END_TEST

START_TEST(an_operation)
{
    ck_assert_ptr_null(sends_form_op(&f, NULL, true));
    ck_assert_ptr_nonnull(strstr(f.wrong, "address"));
    ck_assert(!sends_form_url(&f, str_of("http://me@example.org/")));
    ck_assert(sends_form_url(&f, str_of("https://example.org/")));
    struct db_op *op = sends_form_op(&f, NULL, true);
    ck_assert_ptr_nonnull(op);
    db_op_free(op);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sends_form");
    TCase *t = run_case(s, "settings");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_loop_test(t, a_rate, 0, COUNT(rates));
    tcase_add_loop_test(t, no_rate, 0, COUNT(no_rates));
    tcase_add_test(t, an_order);
    tcase_add_test(t, a_secret);
    tcase_add_loop_test(t, no_secret, 0, COUNT(no_secrets));
    tcase_add_test(t, certificates);
    tcase_add_test(t, no_card);
    tcase_add_test(t, keys_of_cards);
    tcase_add_test(t, more_keys_than_a_line_has);
    tcase_add_test(t, an_operation);
    return run_suite(s);
}
