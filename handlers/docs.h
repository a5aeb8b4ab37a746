/* Documents over HTTP: /docs/KEY and /docs/COLLECTION/. */
#ifndef HANJI_HANDLERS_DOCS_H
#define HANJI_HANDLERS_DOCS_H

#include "handlers/routes.h"
#include "handlers/store.h"

handler_fn docs_item;       /* GET, HEAD, PUT, DELETE */
handler_fn docs_collection; /* GET, HEAD: the list */

/* True when the text may be the key of a document: what path_ok says of "/docs/KEY", and its
 * length. Leaves that path in the session's link. */
bool docs_key_ok(struct session *s, struct str key) __attribute__((warn_unused_result));

/* The key, or the prefix of a collection, that a path below /docs/ names. */
struct str docs_key(const struct req *req);

#endif
