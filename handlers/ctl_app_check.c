/* hanji app check: compiles apps in a store of their own, without a server and without touching
 * data. hanji app list. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "handlers/app_ini.h"
#include "handlers/app_load.h"
#include "handlers/app_set.h"
#include "handlers/ctl_app.h"

struct one {
    char name[NAME_MAX + 1];
    char folder[PATH_MAX];
};

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void print_fault(void *arg, const char *file, unsigned line, const char *text)
{
    (void)arg;
    if (line > 0)
        printf("%s:%u: %s\n", file, line, text);
    else
        printf("%s: %s\n", file, text);
}

static void count_fault(void *arg, const char *file, unsigned line, const char *text)
{
    (void)arg, (void)file, (void)line, (void)text;
}

static bool name_ok(const char *name, struct db_faults *faults)
{
    if (db_guard_name_ok(name))
        return true;
    faults->count++;
    faults->tell(faults->arg, name, 0,
                 "an app's name has 1 to 30 small letters and digits, a letter first, and is not "
                 "one that the server has");
    return false;
}

/* Compiles the app; its files are in files then, to be freed. */
static void compile(const struct conf *conf, const struct one *app, struct app_files *files,
                    struct db_faults *faults)
{
    const char *temp = getenv("TMPDIR");
    const struct app_source source = {.name = app->name, .folder = app->folder};
    const struct app_loading how = {
        .source = &source,
        .spool = temp != NULL && temp[0] != 0 ? temp : "/tmp",
        .body_max = conf->max_body_bytes,
    };
    *files = (struct app_files){0};
    if (!name_ok(app->name, faults))
        return;
    app_files_read(files, &source, faults);
    (void)app_check(&how, files, faults);
}

static int check_one(const struct conf *conf, const struct one *app)
{
    struct db_faults faults = {.tell = print_fault};
    struct app_files files;
    compile(conf, app, &files, &faults);
    app_files_free(&files);
    if (faults.count == 0)
        printf("%s: ok\n", app->name);
    return faults.count == 0 ? CTL_OK : CTL_FAILED;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct one *)a)->name, ((const struct one *)b)->name);
}

/* All folders of apps, in order of name; from malloc. count is -1 when the folder cannot be
 * read. */
static struct one *find_apps(const struct conf *conf, int *count)
{
    struct one *list = NULL;
    *count = 0;
    DIR *dir = opendir(conf->apps);
    if (dir == NULL) {
        fprintf(stderr, "hanji app: %s: %s\n", conf->apps, strerror(errno));
        *count = -1;
        return NULL;
    }
    for (struct dirent *e; (e = readdir(dir)) != NULL && *count < APPS_MAX;) {
        struct one app;
        snprintf(app.name, sizeof app.name, "%s", e->d_name);
        snprintf(app.folder, sizeof app.folder, "%.1023s/%s", conf->apps, e->d_name);
        if (e->d_name[0] == '.' || !is_folder(app.folder))
            continue;
        struct one *more = realloc(list, ((size_t)*count + 1) * sizeof *more);
        if (more == NULL)
            break;
        list = more;
        list[(*count)++] = app;
    }
    closedir(dir);
    if (*count > 0)
        qsort(list, (size_t)*count, sizeof *list, by_name);
    return list;
}

/* A name, or the path of a folder: what has a '/'. */
static bool find_one(const struct conf *conf, const char *word, struct one *app)
{
    char *path = strchr(word, '/') != NULL ? realpath(word, NULL) : NULL;
    if (path != NULL) {
        snprintf(app->folder, sizeof app->folder, "%s", path);
        snprintf(app->name, sizeof app->name, "%s", strrchr(path, '/') + 1);
        free(path);
    } else {
        if (strchr(word, '/') == NULL && !ctl_app_folder(conf))
            return false;
        snprintf(app->name, sizeof app->name, "%s", word);
        snprintf(app->folder, sizeof app->folder, "%.1023s/%.1023s", conf->apps, word);
    }
    if (is_folder(app->folder))
        return true;
    fprintf(stderr, "hanji app: there is no folder %s\n",
            strchr(word, '/') != NULL ? word : app->folder);
    return false;
}

int ctl_app_check(const struct conf *conf, int argc, char **argv)
{
    struct one app;
    int count, status = CTL_OK;
    if (argc > 1 || (argc == 1 && argv[0][0] == '-'))
        return ctl_app_usage("check takes a name or a folder");
    if (argc == 1)
        return find_one(conf, argv[0], &app) ? check_one(conf, &app) : CTL_FAILED;
    if (!ctl_app_folder(conf))
        return CTL_FAILED;
    struct one *list = find_apps(conf, &count);
    for (int i = 0; i < count; i++)
        if (check_one(conf, &list[i]) != CTL_OK)
            status = CTL_FAILED;
    free(list);
    return count < 0 ? CTL_FAILED : status;
}

/* ---- list ------------------------------------------------------------------------------------ */

static unsigned count_routes(const struct app_files *files)
{
    unsigned routes = 0;
    for (unsigned i = 0; i < files->count; i++) {
        const struct app_text *t = &files->list[i];
        bool route = t->kind == APP_SCRIPT || t->kind == APP_PAGE, known = false;
        for (unsigned k = 0; k < i && route; k++)
            known |= (files->list[k].kind == APP_SCRIPT || files->list[k].kind == APP_PAGE) &&
                     strcmp(files->list[k].pattern, t->pattern) == 0;
        routes += route && !known;
    }
    return routes;
}

static void list_one(const struct conf *conf, const struct one *app)
{
    static const char *const access[] = {"rights", "users", "public"};
    struct db_faults faults = {.tell = count_fault};
    struct db_faults none = {.tell = count_fault};
    struct app_files files;
    struct app_ini ini;
    compile(conf, app, &files, &faults);
    app_ini_defaults(&ini, app->name);
    const struct app_text *text = app_files_find(&files, "app.ini");
    if (text != NULL)
        app_ini_read(&ini, app->name, (struct str){text->data, text->bytes}, &none);
    printf("%s\t%s\t%s\t%s\t%u\t", app->name, ini.title, access[ini.read], access[ini.write],
           count_routes(&files));
    if (faults.count == 0)
        printf("ok\n");
    else
        printf("%u fault%s\n", faults.count, faults.count == 1 ? "" : "s");
    app_files_free(&files);
}

int ctl_app_list(const struct conf *conf, int argc, char **argv)
{
    int count;
    (void)argv;
    if (argc != 0)
        return ctl_app_usage("list takes no arguments");
    if (!ctl_app_folder(conf))
        return CTL_FAILED;
    struct one *list = find_apps(conf, &count);
    if (count >= 0)
        printf("name\ttitle\tread\twrite\troutes\tstate\n");
    for (int i = 0; i < count; i++)
        list_one(conf, &list[i]);
    free(list);
    return count < 0 ? CTL_FAILED : CTL_OK;
}
