/* db/backup: one whole verified file of one moment, or nothing; no link followed, nothing of the store written. */
#include "db/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db/schema.h"
#include "tests/unit/tdb.h"

static struct db_watch watch;
static struct db_backup done;
static char faults[2048];

static void found(void *arg, bool fault, const char *finding)
{
    size_t at = strlen(faults);
    (void)arg;
    if (fault)
        snprintf(faults + at, sizeof faults - at, "%s\n", finding);
}

static enum db_result backup(const char *dest, bool replace)
{
    faults[0] = tdb_error.text[0] = 0;
    done = (struct db_backup){.dest = dest, .replace = replace, .each = found, .watch = &watch};
    return db_backup(&tdb_config, &done, &tdb_error);
}

static void made(const char *dest)
{
    enum db_result result = backup(dest, false);
    ck_assert_msg(result == DB_OK, "%d: %s %s", (int)result, tdb_error.text, faults);
}

static void refused(enum db_result expected, const char *dest, bool replace, const char *reason)
{
    enum db_result result = backup(dest, replace);
    ck_assert_msg(result == expected, "%d: %s", (int)result, tdb_error.text);
    ck_assert_msg(strstr(tdb_error.text, reason) != NULL, "\"%s\" does not say \"%s\"", tdb_error.text, reason);
    ck_assert_int_eq(watch.unfinished, 0);
}

/* A query on another file of the test's folder. */
static int64_t ask(const char *name, const char *sql)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open_v2(temp_path(name), &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    int64_t v = tdb_ask(db, sql);
    sqlite3_close(db);
    return v;
}

/* Nothing but these is in the folder, and the log of the store. */
static void only(const char *names)
{
    char command[2400], line[256] = "";
    snprintf(command, sizeof command, "ls -A '%s' | grep -v '^hanji.db-' | LC_ALL=C sort | tr '\\n' ' '", temp_path(""));
    FILE *p = popen(command, "r");
    ck_assert_ptr_nonnull(fgets(line, sizeof line, p));
    pclose(p);
    ck_assert_str_eq(line, names);
}

static void fill(int documents)
{
    char sql[300];
    tdb_make();
    sqlite3 *db = tdb_shell();
    snprintf(sql, sizeof sql, "PRAGMA wal_autocheckpoint=0; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1"
             " FROM n WHERE i < %d) INSERT INTO doc (key, body) SELECT 'k' || i, randomblob(1000) FROM n", documents);
    tdb_sql(db, sql);
    tdb_sql(db, "DELETE FROM doc WHERE key = 'k2'");
    sqlite3_close(db);
}

START_TEST(it_holds_what_the_store_holds)
{
    struct stat st;
    fill(100);
    made(temp_path("b.db"));
    ck_assert_uint_eq(done.documents, 99);
    ck_assert_uint_eq(done.seq, 101);
    ck_assert_int_eq(ask("b.db", "SELECT count(*) FROM doc"), 99);
    ck_assert_int_eq(ask("b.db", "SELECT max(seq) FROM change"), 101);
    ck_assert_int_eq(stat(temp_path("b.db"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    ck_assert_uint_eq((uint64_t)st.st_size, done.size_bytes);
}
END_TEST

START_TEST(it_is_one_file_that_opens_where_nothing_can_be_written)
{
    sqlite3 *db;
    char uri[1100];
    fill(10);
    made(temp_path("b.db"));
    ck_assert_int_eq(ask("b.db", "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'delete'"), 1);
    snprintf(uri, sizeof uri, "file:%s?immutable=1", temp_path("b.db"));
    ck_assert_int_eq(sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL), SQLITE_OK);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM doc"), 9);
    sqlite3_close(db);
    ck_assert_int_ne(access(temp_path("b.db-wal"), F_OK), 0);
    ck_assert_int_ne(access(temp_path("b.db-shm"), F_OK), 0);
}
END_TEST

START_TEST(the_server_opens_it)
{
    struct db_conn c;
    char path[1024];
    fill(10);
    made(temp_path("b.db"));
    snprintf(path, sizeof path, "%s", temp_path("b.db"));
    tdb_config.path = path;
    tdb_open(&c);
    struct db_op *op = tdb_put("new", "v");
    ck_assert_int_eq(tdb_burst(&c, op), DB_OK);
    ck_assert_uint_eq(op->seq, 12);
    tdb_free(op);
    db_conn_close(&c);
    tdb_is_sound();
}
END_TEST

/* Called after each step of the copy: writes, as the server would. */
static sqlite3 *busy;
static unsigned steps;
static uint64_t last_done;

static void write_meanwhile(void *arg, const char *what, uint64_t pages, uint64_t all)
{
    (void)arg, (void)all;
    if (strcmp(what, "copy") != 0)
        return;
    ck_assert_uint_gt(pages, last_done); /* it never starts over */
    last_done = pages;
    steps++;
    tdb_sql(busy, "UPDATE doc SET body = randomblob(1000) WHERE id % 7 = 0; DELETE FROM doc WHERE id % 50 = 1;"
                  "INSERT INTO doc (key, body) VALUES (hex(randomblob(8)), randomblob(9000))");
}

START_TEST(it_is_the_state_of_its_beginning_whatever_is_written_meanwhile)
{
    fill(5000);
    busy = tdb_shell();
    tdb_sql(busy, "PRAGMA wal_autocheckpoint=0");
    int64_t sum = tdb_ask(busy, "SELECT sum(seq * length(key)) FROM doc");
    watch.progress = write_meanwhile;
    made(temp_path("b.db"));
    ck_assert_uint_gt(steps, 4);
    ck_assert_uint_eq(done.documents, 4999);
    ck_assert_int_eq(ask("b.db", "SELECT sum(seq * length(key)) FROM doc"), sum);
    ck_assert_int_ne(tdb_ask(busy, "SELECT sum(seq * length(key)) FROM doc"), sum);
    sqlite3_close(busy);
    tdb_is_sound();
}
END_TEST

START_TEST(what_is_not_committed_is_not_in_it)
{
    fill(10);
    sqlite3 *db = tdb_shell();
    tdb_sql(db, "BEGIN IMMEDIATE; INSERT INTO doc (key, body) VALUES ('open', 'x')");
    made(temp_path("b.db"));
    tdb_sql(db, "COMMIT");
    sqlite3_close(db);
    ck_assert_int_eq(ask("b.db", "SELECT count(*) FROM doc WHERE key = 'open'"), 0);
}
END_TEST

START_TEST(an_empty_store)
{
    tdb_make();
    made(temp_path("b.db"));
    ck_assert_uint_eq(done.documents, 0);
    ck_assert_uint_eq(done.seq, 0);
}
END_TEST

START_TEST(a_folder_gets_a_file_with_the_date)
{
    static const char *const folders[] = {"", "/", "/."};
    char dest[1100];
    fill(3);
    snprintf(dest, sizeof dest, "%s%s", temp_path("out"), folders[_i]);
    ck_assert_int_eq(mkdir(temp_path("out"), 0700), 0);
    made(dest);
    const char *name = strrchr(done.path, '/') + 1;
    ck_assert_uint_eq(strlen(name), strlen("hanji-20261130-120000.db"));
    ck_assert_int_eq(strncmp(name, "hanji-2", 7), 0);
    ck_assert_int_eq(access(done.path, R_OK), 0);
}
END_TEST

START_TEST(an_existing_file_stays)
{
    size_t n;
    fill(3);
    temp_file("b.db", "precious", 8);
    refused(DB_REFUSED, temp_path("b.db"), false, "exists");
    char *bytes = temp_read(temp_path("b.db"), &n);
    ck_assert_mem_eq(bytes, "precious", 8);
    free(bytes);
    only("b.db hanji.db ");
}
END_TEST

START_TEST(an_existing_file_is_replaced_when_asked)
{
    fill(3);
    temp_file("b.db", "old", 3);
    ck_assert_int_eq(backup(temp_path("b.db"), true), DB_OK);
    ck_assert_int_eq(ask("b.db", "SELECT count(*) FROM doc"), 2);
}
END_TEST

/* A file that comes while the copy is made is not lost. */
static void come_between(void *arg, const char *what, uint64_t pages, uint64_t all)
{
    (void)arg, (void)all, (void)pages;
    if (strcmp(what, "verify") == 0)
        temp_file("b.db", "precious", 8);
}

START_TEST(a_file_that_comes_meanwhile_stays)
{
    fill(3);
    watch.progress = come_between;
    refused(DB_REFUSED, temp_path("b.db"), false, "exists");
    only("b.db hanji.db ");
}
END_TEST

START_TEST(no_link_is_followed)
{
    static const char *const targets[] = {"elsewhere", "hanji.db", "missing", "."};
    size_t n;
    fill(3);
    temp_file("elsewhere", "precious", 8);
    ck_assert_int_eq(symlink(targets[_i], temp_path("link")), 0);
    if (_i == 3) { /* a link to a folder is a folder */
        made(temp_path("link"));
        return;
    }
    refused(DB_REFUSED, temp_path("link"), false, "link");
    refused(DB_REFUSED, temp_path("link"), true, "link");
    char *bytes = temp_read(temp_path("elsewhere"), &n);
    ck_assert_mem_eq(bytes, "precious", 8);
    free(bytes);
    ck_assert_int_ne(access(temp_path("missing"), F_OK), 0);
    tdb_is_sound();
}
END_TEST

START_TEST(nothing_of_the_store_is_written)
{
    static const char *const names[] = {"hanji.db", "hanji.db-wal", "hanji.db-shm", "hanji.db-journal", "hanji.db.lock",
                                        "./hanji.db", "sub/../hanji.db", "link/hanji.db", "other-name"};
    fill(3);
    mkdir(temp_path("sub"), 0700);
    ck_assert_int_eq(symlink(".", temp_path("link")), 0);
    ck_assert_int_eq(link(tdb_config.path, temp_path("other-name")), 0);
    refused(DB_REFUSED, temp_path(names[_i]), true, "database itself");
    tdb_is_sound();
}
END_TEST

START_TEST(a_store_that_is_named_through_a_link)
{
    char path[1024];
    fill(3);
    ck_assert_int_eq(symlink("hanji.db", temp_path("alias.db")), 0);
    snprintf(path, sizeof path, "%s", temp_path("alias.db"));
    tdb_config.path = path;
    refused(DB_REFUSED, temp_path("hanji.db"), true, "database itself");
    refused(DB_REFUSED, temp_path("hanji.db-wal"), true, "database itself");
    made(temp_path("b.db"));
}
END_TEST

START_TEST(what_is_no_place_for_a_file)
{
    static const struct { const char *dest, *reason; } wrong[] = {
        {"nowhere/b.db", "No such file"}, {"pipe", "no file"}, {"plain/b.db", "Not a directory"},
        {"stale.db", "-wal or -journal"}, {"hot.db", "-wal or -journal"}};
    fill(3);
    temp_file("plain", "x", 1);
    temp_file("stale.db-wal", "x", 1);
    temp_file("hot.db-journal", "x", 1);
    ck_assert_int_eq(mkfifo(temp_path("pipe"), 0600), 0);
    refused(strstr(wrong[_i].dest, "/b.db") ? DB_BROKEN : DB_REFUSED, temp_path(wrong[_i].dest), true, wrong[_i].reason);
}
END_TEST

START_TEST(a_name_that_is_too_long)
{
    char dest[5000];
    fill(3);
    memset(dest, 'x', sizeof dest);
    dest[_i == 0 ? 300 : 4999] = 0;
    ck_assert_int_ne(backup(dest, false), DB_OK);
    ck_assert(tdb_error.text[0] != 0);
}
END_TEST

START_TEST(faults_are_told_and_nothing_is_made)
{
    size_t n;
    fill(50);
    temp_file("b.db", "the last good one", 17);
    sqlite3 *db = tdb_shell();
    tdb_sql(db, _i == 0 ? "UPDATE doc SET size = 1 WHERE key = 'k1'" : "DROP TRIGGER doc_insert");
    sqlite3_close(db);
    ck_assert_int_eq(backup(temp_path("b.db"), true), DB_INVALID);
    ck_assert(faults[0] != 0);
    char *bytes = temp_read(temp_path("b.db"), &n);
    ck_assert_uint_eq(n, 17);
    free(bytes);
    only("b.db hanji.db ");
}
END_TEST

START_TEST(a_damaged_page_is_not_backed_up)
{
    static unsigned char junk[3000];
    fill(200);
    sqlite3 *db = tdb_shell();
    tdb_sql(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    int64_t page = tdb_ask(db, "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_doc_1'");
    sqlite3_close(db);
    memset(junk, 0xa5, sizeof junk);
    int fd = open(tdb_config.path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(pwrite(fd, junk, sizeof junk, (page - 1) * 4096), sizeof junk);
    close(fd);
    enum db_result result = backup(temp_path("b.db"), false);
    ck_assert(result == DB_INVALID || result == DB_BROKEN);
    ck_assert(faults[0] != 0 || tdb_error.text[0] != 0);
    only("hanji.db ");
}
END_TEST

/* A new program, whose server has not upgraded the file yet. */
START_TEST(a_store_of_an_older_schema)
{
    sqlite3 *db;
    tdb_init();
    db = tdb_shell();
    tdb_sql(db, "PRAGMA application_id = 0x686e6a69");
    tdb_sql(db, schema_steps[0].sql);
    tdb_sql(db, "INSERT INTO meta (name, value) VALUES ('schema_version', 1); INSERT INTO doc (key, body) VALUES ('a', 'x')");
    sqlite3_close(db);
    made(temp_path("b.db"));
    ck_assert_int_eq(ask("b.db", "SELECT value FROM meta WHERE name = 'schema_version'"), 1);
}
END_TEST

/* The search index can be made again; a fault in it is no reason to be without a backup. */
START_TEST(a_search_index_that_is_wrong)
{
    fill(5);
    sqlite3 *db = tdb_shell();
    tdb_sql(db, "UPDATE meta SET value = 1 WHERE name = 'search_damaged';"
                "INSERT INTO search_item (key, seq) VALUES ('k1', 1)");
    sqlite3_close(db);
    made(temp_path("b.db"));
    ck_assert_int_eq(ask("b.db", "SELECT count(*) FROM doc"), 4);
}
END_TEST

START_TEST(a_source_that_is_none)
{
    sqlite3 *db;
    tdb_init();
    if (_i == 1)
        temp_file("hanji.db", "this is a letter", 16);
    if (_i == 2) {
        db = tdb_shell();
        tdb_sql(db, "CREATE TABLE song (title)");
        sqlite3_close(db);
    }
    if (_i == 3) {
        struct db_conn c;
        tdb_open(&c);
        db_conn_close(&c);
        db = tdb_shell();
        tdb_sql(db, "UPDATE meta SET value = 9999 WHERE name = 'min_program'");
        sqlite3_close(db);
    }
    ck_assert_int_eq(backup(temp_path("b.db"), false), _i == 0 ? DB_NONE : DB_REFUSED);
    ck_assert(tdb_error.text[0] != 0);
    ck_assert_int_ne(access(temp_path("b.db"), F_OK), 0);
    ck_assert_int_eq(watch.unfinished, 0);
}
END_TEST

/* ---- a disk that is full, or fails ----------------------------------------------------------- */

static atomic_uint writes_left = UINT_MAX;
static atomic_uint syncs_left = UINT_MAX;
static ssize_t (*real_pwrite)(int fd, const void *p, size_t n, off_t at);

static ssize_t pwrite_with_room(int fd, const void *p, size_t n, off_t at)
{
    if (writes_left != UINT_MAX && (writes_left == 0 || --writes_left == 0)) {
        errno = ENOSPC;
        return -1;
    }
    return real_pwrite(fd, p, n, at);
}

int fdatasync(int fd)
{
    (void)fd;
    if (syncs_left != UINT_MAX && (syncs_left == 0 || --syncs_left == 0)) {
        errno = EIO;
        return -1;
    }
    return 0;
}

int fsync(int fd)
{
    return fdatasync(fd);
}

static void take_writes(void)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    static const char *const names[] = {"pwrite", "pwrite64"};
    real_pwrite = pwrite;
    for (size_t i = 0; i < COUNT(names); i++)
        if (vfs->xGetSystemCall(vfs, names[i]) != NULL)
            ck_assert_int_eq(vfs->xSetSystemCall(vfs, names[i], (sqlite3_syscall_ptr)pwrite_with_room), SQLITE_OK);
}

START_TEST(a_full_disk_leaves_nothing)
{
    static const unsigned after[] = {1, 2, 100, 500};
    fill(3000);
    busy = tdb_shell();
    tdb_ask(busy, "SELECT count(*) FROM doc"); /* the log's index is there already */
    take_writes();
    writes_left = after[_i];
    ck_assert_int_eq(backup(temp_path("b.db"), false), DB_FULL);
    ck_assert(tdb_error.text[0] != 0);
    writes_left = UINT_MAX;
    only("hanji.db ");
    made(temp_path("b.db"));
    sqlite3_close(busy);
}
END_TEST

/* Whichever sync fails: no file that looks like a backup, unless only the folder's own sync is missing. */
START_TEST(a_sync_that_fails_leaves_nothing)
{
    fill(1500);
    unsigned n = 1;
    for (;; n++) {
        syncs_left = n;
        enum db_result result = backup(temp_path("b.db"), false);
        if (syncs_left > 0) {
            ck_assert_int_eq(result, DB_OK);
            break;
        }
        ck_assert_int_eq(result, DB_BROKEN);
        ck_assert(tdb_error.text[0] != 0);
        unlink(temp_path("b.db"));
        syncs_left = UINT_MAX;
        only("hanji.db ");
    }
    ck_assert_uint_ge(n, 3);
}
END_TEST

/* Whoever ends the process can remove the unfinished file. */
static void unfinished_is_named(void *arg, const char *what, uint64_t pages, uint64_t all)
{
    struct stat st;
    (void)arg, (void)what, (void)pages, (void)all;
    ck_assert_int_eq(watch.unfinished, 1);
    ck_assert_int_eq(stat(watch.temp, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    steps++;
}

START_TEST(the_unfinished_file_is_named_while_it_is_there)
{
    fill(100);
    watch.progress = unfinished_is_named;
    made(temp_path("b.db"));
    ck_assert_int_eq(watch.unfinished, 0);
    ck_assert_uint_ge(steps, 2);
    only("b.db hanji.db ");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("backup");
    TCase *t = run_case(s, "backup");
    temp_use(t);
    tcase_add_test(t, it_holds_what_the_store_holds);
    tcase_add_test(t, it_is_one_file_that_opens_where_nothing_can_be_written);
    tcase_add_test(t, the_server_opens_it);
    tcase_add_test(t, it_is_the_state_of_its_beginning_whatever_is_written_meanwhile);
    tcase_add_test(t, what_is_not_committed_is_not_in_it);
    tcase_add_test(t, an_empty_store);
    tcase_add_loop_test(t, a_folder_gets_a_file_with_the_date, 0, 3);
    tcase_add_test(t, an_existing_file_stays);
    tcase_add_test(t, an_existing_file_is_replaced_when_asked);
    tcase_add_test(t, a_file_that_comes_meanwhile_stays);
    tcase_add_loop_test(t, no_link_is_followed, 0, 4);
    tcase_add_loop_test(t, nothing_of_the_store_is_written, 0, 9);
    tcase_add_test(t, a_store_that_is_named_through_a_link);
    tcase_add_loop_test(t, what_is_no_place_for_a_file, 0, 5);
    tcase_add_loop_test(t, a_name_that_is_too_long, 0, 2);
    tcase_add_loop_test(t, faults_are_told_and_nothing_is_made, 0, 2);
    tcase_add_test(t, a_damaged_page_is_not_backed_up);
    tcase_add_test(t, a_store_of_an_older_schema);
    tcase_add_test(t, a_search_index_that_is_wrong);
    tcase_add_loop_test(t, a_source_that_is_none, 0, 4);
    tcase_add_loop_test(t, a_full_disk_leaves_nothing, 0, 4);
    tcase_add_test(t, a_sync_that_fails_leaves_nothing);
    tcase_add_test(t, the_unfinished_file_is_named_while_it_is_there);
    return run_suite(s);
}
