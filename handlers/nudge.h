/* Waking the courier: a datagram to its socket, and the one timer of the server that sends it.
 *
 * Whoever owns the socket (the supervisor, or systemd) starts hanji-courier when a datagram lies
 * there and none runs; a courier that runs reads it and looks at the outbox. So nothing is lost
 * whichever of them ends meanwhile.
 *
 * After a commit that may have changed what is due, the first reactor thread looks when the next
 * message is: now, and the courier is woken; later, and the timer is set to that time by the wall
 * clock; nothing, and nothing ever wakes. What the courier reports itself does not wake it, but a
 * second later somebody looks whether it went on; and when it was woken in vain, after a minute. */
#ifndef HANJI_HANDLERS_NUDGE_H
#define HANJI_HANDLERS_NUDGE_H

#include "db/op.h"
#include "fcgi/loop.h"

struct nudge;
struct session;

/* path: the socket's, kept. NULL: memory or descriptors are short. */
struct nudge *nudge_new(const char *path);
void nudge_free(struct nudge *n); /* safe with NULL */

/* Before the loop runs: from now on it is this loop's thread that looks, at once for the first
 * time; and once more after settle_ms, when a worker that was replaced has ended and its timer with
 * it. False: there is no timer, and what is not due at a commit waits for the next one. */
bool nudge_start(struct nudge *n, struct loop *loop, uint64_t settle_ms)
    __attribute__((warn_unused_result));

/* Before the loop is freed. What is committed after it wakes the courier at once. */
void nudge_end(struct nudge *n);

/* Writer's thread: operations that were just committed. Never blocks. */
void nudge_committed(struct nudge *n, const struct db_op *list);

/* Thread of a loop that was poked: looks, if it is that one and there is something to look for. */
void nudge_poked(struct nudge *n, struct session *s);

#endif
