/* What requests that name several documents in a JSON body have in common.
 *
 * Their bodies are read whole, so they have a bound of their own below max_body. Each document is
 * judged by itself; what is wrong is told with its place in the request (problem_at). */
#ifndef HANJI_HANDLERS_SEVERAL_H
#define HANJI_HANDLERS_SEVERAL_H

#include "handlers/problem.h"

enum { SEVERAL_MAX = 1000, SEVERAL_BODY_MAX = 4 << 20 };

enum several_state { SEVERAL_OK, SEVERAL_NO_MEMORY, SEVERAL_NOT_JSON };

/* A body on its way: taken on the loop, read there or, when it is large, on a thread of the pool,
 * and answered for on the loop. */
struct several {
    int fd;               /* the file that holds it, or -1 */
    unsigned char *bytes; /* the body; several_free */
    struct str text;      /* the same */
    struct str value;     /* the JSON in it */
    uint64_t wrong;       /* with SEVERAL_NOT_JSON: the first byte that cannot be */
};

/* Takes the body of the call, which must say that it is JSON. Answers 413 or 415 and returns false
 * when it is too large or does not; nothing is to be freed then. */
bool several_take(struct call *c, struct several *s) __attribute__((warn_unused_result));

/* True when reading it would hold the loop. */
bool several_large(const struct several *s);

/* Reads it and sees whether it is JSON. Any thread. */
enum several_state several_read(struct several *s) __attribute__((warn_unused_result));

/* Answers for a state that is not SEVERAL_OK. */
void several_fault(struct call *c, const struct several *s, enum several_state state);

void several_free(struct several *s);

/* Judges the document that a part of the request names. Answers 400, 401 or 403 and returns false
 * when it is no key, or not for this credential. */
bool several_allowed(struct call *c, const struct problem_part *part, bool write)
    __attribute__((warn_unused_result));

#endif
