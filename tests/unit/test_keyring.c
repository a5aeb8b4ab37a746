/* handlers/keys: a set is held while it is used, and another one is in its place when the folder changed. */
#include "handlers/keys.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/temp.h"

#define NOW 1764556800

static char folder[1024];
static struct keyring *ring;
static struct seal_error error;

static void init(void)
{
    ck_assert(seal_init());
    unsetenv("CREDENTIALS_DIRECTORY");
    snprintf(folder, sizeof folder, "%s", temp_path("keys"));
    ring = NULL;
}

static void done(void)
{
    keyring_close(ring);
}

static struct seal_key make(void)
{
    struct seal_key made;
    ck_assert(seal_key_new(folder, SEAL_LOCAL, NOW, 0, &made, &error));
    return made;
}

static unsigned count(const struct seal_keys *keys)
{
    unsigned n = 0;
    while (seal_keys_at(keys, n) != NULL)
        n++;
    return n;
}

/* How many keys there are when it looks now. */
static unsigned look(void)
{
    keyring_look(ring);
    const struct seal_keys *keys = keyring_hold(ring);
    unsigned n = count(keys);
    keyring_release(ring, keys);
    return n;
}

static void expect(unsigned n)
{
    ck_assert_uint_eq(look(), n);
}

static const char *file_of(const struct seal_key *key)
{
    char hex[SEAL_KEY_ID_HEX + 1], name[100];
    seal_key_hex(key->id, hex);
    snprintf(name, sizeof name, "keys/%s-%s.key", seal_key_kind_name(key->kind), hex);
    return temp_path(name);
}

START_TEST(a_folder_that_is_made_later_is_seen)
{
    ring = keyring_open(folder);
    expect(0);
    make();
    expect(1);
    make();
    expect(2);
}
END_TEST

START_TEST(it_looks_by_itself_after_a_second)
{
    ring = keyring_open(folder);
    make();
    for (int tries = 0; tries < 1000; tries++) {
        const struct seal_keys *keys = keyring_hold(ring);
        unsigned n = count(keys);
        keyring_release(ring, keys);
        if (n == 1)
            return;
        usleep(10000);
    }
    ck_abort_msg("the key is never seen");
}
END_TEST

START_TEST(a_set_that_is_held_stays_as_it_is)
{
    struct seal_key made = make();
    ring = keyring_open(folder);
    const struct seal_keys *old = keyring_hold(ring);
    const struct seal_keys *same = keyring_hold(ring);
    ck_assert_ptr_eq(old, same);
    keyring_release(ring, same);
    ck_assert(seal_key_destroy(folder, &made, &error));
    expect(0);
    ck_assert_uint_eq(count(old), 1);
    ck_assert_ptr_nonnull(seal_keys_find(old, SEAL_LOCAL, made.id));
    keyring_release(ring, old);
}
END_TEST

START_TEST(a_bad_file_leaves_the_set_and_is_seen_when_it_is_mended)
{
    make();
    ring = keyring_open(folder);
    expect(1);
    struct seal_key bad = make();
    ck_assert_int_eq(chmod(file_of(&bad), 0644), 0);
    temp_capture_stderr();
    expect(1);
    expect(1);
    char *said = temp_captured();
    ck_assert_ptr_nonnull(strstr(said, "the keys cannot be read"));
    ck_assert_ptr_null(strstr(strstr(said, "the keys cannot be read") + 1, "the keys cannot be read"));
    free(said);
    ck_assert_int_eq(chmod(file_of(&bad), 0600), 0); /* leaves no trace in the folder's time */
    expect(2);
}
END_TEST

START_TEST(a_bad_folder_at_first_is_an_empty_set)
{
    struct seal_key bad = make();
    ck_assert_int_eq(chmod(file_of(&bad), 0644), 0);
    temp_capture_stderr();
    ring = keyring_open(folder);
    free(temp_captured());
    const struct seal_keys *keys = keyring_hold(ring);
    ck_assert_ptr_nonnull(keys);
    ck_assert_uint_eq(count(keys), 0);
    keyring_release(ring, keys);
    ck_assert_int_eq(chmod(file_of(&bad), 0600), 0);
    expect(1);
}
END_TEST

START_TEST(a_process_with_keys_leaves_no_core)
{
    struct rlimit limit = {1 << 20, 1 << 20};
    ck_assert_int_eq(setrlimit(RLIMIT_CORE, &limit), 0);
    ring = keyring_open(folder);
    getrlimit(RLIMIT_CORE, &limit);
    ck_assert_uint_eq(limit.rlim_cur, 1 << 20);
    make();
    expect(1);
    getrlimit(RLIMIT_CORE, &limit);
    ck_assert_uint_eq(limit.rlim_cur, 0);
    ck_assert_uint_eq(limit.rlim_max, 0);
    ck_assert(SANITIZED || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
}
END_TEST

static atomic_bool stop;

static void *use(void *arg)
{
    (void)arg;
    while (!stop) {
        const struct seal_keys *keys = keyring_hold(ring);
        unsigned char hidden[1 + SEAL_HIDDEN_EXTRA];
        ck_assert_uint_eq(seal_hide(keys, (struct seal_text){"a", 1}, "b", 1, hidden), sizeof hidden);
        keyring_release(ring, keys);
    }
    return NULL;
}

START_TEST(threads_use_it_while_it_changes)
{
    pthread_t thread[4];
    make();
    ring = keyring_open(folder);
    for (size_t i = 0; i < COUNT(thread); i++)
        pthread_create(&thread[i], NULL, use, NULL);
    make();
    expect(2);
    stop = true;
    for (size_t i = 0; i < COUNT(thread); i++)
        pthread_join(thread[i], NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("keyring");
    TCase *t = run_case(s, "keyring");
    temp_use(t);
    tcase_add_checked_fixture(t, init, done);
    tcase_add_test(t, a_folder_that_is_made_later_is_seen);
    tcase_add_test(t, it_looks_by_itself_after_a_second);
    tcase_add_test(t, a_set_that_is_held_stays_as_it_is);
    tcase_add_test(t, a_bad_file_leaves_the_set_and_is_seen_when_it_is_mended);
    tcase_add_test(t, a_bad_folder_at_first_is_an_empty_set);
    tcase_add_test(t, a_process_with_keys_leaves_no_core);
    tcase_add_test(t, threads_use_it_while_it_changes);
    return run_suite(s);
}
