/* Writing JSON into a buffer. Sticky failure: after memory ran short every call does nothing and
 * json_failed is true. */
#ifndef HANJI_HANDLERS_JSON_H
#define HANJI_HANDLERS_JSON_H

#include "fcgi/buf.h"

#include <stdint.h>

struct json {
    struct buf *out;
    bool failed;
};

/* Starts over in out, which keeps its memory. */
struct json json_start(struct buf *out);

/* Verbatim text: punctuation and names. */
void json_raw(struct json *j, const char *text);
void json_verbatim(struct json *j, struct str text);
void json_bytes(struct json *j, struct str text);

/* Makes room for n more bytes, which the caller writes at the end of out; false: it failed. */
bool json_reserve(struct json *j, size_t n) __attribute__((warn_unused_result));
void json_u64(struct json *j, uint64_t v);

/* A string with its quotes, escaped as RFC 8259 asks; bytes that are no UTF-8 become U+FFFD. */
void json_string(struct json *j, struct str s);

/* A member: `name` as it stands, with its punctuation (",\"id\":"), then the text, NULL: null; or a
 * number, below 0: 0. */
void json_put_text(struct json *j, const char *name, const char *text);
void json_put_count(struct json *j, const char *name, int64_t n);

/* How many bytes at the start of p can stand in a JSON string as they are: ASCII without control
 * characters, quotes and backslashes. Eight at a time. */
size_t json_plain(const char *p, size_t n);

/* A document's entity tag as it stands in the header, "\"7\"". */
void json_etag(struct json *j, uint64_t seq);

#endif
