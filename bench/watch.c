/*
 * watch: thousands of watchers of the change feed, and how long a change takes to reach the last of them.
 *
 *   watch -m sse|poll -c 5000 -n ROUNDS [-g GAP_MS] [-s SINCE] [-o FILE] [-H LINE]... TARGET
 *
 * TARGET is a socket's path (FastCGI, without nginx) or ADDRESS:PORT (HTTP). Every watcher has a connection of its own and
 * follows /changes?prefix=watched/ from SINCE (`now`) on, as a stream (sse) or with requests that park (poll). Each round
 * waits GAP_MS in which nothing happens, then puts one document on one more connection and notes when its answer and when
 * each watcher's change is there. All watchers of a round must get the same bytes, once, and they must name the
 * document's key (-a: they need not, for bench/hub). Times count from the moment the write is sent. -o keeps the bytes of the
 * first change for bench/hub. Prints one line of JSON.
 */
#include "fastcgi.h"
#include "http.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { CHANGE_MOST = 1024, BATCH = 256, ROUNDS_MOST = 1000, ROUND_SECONDS = 20 };

enum chunk { CHUNK_SIZE, CHUNK_EXTENSION, CHUNK_DATA, CHUNK_END };

struct watcher {
    struct conn conn;
    char text[CHANGE_MOST]; /* a change as far as it has come */
    size_t text_len;
    enum chunk chunk;
    size_t chunk_left;
    int64_t got_ns; /* when this round's change was there; 0: not yet */
};

static struct {
    struct options options;
    struct kind *watching; /* options.load.kinds[0] */
    struct kind *writing;
    bool streams;
    bool any;
    const char *keep;
    unsigned gap_ms;
    char since[24]; /* a number, or `now` */
    int epoll;
    struct watcher *watchers;
    struct conn writer;
    int64_t now_ns; /* of what is being received */

    uint32_t key;    /* of this round's document */
    bool written;    /* … and it was sent */
    int64_t start_ns;
    int64_t answered_ns;
    unsigned got;
    char change[CHANGE_MOST]; /* what the first of this round got */
    size_t change_len;
    uint64_t wrong;
} run = {.gap_ms = 300, .since = "now"};

static void wrong(const char *what)
{
    if (run.wrong++ < 5)
        (void)fprintf(stderr, "watch: %s, document %08u\n", what, run.key);
}

/* ---- what a watcher receives ---- */

/* One whole change: the same for all, with the document's key, once, and not before the write. */
static void take_change(struct watcher *watcher, const char *bytes, size_t len)
{
    char digits[KEY_DIGITS];

    work_digits(digits, run.key);
    if (!run.written)
        wrong("a change before it was made");
    else if (watcher->got_ns != 0)
        wrong("a change twice");
    else if (!run.any && memmem(bytes, len, digits, KEY_DIGITS) == NULL)
        wrong("a change of something else");
    else if (run.got > 0 && (len != run.change_len || memcmp(bytes, run.change, len) != 0))
        wrong("not the bytes that another watcher got");
    if (run.got == 0) {
        memcpy(run.change, bytes, len);
        run.change_len = len;
    }
    if (watcher->got_ns == 0)
        run.got++;
    watcher->got_ns = run.now_ns;
}

/* Takes what is complete from a stream: blocks end with an empty line; comments and `retry:` are no changes. */
static void take_blocks(struct watcher *watcher)
{
    char *end;

    while ((end = memmem(watcher->text, watcher->text_len, "\n\n", 2)) != NULL) {
        size_t len = (size_t)(end + 2 - watcher->text);
        if (watcher->text[0] != ':' && strncmp(watcher->text, "retry:", 6) != 0)
            take_change(watcher, watcher->text, len);
        watcher->text_len -= len;
        memmove(watcher->text, watcher->text + len, watcher->text_len);
    }
}

static void take_text(struct watcher *watcher, const char *bytes, size_t len)
{
    if (len > sizeof watcher->text - watcher->text_len)
        die("a change of more than %d bytes", CHANGE_MOST);
    memcpy(watcher->text + watcher->text_len, bytes, len);
    watcher->text_len += len;
    if (run.streams)
        take_blocks(watcher);
}

static unsigned hex(char digit)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = strchr(digits, digit | 0x20);

    if (at == NULL)
        die("a malformed chunk");
    return (unsigned)(at - digits);
}

/* RFC 9112, section 7.1. The last chunk is empty; nothing is done about it, the stream's end is seen at the socket. */
static void take_chunks(struct watcher *watcher, const char *bytes, size_t len)
{
    while (len > 0) {
        size_t part = 1;

        if (watcher->chunk == CHUNK_DATA) {
            part = len < watcher->chunk_left ? len : watcher->chunk_left;
            take_text(watcher, bytes, part);
            watcher->chunk_left -= part;
            if (watcher->chunk_left == 0)
                watcher->chunk = CHUNK_END;
        } else if (watcher->chunk == CHUNK_END) {
            if (*bytes == '\n')
                watcher->chunk = CHUNK_SIZE;
        } else if (*bytes == '\n') {
            watcher->chunk = watcher->chunk_left > 0 ? CHUNK_DATA : CHUNK_END;
        } else if (*bytes == ';' || *bytes == '\r') {
            watcher->chunk = CHUNK_EXTENSION;
        } else if (watcher->chunk == CHUNK_SIZE) {
            watcher->chunk_left = watcher->chunk_left * 16 + hex(*bytes);
        }
        bytes += part;
        len -= part;
    }
}

static void take_body(struct answer *answer, const char *bytes, size_t len)
{
    struct watcher *watcher =
        (struct watcher *)(void *)((char *)answer - offsetof(struct watcher, conn) - offsetof(struct conn, answer));

    if (answer->chunked)
        take_chunks(watcher, bytes, len);
    else
        take_text(watcher, bytes, len);
}

/* ---- connections ---- */

static enum outcome receive(struct conn *conn)
{
    static char buffer[65536];
    ssize_t got = recv(conn->fd, buffer, sizeof buffer, 0);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return MORE;
    if (got <= 0)
        die("the server closed a connection: %s", got < 0 ? strerror(errno) : "end of stream");
    run.now_ns = now_ns();
    return run.options.protocol->take(conn, buffer, (size_t)got);
}

/* Sends a request whole; it is small enough for any socket's buffer. */
static void request(struct conn *conn, const struct kind *kind, uint32_t key)
{
    conn->kind = kind;
    conn->key = key;
    answer_begin(&conn->answer, &run.options.load, kind, key);
    run.options.protocol->begin(conn);
    for (size_t i = 0; i < kind->marks_len; i++)
        work_digits(kind->bytes + kind->marks[i], key);
    if (send(conn->fd, kind->bytes, kind->bytes_len, MSG_NOSIGNAL) != (ssize_t)kind->bytes_len)
        die("a request could not be sent: %s", strerror(errno));
}

static void begin_to_watch(struct watcher *watcher)
{
    watcher->text_len = 0;
    watcher->chunk = CHUNK_SIZE;
    watcher->chunk_left = 0;
    request(&watcher->conn, run.watching, 0);
    watcher->conn.answer.body = take_body;
}

static void add(struct conn *conn, void *tag)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = tag};

    if (fcntl(conn->fd, F_SETFL, O_NONBLOCK) != 0 || epoll_ctl(run.epoll, EPOLL_CTL_ADD, conn->fd, &event) != 0)
        die("%s", strerror(errno));
}

static void render(struct kind *kind)
{
    free(kind->bytes);
    kind->marks_len = 0;
    run.options.protocol->render(kind, &run.options.load);
}

static void render_watching(void)
{
    struct kind *kind = run.watching;

    (void)snprintf(kind->path, sizeof kind->path, "/changes?prefix=watched/&since=%s%s", run.since,
                   run.streams ? "" : "&wait=60");
    render(kind);
}

/* Opens all, one after the other; a stream has sent its head before the next is opened. */
static void open_all(void)
{
    unsigned len = run.options.connections;

    run.watchers = calloc(len, sizeof *run.watchers);
    run.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (run.watchers == NULL || run.epoll < 0)
        die("cannot begin: %s", strerror(errno));
    for (unsigned i = 0; i < len; i++) {
        struct watcher *watcher = &run.watchers[i];
        watcher->conn.fd = drive_dial(&run.options);
        if (watcher->conn.fd < 0)
            die("connection %u: %s", i, strerror(errno));
        begin_to_watch(watcher);
        while (run.streams && !watcher->conn.answer.head_done)
            if (receive(&watcher->conn) != MORE)
                die("not a stream: status %u", watcher->conn.answer.status);
        if (run.streams && watcher->conn.answer.status != 200)
            die("status %u", watcher->conn.answer.status);
        add(&watcher->conn, watcher);
    }
    run.writer.fd = drive_dial(&run.options);
    if (run.writer.fd < 0)
        die("one more connection: %s", strerror(errno));
    add(&run.writer, NULL);
}

/* ---- rounds ---- */

static void writer_readable(void)
{
    enum outcome outcome = receive(&run.writer);

    if (outcome == MORE)
        return;
    if (outcome != DONE)
        die("the write was answered with status %u", run.writer.answer.status);
    run.answered_ns = run.now_ns;
}

static void watcher_readable(struct watcher *watcher)
{
    enum outcome outcome = receive(&watcher->conn);

    if (outcome == MORE)
        return;
    if (run.streams || outcome != DONE)
        die("a watcher was answered with status %u", watcher->conn.answer.status);
    take_change(watcher, watcher->text, watcher->text_len);
}

static void turn(int timeout_ms)
{
    struct epoll_event events[BATCH];
    int ready = epoll_wait(run.epoll, events, BATCH, timeout_ms);

    if (ready < 0 && errno != EINTR)
        die("epoll_wait: %s", strerror(errno));
    for (int i = 0; i < ready; i++) {
        if (events[i].data.ptr == NULL)
            writer_readable();
        else
            watcher_readable(events[i].data.ptr);
    }
}

static int by_time(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

static void report_round(void)
{
    unsigned len = run.options.connections;
    int64_t *times = malloc(len * sizeof *times);

    if (times == NULL)
        die("out of memory");
    for (unsigned i = 0; i < len; i++)
        times[i] = run.watchers[i].got_ns - run.start_ns;
    qsort(times, len, sizeof *times, by_time);
    (void)printf("%s{\"answered_us\":%.1f,\"first_us\":%.1f,\"median_us\":%.1f,\"last_us\":%.1f}", run.key > 0 ? "," : "",
                 (double)(run.answered_ns - run.start_ns) / 1000, (double)times[0] / 1000, (double)times[len / 2] / 1000,
                 (double)times[len - 1] / 1000);
    free(times);
}

static void quiet(void)
{
    int64_t until_ns = now_ns() + (int64_t)run.gap_ms * 1000000;
    int64_t left_ns;

    run.written = false;
    while ((left_ns = until_ns - now_ns()) > 0)
        turn((int)(left_ns / 1000000) + 1);
}

static void round_once(void)
{
    unsigned len = run.options.connections;

    quiet();
    for (unsigned i = 0; i < len; i++)
        run.watchers[i].got_ns = 0;
    run.got = 0;
    run.answered_ns = 0;
    run.written = true;
    run.start_ns = now_ns();
    request(&run.writer, run.writing, run.key);
    while (run.got < len || run.answered_ns == 0) {
        turn(1000);
        if (now_ns() - run.start_ns > (int64_t)ROUND_SECONDS * 1000000000)
            die("only %u of %u watchers got the change in %d s", run.got, len, ROUND_SECONDS);
    }
    report_round();
}

/* Where the next requests continue: what the answer says. */
static void park_again(void)
{
    static const char name[] = "\"next\":";
    const char *next = memmem(run.change, run.change_len, name, sizeof name - 1);

    if (next == NULL)
        die("no \"next\" in the answer: %.*s", (int)run.change_len, run.change);
    (void)snprintf(run.since, sizeof run.since, "%llu", strtoull(next + sizeof name - 1, NULL, 10));
    render_watching();
    for (unsigned i = 0; i < run.options.connections; i++)
        begin_to_watch(&run.watchers[i]);
}

static void keep_change(void)
{
    FILE *file = fopen(run.keep, "wb");

    if (file == NULL || fwrite(run.change, 1, run.change_len, file) != run.change_len || fclose(file) != 0)
        die("%s: %s", run.keep, strerror(errno));
}

static void rounds(unsigned count)
{
    (void)printf("{\"watchers\":%u,\"rounds\":[", run.options.connections);
    for (run.key = 0; run.key < count; run.key++) {
        round_once();
        if (run.key == 0 && run.keep != NULL)
            keep_change();
        if (!run.streams && run.key + 1 < count)
            park_again();
    }
    run.key = count - 1;
    quiet(); /* nothing may come twice */
    (void)printf("],\"change_bytes\":%zu,\"wrong\":%llu}\n", run.change_len, (unsigned long long)run.wrong);
}

/* ---- command line ---- */

static void usage(FILE *to)
{
    (void)fputs("usage: watch -m sse|poll [-c WATCHERS] [-n ROUNDS] [-g GAP_MS] [-s SINCE] [-o FILE] [-a] [-H LINE]...\n"
                "             SOCKET | ADDRESS:PORT\n",
                to);
}

static bool set_own(int letter, const char *value)
{
    switch (letter) {
    case 'm':
        run.streams = strcmp(value, "sse") == 0;
        return run.streams || strcmp(value, "poll") == 0;
    case 'g':
        run.gap_ms = (unsigned)parse_number("-g", value, 0, 10000);
        return true;
    case 's':
        (void)snprintf(run.since, sizeof run.since, "%llu",
                       (unsigned long long)parse_number("-s", value, 0, INT64_MAX));
        return true;
    case 'o':
        run.keep = value;
        return true;
    case 'a':
        run.any = true;
        return true;
    default:
        return false;
    }
}

static void set_target(char *target)
{
    char *colon = strrchr(target, ':');

    if (colon == NULL) {
        run.options.protocol = &fastcgi;
        fastcgi_address(&run.options, target);
        return;
    }
    *colon = '\0';
    run.options.protocol = &http;
    http_bare = true;
    http_address(&run.options, target, colon + 1);
}

int main(int argc, char **argv)
{
    static char accept[] = "Accept: text/event-stream";
    int letter;

    options_init(&run.options);
    run.options.connections = 5000;
    run.options.count = 5;
    while ((letter = getopt(argc, argv, "m:g:s:o:ac:n:H:")) != -1) {
        if (!set_own(letter, optarg) && !options_set(&run.options, letter, optarg)) {
            usage(stderr);
            return 2;
        }
    }
    if (argc - optind != 1 || run.options.count > ROUNDS_MOST) {
        usage(stderr);
        return 2;
    }
    set_target(argv[optind]);
    work_add(&run.options.load, "GET /changes 200 -");
    work_add(&run.options.load, "PUT /docs/watched/{} 201,204 64");
    run.watching = &run.options.load.kinds[0];
    run.writing = &run.options.load.kinds[1];
    if (run.streams)
        (void)options_set(&run.options, 'H', accept);
    options_check(&run.options);
    render_watching();
    open_all();
    rounds((unsigned)run.options.count);
    return run.wrong == 0 ? 0 : 1;
}
