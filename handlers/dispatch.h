/* From a request to its handler: faults, routes, methods, rights, in this order. */
#ifndef HANJI_HANDLERS_DISPATCH_H
#define HANJI_HANDLERS_DISPATCH_H

#include "handlers/access.h"
#include "handlers/routes.h"

/* app.answer: builds a response, or parks. Never FAIL. */
enum verdict dispatch(struct call *c);

/* Answers 401, 403 or 500 unless access is ACCESS_OK; true when it answered. */
bool dispatch_refused(struct call *c, enum access access) __attribute__((warn_unused_result));

/* What the loop may be told: a handler's FAIL (memory is short) becomes a 503, a broken head a
 * 500. */
enum verdict dispatch_settle(struct call *c, enum verdict verdict);

enum { DISPATCH_METHODS_MAX = 64 };

/* Writes the methods of a route as Allow has them; returns the length. */
size_t dispatch_methods(const struct route *route, char out[DISPATCH_METHODS_MAX]);

#endif
