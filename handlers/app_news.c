#include "handlers/app_news.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fcgi/log.h"
#include "fcgi/resp.h"

struct app_news {
    atomic_uint refs;
    atomic_uint_fast64_t *faults;
    char app[DB_APP_NAME_MAX + 1];
    pthread_mutex_t lock;
    unsigned count;
    struct app_news_item item[APP_NEWS_MAX]; /* newest last */
};

struct app_news *app_news_new(const char *app, atomic_uint_fast64_t *faults)
{
    struct app_news *n = calloc(1, sizeof *n);
    if (n == NULL)
        return NULL;
    atomic_init(&n->refs, 1);
    n->faults = faults;
    snprintf(n->app, sizeof n->app, "%s", app);
    pthread_mutex_init(&n->lock, NULL);
    return n;
}

struct app_news *app_news_hold(struct app_news *n)
{
    atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
    return n;
}

void app_news_release(struct app_news *n)
{
    if (n == NULL || atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&n->lock);
    free(n);
}

void app_news_loaded(struct app_news *n)
{
    unsigned kept = 0;
    pthread_mutex_lock(&n->lock);
    for (unsigned i = 0; i < n->count; i++)
        if (!n->item[i].load)
            n->item[kept++] = n->item[i];
    n->count = kept;
    pthread_mutex_unlock(&n->lock);
}

/* Takes the item out of the list and puts it at the end; i may be the count: a new one. */
static struct app_news_item *to_end(struct app_news *n, unsigned i)
{
    struct app_news_item item = {0};
    if (i < n->count)
        item = n->item[i];
    else if (n->count == APP_NEWS_MAX)
        i = 0; /* the oldest one goes */
    else
        n->count++;
    memmove(&n->item[i], &n->item[i + 1], (n->count - 1 - i) * sizeof n->item[0]);
    n->item[n->count - 1] = item;
    return &n->item[n->count - 1];
}

/* True when it is new. */
static bool remember(struct app_news *n, const struct app_news_item *fault)
{
    unsigned i = 0;
    pthread_mutex_lock(&n->lock);
    while (i < n->count && (n->item[i].line != fault->line || n->item[i].load != fault->load ||
                            strcmp(n->item[i].file, fault->file) != 0 ||
                            strcmp(n->item[i].text, fault->text) != 0))
        i++;
    bool known = i < n->count;
    struct app_news_item *to = to_end(n, i);
    unsigned times = to->times;
    *to = *fault;
    to->times = known && times < UINT32_MAX ? times + 1 : known ? times : 1;
    pthread_mutex_unlock(&n->lock);
    return !known;
}

static void add(struct app_news *n, const char *file, unsigned line, const char *text, bool load)
{
    struct app_news_item fault = {.at_s = time(NULL), .load = load, .line = line};
    char where[sizeof fault.file + 16];
    snprintf(fault.file, sizeof fault.file, "%s", file);
    snprintf(fault.text, sizeof fault.text, "%s", text);
    atomic_fetch_add_explicit(n->faults, 1, memory_order_relaxed);
    if (!remember(n, &fault))
        return;
    snprintf(where, sizeof where, line > 0 ? "%s:%u" : "%s", fault.file, line);
    log_line(LOG_WARN, load ? "an app has a fault" : "an app failed", "app", n->app, "at",
             where, "reason", fault.text, NULL);
}

void app_news_add(struct app_news *n, const char *file, unsigned line, const char *text)
{
    add(n, file, line, text, false);
}

void app_news_load(struct app_news *n, const char *file, unsigned line, const char *text)
{
    add(n, file, line, text, true);
}

void app_news_json(struct app_news *n, struct json *j)
{
    char date[RFC3339_LEN];
    pthread_mutex_lock(&n->lock);
    json_raw(j, "[");
    for (unsigned i = 0; i < n->count; i++) {
        const struct app_news_item *f = &n->item[i];
        put_rfc3339(date, f->at_s);
        json_raw(j, i > 0 ? ",{\"at\":\"" : "{\"at\":\"");
        json_bytes(j, (struct str){date, sizeof date});
        json_raw(j, f->load ? "\",\"load\":true,\"file\":" : "\",\"load\":false,\"file\":");
        json_string(j, (struct str){f->file, strlen(f->file)});
        json_raw(j, ",\"line\":");
        json_u64(j, f->line);
        json_raw(j, ",\"text\":");
        json_string(j, (struct str){f->text, strlen(f->text)});
        json_raw(j, ",\"times\":");
        json_u64(j, f->times);
        json_raw(j, "}");
    }
    json_raw(j, "]");
    pthread_mutex_unlock(&n->lock);
}
