/* seal/password: what a hash is, what is compared and at which cost, and the small things around it. */
#include "seal/password.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/unit/run.h"

static void init(void)
{
    ck_assert(seal_init());
}

static struct seal_text text(const char *s)
{
    return (struct seal_text){s, strlen(s)};
}

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

START_TEST(a_password_is_right)
{
    char hash[SEAL_PASSWORD_HASH_MAX];
    ck_assert(seal_password_hash(text("tea for two"), hash));
    ck_assert_int_eq(strncmp(hash, "$argon2id$v=19$m=19456,t=2,p=1$", 31), 0);
    ck_assert_int_eq(seal_password_check(hash, text("tea for two")), SEAL_PASSWORD_RIGHT);
    ck_assert(!seal_password_outdated(hash));
}
END_TEST

START_TEST(others_are_wrong)
{
    static const char *const wrong[] = {"", "tea", "tea for tw", "tea for two ", "Tea for two", " tea for two"};
    char hash[SEAL_PASSWORD_HASH_MAX];
    ck_assert(seal_password_hash(text("tea for two"), hash));
    for (size_t i = 0; i < COUNT(wrong); i++)
        ck_assert_int_eq(seal_password_check(hash, text(wrong[i])), SEAL_PASSWORD_WRONG);
    ck_assert_int_eq(seal_password_check(hash, (struct seal_text){"tea for two\0x", 13}), SEAL_PASSWORD_WRONG);
}
END_TEST

START_TEST(the_same_password_has_another_hash)
{
    char one[SEAL_PASSWORD_HASH_MAX], two[SEAL_PASSWORD_HASH_MAX];
    ck_assert(seal_password_hash(text("tea for two"), one) && seal_password_hash(text("tea for two"), two));
    ck_assert_str_ne(one, two);
}
END_TEST

START_TEST(every_byte_and_length_counts)
{
    char hash[SEAL_PASSWORD_HASH_MAX], password[SEAL_PASSWORD_MAX];
    memset(password, 0xff, sizeof password);
    ck_assert(seal_password_hash((struct seal_text){password, sizeof password}, hash));
    ck_assert_int_eq(seal_password_check(hash, (struct seal_text){password, sizeof password}), SEAL_PASSWORD_RIGHT);
    ck_assert_int_eq(seal_password_check(hash, (struct seal_text){password, sizeof password - 1}), SEAL_PASSWORD_WRONG);
    password[sizeof password - 1] = 0;
    ck_assert_int_eq(seal_password_check(hash, (struct seal_text){password, sizeof password}), SEAL_PASSWORD_WRONG);
}
END_TEST

/* Strings made elsewhere: other parameters are computed as they say. */
START_TEST(a_hash_with_other_parameters)
{
    /* Argon2id of RFC 9106 with the salt "sixteen bytes...", 1024 KiB, three passes. */
    static const char other[] = "$argon2id$v=19$m=1024,t=3,p=1$c2l4dGVlbiBieXRlcy4uLg$"
                                "AmCLSWayrfwQE2krP0eO1d++QFQI4cgx/8CAYH30Gr4";
    ck_assert(seal_password_outdated(other));
    ck_assert_int_eq(seal_password_check(other, text("tea for two")), SEAL_PASSWORD_RIGHT);
    ck_assert_int_eq(seal_password_check(other, text("tea for tw")), SEAL_PASSWORD_WRONG);
}
END_TEST

/* No hash, or what is none: wrong, whatever is given, and at the full cost. */
static const char *const unusable[] = {
    NULL,
    "",
    "!",
    "*",
    "tea for two",
    "$argon2id$",
    "$argon2id$v=19$m=19456,t=2,p=1$",
    "$argon2id$v=19$m=4194304,t=2,p=1$c2l4dGVlbiBieXRlcy4uLg$c2l4dGVlbiBieXRlcy4uLnNpeHRlZW4gYnl0ZXMuLi4",
    "$argon2id$v=19$m=19456,t=4000000,p=1$c2l4dGVlbiBieXRlcy4uLg$c2l4dGVlbiBieXRlcy4uLnNpeHRlZW4gYnl0ZXMuLi4",
    "$argon2id$v=19$m=19456,t=2,p=64$c2l4dGVlbiBieXRlcy4uLg$c2l4dGVlbiBieXRlcy4uLnNpeHRlZW4gYnl0ZXMuLi4",
    "$argon2id$v=19$m=-1,t=2,p=1$c2l4dGVlbiBieXRlcy4uLg$c2l4dGVlbiBieXRlcy4uLnNpeHRlZW4gYnl0ZXMuLi4",
    "$argon2id$v=16$m=19456,t=2,p=1$c2l4dGVlbiBieXRlcy4uLg$c2l4dGVlbiBieXRlcy4uLnNpeHRlZW4gYnl0ZXMuLi4",
    "$argon2i$v=19$m=19456,t=2,p=1$c2l4dGVlbiBieXRlcy4uLg$c2l4dGVlbiBieXRlcy4uLnNpeHRlZW4gYnl0ZXMuLi4",
    "$2y$10$abcdefghijklmnopqrstuuJ4Jv0yFhCEFVxJHDCN6p8s5LI2DWlvi",
};

START_TEST(what_is_no_hash_is_wrong)
{
    ck_assert_int_eq(seal_password_check(unusable[_i], text("tea for two")), SEAL_PASSWORD_WRONG);
    ck_assert_int_eq(seal_password_check(unusable[_i], text("")), SEAL_PASSWORD_WRONG);
}
END_TEST

/* The smallest of several, since other programs run beside; whoever returned early would need next to nothing. */
static double cost(const char *hash)
{
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        double start = cpu_ms();
        ck_assert_int_eq(seal_password_check(hash, text("wrong wrong")), SEAL_PASSWORD_WRONG);
        double took = cpu_ms() - start;
        best = took < best ? took : best;
    }
    return best;
}

START_TEST(nobody_costs_as_much_as_somebody)
{
    char hash[SEAL_PASSWORD_HASH_MAX];
    ck_assert(seal_password_hash(text("tea for two"), hash));
    double somebody = cost(hash), nobody = cost(NULL), locked = cost("!");
    ck_assert_msg(nobody > somebody / 2 && nobody < somebody * 2, "%f %f", somebody, nobody);
    ck_assert_msg(locked > somebody / 2 && locked < somebody * 2, "%f %f", somebody, locked);
}
END_TEST

START_TEST(memory_that_is_short_is_told)
{
    char hash[SEAL_PASSWORD_HASH_MAX];
    struct rlimit was, none = {1 << 20, 1 << 20};
    ck_assert(seal_password_hash(text("tea for two"), hash));
    getrlimit(RLIMIT_AS, &was);
    none.rlim_max = was.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &none), 0);
    enum seal_password got = seal_password_check(hash, text("tea for two"));
    bool made = seal_password_hash(text("tea for two"), hash);
    setrlimit(RLIMIT_AS, &was);
    ck_assert_int_eq(got, SEAL_PASSWORD_NO_MEMORY);
    ck_assert(!made);
}
END_TEST

START_TEST(a_pair_depends_on_all_of_it)
{
    unsigned char key[2][SEAL_PAIR_KEY_BYTES], pair[5][SEAL_PAIR_BYTES];
    seal_pair_key(key[0]);
    seal_pair_key(key[1]);
    seal_pair(key[0], "hash", text("password"), pair[0]);
    seal_pair(key[1], "hash", text("password"), pair[1]);
    seal_pair(key[0], "hash", text("passworD"), pair[2]);
    seal_pair(key[0], "hasH", text("password"), pair[3]);
    seal_pair(key[0], "hashp", text("assword"), pair[4]);
    for (size_t i = 0; i < COUNT(pair); i++)
        for (size_t k = 0; k < i; k++)
            ck_assert_mem_ne(pair[i], pair[k], SEAL_PAIR_BYTES);
    seal_pair(key[0], "hash", text("password"), pair[1]);
    ck_assert_mem_eq(pair[0], pair[1], SEAL_PAIR_BYTES);
}
END_TEST

START_TEST(wiped_is_gone)
{
    char secret[32];
    memset(secret, 'x', sizeof secret);
    seal_wipe(secret, 31);
    for (size_t i = 0; i < 31; i++)
        ck_assert_int_eq(secret[i], 0);
    ck_assert_int_eq(secret[31], 'x');
    seal_wipe(NULL, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("password");
    TCase *t = run_case(s, "hash");
    tcase_add_checked_fixture(t, init, NULL);
    tcase_add_test(t, a_password_is_right);
    tcase_add_test(t, others_are_wrong);
    tcase_add_test(t, the_same_password_has_another_hash);
    tcase_add_test(t, every_byte_and_length_counts);
    tcase_add_test(t, a_hash_with_other_parameters);
    tcase_add_loop_test(t, what_is_no_hash_is_wrong, 0, COUNT(unusable));
    tcase_add_test(t, nobody_costs_as_much_as_somebody);
    if (!SANITIZED) /* whose shadow needs far more address space */
        tcase_add_test(t, memory_that_is_short_is_told);
    t = run_case(s, "around");
    tcase_add_checked_fixture(t, init, NULL);
    tcase_add_test(t, a_pair_depends_on_all_of_it);
    tcase_add_test(t, wiped_is_gone);
    return run_suite(s);
}
