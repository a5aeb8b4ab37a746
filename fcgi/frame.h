/* FastCGI records, incoming: from bytes as they arrive to exactly one whole request.
 *
 * Follows the FastCGI Specification 1.0 for a Responder that serves one request at a time on a
 * connection (nginx never multiplexes). Invariant: a request is reported only when its BEGIN, all
 * of its PARAMS including the empty end record and all of its STDIN including the empty end record
 * have been seen, every length agreeing; nothing is ever executed from less. Bytes behind the last
 * record are not touched: they belong to the next request.
 *
 * Management records (request id 0) are answered here and never seen by anybody else; so are a
 * second BEGIN while a request is open (CANT_MPX_CONN) and an unknown role. Those answers are
 * appended to `replies`, which the connection sends in front of anything else.
 *
 * Called by the loop, from its thread only. Knows no socket. */
#ifndef HANJI_FCGI_FRAME_H
#define HANJI_FCGI_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fcgi/buf.h"

enum {
    FRAME_HEADER_BYTES = 8,
    FRAME_PARAMS_MAX = 65528,  /* all parameters of a request: fits one record */
    FRAME_PAIRS_MAX = 256,     /* name-value pairs of a request */
    FRAME_CONTENT_MAX = 65528, /* content of a record we write: a multiple of 8 */
    FRAME_REPLIES_MAX = 4096,
    FRAME_RESPONDER = 1, /* the role */
    FRAME_KEEP_CONN = 1, /* the flag */
};

enum frame_type {
    FCGI_BEGIN_REQUEST = 1,
    FCGI_ABORT_REQUEST = 2,
    FCGI_END_REQUEST = 3,
    FCGI_PARAMS = 4,
    FCGI_STDIN = 5,
    FCGI_STDOUT = 6,
    FCGI_STDERR = 7,
    FCGI_DATA = 8,
    FCGI_GET_VALUES = 9,
    FCGI_GET_VALUES_RESULT = 10,
    FCGI_UNKNOWN_TYPE = 11,
};

enum frame_protocol_status {
    FCGI_REQUEST_COMPLETE = 0,
    FCGI_CANT_MPX_CONN = 1,
    FCGI_OVERLOADED = 2,
    FCGI_UNKNOWN_ROLE = 3,
};

enum frame_result {
    FRAME_MORE,    /* everything was consumed, the request is not whole yet */
    FRAME_REQUEST, /* a whole request is here; input behind *used is not consumed */
    FRAME_ABORTED, /* the peer gave its request up: answer END_REQUEST, then reset */
    FRAME_BAD,     /* not FastCGI, or contradictory: close the connection */
};

enum frame_body {
    FRAME_BODY_OK,
    FRAME_BODY_TOO_LARGE, /* more than limits.body_max: read to its end, not kept */
    FRAME_BODY_NO_MEMORY, /* memory or descriptors are short: read, not kept */
    FRAME_BODY_NO_SPACE,  /* it cannot be written to its file: read, not kept */
};

struct frame_limits {
    size_t body_max;     /* bytes of one body that are kept */
    size_t memory_max;   /* bytes of it that are kept in memory; beyond, it goes to a file */
    const char *spool;   /* folder of that file; NULL: no body goes to a file */
    const char *const *unspooled; /* paths below the mount whose bodies never do: those that end in
                                     '/' with what is below them; NULL behind the last */
};

struct frame {
    /* the record being read */
    unsigned char header[FRAME_HEADER_BYTES];
    uint8_t header_len;
    uint8_t type;
    uint8_t sink;
    uint8_t padding;
    bool empty; /* the record has no content: the end of a stream */
    uint16_t content;
    uint8_t small[64]; /* content of BEGIN and GET_VALUES */
    uint8_t small_len;
    /* the request being collected */
    bool begun;
    bool params_done;
    bool keep; /* FCGI_KEEP_CONN */
    uint16_t id;
    enum frame_body body_state;
    uint64_t body_bytes; /* seen on the wire, kept or not */
    size_t charged;      /* bytes this body holds of the budget */
    struct buf params;   /* name-value pairs, from FRAME_PARAMS_AT on; room for records around */
    struct buf body;
    bool spooled; /* the body is in the file, body is empty */
    bool stays;   /* the body is of a path of limits.unspooled, and larger than memory_max */
    int spool_fd;
    struct buf replies;
};

/* The parameters start here in frame.params: a BEGIN record and a PARAMS header fit before it. */
#define FRAME_PARAMS_AT (2 * FRAME_HEADER_BYTES + FRAME_HEADER_BYTES)

/* Takes up to n bytes; *used says how many were consumed. */
enum frame_result frame_feed(struct frame *f, const struct frame_limits *limits,
                             const unsigned char *p, size_t n, size_t *used)
    __attribute__((warn_unused_result));

/* True between requests: no byte of a next one has been seen. */
bool frame_idle(const struct frame *f);

/* Forgets the request: the body is freed, the parameter buffer is kept for the next one. */
void frame_reset(struct frame *f);

/* Frees all memory. */
void frame_free(struct frame *f);

/* Hands the body over to the caller, who frees it with free(); NULL and *len 0 for an empty body.
 * Its bytes leave the budget. A body that went to a file is read back: only for bodies that are
 * known to be small enough. NULL with *len above 0: memory is short. */
unsigned char *frame_take_body(struct frame *f, size_t *len);

/* Hands the file of a spooled body over to the caller, who closes it; its length is body_bytes. -1
 * when the body is in memory. */
int frame_take_spool(struct frame *f);

/* The memory that all bodies being collected may hold together, process-wide. Set before serving.
 * Default 64 MiB. */
void frame_set_budget(size_t bytes);

/* Checks the name-value pairs: every length inside the block, at most FRAME_PAIRS_MAX pairs, names
 * not empty and without '=', nothing with a NUL. */
bool frame_pairs_ok(const unsigned char *p, size_t n);

/* Reads the next pair of a block that frame_pairs_ok accepted, or checks as it goes. Returns the
 * bytes it took, 0 when the block is broken. */
size_t frame_pair(const unsigned char *p, size_t n, struct str *name, struct str *value);

/* True when the parameters say a path that is one of limits.unspooled: fcgi/unspooled.c. */
bool frame_unspooled(const unsigned char *pairs, size_t n, const char *const *paths);

/* Writes the 8 bytes of a record header. */
void frame_put_header(unsigned char *p, enum frame_type type, uint16_t id, size_t content);

/* Writes an END_REQUEST record, 16 bytes, appStatus 0. */
void frame_put_end(unsigned char *p, uint16_t id, enum frame_protocol_status status);

/* Writes a record of type FCGI_UNKNOWN_TYPE with request id 0, 16 bytes. */
void frame_put_unknown(unsigned char *p, uint8_t type);

#endif
