/* Full-text search over HTTP: GET /docs/COLLECTION/?q=... */
#ifndef HANJI_HANDLERS_SEARCH_H
#define HANJI_HANDLERS_SEARCH_H

#include "handlers/routes.h"

/* True when the query of the request has a q. */
bool search_asked(struct call *c);

/* Answers the list of what was found; parks. */
handler_fn search_collection;

#endif
