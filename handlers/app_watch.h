/* Between app_set and app_watch: the set as the thread that loads sees it.
 *
 * Slots and watches belong to that thread (to the one that starts the process until it runs); the
 * table is what the others see. */
#ifndef HANJI_HANDLERS_APP_WATCH_H
#define HANJI_HANDLERS_APP_WATCH_H

#include <pthread.h>

#include "handlers/app_set.h"
#include "handlers/store.h"

enum {
    APP_QUIET_MS = 100, /* an app whose files rested for so long is read again */
    APP_WATCHES_MAX = 4000,
};

struct app_slot {
    struct app_source source;
    char name[DB_APP_NAME_MAX + 1];
    char *folder; /* NULL: it is part of the program */
    const struct app_source *embedded; /* then: which */
    const struct app *app; /* NULL: none that compiled yet */
    struct app_news *news;
    bool broken; /* what is there now does not compile */
    bool seen;   /* while the folder of apps is looked through */
    int64_t dirty_ms; /* monotonic; when a file of it changed last, 0: it is as it was read */
};

/* A folder that is watched. */
struct app_watched {
    int wd;
    char app[DB_APP_NAME_MAX + 1]; /* "": the folder of apps itself */
};

struct apps {
    struct store *store;
    const char *root; /* "": there is none */
    pthread_mutex_t lock; /* of table */
    struct app_table *table;
    atomic_uint generation;
    atomic_uint_fast64_t loads, faults;
    struct app_slot *slot;
    unsigned count;
    /* app_watch's */
    int inotify; /* -1: changes are not noticed */
    int wake;    /* eventfd: look at ending and again */
    atomic_bool ending, again;
    bool scan;      /* the folder of apps changed */
    bool said_full; /* that not everything can be watched */
    struct app_watched *watched;
    unsigned watched_count;
    pthread_t thread;
    bool running;
};

/* ---- app_watch.c ---- */

/* Begins to watch the folder of apps. */
void app_watch_open(struct apps *a);
void app_watch_close(struct apps *a);

/* Watches all folders of an app, those too that are new. */
void app_watch_tree(struct apps *a, const struct app_slot *slot);

/* Takes what has happened, without waiting. */
void app_watch_take(struct apps *a);

int64_t app_watch_now_ms(void);

/* ---- app_set.c ---- */

/* Finds new folders, and drops the apps whose folder is gone. New ones are dirty. */
void apps_scan(struct apps *a);

/* Reads an app again. False: it changed meanwhile and is dirty again. */
bool apps_load(struct apps *a, struct app_slot *slot);

/* Makes a table of the slots, which is seen from now on. */
void apps_publish(struct apps *a);

#endif
