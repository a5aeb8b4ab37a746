/* Whether a request that changes something was meant by a page of this site.
 *
 * A browser sends the cookie of a session along whoever made it ask. SameSite=Lax keeps other sites
 * from POSTing with it, but not other hosts of the same site, nor old browsers. So a request that a
 * cookie speaks for must also say where it comes from: Sec-Fetch-Site (Fetch Metadata), else Origin
 * (RFC 6454), else Referer (RFC 9110 10.1.3); scripts can set none of them. Pure, any thread. */
#ifndef HANJI_HANDLERS_ORIGIN_H
#define HANJI_HANDLERS_ORIGIN_H

#include "fcgi/req.h"

enum origin {
    ORIGIN_SAME,    /* this very scheme, host and port, or the person himself (a bookmark) */
    ORIGIN_OTHER,   /* somewhere else */
    ORIGIN_UNKNOWN, /* none of the headers: not a browser, or one that hides them */
};

enum origin origin_of(const struct req *r);

/* True when the client came over TLS. */
bool origin_https(const struct req *r);

#endif
