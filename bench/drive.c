#include "drive.h"

#include "hist.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { BATCH = 256, RECEIVE_SIZE = 256 * 1024, STATUS_MOST = 600 };

/* More errors than this end the run: there is nothing left to measure. */
enum { ERRORS_MOST = 1000 };

enum error {
    ERROR_CONNECT,
    ERROR_WRITE,
    ERROR_READ,
    ERROR_CLOSED, /* end of stream instead of an answer */
    ERROR_TIMEOUT,
    ERROR_STATUS,
    ERROR_LENGTH,
    ERROR_BODY,
    ERROR_PROTOCOL,
    ERRORS_LEN,
};

static const char *const error_names[ERRORS_LEN] = {
    [ERROR_CONNECT] = "connect", [ERROR_WRITE] = "write",   [ERROR_READ] = "read",
    [ERROR_CLOSED] = "closed",   [ERROR_TIMEOUT] = "timeout", [ERROR_STATUS] = "status",
    [ERROR_LENGTH] = "length",   [ERROR_BODY] = "body",     [ERROR_PROTOCOL] = "protocol",
};

struct run {
    struct options *options;
    int epoll;
    struct conn *conns;
    struct conn **idle; /* a stack */
    size_t idle_len;
    unsigned busy;

    int64_t begin_ns; /* counting starts */
    int64_t end_ns;   /* nothing is sent after; INT64_MAX: until `count` */
    int64_t last_ns;  /* the last counted answer */
    int64_t due_ns;   /* open loop: the next request's due time */
    int64_t interval_ns;
    int64_t sweep_ns;

    uint64_t issued;
    uint64_t answered; /* rightly, in all */
    uint64_t compared;
    uint64_t bytes;    /* received while counting */
    uint64_t reconnects;
    uint64_t unsent;
    uint64_t errors[ERRORS_LEN];
    uint64_t errors_total;
    uint64_t statuses[STATUS_MOST];
    struct hist hist; /* answers while counting */
};

static char receive_buffer[RECEIVE_SIZE];

/* ---- connections ---- */

int drive_dial(const struct options *options)
{
    int fd = socket(options->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&options->address, options->address_len) != 0) {
        (void)close(fd);
        return -1;
    }
    if (options->address.ss_family == AF_INET)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void watch(struct run *run, struct conn *conn, bool write, int operation)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};

    if (write)
        event.events |= EPOLLOUT;
    if (epoll_ctl(run->epoll, operation, conn->fd, &event) != 0)
        die("epoll_ctl: %s", strerror(errno));
    conn->wants_write = write;
}

static bool open_conn(struct run *run, struct conn *conn)
{
    conn->fd = drive_dial(run->options);
    if (conn->fd < 0)
        return false;
    if (fcntl(conn->fd, F_SETFL, O_NONBLOCK) != 0)
        die("fcntl: %s", strerror(errno));
    watch(run, conn, false, EPOLL_CTL_ADD);
    return true;
}

static void close_conn(struct conn *conn)
{
    if (conn->fd >= 0)
        (void)close(conn->fd);
    conn->fd = -1;
}

/* ---- one request ---- */

static void set_idle(struct run *run, struct conn *conn)
{
    if (conn->busy)
        run->busy--;
    conn->busy = false;
    run->idle[run->idle_len++] = conn;
}

/* Counts an error, showing the first of each kind; ends the program when there are too many. */
static void count_error(struct run *run, const struct conn *conn, enum error error)
{
    run->errors_total++;
    if (run->errors[error]++ > 0 && run->errors_total < ERRORS_MOST)
        return;
    (void)fprintf(stderr, "hanji-bench: %s: %s", run->options->label, error_names[error]);
    if (conn->kind != NULL)
        (void)fprintf(stderr, " (%s %s, key %u, status %u, length %llu)", conn->kind->method,
                      conn->kind->path, conn->key, conn->answer.status,
                      (unsigned long long)conn->answer.length);
    (void)fputc('\n', stderr);
    if (run->errors_total >= ERRORS_MOST)
        die("%s: too many errors", run->options->label);
}

/* The connection is of no use any more. */
static void lose(struct run *run, struct conn *conn, enum error error)
{
    count_error(run, conn, error);
    close_conn(conn);
    set_idle(run, conn);
}

static void flush(struct run *run, struct conn *conn)
{
    while (conn->sent < conn->kind->bytes_len) {
        ssize_t sent = send(conn->fd, conn->out + conn->sent, conn->kind->bytes_len - conn->sent,
                            MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN) {
            lose(run, conn, ERROR_WRITE);
            return;
        }
        if (sent < 0) {
            if (!conn->wants_write)
                watch(run, conn, true, EPOLL_CTL_MOD);
            return;
        }
        conn->sent += (size_t)sent;
    }
    if (conn->wants_write)
        watch(run, conn, false, EPOLL_CTL_MOD);
}

static void start(struct run *run, struct conn *conn, int64_t start_ns)
{
    struct options *options = run->options;

    conn->kind = work_next(&options->load, &conn->key);
    conn->start_ns = start_ns;
    conn->busy = true;
    conn->sent = 0;
    run->busy++;
    run->issued++;
    memcpy(conn->out, conn->kind->bytes, conn->kind->bytes_len);
    for (size_t i = 0; i < conn->kind->marks_len; i++)
        work_digits(conn->out + conn->kind->marks[i], conn->key);
    answer_begin(&conn->answer, &options->load, conn->kind, conn->key);
    if (options->every > 1 && run->issued % options->every != 0)
        conn->answer.compare = false;
    options->protocol->begin(conn);
    if (conn->fd < 0) {
        run->reconnects++;
        if (!open_conn(run, conn)) {
            lose(run, conn, ERROR_CONNECT);
            return;
        }
    }
    flush(run, conn);
}

/* A complete answer, right or wrong; the connection stays. */
static void finish(struct run *run, struct conn *conn, enum outcome outcome, int64_t now)
{
    if (conn->answer.status < STATUS_MOST)
        run->statuses[conn->answer.status]++;
    if (outcome == DONE) {
        run->answered++;
        if (conn->answer.compare)
            run->compared++;
        if (now >= run->begin_ns && now <= run->end_ns) {
            hist_add(&run->hist, now - conn->start_ns);
            run->last_ns = now;
        }
    } else {
        static const enum error errors[] = {[BAD_STATUS] = ERROR_STATUS,
                                            [BAD_LENGTH] = ERROR_LENGTH,
                                            [BAD_BODY] = ERROR_BODY};
        count_error(run, conn, errors[outcome]);
    }
    if (conn->answer.close)
        close_conn(conn);
    set_idle(run, conn);
}

/* ---- the loop ---- */

static bool may_send(const struct run *run, int64_t now)
{
    return now < run->end_ns &&
           (run->options->count == 0 || run->issued < run->options->count);
}

/* Starts what is to be started now, on idle connections. A connection that was just lost waits for
 * the next round, so that a server that is down does not make us spin. */
static void dispatch(struct run *run, int64_t now)
{
    size_t rounds = run->idle_len;

    while (rounds-- > 0 && run->idle_len > 0 && may_send(run, now)) {
        int64_t start_ns = now_ns();
        if (run->interval_ns > 0) {
            if (run->due_ns > start_ns)
                return;
            start_ns = run->due_ns;
            run->due_ns += run->interval_ns;
        }
        start(run, run->idle[--run->idle_len], start_ns);
    }
}

static void receive(struct run *run, struct conn *conn)
{
    ssize_t got = recv(conn->fd, receive_buffer, sizeof receive_buffer, 0);
    enum outcome outcome;
    int64_t now;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (!conn->busy) { /* between requests a server may close; it has nothing to say */
        if (got > 0)
            count_error(run, conn, ERROR_PROTOCOL);
        close_conn(conn);
        return;
    }
    if (got <= 0) {
        lose(run, conn, got < 0 ? ERROR_READ : ERROR_CLOSED);
        return;
    }
    now = now_ns();
    if (now >= run->begin_ns)
        run->bytes += (uint64_t)got;
    outcome = run->options->protocol->take(conn, receive_buffer, (size_t)got);
    if (outcome == BAD_PROTOCOL) {
        lose(run, conn, ERROR_PROTOCOL);
        return;
    }
    if (outcome == MORE)
        return;
    finish(run, conn, outcome, now);
}

/* Once a second: requests that got no answer in time. */
static void sweep(struct run *run, int64_t now)
{
    int64_t limit_ns = (int64_t)(run->options->timeout * 1e9);

    if (now < run->sweep_ns)
        return;
    run->sweep_ns = now + 1000000000;
    for (unsigned i = 0; i < run->options->connections; i++) {
        struct conn *conn = &run->conns[i];
        if (conn->busy && now - conn->start_ns > limit_ns)
            lose(run, conn, ERROR_TIMEOUT);
    }
}

/* How long the loop may sleep: to the next due time, at most 100 ms. */
static struct timespec nap(const struct run *run, int64_t now)
{
    int64_t wait_ns = 100000000;

    if (run->interval_ns > 0 && run->idle_len > 0 && may_send(run, now) &&
        run->due_ns - now < wait_ns)
        wait_ns = run->due_ns > now ? run->due_ns - now : 0;
    return (struct timespec){.tv_sec = 0, .tv_nsec = wait_ns};
}

/* The other end of stdin was closed: nothing is sent any more. */
static void end_of_stdin(struct run *run)
{
    char bytes[64];

    if (read(STDIN_FILENO, bytes, sizeof bytes) > 0)
        return;
    (void)epoll_ctl(run->epoll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
    if (now_ns() < run->end_ns)
        run->end_ns = now_ns();
}

static void loop(struct run *run)
{
    struct epoll_event events[BATCH];
    int64_t now = now_ns();

    while (may_send(run, now) || run->busy > 0) {
        struct timespec timeout;
        int ready;

        dispatch(run, now);
        timeout = nap(run, now_ns());
        ready = epoll_pwait2(run->epoll, events, BATCH, &timeout, NULL);
        if (ready < 0 && errno != EINTR)
            die("epoll_wait: %s", strerror(errno));
        for (int i = 0; i < ready; i++) {
            struct conn *conn = events[i].data.ptr;
            if (conn == NULL) {
                end_of_stdin(run);
                continue;
            }
            if (conn->fd >= 0 && conn->wants_write && (events[i].events & EPOLLOUT) != 0)
                flush(run, conn);
            if (conn->fd >= 0 && (events[i].events & ~(uint32_t)EPOLLOUT) != 0)
                receive(run, conn);
        }
        now = now_ns();
        sweep(run, now);
    }
    if (run->interval_ns > 0 && run->options->count == 0 && run->end_ns > run->due_ns)
        run->unsent = (uint64_t)((run->end_ns - run->due_ns) / run->interval_ns);
}

/* ---- begin and report ---- */

static void prepare(struct run *run)
{
    struct options *options = run->options;
    size_t largest = 1;

    for (size_t i = 0; i < options->load.kinds_len; i++)
        if (options->load.kinds[i].bytes_len > largest)
            largest = options->load.kinds[i].bytes_len;
    run->epoll = epoll_create1(EPOLL_CLOEXEC);
    run->conns = calloc(options->connections, sizeof *run->conns);
    run->idle = calloc(options->connections, sizeof(struct conn *));
    if (run->epoll < 0 || run->conns == NULL || run->idle == NULL)
        die("cannot begin: %s", strerror(errno));
    if (options->until_end) {
        struct epoll_event event = {.events = EPOLLIN};
        if (epoll_ctl(run->epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event) != 0)
            die("-E: stdin: %s", strerror(errno));
    }
    for (unsigned i = 0; i < options->connections; i++) {
        struct conn *conn = &run->conns[i];
        conn->out = malloc(largest);
        if (conn->out == NULL)
            die("out of memory");
        if (!open_conn(run, conn))
            die("cannot connect: %s", strerror(errno));
        set_idle(run, conn);
    }
}

static void report_errors(const struct run *run)
{
    const char *comma = "";

    (void)printf("\"errors_total\":%llu,\"errors\":{", (unsigned long long)run->errors_total);
    for (int i = 0; i < ERRORS_LEN; i++) {
        if (run->errors[i] > 0) {
            (void)printf("%s\"%s\":%llu", comma, error_names[i],
                         (unsigned long long)run->errors[i]);
            comma = ",";
        }
    }
    comma = "";
    (void)printf("},\"statuses\":{");
    for (int i = 0; i < STATUS_MOST; i++) {
        if (run->statuses[i] > 0) {
            (void)printf("%s\"%d\":%llu", comma, i, (unsigned long long)run->statuses[i]);
            comma = ",";
        }
    }
    (void)printf("},");
}

static void report(const struct run *run, int64_t used_cpu_ns)
{
    const struct options *options = run->options;
    int64_t end_ns = options->seconds > 0 && run->end_ns < now_ns() ? run->end_ns : run->last_ns;
    double seconds = (double)(end_ns - run->begin_ns) / 1e9;
    double total = (double)(run->issued > 0 ? run->issued : 1);
    double counted = (double)run->hist.total;

    (void)printf("{\"label\":\"%s\",\"loop\":\"%s\",\"connections\":%u,\"seconds\":%.3f,"
                 "\"requests\":%llu,\"rate\":%.1f,",
                 options->label, options->rate > 0 ? "open" : "closed", options->connections,
                 seconds, (unsigned long long)run->hist.total, seconds > 0 ? counted / seconds : 0);
    (void)printf("\"latency_us\":{\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"p99_9\":%.1f,"
                 "\"max\":%.1f,\"mean\":%.1f},",
                 hist_quantile_us(&run->hist, 0.5), hist_quantile_us(&run->hist, 0.9),
                 hist_quantile_us(&run->hist, 0.99), hist_quantile_us(&run->hist, 0.999),
                 (double)run->hist.max_ns / 1000,
                 counted > 0 ? run->hist.sum_ns / counted / 1000 : 0);
    report_errors(run);
    (void)printf("\"bytes\":%llu,\"issued\":%llu,\"answered\":%llu,\"compared\":%llu,"
                 "\"unsent\":%llu,\"reconnects\":%llu,\"cpu_us_per_request\":%.2f}\n",
                 (unsigned long long)run->bytes, (unsigned long long)run->issued,
                 (unsigned long long)run->answered, (unsigned long long)run->compared,
                 (unsigned long long)run->unsent, (unsigned long long)run->reconnects,
                 (double)used_cpu_ns / 1000 / total);
}

int drive(struct options *options)
{
    static struct run run;
    int64_t start_ns;
    int64_t start_cpu_ns;

    run.options = options;
    prepare(&run);
    (void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    start_cpu_ns = cpu_ns();
    start_ns = now_ns();
    run.begin_ns = start_ns + (int64_t)(options->warm * 1e9);
    run.end_ns = INT64_MAX;
    if (options->seconds > 0)
        run.end_ns = run.begin_ns + (int64_t)(options->seconds * 1e9);
    run.last_ns = run.begin_ns;
    run.sweep_ns = start_ns + 1000000000;
    run.due_ns = start_ns;
    if (options->rate > 0)
        run.interval_ns = (int64_t)(1e9 / options->rate);
    loop(&run);
    report(&run, cpu_ns() - start_cpu_ns);
    return run.errors_total == 0 ? 0 : 1;
}
