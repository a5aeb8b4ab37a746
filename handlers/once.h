/* The Idempotency-Key header: a POST that is sent again changes nothing and is answered the same.
 *
 * The key is 1 to 255 visible ASCII characters, as they are or as a string of RFC 9651 (in quotes),
 * which is the same key. It belongs to whoever sent it and to the path it was sent to. */
#ifndef HANJI_HANDLERS_ONCE_H
#define HANJI_HANDLERS_ONCE_H

#include "db/op.h"
#include "fcgi/loop.h"
#include "seal/digest.h"

/* Gives op the key of the call, if there is one: then op->once is there, and lacks what is asked
 * for. status: what it will be answered with if it goes well. False: answered, 400 or 503. */
bool once_take(struct call *c, struct db_op *op, unsigned status)
    __attribute__((warn_unused_result));

/* What is asked for, if op has a key: a body and its type. */
void once_body(struct db_op *op, struct str type, struct str body);

/* The same in pieces, of an op that has a key: once_begin, seal_digest_add of each, once_end. */
void once_begin(struct seal_digest *d, struct str type);
void once_end(struct seal_digest *d, struct db_op *op);

/* Says in the answer that it is the one of an earlier time. */
void once_header(struct call *c, const struct db_op *op);

/* The key in a header; false when it is malformed. out has room for ONCE_KEY_MAX bytes. */
enum { ONCE_KEY_MAX = 255 };
bool once_key(struct str header, char *out, size_t *n) __attribute__((warn_unused_result));

#endif
