/*
 * fcgiload: FastCGI clients that speak to hanji's socket directly, without nginx.
 *
 *   fcgiload load -r 'GET /docs/bench/{} 200 64' -k 1000 -c 8 -n 5000 SOCKET
 *       drives load like `load` does (drive.h), for counting instructions and for profiling
 *   fcgiload hold -c 10000 [-r 'GET …'] SOCKET
 *       opens kept connections, makes one request on each if one is given, prints a line of JSON,
 *       holds them idle until stdin ends or SIGTERM, then reports how many the server had closed
 *
 * The parameters are those that nginx sends with the configuration in nginx-conf/. Records follow
 * the FastCGI specification 1.0, sections 3.3 to 5.5; request id 1, FCGI_KEEP_CONN set.
 */
#include "drive.h"
#include "util.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    FCGI_BEGIN_REQUEST = 1,
    FCGI_END_REQUEST = 3,
    FCGI_PARAMS = 4,
    FCGI_STDIN = 5,
    FCGI_STDOUT = 6,
    FCGI_STDERR = 7,
    FCGI_UNKNOWN_TYPE = 11,
    RECORD_MOST = 32768, /* content of one record we send */
};

/* ---- sending ---- */

static void add_record_head(struct text *text, int type, size_t len)
{
    const unsigned char head[8] = {1, (unsigned char)type, 0, 1, (unsigned char)(len >> 8),
                                   (unsigned char)len, 0, 0};
    text_add(text, head, sizeof head);
}

static void add_length(struct text *text, size_t len)
{
    if (len < 128) {
        const unsigned char one[1] = {(unsigned char)len};
        text_add(text, one, sizeof one);
    } else {
        const unsigned char four[4] = {(unsigned char)(0x80 | (len >> 24)),
                                       (unsigned char)(len >> 16), (unsigned char)(len >> 8),
                                       (unsigned char)len};
        text_add(text, four, sizeof four);
    }
}

static void add_param(struct text *text, const char *name, const char *value)
{
    add_length(text, strlen(name));
    add_length(text, strlen(value));
    text_add(text, name, strlen(name));
    text_add(text, value, strlen(value));
}

/* "Authorization: x" becomes HTTP_AUTHORIZATION=x. */
static void add_header_param(struct text *text, const char *header)
{
    char name[128] = "HTTP_";
    size_t len = strcspn(header, ":");

    if (len > sizeof name - 6)
        die("header name too long: %s", header);
    for (size_t i = 0; i < len; i++)
        name[5 + i] = header[i] == '-' ? '_' : (char)toupper((unsigned char)header[i]);
    add_param(text, name, header + len + 2);
}

/* The path goes first, so that its place in the record is known. */
static void add_params(struct text *text, struct kind *kind, const struct workload *load)
{
    static const char name[] = "DOCUMENT_URI";
    char path[sizeof kind->path + KEY_DIGITS];
    char length[24];
    const char *hole = strstr(kind->path, "{}");
    const char *query = strchr(kind->path, '?');
    size_t len = strlen(kind->path) + (hole != NULL ? KEY_DIGITS - 2 : 0);

    if (query != NULL && hole != NULL)
        die("no query with {} over FastCGI: %s", kind->path);
    if (query != NULL) {
        (void)snprintf(path, sizeof path, "%.*s", (int)(query - kind->path), kind->path);
        add_param(text, name, path);
    } else {
        add_length(text, strlen(name));
        add_length(text, len);
        text_add(text, name, strlen(name));
        text_add_path(text, kind);
    }
    add_param(text, "REQUEST_METHOD", kind->method);
    if (query != NULL)
        add_param(text, "QUERY_STRING", query + 1);
    if (kind->sends) {
        (void)snprintf(length, sizeof length, "%zu", kind->size);
        add_param(text, "CONTENT_TYPE",
                  kind->sent != NULL ? "application/json" : "application/octet-stream");
        add_param(text, "CONTENT_LENGTH", length);
    }
    add_param(text, "REQUEST_ID", "0123456789abcdef0123456789abcdef");
    add_param(text, "REMOTE_ADDR", "127.0.0.1");
    add_param(text, "HTTP_HOST", "127.0.0.1");
    add_param(text, "HTTP_PROXY", "");
    add_param(text, "HTTP_USER_AGENT", "hanji-bench/1");
    add_param(text, "HTTP_ACCEPT", "*/*");
    for (size_t i = 0; i < load->headers_len; i++)
        add_header_param(text, load->headers[i]);
}

/* STDIN records; digits of the key are expected in the first, whole. */
static void add_stdin(struct text *text, struct kind *kind, const struct workload *load)
{
    struct text body = {0};
    size_t first = kind->marks_len;

    text_add_body(&body, kind, load);
    if (kind->marks_len > first)
        kind->marks[first] += text->len + 8;
    for (size_t at = 0; at < body.len;) {
        size_t len = body.len - at < RECORD_MOST ? body.len - at : RECORD_MOST;
        add_record_head(text, FCGI_STDIN, len);
        text_add(text, body.bytes + at, len);
        at += len;
    }
    free(body.bytes);
    add_record_head(text, FCGI_STDIN, 0);
}

static void render(struct kind *kind, const struct workload *load)
{
    static const unsigned char begin_body[8] = {0, 1 /* responder */, 1 /* keep */};
    struct text text = {0};
    struct text params = {0};

    add_record_head(&text, FCGI_BEGIN_REQUEST, sizeof begin_body);
    text_add(&text, begin_body, sizeof begin_body);
    add_params(&params, kind, load);
    if (params.len > RECORD_MOST)
        die("parameters too long");
    add_record_head(&text, FCGI_PARAMS, params.len);
    for (size_t i = 0; i < kind->marks_len; i++)
        kind->marks[i] += text.len;
    text_add(&text, params.bytes, params.len);
    free(params.bytes);
    add_record_head(&text, FCGI_PARAMS, 0);
    add_stdin(&text, kind, load);
    kind->bytes = text.bytes;
    kind->bytes_len = text.len;
}

/* ---- receiving ---- */

static void begin(struct conn *conn)
{
    memset(&conn->record, 0, sizeof conn->record);
}

/* Takes a complete record head; false when the record has no place here. */
static bool take_record_head(struct record *record)
{
    unsigned type = record->head[1];

    record->content_left = (size_t)record->head[4] << 8 | record->head[5];
    record->padding_left = record->head[6];
    if (record->head[0] != 1 || record->ended)
        return type == FCGI_UNKNOWN_TYPE; /* a draining server's farewell may follow the end */
    return (type == FCGI_STDOUT || type == FCGI_STDERR || type == FCGI_END_REQUEST) &&
           record->head[2] == 0 && record->head[3] == 1 &&
           (type != FCGI_END_REQUEST || record->content_left == 8);
}

/* Takes content and padding of the current record; how many bytes it used. 0: malformed. */
static size_t take_content(struct conn *conn, const char *bytes, size_t len)
{
    struct record *record = &conn->record;
    size_t part;

    if (record->content_left == 0) {
        part = len < record->padding_left ? len : record->padding_left;
        record->padding_left -= part;
        return part;
    }
    part = len < record->content_left ? len : record->content_left;
    if (record->head[1] == FCGI_STDOUT && answer_feed(&conn->answer, bytes, part) != MORE)
        return 0;
    if (record->head[1] == FCGI_END_REQUEST) {
        size_t at = 8 - record->content_left; /* byte 4 is the protocol status, 0 "complete" */
        if (at <= 4 && at + part > 4 && bytes[4 - at] != 0)
            return 0;
    }
    record->content_left -= part;
    return part;
}

static enum outcome take(struct conn *conn, const char *bytes, size_t len)
{
    struct record *record = &conn->record;

    while (len > 0) {
        size_t part;

        if (record->head_len < sizeof record->head) {
            part = sizeof record->head - record->head_len;
            part = len < part ? len : part;
            memcpy(record->head + record->head_len, bytes, part);
            record->head_len += part;
            if (record->head_len == sizeof record->head && !take_record_head(record))
                return BAD_PROTOCOL;
        } else {
            part = take_content(conn, bytes, len);
            if (part == 0)
                return BAD_PROTOCOL;
        }
        if (record->head_len == sizeof record->head && record->content_left == 0 &&
            record->padding_left == 0) {
            record->ended = record->ended || record->head[1] == FCGI_END_REQUEST;
            record->head_len = 0;
        }
        bytes += part;
        len -= part;
    }
    if (!record->ended)
        return MORE;
    return answer_whole(&conn->answer) ? answer_judge(&conn->answer) : BAD_PROTOCOL;
}

static const struct protocol fastcgi = {.render = render, .begin = begin, .take = take};

/* ---- holding idle connections ---- */

/* One request on a blocking connection; its judgement. */
static enum outcome request_once(struct options *options, struct conn *conn)
{
    char buffer[65536];
    enum outcome outcome;

    conn->kind = work_next(&options->load, &conn->key);
    conn->out = malloc(conn->kind->bytes_len);
    if (conn->out == NULL)
        die("out of memory");
    memcpy(conn->out, conn->kind->bytes, conn->kind->bytes_len);
    for (size_t i = 0; i < conn->kind->marks_len; i++)
        work_digits(conn->out + conn->kind->marks[i], conn->key);
    answer_begin(&conn->answer, &options->load, conn->kind, conn->key);
    begin(conn);
    outcome = send(conn->fd, conn->out, conn->kind->bytes_len, MSG_NOSIGNAL) ==
                      (ssize_t)conn->kind->bytes_len
                  ? MORE
                  : BAD_PROTOCOL;
    while (outcome == MORE) {
        ssize_t got = recv(conn->fd, buffer, sizeof buffer, 0);
        outcome = got > 0 ? take(conn, buffer, (size_t)got) : BAD_PROTOCOL;
    }
    free(conn->out);
    return outcome;
}

static void wait_for_end(void)
{
    sigset_t signals;
    struct pollfd wait[2] = {{.fd = 0, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    char byte;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    wait[1].fd = signalfd(-1, &signals, SFD_CLOEXEC);
    for (;;) {
        if (poll(wait, 2, -1) < 0 && errno != EINTR)
            die("poll: %s", strerror(errno));
        if (wait[1].revents != 0 || (wait[0].revents != 0 && read(0, &byte, 1) <= 0))
            return;
    }
}

static unsigned count_closed(const int *fds, unsigned len)
{
    unsigned closed = 0;
    char byte;

    for (unsigned i = 0; i < len; i++)
        if (recv(fds[i], &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN)
            closed++;
    return closed;
}

static int hold(struct options *options, bool with_request)
{
    int *fds = calloc(options->connections, sizeof *fds);
    static struct conn conn;
    unsigned wrong = 0;
    unsigned closed;

    if (fds == NULL)
        die("out of memory");
    for (unsigned i = 0; i < options->connections; i++) {
        fds[i] = drive_dial(options);
        if (fds[i] < 0)
            die("connection %u: %s", i, strerror(errno));
        conn.fd = fds[i];
        if (with_request && request_once(options, &conn) != DONE)
            wrong++;
    }
    (void)printf("{\"held\":%u,\"wrong\":%u}\n", options->connections, wrong);
    (void)fflush(stdout);
    wait_for_end();
    closed = count_closed(fds, options->connections);
    free(fds);
    (void)printf("{\"held\":%u,\"closed_by_server\":%u}\n", options->connections, closed);
    return wrong == 0 && closed == 0 ? 0 : 1;
}

/* ---- command line ---- */

static void usage(FILE *to)
{
    (void)fprintf(to,
                  "usage: fcgiload load [OPTION]... SOCKET\n"
                  "       fcgiload hold [-c N] [OPTION]... SOCKET\n%s",
                  options_help);
}

static void set_address(struct options *options, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof address.sun_path)
        die("SOCKET: path too long: %s", path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    memcpy(&options->address, &address, sizeof address);
    options->address_len = sizeof address;
}

int main(int argc, char **argv)
{
    static struct options options;
    bool holding = argc > 1 && strcmp(argv[1], "hold") == 0;
    bool with_request;
    int letter;

    if (argc < 2 || (!holding && strcmp(argv[1], "load") != 0)) {
        usage(argc > 1 && strcmp(argv[1], "-h") == 0 ? stdout : stderr);
        return argc > 1 && strcmp(argv[1], "-h") == 0 ? 0 : 2;
    }
    options_init(&options);
    options.protocol = &fastcgi;
    optind = 2;
    while ((letter = getopt(argc, argv, OPTIONS_LETTERS)) != -1) {
        if (!options_set(&options, letter, optarg)) {
            usage(stderr);
            return 2;
        }
    }
    if (argc - optind != 1) {
        usage(stderr);
        return 2;
    }
    set_address(&options, argv[optind]);
    with_request = options.load.kinds_len > 0;
    if (holding && !with_request)
        work_add(&options.load, "GET /health 200 -"); /* never sent */
    options_check(&options);
    return holding ? hold(&options, with_request) : drive(&options);
}
