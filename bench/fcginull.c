/*
 * fcginull: a FastCGI backend that does no work, to tell how fast nginx can be with any backend.
 *
 *   fcginull SOCKET ['Name: value']...
 *
 * It looks up nothing and checks nothing: it finds the key's digits behind "/bench/" in the raw
 * parameters, and answers 200 with the headers given and the 64 bytes that the key's document holds.
 * Like hanji it first reads what is ready and then answers. A request must come in one piece, as
 * nginx sends it; anything else closes the connection, which the load generator counts as an error.
 */
#include "util.h"
#include "work.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BATCH = 256, SIZE = 64, ANSWER_MOST = 8192 };

static struct {
    int fd;
    char digits[KEY_DIGITS];
} waiting[BATCH];

static struct text answer; /* the whole answer; the digits at `digits_at` are the key's */
static size_t digits_at;

static void add_record(int type, const void *content, size_t len)
{
    const unsigned char head[8] = {1, (unsigned char)type, 0, 1, (unsigned char)(len >> 8),
                                   (unsigned char)len, 0, 0};
    text_add(&answer, head, sizeof head);
    text_add(&answer, content, len);
}

static void make_answer(char **headers)
{
    static struct workload load;
    static const char end[8];
    struct text out = {0};
    char body[SIZE];

    memcpy(load.nonce, "00000000", NONCE_DIGITS);
    work_add(&load, "GET / 200 64");
    load.keys = 1;
    load.seed = 1;
    work_ready(&load);
    work_body(&load, body, SIZE, 0);
    text_print(&out, "Status: 200 OK\r\n");
    for (; *headers != NULL; headers++)
        text_print(&out, "%s\r\n", *headers);
    text_print(&out, "Content-Length: %d\r\n\r\n", SIZE);
    digits_at = 8 + out.len;
    text_add(&out, body, SIZE);
    if (out.len > ANSWER_MOST)
        die("headers too long");
    add_record(6 /* stdout */, out.bytes, out.len);
    add_record(6, "", 0);
    add_record(3 /* end */, end, sizeof end);
}

static int listen_on(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (strlen(path) >= sizeof address.sun_path)
        die("path too long");
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, 4096) != 0)
        die("%s: %s", path, strerror(errno));
    return fd;
}

static void watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    if (fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        die("epoll_ctl: %s", strerror(errno));
}

/* Reads one request; false when there is none to answer. */
static bool take(int fd, char *digits)
{
    static const unsigned char stdin_end[8] = {1, 5, 0, 1, 0, 0, 0, 0};
    static char buffer[65536];
    ssize_t got = recv(fd, buffer, sizeof buffer, 0);
    const char *key;

    if (got < 0 && errno == EAGAIN)
        return false;
    key = got > 8 ? memmem(buffer, (size_t)got, "/bench/", 7) : NULL;
    if (key == NULL || key + 7 + KEY_DIGITS > buffer + got ||
        memcmp(buffer + got - 8, stdin_end, 8) != 0) {
        (void)close(fd);
        return false;
    }
    memcpy(digits, key + 7, KEY_DIGITS);
    return true;
}

int main(int argc, char **argv)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int listener;

    if (argc < 2)
        die("usage: fcginull SOCKET ['Name: value']...");
    make_answer(argv + 2);
    listener = listen_on(argv[1]);
    watch(epoll, listener);
    for (;;) {
        struct epoll_event events[BATCH];
        int ready = epoll_wait(epoll, events, BATCH, -1);
        int len = 0;

        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                watch(epoll, accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
            else if (take(fd, waiting[len].digits))
                waiting[len++].fd = fd;
        }
        for (int i = 0; i < len; i++) {
            memcpy(answer.bytes + digits_at, waiting[i].digits, KEY_DIGITS);
            (void)send(waiting[i].fd, answer.bytes, answer.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
    }
}
