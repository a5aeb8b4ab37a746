/* How often an address may fail at an inbox before it is asked to wait.
 *
 * Each address has so many failures, and gets one back a second; a message that is verified gives
 * all of them back. So who shares an address with somebody who fails is slowed down, never shut
 * out. Memory is bounded: addresses that meet in one place of the table push each other out. */
#ifndef HANJI_HANDLERS_INBOX_LIMIT_H
#define HANJI_HANDLERS_INBOX_LIMIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "fcgi/buf.h"

enum {
    INBOX_LIMIT_FAILURES = 30, /* in a row */
    INBOX_LIMIT_PLACES = 1024,
};

struct inbox_limit {
    pthread_mutex_t lock;
    uint64_t seed; /* so that nobody can choose where an address stands */
    struct inbox_place {
        uint64_t address;    /* as a hash; 0: none */
        uint64_t at_ms;      /* when left was true */
        unsigned left;       /* failures, in thousandths */
    } place[INBOX_LIMIT_PLACES];
};

/* All of them on any thread. An empty address is never limited: the web server tells none. An IPv6
 * address counts by its first 64 bits. */
bool inbox_limit_allows(struct inbox_limit *l, struct str address, uint64_t now_ms);
void inbox_limit_failed(struct inbox_limit *l, struct str address, uint64_t now_ms);
void inbox_limit_passed(struct inbox_limit *l, struct str address);

#endif
