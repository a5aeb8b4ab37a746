/* hanji app new: writes a small app that works, or a copy of one that comes with hanji. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fcgi/spool.h"
#include "handlers/app_embedded.h"
#include "handlers/app_files.h"
#include "handlers/ctl_app.h"

enum { COPY_BYTES_MAX = 4 << 20 };

static int failed(const char *path)
{
    fprintf(stderr, "hanji app: %s: %s\n", path, strerror(errno));
    return CTL_FAILED;
}

/* Makes the folders above a file. */
static bool make_folders(char *path)
{
    for (char *p = path + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = 0;
        bool ok = mkdir(path, 0755) == 0 || errno == EEXIST;
        *p = '/';
        if (!ok)
            return false;
    }
    return true;
}

static bool write_new(const char *path, const char *data, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return false;
    bool ok = spool_write(fd, data, n);
    return close(fd) == 0 && ok;
}

/* Writes data with `to` in the place of each `from`. */
static bool write_replaced(const char *path, struct str data, const char *from, const char *to)
{
    struct buf out = {0};
    bool ok = true;
    for (size_t at = 0; at < data.n && ok;) {
        const char *p = data.p + at, *end = memmem(p, data.n - at, from, strlen(from));
        size_t n = end != NULL ? (size_t)(end - p) : data.n - at;
        ok = buf_add(&out, p, n, COPY_BYTES_MAX) &&
             (end == NULL || buf_add(&out, to, strlen(to), COPY_BYTES_MAX));
        at += n + (end != NULL ? strlen(from) : 0);
    }
    ok = ok && write_new(path, out.len > 0 ? (const char *)out.data : "", out.len);
    buf_free(&out);
    return ok;
}

static int write_template(const char *folder, const char *name)
{
    char path[PATH_MAX];
    const struct app_source *s = NULL;
    for (size_t i = 0; i < embedded_app_count; i++)
        if (strcmp(embedded_apps[i].name, "new") == 0)
            s = &embedded_apps[i];
    for (unsigned i = 0; s != NULL && i < s->count; i++) {
        snprintf(path, sizeof path, "%.2047s/%.1023s", folder, s->file[i].path);
        const struct str data = {(const char *)s->file[i].data, s->file[i].bytes};
        if (!make_folders(path) || !write_replaced(path, data, "@NAME@", name))
            return failed(path);
    }
    return CTL_OK;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* How a copy differs: its tables, and its documents, have another name. */
struct renaming {
    char from[2][DB_APP_NAME_MAX + 8];
    char to[2][DB_APP_NAME_MAX + 8];
    bool needed;
};

static struct renaming rename_app(const char *from, const char *to)
{
    struct renaming r = {.needed = strcmp(from, to) != 0};
    snprintf(r.from[0], sizeof r.from[0], "%.30s_", from);
    snprintf(r.to[0], sizeof r.to[0], "%.30s_", to);
    snprintf(r.from[1], sizeof r.from[1], "apps/%.30s/", from);
    snprintf(r.to[1], sizeof r.to[1], "apps/%.30s/", to);
    return r;
}

static bool is_text(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL && (strcmp(dot, ".sql") == 0 || strcmp(dot, ".html") == 0);
}

/* Writes data, as the copy has it. */
static bool write_renamed(const char *to, const char *data, size_t n, const struct renaming *r)
{
    if (!r->needed || !is_text(to))
        return write_new(to, data, n);
    char *whole = NULL;
    size_t bytes = 0;
    FILE *text = open_memstream(&whole, &bytes);
    for (size_t at = 0; text != NULL && at < n;) {
        size_t k = 0, len[2] = {strlen(r->from[0]), strlen(r->from[1])};
        while (k < 2 && (n - at < len[k] || memcmp(data + at, r->from[k], len[k]) != 0))
            k++;
        if (k < 2)
            fputs(r->to[k], text);
        else
            fputc(data[at], text);
        at += k < 2 ? len[k] : 1;
    }
    bool ok = text != NULL && fclose(text) == 0 && write_new(to, whole, bytes);
    free(whole);
    return ok;
}

static bool copy_file(const char *from, const char *to, const struct renaming *r)
{
    struct stat st;
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    char *data = NULL;
    bool ok = fd >= 0 && fstat(fd, &st) == 0 && st.st_size <= COPY_BYTES_MAX &&
              (data = malloc((size_t)st.st_size + 1)) != NULL &&
              spool_read(fd, data, (size_t)st.st_size, 0) &&
              write_renamed(to, data, (size_t)st.st_size, r);
    free(data);
    if (fd >= 0)
        close(fd);
    return ok;
}

static int copy_folder(const char *from, const char *to, const struct renaming *r, int depth)
{
    char a[PATH_MAX], b[PATH_MAX];
    struct stat st;
    int status = CTL_OK;
    DIR *dir = depth <= APP_DEPTH_MAX ? opendir(from) : NULL;
    if (dir == NULL || (mkdir(to, 0755) != 0 && errno != EEXIST)) {
        int failure = failed(dir != NULL ? to : from);
        if (dir != NULL)
            closedir(dir);
        return failure;
    }
    for (struct dirent *e; status == CTL_OK && (e = readdir(dir)) != NULL;) {
        snprintf(a, sizeof a, "%.2047s/%s", from, e->d_name);
        snprintf(b, sizeof b, "%.2047s/%s", to, e->d_name);
        if (e->d_name[0] == '.')
            continue;
        if (stat(a, &st) != 0)
            status = failed(a);
        else if (S_ISDIR(st.st_mode))
            status = copy_folder(a, b, r, depth + 1);
        else if (!copy_file(a, b, r))
            status = failed(b);
    }
    closedir(dir);
    return status;
}

/* Where the apps are that come with hanji: beside the program in its source tree, or installed. */
static bool find_bundled(const char *name, char path[PATH_MAX])
{
    static const char *const below[] = {"/../handlers/bundled/", "/../../handlers/bundled/",
                                        "/../share/hanji/apps/"};
    char program[PATH_MAX];
    struct stat st;
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = 0;
    char *slash = strrchr(program, '/');
    if (slash != NULL)
        *slash = 0;
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        snprintf(path, PATH_MAX, "%.2047s%s%.255s", program, below[i], name);
        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            return true;
    }
    return false;
}

static int copy_bundled(const char *from, const char *folder, const char *name)
{
    char path[PATH_MAX];
    bool known = strcmp(from, "scores") == 0 || strcmp(from, "household") == 0;
    if (!known || !find_bundled(from, path)) {
        fprintf(stderr, "hanji app: there is no app %s to copy: scores and household come with "
                        "hanji\n",
                from);
        return CTL_FAILED;
    }
    struct renaming r = rename_app(from, name);
    return copy_folder(path, folder, &r, 0);
}

int ctl_app_new(const struct conf *conf, int argc, char **argv)
{
    const char *from = NULL;
    char folder[PATH_MAX], making[PATH_MAX];
    struct stat st;
    if (argc >= 2 && strcmp(argv[0], "--from") == 0) {
        from = argv[1];
        argc -= 2;
        argv += 2;
    }
    const char *name = argc > 0 ? argv[0] : from;
    if (argc > 1 || name == NULL || name[0] == '-')
        return ctl_app_usage("new takes one name");
    if (!db_guard_name_ok(name))
        return ctl_app_usage("a name has 1 to 30 small letters and digits, a letter first, and is "
                             "not one that the server has");
    if (!ctl_app_folder(conf))
        return CTL_FAILED;
    snprintf(folder, sizeof folder, "%s/%s", conf->apps, name);
    snprintf(making, sizeof making, "%s/.%s.new", conf->apps, name);
    if (lstat(folder, &st) == 0) {
        errno = EEXIST;
        return failed(folder);
    }
    /* Under a hidden name until it is whole, so that a server sees all of it or nothing. */
    int status = mkdir(making, 0755) != 0 ? failed(making)
                 : from != NULL           ? copy_bundled(from, making, name)
                                          : write_template(making, name);
    if (status == CTL_OK && rename(making, folder) != 0)
        status = failed(folder);
    if (status == CTL_OK)
        printf("%s\n", folder);
    else
        rmdir(making);
    return status;
}
