/* Waking the courier: a datagram to its socket, and the one timer of the server that sends it.
 *
 * Whoever owns the socket (the supervisor, or systemd) starts hanji-courier when a datagram lies
 * there and none runs; a courier that runs reads it and looks at the outbox. So nothing is lost
 * whichever of them ends meanwhile. */
#ifndef HANJI_HANDLERS_NUDGE_H
#define HANJI_HANDLERS_NUDGE_H

#include "db/op.h"

struct nudge;

/* path: the socket's. NULL: memory is short. */
struct nudge *nudge_new(const char *path);
void nudge_free(struct nudge *n);

/* Writer's thread: operations that were just committed; when something of theirs is to be sent, it
 * wakes the courier, or notes when it will be due. Never blocks. */
void nudge_committed(struct nudge *n, const struct db_op *list);

#endif
