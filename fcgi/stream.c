/* Streams: answers whose bodies come in pieces. Private to the loop, on its thread.
 *
 * A stream writes only when the peer has taken all that was written before, so that each costs at
 * most one piece of memory, however slow its reader. Those that can write stand in a queue; a round
 * serves so many of them, and so many bytes, that thousands do not hold it. */
#include "fcgi/conn.h"

enum { STREAMS_PER_ROUND = 256, BYTES_PER_ROUND = 1 << 20 };

static void queue(struct loop *l, struct stream *s)
{
    if (s->queued)
        return;
    s->queued = true;
    s->next = NULL;
    *l->streams_tail = s;
    l->streams_tail = &s->next;
}

static void unqueue(struct loop *l, struct stream *s)
{
    struct stream **p = &l->streams;
    while (*p != s)
        p = &(*p)->next;
    *p = s->next;
    if (l->streams_tail == &s->next)
        l->streams_tail = p;
    s->queued = false;
}

void loop_stream(struct call *c, struct stream *s)
{
    s->loop = c->loop;
    s->conn = c->conn;
    s->id = c->conn->id;
    s->queued = false;
    c->stream = s;
}

void loop_stream_ready(struct stream *s)
{
    if (s->conn->out.len == 0 && !s->conn->dead)
        queue(s->loop, s);
}

void stream_begin(struct loop *l, struct conn *c)
{
    if (c->eof)
        conn_kill(l, c);
    else if (c->out.len == 0 && !c->dead)
        queue(l, c->stream);
}

void stream_drained(struct loop *l, struct conn *c)
{
    if (c->stream != NULL && !c->dead)
        queue(l, c->stream);
}

void stream_drop(struct loop *l, struct conn *c)
{
    struct stream *s = c->stream;
    c->stream = NULL;
    if (s == NULL)
        return;
    if (s->queued)
        unqueue(l, s);
    s->close(s);
}

/* One piece of one stream; the bytes it wrote. */
static size_t serve(struct loop *l, struct stream *s)
{
    struct resp resp;
    struct conn *c = s->conn;
    struct call call = loop_call(l, c, &resp);
    resp_init(&resp, &l->out, s->id, false);
    enum stream_state state = s->fill(s, &call);
    if (resp.failed || state == STREAM_BREAK) {
        conn_kill(l, c);
        return 0;
    }
    if (state == STREAM_END) {
        resp_finish(&resp, l->draining);
        conn_send(l, c, l->out.data, l->out.len);
        stream_drop(l, c);
        conn_answered(l, c);
        return l->out.len;
    }
    resp_flush(&resp);
    if (l->out.len > 0)
        conn_send(l, c, l->out.data, l->out.len);
    if (state == STREAM_MORE && c->out.len == 0 && !c->dead)
        queue(l, s);
    return l->out.len;
}

void stream_phase(struct loop *l)
{
    size_t bytes = 0;
    for (int i = 0; i < STREAMS_PER_ROUND && l->streams != NULL && bytes < BYTES_PER_ROUND; i++) {
        struct stream *s = l->streams;
        unqueue(l, s);
        if (!s->conn->dead)
            bytes += serve(l, s);
    }
}
