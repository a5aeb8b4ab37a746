#include "handlers/app_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fcgi/spool.h"
#include "handlers/problem.h"

#define SNIFF "X-Content-Type-Options: nosniff\r\n"
#define REFERRER "Referrer-Policy: same-origin\r\n"
static const char open_lines[] = "Cache-Control: no-cache\r\n" SNIFF;
static const char closed_lines[] = "Cache-Control: private, no-cache\r\n" SNIFF;
static const char sniff_line[] = SNIFF, referrer_line[] = REFERRER;

/* ---- errors ---------------------------------------------------------------------------------- */

void app_answer_problem(struct call *c, unsigned status, const char *message)
{
    char detail[APP_MESSAGE_MAX + 1]; /* message may lie in what the problem is built in */
    snprintf(detail, sizeof detail, "%s",
             message[0] != 0 ? message : "The app says so, and nothing more.");
    if (status == 401)
        problem_with(c, status, detail,
                     (struct problem_header){"WWW-Authenticate", "Bearer realm=\"hanji\""});
    else if (status == 503)
        problem_with(c, status, detail, (struct problem_header){"Retry-After", "5"});
    else
        problem(c, status, detail);
}

void app_tell(struct call *c, const struct app_visit *v, bool page,
              const struct db_app_fault *fault)
{
    char file[96];
    const char *pattern = v->route->pattern;
    size_t n = strlen(pattern);
    bool index = n == 0 || pattern[n - 1] == '/';
    app_count(&session_of(c)->store->app_stats.faults);
    if (page)
        snprintf(file, sizeof file, "%s/%s%s.html", v->app->name, pattern, index ? "index" : "");
    else
        snprintf(file, sizeof file, "%s", v->script->file);
    app_news_add(v->app->news, file, fault->line, fault->error.text);
}

static bool of_the_store(enum db_result result)
{
    return result == DB_NO_MEMORY || result == DB_BUSY || result == DB_BROKEN ||
           result == DB_FULL || result == DB_WAL_LIMIT || result == DB_OVERLOAD;
}

static void stopped(struct call *c, const struct app_visit *v, const struct app_reading *x)
{
    char detail[80];
    struct db_app_fault fault = {.line = x->fault.line};
    snprintf(detail, sizeof detail, "This took too long and was stopped after %.3g s.",
             (double)x->limit_us / 1e6);
    snprintf(fault.error.text, sizeof fault.error.text, "stopped after %.3g s",
             (double)x->limit_us / 1e6);
    app_count(&session_of(c)->store->app_stats.stopped);
    app_tell(c, v, v->script == NULL, &fault);
    problem_with(c, 503, detail, (struct problem_header){"Retry-After", "10"});
}

void app_answer_failed(struct call *c, const struct app_visit *v, const struct app_reading *x,
                       enum app_read how)
{
    struct db_app_fault fault = x->fault;
    if (how == APP_READ_SLOW) {
        stopped(c, v, x);
        return;
    }
    if (how != APP_READ_LARGE && of_the_store(x->result)) {
        problem_result(c, x->result, 0);
        return;
    }
    if (how == APP_READ_LARGE)
        snprintf(fault.error.text, sizeof fault.error.text,
                 "the answer is larger than %zu MiB: page it", x->max_bytes >> 20);
    app_tell(c, v, v->script == NULL || (v->format == APP_FORMAT_HTML && fault.line == 0), &fault);
    problem(c, 500, "This app has a fault here. Its owner finds what is wrong in the server's "
                    "log.");
}

/* ---- answers --------------------------------------------------------------------------------- */

static void put_head(struct call *c, const struct app_visit *v, const struct app_answer *a)
{
    struct resp *r = c->resp;
    bool open = v->app->read == APP_PUBLIC && !v->person;
    bool page = a->raw || v->format == APP_FORMAT_HTML;
    if (a->head->len > 0)
        resp_fixed(r, (const char *)a->head->data, a->head->len);
    if (a->type != NULL)
        resp_header(r, "Content-Type", (struct str){a->type, strlen(a->type)});
    if (a->cached)
        resp_fixed(r, sniff_line, sizeof sniff_line - 1);
    else if (open)
        resp_fixed(r, open_lines, sizeof open_lines - 1);
    else
        resp_fixed(r, closed_lines, sizeof closed_lines - 1);
    if (v->script != NULL)
        resp_header(r, "Vary", v->person || page ? STR_LIT("Accept, Cookie") : STR_LIT("Accept"));
    if (!page)
        return;
    resp_fixed(r, referrer_line, sizeof referrer_line - 1);
    resp_header(r, "Content-Security-Policy", (struct str){v->app->csp, strlen(v->app->csp)});
}

struct file_stream {
    struct stream stream;
    int fd;
    uint64_t at, bytes;
};

static enum stream_state fill(struct stream *s, struct call *c)
{
    struct file_stream *f = (struct file_stream *)s; /* its first member */
    unsigned char piece[STREAM_PIECE_BYTES / 2];
    for (int i = 0; i < 2 && f->at < f->bytes; i++) {
        uint64_t left = f->bytes - f->at;
        size_t take = left < sizeof piece ? (size_t)left : sizeof piece;
        if (!spool_read(f->fd, piece, take, (size_t)f->at))
            return STREAM_BREAK;
        resp_write(c->resp, piece, take);
        f->at += take;
    }
    return f->at < f->bytes ? STREAM_MORE : STREAM_END;
}

static void close_stream(struct stream *s)
{
    close(((struct file_stream *)s)->fd);
    free(s);
}

static enum verdict from_file(struct call *c, struct app_answer *a)
{
    bool head = c->resp->head_request;
    struct file_stream *f = head ? NULL : calloc(1, sizeof *f);
    int fd = a->fd;
    a->fd = -1;
    resp_length(c->resp, a->bytes);
    if (f == NULL) {
        close(fd);
        return head ? REPLY : FAIL;
    }
    f->fd = fd;
    f->bytes = a->bytes;
    f->stream.fill = fill;
    f->stream.close = close_stream;
    loop_stream(c, &f->stream);
    return STREAM;
}

enum verdict app_answer(struct call *c, const struct app_visit *v, struct app_answer *a)
{
    unsigned status = v->error.p == NULL && a->status != 0 ? a->status
                      : v->status != 0                     ? v->status
                      : a->located                         ? 303
                                                           : 200;
    if (a->stopped) {
        app_answer_problem(c, a->status, a->message);
        return REPLY;
    }
    resp_start(c->resp, status);
    put_head(c, v, a);
    if (status == 204 || status == 304) {
        resp_no_body(c->resp);
        return REPLY;
    }
    if (a->fd >= 0)
        return from_file(c, a);
    resp_body(c->resp, a->text->data, a->text->len);
    return REPLY;
}
