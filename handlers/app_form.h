/* Where a form leads: the page that its script names, on success and when something is wrong. */
#ifndef HANJI_HANDLERS_APP_FORM_H
#define HANJI_HANDLERS_APP_FORM_H

#include "handlers/app_visit.h"

/* The visit of the page that a form belongs to, made of the visit of its post: "-- form:", else the
 * page of the same route. Its path, below the mount, is written to path; parameters in it are those
 * of the post's path, else fields of its body. False: there is no such page, or a parameter is
 * missing. to points into v, input and path. */
bool app_form(const struct app_visit *v, const struct app_input *input, size_t base_len,
              struct buf *path, struct app_visit *to) __attribute__((warn_unused_result));

#endif
