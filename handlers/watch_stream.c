/* Streams of events (text/event-stream, HTML Living Standard 9.2).
 *
 * Each event has the entry's number as its id, which a client that comes back sends as
 * Last-Event-ID. An id without data reaches no listener, but it is where a client comes back to. It
 * is sent at the beginning to one that asked from now on, who would else miss what happens while it
 * is away before its first event; and with signs of life when much was passed over that was not for
 * it, which would else be looked at again. */
#include <stdlib.h>
#include <string.h>

#include "handlers/watch_internal.h"

enum { PASSED_OVER_MAX = 1000 };

struct stream_watcher {
    struct stream stream;
    struct watch *watch;
    struct ring ring;
    uint64_t at;      /* everything up to it was sent, or is not for this one */
    uint64_t told;    /* where the client would come back to */
    uint64_t beat_ms; /* when it must hear something */
    bool now; /* it asked from now on */
    bool greeted;
    bool beat;  /* it is to hear something now */
    bool whole; /* there was nothing behind at */
    struct credential who;
    bool of_app;
    size_t prefix_len;
    char prefix[];
};

static uint64_t silence_ms(const struct watch *w)
{
    return w->session->store->conf->heartbeat_ms;
}

/* It has just heard something: it is the last that must hear something next. */
static void heard(struct stream_watcher *s, uint64_t now_ms)
{
    s->beat = false;
    s->beat_ms = now_ms + silence_ms(s->watch);
    ring_leave(&s->ring);
    ring_join(&s->watch->streams, &s->ring);
}

static void close_watcher(struct stream *stream)
{
    struct stream_watcher *s = (struct stream_watcher *)stream; /* its first member */
    ring_leave(&s->ring);
    watch_leave(s->watch, &s->watch->session->store->watch.streams);
    free(s);
}

static void write_text(struct call *c, const char *text)
{
    resp_write(c->resp, text, strlen(text));
}

/* The position alone, which ends the block. */
static void write_id(struct stream_watcher *s, struct call *c)
{
    char line[4 + 20 + 2] = "id: ";
    size_t n = 4 + put_u64(line + 4, s->at);
    line[n++] = '\n';
    line[n++] = '\n';
    resp_write(c->resp, line, n);
    s->told = s->at;
}

static void greet(struct stream_watcher *s, struct call *c)
{
    write_text(c, s->now ? "retry: 2000\n" : "retry: 2000\n\n");
    if (s->now)
        write_id(s, c);
    s->greeted = true;
}

static void show_life(struct stream_watcher *s, struct call *c)
{
    bool far = s->at - s->told > PASSED_OVER_MAX;
    write_text(c, far ? ":\n" : ":\n\n");
    if (far)
        write_id(s, c);
    heard(s, loop_now_ms(c->loop));
}

/* Writes what is for it of a page, neighbours together. True when there was something. */
static bool write_page(struct stream_watcher *s, struct call *c, const struct feed_page *page)
{
    const struct str prefix = {s->prefix, s->prefix_len};
    const char *text = (const char *)page->text.data;
    unsigned events = 0;
    for (unsigned i = 0; i < page->count;) {
        const struct feed_entry *first = feed_entry(page, i);
        size_t n = 0;
        for (; i < page->count; i++) {
            const struct feed_entry *e = feed_entry(page, i);
            if (!feed_matches(page, e, prefix))
                break;
            n += e->event_len;
            s->told = e->seq;
            events++;
        }
        if (n > 0)
            resp_write(c->resp, text + first->event, n);
        else
            i++;
    }
    s->at = page->next;
    if (events > 0)
        atomic_fetch_add_explicit(&s->watch->session->store->watch.events, events,
                                  memory_order_relaxed);
    return events > 0;
}

static enum stream_state write_news(struct stream_watcher *s, struct call *c)
{
    struct watch *w = s->watch;
    const struct feed_page *page;
    if (s->whole && s->at >= w->tip)
        return STREAM_WAIT;
    switch (feed_page(&w->feed, session_reader(c), s->at, FEED_READS, &page)) {
    case FEED_LATER:
        return STREAM_MORE;
    case FEED_FAILED:
        return STREAM_END; /* it comes back, from the last id */
    case FEED_OK:
        break;
    }
    if (write_page(s, c, page))
        heard(s, loop_now_ms(c->loop));
    s->whole = page->whole;
    return page->whole && s->at >= w->tip ? STREAM_WAIT : STREAM_MORE;
}

static enum stream_state fill(struct stream *stream, struct call *c)
{
    struct stream_watcher *s = (struct stream_watcher *)stream;
    if (ask_judge(c, &s->who, (struct str){s->prefix, s->prefix_len}, s->of_app) != ACCESS_OK)
        return STREAM_END; /* when it comes back it is told */
    if (!s->greeted)
        greet(s, c);
    if (loop_draining(c->loop)) {
        write_text(c, "retry: 1000\n\n");
        return STREAM_END;
    }
    enum stream_state state = write_news(s, c);
    if (s->beat && state != STREAM_END)
        show_life(s, c);
    return state;
}

static void write_head(struct call *c)
{
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", STR_LIT("text/event-stream"));
    resp_header(c->resp, "Cache-Control", STR_LIT("no-cache"));
    resp_header(c->resp, "Vary", STR_LIT("Accept"));
    resp_header(c->resp, "X-Accel-Buffering", STR_LIT("no"));
    resp_no_body(c->resp); /* of a known length */
}

enum verdict watch_stream(struct call *c, const struct ask *ask)
{
    struct stream_watcher *s;
    atomic_uint_fast64_t *kind = &session_of(c)->store->watch.streams;
    if (c->req->method == METHOD_HEAD) {
        write_head(c);
        return REPLY;
    }
    struct watch *w = watch_enter(c, kind);
    if (w == NULL)
        return REPLY;
    s = calloc(1, sizeof *s + ask->prefix_len);
    if (s == NULL) {
        watch_leave(w, kind);
        return FAIL;
    }
    s->watch = w;
    s->at = s->told = ask->since;
    s->now = ask->now;
    s->who = *access_who(c);
    s->of_app = ask->of_app;
    s->prefix_len = ask->prefix_len;
    if (ask->prefix_len > 0)
        memcpy(s->prefix, ask->prefix, ask->prefix_len);
    ring_init(&s->ring);
    heard(s, loop_now_ms(c->loop));
    write_head(c);
    s->stream.fill = fill;
    s->stream.close = close_watcher;
    loop_stream(c, &s->stream);
    return STREAM;
}

void watch_stream_wake(struct watch *w)
{
    for (struct ring *r = w->streams.next; r != &w->streams; r = r->next)
        loop_stream_ready(&RING_OF(r, struct stream_watcher, ring)->stream);
}

uint64_t watch_stream_beat(struct watch *w, uint64_t now_ms)
{
    while (!ring_empty(&w->streams)) {
        struct stream_watcher *s = RING_OF(w->streams.next, struct stream_watcher, ring);
        if (s->beat_ms > now_ms)
            return s->beat_ms;
        heard(s, now_ms);
        s->beat = true;
        loop_stream_ready(&s->stream);
    }
    return UINT64_MAX;
}
