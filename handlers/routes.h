/* The table of contents: every path that is reachable, with what it needs. */
#ifndef HANJI_HANDLERS_ROUTES_H
#define HANJI_HANDLERS_ROUTES_H

#include "fcgi/loop.h"

enum route_match {
    ROUTE_EXACT,      /* the path itself */
    ROUTE_ITEM,       /* anything below it that does not end in '/' */
    ROUTE_COLLECTION, /* it, and anything below it that ends in '/' */
    ROUTE_SHAPE,      /* where it has a '*', something without '/' */
    ROUTE_BELOW,      /* anything below it, whose methods and rights its handler judges */
};

enum route_need {
    NEED_NOTHING,
    NEED_READ,     /* a credential whose read prefixes cover the path, or a public one */
    NEED_RIGHTS,   /* reading or writing, by the method */
    /* For requests that name paths: the handler judges each of them. The credential itself must be
     * good; for reading there need not be one, since they may be public. */
    NEED_EACH_READ,
    NEED_EACH_WRITE,
    NEED_EACH,     /* one of both, by the method */
    NEED_OPERATOR, /* the control socket */
};

typedef enum verdict handler_fn(struct call *c);

struct route {
    const char *path;
    enum route_match match;
    unsigned methods; /* of enum method, or-ed */
    enum route_need need;
    handler_fn *handler;
};

/* The route of a path, NULL when there is none. */
const struct route *route_find(struct str path);

#endif
