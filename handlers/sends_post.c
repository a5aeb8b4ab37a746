/* Accepting messages: POST /sends/LINE and /sends/A,B,C.
 *
 * Keys and version of each line are read in the round's snapshot, and what has keys is sealed on a
 * thread of the pool; then one operation queues all of it, and 202 is answered after its sync. When
 * a line's keys changed between, the operation is refused and the message is sealed again. The
 * plaintext is overwritten before its memory is given back. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/doc.h"
#include "fcgi/path.h"
#include "handlers/content.h"
#include "handlers/json.h"
#include "handlers/json_check.h"
#include "handlers/once.h"
#include "handlers/problem.h"
#include "handlers/sends.h"
#include "handlers/sends_seal.h"
#include "handlers/sends_work.h"
#include "handlers/store.h"

/* A request from its body to its answer. */
struct sending {
    unsigned char *body; /* from malloc, NULL: it is empty */
    size_t bytes;
    char type[DB_TYPE_MAX + 1];
    bool several; /* the path names several lines, so the answer is of that form */
    bool has_once;
    struct db_once once;
    unsigned tries;
    enum db_result result; /* of making the messages */
    struct db_error error;
    unsigned count;
    struct sends_target targets[];
};

static void forget_made(struct sending *s)
{
    for (unsigned i = 0; i < s->count; i++)
        sends_target_free(&s->targets[i]);
}

static void free_sending(void *request)
{
    struct sending *s = request;
    forget_made(s);
    if (s->body != NULL)
        explicit_bzero(s->body, s->bytes);
    free(s->body);
    free(s);
}

/* ---- making the messages --------------------------------------------------------------------- */

static enum verdict answer_not_made(struct call *c, const struct sending *s)
{
    if (s->result == DB_TOO_LARGE)
        problem(c, 413, s->error.text);
    else if (s->result == DB_INVALID || s->result == DB_CONFLICT)
        problem(c, 422, s->error.text);
    else if (s->result == DB_REFUSED)
        problem_with(c, 503, s->error.text, (struct problem_header){"Retry-After", "60"});
    else
        problem_result(c, s->result, 0);
    return REPLY;
}

static struct sends_content content_of(const struct sending *s)
{
    return (struct sends_content){s->type, s->body, s->bytes};
}

/* Any thread. */
static void make_all(void *request, struct keyring *ring)
{
    struct sending *s = request;
    struct sends_content content = content_of(s);
    s->result = DB_OK;
    for (unsigned i = 0; i < s->count && s->result == DB_OK; i++)
        s->result = sends_make_to(ring, &s->targets[i], &content, &s->error);
}

/* Reads what is needed of all lines. False: answered. *sealed: one of them has keys. */
static bool look(struct call *c, struct db_reader *r, struct sending *s, bool *sealed)
{
    *sealed = false;
    for (unsigned i = 0; i < s->count; i++) {
        struct sends_target *t = &s->targets[i];
        enum db_result result = r != NULL ? sends_look(r, t) : DB_BROKEN;
        if (result == DB_NONE)
            (void)sends_no_line(c, (struct str){t->line, strlen(t->line)});
        else if (result != DB_OK)
            problem_result(c, result, 0);
        if (result != DB_OK)
            return false;
        *sealed |= t->key_count > 0;
    }
    return true;
}

/* ---- queueing them --------------------------------------------------------------------------- */

static struct db_op *part_of(const struct sending *s, unsigned i)
{
    const struct sends_target *t = &s->targets[i];
    struct sends_content content = content_of(s);
    bool share = i > 0 && t->made.body == NULL && s->targets[i - 1].made.body == NULL;
    return sends_op(t, &content, share);
}

/* The operation of all of it. NULL: memory is short. */
static struct db_op *operation(const struct sending *s)
{
    struct db_op *op = s->several ? db_op_new(DB_OP_BATCH, 0) : part_of(s, 0);
    for (unsigned i = 0; op != NULL && s->several && i < s->count; i++) {
        struct db_op *part = part_of(s, i);
        if (part == NULL) {
            db_op_free(op);
            return NULL;
        }
        db_op_add_part(op, part);
    }
    if (op == NULL || !s->has_once)
        return op;
    op->once = malloc(sizeof *op->once);
    if (op->once == NULL) {
        db_op_free(op);
        return NULL;
    }
    *op->once = s->once;
    return op;
}

static void put_send(struct json *j, const struct db_op *part, const struct sends_target *t)
{
    json_raw(j, "{\"id\":");
    json_string(j, sends_id(part, t));
    json_raw(j, ",\"line\":");
    json_string(j, (struct str){t->line, strlen(t->line)});
    json_raw(j, ",\"seq\":");
    json_u64(j, part->seq);
    json_raw(j, ",\"state\":\"waiting\"}");
}

static void put_location(struct call *c, const struct db_op *op, const struct sends_target *t)
{
    struct buf *link = &session_of(c)->link;
    struct str id = sends_id(op, t);
    link->len = 0;
    if (path_encode(link, session_of(c)->mount) &&
        buf_add(link, "/sends/", 7, RESP_HEAD_MAX) &&
        buf_add(link, t->line, strlen(t->line), RESP_HEAD_MAX) &&
        buf_add(link, "/", 1, RESP_HEAD_MAX) && buf_add(link, id.p, id.n, RESP_HEAD_MAX))
        resp_header(c->resp, "Location", (struct str){(char *)link->data, link->len});
    else
        c->resp->failed = true;
}

static void put_sends(struct json *j, const struct db_op *op, const struct sending *s)
{
    const struct db_op *part = op->parts;
    json_raw(j, "{\"sends\":[");
    for (unsigned i = 0; i < s->count && part != NULL; i++, part = part->next) {
        json_raw(j, i > 0 ? ",\n" : "\n");
        put_send(j, part, &s->targets[i]);
    }
    json_raw(j, "]}");
}

static enum verdict answer_queued(struct call *c, const struct db_op *op, const struct sending *s)
{
    struct json j = json_start(&session_of(c)->text);
    if (s->several)
        put_sends(&j, op, s);
    else
        put_send(&j, op, s->targets);
    json_raw(&j, "\n");
    resp_start(c->resp, 202);
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    if (!s->several)
        put_location(c, op, s->targets);
    once_header(c, op);
    resp_body(c->resp, j.out->data, j.out->len);
    c->resp->failed |= j.failed;
    return REPLY;
}

static enum verdict answer_not_queued(struct call *c, const struct db_op *op,
                                      const struct sending *s)
{
    const struct sends_target *t = &s->targets[s->several ? op->failed_part % s->count : 0];
    static const struct problem_header soon = {"Retry-After", "1"}, later = {"Retry-After", "60"};
    char detail[200];
    if (op->result == DB_NONE)
        return sends_no_line(c, (struct str){t->line, strlen(t->line)});
    if (op->result == DB_PRECONDITION) {
        snprintf(detail, sizeof detail, "The keys of the line %s are changing; try again.",
                 t->line);
        problem_with(c, 503, detail, soon);
    } else if (op->result == DB_OVERLOAD) {
        snprintf(detail, sizeof detail, "The line %s has 1000000 messages waiting, and takes no "
                                        "more.", t->line);
        problem_with(c, 503, detail, later);
    } else {
        problem_result(c, op->result, op->pid);
    }
    return REPLY;
}

static enum verdict start(struct call *c, struct db_reader *r, struct sending *s);

static enum verdict queued(struct write *w, struct call *c)
{
    struct sending *s = w->arg;
    enum verdict verdict = REPLY;
    if (c->resp != NULL && w->op->result == DB_PRECONDITION && s->tries++ < SENDS_TRIES_MAX) {
        forget_made(s);
        return start(c, session_fresh(session_of(c)), s);
    }
    if (c->resp != NULL && w->op->result == DB_OK)
        verdict = answer_queued(c, w->op, s);
    else if (c->resp != NULL)
        verdict = answer_not_queued(c, w->op, s);
    free_sending(s);
    return verdict;
}

/* Owns the request. */
static enum verdict submit(struct call *c, void *request)
{
    struct sending *s = request;
    enum verdict verdict = s->result != DB_OK ? answer_not_made(c, s)
                                              : store_write_then(c, operation(s), queued, s);
    if (verdict != PARK)
        free_sending(s);
    return verdict;
}

static const struct sends_work work = {make_all, submit, free_sending};

/* Owns s; from its lines to the operation. */
static enum verdict start(struct call *c, struct db_reader *r, struct sending *s)
{
    bool with_keys;
    if (!look(c, r, s, &with_keys)) {
        free_sending(s);
        return REPLY;
    }
    return sends_work(c, &work, s, with_keys);
}

/* ---- the request ----------------------------------------------------------------------------- */

static bool is_named(const struct sending *s, struct str name)
{
    for (unsigned i = 0; i < s->count; i++)
        if (str_eq(name, (struct str){s->targets[i].line, strlen(s->targets[i].line)}))
            return true;
    return false;
}

static unsigned count_names(struct str names)
{
    unsigned n = 1;
    for (size_t i = 0; i < names.n; i++)
        n += names.p[i] == ',';
    return n;
}

/* Takes the lines that the path names, and judges the rights to each. False: answered. */
static bool take_names(struct call *c, struct str names, struct sending *s)
{
    for (size_t at = 0; at <= names.n;) {
        const char *comma = at < names.n ? memchr(names.p + at, ',', names.n - at) : NULL;
        struct str name = {names.p + at,
                           comma != NULL ? (size_t)(comma - names.p) - at : names.n - at};
        if (!sends_allowed(c, name, true))
            return false;
        if (!db_line_name_ok(name.p, name.n)) {
            (void)sends_no_line(c, name);
            return false;
        }
        if (is_named(s, name)) {
            problem(c, 400, "The path names a line twice.");
            return false;
        }
        memcpy(s->targets[s->count++].line, name.p, name.n);
        at += name.n + 1;
    }
    return true;
}

/* The same hash for the same request: of the type and the body as they were given. */
static bool take_once(struct call *c, struct sending *s)
{
    struct db_op holder = {.kind = DB_OP_SEND};
    if (!once_take(c, &holder, 202))
        return false;
    if (holder.once == NULL)
        return true;
    once_body(&holder, (struct str){s->type, strlen(s->type)},
              (struct str){(const char *)s->body, s->bytes});
    s->once = *holder.once;
    s->has_once = true;
    free(holder.once);
    return true;
}

/* The type, checked as for documents, and the body. False: answered. */
static bool take_content(struct call *c, struct sending *s)
{
    struct str type = c->req->content_type;
    if (type.n == 0)
        type = STR_LIT("application/octet-stream");
    if (!content_type_ok(type)) {
        problem(c, 400, "The Content-Type is malformed or longer than 255 bytes.");
        return false;
    }
    memcpy(s->type, type.p, type.n);
    s->body = frame_take_body(c->req->frame, &s->bytes);
    if (s->body == NULL && s->bytes > 0) {
        problem_result(c, DB_NO_MEMORY, 0);
        return false;
    }
    if (!content_is_json(type) || json_check_all(s->body, s->bytes, NULL))
        return true;
    problem(c, 400, "The body is not JSON that parses.");
    return false;
}

enum verdict sends_post(struct call *c, struct str names)
{
    unsigned count = count_names(names);
    if (count > SENDS_LINES_MAX) {
        problem(c, 400, "One request sends on at most 100 lines.");
        return REPLY;
    }
    struct sending *s = calloc(1, sizeof *s + count * sizeof s->targets[0]);
    if (s == NULL)
        return FAIL;
    s->several = count > 1;
    if (!take_names(c, names, s)) {
        free_sending(s);
        return REPLY;
    }
    if (c->req->frame->body_bytes > DB_SEND_MAX) {
        problem(c, 413, sends_too_large);
        free_sending(s);
        return REPLY;
    }
    if (!take_content(c, s) || !take_once(c, s)) {
        free_sending(s);
        return REPLY;
    }
    return start(c, session_reader(c), s);
}
