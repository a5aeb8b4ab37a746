/* Byte ranges (RFC 9110 14): which parts of a representation a client asks for. Pure functions. */
#ifndef HANJI_HANDLERS_RANGE_H
#define HANJI_HANDLERS_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "fcgi/buf.h"

enum { RANGES_MAX = 16 };

struct range {
    uint64_t from;
    uint64_t bytes; /* above 0 */
};

struct ranges {
    unsigned count;
    bool vast; /* a number had more digits than others can count with */
    struct range list[RANGES_MAX];
};

enum range_result {
    RANGE_WHOLE,         /* no Range, not understood, or not worth it: the whole is sent */
    RANGE_PARTS,         /* 206 with these */
    RANGE_UNSATISFIABLE, /* 416 */
};

/* Reads a Range header for a representation of size bytes. Malformed ones, other units, more than
 * RANGES_MAX ranges and ranges that together are larger than the whole are ignored, as 14.2 allows.
 * Ranges are kept in the order they were asked for. */
enum range_result range_parse(struct str header, uint64_t size, struct ranges *ranges);

#endif
