/* The change feed over HTTP. */
#ifndef HANJI_HANDLERS_CHANGES_H
#define HANJI_HANDLERS_CHANGES_H

#include "fcgi/loop.h"

/* GET /changes: what changed behind a number. */
enum verdict changes(struct call *c);

/* The same for what is below an app's documents, "apps/NAME/", for whoever may read the app; the
 * query's prefix is what follows that. */
enum verdict changes_of_app(struct call *c, struct str prefix);

#endif
