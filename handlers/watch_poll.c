/* Requests that wait for one answer (long polling).
 *
 * Each is in one of three rings: behind, or far, while it has not looked up to the end of the feed,
 * and waiting. Those behind look in turn, so many a round, at the page that they share with others;
 * those who are far look at keys alone, one of them a round. Whoever finds something, or whose time
 * is over, is taken out and resumed, and is answered with the others of its loop. Only so many are
 * resumed a round: acknowledgements of writes stand in the same line. */
#include <string.h>

#include "handlers/problem.h"
#include "handlers/watch_internal.h"

enum {
    TAKEN_PER_ROUND = 256,
    LOOKS_PER_ROUND = 32768, /* at entries of pages */
    SCAN_MOST = 4096,        /* entries of the file that one looks at, of all once a round */
    FAR = 1024,
};

struct poll_watcher {
    struct park park;
    struct watch *watch;
    struct ring ring; /* behind or waiting */
    struct ring due;
    uint64_t at; /* there is nothing for it up to here */
    uint64_t due_ms;
    unsigned limit, wait_s;
    bool taken; /* it is being resumed */
    bool whole; /* there was nothing at all behind at */
    bool over;  /* it is answered though there is nothing */
    struct credential who;
    bool of_app;
    size_t prefix_len;
    char prefix[];
};

static struct str prefix_of(const struct poll_watcher *p)
{
    return (struct str){p->prefix, p->prefix_len};
}

static void leave(struct poll_watcher *p)
{
    watch_leave(p->watch, &p->watch->session->store->watch.polls);
}

/* Takes it out of its rings and gives it back to the loop. */
static void take(struct poll_watcher *p)
{
    ring_leave(&p->ring);
    ring_leave(&p->due);
    p->taken = true;
    p->park.next = NULL;
    loop_resume(&p->park);
}

static void left(struct park *park)
{
    struct poll_watcher *p = (struct poll_watcher *)park; /* its first member */
    if (!p->taken)
        take(p);
}

static enum verdict resume(struct park *park, struct call *c);

static void enlist(struct poll_watcher *p)
{
    struct watch *w = p->watch;
    struct ring *list = &w->due[p->wait_s > 0 ? p->wait_s : ASK_WAIT_MAX_S], *before = list;
    while (before->prev != list &&
           RING_OF(before->prev, struct poll_watcher, due)->due_ms > p->due_ms)
        before = before->prev; /* one that waits again is due before those that came meanwhile */
    ring_join(before, &p->due);
    if (p->whole && p->at >= w->tip) {
        ring_join(&w->waiting, &p->ring);
        return;
    }
    ring_join(&w->behind, &p->ring);
    loop_poke(w->session->loop);
}

/* Parks the call as p says, who may be one that was resumed. */
static enum verdict wait_as(struct call *c, const struct poll_watcher *p, struct str prefix)
{
    struct poll_watcher *q = loop_park(c, sizeof *q + prefix.n, resume);
    if (q == NULL)
        return FAIL;
    struct park park = q->park;
    *q = *p;
    q->park = park;
    q->park.left = left;
    if (c->req != NULL)
        q->park.browser = problem_for_browser(c->req);
    q->taken = false;
    q->prefix_len = prefix.n;
    if (prefix.n > 0)
        memcpy(q->prefix, prefix.p, prefix.n);
    ring_init(&q->ring);
    ring_init(&q->due);
    enlist(q);
    return PARK;
}

/* Builds the answer from the page behind p->at. PARK: nothing is there after all. */
static enum verdict answer(struct poll_watcher *p, struct call *c, const struct feed_page *page)
{
    struct json j = feed_begin(c);
    uint64_t next = page->next;
    unsigned entries = 0;
    for (unsigned i = 0; i < page->count; i++) {
        const struct feed_entry *e = feed_entry(page, i);
        if (!feed_matches(page, e, prefix_of(p)))
            continue;
        json_raw(&j, entries > 0 ? ",\n" : "\n");
        json_verbatim(&j, (struct str){(const char *)page->text.data + e->json, e->json_len});
        if (++entries == p->limit) {
            next = e->seq;
            break;
        }
    }
    if (entries == 0) {
        p->at = next;
        p->whole = page->whole;
        return PARK;
    }
    atomic_fetch_add_explicit(&p->watch->session->store->watch.events, entries,
                              memory_order_relaxed);
    return feed_answer(c, &j, next);
}

static enum verdict answer_nothing(const struct poll_watcher *p, struct call *c)
{
    struct json j = feed_begin(c);
    return feed_answer(c, &j, p->at);
}

static enum verdict answer_resumed(struct poll_watcher *p, struct call *c)
{
    const struct feed_page *page;
    if (ask_refused(c, ask_judge(c, &p->who, prefix_of(p), p->of_app)))
        return REPLY;
    if (p->over || loop_draining(c->loop)) /* one that was taken to be judged must not wait again */
        return answer_nothing(p, c);
    if (p->whole && p->at >= p->watch->tip)
        return PARK;
    switch (feed_page(&p->watch->feed, session_reader(c), p->at, FEED_READS, &page)) {
    case FEED_LATER:
        return PARK;
    case FEED_FAILED:
        problem_result(c, DB_BROKEN, 0);
        return REPLY;
    case FEED_OK:
        break;
    }
    return answer(p, c, page);
}

static enum verdict resume(struct park *park, struct call *c)
{
    struct poll_watcher *p = (struct poll_watcher *)park;
    enum verdict verdict = REPLY;
    session_of(c)->who = p->who; /* so that a refusal speaks of it */
    if (c->resp != NULL)
        verdict = answer_resumed(p, c);
    if (verdict == PARK)
        verdict = wait_as(c, p, prefix_of(p));
    if (verdict == FAIL)
        problem_result(c, DB_NO_MEMORY, 0);
    if (verdict != PARK)
        leave(p);
    return verdict == FAIL ? REPLY : verdict;
}

enum verdict watch_poll(struct call *c, const struct ask *ask, bool whole)
{
    atomic_uint_fast64_t *kind = &session_of(c)->store->watch.polls;
    unsigned span_s = ask->wait_s > 0 ? ask->wait_s : ASK_WAIT_MAX_S;
    struct poll_watcher p = {
        .watch = watch_enter(c, kind),
        .at = ask->since,
        .due_ms = loop_now_ms(c->loop) + span_s * UINT64_C(1000),
        .limit = ask->limit,
        .wait_s = ask->wait_s,
        .whole = whole,
        .who = *access_who(c),
        .of_app = ask->of_app,
    };
    if (p.watch == NULL)
        return REPLY;
    enum verdict verdict = wait_as(c, &p, (struct str){ask->prefix, ask->prefix_len});
    if (verdict != PARK)
        watch_leave(p.watch, kind);
    return verdict;
}

static bool any_match(const struct feed_page *page, struct str prefix)
{
    for (unsigned i = 0; i < page->count; i++)
        if (feed_matches(page, feed_entry(page, i), prefix))
            return true;
    return false;
}

/* One that is behind has looked. */
static void looked(struct watch *w, struct poll_watcher *p, bool found)
{
    ring_leave(&p->ring);
    if (found) {
        take(p);
    } else if (!p->whole || p->at < w->tip) {
        ring_join(&w->behind, &p->ring);
    } else if (p->wait_s > 0) {
        ring_join(&w->waiting, &p->ring);
    } else {
        p->over = true;
        take(p);
    }
}

/* At a page. True when it was taken. */
static bool look(struct watch *w, struct poll_watcher *p, const struct feed_page *page)
{
    bool found = any_match(page, prefix_of(p));
    if (!found) {
        p->at = page->next;
        p->whole = page->whole;
    }
    looked(w, p, found);
    return p->taken;
}

struct scan {
    struct poll_watcher *p;
    unsigned entries;
    bool found;
};

static bool pass_over(void *arg, const struct db_change *change)
{
    struct scan *s = arg;
    s->found = str_starts((struct str){change->key, change->key_len}, prefix_of(s->p));
    if (s->found)
        return false;
    s->p->at = change->seq;
    s->entries++;
    return true;
}

/* At so many entries of the file, whose end in this snapshot is tip. */
static void look_far(struct watch *w, struct poll_watcher *p, struct db_reader *r)
{
    struct scan s = {.p = p};
    if (db_change_list(r, p->at, SCAN_MOST, pass_over, &s) != DB_OK) {
        take(p); /* it is told when it is answered */
        return;
    }
    if (!s.found && s.entries < SCAN_MOST) {
        p->at = w->tip;
        p->whole = true;
    }
    looked(w, p, s.found);
}

bool watch_poll_look(struct watch *w, struct db_reader *r)
{
    int64_t looks = LOOKS_PER_ROUND;
    unsigned taken = 0;
    while (looks > 0 && taken < TAKEN_PER_ROUND && !ring_empty(&w->behind)) {
        struct poll_watcher *p = RING_OF(w->behind.next, struct poll_watcher, ring);
        const struct feed_page *page;
        if (p->at + FAR < w->tip) {
            ring_leave(&p->ring);
            ring_join(&w->far, &p->ring);
            continue;
        }
        enum feed_result result = feed_page(&w->feed, r, p->at, FEED_READS_BEHIND, &page);
        if (result == FEED_LATER)
            break;
        if (result == FEED_FAILED) {
            take(p); /* it is told when it is answered */
            taken++;
            continue;
        }
        looks -= page->count + 1;
        taken += look(w, p, page);
    }
    if (!ring_empty(&w->far))
        look_far(w, RING_OF(w->far.next, struct poll_watcher, ring), r);
    return !ring_empty(&w->behind) || !ring_empty(&w->far);
}

static void take_all(struct ring *ring, bool over)
{
    while (!ring_empty(ring)) {
        struct poll_watcher *p = RING_OF(ring->next, struct poll_watcher, ring);
        p->over = over;
        take(p);
    }
}

void watch_poll_judge(struct watch *w)
{
    take_all(&w->behind, false);
    take_all(&w->far, false);
    take_all(&w->waiting, false);
}

void watch_poll_drain(struct watch *w)
{
    take_all(&w->behind, true);
    take_all(&w->far, true);
    take_all(&w->waiting, true);
}

uint64_t watch_poll_expire(struct watch *w, uint64_t now_ms)
{
    uint64_t next = UINT64_MAX;
    unsigned taken = 0;
    for (int i = 1; i <= ASK_WAIT_MAX_S; i++)
        while (!ring_empty(&w->due[i])) {
            struct poll_watcher *p = RING_OF(w->due[i].next, struct poll_watcher, due);
            if (p->due_ms > now_ms || taken == TAKEN_PER_ROUND) {
                next = p->due_ms < next ? p->due_ms : next;
                break;
            }
            p->over = true;
            take(p);
            taken++;
        }
    return next;
}
