#include "handlers/app_load.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "db/writer.h"
#include "handlers/app_ini.h"
#include "handlers/app_trial.h"
#include "handlers/mustache.h"

enum { FILE_NAME_MAX = DB_APP_NAME_MAX + APP_PATH_MAX + 2 };

/* A route while its files are gathered. */
struct draft {
    const char *pattern;
    const char *file; /* the first of it, for faults */
    struct db_script *script[APP_METHODS];
    struct mustache *page;
};

struct loading {
    const struct app_loading *how;
    const struct app_files *files;
    struct db_faults *faults;
    struct app_ini ini;
    struct db_grant grant; /* its lists are those of ini */
    struct db_reader *reader;
    struct draft *route;
    unsigned count;
    struct app_event event[APP_EVENTS_MAX]; /* their names are those of the files */
    unsigned events;
    const char *page; /* the template that is being compiled, for its faults */
};

/* ---- faults ---------------------------------------------------------------------------------- */

/* "NAME/path", as people know the file. */
static void name_file(const struct loading *l, const char *path, char out[FILE_NAME_MAX])
{
    snprintf(out, FILE_NAME_MAX, "%s%s%s", l->how->source->name, path[0] != 0 ? "/" : "", path);
}

static void tell(struct loading *l, const char *path, unsigned line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void tell(struct loading *l, const char *path, unsigned line, const char *format, ...)
{
    char file[FILE_NAME_MAX], text[240];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    name_file(l, path, file);
    l->faults->count++;
    l->faults->tell(l->faults->arg, file, line, text);
}

/* ---- templates ------------------------------------------------------------------------------- */

static bool load_partial(void *arg, struct str name, struct str *text)
{
    struct loading *l = arg;
    char path[APP_PATH_MAX + 1];
    int n = snprintf(path, sizeof path, "%.*s.html", (int)name.n, name.p);
    const struct app_text *t = n > 0 && (size_t)n < sizeof path ? app_files_find(l->files, path)
                                                                : NULL;
    if (t == NULL || t->kind != APP_PARTIAL)
        return false;
    *text = (struct str){t->data, t->bytes};
    return true;
}

static void missing_partial(void *arg, const struct mustache_place *at, struct str name)
{
    struct loading *l = arg;
    char path[APP_PATH_MAX + 1];
    snprintf(path, sizeof path, "%.*s.html", (int)at->file.n, at->file.p);
    tell(l, at->file.n > 0 ? path : l->page, at->line, "there is no %.*s.html%s", (int)name.n,
         name.p, name.n > 0 && name.p[0] == '_' ? "" : ": a partial's name begins with '_'");
}

static struct mustache *compile_page(struct loading *l, const struct app_text *t)
{
    struct mustache_error error;
    char path[APP_PATH_MAX + 8];
    const struct mustache_input input = {.text = {t->data, t->bytes},
                                         .arg = l,
                                         .load = load_partial,
                                         .missing = missing_partial};
    l->page = t->path;
    struct mustache *m = mustache_compile(&input, &error);
    if (m == NULL) {
        snprintf(path, sizeof path, "%.250s.html", error.file);
        tell(l, error.file[0] != 0 ? path : t->path, error.line, "column %u: %s", error.column,
             error.text);
    }
    return m;
}

/* ---- routes ---------------------------------------------------------------------------------- */

/* True when both match the same addresses. */
static bool same_shape(const char *a, const char *b)
{
    for (;;) {
        size_t n = strcspn(a, "/"), m = strcspn(b, "/");
        bool parameters = a[0] == ':' && b[0] == ':';
        if (!parameters && (n != m || memcmp(a, b, n) != 0))
            return false;
        a += n;
        b += m;
        if (*a != *b)
            return false;
        if (*a == 0)
            return true;
        a++;
        b++;
    }
}

static struct draft *route_of(struct loading *l, const struct app_text *t)
{
    for (unsigned i = 0; i < l->count; i++) {
        struct draft *d = &l->route[i];
        if (strcmp(d->pattern, t->pattern) == 0)
            return d;
        if (same_shape(d->pattern, t->pattern)) {
            tell(l, t->path, 0, "it has the same addresses as %s: give the parameters one name",
                 d->file);
            return NULL;
        }
    }
    if (l->count == APP_ROUTES_MAX) {
        tell(l, t->path, 0, "an app has at most %d routes", APP_ROUTES_MAX);
        return NULL;
    }
    l->route[l->count] = (struct draft){.pattern = t->pattern, .file = t->path};
    return &l->route[l->count++];
}

static struct db_script *parse(struct loading *l, const struct app_text *t,
                               enum db_script_kind kind)
{
    char file[FILE_NAME_MAX];
    name_file(l, t->path, file);
    return db_script_parse(kind, file, t->data, t->bytes, l->faults);
}

static void take_script(struct loading *l, const struct app_text *t)
{
    struct draft *d = route_of(l, t);
    struct db_script *s = d == NULL ? NULL
                                    : parse(l, t, t->method == APP_GET ? DB_SCRIPT_READ
                                                                       : DB_SCRIPT_WRITE);
    if (s == NULL)
        return;
    d->script[t->method] = s;
    if (!db_script_check(l->reader, &l->grant, s, l->faults) && l->faults->count == 0)
        tell(l, t->path, 0, "it cannot be checked");
}

static void take_event(struct loading *l, const struct app_text *t)
{
    if (l->events == APP_EVENTS_MAX) {
        tell(l, t->path, 0, "an app has at most %d scripts for inboxes", APP_EVENTS_MAX);
        return;
    }
    struct db_script *s = parse(l, t, DB_SCRIPT_WRITE);
    if (s == NULL)
        return;
    l->event[l->events++] = (struct app_event){t->pattern, s};
    if (!db_script_check(l->reader, &l->grant, s, l->faults) && l->faults->count == 0)
        tell(l, t->path, 0, "it cannot be checked");
}

static void take_page(struct loading *l, const struct app_text *t)
{
    struct draft *d = route_of(l, t);
    if (d != NULL)
        d->page = compile_page(l, t);
}

static bool has_page(const struct loading *l, const char *pattern)
{
    for (unsigned i = 0; i < l->count; i++)
        if (strcmp(l->route[i].pattern, pattern) == 0)
            return l->route[i].page != NULL;
    return false;
}

/* "-- form: list" must name a page. */
static void check_forms(struct loading *l)
{
    for (unsigned i = 0; i < l->count; i++)
        for (int m = 0; m < APP_METHODS; m++) {
            const struct db_script *s = l->route[i].script[m];
            const char *form = s != NULL ? s->form : NULL;
            if (form != NULL && !has_page(l, strcmp(form, "index") == 0 ? "" : form))
                tell(l, s->file + strlen(l->how->source->name) + 1, 0,
                     "-- form: %.100s: there is no such page", form);
        }
}

static void drop_routes(struct loading *l)
{
    for (unsigned i = 0; i < l->count; i++) {
        for (int m = 0; m < APP_METHODS; m++)
            db_script_free(l->route[i].script[m]);
        mustache_free(l->route[i].page);
    }
    for (unsigned i = 0; i < l->events; i++)
        db_script_free((struct db_script *)(uintptr_t)l->event[i].script);
    free(l->route);
    l->route = NULL;
    l->count = l->events = 0;
}

/* ---- the app --------------------------------------------------------------------------------- */

/* Literal segments come before parameters, so that the first route that fits is the one. */
static int by_preference(const void *a, const void *b)
{
    const char *p = ((const struct draft *)a)->pattern, *q = ((const struct draft *)b)->pattern;
    for (;;) {
        size_t n = strcspn(p, "/"), m = strcspn(q, "/");
        if ((p[0] == ':') != (q[0] == ':'))
            return p[0] == ':' ? 1 : -1;
        int order = memcmp(p, q, n < m ? n : m);
        if (order != 0 || n != m)
            return order != 0 ? order : n < m ? -1 : 1;
        if (p[n] != q[m])
            return p[n] == 0 ? -1 : 1;
        if (p[n] == 0)
            return 0;
        p += n + 1;
        q += m + 1;
    }
}

static char *put(char **at, const char *text)
{
    char *to = *at;
    size_t n = strlen(text) + 1;
    memcpy(to, text, n);
    *at += n;
    return to;
}

static void fill_route(struct app_route *r, struct draft *d, char **text)
{
    r->pattern = put(text, d->pattern);
    for (const char *p = r->pattern;;) {
        size_t n = strcspn(p, "/");
        r->segment[r->segments++] = (struct str){p, n};
        if (p[n] == 0)
            break;
        p += n + 1;
    }
    for (int m = 0; m < APP_METHODS; m++)
        r->script[m] = d->script[m];
    r->page = d->page;
}

static size_t text_bytes(const struct loading *l)
{
    const struct app_ini *ini = &l->ini;
    size_t n = strlen(l->how->source->name) + strlen(ini->title) + strlen(ini->csp) +
               strlen(ini->documents_read) + strlen(ini->documents_write) + strlen(ini->sends) +
               6;
    for (unsigned i = 0; i < l->count; i++)
        n += strlen(l->route[i].pattern) + 1;
    for (unsigned i = 0; i < l->events; i++)
        n += strlen(l->event[i].name) + 1;
    return n;
}

/* One piece of memory: the app, its routes and events, all text. Takes scripts and pages. */
static struct app *assemble(struct loading *l)
{
    const struct app_ini *ini = &l->ini;
    size_t routes = l->count * sizeof(struct app_route), events = l->events * sizeof *l->event;
    struct app *a = calloc(1, sizeof *a + routes + events + text_bytes(l));
    if (a == NULL)
        return NULL;
    struct app_route *route = (struct app_route *)(void *)(a + 1);
    struct app_event *event = (struct app_event *)(void *)((char *)route + routes);
    char *text = (char *)event + events;
    if (l->count > 0)
        qsort(l->route, l->count, sizeof *l->route, by_preference);
    for (unsigned i = 0; i < l->count; i++)
        fill_route(&route[i], &l->route[i], &text);
    for (unsigned i = 0; i < l->events; i++)
        event[i] = (struct app_event){put(&text, l->event[i].name), l->event[i].script};
    atomic_init(&a->refs, 1);
    a->name = put(&text, l->how->source->name);
    a->title = put(&text, ini->title);
    a->source = l->how->source->folder == NULL ? l->how->source : NULL;
    a->read = ini->read;
    a->write = ini->write;
    a->grant = l->grant;
    a->grant.read = put(&text, ini->documents_read);
    a->grant.write = put(&text, ini->documents_write);
    a->grant.sends = put(&text, ini->sends);
    a->rows_max = ini->rows;
    a->time_limit_us = ini->time_ms * 1000;
    a->body_max = ini->body < l->how->body_max ? ini->body : l->how->body_max;
    a->csp = put(&text, ini->csp);
    a->count = l->count;
    a->route = route;
    a->events = l->events;
    a->event = event;
    a->news = l->how->news != NULL ? app_news_hold(l->how->news) : NULL;
    a->loaded_s = time(NULL);
    a->memory = a;
    l->count = l->events = 0; /* they are the app's now */
    return a;
}

/* Everything compiled in the file that db is. */
static struct app *build(struct loading *l, const struct db_config *db)
{
    struct db_error error = {""};
    struct app *a = NULL;
    l->route = calloc(APP_ROUTES_MAX, sizeof *l->route);
    l->count = l->events = 0;
    if (l->route == NULL || db_reader_open(db, &l->reader, &error) != DB_OK) {
        tell(l, "", 0, "the database cannot be read: %.160s",
             l->route == NULL ? "memory is short" : error.text);
        free(l->route);
        return NULL;
    }
    if (db_reader_begin(l->reader) != DB_OK)
        tell(l, "", 0, "the database cannot be read");
    for (unsigned i = 0; i < l->files->count; i++) {
        const struct app_text *t = &l->files->list[i];
        if (t->kind == APP_SCRIPT)
            take_script(l, t);
        else if (t->kind == APP_EVENT)
            take_event(l, t);
        else if (t->kind == APP_PAGE)
            take_page(l, t);
    }
    check_forms(l);
    db_reader_end(l->reader);
    db_reader_close(l->reader);
    l->reader = NULL;
    if (l->faults->count == 0 && (a = assemble(l)) == NULL)
        tell(l, "", 0, "memory is short");
    drop_routes(l);
    return a;
}

/* ---- tables ---------------------------------------------------------------------------------- */

struct schema {
    struct db_script **file;
    unsigned count;
};

static void read_schema(struct loading *l, struct schema *s)
{
    *s = (struct schema){.file = calloc(l->files->count + 1, sizeof *s->file)};
    if (s->file == NULL)
        tell(l, "schema", 0, "memory is short");
    for (unsigned i = 0; s->file != NULL && i < l->files->count; i++) {
        struct db_script *script = l->files->list[i].kind == APP_SCHEMA
                                       ? parse(l, &l->files->list[i], DB_SCRIPT_SCHEMA)
                                       : NULL;
        if (script != NULL)
            s->file[s->count++] = script;
    }
}

static void free_schema(struct schema *s)
{
    for (unsigned i = 0; i < s->count; i++)
        db_script_free(s->file[i]);
    free(s->file);
}

static struct db_op *schema_op(const struct loading *l, const struct schema *s)
{
    return db_app_schema_op(&l->grant, (const struct db_script *const *)s->file, s->count,
                            NULL, NULL);
}

/* What is wrong with the tables; file is "NAME/schema/001-first.sql", NULL: nothing of that. */
static void tell_schema(struct loading *l, const char *file, const struct db_app_fault *fault,
                        enum db_result result)
{
    size_t own = strlen(l->how->source->name) + 1;
    const char *text = fault->error.text;
    tell(l, file != NULL && strlen(file) > own ? file + own : "schema", fault->line, "%s",
         text[0] != 0 ? text : db_result_text(result));
}

/* In a store of its own: the tables, then everything that uses them. */
static struct app *try(struct loading *l, const struct schema *s)
{
    struct app_trial trial = {0};
    struct db_error error = {""};
    struct app *a = NULL;
    struct db_op *op = schema_op(l, s);
    if (op == NULL || !app_trial_open(&trial, l->how->spool)) {
        tell(l, "", 0, "it cannot be tried: %s", op == NULL ? "memory is short" : strerror(errno));
        db_op_free(op);
        return NULL;
    }
    enum db_result result = db_writer_once(&trial.db, op, &error);
    const char *file;
    const struct db_app_fault *fault = db_app_op_fault(op, &file);
    if (result == DB_OK)
        a = build(l, &trial.db);
    else if (fault->error.text[0] != 0)
        tell_schema(l, file, fault, result);
    else
        tell(l, "", 0, "it cannot be tried: %.160s",
             error.text[0] != 0 ? error.text : db_result_text(result));
    app_trial_close(&trial);
    db_op_free(op);
    return a;
}

static void apply(struct loading *l, const struct schema *s)
{
    struct db_op *op = schema_op(l, s);
    enum db_result result = op != NULL ? l->how->apply(l->how->arg, op) : DB_NO_MEMORY;
    const char *file = NULL;
    const struct db_app_fault *fault = op != NULL ? db_app_op_fault(op, &file)
                                                  : &(struct db_app_fault){0};
    if (result != DB_OK)
        tell_schema(l, file, fault, result);
    db_op_free(op);
}

/* db_app_schema_due puts the file before its sentence: "FILE: …". */
static void tell_due(struct loading *l, struct db_app_fault *fault, enum db_result result)
{
    char *text = fault->error.text, *colon = strstr(text, ".sql: ");
    char file[FILE_NAME_MAX] = "";
    if (colon != NULL && (size_t)(colon - text) + 5 < sizeof file) {
        snprintf(file, sizeof file, "%.*s", (int)(colon - text) + 4, text);
        memmove(text, colon + 6, strlen(colon + 6) + 1);
    }
    tell_schema(l, file[0] != 0 ? file : NULL, fault, result);
}

/* How many files are to be run; those that changed are told, without keeping the app from going
 * on. */
static unsigned files_due(struct loading *l, const struct schema *s)
{
    struct db_app_fault fault = {0};
    struct db_reader *reader;
    unsigned due = 0, before = l->faults->count;
    enum db_result result = db_reader_open(l->how->db, &reader, &fault.error);
    if (result == DB_OK)
        result = db_reader_begin(reader);
    if (result == DB_OK)
        result = db_app_schema_due(reader, &l->grant, (const struct db_script *const *)s->file,
                                   s->count, &due, &fault);
    if (result != DB_OK)
        tell_due(l, &fault, result);
    if (result == DB_CONFLICT) {
        l->faults->count = before;
        due = 0;
    }
    if (reader != NULL)
        db_reader_end(reader);
    db_reader_close(reader);
    return due;
}

static void make_tables(struct loading *l, const struct schema *s)
{
    if (l->faults->count > 0 || files_due(l, s) == 0 || l->faults->count > 0)
        return;
    app_release(try(l, s));
    if (l->faults->count == 0)
        apply(l, s);
}

static void prepare(struct loading *l)
{
    const struct app_source *source = l->how->source;
    const struct app_text *ini = app_files_find(l->files, "app.ini");
    char file[FILE_NAME_MAX];
    app_ini_defaults(&l->ini, source->name);
    name_file(l, "app.ini", file);
    if (ini != NULL)
        app_ini_read(&l->ini, file, (struct str){ini->data, ini->bytes}, l->faults);
    snprintf(l->grant.app, sizeof l->grant.app, "%s", source->name);
    l->grant.console = source->console;
    l->grant.documents = l->ini.documents;
    l->grant.read = l->ini.documents_read;
    l->grant.write = l->ini.documents_write;
    l->grant.sends = l->ini.sends;
}

struct app *app_load(const struct app_loading *l, const struct app_files *files,
                     struct db_faults *faults)
{
    struct loading loading = {.how = l, .files = files, .faults = faults};
    struct schema schema;
    struct app *a = NULL;
    prepare(&loading);
    read_schema(&loading, &schema);
    if (schema.count > 0)
        make_tables(&loading, &schema);
    if (faults->count == 0)
        a = build(&loading, l->db);
    free_schema(&schema);
    return a;
}

bool app_check(const struct app_loading *l, const struct app_files *files,
               struct db_faults *faults)
{
    struct loading loading = {.how = l, .files = files, .faults = faults};
    struct schema schema;
    prepare(&loading);
    unsigned before = faults->count;
    read_schema(&loading, &schema);
    if (faults->count == before)
        app_release(try(&loading, &schema));
    free_schema(&schema);
    return faults->count == 0;
}
