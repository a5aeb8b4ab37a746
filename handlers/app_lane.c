#include "handlers/app_lane.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PLACES_MAX = 64 };

struct app_lane {
    struct pool *pool;
    unsigned places;  /* of all apps */
    unsigned per_app;
    pthread_mutex_t lock;
    /* under lock */
    unsigned running;
    const struct app_turn *runs[PLACES_MAX];
    struct app_turn *head, **tail; /* who waits */
};

struct app_lane *app_lane_new(struct pool *pool, unsigned threads)
{
    struct app_lane *l = calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->pool = pool;
    l->places = threads > 1 ? threads - 1 : 1;
    if (l->places > PLACES_MAX)
        l->places = PLACES_MAX;
    l->per_app = threads / 2 > 1 ? threads / 2 : 1;
    l->tail = &l->head;
    if (pthread_mutex_init(&l->lock, NULL) == 0)
        return l;
    free(l);
    return NULL;
}

void app_lane_free(struct app_lane *l)
{
    if (l == NULL)
        return;
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Lock held: true when there is a place for it. */
static bool may_run(const struct app_lane *l, const struct app_turn *turn)
{
    unsigned of_app = 0;
    for (unsigned i = 0; i < l->running; i++)
        of_app += strcmp(l->runs[i]->app, turn->app) == 0;
    return l->running < l->places && of_app < l->per_app;
}

/* Lock held: takes the place and hands it to the pool. False: that takes no more. */
static bool run(struct app_lane *l, struct app_turn *turn)
{
    turn->running = true;
    l->runs[l->running++] = turn;
    if (pool_submit(l->pool, &turn->task->job))
        return true;
    turn->running = false;
    l->running--;
    return false;
}

enum app_lane_result app_lane_enter(struct app_lane *l, struct app_turn *turn)
{
    enum app_lane_result result = APP_LANE_TAKEN;
    unsigned waiting = 0;
    turn->next = NULL;
    turn->since_ms = now_ms();
    pthread_mutex_lock(&l->lock);
    for (const struct app_turn *t = l->head; t != NULL; t = t->next)
        waiting += strcmp(t->app, turn->app) == 0;
    if (may_run(l, turn)) {
        if (!run(l, turn))
            result = APP_LANE_FULL;
    } else if (waiting < APP_LANE_WAITING_MAX) {
        *l->tail = turn;
        l->tail = &turn->next;
    } else {
        result = APP_LANE_FULL;
    }
    pthread_mutex_unlock(&l->lock);
    return result;
}

/* Lock held: those who can run now do, those who waited too long are put in a list of parks. */
static struct park *go_on(struct app_lane *l)
{
    struct park *refused = NULL;
    uint64_t now = now_ms();
    for (struct app_turn **p = &l->head, *t; (t = *p) != NULL;) {
        bool late = now - t->since_ms > APP_LANE_WAIT_MS;
        if (!late && !may_run(l, t)) {
            p = &t->next;
            continue;
        }
        *p = t->next;
        if (l->tail == &t->next)
            l->tail = p;
        if (late || !run(l, t)) {
            t->refused = true;
            t->task->park.next = refused;
            refused = &t->task->park;
        }
    }
    return refused;
}

void app_lane_leave(struct app_lane *l, struct app_turn *turn)
{
    pthread_mutex_lock(&l->lock);
    unsigned i = 0;
    while (i < l->running && l->runs[i] != turn)
        i++;
    if (i < l->running)
        l->runs[i] = l->runs[--l->running];
    turn->running = false;
    struct park *refused = go_on(l);
    pthread_mutex_unlock(&l->lock);
    loop_resume(refused);
}
