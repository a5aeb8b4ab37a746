/* Watchers: requests to the change feed that wait for what comes, as one answer or as a stream.
 *
 * A watcher has a position in the feed and asks for what is behind it whenever the feed has grown:
 * the writer pokes the loops after a commit, and while somebody watches the loop asks four times a
 * second whether another process has committed. So nothing is queued for a watcher, however slow it
 * is, and none can miss anything. Rights are judged again before anything is sent, and when any may
 * have changed.
 *
 * Of a loop's thread, but for watch_committed. Nothing here takes a whole round: what is left is
 * done in the next. */
#ifndef HANJI_HANDLERS_WATCH_H
#define HANJI_HANDLERS_WATCH_H

#include <stdatomic.h>

#include "db/op.h"
#include "handlers/ask.h"

struct session;
struct store;
struct watch;

/* Of all threads. */
struct watch_stats {
    atomic_uint_fast64_t polls;   /* requests that wait now */
    atomic_uint_fast64_t streams; /* open now */
    atomic_uint_fast64_t events;  /* entries sent to either */
    atomic_uint_fast64_t rights;  /* goes up when rights may have changed */
};

/* NULL when memory is short. */
struct watch *watch_new(struct session *s) __attribute__((warn_unused_result));
void watch_free(struct watch *w);

/* Lets the call wait until there is something for it behind ask->since or, with wait_s, the time is
 * over. Without wait_s it waits only until it is known that there is nothing. whole: in the round's
 * snapshot there is nothing at all behind it. PARK, or REPLY when 503 was answered. */
enum verdict watch_poll(struct call *c, const struct ask *ask, bool whole)
    __attribute__((warn_unused_result));

/* Answers with a stream of events behind ask->since. */
enum verdict watch_stream(struct call *c, const struct ask *ask)
    __attribute__((warn_unused_result));

/* Any thread, after a commit and before its operations are handed back. */
void watch_committed(struct store *store, const struct db_op *list);

/* The loop's: see struct loop_app. */
void watch_poked(struct watch *w);
void watch_timer(struct watch *w);
void watch_drain(struct watch *w);
void watch_round_end(struct watch *w);

#endif
