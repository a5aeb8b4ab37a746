/* db/writer: group commit. Failing and full disks: test_sync, test_full; the log: test_checkpoint. */
#include "db/writer.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "db/inbox.h"
#include "tests/unit/tdb.h"

static atomic_uint sync_us;

/* SQLite's syncs come here: they take longer when a test says so. */
int fdatasync(int fd)
{
    (void)fd;
    if (sync_us > 0)
        usleep(sync_us);
    return 0;
}

static struct inbox in;
static struct db_writer *writer;

static void start(void)
{
    writer = tdb_start(&in);
}

static void stop(void)
{
    db_writer_stop(writer);
    tdb_is_sound();
}

static void submit(struct db_op *list)
{
    for (struct db_op *op = list; op != NULL; op = op->next)
        ck_assert(db_writer_reserve(writer, op));
    db_writer_submit(writer, list);
}

/* n puts of one body on keys PREFIX0, PREFIX1, … */
static struct db_op *puts_of(const char *prefix, unsigned n, size_t bytes)
{
    struct db_op *list = NULL, **end = &list;
    char *body = calloc(1, bytes + 1);
    memset(body, 'b', bytes);
    for (unsigned i = 0; i < n; i++) {
        char key[64];
        snprintf(key, sizeof key, "%s%u", prefix, i);
        *end = tdb_put(key, body);
        end = &(*end)->next;
    }
    free(body);
    return list;
}

static struct db_writer_stats stats_of(void)
{
    struct db_writer_stats s;
    db_writer_get_stats(writer, &s);
    return s;
}

static uint64_t bursts_up_to(unsigned class)
{
    struct db_writer_stats s = stats_of();
    uint64_t n = 0;
    for (unsigned i = 0; i <= class; i++)
        n += s.histogram[i];
    return n;
}

/* ---- one ------------------------------------------------------------------------------------- */

START_TEST(a_write_is_acknowledged_when_it_is_stored)
{
    uint64_t seq;
    start();
    for (int i = 1; i <= 20; i++) {
        char body[16], sql[100];
        snprintf(body, sizeof body, "%d", i);
        ck_assert_int_eq(tdb_write(writer, &in, tdb_put("k", body), &seq), DB_OK);
        ck_assert_uint_eq(seq, i);
        snprintf(sql, sizeof sql, "SELECT body = '%d' AND seq = %d FROM doc", i, i);
        ck_assert_int_eq(tdb_ask_file(sql), 1);
    }
    stop();
}
END_TEST

START_TEST(results_come_back_as_they_are)
{
    start();
    ck_assert_int_eq(tdb_write(writer, &in, tdb_delete("absent"), NULL), DB_NONE);
    struct db_op *op = tdb_put("k", "v");
    op->precond.match.given = 1;
    ck_assert_int_eq(tdb_write(writer, &in, op, NULL), DB_PRECONDITION);
    ck_assert_int_eq(tdb_write(writer, &in, tdb_put("a//b", "v"), NULL), DB_INVALID);
    ck_assert_int_eq(tdb_write(writer, &in, tdb_put("k", "v"), NULL), DB_OK);
    ck_assert_uint_eq(in.broken, 0);
    stop();
}
END_TEST

START_TEST(submitting_nothing)
{
    start();
    db_writer_submit(writer, NULL);
    ck_assert_int_eq(tdb_write(writer, &in, tdb_put("k", "v"), NULL), DB_OK);
    stop();
    ck_assert_uint_eq(in.count, 1);
    db_writer_stop(NULL);
}
END_TEST

START_TEST(the_store_is_there_after_a_restart)
{
    uint64_t seq;
    start();
    ck_assert_int_eq(tdb_write(writer, &in, tdb_put("k", "v"), NULL), DB_OK);
    stop();
    start();
    ck_assert_int_eq(tdb_write(writer, &in, tdb_put("k", "w"), &seq), DB_OK);
    ck_assert_uint_eq(seq, 2);
    stop();
}
END_TEST

START_TEST(a_file_that_is_refused)
{
    struct db_writer_hooks hooks = {0};
    temp_file("hanji.db", "no database at all, but text", 28);
    ck_assert_int_eq(db_writer_start(&tdb_config, &hooks, &writer, &tdb_error), DB_REFUSED);
    ck_assert_ptr_null(writer);
    ck_assert(tdb_error.text[0] != 0);
}
END_TEST

/* ---- bursts ---------------------------------------------------------------------------------- */

START_TEST(a_list_is_applied_and_delivered_in_order)
{
    struct db_op *list = NULL, **end = &list;
    for (int i = 0; i < 500; i++) {
        *end = tdb_put("k", i % 2 ? "odd" : "even");
        (*end)->owner = (void *)(intptr_t)i;
        end = &(*end)->next;
    }
    start();
    submit(list);
    struct db_op *done = tdb_wait(&in, 500);
    int i = 0;
    for (struct db_op *op = done; op != NULL; op = op->next, i++) {
        ck_assert_int_eq((intptr_t)op->owner, i);
        ck_assert_int_eq(op->result, DB_OK);
        ck_assert_uint_eq(op->seq, i + 1);
    }
    ck_assert_int_eq(i, 500);
    ck_assert_int_eq(tdb_ask_file("SELECT body = 'odd' AND seq = 500 FROM doc"), 1);
    tdb_free(done);
    stop();
}
END_TEST

START_TEST(what_waits_for_a_sync_shares_the_next)
{
    start();
    ck_assert_int_eq(tdb_write(writer, &in, tdb_put("first", ""), NULL), DB_OK);
    sync_us = 50000;
    submit(tdb_put("second", ""));
    usleep(10000); /* it is being synced */
    for (unsigned i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%u", i);
        submit(tdb_put(key, "v"));
    }
    tdb_free(tdb_wait(&in, 102));
    sync_us = 0;
    struct db_writer_stats s = stats_of();
    ck_assert_uint_le(s.bursts, 4);
    ck_assert_uint_eq(s.operations, 102);
    stop();
}
END_TEST

START_TEST(an_operation_that_fails_does_so_alone)
{
    struct db_op *list = tdb_list(tdb_put("a", "1"), tdb_delete("absent"), tdb_put("a", "lost"), tdb_put("b", "2"), NULL);
    static const enum db_result expected[] = {DB_OK, DB_NONE, DB_PRECONDITION, DB_OK};
    list->next->next->precond.none_match = (struct db_tags){.given = 1, .any = 1};
    start();
    submit(list);
    struct db_op *done = tdb_wait(&in, 4);
    int i = 0;
    for (struct db_op *op = done; op != NULL; op = op->next)
        ck_assert_int_eq(op->result, expected[i++]);
    tdb_free(done);
    stop();
}
END_TEST

START_TEST(a_burst_has_a_bound_of_operations)
{
    tdb_config.burst_operations = 10;
    start();
    submit(puts_of("k", 95, 10));
    struct db_op *done = tdb_wait(&in, 95);
    for (struct db_op *op = done; op != NULL; op = op->next)
        ck_assert_int_eq(op->result, DB_OK);
    tdb_free(done);
    struct db_writer_stats s = stats_of();
    ck_assert_uint_eq(s.bursts, 10);
    ck_assert_uint_eq(s.histogram[4], 9); /* 9 to 16 */
    ck_assert_uint_eq(s.histogram[3], 1); /* 5 to 8 */
    ck_assert_uint_eq(s.operations, 95);
    stop();
}
END_TEST

START_TEST(a_bound_of_one_commits_each_alone)
{
    tdb_config.burst_operations = 1;
    start();
    submit(puts_of("k", 20, 10));
    tdb_free(tdb_wait(&in, 20));
    ck_assert_uint_eq(stats_of().bursts, 20);
    ck_assert_uint_eq(bursts_up_to(0), 20);
    stop();
}
END_TEST

/* 16 MiB of bodies in one burst are enough; one that is larger goes alone. */
START_TEST(a_burst_has_a_bound_of_bytes)
{
    start();
    submit(tdb_list(puts_of("a", 1, 6 << 20), puts_of("b", 1, 6 << 20), puts_of("c", 1, 6 << 20), puts_of("d", 1, 20 << 20),
                    puts_of("e", 1, 1), NULL));
    struct db_op *done = tdb_wait(&in, 5);
    for (struct db_op *op = done; op != NULL; op = op->next)
        ck_assert_int_eq(op->result, DB_OK);
    tdb_free(done);
    ck_assert_uint_eq(stats_of().bursts, 4);
    stop();
}
END_TEST

/* A body that waits in a file costs no memory, but the log as much as any. */
START_TEST(files_count_in_a_burst)
{
    char name[64];
    struct db_op *list = NULL, **end = &list;
    start();
    for (unsigned i = 0; i < 5; i++) {
        int fd = memfd_create("body", MFD_CLOEXEC);
        ck_assert(fd >= 0 && ftruncate(fd, 6 << 20) == 0);
        snprintf(name, sizeof name, "f%u", i);
        *end = tdb_put(name, "");
        db_op_file(*end, 2, fd, 6 << 20);
        end = &(*end)->next;
    }
    submit(list);
    struct db_op *done = tdb_wait(&in, 5);
    for (struct db_op *op = done; op != NULL; op = op->next)
        ck_assert_int_eq(op->result, DB_OK);
    tdb_free(done);
    ck_assert_uint_eq(stats_of().bursts, 3);
    stop();
}
END_TEST

/* ---- bounds of the queue --------------------------------------------------------------------- */

START_TEST(the_queue_has_a_bound_of_operations)
{
    struct db_op *op[4];
    tdb_config.queue_operations = 3;
    start();
    for (int i = 0; i < 4; i++)
        op[i] = tdb_put("k", "v");
    ck_assert(db_writer_reserve(writer, op[0]));
    ck_assert(db_writer_reserve(writer, op[1]));
    ck_assert(db_writer_reserve(writer, op[2]));
    ck_assert(!db_writer_reserve(writer, op[3]));
    ck_assert_uint_eq(stats_of().queue_operations, 3);
    db_writer_release(writer, op[1]);
    ck_assert(db_writer_reserve(writer, op[3]));
    ck_assert(!db_writer_reserve(writer, op[1]));
    db_writer_submit(writer, tdb_list(op[0], op[2], op[3], NULL));
    tdb_free(tdb_wait(&in, 3));
    ck_assert_uint_eq(stats_of().queue_operations, 0);
    ck_assert(db_writer_reserve(writer, op[1]));
    db_writer_release(writer, op[1]);
    db_op_free(op[1]);
    stop();
}
END_TEST

START_TEST(the_queue_has_a_bound_of_bytes)
{
    struct db_op *a = tdb_put("a", "123"), *b = tdb_put("b", "123"), *big = puts_of("c", 1, 10000);
    tdb_config.queue_bytes = 2 * db_op_bytes(a);
    start();
    ck_assert(!db_writer_reserve(writer, big));
    ck_assert(db_writer_reserve(writer, a));
    ck_assert(db_writer_reserve(writer, b));
    ck_assert_uint_eq(stats_of().queue_bytes, 2 * db_op_bytes(a));
    ck_assert(!db_writer_reserve(writer, big));
    db_writer_submit(writer, tdb_list(a, b, NULL));
    tdb_free(tdb_wait(&in, 2));
    ck_assert_uint_eq(stats_of().queue_bytes, 0);
    db_op_free(big);
    stop();
}
END_TEST

/* Whatever came of an operation, its room is given back. */
START_TEST(room_comes_back)
{
    tdb_config.queue_operations = 2;
    start();
    for (int i = 0; i < 50; i++) {
        struct db_op *op = i % 3 == 0 ? tdb_delete("absent") : tdb_put("k", "v");
        op->precond.match.given = i % 3 == 1;
        tdb_write(writer, &in, op, NULL);
    }
    ck_assert_uint_eq(stats_of().queue_operations, 0);
    ck_assert_uint_eq(stats_of().queue_bytes, 0);
    stop();
}
END_TEST

/* ---- time ------------------------------------------------------------------------------------ */

static uint64_t now_us(void)
{
    return db_clock_us();
}

/* The shortest of n writes, one after the other. */
static uint64_t shortest(int n)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < n; i++) {
        uint64_t from = now_us();
        ck_assert_int_eq(tdb_write(writer, &in, tdb_put("k", "v"), NULL), DB_OK);
        uint64_t took = now_us() - from;
        if (took < best)
            best = took;
    }
    return best;
}

/* Gathering would take half a sync more. */
START_TEST(a_lone_writer_never_waits)
{
    start();
    sync_us = 20000;
    uint64_t took = shortest(8);
    ck_assert_uint_ge(took, 20000);
    ck_assert_uint_lt(took, 28000);
    submit(puts_of("k", 64, 10));
    tdb_free(tdb_wait(&in, 8 + 64));
    tdb_write(writer, &in, tdb_put("k", "v"), NULL); /* this one may have waited for the others */
    ck_assert_uint_lt(shortest(8), 28000);
    sync_us = 0;
    stop();
}
END_TEST

static atomic_bool enough;

static void *write_in_a_loop(void *arg)
{
    struct inbox *box = arg;
    unsigned *count = calloc(1, sizeof *count);
    while (!enough) {
        struct db_op *op = tdb_put("k", "v");
        op->owner = box;
        if (!db_writer_reserve(writer, op))
            abort();
        db_writer_submit(writer, op);
        tdb_free(tdb_wait(box, ++*count));
    }
    return count;
}

/* Gives every operation to the inbox of its thread. */
static void hand_out(void *arg, struct db_op *list)
{
    (void)arg;
    while (list != NULL) {
        struct db_op *op = list;
        struct inbox *box = op->owner;
        list = op->next;
        op->next = NULL;
        pthread_mutex_lock(&box->lock);
        *box->tail = op;
        box->tail = &op->next;
        box->count++;
        pthread_cond_broadcast(&box->more);
        pthread_mutex_unlock(&box->lock);
    }
}

/* Without gathering, closed loops split into bursts of 1 and N−1, so that each rides every second sync. */
START_TEST(bursts_gather_for_those_that_come_back)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    static struct inbox boxes[THREADS];
    struct db_writer_hooks hooks = {.deliver = hand_out};
    unsigned total = 0;
    ck_assert_int_eq(db_writer_start(&tdb_config, &hooks, &writer, &tdb_error), DB_OK);
    sync_us = 10000;
    for (int i = 0; i < THREADS; i++) {
        boxes[i].tail = &boxes[i].head;
        pthread_mutex_init(&boxes[i].lock, NULL);
        pthread_cond_init(&boxes[i].more, NULL);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_in_a_loop, &boxes[i]), 0);
    }
    usleep(500000);
    enough = true;
    for (int i = 0; i < THREADS; i++) {
        void *count;
        pthread_join(threads[i], &count);
        total += *(unsigned *)count;
        free(count);
    }
    sync_us = 0;
    struct db_writer_stats s = stats_of();
    ck_assert_uint_eq(s.operations, total);
    ck_assert_msg(total >= 5 * s.bursts, "%u operations in %llu bursts", total, (unsigned long long)s.bursts);
    stop();
}
END_TEST

/* ---- many threads ---------------------------------------------------------------------------- */

enum { SENDERS = 6, EACH = 300 };

static void *send_many(void *arg)
{
    for (int i = 0; i < EACH; i++) {
        char key[32];
        snprintf(key, sizeof key, "t%d/%d", (int)(intptr_t)arg, i % 50);
        struct db_op *op = i % 10 == 9 ? tdb_delete("absent") : tdb_put(key, "v");
        op->owner = (void *)((intptr_t)arg << 16 | i);
        while (!db_writer_reserve(writer, op))
            usleep(100);
        db_writer_submit(writer, op);
    }
    return NULL;
}

START_TEST(everything_is_delivered_once_and_in_order)
{
    pthread_t threads[SENDERS];
    int next[SENDERS] = {0};
    uint64_t last = 0;
    tdb_config.queue_operations = 64; /* so that senders are refused at times */
    tdb_config.burst_operations = 16;
    start();
    for (intptr_t i = 0; i < SENDERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, send_many, (void *)i), 0);
    for (int i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    struct db_op *done = tdb_wait(&in, SENDERS * EACH);
    for (struct db_op *op = done; op != NULL; op = op->next) {
        int sender = (int)((intptr_t)op->owner >> 16), i = (int)((intptr_t)op->owner & 0xffff);
        ck_assert_int_eq(i, next[sender]);
        next[sender]++;
        ck_assert_int_eq(op->result, i % 10 == 9 ? DB_NONE : DB_OK);
        if (op->result == DB_OK) {
            ck_assert_uint_eq(op->seq, last + 1);
            last = op->seq;
        }
    }
    tdb_free(done);
    stop();
    ck_assert_uint_eq(in.count, SENDERS * EACH);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc"), SENDERS * 45);
}
END_TEST

/* ---- stopping -------------------------------------------------------------------------------- */

START_TEST(stopping_delivers_everything)
{
    tdb_config.burst_operations = 100;
    start();
    ck_assert_int_eq(tdb_write(writer, &in, tdb_put("k", "v"), NULL), DB_OK);
    sync_us = 5000;
    submit(puts_of("k", 1000, 10));
    stop();
    sync_us = 0;
    struct db_op *done = tdb_wait(&in, 1001);
    ck_assert_uint_eq(in.count, 1001);
    for (struct db_op *op = done; op != NULL; op = op->next)
        ck_assert_int_eq(op->result, DB_OK);
    tdb_free(done);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc"), 1001);
}
END_TEST

START_TEST(stopping_at_once)
{
    for (int i = 0; i < 20; i++) {
        start();
        stop();
        ck_assert_uint_eq(in.count, 0);
    }
}
END_TEST

/* ---- beside others --------------------------------------------------------------------------- */

START_TEST(somebody_else_holds_the_lock_for_a_moment)
{
    sqlite3 *other = tdb_shell();
    start();
    ck_assert_int_eq(tdb_write(writer, &in, tdb_put("k", "v"), NULL), DB_OK);
    tdb_sql(other, "BEGIN IMMEDIATE; INSERT INTO doc (key, body) VALUES ('x', 'y')");
    submit(tdb_put("k", "w"));
    usleep(100000);
    ck_assert_uint_eq(in.count, 1);
    tdb_sql(other, "COMMIT");
    struct db_op *done = tdb_wait(&in, 2);
    ck_assert_int_eq(done->result, DB_OK);
    ck_assert_uint_eq(done->seq, 3);
    tdb_free(done);
    sqlite3_close(other);
    stop();
}
END_TEST

/* After a quiet second the file is left as a person would like to find it. */
START_TEST(quiet_time_is_used)
{
    start();
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(tdb_write(writer, &in, tdb_put("k", "v"), NULL), DB_OK);
    uint64_t from = now_us();
    while (tdb_ask_file("SELECT count(*) FROM change") > 1 || stats_of().wal_bytes > 0) {
        ck_assert_uint_lt(now_us() - from, 20000000);
        usleep(50000);
    }
    ck_assert_uint_ge(stats_of().checkpoints, 1);
    stop();
}
END_TEST

/* A writer that is never quiet prunes all the same when there is much to prune. */
START_TEST(a_busy_time_is_used_too)
{
    enum { MANY = 120000, LIST = 6000 };
    tdb_config.queue_operations = LIST;
    start();
    for (unsigned sent = 0; sent < MANY; sent += LIST) {
        struct db_op *list = NULL;
        for (int i = 0; i < LIST; i++) {
            struct db_op *op = tdb_put("k", "v");
            if (!db_writer_reserve(writer, op))
                ck_abort_msg("no room");
            op->next = list;
            list = op;
        }
        db_writer_submit(writer, list);
        tdb_free(tdb_wait(&in, sent + LIST));
    }
    ck_assert_int_lt(tdb_ask_file("SELECT count(*) FROM change"), MANY);
    stop();
}
END_TEST

/* It is never quiet for a second here, and ids of messages that came long ago are forgotten. */
START_TEST(inboxes_are_tidied_in_a_busy_time)
{
    enum { LIST = 1100 };
    tdb_config.queue_operations = LIST;
    start();
    sqlite3 *db = tdb_shell();
    struct db_inbox_set set = {.name = "x"};
    struct db_op *op = db_inbox_set_op(&set);
    ck_assert_int_eq(tdb_write(writer, &in, op, NULL), DB_OK);
    tdb_sql(db, "INSERT INTO inbox_seen VALUES (1, 'old', zeroblob(32), 1)");
    unsigned char hash[DB_MESSAGE_HASH_BYTES] = {1};
    struct db_inbox_message m = {.source = 1, .id = "new", .id_bytes = 3, .hash = hash, .type = "a/b", .type_bytes = 3,
                                 .body = "", .text = true};
    ck_assert_int_eq(tdb_write(writer, &in, db_inbox_take_op(&m, NULL, NULL, NULL), NULL), DB_OK);
    for (unsigned i = 0; i < 2; i++) {
        submit(puts_of("k", LIST, 1));
        tdb_free(tdb_wait(&in, 2 + (i + 1) * LIST));
    }
    ck_assert_int_eq(tdb_write(writer, &in, tdb_put("last", "x"), NULL), DB_OK);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM inbox_seen WHERE id = 'old'"), 0);
    sqlite3_close(db);
    stop();
}
END_TEST

/* ---- without a thread ------------------------------------------------------------------------ */

START_TEST(one_operation_without_a_server)
{
    struct db_op *op = tdb_put("k", "v");
    ck_assert_int_eq(db_writer_once(&tdb_config, op, &tdb_error), DB_OK);
    ck_assert_int_eq(op->result, DB_OK);
    ck_assert_uint_eq(op->seq, 1);
    db_op_free(op);
    op = tdb_delete("absent");
    ck_assert_int_eq(db_writer_once(&tdb_config, op, &tdb_error), DB_NONE);
    ck_assert(tdb_error.text[0] != 0);
    db_op_free(op);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc"), 1);
    tdb_is_sound();
}
END_TEST

START_TEST(one_operation_on_a_file_that_is_refused)
{
    struct db_op *op = tdb_put("k", "v");
    temp_file("hanji.db", "no database at all, but text", 28);
    ck_assert_int_eq(db_writer_once(&tdb_config, op, &tdb_error), DB_REFUSED);
    ck_assert(tdb_error.text[0] != 0);
    db_op_free(op);
}
END_TEST

static TCase *writer_case(Suite *s, const char *name)
{
    TCase *t = run_case(s, name);
    temp_use(t);
    tcase_add_checked_fixture(t, tdb_init, NULL);
    return t;
}

int main(void)
{
    Suite *s = suite_create("writer");
    TCase *t = writer_case(s, "one");
    tcase_add_test(t, a_write_is_acknowledged_when_it_is_stored);
    tcase_add_test(t, results_come_back_as_they_are);
    tcase_add_test(t, submitting_nothing);
    tcase_add_test(t, the_store_is_there_after_a_restart);
    tcase_add_test(t, a_file_that_is_refused);
    t = writer_case(s, "bursts");
    tcase_add_test(t, a_list_is_applied_and_delivered_in_order);
    tcase_add_test(t, what_waits_for_a_sync_shares_the_next);
    tcase_add_test(t, an_operation_that_fails_does_so_alone);
    tcase_add_test(t, a_burst_has_a_bound_of_operations);
    tcase_add_test(t, a_bound_of_one_commits_each_alone);
    tcase_add_test(t, a_burst_has_a_bound_of_bytes);
    tcase_add_test(t, files_count_in_a_burst);
    t = writer_case(s, "queue");
    tcase_add_test(t, the_queue_has_a_bound_of_operations);
    tcase_add_test(t, the_queue_has_a_bound_of_bytes);
    tcase_add_test(t, room_comes_back);
    t = writer_case(s, "time");
    tcase_add_test(t, a_lone_writer_never_waits);
    tcase_add_test(t, bursts_gather_for_those_that_come_back);
    t = writer_case(s, "threads");
    tcase_add_test(t, everything_is_delivered_once_and_in_order);
    tcase_add_test(t, stopping_delivers_everything);
    tcase_add_test(t, stopping_at_once);
    tcase_add_test(t, somebody_else_holds_the_lock_for_a_moment);
    tcase_add_test(t, quiet_time_is_used);
    tcase_add_test(t, a_busy_time_is_used_too);
    tcase_add_test(t, inboxes_are_tidied_in_a_busy_time);
    t = writer_case(s, "once");
    tcase_add_test(t, one_operation_without_a_server);
    tcase_add_test(t, one_operation_on_a_file_that_is_refused);
    return run_suite(s);
}
