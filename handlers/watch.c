#include "handlers/watch.h"

#include <stdlib.h>

#include "handlers/problem.h"
#include "handlers/watch_internal.h"

/* How often other processes' commits are looked for. */
enum { LOOK_MS = 250 };

struct watch *watch_new(struct session *s)
{
    struct watch *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->session = s;
    ring_init(&w->streams);
    ring_init(&w->behind);
    ring_init(&w->far);
    ring_init(&w->waiting);
    for (int i = 0; i <= ASK_WAIT_MAX_S; i++)
        ring_init(&w->due[i]);
    return w;
}

void watch_free(struct watch *w)
{
    if (w == NULL)
        return;
    feed_round_end(&w->feed, false);
    free(w);
}

/* The count is raised before the loop is poked, and a poke looks at a snapshot that is newer than
 * it: a commit that was too early to poke us is seen then. */
struct watch *watch_enter(struct call *c, atomic_uint_fast64_t *kind)
{
    struct watch *w = session_of(c)->watch;
    if (w->count >= session_of(c)->store->conf->max_watchers) {
        problem_with(c, 503, "Too many wait for changes; try again later.",
                     (struct problem_header){"Retry-After", "10"});
        return NULL;
    }
    atomic_fetch_add(kind, 1);
    if (w->count++ == 0) {
        w->version_known = false;
        w->rights = atomic_load(&session_of(c)->store->watch.rights);
        loop_poke(c->loop);
        loop_timer(c->loop, loop_now_ms(c->loop) + LOOK_MS);
    }
    return w;
}

void watch_leave(struct watch *w, atomic_uint_fast64_t *kind)
{
    atomic_fetch_sub(kind, 1);
    w->count--;
}

/* False for what takes nothing from anybody who watches already. */
static bool may_change_rights(enum db_op_kind kind)
{
    switch (kind) {
    case DB_OP_PUT:
    case DB_OP_DELETE:
    case DB_OP_PATCH:
    case DB_OP_BATCH:
    case DB_OP_TOKEN_NEW:
    case DB_OP_USER_NEW:
    case DB_OP_SESSION_NEW:
    case DB_OP_SESSION_TOUCH:
    case DB_OP_SEARCH_ADD:
    case DB_OP_SEARCH_REMOVE:
    case DB_OP_SEARCH_REBUILD:
    case DB_OP_SEARCH_SYNC:
    case DB_OP_SECRET:
    case DB_OP_APP: /* its parts may */
    case DB_OP_APP_SCHEMA:
        return false;
    default:
        return true;
    }
}

static bool any_may(const struct db_op *list)
{
    for (const struct db_op *op = list; op != NULL; op = op->next)
        if (may_change_rights((enum db_op_kind)op->kind) || any_may(op->parts))
            return true;
    return false;
}

void watch_committed(struct store *store, const struct db_op *list)
{
    struct watch_stats *s = &store->watch;
    if (atomic_load(&s->polls) + atomic_load(&s->streams) == 0)
        return;
    if (any_may(list))
        atomic_fetch_add(&s->rights, 1);
    for (unsigned i = 0; i < store->loop_count; i++)
        loop_poke(store->loops[i]);
}

void watch_poked(struct watch *w)
{
    struct db_change_bounds bounds = {0};
    if (w->count == 0)
        return;
    uint64_t rights = atomic_load(&w->session->store->watch.rights);
    struct db_reader *r = session_fresh(w->session);
    if (r == NULL || db_change_bounds(r, &bounds) != DB_OK) {
        w->version_known = false; /* the timer tries again */
        return;
    }
    bool judge = rights != w->rights, grown = bounds.last > w->tip;
    w->rights = rights;
    if (grown) {
        w->tip = bounds.last;
        ring_join_all(&w->behind, &w->waiting);
    }
    if (grown || judge)
        watch_stream_wake(w);
    if (judge)
        watch_poll_judge(w);
    if (watch_poll_look(w, r))
        loop_poke(w->session->loop);
}

/* Outside a round's snapshot. */
void watch_timer(struct watch *w)
{
    struct loop *l = w->session->loop;
    uint64_t now = loop_now_ms(l), version = 0;
    if (w->count == 0)
        return;
    enum db_result result = db_change_version(w->session->reader, &version);
    if (result != DB_OK || !w->version_known || version != w->version)
        loop_poke(l);
    w->version_known = result == DB_OK;
    w->version = version;
    uint64_t next = now + LOOK_MS;
    uint64_t poll = watch_poll_expire(w, now);
    uint64_t beat = watch_stream_beat(w, now);
    next = poll < next ? poll : next;
    loop_timer(l, beat < next ? beat : next);
}

void watch_drain(struct watch *w)
{
    watch_stream_wake(w);
    watch_poll_drain(w);
}

void watch_round_end(struct watch *w)
{
    feed_round_end(&w->feed, w->count > 0);
}
