/* The faults of an app: at load, and while it ran. Outlives its forms; any thread. */
#ifndef HANJI_HANDLERS_APP_NEWS_H
#define HANJI_HANDLERS_APP_NEWS_H

#include "handlers/app.h"
#include "handlers/json.h"

/* faults counts what is told to any; it must live as long. NULL: memory is short. */
struct app_news *app_news_new(const char *app, atomic_uint_fast64_t *faults)
    __attribute__((warn_unused_result));
struct app_news *app_news_hold(struct app_news *n);
void app_news_release(struct app_news *n); /* safe with NULL */

/* Forgets those of the last load: another one was tried. */
void app_news_loaded(struct app_news *n);

/* Remembers and logs a fault of a load. */
void app_news_load(struct app_news *n, const char *file, unsigned line, const char *text);

/* Appends a JSON array of them, oldest first. */
void app_news_json(struct app_news *n, struct json *j);

#endif
