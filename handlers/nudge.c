#include "handlers/nudge.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "db/courier.h"
#include "fcgi/errand.h"
#include "fcgi/log.h"
#include "handlers/store.h"

enum {
    GOES_ON_MS = 1000, /* after a report: does the courier go on by itself? */
    IN_VAIN_MS = 60000,
};

/* What to look for. */
enum { LOOK_LATER = 1, LOOK_NOW = 2 };

enum phase { BEFORE, RUNS, ENDED };

struct nudge {
    const char *path;
    int timer;
    pthread_mutex_t lock; /* of phase and loop */
    enum phase phase;
    struct loop *loop;
    atomic_int looks;
    atomic_bool deaf; /* the last call was not heard */
    /* the loop's thread; Unix milliseconds, 0: not */
    int64_t armed_ms, settle_ms;
};

static int64_t wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct nudge *nudge_new(const char *path)
{
    struct nudge *n = calloc(1, sizeof *n);
    if (n == NULL)
        return NULL;
    n->path = path;
    n->timer = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (n->timer < 0 || pthread_mutex_init(&n->lock, NULL) != 0) {
        if (n->timer >= 0)
            close(n->timer);
        free(n);
        return NULL;
    }
    return n;
}

void nudge_free(struct nudge *n)
{
    if (n == NULL)
        return;
    close(n->timer);
    pthread_mutex_destroy(&n->lock);
    free(n);
}

/* Says once when nobody hears, and once when somebody does again. */
static void call(struct nudge *n)
{
    bool heard = errand_call(n->path);
    const char *reason = heard ? NULL : strerror(errno);
    if (atomic_exchange(&n->deaf, !heard) == !heard)
        return;
    if (heard)
        log_line(LOG_INFO, "the courier can be woken again", NULL);
    else
        log_line(LOG_WARN, "the courier cannot be woken: what is sent waits", "socket", n->path,
                 "reason", reason, NULL);
}

static void arm(struct nudge *n, int64_t at_ms)
{
    struct itimerspec t = {0};
    if (n->settle_ms != 0 && (at_ms == 0 || n->settle_ms < at_ms))
        at_ms = n->settle_ms;
    n->armed_ms = at_ms;
    t.it_value.tv_sec = at_ms / 1000;
    t.it_value.tv_nsec = at_ms % 1000 * 1000000;
    timerfd_settime(n->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

static void look(struct nudge *n, int what)
{
    atomic_fetch_or(&n->looks, what);
    loop_poke(n->loop);
}

static void on_timer(void *arg)
{
    struct nudge *n = arg;
    uint64_t times;
    if (read(n->timer, &times, sizeof times) != sizeof times)
        return;
    n->armed_ms = 0;
    if (n->settle_ms != 0 && n->settle_ms <= wall_ms())
        n->settle_ms = 0;
    look(n, LOOK_NOW);
}

bool nudge_start(struct nudge *n, struct loop *loop, uint64_t settle_ms)
{
    bool watched = loop_watch(loop, n->timer, on_timer, n);
    n->settle_ms = wall_ms() + (int64_t)settle_ms;
    pthread_mutex_lock(&n->lock);
    n->loop = loop;
    n->phase = RUNS;
    look(n, LOOK_NOW);
    pthread_mutex_unlock(&n->lock);
    return watched;
}

void nudge_end(struct nudge *n)
{
    pthread_mutex_lock(&n->lock);
    n->phase = ENDED;
    n->loop = NULL;
    pthread_mutex_unlock(&n->lock);
}

static int looks_of(const struct db_op *list)
{
    int what = 0;
    for (const struct db_op *op = list; op != NULL; op = op->next)
        switch ((enum db_op_kind)op->kind) {
        case DB_OP_SEND:
        case DB_OP_SEND_RETRY:
        case DB_OP_SEND_SKIP:
        case DB_OP_SEND_REPLAY:
        case DB_OP_LINE_SET:
        case DB_OP_LINE_STATE:
            return LOOK_NOW;
        case DB_OP_COURIER_MARKS:
        case DB_OP_LINE_REMOVE:
            what |= LOOK_LATER;
            break;
        default:
            what |= looks_of(op->parts);
        }
    return what;
}

void nudge_committed(struct nudge *n, const struct db_op *list)
{
    int what = looks_of(list);
    if (what == 0)
        return;
    pthread_mutex_lock(&n->lock);
    enum phase phase = n->phase;
    if (phase == RUNS)
        look(n, what);
    pthread_mutex_unlock(&n->lock);
    if (phase == ENDED)
        call(n);
}

/* Something is due. */
static void due_now(struct nudge *n, int what, int64_t now_ms)
{
    int64_t again_ms = now_ms + GOES_ON_MS;
    if ((what & LOOK_NOW) != 0) {
        call(n);
        arm(n, now_ms + IN_VAIN_MS);
    } else if (n->armed_ms == 0 || n->armed_ms > again_ms) {
        arm(n, again_ms);
    }
}

void nudge_poked(struct nudge *n, struct session *s)
{
    int64_t due_ms = -1, now_ms;
    if (s->loop != n->loop || atomic_load(&n->looks) == 0)
        return;
    int what = atomic_exchange(&n->looks, 0);
    struct db_reader *r = session_fresh(s);
    enum db_result result = r != NULL ? db_courier_due(r, &due_ms) : DB_BROKEN;
    now_ms = wall_ms();
    if (result != DB_OK) {
        atomic_fetch_or(&n->looks, what);
        arm(n, now_ms + GOES_ON_MS);
    } else if (due_ms >= 0 && due_ms <= now_ms) {
        due_now(n, what, now_ms);
    } else {
        arm(n, due_ms > 0 ? due_ms : 0);
    }
}
