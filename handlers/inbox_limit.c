#include "handlers/inbox_limit.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/random.h>

enum { WHOLE = 1000, FULL = INBOX_LIMIT_FAILURES * WHOLE };

/* FNV-1a, 64 bits. */
static uint64_t hash(uint64_t h, const void *p, size_t n)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * UINT64_C(1099511628211);
    return h;
}

/* Never 0. Lock held. */
static uint64_t hash_address(struct inbox_limit *l, struct str address)
{
    unsigned char bytes[16];
    char text[INET6_ADDRSTRLEN];
    if (l->seed == 0 &&
        getrandom(&l->seed, sizeof l->seed, GRND_NONBLOCK) != (ssize_t)sizeof l->seed)
        l->seed = 1;
    uint64_t h = UINT64_C(14695981039346656037) ^ l->seed;
    if (address.n < sizeof text && memchr(address.p, ':', address.n) != NULL) {
        memcpy(text, address.p, address.n);
        text[address.n] = 0;
        if (inet_pton(AF_INET6, text, bytes) == 1)
            return hash(h, bytes, 8) | 1;
    }
    return hash(h, address.p, address.n) | 1;
}

/* The place of an address, with what it has now; a new one has all. Lock held. */
static struct inbox_place *place_of(struct inbox_limit *l, struct str address, uint64_t now_ms)
{
    uint64_t h = hash_address(l, address);
    struct inbox_place *p = &l->place[(h >> 20) % INBOX_LIMIT_PLACES];
    if (p->address != h)
        *p = (struct inbox_place){h, now_ms, FULL};
    uint64_t passed = now_ms > p->at_ms ? now_ms - p->at_ms : 0; /* a thousandth a millisecond */
    p->left = passed > FULL - p->left ? FULL : p->left + (unsigned)passed;
    p->at_ms = now_ms;
    return p;
}

bool inbox_limit_allows(struct inbox_limit *l, struct str address, uint64_t now_ms)
{
    if (address.n == 0)
        return true;
    pthread_mutex_lock(&l->lock);
    bool allows = place_of(l, address, now_ms)->left >= WHOLE;
    pthread_mutex_unlock(&l->lock);
    return allows;
}

void inbox_limit_failed(struct inbox_limit *l, struct str address, uint64_t now_ms)
{
    if (address.n == 0)
        return;
    pthread_mutex_lock(&l->lock);
    struct inbox_place *p = place_of(l, address, now_ms);
    p->left -= p->left >= WHOLE ? WHOLE : p->left;
    pthread_mutex_unlock(&l->lock);
}

void inbox_limit_passed(struct inbox_limit *l, struct str address)
{
    if (address.n == 0)
        return;
    pthread_mutex_lock(&l->lock);
    uint64_t h = hash_address(l, address);
    struct inbox_place *p = &l->place[(h >> 20) % INBOX_LIMIT_PLACES];
    if (p->address == h)
        p->left = FULL;
    pthread_mutex_unlock(&l->lock);
}
