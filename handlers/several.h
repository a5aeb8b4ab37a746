/* What requests that name several documents in a JSON body have in common.
 *
 * Their bodies are read whole, so they have a bound of their own below max_body. Each document is
 * judged by itself; what is wrong is told with its place in the request (problem_at). */
#ifndef HANJI_HANDLERS_SEVERAL_H
#define HANJI_HANDLERS_SEVERAL_H

#include "handlers/problem.h"

enum { SEVERAL_MAX = 1000, SEVERAL_BODY_MAX = 4 << 20 };

struct several {
    unsigned char *bytes; /* the body; several_free */
    struct str text;      /* the same */
    struct str value;     /* the JSON in it */
};

/* Takes the body of the call, which must be JSON, and say so. Answers 400, 413 or 415 and returns
 * false when it is not; nothing is to be freed then. */
bool several_body(struct call *c, struct several *s) __attribute__((warn_unused_result));
void several_free(struct several *s);

/* Judges the document that a part of the request names. Answers 400, 401 or 403 and returns false
 * when it is no key, or not for this credential. */
bool several_allowed(struct call *c, const struct problem_part *part, bool write)
    __attribute__((warn_unused_result));

#endif
