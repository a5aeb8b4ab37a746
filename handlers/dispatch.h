/* From a request to its handler: faults, routes, methods, rights, in this order. */
#ifndef HANJI_HANDLERS_DISPATCH_H
#define HANJI_HANDLERS_DISPATCH_H

#include "fcgi/loop.h"

/* app.answer: builds a response, or parks. Never FAIL. */
enum verdict dispatch(struct call *c);

#endif
