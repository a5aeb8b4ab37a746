/* The cookie of a session (RFC 6265).
 *
 * Its name has the mount in it, so that two hanjis on one site do not overwrite each other's. Over
 * TLS it begins with "__Host-": a browser takes such a cookie only over TLS, for the whole site and
 * from this very host, so that no neighbour (another subdomain, the same name without TLS) can give
 * somebody a session of his own choosing. Pure functions, any thread. */
#ifndef HANJI_HANDLERS_COOKIE_H
#define HANJI_HANDLERS_COOKIE_H

#include "fcgi/resp.h"

enum { COOKIE_NAME_MAX = 128, COOKIE_VALUE_MAX = 64 };

/* Writes the name, NUL-terminated; returns its length. A mount too long for the room is cut. */
size_t cookie_name(char name[COOKIE_NAME_MAX], struct str mount, bool https);

/* The value of the cookie of that name in a Cookie header. {NULL, 0} when there is none, or when
 * there are two that differ: somebody may have added one, and it is not known who. */
struct str cookie_find(struct str header, struct str name);

/* Adds a Set-Cookie header. value NULL: the browser forgets it. */
void cookie_set(struct resp *r, struct str mount, bool https, const char *value,
                uint64_t max_age_s);

#endif
