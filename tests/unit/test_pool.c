/* fcgi/pool: a bounded queue, threads that come and go, every job's park handed back once. */
#include "fcgi/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/run.h"

enum { JOBS_MAX = 20000 };

struct work {
    struct park park;
    struct job job;
    unsigned number;
    atomic_uint runs, resumed;
};

static struct work works[JOBS_MAX];
static atomic_uint done, opened, closed, order_at;
static unsigned order[JOBS_MAX];
static atomic_bool gate;
static atomic_uint inside, most_inside;

/* In the place of the loop's: counts. The park may be freed by its owner from here on. */
void loop_resume(struct park *list)
{
    for (struct park *next; list != NULL; list = next) {
        next = list->next;
        atomic_fetch_add(&((struct work *)list)->resumed, 1);
        atomic_fetch_add(&done, 1);
    }
}

static void *open_context(void *arg)
{
    ck_assert_ptr_eq(arg, works);
    atomic_fetch_add(&opened, 1);
    return malloc(8);
}

static void close_context(void *context)
{
    atomic_fetch_add(&closed, 1);
    free(context);
}

static void note(struct job *j, void *context)
{
    struct work *w = (struct work *)j->park;
    (void)context;
    order[atomic_fetch_add(&order_at, 1)] = w->number;
    atomic_fetch_add(&w->runs, 1);
}

/* Stays until the gate is open. */
static void stay(struct job *j, void *context)
{
    unsigned now = atomic_fetch_add(&inside, 1) + 1, most = atomic_load(&most_inside);
    while (now > most && !atomic_compare_exchange_weak(&most_inside, &most, now))
        continue;
    while (!atomic_load(&gate))
        usleep(200);
    atomic_fetch_sub(&inside, 1);
    note(j, context);
}

static struct pool *new_pool(unsigned threads, unsigned queue, bool contexts)
{
    struct pool_config config = {.threads = threads, .queue = queue, .arg = works};
    if (contexts) {
        config.open = open_context;
        config.close = close_context;
    }
    struct pool *p = pool_new(&config);
    ck_assert_ptr_nonnull(p);
    return p;
}

static bool submit(struct pool *p, unsigned i, void (*run)(struct job *, void *))
{
    works[i].number = i;
    works[i].job.park = &works[i].park;
    works[i].job.run = run;
    return pool_submit(p, &works[i].job);
}

static void wait_until(atomic_uint *counter, unsigned n)
{
    for (int i = 0; atomic_load(counter) < n; i++) {
        ck_assert_int_lt(i, 100000);
        usleep(100);
    }
}

static void each_ran_once(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        ck_assert_uint_eq(works[i].runs, 1);
        ck_assert_uint_eq(works[i].resumed, 1);
    }
}

START_TEST(one_thread_keeps_the_order)
{
    struct pool *p = new_pool(1, 1000, false);
    for (unsigned i = 0; i < 500; i++)
        ck_assert(submit(p, i, note));
    pool_free(p);
    each_ran_once(500);
    for (unsigned i = 0; i < 500; i++)
        ck_assert_uint_eq(order[i], i);
}
END_TEST

START_TEST(the_queue_is_bounded)
{
    struct pool *p = new_pool(1, 3, false);
    ck_assert(submit(p, 0, stay));
    wait_until(&inside, 1);
    for (unsigned i = 1; i <= 3; i++)
        ck_assert(submit(p, i, note));
    ck_assert_uint_eq(pool_waiting(p), 3);
    for (int i = 0; i < 10; i++)
        ck_assert(!submit(p, 4, note));
    atomic_store(&gate, true);
    wait_until(&done, 4);
    ck_assert_uint_eq(pool_waiting(p), 0);
    ck_assert(submit(p, 4, note)); /* there is room again */
    pool_free(p);
    each_ran_once(5);
}
END_TEST

START_TEST(no_more_threads_than_told)
{
    struct pool *p = new_pool(3, 100, true);
    for (unsigned i = 0; i < 50; i++)
        ck_assert(submit(p, i, stay));
    wait_until(&inside, 3);
    usleep(20000);
    ck_assert_uint_eq(inside, 3);
    atomic_store(&gate, true);
    pool_free(p);
    each_ran_once(50);
    ck_assert_uint_eq(most_inside, 3);
    ck_assert_uint_eq(opened, 3);
    ck_assert_uint_eq(closed, 3);
}
END_TEST

/* What is done one after the other needs one thread. */
START_TEST(threads_are_used_again)
{
    struct pool *p = new_pool(8, 100, true);
    for (unsigned i = 0; i < 50; i++) {
        ck_assert(submit(p, i, note));
        wait_until(&done, i + 1);
        usleep(1000); /* until it waits */
    }
    ck_assert_uint_le(opened, 3);
    pool_free(p);
    each_ran_once(50);
    ck_assert_uint_eq(closed, opened);
}
END_TEST

START_TEST(no_thread_before_there_is_work)
{
    struct pool *p = new_pool(8, 100, true);
    usleep(5000);
    ck_assert_uint_eq(opened, 0);
    pool_free(p);
    ck_assert_uint_eq(opened, 0);
    pool_free(NULL);
}
END_TEST

/* Stopping runs what waits first. */
START_TEST(stop_with_work_queued)
{
    struct pool *p = new_pool(2, 1000, true);
    for (unsigned i = 0; i < 400; i++)
        ck_assert(submit(p, i, i < 2 ? stay : note));
    atomic_store(&gate, true);
    pool_free(p);
    each_ran_once(400);
    ck_assert_uint_eq(closed, opened);
}
END_TEST

static void *submit_many(void *arg)
{
    void **args = arg;
    struct pool *p = args[0];
    unsigned from = (unsigned)(uintptr_t)args[1];
    for (unsigned i = from; i < from + JOBS_MAX / 4; i++)
        while (!submit(p, i, note))
            usleep(50);
    return NULL;
}

START_TEST(many_threads_submit_to_many)
{
    struct pool *p = new_pool(4, 64, true);
    pthread_t threads[4];
    void *args[4][2];
    for (uintptr_t i = 0; i < 4; i++) {
        args[i][0] = p;
        args[i][1] = (void *)(i * (JOBS_MAX / 4));
        ck_assert_int_eq(pthread_create(&threads[i], NULL, submit_many, args[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    pool_free(p);
    each_ran_once(JOBS_MAX);
    ck_assert_uint_le(opened, 4);
    ck_assert_uint_eq(closed, opened);
}
END_TEST

/* Without any thread a job is not taken; nothing waits for ever. */
START_TEST(no_thread_can_be_had)
{
    struct rlimit none;
    if (geteuid() == 0)
        ck_assert_int_eq(setuid(65534), 0); /* root has no such limit */
    prctl(PR_SET_DUMPABLE, 1);              /* for LeakSanitizer */
    getrlimit(RLIMIT_NPROC, &none);
    rlim_t was = none.rlim_cur;
    none.rlim_cur = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NPROC, &none), 0);
    struct pool *p = new_pool(2, 10, true);
    ck_assert(!submit(p, 0, note));
    ck_assert_uint_eq(pool_waiting(p), 0);
    pool_free(p);
    ck_assert_uint_eq(works[0].runs, 0);
    ck_assert_uint_eq(works[0].resumed, 0);
    none.rlim_cur = was;
    setrlimit(RLIMIT_NPROC, &none);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pool");
    TCase *t = run_case(s, "pool");
    tcase_add_test(t, one_thread_keeps_the_order);
    tcase_add_test(t, the_queue_is_bounded);
    tcase_add_test(t, no_more_threads_than_told);
    tcase_add_test(t, threads_are_used_again);
    tcase_add_test(t, no_thread_before_there_is_work);
    tcase_add_test(t, stop_with_work_queued);
    tcase_add_test(t, many_threads_submit_to_many);
    tcase_add_test(t, no_thread_can_be_had);
    return run_suite(s);
}
