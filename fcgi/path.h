/* Paths and query strings: decoding and the one spelling that everything is matched on.
 *
 * Rules as nginx has them for $document_uri: percent-decoded once, "." and ".." resolved, slashes
 * merged. A path that passed here has no second spelling. Pure functions, any thread. */
#ifndef HANJI_FCGI_PATH_H
#define HANJI_FCGI_PATH_H

#include "fcgi/buf.h"

/* Decodes and normalises the path of a request target (up to '?'), as nginx does: for web servers
 * that do not send DOCUMENT_URI. out has room for in.n bytes and may not overlap. Returns the
 * length, or 0 when it is malformed: no leading slash, a bad escape, a NUL, or ".." above the
 * root. */
size_t path_normalise(struct str in, char *out);

/* True for what may be routed: starts with '/', valid UTF-8, no control character, no backslash,
 * no empty segment but the last, no "." or ".." segment. */
bool path_ok(struct str path);

/* True when s is valid UTF-8 (RFC 3629: no surrogates, no overlong forms). */
bool utf8_ok(const char *s, size_t n);

enum { QUERY_VALUE_MAX = 4096 };

enum query_result {
    QUERY_NONE, /* no such parameter */
    QUERY_OK,
    QUERY_BAD,   /* bad escape, NUL, invalid UTF-8 or longer than QUERY_VALUE_MAX */
    QUERY_TWICE, /* given more than once */
};

/* Finds a parameter of an application/x-www-form-urlencoded query and decodes it ('+' is a space)
 * into out, replacing what was there. */
enum query_result query_find(struct str query, const char *name, struct buf *out)
    __attribute__((warn_unused_result));

/* Appends text percent-encoded for use in a path or as a query value: unreserved characters
 * (RFC 3986) and '/' stay as they are. */
bool path_encode(struct buf *out, struct str text) __attribute__((warn_unused_result));

#endif
