/*
 * fcginull: a FastCGI backend that does no work, to tell how fast nginx can be with any backend.
 *
 *   fcginull [-s SIZE] [-x] SOCKET ['Name: value']...
 *
 * It looks up nothing and checks nothing: it finds the key's digits behind "/bench/" in the raw
 * parameters, and answers 200 with the headers given and the SIZE (64) bytes that the key's document holds.
 * With -x it has no body; one of the headers is an X-Accel-Redirect, in which {} stands for the key's digits.
 * Like hanji it first reads what is ready and then answers. A request must come in one piece, as
 * nginx sends it; anything else closes the connection, which the load generator counts as an error.
 */
#include "util.h"
#include "work.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BATCH = 256, SIZE_MOST = 1 << 24, HEAD_MOST = 8192, RECORD_MOST = 32768 };

static struct {
    int fd;
    char digits[KEY_DIGITS];
} waiting[BATCH];

static struct text answer; /* the whole answer; the digits at `digits_at` are the key's */
static size_t digits_at;
static int listener;

static void add_record(int type, const void *content, size_t len)
{
    const unsigned char head[8] = {1, (unsigned char)type, 0, 1, (unsigned char)(len >> 8),
                                   (unsigned char)len, 0, 0};
    text_add(&answer, head, sizeof head);
    text_add(&answer, content, len);
}

static void add_body(struct text *out, size_t size)
{
    static struct workload load;
    char kind[64];
    char *body = malloc(size);

    (void)snprintf(kind, sizeof kind, "GET / 200 %zu", size);
    memcpy(load.nonce, "00000000", NONCE_DIGITS);
    work_add(&load, kind);
    load.keys = 1;
    load.seed = 1;
    work_ready(&load);
    if (body == NULL)
        die("out of memory");
    work_body(&load, body, size, 0);
    text_print(out, "Content-Length: %zu\r\n\r\n", size);
    digits_at = 8 + out->len;
    text_add(out, body, size);
    free(body);
}

/* The head ends here; the digits stand in one of its lines. */
static void add_no_body(struct text *out)
{
    char *hole;

    text_add(out, "\r\n", 2);
    hole = memmem(out->bytes, out->len, "{}", 2);
    if (hole == NULL || out->len > RECORD_MOST)
        die("-x: no {} in the headers");
    digits_at = (size_t)(hole - out->bytes);
    text_add(out, "000000", KEY_DIGITS - 2);
    hole = out->bytes + digits_at;
    memmove(hole + KEY_DIGITS, hole + 2, out->len - KEY_DIGITS - digits_at);
    digits_at += 8;
}

static void make_answer(char **headers, size_t size, bool accel)
{
    static const char end[8];
    struct text out = {0};

    text_print(&out, "Status: 200 OK\r\n");
    for (; *headers != NULL; headers++)
        text_print(&out, "%s\r\n", *headers);
    if (out.len > HEAD_MOST)
        die("headers too long");
    if (accel)
        add_no_body(&out);
    else
        add_body(&out, size);
    for (size_t at = 0; at < out.len; at += RECORD_MOST)
        add_record(6 /* stdout */, out.bytes + at, out.len - at < RECORD_MOST ? out.len - at : RECORD_MOST);
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

/* A large answer does not fit into the socket; nginx reads it as fast as it can, so waiting for it is short. */
static void put(int fd)
{
    size_t sent = 0;

    while (sent < answer.len) {
        struct pollfd wait = {.fd = fd, .events = POLLOUT};
        ssize_t part = send(fd, answer.bytes + sent, answer.len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (part < 0 && (errno != EAGAIN || poll(&wait, 1, 1000) != 1))
            return;
        sent += part > 0 ? (size_t)part : 0;
    }
}

static void begin(int argc, char **argv)
{
    size_t size = 64;
    bool accel = false;
    int letter;

    while ((letter = getopt(argc, argv, "+s:x")) != -1) {
        if (letter == 's')
            size = (size_t)parse_number("-s", optarg, BODY_SMALLEST, SIZE_MOST);
        else if (letter == 'x')
            accel = true;
        else
            optind = argc;
    }
    if (optind >= argc)
        die("usage: fcginull [-s SIZE] [-x] SOCKET ['Name: value']...");
    make_answer(argv + optind + 1, size, accel);
    listener = listen_on(argv[optind]);
}

int main(int argc, char **argv)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    begin(argc, argv);
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
            put(waiting[i].fd);
        }
    }
}
