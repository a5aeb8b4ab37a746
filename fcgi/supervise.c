#include "fcgi/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fcgi/errand.h"
#include "fcgi/listen.h"
#include "fcgi/log.h"

enum {
    READY_WITHIN_MS = 30000,
    KILL_AFTER_DRAIN_MS = 5000,
    PAUSE_FIRST_MS = 100,
    PAUSE_MOST_MS = 10000,
    LIVED_MS = 1000,
    COURIER_LEAVES_MS = 3000, /* that it has at the end, while its reports are still taken */
    EX_UNAVAILABLE = 69,
    EX_CANNOT_EXEC = 71,
};

static const char worker_env[] = "HANJI_WORKER_FDS";
static const char handover_env[] = "HANJI_HANDOVER";

struct worker {
    pid_t pid; /* 0: none */
    int fd;    /* socket to it, -1: none */
    bool ready;
    uint64_t started_ms;
};

struct supervisor {
    const struct supervise_config *config;
    char binary[4096]; /* path on disk, for SIGUSR2 */
    int lock, listener, control, signals;
    bool own_socket; /* we made the file, so we remove it */
    struct worker current, next, leaving;
    struct errand courier;
    bool was_ready; /* a worker has been ready */
    bool stopping;
    uint64_t kill_at_ms;  /* while stopping, or while a worker leaves */
    uint64_t start_at_ms; /* a worker is due then; 0: none */
    uint64_t end_at_ms;   /* workers are told to end then, or when the courier has left; 0: no */
    uint64_t pause_ms;
    int status;
};

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* systemd's notification protocol: one datagram (sd_notify(3)). */
static void notify(const char *text)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    if (path == NULL || strlen(path) >= sizeof address.sun_path)
        return;
    memcpy(address.sun_path, path, strlen(path));
    if (path[0] == '@')
        address.sun_path[0] = 0;
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address, len) < 0)
        log_line(LOG_WARN, "systemd cannot be told", "reason", strerror(errno), NULL);
    close(fd);
}

bool supervise_worker_fds(struct supervise_fds *fds)
{
    const char *text = getenv(worker_env);
    if (text == NULL ||
        sscanf(text, "%d,%d,%d", &fds->listener, &fds->control, &fds->supervisor) != 3)
        return false;
    unsetenv(worker_env);
    fcntl(fds->listener, F_SETFD, FD_CLOEXEC);
    fcntl(fds->control, F_SETFD, FD_CLOEXEC);
    fcntl(fds->supervisor, F_SETFD, FD_CLOEXEC);
    return true;
}

/* In the child: becomes the worker. The command word tells which process it is. */
static void exec_worker(struct supervisor *s, const char *binary, int fd)
{
    char text[64];
    static char worker[] = "worker";
    fcntl(s->listener, F_SETFD, 0);
    fcntl(s->control, F_SETFD, 0);
    fcntl(fd, F_SETFD, 0);
    snprintf(text, sizeof text, "%d,%d,%d", s->listener, s->control, fd);
    setenv(worker_env, text, 1);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("NOTIFY_SOCKET");
    s->config->argv[s->config->command_at] = worker;
    execv(binary, s->config->argv);
    log_line(LOG_ERROR, "the worker cannot be started", "binary", binary, "reason",
             strerror(errno), NULL);
    _exit(EX_CANNOT_EXEC);
}

static bool start_worker(struct supervisor *s, struct worker *w, const char *binary)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0)
        exec_worker(s, binary, pair[1]);
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return false;
    }
    *w = (struct worker){.pid = pid, .fd = pair[0], .started_ms = now_ms()};
    return true;
}

static void start_current(struct supervisor *s)
{
    s->start_at_ms = 0;
    if (start_worker(s, &s->current, "/proc/self/exe"))
        return;
    log_line(LOG_ERROR, "a worker cannot be started", "reason", strerror(errno), NULL);
    s->start_at_ms = now_ms() + PAUSE_MOST_MS;
}

static void forget(struct worker *w)
{
    if (w->fd >= 0)
        close(w->fd);
    *w = (struct worker){.fd = -1};
}

/* Becomes the binary on disk, which goes on supervising the same children. Returns when it
 * cannot. */
static void become_new(struct supervisor *s)
{
    char text[128];
    int keep[] = {s->lock, s->listener, s->control, s->current.fd, s->leaving.fd,
                  s->courier.socket};
    snprintf(text, sizeof text, "%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d", s->lock, s->listener,
             s->control, s->own_socket, (int)s->current.pid, s->current.fd, (int)s->leaving.pid,
             s->leaving.fd, s->courier.socket, s->courier.own, (int)s->courier.pid);
    setenv(handover_env, text, 1);
    for (size_t i = 0; i < sizeof keep / sizeof *keep; i++)
        if (keep[i] >= 0)
            fcntl(keep[i], F_SETFD, 0);
    execv(s->binary, s->config->argv);
    log_line(LOG_ERROR, "the supervisor stays the old one", "reason", strerror(errno), NULL);
    unsetenv(handover_env);
    for (size_t i = 0; i < sizeof keep / sizeof *keep; i++)
        if (keep[i] >= 0)
            fcntl(keep[i], F_SETFD, FD_CLOEXEC);
}

/* In the new binary: takes up what the old one left. One from before there was a courier says less;
 * what is said more than is known here must stand at the end. */
static bool resume_handover(struct supervisor *s)
{
    const char *text = getenv(handover_env);
    int own, current, leaving, courier_own = 0, courier = 0;
    if (text == NULL ||
        sscanf(text, "%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d", &s->lock, &s->listener, &s->control, &own,
               &current, &s->current.fd, &leaving, &s->leaving.fd, &s->courier.socket,
               &courier_own, &courier) < 8)
        return false;
    unsetenv(handover_env);
    int kept[] = {s->lock, s->listener, s->control, s->current.fd, s->leaving.fd,
                  s->courier.socket};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (kept[i] >= 0)
            fcntl(kept[i], F_SETFD, FD_CLOEXEC);
    s->own_socket = own != 0;
    s->current.pid = current;
    s->leaving.pid = leaving;
    s->courier.own = courier_own != 0;
    s->courier.pid = courier;
    s->courier.started_ms = now_ms();
    s->current.ready = s->was_ready = true;
    s->current.started_ms = now_ms();
    s->kill_at_ms = now_ms() + s->config->conf->drain_timeout_ms + KILL_AFTER_DRAIN_MS;
    return true;
}

static void next_is_ready(struct supervisor *s)
{
    if (s->stopping) /* it was told to end, too */
        return;
    log_line(LOG_INFO, "the new worker is ready; the old one drains", NULL);
    s->leaving = s->current;
    s->current = s->next;
    s->next = (struct worker){.fd = -1};
    s->kill_at_ms = now_ms() + s->config->conf->drain_timeout_ms + KILL_AFTER_DRAIN_MS;
    if (s->leaving.pid > 0)
        kill(s->leaving.pid, SIGTERM);
    become_new(s);
}

static void hear(struct supervisor *s, struct worker *w)
{
    char byte = 0;
    if (recv(w->fd, &byte, 1, MSG_DONTWAIT) != 1) {
        close(w->fd); /* it ended; SIGCHLD tells how */
        w->fd = -1;
        return;
    }
    if (byte != 'R' || w->ready)
        return;
    w->ready = true;
    if (w == &s->next) {
        next_is_ready(s);
        return;
    }
    if (!s->was_ready)
        notify("READY=1");
    s->was_ready = true;
}

static void describe(char *text, size_t n, int status)
{
    if (WIFSIGNALED(status))
        snprintf(text, n, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(text, n, "exit status %d", WEXITSTATUS(status));
}

/* How long to wait before the next try. Being killed from outside is nobody's fault. */
static uint64_t pause_after(struct supervisor *s, const struct worker *w, int status)
{
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (w->ready && (killed || now_ms() - w->started_ms >= LIVED_MS)) {
        s->pause_ms = 0;
        return 0;
    }
    uint64_t next = s->pause_ms * 2;
    s->pause_ms = next == 0 ? PAUSE_FIRST_MS : next < PAUSE_MOST_MS ? next : PAUSE_MOST_MS;
    return s->pause_ms;
}

static void current_ended(struct supervisor *s, int status)
{
    char how[64];
    describe(how, sizeof how, status);
    struct worker w = s->current;
    forget(&s->current);
    if (s->stopping)
        return;
    log_line(LOG_ERROR, "the worker ended", "how", how, NULL);
    if (!s->was_ready && !w.ready) {
        s->stopping = true;
        errand_stop(&s->courier);
        s->end_at_ms = now_ms() + COURIER_LEAVES_MS;
        s->status = WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : 1;
        return;
    }
    s->start_at_ms = now_ms() + pause_after(s, &w, status);
    if (s->start_at_ms <= now_ms())
        start_current(s);
}

static void end_workers(struct supervisor *s)
{
    const struct worker *all[] = {&s->current, &s->next, &s->leaving};
    s->end_at_ms = 0;
    errand_kill(&s->courier); /* losing a report only repeats a delivery */
    s->kill_at_ms = now_ms() + s->config->conf->drain_timeout_ms + KILL_AFTER_DRAIN_MS;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->pid > 0)
            kill(all[i]->pid, SIGTERM);
}

static void reap(struct supervisor *s)
{
    int status;
    pid_t pid;
    char how[64];
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == s->current.pid) {
            if (s->current.fd >= 0 && !s->current.ready)
                hear(s, &s->current); /* it may have said so just before */
            current_ended(s, status);
        } else if (pid == s->next.pid) {
            describe(how, sizeof how, status);
            if (!s->stopping)
                log_line(LOG_ERROR, "the new worker failed; the old one stays", "how", how, NULL);
            forget(&s->next);
        } else if (pid == s->leaving.pid) {
            forget(&s->leaving);
        } else if (errand_ended(&s->courier, pid, status, now_ms()) && s->end_at_ms != 0) {
            end_workers(s);
        }
    }
}

/* The courier is asked first: what it reports can still be written down. */
static void stop(struct supervisor *s)
{
    if (s->stopping)
        return;
    s->stopping = true;
    s->start_at_ms = 0;
    notify("STOPPING=1");
    s->end_at_ms = now_ms() + COURIER_LEAVES_MS;
    if (!errand_stop(&s->courier))
        end_workers(s);
}

static void hand_over(struct supervisor *s)
{
    if (s->stopping || s->next.pid > 0 || s->leaving.pid > 0) {
        log_line(LOG_WARN, "a hand-over is under way already", NULL);
        return;
    }
    log_line(LOG_INFO, "handing over to the binary on disk", "binary", s->binary, NULL);
    if (!start_worker(s, &s->next, s->binary))
        log_line(LOG_ERROR, "a worker cannot be started", "reason", strerror(errno), NULL);
}

static void take_signals(struct supervisor *s)
{
    struct signalfd_siginfo info;
    while (read(s->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            reap(s);
        else if (info.ssi_signo == SIGUSR2)
            hand_over(s);
        else if (info.ssi_signo != SIGHUP)
            stop(s);
        else if (s->current.pid > 0)
            kill(s->current.pid, SIGHUP);
    }
}

static void on_time(struct supervisor *s)
{
    uint64_t now = now_ms();
    if (s->start_at_ms != 0 && now >= s->start_at_ms)
        start_current(s);
    if (s->end_at_ms != 0 && now >= s->end_at_ms)
        end_workers(s);
    errand_time(&s->courier, now);
    if (s->next.pid > 0 && now >= s->next.started_ms + READY_WITHIN_MS) {
        log_line(LOG_ERROR, "the new worker does not get ready; it is ended", NULL);
        kill(s->next.pid, SIGKILL);
        s->next.started_ms = now; /* SIGCHLD forgets it */
    }
    if (s->kill_at_ms == 0 || now < s->kill_at_ms)
        return;
    s->kill_at_ms = 0;
    if (s->leaving.pid > 0)
        kill(s->leaving.pid, SIGKILL);
    if (s->stopping && s->current.pid > 0)
        kill(s->current.pid, SIGKILL);
    if (s->courier.asked)
        errand_kill(&s->courier);
}

static int wait_ms(const struct supervisor *s)
{
    uint64_t now = now_ms(), until = errand_due(&s->courier, now);
    if (s->start_at_ms != 0 && s->start_at_ms < until)
        until = s->start_at_ms;
    if (s->end_at_ms != 0 && s->end_at_ms < until)
        until = s->end_at_ms;
    if (s->next.pid > 0 && s->next.started_ms + READY_WITHIN_MS < until)
        until = s->next.started_ms + READY_WITHIN_MS;
    bool leaves = s->stopping || s->leaving.pid > 0 || s->courier.asked;
    if (s->kill_at_ms != 0 && leaves && s->kill_at_ms < until)
        until = s->kill_at_ms;
    if (until == UINT64_MAX)
        return -1;
    return until > now ? (int)(until - now) : 0;
}

static bool make_sockets(struct supervisor *s)
{
    const struct conf *c = s->config->conf;
    struct conf_error error;
    s->lock = listen_lock(c->database, &error); /* one server writes and checkpoints */
    s->listener = s->lock >= 0 ? listen_inherited() : -1;
    s->own_socket = s->listener < 0;
    if (s->lock >= 0 && s->own_socket)
        s->listener = listen_unix(c->socket, (unsigned)c->socket_mode, c->socket_group,
                                  (int)c->backlog, &error);
    if (s->listener >= 0)
        s->control = listen_unix(c->control, 0600, "", 64, &error);
    if (s->lock >= 0 && s->listener >= 0 && s->control >= 0)
        return true;
    log_line(LOG_ERROR, "cannot serve", "reason", error.text, NULL);
    return false;
}

/* Sends wait while it fails; everything else is served. */
static void open_courier(struct supervisor *s)
{
    struct conf_error error;
    if (!errand_open(&s->courier, s->config->conf, s->binary, &error))
        log_line(LOG_ERROR, "no courier can be started", "reason", error.text, NULL);
}

static bool take_over_signals(struct supervisor *s)
{
    static const int handled[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD, SIGUSR2};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof handled / sizeof *handled; i++)
        sigaddset(&set, handled[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    s->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return s->signals >= 0;
}

static void find_binary(struct supervisor *s)
{
    ssize_t n = readlink("/proc/self/exe", s->binary, sizeof s->binary - 1);
    s->binary[n > 0 ? n : 0] = 0;
}

static void poll_once(struct supervisor *s)
{
    struct worker *workers[] = {&s->current, &s->next, &s->leaving};
    struct pollfd fds[5] = {{.fd = s->signals, .events = POLLIN}};
    for (int i = 0; i < 3; i++)
        fds[i + 1] = (struct pollfd){.fd = workers[i]->fd, .events = POLLIN};
    fds[4] = (struct pollfd){.fd = errand_poll(&s->courier, now_ms()), .events = POLLIN};
    int n = poll(fds, 5, wait_ms(s));
    for (int i = 0; n > 0 && i < 3; i++)
        if (fds[i + 1].revents != 0 && workers[i]->fd == fds[i + 1].fd)
            hear(s, workers[i]);
    if (n > 0 && fds[4].revents != 0)
        errand_readable(&s->courier, now_ms());
    if (n > 0 && fds[0].revents != 0)
        take_signals(s);
    on_time(s);
}

int supervise_run(const struct supervise_config *config)
{
    static struct supervisor s;
    s.config = config;
    s.current.fd = s.next.fd = s.leaving.fd = s.control = s.listener = s.courier.socket = -1;
    find_binary(&s);
    if (!take_over_signals(&s))
        return EX_CANNOT_EXEC;
    if (!resume_handover(&s)) {
        if (!make_sockets(&s))
            return EX_UNAVAILABLE;
        open_courier(&s);
        start_current(&s);
    } else {
        open_courier(&s);
        errand_replace(&s.courier); /* by the program that came with this one */
        reap(&s);
    }
    while (!s.stopping || s.current.pid > 0 || s.next.pid > 0 || s.leaving.pid > 0 ||
           s.courier.pid > 0)
        poll_once(&s);
    errand_close(&s.courier);
    if (s.own_socket)
        unlink(config->conf->socket);
    unlink(config->conf->control);
    return s.status;
}
