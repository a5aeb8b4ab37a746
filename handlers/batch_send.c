#include "handlers/batch_send.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/dispatch.h"
#include "handlers/sends.h"
#include "handlers/sends_work.h"

/* A batch on its way. */
struct sending {
    struct db_op *op;
    struct batch_sends all;
    batch_send_answer *answer;
    unsigned tries;
    enum db_result result; /* of making the messages */
    struct db_error error;
    uint32_t failed; /* the index of the one that could not be made */
};

bool batch_send_add(struct batch_sends *all, struct str line, uint32_t index, struct str type,
                    struct str body)
{
    struct batch_send *s = calloc(1, sizeof *s + type.n + 1 + body.n);
    if (s == NULL)
        return false;
    memcpy(s->target.line, line.p, line.n);
    memcpy(s->bytes, type.p, type.n);
    if (body.n > 0)
        memcpy(s->bytes + type.n + 1, body.p, body.n);
    s->content = (struct sends_content){s->bytes, s->bytes + type.n + 1, body.n};
    s->index = index;
    if (all->first == NULL)
        all->end = &all->first;
    *all->end = s;
    all->end = &s->next;
    return true;
}

void batch_send_free(struct batch_sends *all)
{
    for (struct batch_send *s = all->first, *next; s != NULL; s = next) {
        next = s->next;
        sends_target_free(&s->target);
        explicit_bzero((void *)(uintptr_t)s->content.body, s->content.bytes);
        free(s);
    }
    *all = (struct batch_sends){NULL, NULL};
}

static void free_sending(void *request)
{
    struct sending *s = request;
    db_op_free(s->op);
    batch_send_free(&s->all);
    free(s);
}

/* ---- what the batch asks of one ------------------------------------------------------------- */

bool batch_send_allowed(struct call *c, const struct batch_send *send)
{
    const struct problem_part at = {.index = send->index};
    struct str line = {send->target.line, strlen(send->target.line)};
    enum access access = sends_judge(c, line, true);
    if (access != ACCESS_FORBIDDEN)
        return !dispatch_refused(c, access);
    problem_at(c, 403, "This credential does not cover that line.", &at);
    return false;
}

void batch_send_put(struct json *j, const struct db_op *part, const struct batch_send *send)
{
    const struct sends_target *t = &send->target;
    json_raw(j, "{\"id\":");
    json_string(j, sends_id(part, t));
    json_raw(j, ",\"line\":");
    json_string(j, (struct str){t->line, strlen(t->line)});
    json_raw(j, ",\"status\":202,\"seq\":");
    json_u64(j, part->seq);
    json_raw(j, "}");
}

bool batch_send_failed(struct call *c, const struct db_op *op, uint32_t index)
{
    const struct problem_part at = {.index = index};
    switch (op->result) {
    case DB_PRECONDITION:
        problem_with(c, 503, "The keys of a line are changing; try again.",
                     (struct problem_header){"Retry-After", "1"});
        return true;
    case DB_NONE:
        problem_at(c, 422, "There is no such line any more.", &at);
        return true;
    case DB_OVERLOAD:
        problem_at(c, 503, "The line has 1000000 messages waiting, and takes no more.", &at);
        return true;
    default:
        return false;
    }
}

/* ---- making the messages --------------------------------------------------------------------- */

static enum verdict refuse(struct call *c, unsigned status, const char *detail, uint32_t index)
{
    const struct problem_part at = {.index = index};
    problem_at(c, status, detail, &at);
    return REPLY;
}

static enum verdict no_line(struct call *c, const struct batch_send *of)
{
    char detail[DB_LINE_NAME_MAX + 40];
    snprintf(detail, sizeof detail, "There is no line %s.", of->target.line);
    return refuse(c, 422, detail, of->index);
}

static enum verdict answer_not_made(struct call *c, const struct sending *s)
{
    if (s->result == DB_NO_MEMORY || s->result == DB_BROKEN) {
        problem_result(c, s->result, 0);
        return REPLY;
    }
    return refuse(c, s->result == DB_REFUSED ? 503 : 422, s->error.text, s->failed);
}

/* Any thread. */
static void make_all(void *request, struct keyring *ring)
{
    struct sending *s = request;
    s->result = DB_OK;
    for (struct batch_send *m = s->all.first; m != NULL && s->result == DB_OK; m = m->next) {
        s->failed = m->index;
        s->result = sends_make_to(ring, &m->target, &m->content, &s->error);
    }
}

/* False: answered. *sealed: one of the lines has keys. */
static bool look(struct call *c, struct db_reader *r, struct sending *s, bool *sealed)
{
    *sealed = false;
    for (struct batch_send *m = s->all.first; m != NULL; m = m->next) {
        enum db_result result = r != NULL ? sends_look(r, &m->target) : DB_BROKEN;
        if (result == DB_NONE)
            (void)no_line(c, m);
        else if (result != DB_OK)
            problem_result(c, result, 0);
        if (result != DB_OK)
            return false;
        *sealed |= m->target.key_count > 0;
    }
    return true;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Puts the messages in the places of their kind. False: memory is short. */
static bool put_parts(struct sending *s)
{
    struct batch_send *m = s->all.first;
    struct db_op *last = NULL;
    for (struct db_op **at = &s->op->parts; *at != NULL; at = &(*at)->next) {
        if ((*at)->kind == DB_OP_SEND && m != NULL) {
            struct db_op *part = sends_op(&m->target, &m->content, false), *empty = *at;
            if (part == NULL)
                return false;
            part->next = empty->next;
            *at = part;
            empty->next = NULL;
            db_op_free(empty);
            m = m->next;
        }
        last = *at;
    }
    s->op->last_part = last;
    return true;
}

/* The parts and the idempotency key of an operation that was refused, as a new one. NULL: memory is
 * short. */
static struct db_op *again(struct db_op *op)
{
    struct db_op *next = db_op_new(DB_OP_BATCH, 0);
    if (next == NULL)
        return NULL;
    next->parts = op->parts;
    next->last_part = op->last_part;
    next->part_count = op->part_count;
    next->once = op->once;
    op->parts = op->last_part = NULL;
    op->part_count = 0;
    op->once = NULL;
    return next;
}

static enum verdict start(struct call *c, struct db_reader *r, struct sending *s);

static enum verdict written(struct write *w, struct call *c)
{
    struct sending *s = w->arg;
    bool changed = c->resp != NULL && w->op->result == DB_PRECONDITION &&
                   s->tries < SENDS_TRIES_MAX;
    const struct db_op *part = w->op->parts;
    for (uint32_t i = 0; changed && i < w->op->failed_part && part != NULL; i++)
        part = part->next;
    if (changed && part != NULL && part->kind == DB_OP_SEND) {
        s->tries++;
        for (struct batch_send *m = s->all.first; m != NULL; m = m->next)
            sends_target_free(&m->target);
        s->op = again(w->op);
        if (s->op != NULL)
            return start(c, session_fresh(session_of(c)), s);
        problem_result(c, DB_NO_MEMORY, 0);
    } else if (c->resp != NULL) {
        s->answer(c, w->op, &s->all);
    }
    free_sending(s);
    return REPLY;
}

/* Owns the request. */
static enum verdict submit(struct call *c, void *request)
{
    struct sending *s = request;
    enum verdict verdict = FAIL;
    if (s->result != DB_OK) {
        verdict = answer_not_made(c, s);
    } else if (put_parts(s)) {
        struct db_op *op = s->op;
        s->op = NULL;
        verdict = store_write_then(c, op, written, s);
    }
    if (verdict != PARK)
        free_sending(s);
    return verdict;
}

static const struct sends_work work = {make_all, submit, free_sending};

/* Owns s. */
static enum verdict start(struct call *c, struct db_reader *r, struct sending *s)
{
    bool with_keys;
    if (!look(c, r, s, &with_keys)) {
        free_sending(s);
        return REPLY;
    }
    return sends_work(c, &work, s, with_keys);
}

enum verdict batch_send_start(struct call *c, struct db_op *op, struct batch_sends *all,
                              batch_send_answer *answer)
{
    struct sending *s = calloc(1, sizeof *s);
    if (s == NULL) {
        db_op_free(op);
        batch_send_free(all);
        return FAIL;
    }
    s->op = op;
    s->all = *all;
    s->answer = answer;
    *all = (struct batch_sends){NULL, NULL};
    return start(c, session_reader(c), s);
}
