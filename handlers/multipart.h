/* multipart/form-data (RFC 7578; its form is that of RFC 2046 5.1): the parts of a body in memory.
 *
 * Nothing is copied or changed: what comes out are slices of the body. Pure functions, any
 * thread. */
#ifndef HANJI_HANDLERS_MULTIPART_H
#define HANJI_HANDLERS_MULTIPART_H

#include "fcgi/buf.h"

enum {
    MULTIPART_BOUNDARY_MAX = 70,
    MULTIPART_HEAD_MAX = 4096, /* bytes of a part's header fields */
};

struct multipart_part {
    struct str name; /* as it stands between its quotes: escapes are not undone */
    struct str file_name; /* the same; p is NULL where there is none */
    struct str type; /* Content-Type; p is NULL where there is none */
    struct str body;
};

/* A place in a body. */
struct multipart {
    const char *p, *end;
    size_t boundary_len;
    char boundary[4 + MULTIPART_BOUNDARY_MAX]; /* with CRLF and "--" before it */
};

/* Begins with a body whose Content-Type that is. False: it has no boundary, or the body none of
 * it. */
bool multipart_start(struct multipart *m, struct str content_type, struct str body)
    __attribute__((warn_unused_result));

enum multipart_result { MULTIPART_PART, MULTIPART_END, MULTIPART_BAD };

/* The next part. MULTIPART_BAD: it has no name, a head that is none or is too long, or no end. */
enum multipart_result multipart_next(struct multipart *m, struct multipart_part *part)
    __attribute__((warn_unused_result));

#endif
