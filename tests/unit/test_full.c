/* db/writer on a full disk: the write is refused as such, nothing else breaks, and writes go on when there is room.
 *
 * Once on a small file system of memory, in a mount namespace of its own (which only root may make), and once, for
 * everybody, with SQLite's writes told that there is no room. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db/doc.h"
#include "tests/unit/tdb.h"

static struct inbox in;
static struct db_writer *writer;

static enum db_result put(const char *key, size_t bytes)
{
    char *body = calloc(1, bytes + 1);
    memset(body, 'b', bytes);
    struct db_op *op = tdb_put(key, body);
    free(body);
    return tdb_write(writer, &in, op, NULL);
}

static void reads_work(void)
{
    struct db_reader *r;
    struct db_doc doc;
    ck_assert_int_eq(db_reader_open(&tdb_config, &r, &tdb_error), DB_OK);
    ck_assert_int_eq(db_reader_begin(r), DB_OK);
    ck_assert_int_eq(db_doc_get(r, "first", 5, UINT64_MAX >> 1, &doc), DB_OK);
    ck_assert_uint_eq(doc.size, 1000);
    db_reader_close(r);
}

/* ---- writes that are told so ----------------------------------------------------------------- */

static atomic_bool no_room;
static ssize_t (*real_pwrite)(int fd, const void *p, size_t n, off_t at);

static ssize_t pwrite_with_room(int fd, const void *p, size_t n, off_t at)
{
    struct stat st;
    if (no_room && (fstat(fd, &st) != 0 || at + (off_t)n > st.st_size)) {
        errno = ENOSPC;
        return -1;
    }
    return real_pwrite(fd, p, n, at);
}

/* Puts itself between SQLite and the system, by SQLite's own means. */
static void take_writes(void)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    static const char *const names[] = {"pwrite", "pwrite64"};
    real_pwrite = pwrite;
    for (size_t i = 0; i < COUNT(names); i++)
        if (vfs->xGetSystemCall(vfs, names[i]) != NULL)
            ck_assert_int_eq(vfs->xSetSystemCall(vfs, names[i], (sqlite3_syscall_ptr)pwrite_with_room), SQLITE_OK);
}

static void start(void)
{
    tdb_init();
    take_writes();
    writer = tdb_start(&in);
    ck_assert_int_eq(put("first", 1000), DB_OK);
}

static void stop(void)
{
    db_writer_stop(writer);
    tdb_is_sound();
}

START_TEST(the_write_is_refused_and_the_store_goes_on)
{
    start();
    no_room = true;
    ck_assert_int_eq(put("a", 100000), DB_FULL);
    ck_assert_int_eq(put("b", 100000), DB_FULL);
    ck_assert_uint_eq(in.broken, 0);
    reads_work();
    no_room = false;
    ck_assert_int_eq(put("c", 100000), DB_OK);
    stop();
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc"), 2);
    ck_assert_int_eq(tdb_ask_file("SELECT max(seq) FROM doc"), 2);
}
END_TEST

START_TEST(nothing_of_the_burst_is_there)
{
    struct db_op *list = tdb_list(tdb_put("a", "1"), tdb_put("b", "2"), tdb_delete("first"), tdb_delete("absent"), NULL);
    start();
    no_room = true;
    for (struct db_op *op = list; op != NULL; op = op->next)
        ck_assert(db_writer_reserve(writer, op));
    db_writer_submit(writer, list);
    struct db_op *done = tdb_wait(&in, 5);
    for (struct db_op *op = done; op != NULL; op = op->next)
        ck_assert_int_eq(op->result, DB_FULL);
    tdb_free(done);
    reads_work();
    no_room = false;
    stop();
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc"), 1);
}
END_TEST

/* The log has no room in the file: it stays where it is, and nothing is lost. */
START_TEST(a_checkpoint_without_room)
{
    char key[32];
    tdb_init();
    tdb_config.checkpoint_bytes = 65536;
    take_writes();
    writer = tdb_start(&in);
    ck_assert_int_eq(put("first", 1000), DB_OK);
    for (int i = 0; i < 12; i++) {
        snprintf(key, sizeof key, "k%d", i);
        no_room = i % 3 == 2;
        enum db_result result = put(key, 30000);
        ck_assert(result == DB_OK || (result == DB_FULL && no_room));
    }
    no_room = false;
    ck_assert_uint_eq(in.broken, 0);
    ck_assert_int_eq(put("last", 100000), DB_OK);
    stop();
    ck_assert_int_ge(tdb_ask_file("SELECT count(*) FROM doc"), 10);
}
END_TEST

START_TEST(a_full_disk_at_the_start)
{
    struct db_writer_hooks hooks = {0};
    tdb_init();
    take_writes();
    no_room = true;
    ck_assert_int_eq(db_writer_start(&tdb_config, &hooks, &writer, &tdb_error), DB_FULL);
    ck_assert_ptr_null(writer);
    ck_assert(tdb_error.text[0] != 0);
    no_room = false;
    writer = tdb_start(&in);
    ck_assert_int_eq(put("first", 1000), DB_OK);
    stop();
}
END_TEST

/* ---- a small file system --------------------------------------------------------------------- */

/* A file system of 2 MiB in place of the test's folder, seen by this process alone and gone with it. */
static bool small_disk(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", temp_path(""), "tmpfs", 0, "size=2m") == 0;
}

START_TEST(a_small_disk_that_fills_up)
{
    char key[32];
    int n = 0, ballast_bytes = 600000;
    tdb_init();
    take_writes();
    bool real = small_disk();
    char *ballast = calloc(1, (size_t)ballast_bytes);
    temp_file("ballast", ballast, (size_t)ballast_bytes);
    free(ballast);
    writer = tdb_start(&in);
    ck_assert_int_eq(put("first", 1000), DB_OK);
    enum db_result result = DB_OK;
    for (; n < 100 && result == DB_OK; n++) {
        snprintf(key, sizeof key, "k%d", n);
        no_room = !real && n == 10;
        result = put(key, 50000);
    }
    ck_assert_int_eq(result, DB_FULL);
    ck_assert_int_ge(n, 5);
    ck_assert_uint_eq(in.broken, 0);
    reads_work();
    ck_assert_int_eq(put("more", 50000), DB_FULL);
    ck_assert_int_eq(unlink(temp_path("ballast")), 0); /* somebody makes room */
    no_room = false;
    ck_assert_int_eq(put("more", 50000), DB_OK);
    ck_assert_int_eq(tdb_write(writer, &in, tdb_delete("k0"), NULL), DB_OK);
    stop();
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc"), n); /* first, those before the full one, more, without k0 */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("full");
    TCase *t = run_case(s, "full");
    temp_use(t);
    tcase_add_test(t, the_write_is_refused_and_the_store_goes_on);
    tcase_add_test(t, nothing_of_the_burst_is_there);
    tcase_add_test(t, a_checkpoint_without_room);
    tcase_add_test(t, a_full_disk_at_the_start);
    tcase_add_test(t, a_small_disk_that_fills_up);
    return run_suite(s);
}
