/* Reporting: a thread that tells the server what became of messages, all that ended meanwhile in
 * one operation. While the server is away, or has no room, it waits and tries again; when another
 * courier has begun, the fence is refused, and nothing is reported any more. */
#ifndef HANJI_HANDLERS_COURIER_REPORT_H
#define HANJI_HANDLERS_COURIER_REPORT_H

#include "handlers/courier_item.h"

struct courier_reporter;

/* The number that this courier reports under. False: the server cannot be asked, or does not
 * answer properly. */
bool courier_lease(const char *control, uint64_t *fence) __attribute__((warn_unused_result));

/* wake is called, on the reporter's thread, when a report was taken or refused. NULL: memory is
 * short. */
struct courier_reporter *courier_reporter_new(const char *control, uint64_t fence,
                                              void (*wake)(void *arg), void *arg);

/* Ends the thread, and whatever is not reported is forgotten. Safe with NULL. */
void courier_reporter_free(struct courier_reporter *r);

/* An item whose mark is to be reported; it is the reporter's until it comes back. */
void courier_reporter_add(struct courier_reporter *r, struct courier_item *item);

/* One whose mark was applied; NULL: none. */
struct courier_item *courier_reporter_done(struct courier_reporter *r);

/* True once another courier's fence is the valid one. */
bool courier_reporter_refused(struct courier_reporter *r);

#endif
