/* Builds one response, in place, as FastCGI STDOUT records in the thread's output buffer.
 *
 * Order: resp_start, any number of resp_header, then exactly one of resp_body and resp_no_body.
 * Every part is written once, where it is sent from; a record header is left open in front and
 * filled in when the record is full or the response ends. Header values with control characters
 * and heads above RESP_HEAD_MAX make the response fail (resp_failed), never a split header or
 * nginx's "too big header"; the caller then resets and answers an error.
 *
 * Called on the loop's thread. Follows RFC 3875 (Status field) as FastCGI responders do. */
#ifndef HANJI_FCGI_RESP_H
#define HANJI_FCGI_RESP_H

#include <stdbool.h>
#include <stdint.h>

#include "fcgi/buf.h"

enum { RESP_HEAD_MAX = 8192, RESP_MAX = 1 << 30 };

struct resp {
    struct buf *out;
    size_t begin;  /* where this response starts in out */
    size_t record; /* header of the open record */
    size_t head;   /* bytes of head so far */
    struct str extra; /* header lines that every head of this answer gets */
    uint16_t id;   /* FastCGI request id */
    uint16_t status;
    bool no_content; /* HEAD, 204, 304: the length is told, the body is not sent */
    bool head_request;
    bool failed;
    bool no_memory; /* why it failed, if it was not the head */
};

void resp_init(struct resp *r, struct buf *out, uint16_t id, bool head_request);

/* Drops what was written and starts again. */
void resp_reset(struct resp *r);

/* Header lines, each ended by CRLF, that whatever is answered will have; they must outlive it. */
void resp_extra(struct resp *r, struct str lines);

void resp_start(struct resp *r, unsigned status);
void resp_header(struct resp *r, const char *name, struct str value);

/* Header lines written out beforehand, each ended by CRLF. */
void resp_fixed(struct resp *r, const char *lines, size_t n);
void resp_header_u64(struct resp *r, const char *name, uint64_t value);

/* ETag: "seq" */
void resp_etag(struct resp *r, uint64_t seq);

/* An HTTP date (RFC 9110 5.6.7) from Unix seconds. */
void resp_header_date(struct resp *r, const char *name, int64_t unix_s);

/* Ends the head with Content-Length and adds the body; for HEAD and 304 only the head. */
void resp_body(struct resp *r, const void *body, size_t n);

/* Ends the head for 204 (and 304 without a known length). */
void resp_no_body(struct resp *r);

/* Ends the head of a body of n bytes that follows by resp_write. */
void resp_length(struct resp *r, uint64_t n);

/* Body bytes behind the head; nothing for HEAD. */
void resp_write(struct resp *r, const void *p, size_t n);

/* Makes what was written so far whole records, to be sent before the answer ends. */
void resp_flush(struct resp *r);

/* Ends the response: STDOUT end, END_REQUEST and, when retire is set, the extra record that makes
 * nginx close the connection by itself after this answer. */
void resp_finish(struct resp *r, bool retire);

/* "OK" for 200 and so on; never empty. */
const char *resp_reason(unsigned status);

/* Writes the decimal digits of v at p (at most 20, no NUL); returns how many. */
size_t put_u64(char *p, uint64_t v);

enum { HTTP_DATE_LEN = 29 };

/* Writes "Sun, 06 Nov 1994 08:49:37 GMT", 29 bytes, no NUL. */
void put_http_date(char *p, int64_t unix_s);

enum { RFC3339_LEN = 20 };

/* Writes "1994-11-06T08:49:37Z", 20 bytes, no NUL. */
void put_rfc3339(char *p, int64_t unix_s);

/* Parses the three forms of an HTTP date (RFC 9110 5.6.7). False when it is none. */
bool parse_http_date(struct str s, int64_t *unix_s);

#endif
