/* A small, strict reader of JSON (RFC 8259) whose shape is known: cards, envelopes.
 *
 * Objects have exactly the members that are named, each once, in any order; numbers are whole, not
 * negative, below 2^53 and have one spelling; strings have no escapes, but that a '/' in base64 may
 * be "\/". White space is free. Everything else ends the reading. Nothing is copied but bytes that
 * were base64. Pure functions, any thread. */
#ifndef HANJI_SEAL_JSON_H
#define HANJI_SEAL_JSON_H

#include <stdint.h>

#include "seal/token.h"

/* What is left of a text. */
struct seal_json {
    const char *p, *end;
};

/* Reads the value of member i, or the i-th item. False ends the reading. */
typedef bool seal_json_fn(void *arg, unsigned i, struct seal_json *j);

/* The members of an object: names, ended by NULL, at most 32; those whose bit is set in optional
 * may be missing. *seen (NULL: not asked) is a bit for each that was there. */
struct seal_json_shape {
    const char *const *names;
    uint32_t optional;
    seal_json_fn *take;
    void *arg;
};
bool seal_json_object(struct seal_json *j, const struct seal_json_shape *shape, uint32_t *seen)
    __attribute__((warn_unused_result));

/* An array of at most `most` items. */
bool seal_json_array(struct seal_json *j, unsigned most, seal_json_fn *take, void *arg)
    __attribute__((warn_unused_result));

/* A string, as a slice of the text. */
bool seal_json_text(struct seal_json *j, struct seal_text *text)
    __attribute__((warn_unused_result));
bool seal_json_number(struct seal_json *j, int64_t *v) __attribute__((warn_unused_result));

/* A string that is base64 (RFC 4648 4, padded, one spelling) of exactly n bytes. */
bool seal_json_bytes(struct seal_json *j, unsigned char *out, size_t n)
    __attribute__((warn_unused_result));

/* True when nothing but white space is left. */
bool seal_json_end(struct seal_json *j) __attribute__((warn_unused_result));

#endif
