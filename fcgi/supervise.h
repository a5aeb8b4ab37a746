/* The supervisor: owns the listening sockets, keeps a worker running, hands over to a new one.
 *
 * It never serves and never opens the database. The sockets outlive workers, so that connections
 * wait in the kernel while one is replaced. A worker that was ready and ends is started again at
 * once; one that ends early is started again with growing pauses; a first one that never gets ready
 * ends the supervisor with its status, so that a wrong configuration is seen at once.
 *
 * It also starts the courier when something is to be sent (fcgi/errand.h).
 *
 * SIGTERM, SIGINT: end the courier, drain the worker, then end with 0. SIGUSR2: start a worker from
 * the binary now on disk; when it is ready drain the old one and become the new binary too (same
 * process id); when it is not ready in time nothing changes. */
#ifndef HANJI_FCGI_SUPERVISE_H
#define HANJI_FCGI_SUPERVISE_H

#include "fcgi/conf.h"

struct supervise_config {
    const struct conf *conf;
    char **argv;       /* as the process was started; argv[command_at] is "serve" */
    int command_at;
};

/* The descriptors a worker gets from its supervisor. */
struct supervise_fds {
    int listener, control, supervisor;
};

/* Runs until told to end; returns the exit status. */
int supervise_run(const struct supervise_config *config) __attribute__((warn_unused_result));

/* In the worker: what it was given. False: not started by a supervisor. */
bool supervise_worker_fds(struct supervise_fds *fds) __attribute__((warn_unused_result));

#endif
