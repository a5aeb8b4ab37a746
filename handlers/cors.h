/* Reading and writing by scripts of other sites (CORS; the Fetch Standard's "CORS protocol").
 *
 * Scripts of the origins that the configuration's `cors` names may use the whole interface with a
 * token. Cookies are never let through: Access-Control-Allow-Credentials is not sent. The header
 * lines of an origin are made once, at start; an answer, also one that is parked or streamed,
 * carries a pointer to them. */
#ifndef HANJI_HANDLERS_CORS_H
#define HANJI_HANDLERS_CORS_H

#include "handlers/routes.h"

struct cors; /* what the configuration allows */

/* Reads the comma-separated list of origins, or "*" for any. A list that names none gives a cors
 * that allows nothing. NULL when one of them is malformed, or memory is short. */
struct cors *cors_new(const char *list) __attribute__((warn_unused_result));
void cors_free(struct cors *cors);

/* Gives the answer of the call its lines, if its Origin is one of them; else it says that they hang
 * on that. */
void cors_apply(const struct cors *cors, struct call *c);

/* Answers the question of a browser whether a script may send such a request. False: it is no such
 * question, or not from an origin that is allowed. After cors_apply. */
bool cors_preflight(struct call *c, const struct route *route);

#endif
