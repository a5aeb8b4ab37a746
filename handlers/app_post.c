#include "handlers/app_post.h"

#include <stdlib.h>
#include <string.h>

#include "fcgi/path.h"
#include "handlers/app_answer.h"
#include "handlers/app_form.h"
#include "handlers/app_get.h"
#include "handlers/app_param.h"
#include "handlers/app_steer.h"
#include "handlers/dispatch.h"
#include "handlers/once.h"
#include "handlers/problem.h"

enum { WRITE_LIMIT_US = 50000 };

/* A post that waits for its commit. Its text is behind it. */
struct post {
    struct app_visit visit;
    struct app_input input;
    size_t base_len;
    char memory[];
};

static void free_post(struct post *p)
{
    app_input_free(&p->input);
    app_release(p->visit.app);
    free(p);
}

static bool is_form(const struct app_visit *v)
{
    return v->format == APP_FORMAT_HTML;
}

/* ---- what it came to ------------------------------------------------------------------------- */

/* The page of the form again, with what was sent in it, and what is wrong above. False: there is no
 * such page. */
static bool show_again(struct post *p, struct call *c, unsigned status, const char *message,
                       enum verdict *verdict)
{
    struct app_visit v;
    struct buf *path = &session_of(c)->link;
    if (!app_form(&p->visit, &p->input, p->base_len, path, &v) || v.route->page == NULL)
        return false;
    v.error = (struct str){message, strlen(message)};
    if (v.error.n == 0)
        v.error = STR_LIT("This cannot be done.");
    v.status = status;
    v.input = &p->input;
    if (!app_visit_start(c, &v, p->base_len)) {
        *verdict = FAIL;
        return true;
    }
    *verdict = app_params_take(c, &v, &p->input) ? app_get(c, &v, &p->input) : REPLY;
    return true;
}

static enum verdict refuse(struct post *p, struct call *c, unsigned status, const char *message)
{
    enum verdict verdict = REPLY;
    if (status < 500 && is_form(&p->visit) && show_again(p, c, status, message, &verdict))
        return verdict;
    app_answer_problem(c, status, message);
    return REPLY;
}

static enum verdict failed(struct post *p, struct call *c, const struct db_op *op)
{
    const struct db_app_fault *fault = db_app_op_fault(op, &(const char *){NULL});
    switch (op->result) {
    case DB_INVALID:
        return refuse(p, c, 422, fault->error.text);
    case DB_CONFLICT:
        return refuse(p, c, 409, fault->error.text);
    case DB_TOO_LARGE:
        return refuse(p, c, 413, fault->error.text);
    case DB_TIMEOUT:
        app_count(&session_of(c)->store->app_stats.stopped);
        app_tell(c, &p->visit, false, fault);
        problem_with(c, 503, "This took longer than 50 ms and was stopped: nothing was changed.",
                     (struct problem_header){"Retry-After", "1"});
        return REPLY;
    case DB_REFUSED:
        app_tell(c, &p->visit, false, fault);
        problem(c, 500, "This app has a fault here, and nothing was changed. Its owner finds what "
                        "is wrong in the server's log.");
        return REPLY;
    default:
        problem_result(c, op->result, op->pid);
        return REPLY;
    }
}

/* What the rows say about the answer. False: they say it wrongly; what was done is done. */
static bool steer(struct post *p, struct call *c, const struct db_op *op, struct app_answer *a)
{
    const struct db_rows rows = {op->answer, op->answer_bytes};
    const char *name;
    unsigned statement;
    for (unsigned i = 0; db_rows_result(rows, i, &name, &statement); i++) {
        struct db_cursor *cursor = NULL;
        enum app_steer said = APP_STEER_OK;
        if (statement >= p->visit.script->count || !p->visit.script->statement[statement].steers)
            continue;
        if (db_rows_open(rows, statement, &cursor) != DB_OK)
            return false;
        if (db_cursor_next(cursor) == DB_OK)
            said = app_steer(&p->visit, cursor, a);
        db_cursor_close(cursor);
        if (said == APP_STEER_OK)
            continue;
        if (said == APP_STEER_WRONG) {
            struct db_app_fault fault = {.line = p->visit.script->statement[statement].line};
            memcpy(fault.error.text, a->message, sizeof a->message);
            app_tell(c, &p->visit, false, &fault);
        }
        return false;
    }
    return true;
}

/* After a form: another page, so that going back or loading it again does not send it again. */
static enum verdict redirect(struct post *p, struct call *c, struct app_answer *a)
{
    struct session *s = session_of(c);
    struct app_visit to;
    struct buf *link = &s->value;
    unsigned status = a->status >= 300 && a->status < 400 ? a->status : 303;
    link->len = 0;
    if (!a->located && (!app_form(&p->visit, &p->input, p->base_len, &s->link, &to) ||
                        !path_encode(link, p->visit.mount) || !path_encode(link, to.path)))
        return FAIL;
    resp_start(c->resp, status);
    resp_fixed(c->resp, (const char *)a->head->data, a->head->len);
    if (!a->located)
        resp_header(c->resp, "Location", (struct str){(const char *)link->data, link->len});
    if (!a->cached)
        resp_header(c->resp, "Cache-Control", STR_LIT("no-store"));
    resp_body(c->resp, NULL, 0);
    return REPLY;
}

static bool has_form_page(struct post *p, struct call *c, const struct app_answer *a)
{
    struct app_visit to;
    return a->located ||
           app_form(&p->visit, &p->input, p->base_len, &session_of(c)->link, &to);
}

static enum verdict succeeded(struct post *p, struct call *c, const struct db_op *op)
{
    static const char replayed[] = "Idempotency-Replayed: true\r\n";
    struct app_desk *desk = app_desk(session_of(c));
    struct app_answer a = {.head = &desk->head, .spare = &desk->spare,
                           .text = &session_of(c)->text, .fd = -1};
    struct app_reading x = {.visit = &p->visit, .max_bytes = APP_ANSWER_MAX, .answer = &a,
                            .pieces = &desk->pieces};
    app_answer_reset(&a);
    bool ok = steer(p, c, op, &a);
    if (ok && a.stopped)
        return refuse(p, c, a.status, a.message);
    if (ok && op->replayed)
        ok = buf_add(a.head, replayed, sizeof replayed - 1, RESP_HEAD_MAX);
    if (ok && !a.raw && is_form(&p->visit) && has_form_page(p, c, &a))
        return redirect(p, c, &a);
    p->visit.format = APP_FORMAT_JSON;
    p->visit.status = 200;
    if (ok && (a.raw || app_rows_recorded(&x, (struct db_rows){op->answer, op->answer_bytes})))
        return app_answer(c, &p->visit, &a);
    if (x.result == DB_REFUSED)
        app_tell(c, &p->visit, false, &x.fault);
    problem(c, 500, "It was done, but this app has a fault in what it answers. Its owner finds "
                    "what is wrong in the server's log.");
    return REPLY;
}

static enum verdict wrote(struct write *w, struct call *c)
{
    struct post *p = w->arg;
    enum verdict verdict = REPLY;
    if (c->resp != NULL) {
        verdict = w->op->result == DB_OK ? succeeded(p, c, w->op) : failed(p, c, w->op);
        verdict = dispatch_settle(c, verdict);
    }
    free_post(p);
    return verdict;
}

/* ---- the request ----------------------------------------------------------------------------- */

static void let_go(void *held)
{
    app_release(held);
}

/* What is asked for, with an idempotency key: the parameters that the client gave. A boundary of
 * multipart is another one each time, so the type does not count. */
static void hash_request(const struct app_visit *v, struct db_op *op)
{
    struct seal_digest d;
    if (op->once == NULL)
        return;
    once_begin(&d, STR_LIT("app"));
    for (unsigned i = 0; i < v->script->names; i++) {
        const struct db_value *value = &v->value[i];
        bool bytes = value->type == DB_VALUE_TEXT || value->type == DB_VALUE_BLOB;
        uint64_t n = bytes ? value->n : sizeof value->i;
        if (v->script->name[i].own || v->script->name[i].name[0] == '_')
            continue;
        seal_digest_add(&d, &value->type, sizeof value->type);
        if (value->type == DB_VALUE_NONE)
            continue;
        seal_digest_add(&d, &n, sizeof n);
        if (n > 0)
            seal_digest_add(&d, bytes ? value->p : &value->i, (size_t)n);
    }
    once_end(&d, op);
}

static struct post *new_post(const struct app_visit *v, struct app_input *input, size_t base_len)
{
    struct post *p = calloc(1, sizeof *p + app_visit_bytes(v));
    if (p == NULL)
        return NULL;
    app_visit_keep(v, &p->visit, p->memory);
    app_hold(v->app);
    p->base_len = base_len;
    p->input = *input;
    *input = (struct app_input){0};
    return p;
}

static struct db_op *new_op(const struct app_visit *v)
{
    const struct db_app_run run = {
        .grant = &v->app->grant,
        .script = v->script,
        .value = v->value,
        .limit_us = WRITE_LIMIT_US,
        .now_s = v->now_s,
    };
    union {
        const struct app *app;
        void *held;
    } held = {.app = v->app};
    app_hold(v->app);
    return db_app_op(&run, let_go, held.held);
}

/* Takes op and p. */
static enum verdict submit(struct call *c, struct db_op *op, struct post *p)
{
    enum verdict verdict = store_write_then(c, op, wrote, p);
    if (verdict != PARK)
        free_post(p);
    return verdict;
}

enum verdict app_post(struct call *c, struct app_visit *v, size_t base_len)
{
    struct app_input input = {0};
    struct db_op *op = NULL;
    struct post *p = NULL;
    enum verdict verdict = REPLY;
    if (!app_input_take(c, v->app, &input) || !app_params_take(c, v, &input))
        goto out;
    verdict = FAIL;
    op = new_op(v);
    if (op == NULL)
        goto out;
    verdict = REPLY;
    if (!once_take(c, op, 200))
        goto out;
    hash_request(v, op);
    verdict = FAIL;
    p = new_post(v, &input, base_len);
    if (p == NULL)
        goto out;
    return submit(c, op, p);
out:
    db_op_free(op);
    app_input_free(&input);
    return verdict;
}
