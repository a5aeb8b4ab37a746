/* Answers of apps: heads, bodies, errors. On the loop's thread. */
#ifndef HANJI_HANDLERS_APP_ANSWER_H
#define HANJI_HANDLERS_APP_ANSWER_H

#include "handlers/app_read.h"

/* Sends what was read. Takes the file that the answer may have. */
enum verdict app_answer(struct call *c, const struct app_visit *v, struct app_answer *a)
    __attribute__((warn_unused_result));

/* Answers a reading that failed, and tells the app's owner. */
void app_answer_failed(struct call *c, const struct app_visit *v, const struct app_reading *x,
                       enum app_read how);

/* The same for what SQL said about a write: only a problem. */
void app_answer_problem(struct call *c, unsigned status, const char *message);

/* Tells the owner of a fault in the visit's script, or in its template. */
void app_tell(struct call *c, const struct app_visit *v, bool page,
              const struct db_app_fault *fault);

#endif
