/* The worker: reactor threads from start to drained.
 *
 * SIGTERM, or the end of the supervisor, drains: open requests are answered, new connections are
 * left to whoever listens next. */
#ifndef HANJI_FCGI_SERVE_H
#define HANJI_FCGI_SERVE_H

#include "fcgi/conf.h"
#include "fcgi/loop.h"

struct serve_config {
    const struct conf *conf;
    const struct loop_app *app;
    int listener;
    int control;    /* -1: none */
    int supervisor; /* a socket to it: "R" is written when ready, its end means drain; -1: none */
    /* Called once all loops exist, before any runs. */
    void (*started)(void *arg, struct loop *const *loops, unsigned n);
    void (*ending)(void *arg); /* they have drained, and go */
    void (*again)(void *arg);  /* SIGHUP, on the first loop's thread: look at files again */
    void *arg;
};

/* Blocks the signals that serve_run waits for. Before any thread is started. */
void serve_block_signals(void);

/* Serves until drained. Returns the exit status: 0, or what serve_stop was given. */
int serve_run(const struct serve_config *config) __attribute__((warn_unused_result));

/* Any thread: end soon with that exit status, after answering what is in flight. */
void serve_stop(int exit_status);

#endif
