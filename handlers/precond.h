/* Preconditions: the conditional headers of RFC 9110 13.1, as values.
 *
 * Entity tags of documents are "seq". A tag of another form is well-formed but matches nothing. The
 * W/ that nginx puts in front when it compresses an answer is ignored, in If-Match too: the seq
 * names exactly one representation. */
#ifndef HANJI_HANDLERS_PRECOND_H
#define HANJI_HANDLERS_PRECOND_H

#include "db/op.h"
#include "fcgi/req.h"

/* Parses a list of entity tags, or "*" (RFC 9110 8.8.3). False when malformed, or when it names
 * more than DB_TAGS_MAX tags that could match. */
bool precond_tags(struct str header, struct db_tags *tags) __attribute__((warn_unused_result));

/* The conditional headers of one request. */
struct precond {
    struct db_precond db; /* those that writes have, too */
    bool modified_given;
    int64_t modified_since; /* If-Modified-Since, Unix seconds */
    struct str range, if_range; /* as they were sent */
};

/* All headers of a request. NULL, or the name of the header that is malformed. A date that is none
 * is ignored, as the RFC says. */
const char *precond_parse(const struct req *req, struct precond *p)
    __attribute__((warn_unused_result));

enum precond_result { PRECOND_GO, PRECOND_NOT_MODIFIED, PRECOND_FAILED };

/* Judges a GET or HEAD of a document that exists, in the order of RFC 9110 13.2.2 (for one that
 * does not, the answer is 404 whatever the conditions: 13.2.1). modified is in Unix seconds. */
enum precond_result precond_get(const struct precond *p, uint64_t seq, int64_t modified);

/* True when Range may be honoured (13.1.5): there is no If-Range, or it names this state. Here W/
 * matters: compressed bytes must not be put together with others. */
bool precond_range(const struct precond *p, uint64_t seq, int64_t modified, int64_t now_s);

#endif
