/* Documents over HTTP: /docs/KEY and /docs/COLLECTION/. */
#ifndef HANJI_HANDLERS_DOCS_H
#define HANJI_HANDLERS_DOCS_H

#include "handlers/precond.h"
#include "handlers/routes.h"
#include "handlers/store.h"

enum { DOCS_TEXT_MAX = 1 << 20 }; /* bytes of text and JSON that are stored as TEXT; BLOB above */

handler_fn docs_item;       /* GET, HEAD, PUT, DELETE, PATCH */
handler_fn docs_collection; /* GET, HEAD: the list; POST: a new document */

/* PATCH of one document, and POST to a collection; the key is not too long. */
enum verdict docs_patch(struct call *c, const struct db_precond *p);
enum verdict docs_create(struct call *c);

/* Bytes that patching the document will rewrite, as far as is known now. */
size_t docs_patch_cost(struct call *c, struct str key);

/* A header with the path of the document that was written. */
void docs_link_header(struct call *c, const struct write *w, const char *name);

/* The headers that keep a stored document from acting as the site, and from shared caches. */
void docs_guards(struct resp *r);

/* The sentences of what cannot be done: it is absent, it is not JSON, it is beyond a bound. */
extern const char docs_absent[], docs_no_merge[], docs_large_merge[];

/* True when the text may be the key of a document: what path_ok says of "/docs/KEY", and its
 * length. Leaves that path in `path`. */
bool docs_key_ok(struct buf *path, struct str key) __attribute__((warn_unused_result));

/* GET and HEAD of one document, whose key is not too long. */
enum verdict docs_get(struct call *c, const struct precond *p);

/* The key, or the prefix of a collection, that a path below /docs/ names. */
struct str docs_key(const struct req *req);

#endif
