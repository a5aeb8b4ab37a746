#include "fcgi/errand.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fcgi/listen.h"
#include "fcgi/log.h"

enum {
    PAUSE_FIRST_MS = 100,
    PAUSE_MOST_MS = 60000,
    HASTY_MS = 1000, /* one that lives shorter, and leaves something lying there, is not hurried */
    LIVED_MS = 10000,
    EX_CANNOT_EXEC = 71,
};

static const char socket_env[] = "HANJI_COURIER_FD";

/* hanji-courier beside the running program, unless another is configured. */
static void find_program(struct errand *e, const char *binary)
{
    const char *set = e->conf->courier, *slash = strrchr(binary, '/');
    if (strcmp(set, "none") == 0)
        e->program[0] = 0;
    else if (set[0] != 0)
        snprintf(e->program, sizeof e->program, "%s", set);
    else
        snprintf(e->program, sizeof e->program, "%.*shanji-courier",
                 slash != NULL ? (int)(slash - binary) + 1 : 0, binary);
}

/* Is it bound to the configured name? */
static bool named_so(int fd, const char *path)
{
    struct sockaddr_un address = {0};
    socklen_t len = sizeof address;
    return getsockname(fd, (struct sockaddr *)&address, &len) == 0 &&
           len < sizeof address && strcmp(address.sun_path, path) == 0;
}

bool errand_open(struct errand *e, const struct conf *conf, const char *binary,
                 struct conf_error *error)
{
    e->conf = conf;
    find_program(e, binary);
    if (e->socket >= 0 &&
        (e->program[0] == 0 || !named_so(e->socket, conf->courier_socket)))
        errand_close(e);
    if (e->socket >= 0 || e->program[0] == 0)
        return true;
    e->socket = listen_datagram(conf->courier_socket, error);
    e->own = e->socket >= 0;
    return e->own;
}

/* In the child. The supervisor's descriptors close by themselves, its blocked signals do not. */
static void become_courier(const struct errand *e, pid_t supervisor)
{
    char fd[16], flag[] = "-c";
    char file[CONF_TEXT_MAX], program[ERRAND_PROGRAM_MAX];
    char *argv[] = {program, flag, file, NULL};
    sigset_t none;
    sigemptyset(&none);
    memcpy(program, e->program, sizeof program);
    memcpy(file, e->conf->file, sizeof file);
    if (file[0] == 0)
        argv[1] = NULL;
    snprintf(fd, sizeof fd, "%d", e->socket);
    setenv(socket_env, fd, 1);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("NOTIFY_SOCKET");
    conf_to_environment(e->conf);
    fcntl(e->socket, F_SETFD, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (getppid() == supervisor)
        execv(program, argv);
    log_line(LOG_ERROR, "the courier cannot be started", "program", program, "reason",
             strerror(errno), NULL);
    _exit(EX_CANNOT_EXEC);
}

static void pause_more(struct errand *e, uint64_t most_ms, uint64_t now_ms)
{
    uint64_t next = e->pause_ms == 0 ? PAUSE_FIRST_MS : e->pause_ms * 2;
    e->pause_ms = next < most_ms ? next : most_ms;
    e->start_ms = now_ms + e->pause_ms;
}

static void start(struct errand *e, uint64_t now_ms)
{
    pid_t self = getpid(), pid = fork();
    if (pid == 0)
        become_courier(e, self);
    if (pid < 0) {
        log_line(LOG_ERROR, "the courier cannot be started", "reason", strerror(errno), NULL);
        e->must = true;
        pause_more(e, PAUSE_MOST_MS, now_ms);
        return;
    }
    e->pid = pid;
    e->must = e->asked = false;
    e->started_ms = now_ms;
}

static bool waits(const struct errand *e)
{
    return e->socket >= 0 && e->pid == 0 && !e->ending;
}

int errand_poll(const struct errand *e, uint64_t now_ms)
{
    return waits(e) && !e->must && e->start_ms <= now_ms ? e->socket : -1;
}

uint64_t errand_due(const struct errand *e, uint64_t now_ms)
{
    return waits(e) && (e->must || e->start_ms > now_ms) ? e->start_ms : UINT64_MAX;
}

void errand_readable(struct errand *e, uint64_t now_ms)
{
    if (waits(e))
        start(e, now_ms);
}

void errand_time(struct errand *e, uint64_t now_ms)
{
    if (waits(e) && e->must && e->start_ms <= now_ms)
        start(e, now_ms);
}

static void tell_end(int status)
{
    char how[64];
    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof how, "exit status %d", WEXITSTATUS(status));
    log_line(LOG_WARN, "the courier ended; it is started again", "how", how, NULL);
}

bool errand_ended(struct errand *e, pid_t pid, int status, uint64_t now_ms)
{
    uint64_t lived_ms = now_ms - e->started_ms;
    bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (pid != e->pid || pid == 0)
        return false;
    e->pid = 0;
    e->start_ms = now_ms;
    if (e->ending)
        return true;
    if (lived_ms >= LIVED_MS)
        e->pause_ms = 0;
    e->must = !well || e->asked;
    if (!well && !e->asked) {
        tell_end(status);
        pause_more(e, PAUSE_MOST_MS, now_ms);
    } else if (!e->asked && lived_ms < HASTY_MS) {
        pause_more(e, HASTY_MS, now_ms);
    } else {
        e->pause_ms = 0;
    }
    return true;
}

void errand_replace(struct errand *e)
{
    if (e->pid == 0)
        return;
    e->asked = true;
    kill(e->pid, SIGTERM);
}

bool errand_stop(struct errand *e)
{
    e->ending = true;
    if (e->pid == 0)
        return false;
    kill(e->pid, SIGTERM);
    return true;
}

void errand_kill(const struct errand *e)
{
    if (e->pid > 0)
        kill(e->pid, SIGKILL);
}

void errand_close(struct errand *e)
{
    struct sockaddr_un address = {0};
    socklen_t len = sizeof address;
    if (e->socket < 0)
        return;
    if (e->own && getsockname(e->socket, (struct sockaddr *)&address, &len) == 0 &&
        len < sizeof address && address.sun_path[0] != 0)
        unlink(address.sun_path);
    close(e->socket);
    e->socket = -1;
    e->own = false;
}

bool errand_call(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    bool ok = sendto(fd, "n", 1, MSG_NOSIGNAL, (struct sockaddr *)&address, sizeof address) == 1 ||
              errno == EAGAIN;
    int saved = errno;
    close(fd);
    errno = saved;
    return ok;
}

static int open_lock(const char *database, int flags)
{
    char path[PATH_MAX + 16], real[PATH_MAX];
    snprintf(path, sizeof path, "%s.courier.lock",
             realpath(database, real) != NULL ? real : database);
    return open(path, flags | O_CLOEXEC, 0600);
}

/* A lock of the open file, not of the process (F_SETLK), whom every close of that file would cost
 * it; and not flock's, which nobody can ask about without taking it. */
int errand_lock(const char *database)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open_lock(database, O_RDWR | O_CREAT);
    if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return fd;
    int saved = errno == EACCES ? EAGAIN : errno;
    close(fd);
    errno = saved;
    return -1;
}

bool errand_locked(const char *database)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open_lock(database, O_RDONLY);
    if (fd < 0)
        return false;
    bool taken = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(fd);
    return taken;
}
