/* seal/box: what was sealed comes out again, and nothing else does. */
#include "seal/box.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

#define TEXT(s) ((struct seal_text){(s), strlen(s)})

/* Of "text" about "about", with the secret 00 01 … 1f: computed by another program, from the standards. */
#define KNOWN "wmUepjnU6ppR39XDD0-fsOqKfA8"

static struct seal_box_keys keys, others;
static char text[SEAL_BOX_TEXT_MAX + 1];
static unsigned char out[SEAL_BOX_MAX];
static size_t n;

static void init(void)
{
    unsigned char secret[SEAL_BOX_SECRET_BYTES];
    ck_assert(seal_init());
    for (size_t i = 0; i < sizeof secret; i++)
        secret[i] = (unsigned char)i;
    seal_box_keys(secret, &keys);
    secret[31]++;
    seal_box_keys(secret, &others);
}

static size_t seal(const char *about, const char *what)
{
    return seal_box_close(&keys, TEXT(about), what, strlen(what), text);
}

static bool opens(const char *about, const char *sealed, size_t length)
{
    return seal_box_open(&keys, TEXT(about), (struct seal_text){sealed, length}, out, &n);
}

START_TEST(it_comes_out_again)
{
    size_t length = seal("page", "after this");
    ck_assert_uint_eq(length, strlen(text));
    ck_assert(opens("page", text, length));
    ck_assert_uint_eq(n, 10);
    ck_assert_mem_eq(out, "after this", 10);
}
END_TEST

START_TEST(every_length_comes_out_again)
{
    unsigned char all[SEAL_BOX_MAX];
    memset(all, 'x', sizeof all);
    for (size_t i = 0; i <= SEAL_BOX_MAX; i++) {
        size_t length = seal_box_close(&keys, TEXT(""), all, i, text);
        ck_assert_uint_gt(length, 0);
        ck_assert_uint_le(length, SEAL_BOX_TEXT_MAX);
        ck_assert(seal_box_open(&keys, TEXT(""), (struct seal_text){text, length}, out, &n));
        ck_assert_uint_eq(n, i);
        ck_assert_mem_eq(out, all, i);
    }
}
END_TEST

START_TEST(the_same_always_looks_the_same)
{
    size_t length = seal("about", "text");
    ck_assert_str_eq(text, KNOWN);
    ck_assert_uint_eq(length, strlen(KNOWN));
}
END_TEST

START_TEST(only_letters_of_base64url)
{
    static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (int i = 0; i < 100; i++) {
        char what[16];
        snprintf(what, sizeof what, "%d", i);
        size_t length = seal("page", what);
        ck_assert_uint_eq(strspn(text, base64url), length);
    }
}
END_TEST

START_TEST(another_text_or_thing_has_another_tag)
{
    char first[23], second[23];
    seal("about", "text");
    memcpy(first, text, sizeof first); /* the tag is in the first 22 characters */
    seal("about", "texu");
    memcpy(second, text, sizeof second);
    ck_assert_mem_ne(first, second, 21);
    seal("aboutt", "ext"); /* the same bytes one after the other */
    memcpy(second, text, sizeof second);
    ck_assert_mem_ne(first, second, 21);
}
END_TEST

START_TEST(about_another_thing_it_does_not_open)
{
    size_t length = seal("page of scores", "text");
    ck_assert(!opens("page of score", text, length));
    ck_assert(!opens("", text, length));
    ck_assert(!opens("page of scores ", text, length));
}
END_TEST

START_TEST(with_other_keys_it_does_not_open)
{
    size_t length = seal("about", "text");
    ck_assert(!seal_box_open(&others, TEXT("about"), (struct seal_text){text, length}, out, &n));
}
END_TEST

START_TEST(every_character_matters)
{
    size_t length = seal("about", "some text");
    for (size_t i = 0; i < length; i++) {
        char was = text[i];
        for (const char *c = "Aa0-_"; *c != 0; c++) {
            text[i] = *c;
            ck_assert_msg(*c == was || !opens("about", text, length), "%zu", i);
        }
        text[i] = was;
    }
}
END_TEST

START_TEST(every_length_matters)
{
    size_t length = seal("about", "some text");
    for (size_t i = 0; i < length; i++)
        ck_assert(!opens("about", text, i));
    text[length] = 'A';
    ck_assert(!opens("about", text, length + 1));
}
END_TEST

static const char *const wrong[] = {"", "A", "=", "AAAA====", "not base64!", " AAAA", "AAAA\n",
                                    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
                                    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "\xc3\xa4"};

START_TEST(what_was_never_sealed)
{
    ck_assert(!opens("about", wrong[_i], strlen(wrong[_i])));
}
END_TEST

START_TEST(too_long_to_be_opened)
{
    static char vast[SEAL_BOX_TEXT_MAX + 100];
    memset(vast, 'A', sizeof vast);
    for (size_t i = SEAL_BOX_TEXT_MAX - 4; i < sizeof vast; i++)
        ck_assert(!opens("about", vast, i));
}
END_TEST

START_TEST(too_much_to_be_sealed)
{
    static char vast[SEAL_BOX_MAX + SEAL_BOX_ABOUT_MAX];
    ck_assert_uint_eq(seal_box_close(&keys, TEXT(""), vast, SEAL_BOX_MAX + 1, text), 0);
    struct seal_text about = {vast, SEAL_BOX_ABOUT_MAX + 1};
    ck_assert_uint_eq(seal_box_close(&keys, about, vast, 1, text), 0);
    about.n--;
    ck_assert_uint_gt(seal_box_close(&keys, about, vast, SEAL_BOX_MAX, text), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("box");
    TCase *t = run_case(s, "box");
    tcase_add_checked_fixture(t, init, NULL);
    tcase_add_test(t, it_comes_out_again);
    tcase_add_test(t, every_length_comes_out_again);
    tcase_add_test(t, the_same_always_looks_the_same);
    tcase_add_test(t, only_letters_of_base64url);
    tcase_add_test(t, another_text_or_thing_has_another_tag);
    tcase_add_test(t, about_another_thing_it_does_not_open);
    tcase_add_test(t, with_other_keys_it_does_not_open);
    tcase_add_test(t, every_character_matters);
    tcase_add_test(t, every_length_matters);
    tcase_add_loop_test(t, what_was_never_sealed, 0, COUNT(wrong));
    tcase_add_test(t, too_long_to_be_opened);
    tcase_add_test(t, too_much_to_be_sealed);
    return run_suite(s);
}
