/*
 * fcgiload: FastCGI clients that speak to hanji's socket directly, without nginx.
 *
 *   fcgiload load -r 'GET /docs/bench/{} 200 64' -k 1000 -c 8 -n 5000 SOCKET
 *       drives load like `load` does (drive.h), for counting instructions and for profiling
 *   fcgiload hold -c 10000 [-r 'GET …'] SOCKET
 *       opens kept connections, makes one request on each if one is given, prints a line of JSON,
 *       holds them idle until stdin ends or SIGTERM, then reports how many the server had closed
 */
#include "fastcgi.h"
#include "util.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

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
    fastcgi.begin(conn);
    outcome = send(conn->fd, conn->out, conn->kind->bytes_len, MSG_NOSIGNAL) ==
                      (ssize_t)conn->kind->bytes_len
                  ? MORE
                  : BAD_PROTOCOL;
    while (outcome == MORE) {
        ssize_t got = recv(conn->fd, buffer, sizeof buffer, 0);
        outcome = got > 0 ? fastcgi.take(conn, buffer, (size_t)got) : BAD_PROTOCOL;
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
    fastcgi_address(&options, argv[optind]);
    with_request = options.load.kinds_len > 0;
    if (holding && !with_request)
        work_add(&options.load, "GET /health 200 -"); /* never sent */
    options_check(&options);
    return holding ? hold(&options, with_request) : drive(&options);
}
