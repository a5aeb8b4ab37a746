/* Documents over HTTP: GET and HEAD of one.
 *
 * A small body is answered from the snapshot. A large one is sent by the web server from a file
 * (db/blobs), or, where its conditions are ours to judge, streamed from that file. Conditions and
 * validators are always the document's, never the file's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "db/doc.h"
#include "fcgi/spool.h"
#include "handlers/access.h"
#include "handlers/blob.h"
#include "handlers/docs.h"
#include "handlers/problem.h"
#include "handlers/range.h"
#include "handlers/store.h"

enum {
    TRIES_MAX = 3,       /* a document that changes each time we look gives 503 */
    PIECE_BYTES = 32768, /* of a file, on the stack */
    SEGMENTS_MAX = 2 * RANGES_MAX + 1,
    PART_HEAD_MAX = DB_TYPE_MAX + 192,
};

/* The internal location of nginx-conf/hanji-locations.conf. */
static const char accel_prefix[] = "/_hanji/blobs/";

/* Browsers ask again each time and mostly get 304; caches shared by people keep nothing private. */
#define SNIFF "X-Content-Type-Options: nosniff\r\n"
#define SANDBOX                                                                                    \
    "Content-Security-Policy: sandbox; default-src 'none'; style-src 'unsafe-inline'; "            \
    "img-src data:\r\n"
static const char private_headers[] = "Cache-Control: private, no-cache\r\n" SNIFF SANDBOX;
static const char public_headers[] = "Cache-Control: no-cache\r\n" SNIFF SANDBOX;
static const char site_headers[] = "Cache-Control: no-cache\r\n" SNIFF;

/* What is asked for, in a form that can outlive the request. */
struct want {
    struct str key;
    struct precond conditions;
    enum access_public public_;
    bool head;
    bool by_us; /* the web server could not send the file */
    unsigned tries;
    struct db_blob_of made_of; /* what made_fd holds */
    int made_fd;               /* a file without a name, or -1 */
};

/* A piece of an answer: text of ours, or a part of the body. */
struct segment {
    bool is_text;
    uint64_t at, bytes;
};

struct plan {
    struct segment segments[SEGMENTS_MAX];
    unsigned count;
    uint64_t bytes; /* of all */
};

/* ---- heads ----------------------------------------------------------------------------------- */

static void put_validators(struct call *c, const struct want *w, const struct db_doc *doc)
{
    resp_etag(c->resp, doc->seq);
    resp_header_date(c->resp, "Last-Modified", doc->modified);
    if (w->public_ == ACCESS_SITE)
        resp_fixed(c->resp, site_headers, sizeof site_headers - 1);
    else if (w->public_ == ACCESS_PUBLIC)
        resp_fixed(c->resp, public_headers, sizeof public_headers - 1);
    else
        resp_fixed(c->resp, private_headers, sizeof private_headers - 1);
}

void docs_guards(struct resp *r)
{
    resp_fixed(r, private_headers, sizeof private_headers - 1);
}

static void start(struct call *c, const struct want *w, const struct db_doc *doc, unsigned status)
{
    static const char accept_ranges[] = "Accept-Ranges: bytes\r\n";
    resp_start(c->resp, status);
    put_validators(c, w, doc);
    resp_fixed(c->resp, accept_ranges, sizeof accept_ranges - 1);
}

static struct str type_of(const struct db_doc *doc)
{
    return (struct str){doc->type, doc->type_len};
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static void add_segment(struct plan *plan, bool is_text, uint64_t at, uint64_t bytes)
{
    plan->segments[plan->count++] = (struct segment){is_text, at, bytes};
    plan->bytes += bytes;
}

/* Appends formatted text as a segment. */
static bool add_text(struct plan *plan, struct buf *text, const char *line, int n)
{
    if (n < 0 || n >= PART_HEAD_MAX || !buf_add(text, line, (size_t)n, RESP_MAX))
        return false;
    add_segment(plan, true, text->len - (size_t)n, (uint64_t)n);
    return true;
}

/* The body of multipart/byteranges (RFC 9110 14.6). */
static bool plan_parts(struct plan *plan, struct buf *text, const struct db_doc *doc,
                       const struct ranges *ranges, const char *boundary)
{
    char line[PART_HEAD_MAX];
    text->len = 0;
    for (unsigned i = 0; i < ranges->count; i++) {
        const struct range *r = &ranges->list[i];
        int n = snprintf(line, sizeof line,
                         "\r\n--%s\r\nContent-Type: %.*s\r\nContent-Range: bytes %llu-%llu/%llu"
                         "\r\n\r\n",
                         boundary, (int)doc->type_len, doc->type, (unsigned long long)r->from,
                         (unsigned long long)(r->from + r->bytes - 1),
                         (unsigned long long)doc->size);
        if (!add_text(plan, text, line, n))
            return false;
        add_segment(plan, false, r->from, r->bytes);
    }
    return add_text(plan, text, line, snprintf(line, sizeof line, "\r\n--%s--\r\n", boundary));
}

/* Nobody can write a body that contains the boundary: it is made anew for each answer. */
static bool make_boundary(char out[33])
{
    unsigned char random[16];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(out + 2 * i, 3, "%02x", random[i]);
    return true;
}

static void start_single(struct call *c, const struct want *w, const struct db_doc *doc,
                         const struct range *r)
{
    char value[80];
    int n = snprintf(value, sizeof value, "bytes %llu-%llu/%llu", (unsigned long long)r->from,
                     (unsigned long long)(r->from + r->bytes - 1), (unsigned long long)doc->size);
    start(c, w, doc, 206);
    resp_header(c->resp, "Content-Type", type_of(doc));
    resp_header(c->resp, "Content-Range", (struct str){value, (size_t)n});
}

static bool start_multiple(struct call *c, const struct want *w, const struct db_doc *doc,
                           const struct ranges *ranges, struct plan *plan)
{
    char boundary[33], value[64];
    if (!make_boundary(boundary) ||
        !plan_parts(plan, &session_of(c)->text, doc, ranges, boundary))
        return false;
    int n = snprintf(value, sizeof value, "multipart/byteranges; boundary=%s", boundary);
    start(c, w, doc, 206);
    resp_header(c->resp, "Content-Type", (struct str){value, (size_t)n});
    return true;
}

static void unsatisfiable(struct call *c, const struct db_doc *doc)
{
    char value[40];
    snprintf(value, sizeof value, "bytes */%llu", (unsigned long long)doc->size);
    problem_with(c, 416, "The document does not have the range that was asked for.",
                 (struct problem_header){"Content-Range", value});
}

static enum range_result judge_range(const struct call *c, const struct want *w,
                                     const struct db_doc *doc, struct ranges *ranges)
{
    if (w->head || w->conditions.range.n == 0 ||
        !precond_range(&w->conditions, doc->seq, doc->modified, c->now_s))
        return RANGE_WHOLE;
    return range_parse(w->conditions.range, doc->size, ranges);
}

/* Builds the head up to its length and plans the body. False: it was answered, or failed. */
static bool head_and_plan(struct call *c, const struct want *w, const struct db_doc *doc,
                          struct plan *plan)
{
    struct ranges ranges;
    enum range_result result = judge_range(c, w, doc, &ranges);
    plan->count = 0;
    plan->bytes = 0;
    if (result == RANGE_UNSATISFIABLE) {
        unsatisfiable(c, doc);
        return false;
    }
    if (result == RANGE_WHOLE) {
        start(c, w, doc, 200);
        resp_header(c->resp, "Content-Type", type_of(doc));
        add_segment(plan, false, 0, doc->size);
    } else if (ranges.count == 1) {
        start_single(c, w, doc, &ranges.list[0]);
        add_segment(plan, false, ranges.list[0].from, ranges.list[0].bytes);
    } else if (!start_multiple(c, w, doc, &ranges, plan)) {
        c->resp->failed = true;
        return false;
    }
    resp_length(c->resp, plan->bytes);
    return true;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static enum verdict from_memory(struct call *c, const struct want *w, const struct db_doc *doc)
{
    struct plan plan;
    if (!head_and_plan(c, w, doc, &plan))
        return REPLY;
    const struct buf *text = &session_of(c)->text;
    for (unsigned i = 0; i < plan.count && !w->head; i++) {
        const struct segment *s = &plan.segments[i];
        const unsigned char *from = s->is_text ? text->data : doc->body;
        resp_write(c->resp, s->bytes > 0 ? from + s->at : NULL, (size_t)s->bytes);
    }
    return REPLY;
}

struct file_stream {
    struct stream stream;
    int fd;
    struct plan plan;
    unsigned at;   /* the segment being sent */
    uint64_t sent; /* bytes of it */
    struct buf text;
};

static enum stream_state fill(struct stream *s, struct call *c)
{
    struct file_stream *f = (struct file_stream *)s; /* its first member */
    unsigned char piece[PIECE_BYTES];
    for (size_t room = STREAM_PIECE_BYTES; room > 0 && f->at < f->plan.count;) {
        const struct segment *seg = &f->plan.segments[f->at];
        uint64_t left = seg->bytes - f->sent;
        size_t take = room < sizeof piece ? room : sizeof piece;
        if (left == 0) {
            f->at++;
            f->sent = 0;
            continue;
        }
        if (left < take)
            take = (size_t)left;
        if (seg->is_text)
            resp_write(c->resp, f->text.data + seg->at + f->sent, take);
        else if (spool_read(f->fd, piece, take, (size_t)(seg->at + f->sent)))
            resp_write(c->resp, piece, take);
        else
            return STREAM_BREAK; /* somebody cut the file: the client sees that bytes are missing */
        f->sent += take;
        room -= take;
    }
    return f->at < f->plan.count ? STREAM_MORE : STREAM_END;
}

static void close_stream(struct stream *s)
{
    struct file_stream *f = (struct file_stream *)s;
    close(f->fd);
    buf_free(&f->text);
    free(f);
}

/* Takes fd. */
static enum verdict from_file(struct call *c, const struct want *w, const struct db_doc *doc,
                              int fd)
{
    struct file_stream *f = calloc(1, sizeof *f);
    if (f == NULL || !head_and_plan(c, w, doc, &f->plan)) {
        bool failed = f == NULL;
        free(f);
        close(fd);
        return failed ? FAIL : REPLY;
    }
    const struct buf *text = &session_of(c)->text;
    f->fd = fd;
    f->stream.fill = fill;
    f->stream.close = close_stream;
    bool has_text = f->plan.count > 1;
    if (has_text && !buf_add(&f->text, text->data, text->len, RESP_MAX)) {
        close_stream(&f->stream);
        return FAIL;
    }
    loop_stream(c, &f->stream);
    return STREAM;
}

static enum verdict by_server(struct call *c, const struct want *w, const struct db_doc *doc,
                              const char *name)
{
    const struct store *store = session_of(c)->store;
    struct buf *link = &session_of(c)->link;
    bool accel = store->conf->sendfile_header == SENDFILE_X_ACCEL_REDIRECT;
    const char *folder = accel ? accel_prefix : db_blobs_folder(store->blobs);
    link->len = 0;
    if (!buf_add(link, folder, strlen(folder), RESP_HEAD_MAX) ||
        (!accel && !buf_add(link, "/", 1, RESP_HEAD_MAX)) ||
        !buf_add(link, name, DB_BLOB_NAME_LEN, RESP_HEAD_MAX))
        return FAIL;
    resp_start(c->resp, 200);
    put_validators(c, w, doc);
    resp_header(c->resp, "Content-Type", type_of(doc));
    resp_header(c->resp, accel ? "X-Accel-Redirect" : "X-Sendfile",
                (struct str){(const char *)link->data, link->len});
    resp_body(c->resp, NULL, 0);
    return REPLY;
}

/* ---- large documents ------------------------------------------------------------------------- */

static enum verdict answer(struct call *c, const struct want *w);

/* A request that waits until there is a file of its document. */
struct build {
    struct task task;
    struct want want; /* its strings lie in text */
    struct blob_made made;
    char text[];
};

static void work(struct task *t, struct worker *worker)
{
    struct build *b = (struct build *)t;
    blob_make(worker->store->blobs, worker_reader(worker), b->want.key, &b->made);
}

static enum verdict built(struct task *t, struct call *c)
{
    struct build *b = (struct build *)t;
    enum verdict verdict = FAIL;
    if (c->resp != NULL) {
        b->want.tries++;
        b->want.made_of = b->made.of;
        b->want.made_fd = b->made.fd;
        if (b->made.result == DB_FULL || b->made.result == DB_NO_MEMORY)
            b->want.tries = TRIES_MAX; /* no file can be written: from memory, then */
        verdict = answer(c, &b->want);
    }
    if (b->made.fd >= 0)
        close(b->made.fd);
    return verdict;
}

static struct str keep(char **to, struct str s)
{
    struct str kept = {*to, s.n};
    if (s.n > 0)
        memcpy(*to, s.p, s.n);
    *to += s.n;
    return kept;
}

static enum verdict build(struct call *c, const struct want *w)
{
    const struct precond *p = &w->conditions;
    struct build *b = store_task(c, sizeof *b + w->key.n + p->range.n + p->if_range.n);
    if (b == NULL)
        return FAIL;
    char *to = b->text;
    b->want = *w;
    b->want.key = keep(&to, w->key);
    b->want.conditions.range = keep(&to, p->range);
    b->want.conditions.if_range = keep(&to, p->if_range);
    b->made.fd = -1;
    b->task.work = work;
    b->task.done = built;
    return store_run(c, &b->task);
}

/* True when the web server would take the Range as we do. What is odd, or hangs on a date, it
 * judges in its own way. */
static bool range_is_plain(const struct precond *p, uint64_t size)
{
    struct ranges ranges;
    if (p->range.n == 0)
        return true;
    if (p->if_range.n > 0 && p->if_range.p[0] != '"')
        return false;
    return range_parse(p->range, size, &ranges) == RANGE_PARTS && !ranges.vast;
}

/* The web server judges conditions by the file, which knows nothing of the document's states. */
static bool accel_possible(const struct store *store, const struct want *w)
{
    return store->blobs != NULL && store->conf->sendfile_header != SENDFILE_NONE && !w->by_us &&
           !w->conditions.db.match.given && !w->conditions.db.unmodified_given;
}

/* The document once more, with its body whatever its size. */
static enum verdict whole_from_memory(struct call *c, const struct want *w)
{
    struct db_doc doc;
    enum db_result result = db_doc_get(session_reader(c), w->key.p, w->key.n, UINT32_MAX, &doc);
    if (result == DB_OK)
        return from_memory(c, w, &doc);
    problem_result(c, result, 0);
    return REPLY;
}

static enum verdict large(struct call *c, const struct want *w, const struct db_doc *doc)
{
    const struct store *store = session_of(c)->store;
    char name[DB_BLOB_NAME_LEN + 1];
    bool accel = accel_possible(store, w) && range_is_plain(&w->conditions, doc->size);
    bool fits = doc->size <= store->conf->body_in_memory_bytes;
    if (w->made_fd >= 0 && w->made_of.seq == doc->seq && w->made_of.id == doc->id) {
        int fd = dup(w->made_fd);
        return fd >= 0 ? from_file(c, w, doc, fd) : FAIL;
    }
    if (store->blobs == NULL)
        return whole_from_memory(c, w);
    enum db_blob_state state = db_blobs_find(store->blobs, blob_of(doc), c->now_s, name);
    if (state == DB_BLOB_READY && accel)
        return by_server(c, w, doc, name);
    int fd = state == DB_BLOB_READY ? db_blobs_open_file(store->blobs, name) : -1;
    if (fd >= 0)
        return from_file(c, w, doc, fd);
    if (w->tries >= TRIES_MAX || (fits && (!accel || state == DB_BLOB_UNSEEN)))
        return whole_from_memory(c, w);
    return build(c, w);
}

/* ---- the request ----------------------------------------------------------------------------- */

static enum verdict answer(struct call *c, const struct want *w)
{
    const struct conf *conf = session_of(c)->store->conf;
    struct db_doc doc = {0};
    struct db_reader *reader = session_reader(c);
    uint64_t body_max = accel_possible(session_of(c)->store, w) ? conf->accel_min_bytes - 1
                                                                : conf->body_in_memory_bytes;
    enum db_result result = reader ? db_doc_get(reader, w->key.p, w->key.n,
                                                w->head ? 0 : body_max, &doc)
                                   : DB_BROKEN;
    if (result != DB_OK) {
        if (result == DB_NONE)
            problem(c, 404, docs_absent);
        else
            problem_result(c, result, 0);
        return REPLY;
    }
    switch (precond_get(&w->conditions, doc.seq, doc.modified)) {
    case PRECOND_FAILED:
        problem_result(c, DB_PRECONDITION, 0);
        return REPLY;
    case PRECOND_NOT_MODIFIED:
        resp_start(c->resp, 304);
        put_validators(c, w, &doc);
        resp_no_body(c->resp);
        return REPLY;
    case PRECOND_GO:
        break;
    }
    return w->head || doc.size <= body_max ? from_memory(c, w, &doc) : large(c, w, &doc);
}

enum verdict docs_get(struct call *c, const struct precond *p)
{
    struct want w = {
        .key = docs_key(c->req),
        .conditions = *p,
        .public_ = access_public_kind(c),
        .head = c->req->method == METHOD_HEAD,
        .by_us = str_eq(c->req->sendfile, STR_LIT("off")),
        .made_fd = -1,
    };
    return answer(c, &w);
}
