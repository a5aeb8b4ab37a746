/* db/checkpoint and the writer: the log is copied and used again, its bound holds, whoever pins it is named, and what a
 * killed process left in it is taken up. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/checkpoint.h"
#include "db/doc.h"
#include "tests/unit/tdb.h"

static struct inbox in;
static struct db_writer *writer;

/* Another body each time: SQLite writes only the pages of a body that change. */
static struct db_op *sized(const char *key, size_t bytes)
{
    static unsigned count;
    char *body = calloc(1, bytes + 1);
    memset(body, 'a' + (int)(count++ % 26), bytes);
    struct db_op *op = tdb_put(key, body);
    free(body);
    return op;
}

static enum db_result put(const char *key, size_t bytes)
{
    return tdb_write(writer, &in, sized(key, bytes), NULL);
}

static off_t wal_size(void)
{
    struct stat st;
    return stat(temp_path("hanji.db-wal"), &st) == 0 ? st.st_size : 0;
}

static struct db_writer_stats stats(void)
{
    struct db_writer_stats s;
    db_writer_get_stats(writer, &s);
    return s;
}

/* What the main file says without its log. */
static int64_t ask_without_log(const char *sql)
{
    size_t n;
    sqlite3 *db;
    char *bytes = temp_read(tdb_config.path, &n);
    const char *copy = temp_file("copy.db", bytes, n);
    free(bytes);
    ck_assert_int_eq(sqlite3_open(copy, &db), SQLITE_OK);
    int64_t v = tdb_ask(db, sql);
    sqlite3_close(db);
    return v;
}

/* ---- the log is used again ------------------------------------------------------------------- */

START_TEST(the_log_stays_small)
{
    tdb_config.checkpoint_bytes = 200000;
    writer = tdb_start(&in);
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(put("k", 20000), DB_OK);
    ck_assert_int_lt(wal_size(), 600000); /* 4 MB were written */
    ck_assert_uint_ge(stats().checkpoints, 5);
    ck_assert_uint_lt(stats().wal_bytes, 600000);
    db_writer_stop(writer);
    tdb_is_sound();
}
END_TEST

/* Readers come and go meanwhile, as those of a server do. */
START_TEST(the_log_stays_small_beside_short_readers)
{
    struct db_reader *r;
    struct db_doc doc;
    tdb_config.checkpoint_bytes = 200000;
    writer = tdb_start(&in);
    ck_assert_int_eq(db_reader_open(&tdb_config, &r, &tdb_error), DB_OK);
    for (int i = 0; i < 200; i++) {
        ck_assert_int_eq(put("k", 20000), DB_OK);
        ck_assert_int_eq(db_reader_begin(r), DB_OK);
        ck_assert_int_eq(db_doc_get(r, "k", 1, UINT64_MAX >> 1, &doc), DB_OK);
        ck_assert_uint_eq(doc.seq, i + 1);
        db_reader_end(r);
    }
    ck_assert_int_lt(wal_size(), 800000);
    db_reader_close(r);
    db_writer_stop(writer);
}
END_TEST

START_TEST(a_large_log_shrinks)
{
    tdb_config.checkpoint_bytes = 30 << 20;
    writer = tdb_start(&in);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(put("k", 1 << 20), DB_OK);
    ck_assert_int_gt(wal_size(), 10 << 20);
    db_writer_stop(writer);
    writer = tdb_start(&in);
    ck_assert_int_eq(put("k", 10), DB_OK);
    ck_assert_int_le(wal_size(), 4 << 20);
    db_writer_stop(writer);
}
END_TEST

START_TEST(stopping_copies_the_log)
{
    writer = tdb_start(&in);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(put("k", 5000), DB_OK);
    db_writer_stop(writer);
    ck_assert_int_eq(ask_without_log("SELECT seq FROM doc"), 20);
}
END_TEST

/* A connection of ours that closes, or commits, must not copy by itself (the race that SQLite had). */
START_TEST(nobody_else_copies)
{
    struct db_conn c;
    struct db_reader *r;
    uint64_t seq, documents;
    tdb_open(&c);
    for (int i = 0; i < 1200; i++) { /* more pages than SQLite's own limit of 1000 */
        struct db_op *op = sized("k", 4000);
        ck_assert_int_eq(tdb_burst(&c, op), DB_OK);
        tdb_free(op);
    }
    ck_assert_int_gt(wal_size(), 1200 * 4096);
    ck_assert_int_eq(db_reader_open(&tdb_config, &r, &tdb_error), DB_OK);
    ck_assert_int_eq(db_reader_totals(r, &seq, &documents), DB_OK);
    db_reader_close(r);
    ck_assert_int_eq(ask_without_log("SELECT count(*) FROM sqlite_schema"), 0);
    db_conn_close(&c);
}
END_TEST

/* The checkpoint needs the write lock: while somebody else holds it nothing is copied. */
START_TEST(a_checkpoint_waits_for_the_lock)
{
    struct db_conn c;
    struct db_checkpoint ck;
    uint64_t left = 99;
    tdb_open(&c);
    ck_assert_int_eq(db_checkpoint_open(&ck, tdb_config.path, &tdb_error), DB_OK);
    struct db_op *op = sized("k", 4000);
    ck_assert_int_eq(tdb_burst(&c, op), DB_OK);
    sqlite3 *other = tdb_shell();
    tdb_sql(other, "BEGIN IMMEDIATE");
    c.busy_limit_ms = 20;
    ck_assert_int_eq(db_checkpoint_run(&ck, &c, &left), DB_BUSY);
    tdb_sql(other, "ROLLBACK");
    sqlite3_close(other);
    ck_assert_int_eq(db_checkpoint_run(&ck, &c, &left), DB_OK);
    ck_assert_uint_eq(left, 0);
    ck_assert_int_eq(ask_without_log("SELECT seq FROM doc"), 1);
    ck_assert_int_eq(tdb_burst(&c, op), DB_OK); /* the transaction that held the lock is over */
    tdb_free(op);
    db_checkpoint_close(&ck);
    db_conn_close(&c);
}
END_TEST

/* ---- somebody pins the log ------------------------------------------------------------------- */

/* A process that reads the store and keeps its snapshot until it is told to go. */
struct pin {
    pid_t pid;
    int go;
};

static _Noreturn void hold_snapshot(int ready, int go)
{
    sqlite3 *db = tdb_shell();
    char c = 0;
    tdb_sql(db, "BEGIN");
    tdb_ask(db, "SELECT count(*) FROM doc");
    ssize_t n = write(ready, &c, 1);
    n = read(go, &c, 1);
    (void)n;
    sqlite3_close(db);
    _exit(0);
}

static struct pin pin(void)
{
    int ready[2], go[2];
    char c;
    ck_assert(pipe(ready) == 0 && pipe(go) == 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        close(ready[0]);
        close(go[1]);
        hold_snapshot(ready[1], go[0]);
    }
    close(ready[1]);
    close(go[0]);
    ck_assert_int_eq(read(ready[0], &c, 1), 1);
    close(ready[0]);
    return (struct pin){pid, go[1]};
}

static void unpin(struct pin p)
{
    close(p.go);
    ck_assert_int_eq(waitpid(p.pid, NULL, 0), p.pid);
}

/* Writes until the bound is reached; returns what the refused operation says of who pins the log. */
static int64_t write_to_the_bound(void)
{
    for (int i = 0; i < 500; i++) {
        struct db_op *op = sized("k", 20000);
        ck_assert(db_writer_reserve(writer, op));
        unsigned before = in.count;
        db_writer_submit(writer, op);
        struct db_op *done = tdb_wait(&in, before + 1);
        enum db_result result = done->result;
        int64_t pid = done->pid;
        tdb_free(done);
        if (result == DB_WAL_LIMIT)
            return pid;
        ck_assert_int_eq(result, DB_OK);
    }
    ck_abort_msg("no bound");
    return 0;
}

static void small_log(void)
{
    struct db_conn c;
    tdb_init();
    tdb_config.checkpoint_bytes = 200000;
    tdb_config.wal_limit_bytes = 1 << 20;
    tdb_open(&c);
    struct db_op *op = sized("first", 10);
    ck_assert_int_eq(tdb_burst(&c, op), DB_OK);
    tdb_free(op);
    db_conn_close(&c);
}

START_TEST(who_pins_the_log_is_named)
{
    struct pin p = pin();
    writer = tdb_start(&in);
    ck_assert_int_eq(write_to_the_bound(), p.pid);
    ck_assert_int_eq(stats().pinned_by, p.pid);
    ck_assert_int_lt(wal_size(), (1 << 20) + 200000);
    ck_assert_int_eq(put("k", 10), DB_WAL_LIMIT);
    ck_assert_uint_eq(in.broken, 0);
    unpin(p);
    db_writer_stop(writer);
    tdb_is_sound();
}
END_TEST

START_TEST(writes_go_on_when_it_is_free)
{
    struct pin p = pin();
    writer = tdb_start(&in);
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(write_to_the_bound(), p.pid);
        unpin(p);
        ck_assert_int_eq(put("k", 20000), DB_OK);
        ck_assert_int_lt(stats().wal_bytes, 200000);
        p = pin();
    }
    unpin(p);
    ck_assert_int_eq(put("k", 20000), DB_OK);
    db_writer_stop(writer);
    tdb_is_sound();
}
END_TEST

START_TEST(writes_go_on_when_it_is_killed)
{
    struct pin p = pin();
    writer = tdb_start(&in);
    ck_assert_int_eq(write_to_the_bound(), p.pid);
    ck_assert_int_eq(kill(p.pid, SIGKILL), 0);
    unpin(p);
    ck_assert_int_eq(put("k", 20000), DB_OK);
    db_writer_stop(writer);
}
END_TEST

/* Operations that would change nothing are refused too: who asks learns that the store takes no writes. */
START_TEST(a_whole_burst_is_refused_at_the_bound)
{
    struct pin p = pin();
    writer = tdb_start(&in);
    write_to_the_bound();
    unsigned before = in.count;
    struct db_op *list = tdb_list(tdb_put("a", "1"), tdb_delete("absent"), tdb_put("b", "2"), NULL);
    for (struct db_op *op = list; op != NULL; op = op->next)
        ck_assert(db_writer_reserve(writer, op));
    db_writer_submit(writer, list);
    struct db_op *done = tdb_wait(&in, before + 3);
    for (struct db_op *op = done; op != NULL; op = op->next) {
        ck_assert_int_eq(op->result, DB_WAL_LIMIT);
        ck_assert_int_eq(op->pid, p.pid);
    }
    tdb_free(done);
    unpin(p);
    db_writer_stop(writer);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc WHERE key IN ('a', 'b')"), 0);
}
END_TEST

START_TEST(reads_go_on_at_the_bound)
{
    struct db_reader *r;
    struct db_doc doc;
    struct pin p = pin();
    writer = tdb_start(&in);
    write_to_the_bound();
    ck_assert_int_eq(db_reader_open(&tdb_config, &r, &tdb_error), DB_OK);
    ck_assert_int_eq(db_doc_get(r, "k", 1, UINT64_MAX >> 1, &doc), DB_OK);
    ck_assert_uint_eq(doc.size, 20000);
    db_reader_close(r);
    unpin(p);
    db_writer_stop(writer);
}
END_TEST

/* A reader of this process has no pid that could be told. */
START_TEST(a_reader_of_our_own_pins_it)
{
    struct db_reader *r;
    struct db_doc doc;
    writer = tdb_start(&in);
    ck_assert_int_eq(db_reader_open(&tdb_config, &r, &tdb_error), DB_OK);
    ck_assert_int_eq(db_reader_begin(r), DB_OK);
    ck_assert_int_eq(db_doc_get(r, "first", 5, UINT64_MAX >> 1, &doc), DB_OK);
    ck_assert_int_eq(write_to_the_bound(), 0);
    db_reader_end(r);
    ck_assert_int_eq(put("k", 10), DB_OK);
    db_reader_close(r);
    db_writer_stop(writer);
}
END_TEST

/* While it is pinned it is not tried again at every commit: that would cost each of them a look at the whole log. */
START_TEST(a_pinned_log_is_not_copied_at_every_commit)
{
    struct pin p = pin();
    tdb_config.wal_limit_bytes = 64 << 20;
    writer = tdb_start(&in);
    uint64_t from = db_clock_us();
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(put("k", 20000), DB_OK);
    uint64_t most = 3 + (db_clock_us() - from) / 200000;
    ck_assert_uint_le(stats().checkpoints, most);
    unpin(p);
    db_writer_stop(writer);
}
END_TEST

START_TEST(nobody_pins_an_idle_log)
{
    struct db_conn c;
    struct db_checkpoint ck;
    tdb_open(&c);
    ck_assert_int_eq(db_checkpoint_open(&ck, tdb_config.path, &tdb_error), DB_OK);
    ck_assert_int_eq(db_checkpoint_pinned_by(&ck), 0);
    struct pin p = pin();
    ck_assert_int_eq(db_checkpoint_pinned_by(&ck), p.pid);
    unpin(p);
    ck_assert_int_eq(db_checkpoint_pinned_by(&ck), 0);
    db_checkpoint_close(&ck);
    db_conn_close(&c);
}
END_TEST

/* ---- what a killed process left -------------------------------------------------------------- */

/* Writes documents until it is killed; tells the number of each that was acknowledged. */
static _Noreturn void write_until_killed(int told)
{
    tdb_config.checkpoint_bytes = 100000; /* so that it is killed in checkpoints too */
    writer = tdb_start(&in);
    for (uint32_t i = 0;; i++) {
        char key[32];
        snprintf(key, sizeof key, "k%u", i);
        if (put(key, 2000 + i % 7 * 1000) != DB_OK || write(told, &i, sizeof i) != sizeof i)
            _exit(1);
    }
}

START_TEST(an_acknowledged_write_survives_a_kill)
{
    uint32_t last = 0, n = 0, i;
    for (int round = 0; round < 3; round++) {
        int told[2];
        ck_assert_int_eq(pipe(told), 0);
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            close(told[0]);
            write_until_killed(told[1]);
        }
        close(told[1]);
        for (n = 0; n < 150 + (uint32_t)round * 37 && read(told[0], &i, sizeof i) == sizeof i; n++)
            last = i;
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        while (read(told[0], &i, sizeof i) == sizeof i)
            last = i;
        close(told[0]);
        for (uint32_t k = 0; k <= last; k++) {
            char sql[100];
            snprintf(sql, sizeof sql, "SELECT count(*) FROM doc WHERE key = 'k%u' AND size = %u", k, 2000 + k % 7 * 1000);
            if (k % 10 == 0 || k + 5 > last)
                ck_assert_msg(tdb_ask_file(sql) == 1, "k%u is missing", k);
        }
        tdb_is_sound();
    }
    writer = tdb_start(&in);
    ck_assert_int_eq(put("after", 10), DB_OK);
    db_writer_stop(writer);
    tdb_is_sound();
}
END_TEST

/* A process that writes 4 MB and is killed before it copies any of it. */
static void leave_a_large_log(void)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        writer = tdb_start(&in);
        for (int i = 0; i < 100; i++)
            if (put("k", 40000) != DB_OK)
                _exit(1);
        kill(getpid(), SIGKILL);
    }
    waitpid(child, NULL, 0);
    ck_assert_int_gt(wal_size(), 3 << 20);
}

/* Also when nothing is written any more. (The reader's connection is there so that SQLite, which copies the log when the
 * last one closes, does not do it in the writer's place.) */
START_TEST(a_log_of_a_killed_process_is_copied)
{
    struct db_reader *r;
    uint64_t seq, documents;
    leave_a_large_log();
    ck_assert_int_eq(db_reader_open(&tdb_config, &r, &tdb_error), DB_OK);
    ck_assert_int_eq(db_reader_totals(r, &seq, &documents), DB_OK);
    ck_assert_uint_eq(seq, 100);
    writer = tdb_start(&in);
    db_writer_stop(writer);
    ck_assert_int_eq(ask_without_log("SELECT seq FROM doc"), 100);
    db_reader_close(r);
}
END_TEST

/* A log beyond its bound, of a process that is gone, is copied before it is added to. */
START_TEST(a_large_log_of_a_killed_process_is_taken_up)
{
    leave_a_large_log();
    tdb_config.checkpoint_bytes = 200000;
    tdb_config.wal_limit_bytes = 1 << 20;
    writer = tdb_start(&in);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(put("k", 40000), DB_OK);
    ck_assert_int_le(wal_size(), 4 << 20);
    ck_assert_uint_lt(stats().wal_bytes, 1 << 20);
    db_writer_stop(writer);
    ck_assert_int_eq(tdb_ask_file("SELECT seq FROM doc"), 200);
    tdb_is_sound();
}
END_TEST

static TCase *log_case(Suite *s, const char *name, void (*before)(void))
{
    TCase *t = run_case(s, name);
    temp_use(t);
    tcase_add_checked_fixture(t, before, NULL);
    return t;
}

int main(void)
{
    Suite *s = suite_create("checkpoint");
    TCase *t = log_case(s, "reuse", tdb_init);
    tcase_add_test(t, the_log_stays_small);
    tcase_add_test(t, the_log_stays_small_beside_short_readers);
    tcase_add_test(t, a_large_log_shrinks);
    tcase_add_test(t, stopping_copies_the_log);
    tcase_add_test(t, nobody_else_copies);
    tcase_add_test(t, a_checkpoint_waits_for_the_lock);
    t = log_case(s, "pinned", small_log);
    tcase_add_test(t, who_pins_the_log_is_named);
    tcase_add_test(t, writes_go_on_when_it_is_free);
    tcase_add_test(t, writes_go_on_when_it_is_killed);
    tcase_add_test(t, a_whole_burst_is_refused_at_the_bound);
    tcase_add_test(t, reads_go_on_at_the_bound);
    tcase_add_test(t, a_reader_of_our_own_pins_it);
    tcase_add_test(t, a_pinned_log_is_not_copied_at_every_commit);
    tcase_add_test(t, nobody_pins_an_idle_log);
    t = log_case(s, "killed", tdb_init);
    tcase_add_test(t, an_acknowledged_write_survives_a_kill);
    tcase_add_test(t, a_log_of_a_killed_process_is_copied);
    tcase_add_test(t, a_large_log_of_a_killed_process_is_taken_up);
    return run_suite(s);
}
