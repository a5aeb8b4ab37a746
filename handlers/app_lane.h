/* The pool's threads that apps may have at once.
 *
 * Slow SQL must not take every thread: logins are verified there, too. One app has at most half of
 * them, all apps together leave one; who comes then waits in a line of bounded length, and not for
 * ever. Any thread. */
#ifndef HANJI_HANDLERS_APP_LANE_H
#define HANJI_HANDLERS_APP_LANE_H

#include "handlers/app.h"
#include "handlers/store.h"

enum {
    APP_LANE_WAITING_MAX = 128, /* of one app */
    APP_LANE_WAIT_MS = 10000,
};

struct app_lane;

/* A task that wants a thread. Embedded in it. */
struct app_turn {
    struct app_turn *next;
    struct task *task;
    char app[DB_APP_NAME_MAX + 1];
    uint64_t since_ms;
    bool running; /* it has a thread's place */
    bool refused; /* it came back without having run */
};

/* For a pool of so many threads. NULL: memory is short. */
struct app_lane *app_lane_new(struct pool *pool, unsigned threads)
    __attribute__((warn_unused_result));
void app_lane_free(struct app_lane *l); /* safe with NULL */

enum app_lane_result {
    APP_LANE_TAKEN, /* it runs, or will: PARK */
    APP_LANE_FULL,
};

/* Gives the task to the pool, or puts it in line. When it was refused later it comes back by
 * loop_resume with turn->refused set. */
enum app_lane_result app_lane_enter(struct app_lane *l, struct app_turn *turn)
    __attribute__((warn_unused_result));

/* Gives the place back, once the work is done: somebody else may run. */
void app_lane_leave(struct app_lane *l, struct app_turn *turn);

#endif
