/* Writing to apps: POST, PUT and DELETE run a script in a burst, in a savepoint of its own. */
#ifndef HANJI_HANDLERS_APP_POST_H
#define HANJI_HANDLERS_APP_POST_H

#include "handlers/app_visit.h"

/* Answers a visit, or parks. v->format says HTML for a browser's form. Its base is that many bytes
 * of the path. */
enum verdict app_post(struct call *c, struct app_visit *v, size_t base_len)
    __attribute__((warn_unused_result));

#endif
