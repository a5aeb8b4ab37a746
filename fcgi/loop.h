/* The reactor: one thread, epoll, rounds.
 *
 * A round reads and frames everything that is ready, decodes whole requests, answers them, hands
 * the parked ones' operations on (app.round_end) and only then reads again. So every request of a
 * round was complete before the round's snapshot began. Nothing here blocks on a peer. Deadlines
 * are absolute and count from the round's clock, which is read once a round.
 *
 * The loop knows no route, table or key: it calls the app given at birth. */
#ifndef HANJI_FCGI_LOOP_H
#define HANJI_FCGI_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "fcgi/req.h"
#include "fcgi/resp.h"

enum verdict {
    REPLY,  /* the response is built */
    PARK,   /* loop_park was called: the answer comes by loop_resume */
    STREAM, /* the head is built and loop_stream was called: the body comes in pieces */
    FAIL,   /* memory is short: dispatch answers 503 */
};

struct loop;
struct conn;
struct stream;

/* A request and where its answer goes. Lives until the handler returns. */
struct call {
    struct req *req;
    struct resp *resp;
    struct loop *loop;
    struct conn *conn;
    struct park *park; /* set when a parked request is resumed; req is NULL then */
    struct stream *stream; /* what loop_stream was given */
    void *thread; /* what app.open returned for this thread */
    int64_t now_s; /* wall clock of the round, Unix seconds */
};

/* A parked request. Handlers embed it as the first member of their own struct and allocate that by
 * loop_park; the loop frees it after resume. */
struct park {
    struct park *next;
    struct loop *loop;
    struct conn *conn; /* NULL once the peer has left */
    /* Called on the loop's thread: builds the answer, parks again or streams, as a handler does.
     * c->resp is NULL when the peer has left; then it only releases what it owns (never the park
     * itself) and its verdict means nothing. */
    enum verdict (*resume)(struct park *p, struct call *c);
    /* Set by those whose end is not under way: the peer has left, hand the park to loop_resume so
     * that it can release what it owns. Once, and never after it was handed there. */
    void (*left)(struct park *p);
    uint16_t id;
    bool head_request;
    bool browser; /* prefers HTML for errors */
    struct str extra; /* of its answer */
    char request_id[40];
};

enum stream_state {
    STREAM_MORE,  /* something was written, and there is more */
    STREAM_WAIT,  /* nothing more until loop_stream_ready */
    STREAM_END,   /* the body is whole */
    STREAM_BREAK, /* it cannot be finished: the connection is closed, so that the client sees it */
};

/* An answer whose body comes in pieces. Handlers embed it as the first member of their own struct.
 * All of it on the loop's thread. */
struct stream {
    struct stream *next; /* the loop's */
    struct loop *loop;
    struct conn *conn;
    /* Writes the next piece, at most about STREAM_PIECE_BYTES, into c->resp (c->req and c->park are
     * NULL). Called only when the peer has taken all that was written before. */
    enum stream_state (*fill)(struct stream *s, struct call *c);
    /* The stream ended or the peer has left: frees it. */
    void (*close)(struct stream *s);
    uint16_t id;
    bool queued; /* the loop's */
};

enum { STREAM_PIECE_BYTES = 65536 };

/* What the rooms above give the loop. Functions are called on the loop's thread. */
struct loop_app {
    void *(*open)(struct loop *l, void *arg); /* context of a new thread; NULL: it cannot serve */
    void (*close)(void *thread);
    enum verdict (*answer)(struct call *c);
    void (*round_end)(void *thread);
    void (*poked)(void *thread); /* after loop_poke; calls meanwhile are one */
    void (*timer)(void *thread); /* when what loop_timer asked for is due */
    void (*drain)(void *thread); /* once, when draining begins: end what would wait */
    const char *const *unspooled; /* as in struct frame_limits */
    void *arg;
};

struct loop_config {
    const struct loop_app *app;
    int listener;        /* FastCGI, shared by all loops; never closed here */
    int control;         /* operator socket, or -1 */
    bool shared;         /* more than one loop waits on the listener */
    struct frame_limits limits;
    uint64_t max_connections;
    uint64_t output_bytes; /* answers not yet taken, together; the slowest are closed beyond */
    uint64_t request_timeout_ms;
    uint64_t write_timeout_ms;
};

/* Counters, written by the loop's thread, read by any. */
struct loop_stats {
    atomic_uint_fast64_t connections; /* open now */
    atomic_uint_fast64_t accepted;
    atomic_uint_fast64_t broken;      /* closed for a malformed record */
    atomic_uint_fast64_t requests[6]; /* by status / 100 */
};

/* NULL with errno set when descriptors or memory are short or app.open refuses (errno 0). */
struct loop *loop_new(const struct loop_config *config) __attribute__((warn_unused_result));

/* Runs until drained or stopped. */
void loop_run(struct loop *l);
void loop_free(struct loop *l);

/* Calls fn on the loop's thread whenever fd is readable. Before loop_run only. */
bool loop_watch(struct loop *l, int fd, void (*fn)(void *arg), void *arg)
    __attribute__((warn_unused_result));

/* Any thread: stop accepting, answer what comes on open connections so that nginx retires them,
 * return from loop_run when none is left or at_most_ms has passed. */
void loop_drain(struct loop *l, uint64_t at_most_ms);

/* Parks the call: allocates size bytes (>= sizeof(struct park), zeroed, park filled). NULL when
 * memory is short. The handler then returns PARK. A call that was resumed can be parked again. */
void *loop_park(struct call *c, size_t size, enum verdict (*resume)(struct park *, struct call *))
    __attribute__((warn_unused_result));

/* Takes back a park that was not handed on, and frees it: the call is answered after all. */
void loop_unpark(struct call *c, struct park *p);

/* The call's answer goes on as a stream: fill and close are set, the rest is the loop's. The
 * handler has built the head and returns STREAM. */
void loop_stream(struct call *c, struct stream *s);

/* Loop's thread: a stream that said STREAM_WAIT has something to write. */
void loop_stream_ready(struct stream *s);

/* Any thread: calls app.poked on the loop's thread soon. */
void loop_poke(struct loop *l);

/* Loop's thread: calls app.timer when the monotonic clock reaches at_ms; replaces what was asked
 * for before. 0: never. */
void loop_timer(struct loop *l, uint64_t at_ms);

/* Loop's thread: the monotonic clock of this round. */
uint64_t loop_now_ms(const struct loop *l);

/* Loop's thread: true once it drains. */
bool loop_draining(const struct loop *l);

/* Any thread: hands parked requests (a list by next, of any loops) back for their answers. */
void loop_resume(struct park *list);

const struct loop_stats *loop_get_stats(const struct loop *l);

#endif
