#include "fcgi/serve.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fcgi/log.h"

enum { LOOPS_MAX = 64, STACK_BYTES = 512 << 10, STOP_MS = 1000, EX_CANNOT_START = 71 };

static struct {
    const struct serve_config *config;
    struct loop *loops[LOOPS_MAX];
    pthread_t threads[LOOPS_MAX];
    unsigned count;
    int signals;
    atomic_int exit_status;
} serve;

static sigset_t waited_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR2);
    return set;
}

void serve_block_signals(void)
{
    sigset_t set = waited_signals();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void drain(uint64_t at_most_ms)
{
    for (unsigned i = 0; i < serve.count; i++)
        loop_drain(serve.loops[i], at_most_ms);
}

void serve_stop(int exit_status)
{
    atomic_store(&serve.exit_status, exit_status);
    drain(STOP_MS);
}

static void on_signal(void *arg)
{
    struct signalfd_siginfo info;
    (void)arg;
    while (read(serve.signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGHUP)
            serve.config->again(serve.config->arg);
        if (info.ssi_signo != SIGTERM && info.ssi_signo != SIGINT)
            continue;
        log_line(LOG_INFO, "draining", NULL);
        drain(serve.config->conf->drain_timeout_ms);
    }
}

static void on_supervisor(void *arg)
{
    char byte;
    (void)arg;
    ssize_t n = recv(serve.config->supervisor, &byte, 1, MSG_DONTWAIT);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    log_line(LOG_WARN, "the supervisor is gone; draining", NULL);
    drain(serve.config->conf->drain_timeout_ms);
    close(serve.config->supervisor); /* leaves epoll with it */
}

static struct loop *make_loop(const struct serve_config *s, unsigned i)
{
    const struct conf *c = s->conf;
    struct loop_config config = {
        .app = s->app,
        .listener = s->listener,
        .control = i == 0 ? s->control : -1,
        .shared = c->threads > 1,
        .limits = {.body_max = (size_t)c->max_body_bytes,
                   .memory_max = (size_t)c->body_in_memory_bytes,
                   .spool = c->spool,
                   .unspooled = s->app->unspooled},
        .max_connections = c->max_connections,
        .output_bytes = c->body_memory_bytes,
        .request_timeout_ms = c->request_timeout_ms,
        .write_timeout_ms = c->write_timeout_ms,
    };
    return loop_new(&config);
}

/* One connection is one descriptor: take as many as the administrator allows. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        log_line(LOG_WARN, "the limit of descriptors stays low", "reason", strerror(errno), NULL);
}

static bool watch_events(const struct serve_config *s)
{
    sigset_t set = waited_signals();
    serve.signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return serve.signals >= 0 && loop_watch(serve.loops[0], serve.signals, on_signal, NULL) &&
           (s->supervisor < 0 || loop_watch(serve.loops[0], s->supervisor, on_supervisor, NULL));
}

static void *thread_main(void *arg)
{
    loop_run(arg);
    return NULL;
}

static unsigned start_threads(void)
{
    pthread_attr_t attr;
    unsigned started = 1;
    if (pthread_attr_init(&attr) != 0)
        return started;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    while (started < serve.count && pthread_create(&serve.threads[started], &attr, thread_main,
                                                   serve.loops[started]) == 0)
        started++;
    pthread_attr_destroy(&attr);
    return started;
}

static void free_loops(void)
{
    for (unsigned i = 0; i < serve.count; i++)
        loop_free(serve.loops[i]);
    serve.count = 0;
}

int serve_run(const struct serve_config *config)
{
    const struct serve_config *s = config;
    serve.config = config;
    raise_descriptor_limit();
    while (serve.count < s->conf->threads) {
        struct loop *l = make_loop(s, serve.count);
        if (l == NULL)
            break;
        serve.loops[serve.count++] = l;
    }
    if (serve.count < s->conf->threads || !watch_events(s)) {
        log_line(LOG_ERROR, "a reactor cannot be made", "reason", strerror(errno), NULL);
        free_loops();
        return EX_CANNOT_START;
    }
    s->started(s->arg, serve.loops, serve.count);
    unsigned running = start_threads();
    if (running < serve.count) {
        log_line(LOG_ERROR, "a thread cannot be started", NULL);
        serve_stop(EX_CANNOT_START);
    } else if (s->supervisor >= 0 && send(s->supervisor, "R", 1, MSG_NOSIGNAL) != 1) {
        log_line(LOG_WARN, "the supervisor cannot be told", "reason", strerror(errno), NULL);
    }
    loop_run(serve.loops[0]);
    for (unsigned i = 1; i < running; i++)
        pthread_join(serve.threads[i], NULL);
    s->ending(s->arg);
    free_loops();
    close(serve.signals);
    return atomic_load(&serve.exit_status);
}
