/*
 * hub: a FastCGI backend that only writes to those who wait, to tell how fast a change can reach them with any backend.
 *
 *   hub SOCKET ANSWER ['Name: value']...
 *
 * A GET parks: with `text/event-stream` among its parameters it gets the head of a stream at once. A PUT is
 * answered with 204, and the bytes of the file ANSWER are written to all that are parked, one send each, in one
 * loop: an event of a stream to those who stream, a whole answer with the headers given to the others. Nothing is
 * stored, looked up or checked. Whatever a peer does not take at once is lost, which its watcher counts as an
 * error. A request must come in one piece, as nginx sends it; anything else closes the connection.
 */
#include "util.h"
#include "work.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BATCH = 256, WATCHERS_MOST = 16384, CONTENT_MOST = 65535, STDOUT = 6, END_REQUEST = 3 };

enum { NOT_PARKED, STREAMS, WAITS };

static unsigned char parked[WATCHERS_MOST * 2]; /* by descriptor */
static int watchers[WATCHERS_MOST];
static size_t watchers_len;

static struct text stream_head;
static struct text event;   /* one record */
static struct text whole;   /* a whole answer to one who waits */
static struct text written; /* the answer to a PUT */

static void add_record(struct text *text, int type, const void *content, size_t len)
{
    const unsigned char head[8] = {1, (unsigned char)type, 0, 1, (unsigned char)(len >> 8), (unsigned char)len, 0, 0};

    if (len > CONTENT_MOST)
        die("more than a record holds");
    text_add(text, head, sizeof head);
    text_add(text, content, len);
}

static void add_end(struct text *text)
{
    static const char end[8];

    add_record(text, STDOUT, "", 0);
    add_record(text, END_REQUEST, end, sizeof end);
}

static void add_answer(struct text *text, const char *head, size_t head_len, const struct text *body)
{
    struct text out = {0};

    text_add(&out, head, head_len);
    if (body->len > 0)
        text_add(&out, body->bytes, body->len);
    add_record(text, STDOUT, out.bytes, out.len);
    add_end(text);
    free(out.bytes);
}

static void read_file(struct text *text, const char *path)
{
    FILE *file = fopen(path, "rb");
    char piece[4096];
    size_t got;

    if (file == NULL)
        die("cannot open %s", path);
    while ((got = fread(piece, 1, sizeof piece, file)) > 0)
        text_add(text, piece, got);
    (void)fclose(file);
}

static void make_answers(const char *path, char **headers)
{
    static const char no_content[] = "Status: 204 No Content\r\nETag: \"1\"\r\n\r\n";
    static const char streams[] = "Status: 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
                                  "X-Accel-Buffering: no\r\n\r\n";
    struct text body = {0};
    struct text head = {0};
    struct text empty = {0};

    read_file(&body, path);
    if (body.len == 0)
        die("%s is empty", path);
    text_print(&head, "Status: 200 OK\r\n");
    for (; *headers != NULL; headers++)
        text_print(&head, "%s\r\n", *headers);
    text_print(&head, "Content-Length: %zu\r\n\r\n", body.len);
    add_record(&stream_head, STDOUT, streams, sizeof streams - 1);
    add_record(&event, STDOUT, body.bytes, body.len);
    add_answer(&whole, head.bytes, head.len, &body);
    add_answer(&written, no_content, sizeof no_content - 1, &empty);
}

static int listen_on(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (strlen(path) >= sizeof address.sun_path)
        die("path too long");
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 4096) != 0)
        die("%s: %s", path, strerror(errno));
    return fd;
}

static void watch(int epoll, int fd)
{
    struct epoll_event want = {.events = EPOLLIN, .data.fd = fd};

    if (fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &want) != 0)
        die("epoll_ctl: %s", strerror(errno));
}

static void put(int fd, const struct text *text)
{
    (void)send(fd, text->bytes, text->len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void park(int fd, unsigned char how)
{
    if (watchers_len == WATCHERS_MOST)
        die("too many watchers");
    watchers[watchers_len++] = fd;
    parked[fd] = how;
    if (how == STREAMS)
        put(fd, &stream_head);
}

/* The loop that this program is for. Those who waited have their answer; those who stream stay. */
static void tell_all(void)
{
    size_t kept = 0;

    for (size_t i = 0; i < watchers_len; i++) {
        int fd = watchers[i];
        put(fd, parked[fd] == STREAMS ? &event : &whole);
        if (parked[fd] == STREAMS)
            watchers[kept++] = fd;
        else
            parked[fd] = NOT_PARKED;
    }
    watchers_len = kept;
}

static void leave(int fd)
{
    for (size_t i = 0; parked[fd] != NOT_PARKED && i < watchers_len; i++) {
        if (watchers[i] == fd) {
            watchers[i] = watchers[--watchers_len];
            parked[fd] = NOT_PARKED;
        }
    }
    (void)close(fd);
}

static bool has(const char *bytes, size_t len, const char *word)
{
    return memmem(bytes, len, word, strlen(word)) != NULL;
}

static void take(int fd)
{
    static const unsigned char stdin_end[8] = {1, 5, 0, 1, 0, 0, 0, 0};
    static char buffer[65536];
    ssize_t got = recv(fd, buffer, sizeof buffer, 0);

    if (got < 0 && errno == EAGAIN)
        return;
    if (got < 16 || memcmp(buffer + got - 8, stdin_end, 8) != 0) {
        leave(fd);
    } else if (has(buffer, (size_t)got, "REQUEST_METHODPUT")) {
        put(fd, &written);
        tell_all();
    } else {
        park(fd, has(buffer, (size_t)got, "text/event-stream") ? STREAMS : WAITS);
    }
}

int main(int argc, char **argv)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int listener;

    if (argc < 3)
        die("usage: hub SOCKET ANSWER ['Name: value']...");
    make_answers(argv[2], argv + 3);
    listener = listen_on(argv[1]);
    watch(epoll, listener);
    for (;;) {
        struct epoll_event events[BATCH];
        int ready = epoll_wait(epoll, events, BATCH, -1);

        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd != listener) {
                take(fd);
                continue;
            }
            fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd >= (int)sizeof parked)
                die("too many connections");
            if (fd >= 0)
                watch(epoll, fd);
        }
    }
}
