/* Searching a collection.
 *
 * The search runs on a thread of the pool, in a snapshot that begins after the request came. When
 * the index lacks changes of that snapshot, the writer is asked for a step and the search begins
 * again, so that an answer is never older than what was acknowledged; beyond a deadline the client
 * is told to try again. */
#include "handlers/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/search.h"
#include "fcgi/path.h"
#include "handlers/json.h"
#include "handlers/param.h"
#include "handlers/problem.h"
#include "handlers/store.h"

enum {
    DOCS_PREFIX_LEN = 6,
    LIMIT_DEFAULT = 20,
    SEARCH_MS = 1000,   /* for one search */
    CATCH_UP_MS = 3000, /* since the request came, for bringing the index in line */
    SCORE_DIGITS = 6,
};

/* A request, from its first task to its answer. */
struct search {
    struct buf path; /* of the request */
    struct buf q, after;
    unsigned limit;
    uint64_t give_up_ms;
    bool stepped; /* the writer was asked for a step */
    int64_t after_score;
    struct str after_key; /* in after */
    /* what the pool's thread found */
    enum db_result result;
    enum db_search_state state;
    struct db_search_match match;
    struct json json;
    struct buf text;
    unsigned rows;
    bool more;
    struct buf last; /* the place of the last hit, as after takes it */
};

struct search_task {
    struct task task;
    struct search *search;
};

static void free_search(struct search *s)
{
    buf_free(&s->path);
    buf_free(&s->q);
    buf_free(&s->after);
    buf_free(&s->text);
    buf_free(&s->last);
    free(s);
}

static struct str str_of(const struct buf *b)
{
    return (struct str){(const char *)b->data, b->len};
}

static bool keep(struct buf *to, struct str s)
{
    return s.n == 0 || buf_add(to, s.p, s.n, RESP_HEAD_MAX);
}

/* ---- on the pool's thread ----------------------------------------------------------------- */

static void write_score(struct json *j, int64_t score)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%lld.%0*lld", (long long)(score / 1000000), SCORE_DIGITS,
                     (long long)(score % 1000000));
    if (n > 0)
        json_raw(j, text);
}

/* A list of texts: every second one is what was looked for. */
static void write_snippet(struct json *j, const unsigned char *p, size_t n)
{
    const char *separator = "[";
    while (true) {
        const unsigned char *split = n > 0 ? memchr(p, DB_SEARCH_SPLIT, n) : NULL;
        size_t part = split != NULL ? (size_t)(split - p) : n;
        json_raw(j, separator);
        json_string(j, (struct str){(const char *)p, part});
        separator = ",";
        if (split == NULL)
            break;
        p += part + 1;
        n -= part + 1;
    }
    json_raw(j, "]");
}

static bool write_hit(void *arg, const struct db_search_hit *hit)
{
    struct search *s = arg;
    struct json *j = &s->json;
    char date[RFC3339_LEN], score[24];
    if (s->rows == s->limit) {
        s->more = true;
        return false;
    }
    json_raw(j, s->rows++ > 0 ? ",\n{\"key\":" : "\n{\"key\":");
    json_string(j, (struct str){hit->row.key, hit->row.key_len});
    json_raw(j, ",\"etag\":");
    json_etag(j, hit->row.doc.seq);
    json_raw(j, ",\"type\":");
    json_string(j, (struct str){hit->row.doc.type, hit->row.doc.type_len});
    json_raw(j, ",\"size\":");
    json_u64(j, hit->row.doc.size);
    json_raw(j, ",\"modified\":");
    put_rfc3339(date, hit->row.doc.modified);
    json_string(j, (struct str){date, sizeof date});
    json_raw(j, ",\"score\":");
    write_score(j, hit->score);
    json_raw(j, ",\"snippet\":");
    write_snippet(j, hit->snippet, hit->snippet_len);
    json_raw(j, "}");
    s->last.len = 0;
    int n = snprintf(score, sizeof score, "%lld.", (long long)hit->score);
    if (!keep(&s->last, (struct str){score, (size_t)n}) ||
        !keep(&s->last, (struct str){hit->row.key, hit->row.key_len}))
        j->failed = true;
    return !j->failed;
}

static enum db_result search_in(struct search *s, struct db_reader *r, int64_t collection)
{
    struct str prefix = str_of(&s->path);
    struct db_search_ask ask = {
        .match = &s->match,
        .collection = collection,
        .prefix = prefix.p + DOCS_PREFIX_LEN,
        .prefix_len = prefix.n - DOCS_PREFIX_LEN,
        .behind = s->after.len > 0,
        .after_score = s->after_score,
        .after_key = s->after_key.p,
        .after_key_len = s->after_key.n,
        .limit = s->limit + 1,
        .at_most_ms = SEARCH_MS,
    };
    s->json = json_start(&s->text);
    s->rows = 0;
    s->more = false;
    json_raw(&s->json, "{\"items\":[");
    enum db_result result = db_search(r, &ask, write_hit, s);
    bool next = s->more && s->limit > 0;
    json_raw(&s->json, "],\n\"next\":");
    if (next)
        json_string(&s->json, str_of(&s->last));
    else
        json_raw(&s->json, "null");
    json_raw(&s->json, "}\n");
    return result == DB_OK && s->json.failed ? DB_NO_MEMORY : result;
}

static void work(struct task *t, struct worker *w)
{
    struct search *s = ((struct search_task *)t)->search;
    struct db_reader *r = worker_reader(w);
    struct str path = str_of(&s->path);
    int64_t collection = 0;
    s->state = DB_SEARCH_READY;
    s->result = r == NULL ? DB_BROKEN : db_search_parse(r, (const char *)s->q.data, s->q.len,
                                                        &s->match);
    if (s->result != DB_OK)
        return;
    s->result = db_reader_begin(r);
    if (s->result == DB_OK)
        s->result = db_search_look(r, path.p + DOCS_PREFIX_LEN, path.n - DOCS_PREFIX_LEN,
                                   &s->state, &collection);
    if (s->result == DB_OK && s->state == DB_SEARCH_READY)
        s->result = search_in(s, r, collection);
    db_reader_end(r);
}

/* ---- on the loop -------------------------------------------------------------------------- */

static bool put_next(struct call *c, const struct search *s)
{
    struct buf *link = &session_of(c)->link;
    char tail[48];
    int n = snprintf(tail, sizeof tail, "&limit=%u>; rel=\"next\"", s->limit);
    link->len = 0;
    if (!buf_add(link, "<", 1, RESP_HEAD_MAX) || !path_encode(link, session_of(c)->mount) ||
        !path_encode(link, str_of(&s->path)) || !buf_add(link, "?q=", 3, RESP_HEAD_MAX) ||
        !path_encode(link, str_of(&s->q)) || !buf_add(link, "&after=", 7, RESP_HEAD_MAX) ||
        !path_encode(link, str_of(&s->last)) ||
        !buf_add(link, tail, (size_t)n, RESP_HEAD_MAX))
        return false;
    resp_header(c->resp, "Link", str_of(link));
    return true;
}

static enum verdict answer_found(struct call *c, const struct search *s)
{
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    resp_header(c->resp, "Cache-Control", STR_LIT("no-cache"));
    if (s->more && s->limit > 0 && !put_next(c, s))
        return FAIL;
    resp_body(c->resp, s->text.data, s->text.len);
    return REPLY;
}

static const struct problem_header retry = {"Retry-After", "1"};

static enum verdict answer(struct call *c, const struct search *s)
{
    if (s->match.wrong != NULL && s->result == DB_INVALID)
        param_refuse(c, "q", s->match.wrong);
    else if (s->result == DB_TIMEOUT)
        problem_with(c, 503, "The search took longer than a second; look for rarer words.", retry);
    else if (s->result == DB_INVALID || (s->result == DB_OK && s->state == DB_SEARCH_DAMAGED))
        problem(c, 500, "The search index is damaged; `hanji search rebuild` makes it anew.");
    else if (s->result != DB_OK)
        problem_result(c, s->result, 0);
    else if (s->state == DB_SEARCH_NOT_HERE)
        param_refuse(c, "q",
                      "is for searchable collections, and this is none; the operator's command "
                      "`hanji search add` makes it one");
    else if (s->state == DB_SEARCH_INDEXING)
        problem_with(c, 503, "This collection is being indexed; try again later.",
                     (struct problem_header){"Retry-After", "5"});
    else if (s->state == DB_SEARCH_BEHIND)
        problem_with(c, 503, "The search index is being brought up to date; try again shortly.",
                     retry);
    else
        return answer_found(c, s);
    return REPLY;
}

static enum verdict start(struct call *c, struct search *s);

/* The writer has made a step: once more. */
static enum verdict synced(struct write *w, struct call *c)
{
    struct search *s = w->arg;
    if (c->resp == NULL) {
        free_search(s);
        return REPLY;
    }
    if (w->op->result == DB_OK)
        return start(c, s);
    problem_result(c, w->op->result, w->op->pid);
    free_search(s);
    return REPLY;
}

/* True when a step of the writer may help. Indexing a collection takes many: one is made, so that a
 * small one is ready now and a large one gets on. */
static bool step_helps(struct call *c, const struct search *s)
{
    if (c->resp == NULL || s->result != DB_OK || loop_now_ms(c->loop) >= s->give_up_ms)
        return false;
    return s->state == DB_SEARCH_BEHIND || (s->state == DB_SEARCH_INDEXING && !s->stepped);
}

static enum verdict done(struct task *t, struct call *c)
{
    struct search *s = ((struct search_task *)t)->search;
    enum verdict verdict = REPLY;
    if (step_helps(c, s)) {
        s->stepped = true;
        verdict = store_write_then(c, db_op_new(DB_OP_SEARCH_SYNC, 0), synced, s);
        if (verdict == PARK)
            return PARK;
    } else if (c->resp != NULL) {
        verdict = answer(c, s);
    }
    free_search(s);
    return verdict;
}

/* Owns s in any case. */
static enum verdict start(struct call *c, struct search *s)
{
    struct search_task *t = store_task(c, sizeof *t);
    if (t == NULL) {
        free_search(s);
        return FAIL;
    }
    t->search = s;
    t->task.work = work;
    t->task.done = done;
    return store_run(c, &t->task);
}

/* ---- the request -------------------------------------------------------------------------- */

bool search_asked(struct call *c)
{
    return query_find(c->req->query, "q", &session_of(c)->value) != QUERY_NONE;
}

/* "SCORE.KEY", as next gives it. */
static bool read_after(struct search *s)
{
    struct str text = str_of(&s->after);
    size_t i = 0;
    s->after_score = 0;
    while (i < text.n && i < 12 && text.p[i] >= '0' && text.p[i] <= '9')
        s->after_score = s->after_score * 10 + (text.p[i++] - '0');
    if (i == 0 || i >= text.n || text.p[i] != '.')
        return false;
    s->after_key = (struct str){text.p + i + 1, text.n - i - 1};
    return s->after_key.n >= 1 && s->after_key.n <= DB_KEY_MAX;
}

static bool take_after(struct call *c, struct search *s)
{
    enum query_result found = query_find(c->req->query, "after", &s->after);
    if (found == QUERY_NONE) {
        s->after.len = 0;
        return true;
    }
    if (found == QUERY_OK && read_after(s))
        return true;
    param_refuse(c, "after", "is the next of the page before");
    return false;
}

static bool take_parameters(struct call *c, struct search *s)
{
    if (query_find(c->req->query, "q", &s->q) != QUERY_OK) {
        param_refuse(c, "q", "is one text of at most 512 bytes");
        return false;
    }
    s->limit = LIMIT_DEFAULT;
    return param_number(c, "limit", DB_SEARCH_LIMIT_MAX, &s->limit) && take_after(c, s);
}

enum verdict search_collection(struct call *c)
{
    if (c->req->path.n - DOCS_PREFIX_LEN > DB_KEY_MAX) {
        problem(c, 400, "A key has at most 512 bytes.");
        return REPLY;
    }
    struct search *s = calloc(1, sizeof *s);
    if (s == NULL)
        return FAIL;
    s->give_up_ms = loop_now_ms(c->loop) + CATCH_UP_MS;
    if (!take_parameters(c, s)) {
        free_search(s);
        return REPLY;
    }
    if (!keep(&s->path, c->req->path)) {
        free_search(s);
        return FAIL;
    }
    return start(c, s);
}
