/* db/restore: a backup takes the database's place whole, or nothing is changed; numbers are never given twice. */
#include "db/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/backup.h"
#include "db/schema.h"
#include "tests/unit/tdb.h"

static const int64_t STEP = INT64_C(1) << 40;

static struct db_watch watch;
static struct db_restore done;
static char faults[2048];

static void found(void *arg, bool fault, const char *finding)
{
    size_t at = strlen(faults);
    (void)arg;
    if (fault)
        snprintf(faults + at, sizeof faults - at, "%s\n", finding);
}

static enum db_result restore(const char *source)
{
    faults[0] = tdb_error.text[0] = 0;
    done = (struct db_restore){.source = source, .each = found, .watch = &watch};
    return db_restore(&tdb_config, &done, &tdb_error);
}

static void restored(const char *source)
{
    enum db_result result = restore(source);
    ck_assert_msg(result == DB_OK, "%d: %s %s", (int)result, tdb_error.text, faults);
}

static void backup(const char *name)
{
    struct db_backup b = {.dest = temp_path(name), .each = found, .watch = &watch};
    enum db_result result = db_backup(&tdb_config, &b, &tdb_error);
    ck_assert_msg(result == DB_OK, "%d: %s", (int)result, tdb_error.text);
}

/* SQL in the database; what it writes stays in the log. */
static void sql(const char *text)
{
    struct db_conn c;
    tdb_open(&c);
    sqlite3_db_config(c.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    tdb_sql(c.db, text);
    db_conn_close(&c);
}

/* SQL in another file of the folder. */
static void sql_in(const char *name, const char *text)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(temp_path(name), &db), SQLITE_OK);
    tdb_sql(db, text);
    sqlite3_close(db);
}

static int64_t ask(const char *path, const char *text)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    int64_t v = tdb_ask(db, text);
    sqlite3_close(db);
    return v;
}

/* A store with a backup, b.db, and with writes since, which are in the log only. */
static void fill(void)
{
    tdb_make();
    sql("INSERT INTO doc (key, body) VALUES ('a', 'one'), ('b', 'two'), ('c', 'three')");
    sql("UPDATE doc SET body = 'four' WHERE key = 'a'; DELETE FROM doc WHERE key = 'c'");
    backup("b.db");
    sql("INSERT INTO doc (key, body) VALUES ('later', 'x'); UPDATE doc SET body = 'five' WHERE key = 'a'");
}

static bool holds_backup(void)
{
    return tdb_ask_file("SELECT count(*) FROM doc WHERE key = 'a' AND body = 'four'") == 1 &&
           tdb_ask_file("SELECT count(*) FROM doc") == 2;
}

static bool holds_old(void)
{
    return tdb_ask_file("SELECT count(*) FROM doc WHERE key = 'a' AND body = 'five'") == 1 &&
           tdb_ask_file("SELECT count(*) FROM doc") == 3;
}

/* Refused with a reason; the database is as it was and works, and nothing is left over. */
static void refused(enum db_result expected, const char *source, const char *reason)
{
    enum db_result result = restore(source);
    ck_assert_msg(result == expected, "%d: %s", (int)result, tdb_error.text);
    const char *said = result == DB_INVALID ? faults : tdb_error.text;
    ck_assert_msg(strstr(said, reason) != NULL, "\"%s\" does not say \"%s\"", said, reason);
    ck_assert_int_eq(watch.unfinished, 0);
    ck_assert(holds_old());
    tdb_is_sound();
    ck_assert_int_ne(access(temp_path(".hanji.db.restoring"), F_OK), 0);
    glob_t kept;
    ck_assert_int_eq(glob(temp_path("*before-restore*"), 0, NULL, &kept), GLOB_NOMATCH);
}

START_TEST(it_takes_the_databases_place)
{
    fill();
    restored(temp_path("b.db"));
    ck_assert_uint_eq(done.documents, 2);
    ck_assert_uint_eq(done.backup_seq, 5);
    ck_assert(holds_backup());
    tdb_is_sound();
}
END_TEST

START_TEST(documents_keep_their_numbers_and_new_ones_are_beyond_all)
{
    struct db_conn c;
    fill();
    restored(temp_path("b.db"));
    ck_assert_int_eq(done.horizon, STEP);
    ck_assert_int_eq(tdb_ask_file("SELECT seq FROM doc WHERE key = 'a'"), 4);
    ck_assert_int_eq(tdb_ask_file("SELECT value FROM meta WHERE name = 'horizon'"), STEP);
    tdb_open(&c);
    struct db_op *op = tdb_put("a", "six");
    ck_assert_int_eq(tdb_burst(&c, op), DB_OK);
    ck_assert_int_eq(op->seq, STEP + 1);
    tdb_free(op);
    db_conn_close(&c);
    tdb_is_sound();
}
END_TEST

START_TEST(rows_from_outside_go_on_beyond_as_well)
{
    fill();
    restored(temp_path("b.db"));
    sql("INSERT INTO doc (key, body) VALUES ('n', 'x'); DELETE FROM doc WHERE key = 'b'");
    ck_assert_int_eq(tdb_ask_file("SELECT seq FROM doc WHERE key = 'n'"), STEP + 1);
    ck_assert_int_eq(tdb_ask_file("SELECT seq FROM tombstone WHERE key = 'b'"), STEP + 2);
    tdb_is_sound();
}
END_TEST

START_TEST(the_old_stores_numbers_count)
{
    fill();
    sql("UPDATE sqlite_sequence SET seq = 7 * 1099511627776 + 5 WHERE name = 'change'");
    restored(temp_path("b.db"));
    ck_assert_int_eq(done.horizon, 8 * STEP);
}
END_TEST

START_TEST(again_and_again)
{
    fill();
    for (int i = 1; i <= 5; i++) {
        restored(temp_path("b.db"));
        ck_assert_int_eq(done.horizon, i * STEP);
        tdb_is_sound();
    }
}
END_TEST

START_TEST(numbers_that_run_out)
{
    fill();
    sql_in("b.db", "UPDATE sqlite_sequence SET seq = (1 << 53) - 1 WHERE name = 'change'");
    refused(DB_REFUSED, temp_path("b.db"), "no sequence numbers");
}
END_TEST

/* Pruning looks at every number once: the gap must not be looked at. */
START_TEST(the_gap_is_not_walked_through)
{
    struct db_conn c;
    uint64_t left = 1;
    fill();
    restored(temp_path("b.db"));
    tdb_open(&c);
    ck_assert_int_eq(db_burst_prune(&c, 4096, &left), DB_OK);
    ck_assert_uint_eq(left, 0);
    db_conn_close(&c);
    tdb_is_sound();
}
END_TEST

START_TEST(the_old_store_is_kept_with_what_was_in_its_log)
{
    fill();
    restored(temp_path("b.db"));
    ck_assert_ptr_nonnull(strstr(done.kept, "hanji.db.before-restore-2"));
    ck_assert(!done.unreadable);
    ck_assert_int_eq(ask(done.kept, "SELECT count(*) FROM doc"), 3);
    ck_assert_int_eq(ask(done.kept, "SELECT count(*) FROM doc WHERE body = 'five'"), 1);
    ck_assert_int_eq(ask(done.kept, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
}
END_TEST

START_TEST(no_log_of_the_old_one_is_left)
{
    struct stat st;
    fill();
    ck_assert_int_eq(stat(temp_path("hanji.db-wal"), &st), 0);
    ck_assert_int_gt(st.st_size, 0);
    restored(temp_path("b.db"));
    ck_assert_int_ne(access(temp_path("hanji.db-wal"), F_OK), 0);
    ck_assert_int_ne(access(temp_path("hanji.db-shm"), F_OK), 0);
}
END_TEST

/* Whoever logged out since the backup stays logged out. */
START_TEST(people_log_in_again)
{
    fill();
    sql_in("b.db", "INSERT INTO user (name, hash) VALUES ('ann', 'x');"
                   "INSERT INTO session (hash, user, created, seen, expires) VALUES (zeroblob(32), 1, 1, 1, 9999999999)");
    restored(temp_path("b.db"));
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM user"), 1);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM session"), 0);
    tdb_is_sound();
}
END_TEST

/* What was sent since the backup would be sent again, under numbers that are taken. */
START_TEST(lines_wait_for_a_person)
{
    fill();
    sql_in("b.db", "INSERT INTO line (id, name, seq, hash, due, waiting, created, url)"
                   " VALUES (1, 'l', 1, zeroblob(32), 5, 1, 1, 'u'), (2, 'm', 0, NULL, NULL, 0, 1, 'u');"
                   "UPDATE line SET state = 'disabled', reason = 'gone' WHERE name = 'm';"
                   "INSERT INTO outbox_body VALUES (1, 1, 'x');"
                   "INSERT INTO outbox (n, id, line, seq, due, sealed, size, body, created, type, hash)"
                   " VALUES ((1 << 40) + 1, 'a', 1, 1, 5, 0, 1, 1, 1, 't', zeroblob(32))");
    restored(temp_path("b.db"));
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM line WHERE name = 'l' AND state = 'paused'"
                                  " AND reason = 'restored' AND due IS NULL AND waiting = 1"), 1);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM line WHERE state = 'disabled' AND reason = 'gone'"), 1);
    tdb_is_sound();
}
END_TEST

START_TEST(without_a_database)
{
    struct stat st;
    fill();
    unlink(temp_path("hanji.db-wal"));
    unlink(temp_path("hanji.db-shm"));
    unlink(temp_path("hanji.db"));
    restored(temp_path("b.db"));
    ck_assert_str_eq(done.kept, "");
    ck_assert_int_eq(done.horizon, STEP);
    ck_assert(holds_backup());
    ck_assert_int_eq(stat(tdb_config.path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0640);
}
END_TEST

START_TEST(the_mode_stays)
{
    struct stat st;
    fill();
    ck_assert_int_eq(chmod(tdb_config.path, 0600), 0);
    restored(temp_path("b.db"));
    ck_assert_int_eq(stat(tdb_config.path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
}
END_TEST

START_TEST(a_database_that_is_named_through_a_link)
{
    char path[1024];
    struct stat st;
    fill();
    ck_assert_int_eq(symlink("hanji.db", temp_path("alias.db")), 0);
    snprintf(path, sizeof path, "%s", temp_path("alias.db"));
    tdb_config.path = path;
    restored(temp_path("b.db"));
    ck_assert_int_eq(lstat(path, &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    ck_assert(holds_backup());
}
END_TEST

START_TEST(the_backup_is_not_changed)
{
    size_t before_n, after_n;
    fill();
    char *before = temp_read(temp_path("b.db"), &before_n);
    restored(temp_path("b.db"));
    char *after = temp_read(temp_path("b.db"), &after_n);
    ck_assert_uint_eq(before_n, after_n);
    ck_assert_mem_eq(before, after, before_n);
    free(before);
    free(after);
}
END_TEST

START_TEST(copies_made_by_other_means)
{
    char text[1200];
    fill();
    snprintf(text, sizeof text, _i == 0 ? "VACUUM INTO '%s'" : "SELECT 1; -- %s", temp_path("v.db"));
    sql(text);
    if (_i == 1) { /* a plain copy of the file and its log */
        snprintf(text, sizeof text, "cd '%s' && cp hanji.db v.db && cp hanji.db-wal v.db-wal", temp_path(""));
        ck_assert_int_eq(system(text), 0);
    }
    restored(temp_path("v.db"));
    ck_assert(holds_old());
    tdb_is_sound();
}
END_TEST

START_TEST(an_older_schema_is_upgraded)
{
    fill();
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(temp_path("first.db"), &db), SQLITE_OK);
    tdb_sql(db, "PRAGMA application_id = 0x686e6a69");
    tdb_sql(db, schema_steps[0].sql);
    tdb_sql(db, "INSERT INTO meta (name, value) VALUES ('schema_version', 1);"
                "INSERT INTO doc (key, body) VALUES ('a', 'four'), ('b', 'x')");
    sqlite3_close(db);
    restored(temp_path("first.db"));
    ck_assert(holds_backup());
    ck_assert_int_eq(tdb_ask_file("SELECT value FROM meta WHERE name = 'schema_version'"), (int64_t)schema_step_count);
    tdb_is_sound();
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------------- */

START_TEST(a_truncated_file)
{
    static const int sizes[] = {0, 1, 15, 16, 99, 100, 511, 512, 4095, 4096, 4097, 8192, 20000, -4096, -1};
    struct stat st;
    fill();
    ck_assert_int_eq(stat(temp_path("b.db"), &st), 0);
    ck_assert_int_eq(truncate(temp_path("b.db"), sizes[_i] >= 0 ? sizes[_i] : st.st_size + sizes[_i]), 0);
    refused(DB_REFUSED, temp_path("b.db"), sizes[_i] < 512 && sizes[_i] >= 0 ? "no SQLite file" : "truncated");
}
END_TEST

START_TEST(what_is_no_backup)
{
    fill();
    temp_file("letter", "this is a letter, and it is longer than the header of a database would be, which has one"
                        " hundred bytes", 102);
    ck_assert_int_eq(mkfifo(temp_path("pipe"), 0600), 0);
    sql_in("song.db", "CREATE TABLE doc (a); CREATE TABLE meta (b)");
    refused(DB_REFUSED, temp_path("letter"), "no SQLite file");
    refused(DB_REFUSED, temp_path("pipe"), "no regular file");
    refused(DB_REFUSED, temp_path(""), "no regular file");
    refused(DB_REFUSED, temp_path("song.db"), "another program");
    refused(DB_REFUSED, temp_path("missing"), "No such file");
    refused(DB_REFUSED, tdb_config.path, "the database itself");
}
END_TEST

START_TEST(a_newer_file)
{
    fill();
    sql_in("b.db", _i == 0 ? "UPDATE meta SET value = 9999 WHERE name = 'min_program'"
                           : "UPDATE meta SET value = 9999 WHERE name = 'schema_version'");
    refused(DB_REFUSED, temp_path("b.db"), "9999");
}
END_TEST

static const char *const damages[] = {
    "UPDATE doc SET size = 99 WHERE key = 'a'", "DELETE FROM change WHERE key = 'a'", "DROP TRIGGER doc_insert",
    "UPDATE meta SET value = 99 WHERE name = 'documents'", "UPDATE doc SET seq = 1", "DROP TABLE tombstone",
    "DELETE FROM tombstone", "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = 'CREATE TRIGGER doc_delete"
    " AFTER DELETE ON doc BEGIN SELECT 1; END' WHERE name = 'doc_delete'",
};

START_TEST(a_backup_with_faults)
{
    fill();
    sql_in("b.db", damages[_i]);
    enum db_result result = restore(temp_path("b.db"));
    ck_assert(result == DB_INVALID || result == DB_BROKEN);
    ck_assert(faults[0] != 0 || tdb_error.text[0] != 0);
    ck_assert(holds_old());
    tdb_is_sound();
}
END_TEST

/* One byte of each page is turned over in turn. Either that does not matter, or it is refused. */
START_TEST(a_damaged_backup)
{
    struct stat st;
    unsigned char byte;
    fill();
    ck_assert_int_eq(stat(temp_path("b.db"), &st), 0);
    off_t at = (off_t)_i * 4096 + (_i == 0 ? 24 : 3);
    int fd = open(temp_path("b.db"), O_RDWR | O_CLOEXEC);
    if (at >= st.st_size || pread(fd, &byte, 1, at) != 1)
        byte = 0, at = 4096;
    byte ^= 0x5a;
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    close(fd);
    if (restore(temp_path("b.db")) == DB_OK)
        ck_assert(holds_backup());
    else
        ck_assert(holds_old());
    tdb_is_sound();
}
END_TEST

START_TEST(somebody_has_the_database_open)
{
    int pipes[2];
    char byte = 0;
    fill();
    ck_assert_int_eq(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        sqlite3 *db = tdb_shell();
        tdb_ask(db, "SELECT count(*) FROM doc");
        if (write(pipes[1], "x", 1) == 1)
            pause();
        _exit(0);
    }
    ck_assert_int_eq(read(pipes[0], &byte, 1), 1);
    char want[40];
    snprintf(want, sizeof want, "process %d ", (int)pid);
    refused(DB_REFUSED, temp_path("b.db"), want);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    restored(temp_path("b.db"));
}
END_TEST

/* ---- old databases that are not as they should be -------------------------------------------- */

START_TEST(a_database_that_cannot_be_read_is_kept_with_its_log)
{
    static unsigned char junk[8192];
    char wal[PATH_MAX + 8];
    size_t n;
    fill();
    memset(junk, 0xa5, sizeof junk);
    int fd = open(tdb_config.path, O_WRONLY | O_CLOEXEC);
    if (_i == 0)
        ck_assert_int_eq(pwrite(fd, junk, sizeof junk, 0), sizeof junk);
    else
        ck_assert_int_eq(ftruncate(fd, 0), 0);
    close(fd);
    temp_file("hanji.db-wal", "the log", 7);
    restored(temp_path("b.db"));
    ck_assert(done.unreadable);
    ck_assert(holds_backup());
    tdb_is_sound();
    ck_assert_int_eq(done.horizon, STEP);
    snprintf(wal, sizeof wal, "%s-wal", done.kept);
    if (_i == 0) {
        char *bytes = temp_read(wal, &n);
        ck_assert_mem_eq(bytes, "the log", 7);
        free(bytes);
    }
}
END_TEST

START_TEST(somebody_elses_database_stays)
{
    fill();
    unlink(temp_path("hanji.db-wal"));
    unlink(temp_path("hanji.db-shm"));
    unlink(temp_path("hanji.db"));
    sql_in("hanji.db", "CREATE TABLE song (title)");
    ck_assert_int_eq(restore(temp_path("b.db")), DB_REFUSED);
    ck_assert_ptr_nonnull(strstr(tdb_error.text, "by hand"));
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM song"), 0);
}
END_TEST

START_TEST(a_folder_that_is_not_there)
{
    fill();
    tdb_config.path = "/nonexistent/folder/hanji.db";
    ck_assert_int_eq(restore(temp_path("b.db")), DB_BROKEN);
    ck_assert_ptr_nonnull(strstr(tdb_error.text, "/nonexistent/folder"));
}
END_TEST

/* ---- crashes --------------------------------------------------------------------------------- */

static unsigned crash_at; /* the call that is not made, 0: none */
static unsigned calls;
static bool fail_instead;

static bool fails(void)
{
    if (++calls != crash_at)
        return false;
    if (!fail_instead)
        _exit(77);
    errno = EIO;
    return true;
}

#define CALL(...) (fails() ? -1 : (int)syscall(__VA_ARGS__))

int fsync(int fd) { (void)fd; return fails() ? -1 : 0; }
int fdatasync(int fd) { (void)fd; return fails() ? -1 : 0; }
int link(const char *a, const char *b) { return CALL(SYS_linkat, AT_FDCWD, a, AT_FDCWD, b, 0); }
int linkat(int d, const char *a, int e, const char *b, int f) { return CALL(SYS_linkat, d, a, e, b, f); }
int unlink(const char *a) { return CALL(SYS_unlinkat, AT_FDCWD, a, 0); }
int unlinkat(int d, const char *a, int f) { return CALL(SYS_unlinkat, d, a, f); }
int renameat(int d, const char *a, int e, const char *b) { return CALL(SYS_renameat2, d, a, e, b, 0); }
int renameat2(int d, const char *a, int e, const char *b, unsigned f) { return CALL(SYS_renameat2, d, a, e, b, f); }
int fchmod(int fd, mode_t mode) { return CALL(SYS_fchmod, fd, mode); }

/* At every step that changes names or syncs: the old store or the new one is there, whole, and the next try works. */
START_TEST(a_crash_at_any_moment)
{
    bool finished = false, old = true;
    unsigned at = 1;
    for (; !finished; at++) {
        char command[1200];
        int status;
        snprintf(command, sizeof command, "rm -rf '%s'/* '%s'/.h*", temp_path(""), temp_path(""));
        ck_assert_int_eq(system(command), 0);
        pid_t filler = fork(); /* SQLite is started once a process */
        if (filler == 0) {
            fill();
            _exit(0);
        }
        ck_assert_int_eq(waitpid(filler, &status, 0), filler);
        ck_assert_int_eq(status, 0);
        pid_t pid = fork();
        if (pid == 0) {
            tdb_init();
            crash_at = at;
            calls = 0;
            _exit(restore(temp_path("b.db")) == DB_OK ? 0 : 1);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 0));
        finished = WEXITSTATUS(status) == 0;
        pid_t judge = fork();
        if (judge == 0) {
            tdb_init();
            bool is_old = holds_old();
            if (!is_old && !holds_backup())
                _exit(1);
            tdb_is_sound();
            if (!is_old && tdb_ask_file("SELECT seq FROM sqlite_sequence WHERE name = 'change'") != STEP)
                _exit(4);
            restored(temp_path("b.db"));
            _exit(holds_backup() ? (is_old ? 2 : 3) : 1);
        }
        ck_assert_int_eq(waitpid(judge, &status, 0), judge);
        ck_assert(WIFEXITED(status));
        ck_assert_msg(WEXITSTATUS(status) == 2 || WEXITSTATUS(status) == 3, "call %u: %d", at, WEXITSTATUS(status));
        ck_assert_msg(old || WEXITSTATUS(status) == 3, "call %u: new, then old again", at);
        old = WEXITSTATUS(status) == 2;
    }
    ck_assert(!old);
    ck_assert_uint_ge(at, 10);
}
END_TEST

/* The same calls fail instead: an error that is told, or one that does not matter. */
START_TEST(a_failure_at_any_moment)
{
    fill();
    fail_instead = true;
    for (unsigned at = 1;; at++) {
        crash_at = at;
        calls = 0;
        enum db_result result = restore(temp_path("b.db"));
        crash_at = 0;
        if (result != DB_OK)
            ck_assert(tdb_error.text[0] != 0);
        ck_assert(holds_old() || holds_backup());
        tdb_is_sound();
        if (calls < at)
            break;
        ck_assert_uint_lt(at, 200);
    }
    ck_assert(holds_backup());
}
END_TEST

int main(void)
{
    Suite *s = suite_create("restore");
    TCase *t = run_case(s, "restore");
    temp_use(t);
    tcase_add_test(t, it_takes_the_databases_place);
    tcase_add_test(t, documents_keep_their_numbers_and_new_ones_are_beyond_all);
    tcase_add_test(t, rows_from_outside_go_on_beyond_as_well);
    tcase_add_test(t, the_old_stores_numbers_count);
    tcase_add_test(t, again_and_again);
    tcase_add_test(t, numbers_that_run_out);
    tcase_add_test(t, the_gap_is_not_walked_through);
    tcase_add_test(t, the_old_store_is_kept_with_what_was_in_its_log);
    tcase_add_test(t, no_log_of_the_old_one_is_left);
    tcase_add_test(t, people_log_in_again);
    tcase_add_test(t, lines_wait_for_a_person);
    tcase_add_test(t, without_a_database);
    tcase_add_test(t, the_mode_stays);
    tcase_add_test(t, a_database_that_is_named_through_a_link);
    tcase_add_test(t, the_backup_is_not_changed);
    tcase_add_loop_test(t, copies_made_by_other_means, 0, 2);
    tcase_add_test(t, an_older_schema_is_upgraded);
    tcase_add_loop_test(t, a_truncated_file, 0, 15);
    tcase_add_test(t, what_is_no_backup);
    tcase_add_loop_test(t, a_newer_file, 0, 2);
    tcase_add_loop_test(t, a_backup_with_faults, 0, COUNT(damages));
    tcase_add_loop_test(t, a_damaged_backup, 0, 16);
    tcase_add_test(t, somebody_has_the_database_open);
    tcase_add_loop_test(t, a_database_that_cannot_be_read_is_kept_with_its_log, 0, 2);
    tcase_add_test(t, somebody_elses_database_stays);
    tcase_add_test(t, a_folder_that_is_not_there);
    tcase_add_test(t, a_crash_at_any_moment);
    tcase_add_test(t, a_failure_at_any_moment);
    return run_suite(s);
}
