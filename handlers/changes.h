/* The change feed over HTTP. */
#ifndef HANJI_HANDLERS_CHANGES_H
#define HANJI_HANDLERS_CHANGES_H

#include "fcgi/loop.h"

/* GET /changes: what changed behind a number. */
enum verdict changes(struct call *c);

#endif
