/* How far a long command is, as a line on a terminal, and what to remove when it is interrupted.
 *
 * Nothing is shown where standard error is no terminal. For commands; one at a time. */
#ifndef HANJI_HANDLERS_PROGRESS_H
#define HANJI_HANDLERS_PROGRESS_H

#include "db/watch.h"

/* Shows `done` of `all` with a word for what is done; at most some times a second. all 0:
 * unknown. */
void progress_show(void *arg, const char *what, uint64_t done, uint64_t all);

/* Takes the line away again. */
void progress_end(void);

/* Makes watch show how far its work is, and has SIGINT, SIGTERM and SIGHUP remove its unfinished
 * file before they end the process. watch must live as long as the process. */
void progress_watch(struct db_watch *watch);

#endif
