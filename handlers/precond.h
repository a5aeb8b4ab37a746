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

/* All headers of a request. NULL, or the name of the header that is malformed. An
 * If-Unmodified-Since that is no date is ignored, as the RFC says. */
const char *precond_parse(const struct req *req, struct db_precond *p)
    __attribute__((warn_unused_result));

enum precond_result { PRECOND_GO, PRECOND_NOT_MODIFIED, PRECOND_FAILED };

/* Judges a GET or HEAD in the order of RFC 9110 13.2.2. modified is in Unix seconds. */
enum precond_result precond_get(const struct req *req, const struct db_precond *p, bool exists,
                                uint64_t seq, int64_t modified);

#endif
