/* seal/id: names in order of time, whatever the clock does. */
#include "seal/id.h"

#include <pthread.h>
#include <string.h>

#include "seal/token.h"
#include "tests/unit/run.h"

enum { MANY = 20000, THREADS = 4 };

static void init(void)
{
    ck_assert(seal_init());
}

static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

START_TEST(the_form)
{
    char id[SEAL_ID_LEN + 1];
    for (int i = 0; i < 1000; i++) {
        seal_id_new(id, 1700000000000 + (uint64_t)i);
        ck_assert_uint_eq(strlen(id), SEAL_ID_LEN);
        ck_assert_uint_eq(strspn(id, digits), SEAL_ID_LEN);
        ck_assert_int_le(id[0], '7'); /* 128 bits in 130 */
    }
}
END_TEST

static uint64_t time_of(const char *id)
{
    uint64_t v = 0;
    for (int i = 0; i < 10; i++)
        v = v << 5 | (uint64_t)(strchr(digits, id[i]) - digits);
    return v;
}

START_TEST(the_time_stands_in_front)
{
    static const uint64_t times[] = {1, 1000, 1700000000000, 253402300799999, 0xffffffffffff};
    char id[SEAL_ID_LEN + 1];
    for (size_t i = 0; i < COUNT(times); i++) {
        seal_id_new(id, times[i]);
        ck_assert_uint_eq(time_of(id), times[i]);
    }
}
END_TEST

static void rises(uint64_t (*clock)(int i))
{
    char last[SEAL_ID_LEN + 1] = "", id[SEAL_ID_LEN + 1];
    for (int i = 0; i < MANY; i++) {
        seal_id_new(id, clock(i));
        ck_assert_msg(strcmp(id, last) > 0, "%s after %s", id, last);
        memcpy(last, id, sizeof last);
    }
}

static uint64_t standing(int i)
{
    (void)i;
    return 1700000000000;
}

static uint64_t going(int i)
{
    return 1700000000000 + (uint64_t)i / 7;
}

static uint64_t back_to_1970(int i)
{
    return i < MANY / 2 ? 1700000000000 + (uint64_t)i : (uint64_t)i;
}

static uint64_t to_and_fro(int i)
{
    return 1700000000000 + (uint64_t)(i % 3) * 3600000;
}

START_TEST(each_is_behind_the_last)
{
    rises(standing);
    rises(going);
    rises(to_and_fro);
    rises(back_to_1970);
}
END_TEST

START_TEST(they_cannot_be_guessed)
{
    char a[SEAL_ID_LEN + 1], b[SEAL_ID_LEN + 1], c[SEAL_ID_LEN + 1];
    seal_id_new(a, 5);
    seal_id_new(b, 5);
    seal_id_new(c, 5);
    ck_assert(memcmp(b + 16, a + 16, 10) != 0 && memcmp(c + 16, b + 16, 10) != 0);
}
END_TEST

static char made[THREADS][MANY / 10][SEAL_ID_LEN + 1];

static void *make(void *arg)
{
    char(*mine)[SEAL_ID_LEN + 1] = arg;
    for (int i = 0; i < MANY / 10; i++)
        seal_id_new(mine[i], 1700000000000);
    return NULL;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

START_TEST(threads_never_make_the_same)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, make, made[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    char(*all)[SEAL_ID_LEN + 1] = made[0];
    size_t n = THREADS * MANY / 10;
    qsort(all, n, sizeof *all, by_text);
    for (size_t i = 1; i < n; i++)
        ck_assert_str_ne(all[i - 1], all[i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("id");
    TCase *t = run_case(s, "id");
    tcase_add_checked_fixture(t, init, NULL);
    tcase_add_test(t, the_form);
    tcase_add_test(t, the_time_stands_in_front);
    tcase_add_test(t, each_is_behind_the_last);
    tcase_add_test(t, they_cannot_be_guessed);
    tcase_add_test(t, threads_never_make_the_same);
    return run_suite(s);
}
