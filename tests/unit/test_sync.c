/* db/writer when a sync fails: nothing of that burst is acknowledged, nothing is written any more, and what was
 * acknowledged before is there when the file is opened again. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/tdb.h"

static atomic_int good_syncs = -1; /* that many go well, then each fails; below 0: all go well */
static atomic_uint sync_us;

/* SQLite's syncs come here. */
int fdatasync(int fd)
{
    (void)fd;
    if (sync_us > 0)
        usleep(sync_us);
    if (good_syncs == 0) {
        errno = EIO;
        return -1;
    }
    if (good_syncs > 0)
        good_syncs--;
    return 0;
}

int fsync(int fd)
{
    return fdatasync(fd);
}

static struct inbox in;
static struct db_writer *writer;

static void start(void)
{
    writer = tdb_start(&in);
}

static enum db_result put(const char *key, const char *body)
{
    return tdb_write(writer, &in, tdb_put(key, body), NULL);
}

static void submit(struct db_op *list)
{
    for (struct db_op *op = list; op != NULL; op = op->next)
        ck_assert(db_writer_reserve(writer, op));
    db_writer_submit(writer, list);
}

/* Ends the writer and opens the file again, with syncs that work. */
static void restart(void)
{
    db_writer_stop(writer);
    good_syncs = -1;
    start();
}

static void is_stored(const char *key, const char *body)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM doc WHERE key = '%s' AND body = '%s'", key, body);
    ck_assert_int_eq(tdb_ask_file(sql), 1);
}

START_TEST(the_write_is_not_acknowledged)
{
    start();
    good_syncs = 0;
    ck_assert_int_eq(put("a", "1"), DB_BROKEN);
    ck_assert_uint_eq(in.broken, 1);
    ck_assert_int_eq(put("b", "2"), DB_BROKEN);
    ck_assert_uint_eq(in.broken, 1);
    good_syncs = -1; /* the disk may say that it is well again: what it dropped is gone all the same */
    ck_assert_int_eq(put("c", "3"), DB_BROKEN);
    ck_assert_uint_eq(in.broken, 1);
    db_writer_stop(writer);
    tdb_is_sound();
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc WHERE key <> 'a'"), 0);
}
END_TEST

START_TEST(nothing_of_the_burst_is_acknowledged)
{
    start();
    ck_assert_int_eq(put("before", "1"), DB_OK);
    good_syncs = 0;
    submit(tdb_list(tdb_put("a", "1"), tdb_delete("absent"), tdb_put("b", "2"), tdb_put("before", "2"), NULL));
    struct db_op *done = tdb_wait(&in, 5);
    for (struct db_op *op = done; op != NULL; op = op->next)
        ck_assert_int_eq(op->result, DB_BROKEN);
    tdb_free(done);
    db_writer_stop(writer);
}
END_TEST

/* Whether it is there or not, it is so wholly. */
START_TEST(what_was_acknowledged_is_there_after_a_restart)
{
    char key[16];
    start();
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof key, "k%d", i);
        ck_assert_int_eq(put(key, "v"), DB_OK);
    }
    good_syncs = 0;
    submit(tdb_list(tdb_put("x", "1"), tdb_put("y", "1"), tdb_put("k0", "w"), NULL));
    tdb_free(tdb_wait(&in, 23));
    restart();
    for (int i = 1; i < 20; i++) {
        snprintf(key, sizeof key, "k%d", i);
        is_stored(key, "v");
    }
    int64_t x = tdb_ask_file("SELECT count(*) FROM doc WHERE key = 'x'");
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc WHERE key = 'y'"), x);
    is_stored("k0", x ? "w" : "v");
    ck_assert_int_eq(put("after", "1"), DB_OK);
    db_writer_stop(writer);
    tdb_is_sound();
}
END_TEST

START_TEST(reads_go_on)
{
    struct db_reader *r;
    uint64_t seq, documents;
    start();
    ck_assert_int_eq(put("a", "1"), DB_OK);
    ck_assert_int_eq(db_reader_open(&tdb_config, &r, &tdb_error), DB_OK);
    good_syncs = 0;
    ck_assert_int_eq(put("a", "2"), DB_BROKEN);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(db_reader_begin(r), DB_OK);
        ck_assert_int_eq(db_reader_totals(r, &seq, &documents), DB_OK);
        ck_assert_uint_eq(seq, 1);
        db_reader_end(r);
    }
    db_reader_close(r);
    db_writer_stop(writer);
}
END_TEST

/* The queue behind a failed burst is told so too, also when the writer is stopped meanwhile. */
START_TEST(everything_is_delivered)
{
    struct db_op *list = NULL, **end = &list;
    tdb_config.burst_operations = 10;
    start();
    ck_assert_int_eq(put("a", "1"), DB_OK);
    sync_us = 5000;
    good_syncs = 3;
    for (int i = 0; i < 200; i++) {
        *end = tdb_put("k", "v");
        end = &(*end)->next;
    }
    submit(list);
    db_writer_stop(writer);
    sync_us = 0;
    struct db_op *done = tdb_wait(&in, 201);
    int ok = 0, i = 0;
    for (struct db_op *op = done; op != NULL; op = op->next, i++) {
        ck_assert(op->result == DB_OK || op->result == DB_BROKEN);
        ck_assert(op->result == DB_BROKEN || ok == i); /* no success behind a failure */
        ok += op->result == DB_OK;
    }
    ck_assert_int_eq(i, 200);
    ck_assert_int_eq(ok, 30);
    tdb_free(done);
    ck_assert_uint_eq(in.broken, 1);
    good_syncs = -1;
    ck_assert_int_ge(tdb_ask_file("SELECT seq FROM doc WHERE key = 'k'"), 31);
}
END_TEST

static void wait_for_checkpoint(uint64_t n)
{
    struct db_writer_stats stats = {0};
    for (int i = 0; i < 2000 && stats.checkpoints < n && in.broken == 0; i++) {
        usleep(1000);
        db_writer_get_stats(writer, &stats);
    }
}

/* The commit behind a checkpoint starts the log anew and syncs twice; the checkpoint syncs the log, then the file. */
START_TEST(a_checkpoint_that_fails)
{
    tdb_config.checkpoint_bytes = 1;
    start();
    ck_assert_int_eq(put("a", "1"), DB_OK);
    wait_for_checkpoint(1);
    good_syncs = 2 + _i;
    ck_assert_int_eq(put("a", "2"), DB_OK);
    wait_for_checkpoint(2);
    ck_assert_uint_eq(in.broken, 1);
    ck_assert_int_eq(put("a", "3"), DB_BROKEN);
    restart();
    is_stored("a", "2");
    ck_assert_int_eq(put("a", "4"), DB_OK);
    db_writer_stop(writer);
    tdb_is_sound();
}
END_TEST

START_TEST(one_operation_without_a_server)
{
    struct db_op *op = tdb_put("a", "1");
    struct db_conn c;
    tdb_open(&c);
    db_conn_close(&c);
    good_syncs = 0;
    ck_assert_int_eq(db_writer_once(&tdb_config, op, &tdb_error), DB_BROKEN);
    ck_assert_int_eq(op->result, DB_BROKEN);
    db_op_free(op);
}
END_TEST

START_TEST(a_new_file_that_cannot_be_synced)
{
    struct db_writer_hooks hooks = {0};
    good_syncs = 0;
    ck_assert_int_eq(db_writer_start(&tdb_config, &hooks, &writer, &tdb_error), DB_BROKEN);
    ck_assert_ptr_null(writer);
    good_syncs = -1;
    start();
    ck_assert_int_eq(put("a", "1"), DB_OK);
    db_writer_stop(writer);
    tdb_is_sound();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sync");
    TCase *t = run_case(s, "sync");
    temp_use(t);
    tcase_add_checked_fixture(t, tdb_init, NULL);
    tcase_add_test(t, the_write_is_not_acknowledged);
    tcase_add_test(t, nothing_of_the_burst_is_acknowledged);
    tcase_add_test(t, what_was_acknowledged_is_there_after_a_restart);
    tcase_add_test(t, reads_go_on);
    tcase_add_test(t, everything_is_delivered);
    tcase_add_loop_test(t, a_checkpoint_that_fails, 0, 2);
    tcase_add_test(t, one_operation_without_a_server);
    tcase_add_test(t, a_new_file_that_cannot_be_synced);
    return run_suite(s);
}
