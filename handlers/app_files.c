#include "handlers/app_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "db/inbox.h"
#include "fcgi/path.h"
#include "fcgi/spool.h"

/* ---- names ----------------------------------------------------------------------------------- */

static bool ends_with(struct str s, const char *end)
{
    size_t n = strlen(end);
    return s.n > n && memcmp(s.p + s.n - n, end, n) == 0;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
}

/* ":id" */
static bool parameter_ok(struct str s)
{
    if (s.n < 2 || s.n > DB_NAME_MAX || !is_letter(s.p[1]))
        return false;
    for (size_t i = 2; i < s.n; i++)
        if (!is_word(s.p[i]))
            return false;
    return true;
}

static bool literal_ok(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_word(s.p[i]) && strchr(".-~", s.p[i]) == NULL && (unsigned char)s.p[i] < 0x80)
            return false;
    return s.n > 0 && s.p[0] != '-' && utf8_ok(s.p, s.n);
}

static struct str next_segment(const char **path)
{
    size_t n = strcspn(*path, "/");
    struct str s = {*path, n};
    *path += n + ((*path)[n] == '/');
    return s;
}

/* "schema/NNN-name.sql" */
static bool schema_ok(struct str name)
{
    size_t i = 0;
    while (i < name.n && name.p[i] >= '0' && name.p[i] <= '9')
        i++;
    if (i != 3 || name.n < 9 || name.p[3] != '-')
        return false;
    for (i = 4; i < name.n - 4; i++)
        if (!is_word(name.p[i]) && name.p[i] != '-')
            return false;
    return true;
}

static const char *schema_kind(const char *rest, struct app_text *text)
{
    struct str name = {rest, strlen(rest)};
    if (!ends_with(name, ".sql"))
        return NULL;
    if (!schema_ok(name))
        return "a file of schema/ is called NNN-name.sql, such as 001-first.sql";
    text->kind = APP_SCHEMA;
    return NULL;
}

static bool same_parameter(const char *pattern, struct str s)
{
    for (const char *p = pattern; *p != 0;)
        if (str_eq(next_segment(&p), s))
            return true;
    return false;
}

/* The pattern of a route whose file is path without its ending, n bytes. */
static const char *route_pattern(struct str path, char *pattern)
{
    char copy[APP_PATH_MAX + 1];
    const char *p = copy;
    unsigned count = 0;
    size_t at = 0;
    memcpy(copy, path.p, path.n);
    copy[path.n] = 0;
    while (*p != 0) {
        struct str s = next_segment(&p);
        bool last = *p == 0, parameter = s.n > 0 && s.p[0] == ':';
        pattern[at] = 0;
        if (++count > APP_SEGMENTS_MAX)
            return "a route has at most 8 segments";
        if (parameter && !parameter_ok(s))
            return "a parameter of a route is called :name, of letters, digits and '_', a letter "
                   "first";
        if (parameter && same_parameter(pattern, s))
            return "two parameters of the route have the same name";
        if (!parameter && !literal_ok(s))
            return "a route has letters, digits, '-', '_', '.' and '~'";
        if (last && str_eq(s, STR_LIT("index")))
            return NULL;
        memcpy(pattern + at, s.p, s.n);
        at += s.n;
        if (!last)
            pattern[at++] = '/';
    }
    pattern[at] = 0;
    return NULL;
}

bool app_event_ok(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!is_word(name.p[i]) && name.p[i] != '-')
            return false;
    return name.n >= 1 && name.n <= DB_INBOX_EVENT_MAX && name.p[0] != '-' && name.p[0] != '_';
}

static const char *event_kind(struct str path, struct app_text *text)
{
    struct str name = {path.p, path.n - (sizeof ".inbox.sql" - 1)};
    if (!app_event_ok(name))
        return "a script for an inbox is called EVENT.inbox.sql, of letters, digits, '-' and '_', "
               "beside app.ini";
    text->kind = APP_EVENT;
    memcpy(text->pattern, name.p, name.n);
    text->pattern[name.n] = 0;
    return NULL;
}

static const char *script_kind(struct str path, struct app_text *text)
{
    static const char *const ends[APP_METHODS] = {".get.sql", ".post.sql", ".put.sql",
                                                  ".delete.sql"};
    for (int i = 0; i < APP_METHODS; i++)
        if (ends_with(path, ends[i])) {
            text->kind = APP_SCRIPT;
            text->method = (enum app_method)i;
            return route_pattern((struct str){path.p, path.n - strlen(ends[i])}, text->pattern);
        }
    return "a script is called ROUTE.get.sql, ROUTE.post.sql, ROUTE.put.sql, ROUTE.delete.sql, or "
           "EVENT.inbox.sql";
}

/* Files that people expect to be sent. */
static bool looks_served(struct str path)
{
    static const char *const ends[] = {".css", ".js", ".png", ".jpg", ".svg", ".ico", ".woff2"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(path, ends[i]))
            return true;
    return false;
}

const char *app_file_kind(const char *path, struct app_text *text)
{
    struct str whole = {path, strlen(path)};
    bool hidden = false, partial = false;
    *text = (struct app_text){.kind = APP_NOTHING};
    if (whole.n > APP_PATH_MAX)
        return "the name is longer than 255 bytes";
    memcpy(text->path, path, whole.n + 1);
    for (const char *p = path; *p != 0;) {
        struct str s = next_segment(&p);
        hidden |= s.n > 0 && s.p[0] == '.';
        partial |= s.n > 0 && s.p[0] == '_';
    }
    if (hidden || str_starts(whole, STR_LIT("static/")))
        return NULL;
    if (strcmp(path, "app.ini") == 0) {
        text->kind = APP_INI;
        return NULL;
    }
    if (partial) {
        text->kind = ends_with(whole, ".html") ? APP_PARTIAL : APP_NOTHING;
        return NULL;
    }
    if (str_starts(whole, STR_LIT("schema/")))
        return schema_kind(path + 7, text);
    if (ends_with(whole, ".inbox.sql"))
        return event_kind(whole, text);
    if (ends_with(whole, ".sql"))
        return script_kind(whole, text);
    if (ends_with(whole, ".html")) {
        text->kind = APP_PAGE;
        return route_pattern((struct str){path, whole.n - 5}, text->pattern);
    }
    return looks_served(whole) ? "files that are sent as they are stand in static/" : NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct walk {
    struct app_files *files;
    const char *app;
    int root;
    struct db_faults *faults;
    unsigned entries;
    bool full; /* something did not fit, which was told */
};

static void tell(struct walk *w, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void tell(struct walk *w, const char *path, const char *format, ...)
{
    char file[DB_APP_NAME_MAX + APP_PATH_MAX + 3], text[240];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(file, sizeof file, "%s%s%.*s", w->app, path[0] != 0 ? "/" : "", APP_PATH_MAX, path);
    w->faults->count++;
    w->faults->tell(w->faults->arg, file, 0, text);
}

int app_open_below(int dir, const char *path, int flags)
{
    flags |= O_CLOEXEC | ((flags & O_PATH) == 0 ? O_NONBLOCK : 0); /* no pipe is waited for */
    struct open_how how = {.flags = (unsigned)flags,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    long fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
        return (int)fd;
    /* A kernel before 5.6, or a sandbox that does not know it: no link is followed. */
    fd = openat(dir, path, flags | O_NOFOLLOW);
    return (int)fd;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct app_text *)a)->path, ((const struct app_text *)b)->path);
}

/* Takes data. */
static void add(struct walk *w, const struct app_text *text, const char *data, size_t bytes)
{
    struct app_files *f = w->files;
    if (f->count == APP_FILES_MAX || f->bytes + bytes > APP_ALL_BYTES_MAX) {
        if (!w->full)
            tell(w, text->path, "an app has at most %d files and %d MiB of them", APP_FILES_MAX,
                 APP_ALL_BYTES_MAX >> 20);
        w->full = true;
    } else if ((f->count & (f->count - 1)) == 0) {
        struct app_text *list = realloc(f->list, (f->count ? 2 * f->count : 1) * sizeof *list);
        w->full |= list == NULL;
        if (list == NULL)
            tell(w, text->path, "memory is short");
        else
            f->list = list;
    }
    if (w->full) {
        if (f->owned)
            free((void *)(uintptr_t)data);
        return;
    }
    struct app_text *to = &f->list[f->count++];
    f->bytes += bytes;
    *to = *text;
    to->data = data;
    to->bytes = bytes;
}

static void read_file(struct walk *w, const struct app_text *text, int fd, const struct stat *st)
{
    size_t n = (size_t)st->st_size;
    int64_t changed_ms = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
    if (changed_ms > w->files->newest_ms)
        w->files->newest_ms = changed_ms;
    if (st->st_size > APP_FILE_BYTES_MAX) {
        tell(w, text->path, "it is larger than %d KiB", APP_FILE_BYTES_MAX >> 10);
        return;
    }
    char *data = malloc(n + 1);
    if (data == NULL || !spool_read(fd, data, n, 0)) {
        tell(w, text->path, "it cannot be read: %s",
             data == NULL ? "memory is short" : errno != 0 ? strerror(errno) : "it became shorter");
        free(data);
        return;
    }
    data[n] = 0;
    add(w, text, data, n);
}

static void walk_folder(struct walk *w, const char *path, int fd, int depth);

static void take_entry(struct walk *w, const char *path, int depth)
{
    struct app_text text;
    struct stat st;
    const char *wrong = app_file_kind(path, &text);
    int fd = app_open_below(w->root, path, O_RDONLY);
    if (fd < 0 && errno == ENOENT && text.kind == APP_NOTHING && wrong == NULL)
        return; /* an editor's file that has gone again, a link to nowhere */
    if (fd < 0) {
        bool out = errno == EXDEV || errno == ELOOP;
        tell(w, path, out ? "a link that leaves the app's folder is not followed"
                          : "it cannot be opened: %s",
             strerror(errno));
        return;
    }
    if (fstat(fd, &st) != 0 || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))) {
        if (text.kind != APP_NOTHING || wrong != NULL)
            tell(w, path, "it is no file");
    } else if (S_ISDIR(st.st_mode)) {
        walk_folder(w, path, fd, depth + 1);
        return; /* which closed it */
    } else if (wrong != NULL) {
        tell(w, path, "%s", wrong);
    } else if (text.kind != APP_NOTHING) {
        read_file(w, &text, fd, &st);
    }
    close(fd);
}

/* Takes fd. path is "" for the app's own folder. */
static void walk_folder(struct walk *w, const char *path, int fd, int depth)
{
    char below[2 * APP_PATH_MAX + 2];
    DIR *dir = depth <= APP_DEPTH_MAX ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        tell(w, path, depth > APP_DEPTH_MAX ? "folders within each other: at most 8"
                                            : "the folder cannot be read");
        close(fd);
        return;
    }
    for (struct dirent *e; (e = readdir(dir)) != NULL && !w->full;) {
        if (e->d_name[0] == '.' || (depth == 0 && strcmp(e->d_name, "static") == 0))
            continue;
        int n = snprintf(below, sizeof below, "%s%s%s", path, path[0] != 0 ? "/" : "", e->d_name);
        if (++w->entries > 2 * APP_FILES_MAX) {
            tell(w, path, "an app's folder has at most %d entries outside of static/",
                 2 * APP_FILES_MAX);
            w->full = true;
        } else if (n > APP_PATH_MAX) {
            tell(w, path, "a name in it is longer than %d bytes", APP_PATH_MAX);
        } else {
            take_entry(w, below, depth);
        }
    }
    closedir(dir);
}

static void read_folder(struct walk *w, const char *folder)
{
    w->root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int own = w->root >= 0 ? fcntl(w->root, F_DUPFD_CLOEXEC, 0) : -1;
    if (own < 0)
        tell(w, "", "the folder cannot be opened: %s", strerror(errno));
    else
        walk_folder(w, "", own, 0);
    if (w->root >= 0)
        close(w->root);
}

void app_files_read(struct app_files *files, const struct app_source *source,
                    struct db_faults *faults)
{
    struct walk w = {.files = files, .app = source->name, .root = -1, .faults = faults};
    *files = (struct app_files){.owned = source->folder != NULL};
    if (source->folder != NULL)
        read_folder(&w, source->folder);
    for (unsigned i = 0; source->folder == NULL && i < source->count; i++) {
        struct app_text text;
        const char *wrong = app_file_kind(source->file[i].path, &text);
        if (wrong != NULL)
            tell(&w, source->file[i].path, "%s", wrong);
        else if (text.kind != APP_NOTHING)
            add(&w, &text, (const char *)source->file[i].data, source->file[i].bytes);
    }
    if (files->count > 0)
        qsort(files->list, files->count, sizeof *files->list, by_path);
}

void app_files_free(struct app_files *files)
{
    for (unsigned i = 0; files->owned && i < files->count; i++)
        free((void *)(uintptr_t)files->list[i].data);
    free(files->list);
    *files = (struct app_files){0};
}

const struct app_text *app_files_find(const struct app_files *files, const char *path)
{
    for (unsigned i = 0; i < files->count; i++)
        if (strcmp(files->list[i].path, path) == 0)
            return &files->list[i];
    return NULL;
}
