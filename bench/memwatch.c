/*
 * memwatch: the most memory a process has while something goes on.
 *
 *   memwatch PID INTERVAL_US
 *
 * Sets the process's high-water mark back, prints an empty line, then reads VmRSS every INTERVAL_US until stdin ends, and
 * prints one line of JSON: KiB at the beginning, at the end, the most that was seen, the kernel's own high-water mark
 * (which misses nothing), how often it looked, and the longest time between two looks.
 */
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct memory {
    unsigned long rss_kib;
    unsigned long anonymous_kib; /* the part that is no file's page */
    unsigned long most_kib;      /* the kernel's mark */
};

static unsigned long field(const char *status, const char *name)
{
    const char *at = strstr(status, name);

    if (at == NULL)
        die("no %s in /proc/PID/status", name);
    return strtoul(at + strlen(name), NULL, 10);
}

static struct memory look(int fd)
{
    char status[8192];
    ssize_t got = pread(fd, status, sizeof status - 1, 0);

    if (got <= 0)
        die("the process has ended");
    status[got] = '\0';
    return (struct memory){.rss_kib = field(status, "\nVmRSS:"),
                           .anonymous_kib = field(status, "\nRssAnon:"),
                           .most_kib = field(status, "\nVmHWM:")};
}

/* Writing 5 sets VmHWM to the present size (proc(5)). */
static void set_mark_back(const char *pid)
{
    char path[64];
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%s/clear_refs", pid);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "5", 1) != 1)
        die("%s: %s", path, strerror(errno));
    (void)close(fd);
}

int main(int argc, char **argv)
{
    struct pollfd wait = {.fd = 0, .events = POLLIN};
    struct memory first, now, most;
    struct timespec interval;
    uint64_t interval_us, looks = 0;
    int64_t before_ns, longest_ns = 0;
    char path[64], byte;
    int fd;

    if (argc != 3)
        die("usage: memwatch PID INTERVAL_US");
    (void)parse_number("PID", argv[1], 1, INT32_MAX);
    interval_us = parse_number("INTERVAL_US", argv[2], 100, 1000000);
    interval = (struct timespec){.tv_sec = (time_t)(interval_us / 1000000),
                                 .tv_nsec = (long)(interval_us % 1000000) * 1000};
    (void)snprintf(path, sizeof path, "/proc/%s/status", argv[1]);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        die("%s: %s", path, strerror(errno));
    set_mark_back(argv[1]);
    first = most = now = look(fd);
    (void)puts("");
    (void)fflush(stdout);
    before_ns = now_ns();
    while (ppoll(&wait, 1, &interval, NULL) == 0 || read(0, &byte, 1) > 0) {
        int64_t took_ns = now_ns() - before_ns;
        before_ns += took_ns;
        if (took_ns > longest_ns)
            longest_ns = took_ns;
        now = look(fd);
        looks++;
        if (now.rss_kib > most.rss_kib)
            most.rss_kib = now.rss_kib;
        if (now.anonymous_kib > most.anonymous_kib)
            most.anonymous_kib = now.anonymous_kib;
    }
    now = look(fd);
    (void)printf("{\"first_kib\":%lu,\"most_kib\":%lu,\"last_kib\":%lu,\"mark_kib\":%lu,\"anonymous_first_kib\":%lu,"
                 "\"anonymous_most_kib\":%lu,\"looks\":%llu,\"longest_gap_us\":%lld}\n",
                 first.rss_kib, most.rss_kib, now.rss_kib, now.most_kib, first.anonymous_kib, most.anonymous_kib,
                 (unsigned long long)looks, (long long)longest_ns / 1000);
    return 0;
}
