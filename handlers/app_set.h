/* The apps of a server: which there are, in their present form, and what went wrong with them.
 *
 * One set a process. It is loaded before the worker is ready; after that one thread (app_watch)
 * puts a new form in the place of an old one. A loop's thread looks at a table that never changes,
 * and takes the next one at the first look of a round: no lock and no counting on that way. */
#ifndef HANJI_HANDLERS_APP_SET_H
#define HANJI_HANDLERS_APP_SET_H

#include "handlers/app.h"
#include "handlers/json.h"

struct session;
struct store;
struct apps;

enum { APPS_MAX = 200 };

/* Loads every app of the folder `apps` and those that are part of the program. An app that does not
 * compile is there, broken. NULL: memory is short. Called when the store is open, before threads
 * of loops run. */
struct apps *apps_open(struct store *s) __attribute__((warn_unused_result));

/* Starts the thread that waits for changes of the folder. False: it cannot; said in the log. */
bool apps_watch(struct apps *a);

/* Any thread: reads all of them again soon, also what no change was noticed of. */
void apps_look_again(struct apps *a);

/* Ends that thread. Before the loops are freed. */
void apps_unwatch(struct apps *a);

/* Safe with NULL. After the sessions were closed. */
void apps_close(struct apps *a);

/* What a session has of the set. */
struct app_view {
    const struct app_table *table;
    bool looked; /* in this round: what was found stays until it ends */
};

/* The app of that name. It lives until the round ends; who needs it longer holds it. NULL: there is
 * none, or (*broken) none that ever compiled. An app of the program (grant.console) is found like
 * any other: where it is mounted is the caller's business. */
const struct app *app_find(struct session *s, struct str name, bool *broken);

/* Loop's thread: the round ends. And: the session does. */
void app_view_round_end(struct app_view *v);
void app_view_free(struct app_view *v);

/* Any thread: {"apps":[{"name","title","read","write","routes","loaded","broken","faults":
 * [{"at","file","line","text","times"}]}]}, for console('apps'). */
void apps_json(struct apps *a, struct json *j);

struct apps_stats {
    unsigned apps;    /* those that serve */
    unsigned broken;  /* whose folder does not compile now */
    uint64_t loads;   /* new forms that took a place, since start */
    uint64_t faults;  /* told to app_news_add, since start */
};

/* Any thread. */
void apps_get_stats(struct apps *a, struct apps_stats *stats);

#endif
