#include "fcgi/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fcgi/conn.h"
#include "fcgi/log.h"

enum {
    ACCEPTS_PER_ROUND = 64,
    ACCEPT_PAUSE_MS = 100,
    WARN_EVERY_MS = 10000,
    OUT_KEPT_BYTES = 262144, /* an output buffer that a large answer made larger is freed */
    RESUMES_PER_ROUND = 1024,
};

static void read_clock(struct loop *l)
{
    struct timespec mono, wall;
    clock_gettime(CLOCK_MONOTONIC, &mono);
    clock_gettime(CLOCK_REALTIME_COARSE, &wall);
    l->now_ms = (uint64_t)mono.tv_sec * 1000 + (uint64_t)mono.tv_nsec / 1000000;
    l->now_s = wall.tv_sec;
}

static bool watch_fd(struct loop *l, struct loop_watch *w, enum event_kind kind, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = w};
    w->kind = (uint8_t)kind;
    return w->fd < 0 || epoll_ctl(l->epoll, EPOLL_CTL_ADD, w->fd, &ev) == 0;
}

static bool listen_on(struct loop *l)
{
    uint32_t exclusive = l->config.shared ? (uint32_t)EPOLLEXCLUSIVE : 0;
    l->accepting = true;
    l->accept_again_ms = 0;
    return watch_fd(l, &l->listener, EVENT_LISTENER, EPOLLIN | exclusive) &&
           watch_fd(l, &l->control, EVENT_CONTROL, EPOLLIN);
}

static void listen_off(struct loop *l)
{
    if (!l->accepting)
        return;
    l->accepting = false;
    epoll_ctl(l->epoll, EPOLL_CTL_DEL, l->listener.fd, NULL);
    if (l->control.fd >= 0)
        epoll_ctl(l->epoll, EPOLL_CTL_DEL, l->control.fd, NULL);
}

struct loop *loop_new(const struct loop_config *config)
{
    struct loop *l = calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->config = *config;
    l->listener.fd = config->listener;
    l->control.fd = config->control;
    l->reading.span_ms = config->request_timeout_ms;
    l->writing.span_ms = config->write_timeout_ms;
    l->ready_tail = &l->ready;
    l->streams_tail = &l->streams;
    l->resuming_tail = &l->resuming;
    l->wake.fd = -1;
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->read_buffer = malloc(READ_BYTES);
    read_clock(l);
    errno = 0;
    if (l->epoll < 0 || l->read_buffer == NULL)
        goto fail;
    l->wake.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (l->wake.fd < 0 || !watch_fd(l, &l->wake, EVENT_WAKE, EPOLLIN) || !listen_on(l))
        goto fail;
    l->thread = config->app->open(l, config->app->arg);
    if (l->thread != NULL)
        return l;
fail:
    loop_free(l);
    return NULL;
}

void loop_free(struct loop *l)
{
    int saved = errno;
    while (l->conns != NULL)
        conn_free(l, l->conns);
    if (l->thread != NULL)
        l->config.app->close(l->thread);
    if (l->wake.fd >= 0)
        close(l->wake.fd);
    if (l->epoll >= 0)
        close(l->epoll);
    free(l->read_buffer);
    buf_free(&l->out);
    buf_free(&l->params);
    arena_free(&l->arena);
    free(l);
    errno = saved;
}

bool loop_watch(struct loop *l, int fd, void (*fn)(void *arg), void *arg)
{
    if (l->watch_count == sizeof l->watches / sizeof *l->watches)
        return false;
    struct loop_watch *w = &l->watches[l->watch_count++];
    *w = (struct loop_watch){.fd = fd, .fn = fn, .arg = arg};
    return watch_fd(l, w, EVENT_WATCH, EPOLLIN);
}

static void wake(struct loop *l)
{
    uint64_t one = 1;
    ssize_t n = write(l->wake.fd, &one, sizeof one);
    (void)n; /* full means that a wake-up is pending already */
}

void loop_drain(struct loop *l, uint64_t at_most_ms)
{
    atomic_store(&l->drain_request_ms, at_most_ms + 1);
    wake(l);
}

void loop_poke(struct loop *l)
{
    if (!atomic_exchange(&l->poked, true))
        wake(l);
}

void loop_timer(struct loop *l, uint64_t at_ms)
{
    l->timer_ms = at_ms;
}

uint64_t loop_now_ms(const struct loop *l)
{
    return l->now_ms;
}

bool loop_draining(const struct loop *l)
{
    return l->draining;
}

const struct loop_stats *loop_get_stats(const struct loop *l)
{
    return &l->stats;
}

/* Descriptors or memory are short: leave connections in the backlog for a moment. */
static void pause_accepting(struct loop *l)
{
    if (l->warned_ms == 0 || l->now_ms - l->warned_ms > WARN_EVERY_MS) {
        log_line(LOG_WARN, "not accepting for a moment", "reason", strerror(errno), NULL);
        l->warned_ms = l->now_ms;
    }
    listen_off(l);
    l->accept_again_ms = l->now_ms + ACCEPT_PAUSE_MS;
}

static void accept_all(struct loop *l, int listener, bool operator_)
{
    for (int i = 0; i < ACCEPTS_PER_ROUND; i++) {
        if (l->connections >= l->config.max_connections) {
            errno = EMFILE;
            pause_accepting(l);
            return;
        }
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                pause_accepting(l);
            return;
        }
        if (conn_new(l, fd, operator_) == NULL)
            return;
        atomic_fetch_add_explicit(&l->stats.accepted, 1, memory_order_relaxed);
    }
}

/* When even the app's own error could not be built: memory is short, or a head is broken. */
static void last_resort(struct resp *r)
{
    resp_reset(r);
    resp_start(r, 500);
    resp_header(r, "Cache-Control", STR_LIT("no-store"));
    resp_body(r, NULL, 0);
}

void loop_send_answer(struct loop *l, struct conn *c, struct resp *r)
{
    if (r->failed)
        last_resort(r);
    resp_finish(r, l->draining);
    if (r->failed) {
        conn_kill(l, c);
    } else {
        atomic_fetch_add_explicit(&l->stats.requests[r->status / 100 % 6], 1,
                                  memory_order_relaxed);
        conn_send(l, c, r->out->data, r->out->len);
    }
    conn_answered(l, c);
    if (l->out.cap > OUT_KEPT_BYTES)
        buf_free(&l->out);
}

/* The head of a streamed answer. */
static void send_head(struct loop *l, struct conn *c, struct resp *r, struct stream *s)
{
    resp_flush(r);
    if (r->failed) { /* nothing was sent yet */
        s->close(s);
        loop_send_answer(l, c, r);
        return;
    }
    atomic_fetch_add_explicit(&l->stats.requests[r->status / 100 % 6], 1, memory_order_relaxed);
    conn_send(l, c, r->out->data, r->out->len);
    c->stream = s;
    c->req = NULL;
    frame_reset(&c->frame);
    stream_begin(l, c);
}

/* What a handler, or the one that resumed, left to be done. */
static void act(struct loop *l, struct conn *c, struct call *call, enum verdict verdict)
{
    if (verdict == PARK) {
        c->req = NULL;
        frame_reset(&c->frame);
        if (c->eof)
            conn_kill(l, c);
    } else if (verdict == STREAM) {
        send_head(l, c, call->resp, call->stream);
    } else {
        call->resp->failed |= verdict == FAIL;
        loop_send_answer(l, c, call->resp);
    }
}

struct call loop_call(struct loop *l, struct conn *c, struct resp *r)
{
    l->out.len = 0;
    return (struct call){
        .resp = r, .loop = l, .conn = c, .thread = l->thread, .now_s = l->now_s};
}

static void answer(struct loop *l, struct conn *c)
{
    struct resp resp;
    struct call call = loop_call(l, c, &resp);
    call.req = c->req;
    resp_init(&resp, &l->out, c->id, c->req->method == METHOD_HEAD);
    act(l, c, &call, l->config.app->answer(&call));
}

/* What is told of a request stays with it: from the request, or from the park before. */
static void describe(struct park *p, const struct call *call)
{
    const struct req *req = call->req;
    p->extra = call->resp->extra;
    if (req == NULL) {
        p->head_request = call->park->head_request;
        p->browser = call->park->browser;
        memcpy(p->request_id, call->park->request_id, sizeof p->request_id);
        return;
    }
    size_t n = req->request_id.n < sizeof p->request_id ? req->request_id.n
                                                        : sizeof p->request_id - 1;
    if (n > 0)
        memcpy(p->request_id, req->request_id.p, n);
    p->head_request = req->method == METHOD_HEAD;
}

void *loop_park(struct call *call, size_t size,
                enum verdict (*resume)(struct park *, struct call *))
{
    struct park *p = calloc(1, size);
    if (p == NULL)
        return NULL;
    describe(p, call);
    p->loop = call->loop;
    p->conn = call->conn;
    p->id = call->conn->id;
    p->resume = resume;
    call->conn->park = p;
    call->loop->parked++;
    return p;
}

void loop_unpark(struct call *call, struct park *p)
{
    call->conn->park = NULL;
    call->loop->parked--;
    free(p);
}

void loop_resume(struct park *list)
{
    while (list != NULL) {
        struct park *p = list;
        struct loop *l = p->loop;
        list = p->next;
        struct park *head = atomic_load_explicit(&l->resumed, memory_order_relaxed);
        do
            p->next = head;
        while (!atomic_compare_exchange_weak(&l->resumed, &head, p));
        if (head == NULL)
            wake(l);
    }
}

/* Takes what other threads handed back, in order: first come, first served. */
static void take_resumed(struct loop *l)
{
    struct park *taken = atomic_exchange(&l->resumed, NULL), *list = NULL;
    while (taken != NULL) { /* a stack: turn it round */
        struct park *next = taken->next;
        taken->next = list;
        list = taken;
        taken = next;
    }
    *l->resuming_tail = list;
    for (; list != NULL; list = list->next)
        l->resuming_tail = &list->next;
}

static void resume(struct loop *l, struct park *p)
{
    struct conn *c = p->conn;
    struct resp resp;
    struct call call = loop_call(l, c, c ? &resp : NULL);
    call.park = p;
    l->parked--;
    if (c != NULL) {
        c->park = NULL;
        resp_init(&resp, &l->out, p->id, p->head_request);
        resp_extra(&resp, p->extra);
    }
    enum verdict verdict = p->resume(p, &call);
    if (c != NULL)
        act(l, c, &call, verdict);
    free(p);
}

/* So many a round that thousands do not hold it. */
static void resume_some(struct loop *l)
{
    take_resumed(l);
    for (int i = 0; i < RESUMES_PER_ROUND && l->resuming != NULL; i++) {
        struct park *p = l->resuming;
        l->resuming = p->next;
        if (l->resuming == NULL)
            l->resuming_tail = &l->resuming;
        resume(l, p);
    }
}

static void start_drain(struct loop *l)
{
    uint64_t request = atomic_exchange(&l->drain_request_ms, 0);
    if (request == 0 || l->draining)
        return;
    l->draining = true;
    l->drain_end_ms = l->now_ms + request - 1;
    if (l->accepting)
        accept_all(l, l->listener.fd, false); /* those that wait would be lost with the backlog */
    listen_off(l);
    l->accept_again_ms = 0;
    l->config.app->drain(l->thread);
}

static void dispatch_event(struct loop *l, struct epoll_event *ev)
{
    struct loop_watch *w = ev->data.ptr;
    uint64_t count;
    if (w->kind == EVENT_CONN) {
        struct conn *c = ev->data.ptr;
        if (ev->events & EPOLLOUT)
            conn_writable(l, c);
        if (ev->events & (EPOLLIN | EPOLLRDHUP))
            conn_readable(l, c);
        else if (ev->events & (EPOLLERR | EPOLLHUP))
            conn_kill(l, c);
    } else if (w->kind == EVENT_WATCH) {
        w->fn(w->arg);
    } else if (w->kind == EVENT_WAKE) {
        ssize_t n = read(w->fd, &count, sizeof count);
        (void)n;
    } else if (l->accepting) {
        accept_all(l, w->fd, w->kind == EVENT_CONTROL);
    }
}

static int wait_ms(const struct loop *l)
{
    uint64_t until = UINT64_MAX;
    const struct deadlines *lists[] = {&l->reading, &l->writing};
    if (l->again != NULL || l->streams != NULL || l->resuming != NULL)
        return 0;
    for (int i = 0; i < 2; i++)
        if (lists[i]->head != NULL && lists[i]->head->due_ms < until)
            until = lists[i]->head->due_ms;
    if (l->accept_again_ms != 0 && l->accept_again_ms < until)
        until = l->accept_again_ms;
    if (l->draining && l->drain_end_ms < until)
        until = l->drain_end_ms;
    if (l->timer_ms != 0 && l->timer_ms < until)
        until = l->timer_ms;
    if (until == UINT64_MAX)
        return -1;
    uint64_t left = until > l->now_ms ? until - l->now_ms + 1 : 0;
    return left > 60000 ? 60000 : (int)left;
}

static void expire(struct loop *l)
{
    struct deadlines *lists[] = {&l->reading, &l->writing};
    for (int i = 0; i < 2; i++)
        while (lists[i]->head != NULL && lists[i]->head->due_ms <= l->now_ms) {
            struct conn *c = lists[i]->head;
            conn_deadline(l, c, NULL);
            conn_kill(l, c);
        }
    if (l->accept_again_ms != 0 && l->accept_again_ms <= l->now_ms && !listen_on(l))
        pause_accepting(l);
    if (l->timer_ms != 0 && l->timer_ms <= l->now_ms) {
        l->timer_ms = 0;
        l->config.app->timer(l->thread);
    }
}

static void bury(struct loop *l)
{
    while (l->dead != NULL) {
        struct conn *c = l->dead;
        l->dead = c->next_dead;
        conn_free(l, c);
    }
    atomic_store_explicit(&l->stats.connections, l->connections, memory_order_relaxed);
}

static void read_phase(struct loop *l, struct epoll_event *events, int n)
{
    for (struct conn *c = l->again, *next; c != NULL; c = next) {
        next = c->next_again;
        conn_again(l, c);
    }
    l->again = NULL;
    for (int i = 0; i < n; i++)
        dispatch_event(l, &events[i]);
}

static void answer_phase(struct loop *l)
{
    for (struct conn *c = l->ready, *next; c != NULL; c = next) {
        next = c->next_ready;
        if (!c->dead)
            answer(l, c);
    }
    l->ready = NULL;
    l->ready_tail = &l->ready;
    resume_some(l);
    if (atomic_exchange(&l->poked, false))
        l->config.app->poked(l->thread);
    stream_phase(l);
    l->config.app->round_end(l->thread);
}

void loop_run(struct loop *l)
{
    struct epoll_event events[EVENTS_MAX];
    for (;;) {
        int n = epoll_wait(l->epoll, events, EVENTS_MAX, wait_ms(l));
        read_clock(l);
        read_phase(l, events, n);
        answer_phase(l);
        expire(l);
        start_drain(l);
        bury(l);
        arena_reset(&l->arena);
        if (l->draining && l->parked == 0 && (l->conns == NULL || l->now_ms >= l->drain_end_ms))
            return;
    }
}
