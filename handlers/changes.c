/* The change feed over HTTP: a page of it, at once where there is one.
 *
 * Kept true: whoever asks again and again from the `next` of the answer before sees every entry
 * once, in order. `next` goes past entries that are not for this request, so that they are not
 * looked at again; an answer without entries says that there were none left (or that the feed is
 * very long, and nothing was found in a minute). A round looks at a bounded number of them; who
 * found nothing so far goes on looking as a watcher. */
#include "handlers/changes.h"

#include <string.h>

#include "handlers/ask.h"
#include "handlers/feed.h"
#include "handlers/problem.h"
#include "handlers/store.h"
#include "handlers/watch.h"

enum { LOOKS_MAX = 4096 };

/* A page being written. */
struct page {
    struct json json;
    const struct ask *ask;
    unsigned entries; /* written */
    unsigned looked;  /* at, for it or not */
    uint64_t next;
};

static bool one_change(void *arg, const struct db_change *change)
{
    struct page *p = arg;
    p->looked++;
    p->next = change->seq;
    if (!str_starts((struct str){change->key, change->key_len},
                    (struct str){p->ask->prefix, p->ask->prefix_len}))
        return true;
    json_raw(&p->json, p->entries++ > 0 ? ",\n" : "\n");
    feed_json(&p->json, change);
    return p->entries < p->ask->limit && !p->json.failed;
}

static enum verdict page(struct call *c, struct ask *ask, const struct db_change_bounds *bounds)
{
    struct page p = {.json = feed_begin(c), .ask = ask, .next = ask->since};
    if (ask->limit == 0)
        return feed_answer(c, &p.json, p.next);
    enum db_result result = DB_OK;
    if (ask->since < bounds->last)
        result = db_change_list(session_reader(c), ask->since, LOOKS_MAX, one_change, &p);
    if (result != DB_OK) {
        problem_result(c, result, 0);
        return REPLY;
    }
    bool whole = p.looked < LOOKS_MAX && p.entries < ask->limit;
    if (whole)
        p.next = bounds->last;
    if (p.entries > 0 || (whole && ask->wait_s == 0) || loop_draining(c->loop))
        return feed_answer(c, &p.json, p.next);
    ask->since = p.next;
    return watch_poll(c, ask, whole);
}

static enum verdict answer(struct call *c, struct ask *ask)
{
    struct db_change_bounds bounds;
    struct str prefix = {ask->prefix, ask->prefix_len};
    enum access access = ask_judge(c, access_who(c), prefix, ask->of_app);
    if (ask_refused(c, access) || !ask_bounds(c, ask, &bounds))
        return REPLY;
    return ask->stream ? watch_stream(c, ask) : page(c, ask, &bounds);
}

enum verdict changes(struct call *c)
{
    struct ask ask;
    return ask_take(c, &ask) ? answer(c, &ask) : REPLY;
}

enum verdict changes_of_app(struct call *c, struct str prefix)
{
    struct ask ask;
    if (!ask_take(c, &ask))
        return REPLY;
    if (prefix.n + ask.prefix_len > sizeof ask.prefix) {
        problem(c, 400, "The query parameter prefix is too long.");
        return REPLY;
    }
    memmove(ask.prefix + prefix.n, ask.prefix, ask.prefix_len);
    memcpy(ask.prefix, prefix.p, prefix.n);
    ask.prefix_len += prefix.n;
    ask.of_app = true;
    return answer(c, &ask);
}
