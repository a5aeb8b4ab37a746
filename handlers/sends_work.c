#include "handlers/sends_work.h"

#include "handlers/store.h"

struct sealing {
    struct task task;
    const struct sends_work *work;
    void *request;
};

static void seal(struct task *t, struct worker *w)
{
    struct sealing *s = (struct sealing *)t;
    s->work->make(s->request, w->store->keys);
}

static enum verdict sealed_all(struct task *t, struct call *c)
{
    struct sealing *s = (struct sealing *)t;
    if (c->resp != NULL)
        return s->work->go_on(c, s->request);
    s->work->drop(s->request);
    return REPLY;
}

enum verdict sends_work(struct call *c, const struct sends_work *work, void *request, bool sealed)
{
    if (!sealed) {
        work->make(request, session_of(c)->store->keys);
        return work->go_on(c, request);
    }
    struct sealing *s = store_task(c, sizeof *s);
    if (s == NULL) {
        work->drop(request);
        return FAIL;
    }
    s->work = work;
    s->request = request;
    s->task.work = seal;
    s->task.done = sealed_all;
    return store_run(c, &s->task);
}
