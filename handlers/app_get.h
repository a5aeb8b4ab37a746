/* Reading from apps: on the loop for as long as it can spare, then on a thread of the pool. */
#ifndef HANJI_HANDLERS_APP_GET_H
#define HANJI_HANDLERS_APP_GET_H

#include "handlers/app_visit.h"

/* Answers a visit, or parks. input, which is v->input, goes with it in any case; NULL: there is
 * none. */
enum verdict app_get(struct call *c, const struct app_visit *v, struct app_input *input)
    __attribute__((warn_unused_result));

#endif
