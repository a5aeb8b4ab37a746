/* Making the messages of a request: at once, or on a thread of the pool where one is sealed. */
#ifndef HANJI_HANDLERS_SENDS_WORK_H
#define HANJI_HANDLERS_SENDS_WORK_H

#include "fcgi/loop.h"
#include "handlers/keys.h"

/* What a request is to the work. Constant. */
struct sends_work {
    void (*make)(void *request, struct keyring *ring); /* makes all messages; any thread */
    /* On the loop, when they are made, or could not be: answers or parks. Owns the request. */
    enum verdict (*go_on)(struct call *c, void *request);
    void (*drop)(void *request); /* frees it: the client has left, or nothing can be done */
};

/* Makes the messages and goes on. Owns the request. sealed: one of them is. */
enum verdict sends_work(struct call *c, const struct sends_work *work, void *request, bool sealed)
    __attribute__((warn_unused_result));

#endif
