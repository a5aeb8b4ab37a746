#include "db/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/conn.h"

static enum db_result fail(struct db_place *p, const char *path, int why, struct db_error *error)
{
    db_place_close(p);
    db_set_error(error, "%.300s: %s", path, strerror(why));
    return DB_BROKEN;
}

/* The folder of path in folder, and where the last name begins; NULL when it does not fit. */
static const char *split(const char *path, char folder[PATH_MAX])
{
    struct stat st;
    size_t n = strlen(path);
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        name = path + n;
    size_t folder_len = (size_t)(name - path);
    if (folder_len >= PATH_MAX || strlen(name) > NAME_MAX)
        return NULL;
    memcpy(folder, folder_len > 0 ? path : ".", folder_len > 0 ? folder_len : 1);
    folder[folder_len > 0 ? folder_len : 1] = 0;
    return name;
}

enum db_result db_place_open(struct db_place *p, const char *path, struct db_error *error)
{
    char folder[PATH_MAX];
    p->dir = -1;
    const char *name = split(path, folder);
    if (name == NULL)
        return fail(p, path, ENAMETOOLONG, error);
    if (realpath(folder, p->folder) == NULL)
        return fail(p, folder, errno, error);
    p->dir = open(p->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (p->dir < 0)
        return fail(p, folder, errno, error);
    memcpy(p->name, name, strlen(name) + 1);
    return DB_OK;
}

void db_place_close(struct db_place *p)
{
    if (p->dir >= 0)
        close(p->dir);
    p->dir = -1;
}

bool db_place_name(struct db_place *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(p->name, sizeof p->name, format, args);
    va_end(args);
    return n > 0 && (size_t)n < sizeof p->name;
}

bool db_place_path(const struct db_place *p, const char *suffix, char out[PATH_MAX])
{
    const char *folder = strcmp(p->folder, "/") == 0 ? "" : p->folder;
    int n = snprintf(out, PATH_MAX, "%s/%s%s", folder, p->name, suffix);
    return n > 0 && n < PATH_MAX;
}

bool db_place_stat(const struct db_place *p, const char *suffix, struct stat *st)
{
    char name[2 * NAME_MAX];
    int n = snprintf(name, sizeof name, "%s%s", p->name, suffix);
    return n > 0 && (size_t)n < sizeof name && fstatat(p->dir, name, st, AT_SYMLINK_NOFOLLOW) == 0;
}

int db_place_make(const struct db_place *p, mode_t mode)
{
    return openat(p->dir, p->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

bool db_place_put(const struct db_place *p, const char *from, bool replace)
{
    struct stat st;
    if (replace)
        return renameat(p->dir, from, p->dir, p->name) == 0;
    if (renameat2(p->dir, from, p->dir, p->name, RENAME_NOREPLACE) == 0)
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    /* A file system without that flag: a hard link does not replace either. */
    if (linkat(p->dir, from, p->dir, p->name, 0) == 0)
        return unlinkat(p->dir, from, 0) == 0;
    if (errno == EEXIST)
        return false;
    if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
        return false;
    }
    return renameat(p->dir, from, p->dir, p->name) == 0;
}

bool db_place_sync(const struct db_place *p)
{
    return fsync(p->dir) == 0 || errno == EINVAL; /* some file systems cannot */
}

static enum db_result refuse(struct db_error *error, const char *path, const char *why)
{
    db_set_error(error, "%.300s: %s", path, why);
    return DB_REFUSED;
}

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether the place is one of the files that make up the store, under whatever name, also one that
 * is not there at the moment. */
static bool is_of_store(const struct db_place *to, const char *database, struct db_error *error)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", ".lock", ".control"};
    struct db_place store;
    struct stat a, b, folder, other;
    char real[PATH_MAX];
    bool found = false;
    if (db_place_open(&store, realpath(database, real) != NULL ? real : database, error) != DB_OK)
        return false;
    bool one_folder = fstat(store.dir, &folder) == 0 && fstat(to->dir, &other) == 0 &&
                      same(&folder, &other);
    size_t n = strlen(store.name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes && !found; i++) {
        found = db_place_stat(&store, suffixes[i], &a) && db_place_stat(to, "", &b) && same(&a, &b);
        if (one_folder && strncmp(to->name, store.name, n) == 0 &&
            strcmp(to->name + n, suffixes[i]) == 0)
            found = true;
    }
    db_place_close(&store);
    return found;
}

enum db_result db_place_judge(const struct db_place *to, const char *database, bool replace,
                              struct db_error *error)
{
    struct stat st;
    char path[PATH_MAX];
    if (!db_place_path(to, "", path))
        return refuse(error, to->folder, "the name is too long");
    if (strcmp(to->name, ".") == 0 || strcmp(to->name, "..") == 0)
        return refuse(error, path, "this is no name for a file");
    if (is_of_store(to, database, error))
        return refuse(error, path, "this is a file of the database itself");
    if (db_place_stat(to, "", &st)) {
        if (S_ISLNK(st.st_mode))
            return refuse(error, path, "a symbolic link is there; nothing is written through it");
        if (!S_ISREG(st.st_mode))
            return refuse(error, path, "something that is no file is there");
        if (!replace)
            return refuse(error, path, "the file exists (--force replaces it)");
    }
    if ((db_place_stat(to, "-wal", &st) && st.st_size > 0) ||
        (db_place_stat(to, "-journal", &st) && st.st_size > 0))
        return refuse(error, path, "a -wal or -journal file beside it would be taken for its own");
    return DB_OK;
}
