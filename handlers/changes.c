/* The change feed over HTTP: one page of it.
 *
 * Kept true: whoever asks again and again from the `next` of the answer before sees every entry
 * once, in order. `next` goes past entries that are not for this request, so that they are not
 * looked at again; and an answer without entries says that there were none left. A request looks at
 * a bounded number of entries. */
#include "handlers/changes.h"

#include "handlers/ask.h"
#include "handlers/feed.h"
#include "handlers/problem.h"
#include "handlers/store.h"

enum { SCAN_MAX = 4096 };

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

static enum verdict answer(struct call *c, struct page *p)
{
    struct buf *text = p->json.out;
    json_raw(&p->json, "],\n\"next\":");
    json_u64(&p->json, p->next);
    json_raw(&p->json, "}\n");
    if (p->json.failed)
        return FAIL;
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    resp_fixed(c->resp, FEED_HEADERS, sizeof FEED_HEADERS - 1);
    resp_body(c->resp, text->data, text->len);
    return REPLY;
}

static enum verdict page(struct call *c, const struct ask *ask,
                         const struct db_change_bounds *bounds)
{
    struct page p = {.json = json_start(&session_of(c)->text), .ask = ask, .next = ask->since};
    enum db_result result = DB_OK;
    json_raw(&p.json, "{\"changes\":[");
    if (ask->limit > 0)
        result = db_change_list(session_reader(c), ask->since, SCAN_MAX, one_change, &p);
    if (result != DB_OK) {
        problem_result(c, result, 0);
        return REPLY;
    }
    if (ask->limit > 0 && p.entries < ask->limit && p.looked < SCAN_MAX)
        p.next = bounds->last;
    return answer(c, &p);
}

enum verdict changes(struct call *c)
{
    struct ask ask;
    struct db_change_bounds bounds;
    if (!ask_take(c, &ask))
        return REPLY;
    struct str prefix = {ask.prefix, ask.prefix_len};
    if (ask_refused(c, ask_judge(c, access_who(c), prefix)) || !ask_bounds(c, &ask, &bounds))
        return REPLY;
    return page(c, &ask, &bounds);
}
