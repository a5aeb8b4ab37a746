/*
 * A histogram of durations with a bounded error: 128 steps per power of two, so a reported
 * value is at most 0.8 % above the true one, from 1 ns to hours. Adding is a few instructions.
 */
#ifndef BENCH_HIST_H
#define BENCH_HIST_H

#include <stdint.h>

enum { HIST_STEP_BITS = 7, HIST_STEPS = 1 << HIST_STEP_BITS, HIST_POWERS = 45 };

struct hist {
    uint64_t counts[HIST_POWERS * HIST_STEPS];
    uint64_t total;
    int64_t max_ns;
    double sum_ns;
};

void hist_reset(struct hist *hist);
void hist_add(struct hist *hist, int64_t duration_ns);

/* The smallest duration that at least `share` (0 to 1) of all durations do not exceed, in
 * microseconds, rounded up to the end of its step; 0 when nothing was added. */
double hist_quantile_us(const struct hist *hist, double share);

#endif
