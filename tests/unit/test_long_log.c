/* db/checkpoint, db/writer: a log that was kept and has grown long is copied beside the writes, which go on meanwhile; whatever
 * happens to that copy, nothing that was acknowledged is lost. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/tdb.h"

enum { DOCUMENTS = 400, BODY_BYTES = 20000 };

static struct inbox in;
static struct db_writer *writer;

/* ---- writes into the main file that are slow, or fail ----------------------------------------- */

static atomic_uint slow_us;  /* what each takes longer */
static atomic_int fails_with; /* errno of each, 0: it does not fail */
static atomic_uint copied;   /* pages written into the main file */
static ssize_t (*real_pwrite)(int fd, const void *p, size_t n, off_t at);

static ssize_t pwrite_into_main(int fd, const void *p, size_t n, off_t at)
{
    struct stat st, main_file;
    bool into_main = fstat(fd, &st) == 0 && stat(tdb_config.path, &main_file) == 0 && st.st_ino == main_file.st_ino;
    if (into_main && fails_with != 0) {
        errno = fails_with;
        return -1;
    }
    if (into_main && slow_us > 0)
        usleep(slow_us);
    copied += into_main;
    return real_pwrite(fd, p, n, at);
}

static void take_writes(void)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    static const char *const names[] = {"pwrite", "pwrite64"};
    real_pwrite = pwrite;
    for (size_t i = 0; i < COUNT(names); i++)
        if (vfs->xGetSystemCall(vfs, names[i]) != NULL)
            ck_assert_int_eq(vfs->xSetSystemCall(vfs, names[i], (sqlite3_syscall_ptr)pwrite_into_main), SQLITE_OK);
}

/* ---- a long log ------------------------------------------------------------------------------ */

static enum db_result put(int key, char fill)
{
    static char body[BODY_BYTES + 1];
    char name[16];
    snprintf(name, sizeof name, "k%d", key);
    memset(body, fill, BODY_BYTES);
    return tdb_write(writer, &in, tdb_put(name, body), NULL);
}

static uint64_t log_bytes(void)
{
    struct db_writer_stats s;
    db_writer_get_stats(writer, &s);
    return s.wal_bytes;
}

static void start(void)
{
    tdb_init();
    tdb_config.checkpoint_bytes = 400000;
    take_writes();
    writer = tdb_start(&in);
    ck_assert_int_eq(put(0, 'a'), DB_OK);
}

/* Writes 8 MB while a reader keeps the log; when it has gone, the next write finds all of it to be copied. */
static void grow(void)
{
    sqlite3 *reader = tdb_shell();
    tdb_sql(reader, "BEGIN");
    tdb_ask(reader, "SELECT count(*) FROM doc");
    for (int i = 0; i < DOCUMENTS; i++)
        ck_assert_int_eq(put(i, 'b'), DB_OK);
    ck_assert_uint_gt(log_bytes(), 7 << 20);
    sqlite3_close(reader);
    usleep(300000); /* it is tried again after a quarter of a second */
    copied = 0;
}

static void all_is_stored(char fill)
{
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM doc WHERE substr(body, %d) = '%c'", BODY_BYTES, fill);
    ck_assert_int_eq(tdb_ask_file(sql), DOCUMENTS);
    tdb_is_sound();
}

START_TEST(writes_go_on_while_it_is_copied)
{
    uint64_t longest_us = 0, begin;
    unsigned during = 0;
    start();
    grow();
    slow_us = 500; /* about a second for all of it */
    begin = db_clock_us();
    for (int i = 0; (copied < 2000 || log_bytes() > 2 << 20) && db_clock_us() - begin < 20000000; i++) {
        uint64_t from = db_clock_us();
        ck_assert_int_eq(put(i % DOCUMENTS, 'b'), DB_OK);
        uint64_t took = db_clock_us() - from;
        longest_us = took > longest_us ? took : longest_us;
        during++;
        usleep(10000);
    }
    slow_us = 0;
    ck_assert_uint_ge(copied, 2000);
    ck_assert_uint_gt(during, 10);
    ck_assert_msg(longest_us < 600000, "a write waited for %u ms", (unsigned)(longest_us / 1000));
    ck_assert_uint_le(log_bytes(), 2 << 20); /* the log is used again */
    db_writer_stop(writer);
    all_is_stored('b');
}
END_TEST

START_TEST(it_is_copied_when_nobody_writes)
{
    start();
    grow();
    for (int i = 0; i < 800 && log_bytes() > 0; i++)
        usleep(10000);
    ck_assert_uint_eq(log_bytes(), 0);
    ck_assert_uint_gt(copied, 1500);
    db_writer_stop(writer);
    all_is_stored('b');
}
END_TEST

static void wait_until_it_is_copied(void)
{
    ck_assert_int_eq(put(0, 'b'), DB_OK);
    for (int i = 0; i < 3000 && copied < 20; i++)
        usleep(1000);
    ck_assert_uint_ge(copied, 20);
}

START_TEST(a_stop_meanwhile_waits_and_copies_all)
{
    struct stat st;
    start();
    grow();
    slow_us = 300;
    wait_until_it_is_copied();
    db_writer_stop(writer);
    slow_us = 0;
    ck_assert_int_eq(stat(temp_path("hanji.db"), &st), 0);
    ck_assert_int_gt(st.st_size, 8000000);
    unlink(temp_path("hanji.db-wal"));
    all_is_stored('b');
}
END_TEST

/* Killed in the middle of it: SQLite finds all in the log. */
START_TEST(a_kill_meanwhile_loses_nothing)
{
    int pipes[2], told = 0, last = -1;
    ck_assert_int_eq(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        start();
        grow();
        slow_us = 300;
        wait_until_it_is_copied();
        for (int i = 0;; i = (i + 1) % DOCUMENTS)
            if (put(i, 'c') != DB_OK || write(pipes[1], &i, sizeof i) != sizeof i)
                _exit(1);
    }
    close(pipes[1]);
    for (int n = 0; n < 20 + 60 * _i && read(pipes[0], &told, sizeof told) == sizeof told; n++)
        last = told;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    while (read(pipes[0], &told, sizeof told) == sizeof told)
        last = told;
    ck_assert_int_ge(last, 19);
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM doc WHERE substr(body, %d) = 'c'", BODY_BYTES);
    tdb_init();
    ck_assert_int_ge(tdb_ask_file(sql), last + 1);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc"), DOCUMENTS);
    tdb_is_sound();
}
END_TEST

START_TEST(one_that_fails_ends_the_writing_and_loses_nothing)
{
    start();
    grow();
    fails_with = EIO;
    for (int i = 0; i < 400 && in.broken == 0; i++) {
        ck_assert_int_ne(put(i % DOCUMENTS, 'b'), DB_FULL);
        usleep(10000);
    }
    ck_assert_uint_eq(in.broken, 1);
    ck_assert_int_eq(put(0, 'c'), DB_BROKEN);
    fails_with = 0;
    db_writer_stop(writer);
    all_is_stored('b');
}
END_TEST

/* No room in the main file: the log stays, and is copied when there is some. */
START_TEST(one_without_room_is_tried_again)
{
    start();
    grow();
    fails_with = ENOSPC;
    for (int i = 0; i < 60; i++) {
        ck_assert_int_eq(put(i, 'b'), DB_OK);
        usleep(10000);
    }
    ck_assert_uint_eq(in.broken, 0);
    ck_assert_uint_gt(log_bytes(), 7 << 20);
    fails_with = 0;
    for (int i = 0; i < 400 && log_bytes() > 1 << 20; i++) {
        ck_assert_int_eq(put(i % DOCUMENTS, 'b'), DB_OK);
        usleep(10000);
    }
    ck_assert_uint_le(log_bytes(), 1 << 20);
    db_writer_stop(writer);
    all_is_stored('b');
}
END_TEST

/* A log that is kept on: there is nothing to copy, and no thread is started at every commit. */
START_TEST(one_that_cannot_get_further_is_not_tried_at_every_commit)
{
    struct db_writer_stats before, after;
    start();
    sqlite3 *reader = tdb_shell();
    tdb_sql(reader, "BEGIN");
    tdb_ask(reader, "SELECT count(*) FROM doc");
    for (int i = 0; i < DOCUMENTS; i++)
        ck_assert_int_eq(put(i, 'b'), DB_OK);
    db_writer_get_stats(writer, &before);
    uint64_t from = db_clock_us();
    for (int i = 0; i < DOCUMENTS; i++)
        ck_assert_int_eq(put(i, 'b'), DB_OK);
    db_writer_get_stats(writer, &after);
    ck_assert_uint_le(after.checkpoints - before.checkpoints, 2 + (db_clock_us() - from) / 200000);
    sqlite3_close(reader);
    db_writer_stop(writer);
    all_is_stored('b');
}
END_TEST

int main(void)
{
    Suite *s = suite_create("long_log");
    TCase *t = run_case(s, "long_log");
    temp_use(t);
    tcase_add_test(t, writes_go_on_while_it_is_copied);
    tcase_add_test(t, it_is_copied_when_nobody_writes);
    tcase_add_test(t, a_stop_meanwhile_waits_and_copies_all);
    tcase_add_loop_test(t, a_kill_meanwhile_loses_nothing, 0, 4);
    tcase_add_test(t, one_that_fails_ends_the_writing_and_loses_nothing);
    tcase_add_test(t, one_without_room_is_tried_again);
    tcase_add_test(t, one_that_cannot_get_further_is_not_tried_at_every_commit);
    return run_suite(s);
}
