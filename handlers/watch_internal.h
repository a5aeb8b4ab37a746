/* Private to the watchers: what watch.c, watch_poll.c and watch_stream.c share. */
#ifndef HANJI_HANDLERS_WATCH_INTERNAL_H
#define HANJI_HANDLERS_WATCH_INTERNAL_H

#include "handlers/feed.h"
#include "handlers/store.h"
#include "handlers/watch.h"

/* A place in a ring; a ring without members is its own neighbour. */
struct ring {
    struct ring *prev, *next;
};

static inline void ring_init(struct ring *r)
{
    r->prev = r->next = r;
}

static inline bool ring_empty(const struct ring *r)
{
    return r->next == r;
}

/* Takes r out of its ring; safe for one that is in none. */
static inline void ring_leave(struct ring *r)
{
    r->prev->next = r->next;
    r->next->prev = r->prev;
    ring_init(r);
}

/* Puts r, which is in none, before at: at a ring's head that is its end. */
static inline void ring_join(struct ring *at, struct ring *r)
{
    r->prev = at->prev;
    r->next = at;
    at->prev->next = r;
    at->prev = r;
}

/* Moves all of from to the end of to. */
static inline void ring_join_all(struct ring *to, struct ring *from)
{
    if (ring_empty(from))
        return;
    from->next->prev = to->prev;
    from->prev->next = to;
    to->prev->next = from->next;
    to->prev = from->prev;
    ring_init(from);
}

#define RING_OF(ring, type, member) ((type *)(void *)((char *)(ring) - offsetof(type, member)))

/* The watchers of a thread. */
struct watch {
    struct session *session;
    struct feed feed;
    uint64_t tip;     /* the last number that watchers were woken for */
    uint64_t rights;  /* watch_stats.rights that they were judged after */
    uint64_t version; /* of the file, when version_known */
    bool version_known;
    unsigned count;
    struct ring streams;                 /* those that must hear something soonest first */
    struct ring behind;                  /* polls that have not been looked at up to tip */
    struct ring far;                     /* of those the ones that have much to look at */
    struct ring waiting;                 /* polls that have been */
    struct ring due[ASK_WAIT_MAX_S + 1]; /* polls by their wait, so in order of its end */
};

/* One more watcher of the call's thread; NULL when there are too many and 503 was answered. */
struct watch *watch_enter(struct call *c, atomic_uint_fast64_t *kind)
    __attribute__((warn_unused_result));
void watch_leave(struct watch *w, atomic_uint_fast64_t *kind);

/* watch_poll.c: looks at those behind; true when some are left for the next round. */
bool watch_poll_look(struct watch *w, struct db_reader *r) __attribute__((warn_unused_result));

/* Each is judged again. */
void watch_poll_judge(struct watch *w);

/* Answers those whose time is over; returns when the next one's is, UINT64_MAX: none. */
uint64_t watch_poll_expire(struct watch *w, uint64_t now_ms);

/* Answers all. */
void watch_poll_drain(struct watch *w);

/* watch_stream.c: each looks whether there is something for it, and is judged. */
void watch_stream_wake(struct watch *w);

/* Those that were silent for long get a sign of life; returns when the next one does. */
uint64_t watch_stream_beat(struct watch *w, uint64_t now_ms);

#endif
