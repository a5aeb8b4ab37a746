/* fcgi/errand: when the courier is started, with what, and what follows its end. */
#include "fcgi/errand.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/temp.h"

static struct conf conf;
static struct conf_error error;
static struct errand e;

static void set(const char *key, const char *value)
{
    ck_assert_msg(conf_flag(&conf, key, value, &error), "%s", error.text);
}

/* The program is a shell script. */
static void opened(const char *script)
{
    signal(SIGTERM, SIG_DFL); /* a handler of check's would run in the child until it is the program */
    const char *program = temp_file("program", script, strlen(script));
    ck_assert_int_eq(chmod(program, 0700), 0);
    ck_assert(conf_load(&conf, NULL, &error));
    set("database", temp_path("hanji.db"));
    set("courier", program);
    ck_assert(conf_finish(&conf, &error));
    e = (struct errand){.socket = -1};
    ck_assert_msg(errand_open(&e, &conf, "/usr/bin/hanji", &error), "%s", error.text);
    ck_assert_int_ge(e.socket, 0);
}

static bool nudge(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memcpy(a.sun_path, path, strlen(path) + 1);
    bool sent = sendto(fd, "n", 1, MSG_DONTWAIT, (struct sockaddr *)&a, sizeof a) == 1;
    close(fd);
    return sent;
}

/* True when poll would wake and the program was started. */
static bool turn(uint64_t now_ms)
{
    pid_t before = e.pid;
    struct pollfd p = {.fd = errand_poll(&e, now_ms), .events = POLLIN};
    if (poll(&p, 1, 0) == 1 && p.revents != 0)
        errand_readable(&e, now_ms);
    if (errand_due(&e, now_ms) <= now_ms)
        errand_time(&e, now_ms);
    return e.pid != before && e.pid != 0;
}

static int status_of_end(void)
{
    int status = 0;
    ck_assert_int_gt(e.pid, 0);
    ck_assert_int_eq(waitpid(e.pid, &status, 0), e.pid);
    return status;
}

static void ends(uint64_t now_ms)
{
    int status = status_of_end();
    temp_capture_stderr();
    ck_assert(errand_ended(&e, e.pid, status, now_ms));
    free(temp_captured());
    ck_assert_int_eq(e.pid, 0);
}

static void says(const char *name, const char *wanted)
{
    size_t n;
    char *text = temp_read(temp_path(name), &n);
    ck_assert_msg(n == strlen(wanted) && memcmp(text, wanted, n) == 0, "%.*s", (int)n, text);
    free(text);
}

#define READ_ONE "dd bs=99 count=1 <&$HANJI_COURIER_FD 2>/dev/null "

START_TEST(nothing_runs_until_something_lies_there)
{
    opened("#!/bin/sh\n" READ_ONE ">$HANJI_DATABASE.read\n");
    ck_assert(!turn(1000));
    ck_assert_uint_eq(errand_due(&e, 1000), UINT64_MAX);
    ck_assert(nudge(conf.courier_socket));
    ck_assert(turn(1000));
    ck_assert_int_eq(errand_poll(&e, 1000), -1);
    ends(9000);
    says("hanji.db.read", "n");
    ck_assert(!turn(9000));
}
END_TEST

START_TEST(what_comes_while_it_leaves_starts_it_again)
{
    opened("#!/bin/sh\n" READ_ONE ">/dev/null\n");
    ck_assert(nudge(conf.courier_socket) && nudge(conf.courier_socket));
    ck_assert(turn(1000));
    ends(9000);
    ck_assert(turn(9000));
    ends(19000);
    ck_assert(!turn(19000));
}
END_TEST

START_TEST(one_that_leaves_at_once_does_not_spin)
{
    opened("#!/bin/sh\nexit 0\n");
    uint64_t now = 1000;
    ck_assert(nudge(conf.courier_socket));
    for (uint64_t pause = 100; pause <= 6400; pause *= 2) {
        uint64_t most = pause < 1000 ? pause : 1000;
        ck_assert(turn(now));
        ends(now);
        ck_assert(!turn(now));
        ck_assert_uint_eq(errand_due(&e, now), now + most);
        ck_assert(!turn(now + most - 1));
        now += most;
    }
}
END_TEST

START_TEST(it_gets_the_file_and_the_flags)
{
    opened("#!/bin/sh\necho \"$@ $HANJI_THREADS $HANJI_DRAIN_TIMEOUT ${LISTEN_FDS-none} ${HANJI_SOCKET-none}\""
           " >$HANJI_DATABASE.said\n");
    snprintf(conf.file, sizeof conf.file, "/etc/some.conf");
    set("threads", "7");
    set("drain_timeout", "3s");
    setenv("LISTEN_FDS", "1", 1);
    ck_assert(nudge(conf.courier_socket) && turn(0));
    ends(0);
    says("hanji.db.said", "-c /etc/some.conf 7 3000ms none none\n");
}
END_TEST

START_TEST(without_a_file_there_is_no_argument)
{
    opened("#!/bin/sh\necho $# >$HANJI_DATABASE.said\n");
    ck_assert(nudge(conf.courier_socket) && turn(0));
    ends(0);
    says("hanji.db.said", "0\n");
}
END_TEST

/* What it had read is lost: it is started whether or not something lies there. */
START_TEST(one_that_fails_is_started_again_after_growing_pauses)
{
    opened("#!/bin/sh\n[ -e $HANJI_DATABASE.once ] || " READ_ONE ">$HANJI_DATABASE.once\nexit 3\n");
    uint64_t now = 1000;
    ck_assert(nudge(conf.courier_socket));
    ck_assert(turn(now));
    for (uint64_t pause = 100; pause < 1000000; pause *= 2) {
        uint64_t most = pause < 60000 ? pause : 60000;
        ends(now);
        ck_assert_uint_eq(errand_due(&e, now), now + most);
        ck_assert(!turn(now + most - 1));
        now += most;
        ck_assert(turn(now));
    }
    ends(now + 10000); /* it lived */
    ck_assert_uint_eq(errand_due(&e, now + 10000), now + 10100);
}
END_TEST

START_TEST(one_that_is_killed_or_absent_is_a_failure_too)
{
    opened("#!/bin/sh\nkill -9 $$\n");
    ck_assert(nudge(conf.courier_socket) && turn(0));
    ends(0);
    ck_assert_uint_eq(errand_due(&e, 0), 100);
    ck_assert_int_eq(unlink(temp_path("program")), 0);
    temp_capture_stderr();
    ck_assert(turn(100));
    int status = status_of_end();
    ck_assert(errand_ended(&e, e.pid, status, 100));
    char *said = temp_captured();
    ck_assert_ptr_nonnull(strstr(said, "cannot be started"));
    free(said);
    ck_assert_uint_eq(errand_due(&e, 100), 300);
}
END_TEST

START_TEST(one_that_is_replaced_is_followed_at_once)
{
    opened("#!/bin/sh\ntrap 'exit 1' TERM\n: >$HANJI_DATABASE.ready\nwhile :; do sleep 0.01; done\n");
    errand_replace(&e); /* none runs: nothing is asked of anybody */
    ck_assert(!e.asked);
    ck_assert(nudge(conf.courier_socket) && turn(0));
    while (access(temp_path("hanji.db.ready"), F_OK) != 0)
        usleep(1000);
    errand_replace(&e);
    ends(50);
    ck_assert(turn(50));
    ck_assert(!e.asked);
    errand_kill(&e);
    ends(60);
}
END_TEST

START_TEST(signals_that_the_supervisor_blocks_reach_it)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    opened("#!/bin/sh\nexec sleep 60\n");
    ck_assert(nudge(conf.courier_socket) && turn(0));
    ck_assert(errand_stop(&e));
    ends(0);
}
END_TEST

START_TEST(at_the_end_none_is_started)
{
    opened("#!/bin/sh\nexit 1\n");
    ck_assert(nudge(conf.courier_socket) && turn(0));
    errand_stop(&e);
    ends(0);
    ck_assert(!turn(100000));
    ck_assert_uint_eq(errand_due(&e, 0), UINT64_MAX);
    ck_assert(!errand_stop(&e));
    errand_close(&e);
    ck_assert_int_eq(access(conf.courier_socket, F_OK), -1);
    errand_close(&e);
}
END_TEST

START_TEST(another_child_is_not_it)
{
    opened("#!/bin/sh\n");
    ck_assert(!errand_ended(&e, 0, 0, 0));
    ck_assert(!errand_ended(&e, 1, 0, 0));
}
END_TEST

START_TEST(none_means_that_another_owns_the_socket)
{
    opened("#!/bin/sh\n");
    set("courier", "none");
    ck_assert(errand_open(&e, &conf, "/usr/bin/hanji", &error)); /* as after a hand-over */
    ck_assert_int_eq(e.socket, -1);
    ck_assert_int_eq(access(conf.courier_socket, F_OK), -1);
    ck_assert_int_eq(errand_poll(&e, 0), -1);
    ck_assert(!turn(0));
}
END_TEST

START_TEST(it_lies_beside_the_program)
{
    opened("#!/bin/sh\n");
    set("courier", "");
    ck_assert(errand_open(&e, &conf, "/opt/h/hanji", &error));
    ck_assert_str_eq(e.program, "/opt/h/hanji-courier");
    ck_assert(errand_open(&e, &conf, "hanji", &error));
    ck_assert_str_eq(e.program, "hanji-courier");
}
END_TEST

START_TEST(a_socket_is_kept_unless_it_is_to_have_another_name)
{
    opened("#!/bin/sh\n");
    int fd = e.socket;
    struct stat st;
    ck_assert(errand_open(&e, &conf, "hanji", &error));
    ck_assert_int_eq(e.socket, fd);
    ck_assert_int_eq(stat(conf.courier_socket, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    char old[CONF_TEXT_MAX];
    memcpy(old, conf.courier_socket, sizeof old);
    set("courier_socket", temp_path("other"));
    ck_assert(errand_open(&e, &conf, "hanji", &error));
    ck_assert_int_eq(access(old, F_OK), -1);
    ck_assert(nudge(temp_path("other")));
}
END_TEST

START_TEST(a_stale_socket_is_replaced_and_nothing_else_is)
{
    opened("#!/bin/sh\n");
    struct errand killed = e; /* its file was left */
    e = (struct errand){.socket = -1};
    ck_assert(errand_open(&e, &conf, "hanji", &error));
    ck_assert(nudge(conf.courier_socket) && turn(0));
    ends(0);
    close(killed.socket);
    errand_close(&e);
    temp_file("hanji.db.courier", "x", 1);
    ck_assert(!errand_open(&e, &conf, "hanji", &error));
    ck_assert_ptr_nonnull(strstr(error.text, "left as it is"));
    says("hanji.db.courier", "x");
    ck_assert_int_eq(errand_poll(&e, 0), -1);
}
END_TEST

START_TEST(one_only_has_the_lock)
{
    const char *db = temp_file("lock.db", "", 0);
    ck_assert(!errand_locked(db));
    int fd = errand_lock(db);
    ck_assert_int_ge(fd, 0);
    ck_assert(errand_locked(db));
    ck_assert_int_eq(errand_lock(db), -1);
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert(errand_locked(db)); /* asking and failing have cost it nothing */
    ck_assert_int_eq(symlink(db, temp_path("other.db")), 0);
    ck_assert_int_eq(errand_lock(temp_path("other.db")), -1);
    ck_assert_int_eq(access(temp_path("other.db.courier.lock"), F_OK), -1);
    close(fd);
    ck_assert(!errand_locked(db));
    fd = errand_lock(temp_path("other.db"));
    ck_assert(errand_locked(db));
    close(fd);
    ck_assert_int_eq(errand_lock(temp_path("no/such.db")), -1);
    ck_assert(!errand_locked(temp_path("no/such.db")));
}
END_TEST

START_TEST(whom_nobody_hears_is_told)
{
    opened("#!/bin/sh\n");
    for (int i = 0; i < 100; i++)
        ck_assert(errand_call(conf.courier_socket)); /* some lie there: that is enough */
    errand_close(&e);
    ck_assert(!errand_call(conf.courier_socket));
    ck_assert_int_eq(errno, ENOENT);
    int left = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    memcpy(a.sun_path, conf.courier_socket, strlen(conf.courier_socket) + 1);
    ck_assert_int_eq(bind(left, (struct sockaddr *)&a, sizeof a), 0);
    close(left);
    ck_assert(!errand_call(conf.courier_socket));
    ck_assert_int_eq(errno, ECONNREFUSED);
    char name[160] = "";
    memset(name, 'x', sizeof name - 1);
    ck_assert(!errand_call(name));
    ck_assert_int_eq(errno, ENAMETOOLONG);
}
END_TEST

START_TEST(a_name_has_a_length)
{
    char name[160] = "/tmp/";
    memset(name + 5, 'x', sizeof name - 6);
    opened("#!/bin/sh\n");
    set("courier_socket", name);
    ck_assert(!errand_open(&e, &conf, "hanji", &error));
    ck_assert_ptr_nonnull(strstr(error.text, "too long"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("errand");
    TCase *t = run_case(s, "errand");
    temp_use(t);
    tcase_add_test(t, nothing_runs_until_something_lies_there);
    tcase_add_test(t, what_comes_while_it_leaves_starts_it_again);
    tcase_add_test(t, one_that_leaves_at_once_does_not_spin);
    tcase_add_test(t, it_gets_the_file_and_the_flags);
    tcase_add_test(t, without_a_file_there_is_no_argument);
    tcase_add_test(t, one_that_fails_is_started_again_after_growing_pauses);
    tcase_add_test(t, one_that_is_killed_or_absent_is_a_failure_too);
    tcase_add_test(t, one_that_is_replaced_is_followed_at_once);
    tcase_add_test(t, signals_that_the_supervisor_blocks_reach_it);
    tcase_add_test(t, at_the_end_none_is_started);
    tcase_add_test(t, another_child_is_not_it);
    tcase_add_test(t, none_means_that_another_owns_the_socket);
    tcase_add_test(t, it_lies_beside_the_program);
    tcase_add_test(t, a_socket_is_kept_unless_it_is_to_have_another_name);
    tcase_add_test(t, a_stale_socket_is_replaced_and_nothing_else_is);
    tcase_add_test(t, one_only_has_the_lock);
    tcase_add_test(t, whom_nobody_hears_is_told);
    tcase_add_test(t, a_name_has_a_length);
    return run_suite(s);
}
