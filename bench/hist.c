#include "hist.h"

#include <math.h>
#include <string.h>

void hist_reset(struct hist *hist)
{
    memset(hist, 0, sizeof *hist);
}

static unsigned step_of(uint64_t value)
{
    unsigned power;

    if (value < HIST_STEPS)
        return (unsigned)value;
    power = 63 - (unsigned)__builtin_clzll(value) - HIST_STEP_BITS;
    if (power + 1 >= HIST_POWERS)
        return HIST_POWERS * HIST_STEPS - 1;
    return (power + 1) * HIST_STEPS + (unsigned)(value >> power) - HIST_STEPS;
}

static uint64_t end_of_step(unsigned step)
{
    unsigned power;

    if (step < HIST_STEPS)
        return step;
    power = step / HIST_STEPS - 1;
    return ((uint64_t)(step % HIST_STEPS + HIST_STEPS + 1) << power) - 1;
}

void hist_add(struct hist *hist, int64_t duration_ns)
{
    if (duration_ns < 0)
        duration_ns = 0;
    hist->counts[step_of((uint64_t)duration_ns)]++;
    hist->total++;
    hist->sum_ns += (double)duration_ns;
    if (duration_ns > hist->max_ns)
        hist->max_ns = duration_ns;
}

double hist_quantile_us(const struct hist *hist, double share)
{
    double wanted = ceil(share * (double)hist->total);
    uint64_t seen = 0;

    if (hist->total == 0)
        return 0;
    for (unsigned step = 0; step < HIST_POWERS * HIST_STEPS; step++) {
        seen += hist->counts[step];
        if ((double)seen >= wanted) {
            uint64_t end_ns = end_of_step(step);
            if (end_ns > (uint64_t)hist->max_ns)
                end_ns = (uint64_t)hist->max_ns;
            return (double)end_ns / 1000;
        }
    }
    return (double)hist->max_ns / 1000;
}
