/*
 * One response being received and checked: head (an HTTP/1.1 status line, or FastCGI's `Status:`
 * header), then the body against what its key must hold. Fed in any pieces, it never needs more than
 * the head in memory.
 */
#ifndef BENCH_ANSWER_H
#define BENCH_ANSWER_H

#include "work.h"

enum { HEAD_MOST = 8192 };

enum outcome {
    MORE,         /* nothing wrong, not complete */
    DONE,         /* complete and as expected */
    BAD_STATUS,   /* complete; status not among the expected */
    BAD_LENGTH,   /* complete; Content-Length differs from the document's size, or is missing */
    BAD_BODY,     /* complete; a byte differs */
    BAD_PROTOCOL, /* not understood: the connection is of no use any more */
};

struct answer {
    const struct workload *load;
    const struct kind *kind;
    uint32_t key;
    bool compare; /* compare the body's bytes */

    /* Not NULL: is given each piece of the body, chunk heads included; nothing is compared, no length needed. */
    void (*body)(struct answer *answer, const char *bytes, size_t len);

    unsigned status;
    uint64_t length; /* Content-Length */
    bool has_length;
    bool close; /* the server will close the connection */
    bool chunked;
    bool head_done;
    bool differs;
    uint64_t got; /* body bytes so far */
    size_t head_len;
    char head[HEAD_MOST]; /* a head that came in pieces */
};

void answer_begin(struct answer *answer, const struct workload *load, const struct kind *kind,
                  uint32_t key);

/* Takes `len` bytes of head and body. BAD_PROTOCOL, or MORE, also when the body is complete. */
enum outcome answer_feed(struct answer *answer, const char *bytes, size_t len);

/* Whether the body has arrived whole, as far as the head tells (HTTP framing). */
bool answer_whole(const struct answer *answer);

/* The judgement of a complete response: anything but MORE. */
enum outcome answer_judge(const struct answer *answer);

#endif
