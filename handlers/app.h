/* Apps: folders of SQL and templates, compiled.
 *
 * An app is constant once it is made: an edited file makes another one, which takes the place of
 * the old one when it compiles (handlers/app_set.h). Whoever parks, or hands it to another thread,
 * holds it meanwhile. */
#ifndef HANJI_HANDLERS_APP_H
#define HANJI_HANDLERS_APP_H

#include <stdatomic.h>

#include "db/app.h"
#include "fcgi/loop.h"

struct mustache;

enum {
    APP_ROUTES_MAX = 200,
    APP_EVENTS_MAX = 100,
    APP_SEGMENTS_MAX = 8,
    APP_NEWS_MAX = 20, /* faults that are remembered of an app */
};

enum app_access {
    APP_RIGHTS, /* a credential whose prefixes cover /apps/NAME/ */
    APP_USERS,  /* that, or any person who is logged in */
    APP_PUBLIC, /* anybody */
};

enum app_method { APP_GET, APP_POST, APP_PUT, APP_DELETE, APP_METHODS };

/* A route is a path below the app's, "" for the app itself: from index.get.sql, list.get.sql,
 * item/:id.get.sql, about.html. */
struct app_route {
    const char *pattern;
    unsigned segments;
    struct str segment[APP_SEGMENTS_MAX]; /* of the pattern; ":id" is a parameter */
    const struct db_script *script[APP_METHODS]; /* NULL: there is none */
    const struct mustache *page; /* ROUTE.html, or NULL */
};

/* What is done with messages of an inbox, from EVENT.inbox.sql. */
struct app_event {
    const char *name;
    const struct db_script *script;
};

/* A fault, at load or while it ran. */
struct app_news_item {
    int64_t at_s; /* Unix seconds */
    bool load; /* it kept a form from taking its place; gone when the next one does */
    unsigned times;
    char file[96]; /* below the folder of apps: "scores/add.post.sql" */
    unsigned line; /* 0: the file as a whole */
    char text[240];
};

/* The faults of an app, newest last; shared by its successive forms. Any thread, by app_news_*. */
struct app_news;

/* Apps that are part of the program (the console): their files, by path. */
struct app_file {
    const char *path; /* "index.get.sql" */
    const unsigned char *data;
    size_t bytes;
};

struct app_source {
    const char *name;
    const char *folder; /* where the files are; NULL: they are these */
    const struct app_file *file;
    unsigned count;
    bool console; /* grant.console */
};

struct app {
    atomic_uint refs;
    const char *name;
    const struct app_source *source; /* of an app that is part of the program, else NULL */
    const char *title;
    enum app_access read, write;
    struct db_grant grant;
    uint64_t rows_max;     /* of one result in JSON or HTML; 1,000 */
    uint64_t time_limit_us; /* of a GET; 5 s */
    uint64_t body_max;     /* of a request; 1 MiB, and never more than max_body */
    const char *csp;       /* Content-Security-Policy of its pages */
    unsigned count;
    const struct app_route *route;
    unsigned events;
    const struct app_event *event;
    struct app_news *news;
    int64_t loaded_s;
    void *memory;
};

void app_hold(const struct app *a);
void app_release(const struct app *a); /* safe with NULL; frees it with the last one */

/* A path parameter that a request gave. */
struct app_segment {
    struct str name, value;
};

/* The route of a path below the app's ("", "item/42"): a segment that is written out is preferred
 * to a parameter, which is never empty. count parameters are in given. NULL: there is none.
 * Patterns end in '/' where an index of a folder is meant: item/index.get.sql is "item/". */
const struct app_route *app_match(const struct app *a, struct str path,
                                  struct app_segment given[APP_SEGMENTS_MAX], unsigned *count);

/* The route with that pattern, for "-- form:". */
const struct app_route *app_route(const struct app *a, const char *pattern);

/* The script of an event, NULL: there is none of that name. */
const struct db_script *app_event(const struct app *a, const char *name);

/* Remembers a fault and logs it (the same one again: counted, not logged). Any thread. */
void app_news_add(struct app_news *n, const char *file, unsigned line, const char *text);

#endif
