#include "handlers/app.h"

#include <stdlib.h>
#include <string.h>

#include "handlers/app_news.h"
#include "handlers/mustache.h"

/* The count is the one thing of an app that changes; what is const to everybody else. */
static atomic_uint *refs_of(const struct app *a)
{
    return (atomic_uint *)(uintptr_t)&a->refs;
}

void app_hold(const struct app *a)
{
    atomic_fetch_add_explicit(refs_of(a), 1, memory_order_relaxed);
}

void app_release(const struct app *a)
{
    if (a == NULL || atomic_fetch_sub_explicit(refs_of(a), 1, memory_order_acq_rel) != 1)
        return;
    for (unsigned i = 0; i < a->count; i++) {
        for (int m = 0; m < APP_METHODS; m++)
            db_script_free((struct db_script *)(uintptr_t)a->route[i].script[m]);
        mustache_free((struct mustache *)(uintptr_t)a->route[i].page);
    }
    for (unsigned i = 0; i < a->events; i++)
        db_script_free((struct db_script *)(uintptr_t)a->event[i].script);
    app_news_release(a->news);
    free(a->memory); /* the app itself, too */
}

const struct db_script *app_event(const struct app *a, const char *name)
{
    for (unsigned i = 0; i < a->events; i++)
        if (strcmp(a->event[i].name, name) == 0)
            return a->event[i].script;
    return NULL;
}

static bool is_parameter(struct str segment)
{
    return segment.n > 0 && segment.p[0] == ':';
}

/* Cuts a path into segments; 0: there are too many. */
static unsigned cut(struct str path, struct str segment[APP_SEGMENTS_MAX])
{
    unsigned count = 0;
    for (size_t at = 0;;) {
        const char *slash = path.n > at ? memchr(path.p + at, '/', path.n - at) : NULL;
        size_t end = slash != NULL ? (size_t)(slash - path.p) : path.n;
        if (count == APP_SEGMENTS_MAX)
            return 0;
        segment[count++] = (struct str){path.p + at, end - at};
        if (slash == NULL)
            return count;
        at = end + 1;
    }
}

static bool fits(const struct app_route *r, const struct str *segment)
{
    for (unsigned i = 0; i < r->segments; i++) {
        bool ok = is_parameter(r->segment[i]) ? segment[i].n > 0
                                              : str_eq(r->segment[i], segment[i]);
        if (!ok)
            return false;
    }
    return true;
}

/* Routes are in an order (app_load) in which the first that fits is the one. */
const struct app_route *app_match(const struct app *a, struct str path,
                                  struct app_segment given[APP_SEGMENTS_MAX], unsigned *count)
{
    struct str segment[APP_SEGMENTS_MAX];
    unsigned segments = cut(path, segment);
    *count = 0;
    for (unsigned i = 0; i < a->count; i++) {
        const struct app_route *r = &a->route[i];
        if (r->segments != segments || !fits(r, segment))
            continue;
        for (unsigned k = 0; k < segments; k++)
            if (is_parameter(r->segment[k]))
                given[(*count)++] = (struct app_segment){
                    {r->segment[k].p + 1, r->segment[k].n - 1}, segment[k]};
        return r;
    }
    return NULL;
}

const struct app_route *app_route(const struct app *a, const char *pattern)
{
    for (unsigned i = 0; i < a->count; i++)
        if (strcmp(a->route[i].pattern, pattern) == 0)
            return &a->route[i];
    return NULL;
}
