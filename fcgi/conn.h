/* One FastCGI connection: bytes in, frames, bytes out. Private to loop.c and conn.c.
 *
 * At most one request of a connection is in flight; input behind it waits in `in`. An idle
 * connection owns no buffer. A connection that is to go is marked dead and freed at the end of the
 * round, since later events of the same round may name it. */
#ifndef HANJI_FCGI_CONN_H
#define HANJI_FCGI_CONN_H

#include "fcgi/loop.h"

enum event_kind { EVENT_CONN, EVENT_LISTENER, EVENT_CONTROL, EVENT_WAKE, EVENT_WATCH };

struct conn {
    uint8_t kind; /* enum event_kind: what epoll's pointer points to */
    bool operator_;
    bool in_flight; /* a request is being answered or is parked */
    bool keep;
    bool eof;      /* the peer sends no more */
    bool want_out; /* EPOLLOUT is asked for */
    bool dead;
    bool queued; /* in loop.again */
    uint16_t id;
    int fd;
    struct frame frame;
    struct req *req;   /* whole request of this round, not yet answered */
    struct park *park;     /* the parked request */
    struct stream *stream; /* the rest of the answer that is being sent */
    struct buf in;     /* input behind the request in flight */
    struct buf out;    /* output the peer has not taken */
    size_t out_sent;
    struct conn *next_ready, *next_again, *next_dead;
    struct conn *prev, *next; /* all connections of the loop */
    struct deadlines *deadlines;
    struct conn *prev_due, *next_due;
    uint64_t due_ms;
};

/* Connections that wait for the same span of time, so the list is in order of what is due. */
struct deadlines {
    struct conn *head, *tail;
    uint64_t span_ms;
};

enum { READ_BYTES = 65536, PIPELINE_MAX = 65536, EVENTS_MAX = 256 };

struct loop_watch {
    uint8_t kind;
    int fd;
    void (*fn)(void *);
    void *arg;
};

struct loop {
    struct loop_config config;
    int epoll;
    void *thread;
    uint64_t now_ms; /* monotonic, of this round */
    int64_t now_s;   /* wall clock, of this round */
    unsigned char *read_buffer;
    struct buf out;    /* where answers are built */
    struct buf params; /* spare parameter buffer: a request that arrives whole uses it */
    struct arena arena;
    struct conn *conns, *ready, **ready_tail, *again, *dead;
    struct deadlines reading, writing;
    uint64_t connections;
    uint64_t out_bytes; /* in all conn.out */
    uint64_t parked;
    uint64_t accept_again_ms; /* 0: accepting */
    uint64_t warned_ms;       /* when a pause was last logged */
    bool accepting;
    bool draining;
    uint64_t drain_end_ms;
    uint64_t timer_ms; /* 0: none */
    struct stream *streams, **streams_tail; /* those that can write */
    struct park *resuming, **resuming_tail; /* taken from resumed, not answered yet */
    atomic_uint_fast64_t drain_request_ms; /* 0: none; else at_most_ms + 1 */
    _Atomic(struct park *) resumed;
    atomic_bool poked;
    struct loop_watch listener, control, wake, watches[4];
    unsigned watch_count;
    struct loop_stats stats;
};

/* Adopts fd. NULL when memory is short (fd is closed then). */
struct conn *conn_new(struct loop *l, int fd, bool operator_);
void conn_free(struct loop *l, struct conn *c);

/* The descriptor is readable: reads and frames what is there. */
void conn_readable(struct loop *l, struct conn *c);

/* Frames the input that waited behind an answered request. */
void conn_again(struct loop *l, struct conn *c);

/* The peer takes bytes again. */
void conn_writable(struct loop *l, struct conn *c);

/* Sends n bytes, keeping what the peer does not take now. */
void conn_send(struct loop *l, struct conn *c, const void *p, size_t n);

/* The request in flight is answered (its bytes went through conn_send). */
void conn_answered(struct loop *l, struct conn *c);

void conn_kill(struct loop *l, struct conn *c);

/* Sends what is in r, ended when the answer is whole. Of loop.c. */
void loop_send_answer(struct loop *l, struct conn *c, struct resp *r);
struct call loop_call(struct loop *l, struct conn *c, struct resp *r);

/* fcgi/stream.c: the head of c's stream was sent. */
void stream_begin(struct loop *l, struct conn *c);

/* The peer has taken everything: c's stream may write again. */
void stream_drained(struct loop *l, struct conn *c);

/* Lets streams write, within the bounds of a round. */
void stream_phase(struct loop *l);

/* c is going: its stream is closed. */
void stream_drop(struct loop *l, struct conn *c);

/* Gives c a deadline of that list, counted from now; NULL: none. */
void conn_deadline(struct loop *l, struct conn *c, struct deadlines *list);

#endif
