#include "handlers/app_set.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fcgi/log.h"
#include "handlers/app_embedded.h"
#include "handlers/app_load.h"
#include "handlers/app_watch.h"

struct app_entry {
    char name[DB_APP_NAME_MAX + 1];
    size_t name_len;
    const struct app *app; /* held; NULL: none compiled */
    struct app_news *news; /* held */
    bool broken;
};

/* What there is at one moment: never changes. */
struct app_table {
    atomic_uint refs;
    unsigned generation;
    unsigned count;
    struct app_entry entry[];
};

/* ---- tables ---------------------------------------------------------------------------------- */

static void table_release(const struct app_table *table)
{
    struct app_table *t = (struct app_table *)(uintptr_t)table;
    if (t == NULL || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (unsigned i = 0; i < t->count; i++) {
        app_release(t->entry[i].app);
        app_news_release(t->entry[i].news);
    }
    free(t);
}

static const struct app_table *table_hold(struct apps *a)
{
    pthread_mutex_lock(&a->lock);
    struct app_table *t = a->table;
    if (t != NULL)
        atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&a->lock);
    return t;
}

void apps_publish(struct apps *a)
{
    struct app_table *t = calloc(1, sizeof *t + a->count * sizeof t->entry[0]);
    if (t == NULL) {
        log_line(LOG_ERROR, "memory is short: the apps stay as they were", NULL);
        return;
    }
    atomic_init(&t->refs, 1);
    t->generation = atomic_load(&a->generation) + 1;
    t->count = a->count;
    for (unsigned i = 0; i < a->count; i++) {
        const struct app_slot *slot = &a->slot[i];
        struct app_entry *e = &t->entry[i];
        memcpy(e->name, slot->name, sizeof e->name);
        e->name_len = strlen(e->name);
        e->app = slot->app;
        if (e->app != NULL)
            app_hold(e->app);
        e->news = app_news_hold(slot->news);
        e->broken = slot->broken;
    }
    pthread_mutex_lock(&a->lock);
    struct app_table *old = a->table;
    a->table = t;
    atomic_store(&a->generation, t->generation);
    pthread_mutex_unlock(&a->lock);
    table_release(old);
}

/* ---- slots ----------------------------------------------------------------------------------- */

static void free_slot(struct app_slot *slot)
{
    app_release(slot->app);
    app_news_release(slot->news);
    free(slot->folder);
}

/* A slot of that name, made when there is none. NULL: too many, or memory is short. */
static struct app_slot *slot_of(struct apps *a, const char *name, char *folder)
{
    for (unsigned i = 0; i < a->count; i++)
        if (strcmp(a->slot[i].name, name) == 0) {
            free(folder);
            return &a->slot[i];
        }
    struct app_slot *list = a->count < APPS_MAX
                                ? realloc(a->slot, (a->count + 1) * sizeof *list)
                                : NULL;
    if (list != NULL)
        a->slot = list;
    struct app_news *news = list != NULL ? app_news_new(name, &a->faults) : NULL;
    if (news == NULL) {
        log_line(LOG_WARN, "an app is left out: too many, or memory is short", "app", name, NULL);
        free(folder);
        return NULL;
    }
    struct app_slot *slot = &a->slot[a->count++];
    *slot = (struct app_slot){.folder = folder, .news = news, .dirty_ms = app_watch_now_ms()};
    snprintf(slot->name, sizeof slot->name, "%.*s", DB_APP_NAME_MAX, name);
    return slot;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void take_folder(struct apps *a, const char *name)
{
    char *folder = NULL;
    if (asprintf(&folder, "%s/%s", a->root, name) < 0)
        return;
    if (!is_folder(folder)) {
        free(folder);
        return;
    }
    if (!db_guard_name_ok(name)) {
        log_line(LOG_WARN, "a folder cannot be an app: a name has 1 to 30 small letters and "
                           "digits, a letter first, and is not one that the server has",
                 "folder", folder, NULL);
        free(folder);
        return;
    }
    unsigned before = a->count;
    struct app_slot *slot = slot_of(a, name, folder);
    if (slot == NULL)
        return;
    slot->seen = true;
    if (a->count > before)
        app_watch_tree(a, slot);
}

static bool drop_unseen(struct apps *a)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < a->count; i++) {
        struct app_slot *slot = &a->slot[i];
        if (slot->seen || slot->folder == NULL) {
            a->slot[kept++] = *slot;
            continue;
        }
        log_line(LOG_INFO, "an app is gone; its tables stay", "app", slot->name, NULL);
        free_slot(slot);
    }
    bool any = kept < a->count;
    a->count = kept;
    return any;
}

void apps_scan(struct apps *a)
{
    a->scan = false;
    if (a->root[0] == 0)
        return;
    DIR *dir = opendir(a->root);
    if (dir == NULL) {
        log_line(LOG_WARN, "the folder of apps cannot be read", "folder", a->root, "reason",
                 strerror(errno), NULL);
        return; /* those that are there serve on */
    }
    for (unsigned i = 0; i < a->count; i++)
        a->slot[i].seen = false;
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.')
            take_folder(a, e->d_name);
    closedir(dir);
    if (drop_unseen(a))
        apps_publish(a);
}

/* ---- loading --------------------------------------------------------------------------------- */

struct told {
    unsigned count;
    struct app_news_item item[APP_NEWS_MAX];
};

static void keep_fault(void *arg, const char *file, unsigned line, const char *text)
{
    struct told *t = arg;
    if (t->count == APP_NEWS_MAX)
        return;
    struct app_news_item *i = &t->item[t->count++];
    snprintf(i->file, sizeof i->file, "%s", file);
    snprintf(i->text, sizeof i->text, "%s", text);
    i->line = line;
}

static enum db_result apply(void *arg, struct db_op *op)
{
    return store_apply(arg, op);
}

static void take_result(struct apps *a, struct app_slot *slot, struct app *app,
                        const struct told *told)
{
    app_news_loaded(slot->news);
    for (unsigned i = 0; i < told->count; i++)
        app_news_load(slot->news, told->item[i].file, told->item[i].line, told->item[i].text);
    slot->broken = app == NULL;
    if (app == NULL)
        return;
    app_release(slot->app);
    slot->app = app;
    atomic_fetch_add(&a->loads, 1);
    log_detail(LOG_INFO, "an app is loaded", "%s, %u route%s", slot->name, app->count,
               app->count == 1 ? "" : "s");
}

/* Slots move in memory, and their names with them. */
static void name_source(struct app_slot *slot)
{
    slot->source.name = slot->name;
    slot->source.folder = slot->folder;
}

bool apps_load(struct apps *a, struct app_slot *slot)
{
    struct told told = {0};
    struct app_files files;
    struct db_faults faults = {.tell = keep_fault, .arg = &told};
    struct app *app = NULL;
    name_source(slot);
    const struct app_loading how = {
        .source = slot->embedded != NULL ? slot->embedded : &slot->source,
        .db = &a->store->db,
        .spool = a->store->conf->spool,
        .body_max = a->store->conf->max_body_bytes,
        .news = slot->news,
        .apply = apply,
        .arg = a->store,
    };
    slot->dirty_ms = 0;
    app_files_read(&files, how.source, &faults);
    app_watch_take(a);
    if (slot->dirty_ms != 0) {
        app_files_free(&files);
        return false;
    }
    if (faults.count == 0)
        app = app_load(&how, &files, &faults);
    app_files_free(&files);
    take_result(a, slot, app, &told);
    return true;
}

static void rest(int64_t ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Files that were written just now may be written still. */
static void await_quiet(const struct app_slot *slot)
{
    struct db_faults faults = {.tell = keep_fault, .arg = &(struct told){0}};
    struct app_files files;
    struct timespec t;
    app_files_read(&files, &slot->source, &faults);
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t age = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000 - files.newest_ms;
    app_files_free(&files);
    if (age >= 0 && age < APP_QUIET_MS)
        rest(APP_QUIET_MS - age);
}

/* ---- the set --------------------------------------------------------------------------------- */

static void take_built_in(struct apps *a)
{
    for (size_t i = 0; i < embedded_app_count; i++) {
        const struct app_source *source = &embedded_apps[i];
        struct app_slot *slot = source->console ? slot_of(a, source->name, NULL) : NULL;
        if (slot != NULL)
            slot->embedded = source;
    }
}

struct apps *apps_open(struct store *s)
{
    struct apps *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    a->store = s;
    a->root = s->conf->apps;
    pthread_mutex_init(&a->lock, NULL);
    app_watch_open(a);
    take_built_in(a);
    apps_scan(a);
    for (unsigned i = 0; i < a->count; i++) {
        struct app_slot *slot = &a->slot[i];
        name_source(slot);
        if (slot->folder != NULL)
            await_quiet(slot);
        for (int tries = 0; tries < 10 && !apps_load(a, slot); tries++)
            rest(APP_QUIET_MS);
    }
    apps_publish(a);
    return a;
}

void apps_close(struct apps *a)
{
    if (a == NULL)
        return;
    apps_unwatch(a);
    app_watch_close(a);
    table_release(a->table);
    for (unsigned i = 0; i < a->count; i++)
        free_slot(&a->slot[i]);
    free(a->slot);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

/* ---- looking --------------------------------------------------------------------------------- */

const struct app *app_find(struct session *s, struct str name, bool *broken)
{
    struct apps *a = s->store->apps;
    struct app_view *view = &s->apps;
    *broken = false;
    if (a == NULL)
        return NULL;
    if (!view->looked) {
        unsigned now = atomic_load_explicit(&a->generation, memory_order_acquire);
        if (view->table == NULL || view->table->generation != now) {
            table_release(view->table);
            view->table = table_hold(a);
        }
        view->looked = true;
    }
    for (unsigned i = 0; view->table != NULL && i < view->table->count; i++) {
        const struct app_entry *e = &view->table->entry[i];
        if (e->name_len != name.n || memcmp(e->name, name.p, name.n) != 0)
            continue;
        *broken = e->app == NULL;
        return e->app;
    }
    return NULL;
}

void app_view_round_end(struct app_view *v)
{
    v->looked = false;
}

void app_view_free(struct app_view *v)
{
    table_release(v->table);
    *v = (struct app_view){0};
}

/* ---- telling --------------------------------------------------------------------------------- */

static void json_text(struct json *j, const char *name, const char *text)
{
    json_raw(j, name);
    json_string(j, (struct str){text, strlen(text)});
}

static void json_entry(struct json *j, const struct app_entry *e)
{
    static const char *const access[] = {"rights", "users", "public"};
    char date[RFC3339_LEN];
    json_text(j, "{\"name\":", e->name);
    json_raw(j, e->broken ? ",\"broken\":true" : ",\"broken\":false");
    if (e->app != NULL) {
        json_text(j, ",\"title\":", e->app->title);
        json_text(j, ",\"read\":", access[e->app->read]);
        json_text(j, ",\"write\":", access[e->app->write]);
        json_raw(j, ",\"routes\":");
        json_u64(j, e->app->count);
        put_rfc3339(date, e->app->loaded_s);
        json_raw(j, ",\"loaded\":\"");
        json_bytes(j, (struct str){date, sizeof date});
        json_raw(j, "\"");
    }
    json_raw(j, ",\"faults\":");
    app_news_json(e->news, j);
    json_raw(j, "}");
}

void apps_json(struct apps *a, struct json *j)
{
    const struct app_table *t = a != NULL ? table_hold(a) : NULL;
    json_raw(j, "{\"apps\":[");
    for (unsigned i = 0; t != NULL && i < t->count; i++) {
        json_raw(j, i > 0 ? ",\n" : "\n");
        json_entry(j, &t->entry[i]);
    }
    json_raw(j, "]}\n");
    table_release(t);
}

void apps_get_stats(struct apps *a, struct apps_stats *stats)
{
    *stats = (struct apps_stats){0};
    const struct app_table *t = a != NULL ? table_hold(a) : NULL;
    if (t == NULL)
        return;
    for (unsigned i = 0; i < t->count; i++) {
        stats->apps += t->entry[i].app != NULL;
        stats->broken += t->entry[i].broken;
    }
    stats->loads = atomic_load(&a->loads);
    stats->faults = atomic_load(&a->faults);
    table_release(t);
}
