/* fcgi/spool: files without a name, written and read whole or not at all. */
#include "fcgi/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/temp.h"

static char text[300000];

static void fill(void)
{
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 13 + i / 257);
}

static unsigned names_in(const char *folder)
{
    unsigned n = 0;
    DIR *d = opendir(folder);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
    closedir(d);
    return n;
}

START_TEST(what_is_written_is_read)
{
    static char back[sizeof text];
    int fd = spool_open(temp_path(""));
    ck_assert_int_ge(fd, 0);
    ck_assert(spool_write(fd, text, 1));
    ck_assert(spool_write(fd, text + 1, 0));
    ck_assert(spool_write(fd, text + 1, sizeof text - 1));
    ck_assert(spool_read(fd, back, sizeof text, 0));
    ck_assert_mem_eq(back, text, sizeof text);
    ck_assert(spool_read(fd, back, 100, 70000));
    ck_assert_mem_eq(back, text + 70000, 100);
    ck_assert(spool_write(fd, "end", 3)); /* reading moves nothing */
    ck_assert(spool_read(fd, back, 3, sizeof text));
    ck_assert_mem_eq(back, "end", 3);
    close(fd);
}
END_TEST

START_TEST(it_has_no_name_and_is_nobody_elses)
{
    struct stat st;
    int fd = spool_open(temp_path(""));
    ck_assert_int_ge(fd, 0);
    ck_assert(spool_write(fd, text, 1000));
    ck_assert_uint_eq(names_in(temp_path("")), 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_uint_eq(st.st_nlink, 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    close(fd);
}
END_TEST

START_TEST(two_are_two)
{
    char a, b;
    int one = spool_open(temp_path("")), two = spool_open(temp_path(""));
    ck_assert(spool_write(one, "1", 1) && spool_write(two, "2", 1));
    ck_assert(spool_read(one, &a, 1, 0) && spool_read(two, &b, 1, 0));
    ck_assert_int_eq(a, '1');
    ck_assert_int_eq(b, '2');
    close(one);
    close(two);
}
END_TEST

START_TEST(no_such_folder)
{
    ck_assert_int_eq(spool_open(temp_path("none")), -1);
    ck_assert_int_eq(errno, ENOENT);
    temp_file("file", "", 0);
    ck_assert_int_eq(spool_open(temp_path("file")), -1);
    ck_assert_int_eq(errno, ENOTDIR);
}
END_TEST

START_TEST(no_descriptors)
{
    struct rlimit few;
    getrlimit(RLIMIT_NOFILE, &few);
    rlim_t was = few.rlim_cur;
    few.rlim_cur = 3;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    ck_assert_int_eq(spool_open("/tmp"), -1);
    ck_assert_int_eq(errno, EMFILE);
    few.rlim_cur = was;
    setrlimit(RLIMIT_NOFILE, &few);
}
END_TEST

/* procfs and the like have no O_TMPFILE, and no mkstemp either; what matters is that it says so. */
START_TEST(a_folder_in_which_nothing_can_be_made)
{
    ck_assert_int_eq(spool_open("/proc"), -1);
    ck_assert_int_ne(errno, 0);
}
END_TEST

START_TEST(past_the_end_is_no_error_of_the_disk)
{
    char back[10];
    int fd = spool_open(temp_path(""));
    ck_assert(spool_write(fd, "12345", 5));
    errno = EIO;
    ck_assert(!spool_read(fd, back, 6, 0));
    ck_assert_int_eq(errno, 0);
    ck_assert(!spool_read(fd, back, 1, 5));
    ck_assert(!spool_read(fd, back, 1, 1 << 30));
    ck_assert(spool_read(fd, back, 0, 5));
    ck_assert(spool_read(fd, back, 5, 0));
    close(fd);
}
END_TEST

/* The first write is short, the second finds no room. */
START_TEST(a_file_that_may_not_grow)
{
    struct rlimit small = {100000, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    int fd = spool_open(temp_path(""));
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    ck_assert(spool_write(fd, text, 100000));
    ck_assert(!spool_write(fd, text, 1));
    ck_assert_int_eq(errno, EFBIG);
    close(fd);
    fd = spool_open(temp_path(""));
    ck_assert(!spool_write(fd, text, 100001));
    ck_assert_int_eq(errno, EFBIG);
    close(fd);
}
END_TEST

START_TEST(wrong_descriptors)
{
    char back;
    int fd = open(temp_file("read-only", "x", 1), O_RDONLY | O_CLOEXEC);
    ck_assert(!spool_write(fd, "x", 1));
    ck_assert_int_eq(errno, EBADF);
    close(fd);
    ck_assert(!spool_write(-1, "x", 1));
    ck_assert(!spool_read(-1, &back, 1, 0));
    ck_assert_int_eq(errno, EBADF);
}
END_TEST

static void nothing(int sig)
{
    (void)sig;
}

static void *interrupt(void *arg)
{
    pthread_t writer = *(pthread_t *)arg;
    for (int i = 0; i < 50; i++) {
        usleep(200);
        pthread_kill(writer, SIGUSR1);
    }
    return NULL;
}

static void *drain(void *arg)
{
    static char sink[sizeof text];
    size_t n = 0;
    for (ssize_t got; (got = read(*(int *)arg, sink, 7000)) > 0; n += (size_t)got)
        usleep(100);
    ck_assert_uint_eq(n, sizeof text);
    return NULL;
}

/* A pipe takes a part of what it is given, and signals cut calls short: every byte goes once. */
START_TEST(short_writes_and_signals)
{
    int ends[2];
    pthread_t self = pthread_self(), one, two;
    struct sigaction act = {.sa_handler = nothing}; /* no SA_RESTART */
    sigaction(SIGUSR1, &act, NULL);
    ck_assert_int_eq(pipe(ends), 0);
    pthread_create(&one, NULL, drain, &ends[0]);
    pthread_create(&two, NULL, interrupt, &self);
    ck_assert(spool_write(ends[1], text, sizeof text));
    pthread_join(two, NULL);
    close(ends[1]);
    pthread_join(one, NULL);
    close(ends[0]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("spool");
    TCase *t = run_case(s, "spool");
    temp_use(t);
    fill();
    tcase_add_test(t, what_is_written_is_read);
    tcase_add_test(t, it_has_no_name_and_is_nobody_elses);
    tcase_add_test(t, two_are_two);
    tcase_add_test(t, no_such_folder);
    tcase_add_test(t, no_descriptors);
    tcase_add_test(t, a_folder_in_which_nothing_can_be_made);
    tcase_add_test(t, past_the_end_is_no_error_of_the_disk);
    tcase_add_test(t, a_file_that_may_not_grow);
    tcase_add_test(t, wrong_descriptors);
    tcase_add_test(t, short_writes_and_signals);
    return run_suite(s);
}
