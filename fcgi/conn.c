#include "fcgi/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

void conn_deadline(struct loop *l, struct conn *c, struct deadlines *list)
{
    struct deadlines *old = c->deadlines;
    if (old != NULL) {
        *(c->prev_due ? &c->prev_due->next_due : &old->head) = c->next_due;
        *(c->next_due ? &c->next_due->prev_due : &old->tail) = c->prev_due;
    }
    c->deadlines = list;
    if (list == NULL)
        return;
    c->due_ms = l->now_ms + list->span_ms;
    c->next_due = NULL;
    c->prev_due = list->tail;
    *(list->tail ? &list->tail->next_due : &list->head) = c;
    list->tail = c;
}

struct conn *conn_new(struct loop *l, int fd, bool operator_)
{
    struct conn *c = calloc(1, sizeof *c);
    struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = c};
    if (c == NULL || epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev) != 0) {
        free(c);
        close(fd);
        return NULL;
    }
    c->kind = EVENT_CONN;
    c->fd = fd;
    c->operator_ = operator_;
    c->next = l->conns;
    if (c->next != NULL)
        c->next->prev = c;
    l->conns = c;
    l->connections++;
    return c;
}

void conn_free(struct loop *l, struct conn *c)
{
    conn_deadline(l, c, NULL);
    *(c->prev ? &c->prev->next : &l->conns) = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    for (struct conn **p = &l->again; c->queued && *p != NULL; p = &(*p)->next_again)
        if (*p == c) {
            *p = c->next_again;
            break;
        }
    l->connections--;
    l->out_bytes -= c->out.len;
    if (c->park != NULL) {
        c->park->conn = NULL;
        if (c->park->left != NULL)
            c->park->left(c->park);
    }
    stream_drop(l, c);
    close(c->fd);
    frame_free(&c->frame);
    buf_free(&c->in);
    buf_free(&c->out);
    free(c);
}

void conn_kill(struct loop *l, struct conn *c)
{
    if (c->dead)
        return;
    c->dead = true;
    c->next_dead = l->dead;
    l->dead = c;
}

static void ask_events(struct loop *l, struct conn *c)
{
    struct epoll_event ev = {.events = (c->eof ? 0 : EPOLLIN | EPOLLRDHUP) |
                                       (c->want_out ? EPOLLOUT : 0),
                             .data.ptr = c};
    if (epoll_ctl(l->epoll, EPOLL_CTL_MOD, c->fd, &ev) != 0)
        conn_kill(l, c);
}

/* Keeps bytes the peer did not take. The slowest peers pay when all of it together is too much. */
static void keep_output(struct loop *l, struct conn *c, const unsigned char *p, size_t n)
{
    if (l->out_bytes + n > l->config.output_bytes || !buf_add(&c->out, p, n, RESP_MAX)) {
        conn_kill(l, c);
        return;
    }
    l->out_bytes += n;
    if (c->want_out)
        return;
    c->want_out = true;
    conn_deadline(l, c, &l->writing);
    ask_events(l, c);
}

void conn_send(struct loop *l, struct conn *c, const void *p, size_t n)
{
    ssize_t sent = 0;
    if (c->dead)
        return;
    if (c->out.len == 0) {
        sent = send(c->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            conn_kill(l, c);
            return;
        }
        if (sent < 0)
            sent = 0;
    }
    if ((size_t)sent < n)
        keep_output(l, c, (const unsigned char *)p + sent, n - (size_t)sent);
}

/* Nothing is in flight and nothing is left to send: what now? */
static void settle(struct loop *l, struct conn *c)
{
    if (c->dead || c->in_flight || c->out.len > 0)
        return;
    if (!c->keep || c->eof) {
        conn_kill(l, c);
    } else if (c->in.len > 0 && !c->queued) {
        c->queued = true;
        c->next_again = l->again;
        l->again = c;
    }
}

void conn_writable(struct loop *l, struct conn *c)
{
    if (c->dead || c->out.len == 0)
        return;
    ssize_t sent = send(c->fd, c->out.data + c->out_sent, c->out.len - c->out_sent,
                        MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
        if (errno != EAGAIN && errno != EINTR)
            conn_kill(l, c);
        return;
    }
    c->out_sent += (size_t)sent;
    if (c->out_sent < c->out.len)
        return;
    l->out_bytes -= c->out.len;
    buf_free(&c->out);
    c->out_sent = 0;
    c->want_out = false;
    conn_deadline(l, c, frame_idle(&c->frame) || c->in_flight ? NULL : &l->reading);
    ask_events(l, c);
    stream_drained(l, c);
    settle(l, c);
}

void conn_answered(struct loop *l, struct conn *c)
{
    c->in_flight = false;
    c->req = NULL;
    frame_reset(&c->frame);
    settle(l, c);
}

static void give_params(struct loop *l, struct conn *c)
{
    if (c->frame.params.cap == 0 && l->params.cap > 0) {
        c->frame.params = l->params;
        l->params = (struct buf){0};
    }
}

static void take_params_back(struct loop *l, struct conn *c)
{
    if (l->params.cap == 0) {
        l->params = c->frame.params;
        l->params.len = 0;
        c->frame.params = (struct buf){0};
    } else {
        buf_free(&c->frame.params);
    }
}

static void request_ready(struct loop *l, struct conn *c)
{
    c->req = req_decode(&l->arena, &c->frame);
    take_params_back(l, c);
    if (c->req == NULL) {
        atomic_fetch_add_explicit(&l->stats.broken, 1, memory_order_relaxed);
        conn_kill(l, c);
        return;
    }
    c->req->operator_ = c->operator_;
    c->in_flight = true;
    c->keep = c->frame.keep;
    c->id = c->frame.id;
    if (c->deadlines == &l->reading)
        conn_deadline(l, c, NULL);
    c->next_ready = NULL;
    *l->ready_tail = c;
    l->ready_tail = &c->next_ready;
}

static void send_replies(struct loop *l, struct conn *c)
{
    if (c->frame.replies.len == 0)
        return;
    conn_send(l, c, c->frame.replies.data, c->frame.replies.len);
    buf_free(&c->frame.replies);
}

static void aborted(struct loop *l, struct conn *c)
{
    unsigned char end[16];
    frame_put_end(end, c->frame.id, FCGI_REQUEST_COMPLETE);
    c->keep = c->frame.keep;
    conn_send(l, c, end, sizeof end);
    frame_reset(&c->frame);
    if (!c->keep)
        conn_kill(l, c);
}

/* Frames n bytes; what is behind a whole request is appended to c->in. */
static void feed(struct loop *l, struct conn *c, const unsigned char *p, size_t n)
{
    size_t at = 0;
    while (at < n && !c->dead && !c->in_flight) {
        size_t used = 0;
        give_params(l, c);
        enum frame_result result = frame_feed(&c->frame, &l->config.limits, p + at, n - at, &used);
        at += used;
        send_replies(l, c);
        if (result == FRAME_REQUEST) {
            request_ready(l, c);
        } else if (result == FRAME_ABORTED) {
            aborted(l, c);
        } else if (result == FRAME_BAD) {
            atomic_fetch_add_explicit(&l->stats.broken, 1, memory_order_relaxed);
            conn_kill(l, c);
        }
    }
    if (c->frame.params.len == 0)
        take_params_back(l, c);
    if (at < n && !c->dead && !buf_add(&c->in, p + at, n - at, PIPELINE_MAX))
        conn_kill(l, c);
    if (c->dead || c->in_flight || c->want_out)
        return;
    if (frame_idle(&c->frame))
        conn_deadline(l, c, NULL);
    else if (c->deadlines == NULL)
        conn_deadline(l, c, &l->reading);
}

static void end_of_input(struct loop *l, struct conn *c)
{
    c->eof = true;
    if (c->park != NULL || c->stream != NULL || !c->in_flight)
        conn_kill(l, c);
    else
        ask_events(l, c);
}

void conn_readable(struct loop *l, struct conn *c)
{
    for (int turn = 0; turn < 4 && !c->dead && !c->eof; turn++) {
        ssize_t n = recv(c->fd, l->read_buffer, READ_BYTES, MSG_DONTWAIT);
        if (n == 0) {
            end_of_input(l, c);
        } else if (n < 0) {
            if (errno != EAGAIN && errno != EINTR)
                conn_kill(l, c);
            return;
        } else if (c->in_flight || c->in.len > 0 || c->out.len > 0) {
            if (!buf_add(&c->in, l->read_buffer, (size_t)n, PIPELINE_MAX))
                conn_kill(l, c);
        } else {
            feed(l, c, l->read_buffer, (size_t)n);
        }
        if (n < READ_BYTES)
            return; /* a short read means that the socket is empty */
    }
}

void conn_again(struct loop *l, struct conn *c)
{
    struct buf in = c->in;
    c->queued = false;
    c->in = (struct buf){0};
    if (!c->dead && !c->in_flight)
        feed(l, c, in.data, in.len);
    buf_free(&in);
}
