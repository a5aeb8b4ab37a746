/* hanji-courier: delivers what waits in the outbox, and leaves when there is nothing to do.
 *
 * Started by the supervisor, or by systemd, when a datagram lies in the socket that it is given
 * (HANJI_COURIER_FD, or LISTEN_FDS); or by hand, when it works through what is due and leaves. One
 * runs for a database at a time: a lock says so on this machine, and a number that each takes from
 * the server when it begins (the fence) everywhere else. It only reads the file. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "db/db.h"
#include "fcgi/conf.h"
#include "fcgi/errand.h"
#include "fcgi/listen.h"
#include "fcgi/log.h"
#include "fcgi/memory.h"
#include "fcgi/rights.h"
#include "handlers/courier_loop.h"
#include "handlers/courier_report.h"
#include "handlers/keys.h"
#include "seal/token.h"

enum { EX_USAGE = 2, EX_SOFTWARE = 70, EX_IOERR = 74, EX_TEMPFAIL = 75, EX_CONFIG = 78 };
enum { LEASE_TRIES = 8, LEASE_PAUSE_MS = 50 };

static const char default_conf[] = "/etc/hanji/hanji.conf";

/* The socket in which datagrams lie, -1: started by hand. */
static int nudge_socket(void)
{
    const char *text = getenv("HANJI_COURIER_FD");
    int fd = text != NULL ? (int)strtol(text, NULL, 10) : listen_inherited();
    if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return -1;
    return fd;
}

/* SIGTERM and SIGINT, as a descriptor; before any thread. */
static int take_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* A server that starts anew meanwhile is given some seconds. */
static bool lease(const char *control, bool patient, uint64_t *fence)
{
    for (int i = 0;; i++) {
        if (courier_lease(control, fence))
            return true;
        if (!patient || i == LEASE_TRIES)
            return false;
        int64_t ms = (int64_t)LEASE_PAUSE_MS << i;
        const struct timespec pause = {.tv_sec = (time_t)(ms / 1000),
                                       .tv_nsec = (long)(ms % 1000) * 1000000};
        nanosleep(&pause, NULL);
    }
}

static int deliver(const struct conf *conf)
{
    struct courier_config config = {.conf = conf, .nudges = nudge_socket()};
    config.signals = take_signals();
    int lock = errand_lock(conf->database);
    if (lock < 0) {
        log_line(LOG_WARN, "this courier cannot begin", "database", conf->database, "reason",
                 errno == EAGAIN ? "another one delivers for it" : strerror(errno), NULL);
        return errno == EAGAIN ? EX_TEMPFAIL : EX_IOERR;
    }
    if (!lease(conf->control, config.nudges >= 0, &config.fence)) {
        log_line(LOG_WARN, "the server cannot be asked", "control", conf->control, NULL);
        return EX_TEMPFAIL;
    }
    config.keys = keyring_open(conf->keys);
    if (config.signals < 0 || config.keys == NULL)
        return EX_SOFTWARE;
    log_detail(LOG_DEBUG, "the courier begins", "fence %llu", (unsigned long long)config.fence);
    enum courier_left left = courier_loop(&config);
    keyring_close(config.keys);
    close(config.signals);
    close(lock);
    log_line(LOG_DEBUG, "the courier leaves", "why",
             left == COURIER_LEFT_IDLE     ? "nothing is due"
             : left == COURIER_LEFT_ASKED  ? "asked to"
             : left == COURIER_LEFT_FENCED ? "another one has begun"
                                           : "it could not begin",
             NULL);
    return left == COURIER_LEFT_FAILED ? EX_IOERR : 0;
}

static int usage(FILE *out)
{
    fprintf(out, "usage: hanji-courier [-c CONF]\n"
                 "Delivers what is due in the outbox and leaves. "
                 "The server starts it by itself.\n");
    return out == stdout ? 0 : EX_USAGE;
}

int main(int argc, char **argv)
{
    static struct conf conf;
    struct conf_error error;
    const char *file = access(default_conf, R_OK) == 0 ? default_conf : NULL;
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return usage(stdout);
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("hanji-courier %s\n", HANJI_VERSION);
        return 0;
    }
    if (argc == 3 && (strcmp(argv[1], "-c") == 0 || strcmp(argv[1], "--config") == 0))
        file = argv[2];
    else if (argc != 1)
        return usage(stderr);
    if (!conf_load(&conf, file, &error) || !conf_finish(&conf, &error)) {
        fprintf(stderr, "hanji-courier: %s\n", error.text);
        return EX_CONFIG;
    }
    log_set_level(conf.log_level);
    memory_settle();
    rights_worker();
    rights_secrets();
    if (db_init() != DB_OK || !seal_init()) {
        log_line(LOG_ERROR, "SQLite or libsodium cannot be used", NULL);
        return EX_SOFTWARE;
    }
    return deliver(&conf);
}
