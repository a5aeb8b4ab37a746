/* The courier's process, as the supervisor keeps it: a datagram socket, and a program that is
 * started when something lies there and none runs.
 *
 * The socket outlives the program, so that a datagram that comes while it leaves starts it again.
 * It is told to end when its supervisor dies. One that ends by itself with 0 is started by the next
 * datagram; one that fails is started again after growing pauses, since what it had read is lost;
 * one that was asked to leave for another program's sake is followed by that one at once. With
 * `courier = none` there is no socket and nothing is ever started. The supervisor's thread only. */
#ifndef HANJI_FCGI_ERRAND_H
#define HANJI_FCGI_ERRAND_H

#include <sys/types.h>

#include "fcgi/conf.h"

enum { ERRAND_PROGRAM_MAX = 4096 + 16 };

struct errand {
    const struct conf *conf;
    char program[ERRAND_PROGRAM_MAX]; /* "": none is ever started */
    int socket; /* -1: none */
    bool own;   /* we made the file, so we remove it */
    pid_t pid;  /* 0: none runs */
    bool asked; /* it was told to end, so that the next one starts */
    bool ending; /* nothing is started any more */
    bool must;  /* one is to be started at start_ms whether or not something lies there */
    uint64_t started_ms;
    uint64_t start_ms; /* none is started before; monotonic */
    uint64_t pause_ms;
};

/* Makes the socket, unless one was left by the program before this one (socket, own and pid, which
 * the caller has set) and still has the configured name; socket is -1 else. binary: the path of the
 * running program, beside which the courier lies. False with error set when it cannot be made. */
bool errand_open(struct errand *e, const struct conf *conf, const char *binary,
                 struct conf_error *error) __attribute__((warn_unused_result));

/* What to poll for reading, -1: nothing now. */
int errand_poll(const struct errand *e, uint64_t now_ms);

/* When errand_time is due, UINT64_MAX: never. */
uint64_t errand_due(const struct errand *e, uint64_t now_ms);

/* Something lies there; or it is time. Starts the program if it should run. */
void errand_readable(struct errand *e, uint64_t now_ms);
void errand_time(struct errand *e, uint64_t now_ms);

/* A child was reaped. True: it was this one, and how it is followed has been decided. */
bool errand_ended(struct errand *e, pid_t pid, int status, uint64_t now_ms);

/* Asks the one that runs, from an older binary, to leave; its successor starts when it has. */
void errand_replace(struct errand *e);

/* The end: asks it to leave, and starts none after it. False: none runs. */
bool errand_stop(struct errand *e);
void errand_kill(const struct errand *e);
void errand_close(struct errand *e);

/* In the courier: takes the lock that lets one only deliver for a database, on
 * "DATABASE.courier.lock" by the database's real name, and returns its descriptor; -1 with errno
 * set, EAGAIN: another has it. It goes with the process. */
int errand_lock(const char *database) __attribute__((warn_unused_result));

/* Any thread, any process: is it taken? Takes nothing itself, not for a moment. */
bool errand_locked(const char *database);

/* In the worker, any thread: puts a datagram into the socket of that name, or finds that some lie
 * there already. Never blocks. False with errno set: nobody owns one. */
bool errand_call(const char *path);

#endif
