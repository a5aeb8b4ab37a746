/* What apps did, counted by all threads. */
#ifndef HANJI_HANDLERS_APP_STATS_H
#define HANJI_HANDLERS_APP_STATS_H

#include <stdatomic.h>

struct app_stats {
    atomic_uint_fast64_t requests;
    atomic_uint_fast64_t moved;   /* to a thread of the pool: too slow for the loop */
    atomic_uint_fast64_t stopped; /* because they took too long */
    atomic_uint_fast64_t faults;  /* of their SQL or templates */
    atomic_uint_fast64_t refused; /* because too many were slow at once */
};

static inline void app_count(atomic_uint_fast64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

#endif
