#include "handlers/app_get.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "handlers/app_answer.h"
#include "handlers/app_lane.h"
#include "handlers/app_param.h"
#include "handlers/problem.h"

enum { SLOW_FOR_MS = 10000 };

/* A visit that goes on elsewhere. Its text is behind it. */
struct app_task {
    struct task task;
    struct app_turn turn;
    struct app_visit visit;
    struct app_input input;
    struct app_reading reading;
    struct app_answer answer;
    struct buf head, text, spare, pieces;
    enum app_read how;
    uint64_t used_us; /* of a processor */
    bool cannot; /* the file cannot be read */
    char memory[];
};

/* ---- on a thread of the pool ----------------------------------------------------------------- */

/* What this thread has used of a processor. */
static uint64_t used_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void work(struct task *task, struct worker *w)
{
    struct app_task *t = (struct app_task *)task; /* its first member */
    struct app_lane *lane = task->store->app_lane;
    struct db_reader *r = worker_reader(w);
    t->reading.reader = r;
    t->reading.result = r != NULL ? db_reader_begin(r) : DB_BROKEN;
    t->cannot = t->reading.result != DB_OK;
    uint64_t before_us = used_us();
    if (!t->cannot)
        t->how = app_read(&t->reading);
    t->used_us = used_us() - before_us;
    if (r != NULL)
        db_reader_end(r);
    app_lane_leave(lane, &t->turn);
}

/* ---- on the loop ----------------------------------------------------------------------------- */

static struct app_slow *slow_place(struct app_desk *desk, uint64_t script)
{
    return &desk->slow[script % (sizeof desk->slow / sizeof *desk->slow)];
}

/* What was too slow for the loop a moment ago is not tried there, until it has shown elsewhere that
 * it is not slow: the machine was busy, or what it reads was not in memory yet. */
static bool is_slow(struct call *c, struct app_desk *desk, const struct app_visit *v)
{
    const struct app_slow *s = v->script != NULL ? slow_place(desk, v->script->id) : NULL;
    return s != NULL && s->script == v->script->id && loop_now_ms(c->loop) < s->until_ms;
}

static void note_slow(struct call *c, struct app_desk *desk, const struct app_visit *v)
{
    struct app_slow *s = slow_place(desk, v->script->id);
    s->script = v->script->id;
    s->until_ms = loop_now_ms(c->loop) + SLOW_FOR_MS;
}

static void note_fast(struct call *c, const struct app_task *t)
{
    bool ran = !t->turn.refused && !t->cannot && t->how == APP_READ_OK;
    struct app_desk *desk = app_desk(session_of(c));
    if (!ran || t->used_us >= APP_LOOP_LIMIT_US || desk == NULL || t->visit.script == NULL)
        return;
    struct app_slow *s = slow_place(desk, t->visit.script->id);
    if (s->script == t->visit.script->id)
        s->until_ms = 0;
}

static void forget(struct app_task *t)
{
    if (t->answer.fd >= 0)
        close(t->answer.fd);
    buf_free(&t->head);
    buf_free(&t->text);
    buf_free(&t->spare);
    buf_free(&t->pieces);
    app_input_free(&t->input);
    app_release(t->visit.app);
}

static void too_many(struct call *c)
{
    app_count(&session_of(c)->store->app_stats.refused);
    problem_with(c, 503, "Too much of this app is slow at once; try again shortly.",
                 (struct problem_header){"Retry-After", "2"});
}

static enum verdict done(struct task *task, struct call *c)
{
    struct app_task *t = (struct app_task *)task;
    enum verdict verdict = REPLY;
    note_fast(c, t);
    if (c->resp != NULL && t->turn.refused)
        too_many(c);
    else if (c->resp != NULL && t->cannot)
        problem_result(c, DB_BROKEN, 0);
    else if (c->resp != NULL && t->how == APP_READ_OK)
        verdict = app_answer(c, &t->visit, &t->answer);
    else if (c->resp != NULL)
        app_answer_failed(c, &t->visit, &t->reading, t->how);
    forget(t);
    return verdict;
}

static struct app_task *new_task(struct call *c, const struct app_visit *v)
{
    struct app_task *t = store_task(c, sizeof *t + app_visit_bytes(v));
    if (t == NULL)
        return NULL;
    app_visit_keep(v, &t->visit, t->memory);
    app_hold(v->app);
    t->task.work = work;
    t->task.done = done;
    t->turn.task = &t->task;
    memcpy(t->turn.app, v->app->grant.app, sizeof t->turn.app);
    t->answer = (struct app_answer){
        .head = &t->head, .text = &t->text, .spare = &t->spare, .fd = -1};
    t->reading = (struct app_reading){
        .visit = &t->visit,
        .limit_us = v->app->time_limit_us,
        .max_bytes = APP_ANSWER_MAX,
        .may_spill = true,
        .answer = &t->answer,
        .pieces = &t->pieces,
    };
    return t;
}

/* Owns input in any case. */
static enum verdict move(struct call *c, const struct app_visit *v, struct app_input *input)
{
    struct app_lane *lane = session_of(c)->store->app_lane;
    struct app_task *t = new_task(c, v);
    if (t == NULL) {
        if (input != NULL)
            app_input_free(input);
        return FAIL;
    }
    if (input != NULL) {
        t->input = *input;
        t->visit.input = &t->input;
        *input = (struct app_input){0};
    }
    if (app_lane_enter(lane, &t->turn) == APP_LANE_TAKEN) {
        app_count(&session_of(c)->store->app_stats.moved);
        return PARK;
    }
    forget(t);
    loop_unpark(c, &t->task.park);
    too_many(c);
    return REPLY;
}

enum verdict app_get(struct call *c, const struct app_visit *v, struct app_input *input)
{
    struct app_desk *desk = app_desk(session_of(c));
    struct app_answer answer = {.head = &desk->head, .spare = &desk->spare,
                                .text = &session_of(c)->text, .fd = -1};
    struct app_reading x = {
        .visit = v,
        .reader = v->script != NULL ? session_reader(c) : NULL,
        .limit_us = APP_LOOP_LIMIT_US,
        .max_bytes = APP_LOOP_ANSWER_MAX,
        .answer = &answer,
        .pieces = &desk->pieces,
    };
    enum verdict verdict = REPLY;
    if (v->script != NULL && x.reader == NULL) {
        problem_result(c, DB_BROKEN, 0);
    } else {
        bool slow = is_slow(c, desk, v);
        enum app_read how = slow ? APP_READ_SLOW : app_read(&x);
        if (how == APP_READ_SLOW && !slow)
            note_slow(c, desk, v);
        if (how == APP_READ_SLOW || how == APP_READ_LARGE)
            return move(c, v, input);
        if (how == APP_READ_OK)
            verdict = app_answer(c, v, &answer);
        else
            app_answer_failed(c, v, &x, how);
    }
    if (input != NULL)
        app_input_free(input);
    return verdict;
}
