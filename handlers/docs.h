/* Documents over HTTP: /docs/KEY and /docs/COLLECTION/. */
#ifndef HANJI_HANDLERS_DOCS_H
#define HANJI_HANDLERS_DOCS_H

#include "handlers/routes.h"

handler_fn docs_item;       /* GET, HEAD, PUT, DELETE */
handler_fn docs_collection; /* GET, HEAD: the list */

/* The key, or the prefix of a collection, that a path below /docs/ names. */
struct str docs_key(const struct req *req);

#endif
