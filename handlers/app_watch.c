#include "handlers/app_watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fcgi/log.h"
#include "handlers/app_files.h"

enum { STACK_BYTES = 512 << 10, EVENTS_BYTES = 4096, PATH_BYTES = 1024 };

static const uint32_t wanted = IN_CREATE | IN_DELETE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB |
                               IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF |
                               IN_ONLYDIR;

int64_t app_watch_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- which folders --------------------------------------------------------------------------- */

static void say_unseen(struct apps *a, const char *folder)
{
    if (a->said_full)
        return;
    a->said_full = true;
    log_line(LOG_WARN, "changes of apps are not all noticed; SIGHUP reads them again", "folder",
             folder, "reason", strerror(errno), NULL);
}

static void watch_folder(struct apps *a, const char *folder, const char *app)
{
    if (a->inotify < 0)
        return;
    errno = ENOSPC;
    int wd = a->watched_count < APP_WATCHES_MAX ? inotify_add_watch(a->inotify, folder, wanted)
                                                : -1;
    if (wd < 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            say_unseen(a, folder);
        return;
    }
    for (unsigned i = 0; i < a->watched_count; i++)
        if (a->watched[i].wd == wd)
            return;
    if ((a->watched_count & (a->watched_count - 1)) == 0) {
        size_t room = a->watched_count > 0 ? 2 * (size_t)a->watched_count : 1;
        struct app_watched *more = realloc(a->watched, room * sizeof *more);
        if (more == NULL)
            return;
        a->watched = more;
    }
    struct app_watched *w = &a->watched[a->watched_count++];
    w->wd = wd;
    snprintf(w->app, sizeof w->app, "%s", app);
}

static void watch_below(struct apps *a, const char *folder, const char *app, int depth)
{
    char path[PATH_BYTES];
    struct stat st;
    watch_folder(a, folder, app);
    DIR *dir = depth < APP_DEPTH_MAX ? opendir(folder) : NULL;
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        bool maybe = e->d_type == DT_DIR || e->d_type == DT_LNK || e->d_type == DT_UNKNOWN;
        if (e->d_name[0] == '.' || !maybe || (depth == 0 && strcmp(e->d_name, "static") == 0))
            continue;
        int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (n > 0 && (size_t)n < sizeof path && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            watch_below(a, path, app, depth + 1);
    }
    if (dir != NULL)
        closedir(dir);
}

void app_watch_tree(struct apps *a, const struct app_slot *slot)
{
    if (slot->folder != NULL && a->inotify >= 0)
        watch_below(a, slot->folder, slot->name, 0);
}

/* ---- what happened --------------------------------------------------------------------------- */

static void touch(struct apps *a, const char *app)
{
    for (unsigned i = 0; i < a->count; i++)
        if (strcmp(a->slot[i].name, app) == 0)
            a->slot[i].dirty_ms = app_watch_now_ms();
}

static void touch_all(struct apps *a)
{
    a->scan = true;
    for (unsigned i = 0; i < a->count; i++)
        if (a->slot[i].folder != NULL)
            a->slot[i].dirty_ms = app_watch_now_ms();
}

static void take_event(struct apps *a, const struct inotify_event *e)
{
    unsigned i = 0;
    if (e->mask & IN_Q_OVERFLOW) {
        touch_all(a);
        return;
    }
    while (i < a->watched_count && a->watched[i].wd != e->wd)
        i++;
    if (i == a->watched_count)
        return;
    const struct app_watched w = a->watched[i];
    if (e->mask & IN_IGNORED) /* the folder is gone */
        a->watched[i] = a->watched[--a->watched_count];
    if (e->len > 0 && e->name[0] == '.')
        return;
    if (w.app[0] != 0)
        touch(a, w.app);
    else
        a->scan = true;
    if (w.app[0] == 0 && (e->mask & (IN_DELETE_SELF | IN_MOVE_SELF)))
        log_line(LOG_WARN, "the folder of apps is gone or has another name; SIGHUP looks for it",
                 "folder", a->root, NULL);
}

void app_watch_take(struct apps *a)
{
    _Alignas(struct inotify_event) char events[EVENTS_BYTES];
    for (ssize_t n; a->inotify >= 0 && (n = read(a->inotify, events, sizeof events)) > 0;)
        for (char *p = events; p < events + n;) {
            const struct inotify_event *e = (const struct inotify_event *)(void *)p;
            take_event(a, e);
            p += sizeof *e + e->len;
        }
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Milliseconds until something is to be read again; -1: nothing is. */
static int wait_ms(const struct apps *a)
{
    int64_t now = app_watch_now_ms(), least = -1;
    for (unsigned i = 0; i < a->count; i++) {
        int64_t left = a->slot[i].dirty_ms + APP_QUIET_MS - now;
        if (a->slot[i].dirty_ms == 0)
            continue;
        left = left < 0 ? 0 : left;
        if (least < 0 || left < least)
            least = left;
    }
    return (int)least;
}

static void load_quiet(struct apps *a)
{
    for (unsigned i = 0; i < a->count && !atomic_load(&a->ending); i++) {
        struct app_slot *slot = &a->slot[i];
        if (slot->dirty_ms == 0 || app_watch_now_ms() - slot->dirty_ms < APP_QUIET_MS)
            continue;
        app_watch_tree(a, slot);
        if (apps_load(a, slot))
            apps_publish(a);
    }
}

static void look_again(struct apps *a)
{
    uint64_t count;
    if (read(a->wake, &count, sizeof count) != sizeof count || !atomic_exchange(&a->again, false))
        return;
    log_line(LOG_INFO, "apps are read again", NULL);
    watch_folder(a, a->root, "");
    touch_all(a);
}

static void *watch(void *arg)
{
    struct apps *a = arg;
    while (!atomic_load(&a->ending)) {
        struct pollfd fds[2] = {{.fd = a->wake, .events = POLLIN},
                                {.fd = a->inotify, .events = POLLIN}};
        poll(fds, 2, wait_ms(a));
        if (fds[0].revents != 0)
            look_again(a);
        app_watch_take(a);
        if (a->scan)
            apps_scan(a);
        load_quiet(a);
    }
    return NULL;
}

void app_watch_open(struct apps *a)
{
    a->inotify = -1;
    a->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (a->root[0] == 0)
        return;
    a->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (a->inotify < 0)
        say_unseen(a, a->root);
    watch_folder(a, a->root, "");
}

void app_watch_close(struct apps *a)
{
    if (a->inotify >= 0)
        close(a->inotify);
    if (a->wake >= 0)
        close(a->wake);
    free(a->watched);
}

bool apps_watch(struct apps *a)
{
    pthread_attr_t attr;
    if (a == NULL || a->root[0] == 0 || a->wake < 0)
        return a != NULL && a->root[0] == 0;
    if (pthread_attr_init(&attr) != 0)
        return false;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    a->running = pthread_create(&a->thread, &attr, watch, a) == 0;
    pthread_attr_destroy(&attr);
    if (!a->running)
        log_line(LOG_ERROR, "a thread cannot be started: changes of apps are not noticed", NULL);
    return a->running;
}

static void wake(struct apps *a)
{
    uint64_t one = 1;
    if (write(a->wake, &one, sizeof one) != sizeof one)
        log_line(LOG_WARN, "the thread of the apps cannot be woken", NULL);
}

void apps_look_again(struct apps *a)
{
    if (a == NULL || !a->running)
        return;
    atomic_store(&a->again, true);
    wake(a);
}

void apps_unwatch(struct apps *a)
{
    if (a == NULL || !a->running)
        return;
    atomic_store(&a->ending, true);
    wake(a);
    pthread_join(a->thread, NULL);
    a->running = false;
}
