/* Is it JSON? Asked of bytes as they come, in memory that does not grow with them.
 *
 * JSON is what RFC 8259 says: one value, in UTF-8 (RFC 3629), white space around it, no byte order
 * mark; nested at most JSON_DEPTH_MAX deep, which every SQLite can read (those before 3.42 go to
 * 2000). What passes here passes SQLite's json_valid. Names may be there twice and numbers may have
 * any size. Pure functions, any thread. */
#ifndef HANJI_HANDLERS_JSON_CHECK_H
#define HANJI_HANDLERS_JSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH_MAX = 1000 };

struct json_check {
    uint64_t at;     /* bytes looked at that were right: once one is wrong, its offset */
    const char *word; /* what is left of true, false or null */
    uint16_t depth;
    uint8_t state;
    uint8_t more;      /* hex digits of an escape, or bytes of a character, that must follow */
    uint8_t low, high; /* between these lies the next byte of a character */
    bool name;         /* the string that is open is a member's name */
    uint8_t arrays[JSON_DEPTH_MAX / 8]; /* a bit for each level: set where it is an array */
};

void json_check_start(struct json_check *c);

/* Looks at the next n bytes. False: this cannot be JSON any more, whatever follows. */
bool json_check_feed(struct json_check *c, const void *p, size_t n)
    __attribute__((warn_unused_result));

/* True when what was fed is one whole value. */
bool json_check_end(const struct json_check *c) __attribute__((warn_unused_result));

/* All of it at once. *wrong (may be NULL) is the offset of the first byte that is wrong; n when the
 * end came too early. */
bool json_check_all(const void *p, size_t n, uint64_t *wrong) __attribute__((warn_unused_result));

#endif
