/* The courier's loop: looks, reads, sends and reports, until there is nothing to do.
 *
 * One thread sends (this one), one reads and signs, one reports. It begins with a look at the
 * lines, looks again when a datagram says that there is something new, and leaves when nothing was
 * to be done for a while and nothing will be due within it; the server knows when the next is. */
#ifndef HANJI_HANDLERS_COURIER_LOOP_H
#define HANJI_HANDLERS_COURIER_LOOP_H

#include "fcgi/conf.h"
#include "handlers/courier_plan.h"

struct keyring;

struct courier_config {
    const struct conf *conf;
    struct keyring *keys;
    uint64_t fence;
    int nudges; /* the datagram socket; -1: none, it works through what is due and leaves */
    int signals; /* a signalfd: what comes there ends it */
};

enum courier_left {
    COURIER_LEFT_IDLE,
    COURIER_LEFT_ASKED,  /* a signal came; what was on its way had a moment to end */
    COURIER_LEFT_FENCED, /* another courier has begun */
    COURIER_LEFT_FAILED, /* it could not begin; logged */
};

enum courier_left courier_loop(const struct courier_config *config);

#endif
