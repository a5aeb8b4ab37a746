#include "seal/id.h"

#include <pthread.h>
#include <sodium.h>

enum { LOW_BITS = 16 }; /* of the 80 random bits; the others are in high, below the time */

static struct {
    pthread_mutex_t lock;
    uint64_t ms;
    uint64_t random; /* the upper 64 of the 80 random bits */
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t random64(void)
{
    uint64_t v;
    randombytes_buf(&v, sizeof v);
    return v;
}

/* Goes on from the last one by a step that cannot be guessed. */
static void advance(uint64_t now_ms)
{
    uint64_t step = 1 + (random64() >> 24);
    if (now_ms > last.ms) {
        last.ms = now_ms;
        last.random = random64();
    } else if (last.random > UINT64_MAX - step) {
        last.ms++;
        last.random = random64() >> 1;
    } else {
        last.random += step;
    }
}

void seal_id_new(char id[SEAL_ID_LEN + 1], uint64_t now_ms)
{
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    uint64_t high, low = random64() >> (64 - LOW_BITS);
    pthread_mutex_lock(&last.lock);
    advance(now_ms & 0xffffffffffff);
    high = last.ms << 16 | last.random >> 48;
    low |= last.random << LOW_BITS;
    pthread_mutex_unlock(&last.lock);
    for (int i = SEAL_ID_LEN - 1; i >= 0; i--) {
        id[i] = digits[low & 31];
        low = low >> 5 | high << 59;
        high >>= 5;
    }
    id[SEAL_ID_LEN] = 0;
}
