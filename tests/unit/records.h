/* FastCGI records as a web server sends them: each function appends to `out`. */
#ifndef HANJI_TESTS_UNIT_RECORDS_H
#define HANJI_TESTS_UNIT_RECORDS_H

#include <stdint.h>

#include "fcgi/frame.h"

enum { RECORDS_MAX = 8 << 20 };

/* One record with its content and that many bytes of padding. */
void rec(struct buf *out, unsigned type, unsigned id, const void *content, size_t n, unsigned padding);

/* BEGIN for a responder that keeps the connection. */
void rec_begin(struct buf *out, unsigned id);

/* A name-value pair, lengths written as short as possible; for pairs, not a record. */
void rec_pair(struct buf *pairs, struct str name, struct str value);
void rec_text(struct buf *pairs, const char *name, const char *value);

/* PARAMS records of at most `split` bytes of content each, and the end of the stream. */
void rec_params(struct buf *out, unsigned id, const struct buf *pairs, size_t split);

/* STDIN records of at most `split` bytes each, and the end of the stream. */
void rec_stdin(struct buf *out, unsigned id, const void *body, size_t n, size_t split);

/* A whole request: the pairs, a body. */
void rec_request(struct buf *out, const struct buf *pairs, const void *body, size_t n);

/* Feeds it all; the result, which must have consumed everything. */
enum frame_result rec_feed(struct frame *f, size_t body_max, const struct buf *in);

#endif
