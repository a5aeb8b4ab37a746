#include "fcgi/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { IDLE_S = 10, STACK_BYTES = 256 << 10 };

struct pool {
    struct pool_config config;
    pthread_mutex_t lock;
    pthread_cond_t work;  /* a job is queued, or stopping */
    pthread_cond_t ended; /* a thread has ended */
    /* under lock */
    struct job *head, **tail;
    unsigned queued;
    unsigned running; /* threads that take jobs */
    unsigned alive;   /* threads that still look at this struct */
    unsigned idle;
    bool stopping;
};

static bool init_locks(struct pool *p)
{
    pthread_condattr_t attr;
    if (pthread_mutex_init(&p->lock, NULL) != 0 || pthread_condattr_init(&attr) != 0)
        return false;
    bool ok = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
              pthread_cond_init(&p->work, &attr) == 0 && pthread_cond_init(&p->ended, NULL) == 0;
    pthread_condattr_destroy(&attr);
    return ok;
}

struct pool *pool_new(const struct pool_config *config)
{
    struct pool *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->config = *config;
    p->tail = &p->head;
    if (init_locks(p))
        return p;
    free(p);
    return NULL;
}

/* Waits for a job. NULL: there was none for long enough, or the pool stops. Lock held. */
static struct job *next_job(struct pool *p)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_S;
    p->idle++;
    while (p->head == NULL && !p->stopping &&
           pthread_cond_timedwait(&p->work, &p->lock, &until) == 0)
        continue;
    p->idle--;
    struct job *j = p->head;
    if (j == NULL)
        return NULL;
    p->head = j->next;
    if (p->head == NULL)
        p->tail = &p->head;
    p->queued--;
    return j;
}

static void *thread_main(void *arg)
{
    struct pool *p = arg;
    void *context = p->config.open ? p->config.open(p->config.arg) : NULL;
    pthread_mutex_lock(&p->lock);
    for (struct job *j; (j = next_job(p)) != NULL;) {
        pthread_mutex_unlock(&p->lock);
        struct park *park = j->park; /* the job may be gone once its park is resumed */
        j->run(j, context);
        park->next = NULL;
        loop_resume(park);
        pthread_mutex_lock(&p->lock);
    }
    p->running--;
    pthread_mutex_unlock(&p->lock);
    if (context != NULL)
        p->config.close(context);
    pthread_mutex_lock(&p->lock);
    p->alive--;
    pthread_cond_signal(&p->ended);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* One more thread. Lock held. */
static bool start_thread(struct pool *p)
{
    pthread_t thread;
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0)
        return false;
    bool ok = pthread_attr_setstacksize(&attr, STACK_BYTES) == 0 &&
              pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0 &&
              pthread_create(&thread, &attr, thread_main, p) == 0;
    pthread_attr_destroy(&attr);
    p->running += ok;
    p->alive += ok;
    return ok;
}

bool pool_submit(struct pool *p, struct job *j)
{
    pthread_mutex_lock(&p->lock);
    bool ok = p->queued < p->config.queue;
    if (ok && p->idle <= p->queued && p->running < p->config.threads)
        ok = start_thread(p) || p->running > 0;
    if (ok) {
        j->next = NULL;
        *p->tail = j;
        p->tail = &j->next;
        p->queued++;
        pthread_cond_signal(&p->work);
    }
    pthread_mutex_unlock(&p->lock);
    return ok;
}

unsigned pool_waiting(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    unsigned n = p->queued;
    pthread_mutex_unlock(&p->lock);
    return n;
}

void pool_free(struct pool *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->work);
    while (p->alive > 0)
        pthread_cond_wait(&p->ended, &p->lock);
    pthread_mutex_unlock(&p->lock);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->ended);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
