/* Errors, as people and programs read them: application/problem+json (RFC 9457), or a small page
 * for a browser that asks for HTML. Every one carries the request id that nginx logged. */
#ifndef HANJI_HANDLERS_PROBLEM_H
#define HANJI_HANDLERS_PROBLEM_H

#include "db/db.h"
#include "fcgi/loop.h"

/* A header that goes with the problem: Allow, WWW-Authenticate, Retry-After. {NULL} for none. */
struct problem_header {
    const char *name;
    const char *value;
};

/* Answers with the status and one sentence of detail; whatever was built before is dropped. */
void problem(struct call *c, unsigned status, const char *detail);
void problem_with(struct call *c, unsigned status, const char *detail,
                  struct problem_header header);

/* Which of several operations, or keys, of one request the problem is about: the members index
 * (from 0) and key (left out while it is not known). */
struct problem_part {
    uint32_t index;
    struct str key;
};

void problem_at(struct call *c, unsigned status, const char *detail,
                const struct problem_part *part);

/* For programs that must tell one cause from another: the members code, a word, and expected, a
 * number that would have been right (left out where 0). */
struct problem_cause {
    const char *code;
    uint64_t expected;
    struct problem_header header;
};

void problem_coded(struct call *c, unsigned status, const char *detail,
                   const struct problem_cause *cause);

/* The answer for a cause the store named. pid: with DB_WAL_LIMIT, who pins the log (0: unknown). */
void problem_result(struct call *c, enum db_result result, int64_t pid);

/* True when errors are to be pages: the client accepts text/html and no JSON by name. */
bool problem_for_browser(const struct req *req);

#endif
