/* Numbers in values that hold several things: big-endian. Private to db/. */
#ifndef HANJI_DB_WIRE_H
#define HANJI_DB_WIRE_H

#include <stdint.h>
#include <string.h>

/* Each returns what is behind. */
static inline unsigned char *db_wire_put(unsigned char *p, const void *from, size_t n)
{
    memcpy(p, from, n);
    return p + n;
}

static inline unsigned char *db_wire_put64(unsigned char *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (unsigned char)(v >> (56 - 8 * i));
    return p + 8;
}

static inline uint64_t db_wire_get64(const unsigned char *p)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v = v << 8 | p[i];
    return v;
}

#endif
