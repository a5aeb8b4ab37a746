/* db/blobs: files by content; served only while they are what was written; never more than told; nothing of others touched. */
#include "db/blobs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/temp.h"

static struct db_blobs *blobs;
static struct db_error error;
static int64_t now_s;

static void open_blobs(uint64_t max_bytes)
{
    blobs = db_blobs_open(temp_path("blobs"), -1, max_bytes, &error);
    ck_assert_msg(blobs != NULL, "%s", error.text);
    now_s = time(NULL);
}

static void open_large(void)
{
    open_blobs(1 << 30);
}

static void close_blobs(void)
{
    db_blobs_close(blobs);
}

/* A name as a digest gives it: 64 hex digits, told apart by n. */
static const char *name_of(unsigned n)
{
    static char names[8][DB_BLOB_NAME_LEN + 1];
    static unsigned next;
    char *name = names[next++ % 8];
    snprintf(name, sizeof names[0], "%064x", n);
    return name;
}

static const char *path_of(const char *name)
{
    static char paths[8][1100];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", temp_path("blobs"), name);
    return path;
}

static struct db_blob_of of(unsigned n, uint64_t bytes)
{
    return (struct db_blob_of){.seq = n, .id = n, .bytes = bytes};
}

/* Makes the file of document n; true when it was kept. */
static bool make(unsigned n, size_t bytes)
{
    static char text[1 << 20];
    struct db_blob_file f;
    ck_assert(db_blobs_create(blobs, &f));
    memset(text, (int)('a' + n % 26), bytes);
    ck_assert_int_eq(write(f.fd, text, bytes), bytes);
    bool kept = db_blobs_keep(blobs, &f, of(n, bytes), name_of(n));
    ck_assert_int_eq(close(f.fd), 0);
    return kept;
}

static enum db_blob_state find(unsigned n, uint64_t bytes)
{
    char name[DB_BLOB_NAME_LEN + 1] = "";
    enum db_blob_state state = db_blobs_find(blobs, of(n, bytes), now_s, name);
    if (state == DB_BLOB_READY)
        ck_assert_str_eq(name, name_of(n));
    return state;
}

static bool there(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

/* Makes a file look as if it was used and written so long ago. */
static void age(const char *name, int seconds)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path_of(name), times, AT_SYMLINK_NOFOLLOW), 0);
}

/* ---- the folder ------------------------------------------------------------------------------ */

START_TEST(it_is_made_for_its_group_only)
{
    struct stat st;
    mode_t old = umask(077);
    open_large();
    umask(old);
    ck_assert_int_eq(stat(temp_path("blobs"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 02750);
    ck_assert(db_blobs_folder(blobs)[0] == '/');
    close_blobs();
}
END_TEST

START_TEST(one_that_is_there_stays_as_it_is)
{
    struct stat st;
    ck_assert_int_eq(mkdir(temp_path("blobs"), 0700), 0);
    open_large();
    ck_assert_int_eq(stat(temp_path("blobs"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0700);
    close_blobs();
}
END_TEST

START_TEST(no_folder_can_be_had)
{
    temp_file("file", "x", 1);
    ck_assert_int_eq(symlink("nowhere", temp_path("dangling")), 0);
    static const char *const wrong[] = {"file", "file/below", "not/there", "dangling"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        error.text[0] = 0;
        ck_assert_ptr_null(db_blobs_open(temp_path(wrong[i]), -1, 1 << 20, &error));
        ck_assert_ptr_nonnull(strstr(error.text, wrong[i]));
    }
    ck_assert_ptr_null(db_blobs_open("", -1, 1 << 20, &error));
    db_blobs_close(NULL);
}
END_TEST

START_TEST(who_can_read_it)
{
    static const struct {
        mode_t mode;
        const char *doubt;
    } modes[] = {{02750, NULL}, {0750, NULL}, {0700, NULL}, {02755, "chmod o="}, {02751, "chmod o="}, {01777, "chmod o="}};
    open_large();
    for (size_t i = 0; i < COUNT(modes); i++) {
        ck_assert_int_eq(chmod(temp_path("blobs"), modes[i].mode), 0);
        const char *doubt = db_blobs_doubt(blobs, -1);
        ck_assert_int_eq(doubt == NULL, modes[i].doubt == NULL);
        if (doubt != NULL)
            ck_assert_ptr_nonnull(strstr(doubt, modes[i].doubt));
    }
    chmod(temp_path("blobs"), 02750);
    ck_assert_ptr_null(db_blobs_doubt(blobs, getegid()));
    ck_assert_ptr_nonnull(strstr(db_blobs_doubt(blobs, (int64_t)getegid() + 1), "socket_group"));
    close_blobs();
}
END_TEST

/* What a crash left goes; what is young may be another process's; what is not ours is left alone. */
START_TEST(what_a_crash_left)
{
    static const char *const others[] = {"readme", ".hidden", "new-1", "0000", ".newer", ".new-", ".new-1",
                                         ".new-1-", ".new--1", ".new-1-x", ".new-york-photos", ".new-1-2-3"};
    open_large();
    close_blobs();
    for (size_t i = 0; i < COUNT(others); i++) {
        temp_file("x", "x", 1);
        ck_assert_int_eq(rename(temp_path("x"), path_of(others[i])), 0);
        age(others[i], 100000);
    }
    temp_file("old", "x", 1);
    temp_file("young", "x", 1);
    ck_assert_int_eq(rename(temp_path("old"), path_of(".new-1-0")), 0);
    ck_assert_int_eq(rename(temp_path("young"), path_of(".new-2-0")), 0);
    age(".new-1-0", 700);
    open_blobs(10); /* so that it is looked through when something is made, too */
    ck_assert(!there(".new-1-0"));
    ck_assert(there(".new-2-0"));
    ck_assert(!make(1, 100));
    for (size_t i = 0; i < COUNT(others); i++)
        ck_assert_msg(there(others[i]), "%s", others[i]);
    ck_assert(there(".new-2-0"));
    close_blobs();
}
END_TEST

/* ---- a file ---------------------------------------------------------------------------------- */

START_TEST(unseen_seen_ready)
{
    struct stat st;
    ck_assert_int_eq(find(1, 100), DB_BLOB_UNSEEN);
    ck_assert_int_eq(find(1, 100), DB_BLOB_SEEN);
    ck_assert(make(1, 100));
    ck_assert_int_eq(find(1, 100), DB_BLOB_READY);
    ck_assert_int_eq(find(2, 100), DB_BLOB_UNSEEN);
    ck_assert_int_eq(stat(path_of(name_of(1)), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0640);
    int fd = db_blobs_open_file(blobs, name_of(1));
    ck_assert_int_ge(fd, 0);
    close(fd);
}
END_TEST

/* Somebody wrote the same number into another row, or the size is another. */
START_TEST(another_document_with_the_same_number)
{
    char name[DB_BLOB_NAME_LEN + 1];
    ck_assert(make(1, 100));
    ck_assert_int_ne(db_blobs_find(blobs, (struct db_blob_of){1, 2, 100}, now_s, name), DB_BLOB_READY);
    ck_assert(make(1, 100));
    ck_assert_int_ne(find(1, 101), DB_BLOB_READY);
}
END_TEST

static void cut_short(void)
{
    ck_assert_int_eq(truncate(path_of(name_of(1)), 99), 0);
}
static void grown(void)
{
    ck_assert_int_eq(truncate(path_of(name_of(1)), 101), 0);
}
static void written_in_place(void)
{
    usleep(20000); /* a clock tick of the file system */
    int fd = open(path_of(name_of(1)), O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(write(fd, "X", 1), 1);
    close(fd);
}
static void removed(void)
{
    ck_assert_int_eq(unlink(path_of(name_of(1))), 0);
}
static void another_file(void)
{
    char text[100] = "other";
    temp_file("other", text, sizeof text);
    ck_assert_int_eq(rename(temp_path("other"), path_of(name_of(1))), 0);
}
static void a_link(void)
{
    ck_assert_int_eq(rename(path_of(name_of(1)), temp_path("moved")), 0);
    ck_assert_int_eq(symlink(temp_path("moved"), path_of(name_of(1))), 0);
    ck_assert_int_eq(db_blobs_open_file(blobs, name_of(1)), -1);
    ck_assert_int_eq(errno, ELOOP);
}
static void a_folder(void)
{
    removed();
    ck_assert_int_eq(mkdir(path_of(name_of(1)), 0755), 0);
}
static void (*const damages[])(void) = {cut_short, grown, written_in_place, removed, another_file, a_link, a_folder};

START_TEST(a_file_that_is_not_what_was_written)
{
    ck_assert(make(1, 100));
    damages[_i]();
    ck_assert_int_eq(find(1, 100), DB_BLOB_SEEN);
    if (damages[_i] != a_folder) {
        ck_assert(make(1, 100)); /* made anew in its place */
        ck_assert_int_eq(find(1, 100), DB_BLOB_READY);
    }
}
END_TEST

/* A second name for it changes neither its content nor ours. */
START_TEST(a_hard_link_elsewhere)
{
    ck_assert(make(1, 100));
    ck_assert_int_eq(link(path_of(name_of(1)), temp_path("second")), 0);
    ck_assert_int_eq(find(1, 100), DB_BLOB_READY);
    ck_assert(make(1, 100));
    ck_assert_int_eq(find(1, 100), DB_BLOB_READY);
    ck_assert_int_eq(access(temp_path("second"), F_OK), 0);
}
END_TEST

START_TEST(one_that_was_verified_is_noted)
{
    ck_assert(make(1, 100));
    int fd = db_blobs_open_file(blobs, name_of(1));
    db_blobs_note(blobs, of(5, 100), name_of(1), fd);
    close(fd);
    char name[DB_BLOB_NAME_LEN + 1];
    ck_assert_int_eq(db_blobs_find(blobs, of(5, 100), now_s, name), DB_BLOB_READY);
    ck_assert_str_eq(name, name_of(1));
}
END_TEST

START_TEST(given_up)
{
    struct db_blob_file f;
    ck_assert(db_blobs_create(blobs, &f));
    ck_assert(there(f.temporary));
    char temporary[24];
    memcpy(temporary, f.temporary, sizeof temporary);
    db_blobs_discard(blobs, &f);
    ck_assert(!there(temporary));
    ck_assert_int_eq(f.fd, -1);
}
END_TEST

START_TEST(the_folder_has_gone)
{
    struct db_blob_file f;
    ck_assert(make(1, 100));
    removed();
    ck_assert_int_eq(rmdir(temp_path("blobs")), 0);
    ck_assert_int_eq(find(1, 100), DB_BLOB_SEEN);
    ck_assert(!db_blobs_create(blobs, &f));
    ck_assert_int_eq(db_blobs_open_file(blobs, name_of(1)), -1);
}
END_TEST

/* Use is written down once a minute, for other processes. */
START_TEST(use_is_noted)
{
    struct stat before, after;
    ck_assert(make(1, 100));
    ck_assert_int_eq(stat(path_of(name_of(1)), &before), 0);
    now_s += 30;
    ck_assert_int_eq(find(1, 100), DB_BLOB_READY);
    ck_assert_int_eq(stat(path_of(name_of(1)), &after), 0);
    ck_assert_int_eq(after.st_atim.tv_sec, before.st_atim.tv_sec);
    now_s += 40;
    ck_assert_int_eq(find(1, 100), DB_BLOB_READY);
    ck_assert_int_eq(stat(path_of(name_of(1)), &after), 0);
    ck_assert_int_eq(after.st_atim.tv_sec, now_s);
    ck_assert_int_eq(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
    ck_assert_int_eq(find(1, 100), DB_BLOB_READY);
}
END_TEST

/* ---- room ------------------------------------------------------------------------------------ */

START_TEST(full_of_young_files)
{
    open_blobs(1000);
    for (unsigned i = 1; i <= 10; i++)
        ck_assert(make(i, 100));
    ck_assert(!make(11, 100));
    ck_assert(!there(name_of(11)));
    for (unsigned i = 1; i <= 10; i++)
        ck_assert_int_eq(find(i, 100), DB_BLOB_READY);
    close_blobs();
}
END_TEST

/* What was not used for longest goes first, and none that was used lately. */
START_TEST(old_files_make_room)
{
    open_blobs(1000);
    for (unsigned i = 1; i <= 10; i++)
        ck_assert(make(i, 100));
    for (unsigned i = 1; i <= 5; i++)
        age(name_of(i), 700 + (int)i * 100); /* 5 is the oldest */
    ck_assert(make(11, 150));
    ck_assert(!there(name_of(5)) && !there(name_of(4)));
    ck_assert(there(name_of(1)));
    for (unsigned i = 2; i <= 5; i++)
        ck_assert(there(name_of(i - 1)) || !there(name_of(i)));
    for (unsigned i = 6; i <= 11; i++)
        ck_assert(there(name_of(i)));
    ck_assert(make(12, 250));
    ck_assert(!there(name_of(1)) && !there(name_of(2)));
    ck_assert(!make(13, 150));
    for (unsigned i = 6; i <= 12; i++)
        ck_assert(there(name_of(i)));
    close_blobs();
}
END_TEST

START_TEST(larger_than_all)
{
    open_blobs(1000);
    ck_assert(make(1, 100));
    age(name_of(1), 700);
    ck_assert(!make(2, 1001));
    ck_assert(!there(name_of(2)));
    close_blobs();
}
END_TEST

/* Only files of ours are removed, whatever else lies there. */
START_TEST(nothing_of_others_is_removed)
{
    open_blobs(1000);
    ck_assert(make(1, 900));
    age(name_of(1), 700);
    ck_assert_int_eq(mkdir(path_of(name_of(2)), 0755), 0);
    ck_assert_int_eq(symlink(temp_path("file"), path_of(name_of(3))), 0);
    temp_file("file", "x", 1);
    temp_file("long", "x", 1);
    char longer[200];
    snprintf(longer, sizeof longer, "%s0", name_of(4));
    ck_assert_int_eq(rename(temp_path("long"), path_of(longer)), 0);
    age(longer, 9000);
    ck_assert(make(5, 500));
    ck_assert(!there(name_of(1)));
    ck_assert(there(name_of(2)) && there(name_of(3)) && there(longer));
    ck_assert_int_eq(access(temp_path("file"), F_OK), 0);
    close_blobs();
}
END_TEST

/* 64 characters that are no digest are somebody's file. */
START_TEST(a_long_name_that_is_no_digest)
{
    static const char letter[] = "a-letter-to-my-mother-that-has-a-name-of-exactly-64-characters..";
    ck_assert_uint_eq(strlen(letter), DB_BLOB_NAME_LEN);
    open_blobs(1000);
    temp_file("letter", "x", 1);
    ck_assert_int_eq(rename(temp_path("letter"), path_of(letter)), 0);
    age(letter, 9000);
    ck_assert(make(1, 900));
    age(name_of(1), 700);
    ck_assert(make(2, 500));
    ck_assert(there(letter));
    close_blobs();
}
END_TEST

/* ---- others ---------------------------------------------------------------------------------- */

/* Another process makes the same file and removes what it thinks is old. */
START_TEST(two_processes)
{
    open_blobs(1 << 20);
    ck_assert(make(1, 100));
    pid_t pid = fork();
    if (pid == 0) {
        struct db_blobs *mine = db_blobs_open(temp_path("blobs"), -1, 1000, &error);
        db_blobs_close(blobs);
        blobs = mine;
        for (unsigned i = 0; i < 50; i++)
            (void)make(1 + i % 3, 100);
        db_blobs_close(blobs);
        _exit(0);
    }
    for (unsigned i = 0; i < 50; i++)
        (void)make(1 + i % 3, 100);
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert(there(name_of(1)) && there(name_of(2)) && there(name_of(3)));
    for (unsigned i = 1; i <= 3; i++) {
        (void)make(i, 100);
        ck_assert_int_eq(find(i, 100), DB_BLOB_READY);
    }
    close_blobs();
}
END_TEST

static void *use(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (unsigned i = 0; i < 300; i++) {
        unsigned n = 1 + (i * 7 + seed) % 20;
        char name[DB_BLOB_NAME_LEN + 1];
        if (db_blobs_find(blobs, of(n, 64), now_s, name) == DB_BLOB_READY)
            continue;
        struct db_blob_file f;
        char own[DB_BLOB_NAME_LEN + 1];
        snprintf(own, sizeof own, "%064x", n);
        if (!db_blobs_create(blobs, &f) || ftruncate(f.fd, 64) != 0 || !db_blobs_keep(blobs, &f, of(n, 64), own))
            abort();
        close(f.fd);
    }
    return NULL;
}

START_TEST(many_threads)
{
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use, (void *)i), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 1; i <= 20; i++)
        ck_assert(there(name_of(i)));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("blobs");
    TCase *t = run_case(s, "folder");
    temp_use(t);
    tcase_add_test(t, it_is_made_for_its_group_only);
    tcase_add_test(t, one_that_is_there_stays_as_it_is);
    tcase_add_test(t, no_folder_can_be_had);
    tcase_add_test(t, who_can_read_it);
    tcase_add_test(t, what_a_crash_left);
    tcase_add_test(t, full_of_young_files);
    tcase_add_test(t, old_files_make_room);
    tcase_add_test(t, larger_than_all);
    tcase_add_test(t, nothing_of_others_is_removed);
    tcase_add_test(t, a_long_name_that_is_no_digest);
    tcase_add_test(t, two_processes);
    t = run_case(s, "file");
    temp_use(t);
    tcase_add_checked_fixture(t, open_large, close_blobs);
    tcase_add_test(t, unseen_seen_ready);
    tcase_add_test(t, another_document_with_the_same_number);
    tcase_add_loop_test(t, a_file_that_is_not_what_was_written, 0, COUNT(damages));
    tcase_add_test(t, a_hard_link_elsewhere);
    tcase_add_test(t, one_that_was_verified_is_noted);
    tcase_add_test(t, given_up);
    tcase_add_test(t, the_folder_has_gone);
    tcase_add_test(t, use_is_noted);
    tcase_add_test(t, many_threads);
    return run_suite(s);
}
