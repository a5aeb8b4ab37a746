/* Slow work off the loops: a few threads with a bounded queue.
 *
 * A handler that would hold its loop longer than a disk read takes (hashing a password or a large
 * body, a long statement) parks its request and submits a job. The job runs on one of the pool's
 * threads; then the parked request is resumed on its loop. Threads are started when there is work
 * and end when there has been none for a while, so that an idle process does not pay for them.
 *
 * A job that is running is not interrupted when its peer leaves: it must be short by itself. */
#ifndef HANJI_FCGI_POOL_H
#define HANJI_FCGI_POOL_H

#include "fcgi/loop.h"

struct pool;

struct job {
    struct job *next;
    struct park *park; /* resumed when run has returned; owns the job's memory */
    /* On a thread of the pool. thread: what pool_config.open returned there, or NULL. */
    void (*run)(struct job *j, void *thread);
};

struct pool_config {
    unsigned threads;
    unsigned queue; /* jobs that may wait */
    void *(*open)(void *arg); /* context of a new thread; NULL: jobs see NULL */
    void (*close)(void *thread);
    void *arg;
};

/* NULL when memory is short. */
struct pool *pool_new(const struct pool_config *config) __attribute__((warn_unused_result));

/* Any thread: queues a job, whose park comes back by loop_resume. False when the queue is full, or
 * when no thread can be had: the job was not taken. */
bool pool_submit(struct pool *p, struct job *j) __attribute__((warn_unused_result));

/* Jobs waiting, for metrics. */
unsigned pool_waiting(struct pool *p);

/* Runs what is queued, ends the threads, frees. Nobody may submit any more. */
void pool_free(struct pool *p);

#endif
