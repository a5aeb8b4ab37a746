#include "handlers/courier_report.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fcgi/log.h"
#include "handlers/control.h"

enum {
    AGAIN_FIRST_MS = 20,
    AGAIN_MOST_MS = 2000,
    BATCH = 512, /* marks of one report */
    GATHER_MS = 10, /* between reports: each costs the server a commit, which receivers on the same
                       disk wait for; a report that is lost only repeats a delivery */
};

struct courier_reporter {
    const char *control;
    uint64_t fence;
    void (*wake)(void *arg);
    void *arg;
    pthread_t thread;
    bool runs;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    struct courier_item *items, **items_tail, *done, **done_tail;
    bool ends, refused;
};

bool courier_lease(const char *control, uint64_t *fence)
{
    struct db_op *op = db_courier_lease_op(getpid());
    bool ok = op != NULL && control_send(control, op) == CONTROL_DONE && op->result == DB_OK;
    if (ok)
        *fence = op->seq;
    db_op_free(op);
    return ok;
}

enum report { REPORT_TAKEN, REPORT_AGAIN, REPORT_REFUSED };

static enum report send_marks(const struct courier_reporter *r, const struct db_mark *marks,
                              unsigned n)
{
    struct db_op *op = db_courier_marks_op(r->fence, marks, n);
    if (op == NULL)
        return REPORT_AGAIN;
    enum control_result sent = control_send(r->control, op);
    enum db_result result = op->result;
    db_op_free(op);
    if (sent != CONTROL_DONE)
        return REPORT_AGAIN;
    return result == DB_OK             ? REPORT_TAKEN
           : result == DB_PRECONDITION ? REPORT_REFUSED
                                       : REPORT_AGAIN;
}

/* Waits for a time, or until it ends; with the mutex. */
static void pause_for(struct courier_reporter *r, int64_t ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)(ms / 1000);
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    while (!r->ends && pthread_cond_timedwait(&r->changed, &r->mutex, &t) == 0)
        ;
}

static int64_t monotonic_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* One mark alone is reported at once; those that follow soon go together. With the mutex. */
static void gather(struct courier_reporter *r, int64_t reported_ms)
{
    int64_t since_ms = monotonic_ms() - reported_ms;
    if (since_ms < GATHER_MS)
        pause_for(r, GATHER_MS - since_ms);
}

/* Takes what is there, at most a batch; with the mutex. */
static struct courier_item *take_batch(struct courier_reporter *r, unsigned *n)
{
    struct courier_item *first = r->items, *last = first;
    for (*n = 1; *n < BATCH && last->next != NULL; ++*n)
        last = last->next;
    r->items = last->next;
    if (r->items == NULL)
        r->items_tail = &r->items;
    last->next = NULL;
    return first;
}

static void give_back(struct courier_reporter *r, struct courier_item *first)
{
    *r->done_tail = first;
    while (*r->done_tail != NULL)
        r->done_tail = &(*r->done_tail)->next;
    r->wake(r->arg);
}

/* Until it was taken, refused, or the end; with the mutex, which is left meanwhile. */
static enum report report(struct courier_reporter *r, const struct courier_item *first, unsigned n)
{
    struct db_mark *marks = malloc(n * sizeof *marks);
    enum report result = REPORT_AGAIN;
    bool told = false;
    for (int64_t pause_ms = AGAIN_FIRST_MS; !r->ends;) {
        pthread_mutex_unlock(&r->mutex);
        if (marks != NULL) {
            unsigned i = 0;
            for (const struct courier_item *item = first; item != NULL; item = item->next)
                marks[i++] = item->mark;
            result = send_marks(r, marks, n);
        }
        if (result == REPORT_AGAIN && pause_ms == AGAIN_MOST_MS && !told) {
            log_line(LOG_WARN, "the server takes no reports", "control", r->control, NULL);
            told = true;
        }
        pthread_mutex_lock(&r->mutex);
        if (result != REPORT_AGAIN)
            break;
        pause_for(r, pause_ms);
        pause_ms = pause_ms * 2 < AGAIN_MOST_MS ? pause_ms * 2 : AGAIN_MOST_MS;
    }
    free(marks);
    return result;
}

static void free_items(struct courier_item *item)
{
    while (item != NULL) {
        struct courier_item *next = item->next;
        courier_item_free(item);
        item = next;
    }
}

static void *run(void *arg)
{
    struct courier_reporter *r = arg;
    int64_t reported_ms = 0;
    pthread_mutex_lock(&r->mutex);
    while (!r->ends && !r->refused) {
        if (r->items == NULL) {
            pthread_cond_wait(&r->changed, &r->mutex);
            continue;
        }
        unsigned n;
        gather(r, reported_ms);
        struct courier_item *first = take_batch(r, &n);
        reported_ms = monotonic_ms();
        switch (report(r, first, n)) {
        case REPORT_TAKEN:
            give_back(r, first);
            break;
        case REPORT_REFUSED:
            r->refused = true;
            r->wake(r->arg);
            free_items(first);
            break;
        case REPORT_AGAIN:
            free_items(first);
            break;
        }
    }
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

struct courier_reporter *courier_reporter_new(const char *control, uint64_t fence,
                                              void (*wake)(void *arg), void *arg)
{
    pthread_condattr_t attr;
    struct courier_reporter *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->control = control;
    r->fence = fence;
    r->wake = wake;
    r->arg = arg;
    r->items_tail = &r->items;
    r->done_tail = &r->done;
    pthread_mutex_init(&r->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->changed, &attr);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&r->thread, NULL, run, r) != 0) {
        courier_reporter_free(r);
        return NULL;
    }
    r->runs = true;
    return r;
}

void courier_reporter_free(struct courier_reporter *r)
{
    if (r == NULL)
        return;
    if (r->runs) {
        pthread_mutex_lock(&r->mutex);
        r->ends = true;
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->mutex);
        pthread_join(r->thread, NULL);
    }
    free_items(r->items);
    free_items(r->done);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->mutex);
    free(r);
}

void courier_reporter_add(struct courier_reporter *r, struct courier_item *item)
{
    pthread_mutex_lock(&r->mutex);
    item->next = NULL;
    *r->items_tail = item;
    r->items_tail = &item->next;
    if (r->items == item)
        pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

struct courier_item *courier_reporter_done(struct courier_reporter *r)
{
    pthread_mutex_lock(&r->mutex);
    struct courier_item *item = r->done;
    if (item != NULL) {
        r->done = item->next;
        if (r->done == NULL)
            r->done_tail = &r->done;
        item->next = NULL;
    }
    pthread_mutex_unlock(&r->mutex);
    return item;
}

bool courier_reporter_refused(struct courier_reporter *r)
{
    pthread_mutex_lock(&r->mutex);
    bool refused = r->refused;
    pthread_mutex_unlock(&r->mutex);
    return refused;
}
