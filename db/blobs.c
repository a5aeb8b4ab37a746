#include "db/blobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "db/conn.h"

enum {
    SETS = 1024,
    WAYS = 4,
    USED_S = 600,     /* not removed for so long after the last use */
    TOUCH_EVERY_S = 60,
    FULL_S = 30,      /* after room could not be made: do not look again for so long */
    FREE_SHARE = 20,  /* of the disk, 1/20 is left to others */
    SPARE_SHARE = 16, /* of max_bytes, removed beyond what is needed: each time all is listed */
    GROUP_UNKNOWN = 65534, /* what the kernel says for one outside of a user namespace */
};
static const char temporary_prefix[] = ".new-";

struct entry {
    uint64_t seq; /* 0: free */
    int64_t id;
    int64_t touched_s;
    int64_t changed_ns; /* st_mtim; 0: only seen, no file */
    uint64_t inode;
    char name[DB_BLOB_NAME_LEN + 1];
};

struct db_blobs {
    char folder[PATH_MAX];
    int dir;
    uint64_t max_bytes;
    pthread_mutex_t lock; /* for a moment: loops wait for it */
    struct entry *entries; /* SETS * WAYS, at the first use */
    unsigned names;        /* temporary ones given */
    pthread_mutex_t room; /* while old files are looked for and removed; taken before lock */
    uint64_t total_bytes;
    int64_t full_until_s;
};

static int64_t changed_ns(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static struct entry *set_of(struct db_blobs *b, uint64_t seq)
{
    if (b->entries == NULL)
        b->entries = calloc((size_t)SETS * WAYS, sizeof *b->entries);
    uint64_t set = (seq * UINT64_C(0x9e3779b97f4a7c15) >> 54) % SETS;
    return b->entries ? b->entries + set * WAYS : NULL;
}

static struct entry *find(struct entry *set, struct db_blob_of of)
{
    for (int i = 0; set != NULL && i < WAYS; i++)
        if (set[i].seq == of.seq && set[i].id == of.id)
            return &set[i];
    return NULL;
}

/* Its entry, or that of the set which was used longest ago, made anew. */
static struct entry *take(struct entry *set, struct db_blob_of of, int64_t now_s)
{
    struct entry *e = find(set, of);
    if (e == NULL && set != NULL) {
        e = set;
        for (int i = 1; i < WAYS; i++)
            if (set[i].touched_s < e->touched_s)
                e = &set[i];
        *e = (struct entry){.seq = of.seq, .id = of.id, .touched_s = now_s};
    }
    return e;
}

static const char hex_digits[] = "0123456789abcdef";

/* As db_blobs_create gives them: two numbers in hex behind the prefix. */
static bool is_temporary(const char *name)
{
    size_t n = sizeof temporary_prefix - 1;
    if (strncmp(name, temporary_prefix, n) != 0)
        return false;
    size_t pid = strspn(name + n, hex_digits);
    const char *number = name + n + pid + 1;
    return pid > 0 && number[-1] == '-' && number[0] != 0 &&
           number[strspn(number, hex_digits)] == 0;
}

static bool is_digest(const char *name)
{
    return strspn(name, hex_digits) == DB_BLOB_NAME_LEN && name[DB_BLOB_NAME_LEN] == 0;
}

/* One file of the folder, looked at for its age. */
struct old {
    int64_t used_s;
    uint64_t bytes;
    char name[DB_BLOB_NAME_LEN + 1];
};

static int by_use(const void *x, const void *y)
{
    const struct old *a = x, *b = y;
    return (a->used_s > b->used_s) - (a->used_s < b->used_s);
}

struct listing {
    struct old *files;
    size_t count, room;
    uint64_t bytes;
};

static bool add(struct listing *l, const char *name, const struct stat *st)
{
    if (l->count == l->room) {
        size_t room = l->room ? l->room * 2 : 64;
        struct old *files = realloc(l->files, room * sizeof *files);
        if (files == NULL)
            return false;
        l->files = files;
        l->room = room;
    }
    struct old *o = &l->files[l->count++];
    o->used_s = st->st_atim.tv_sec;
    o->bytes = (uint64_t)st->st_size;
    memcpy(o->name, name, sizeof o->name); /* DB_BLOB_NAME_LEN and a NUL, list has seen to it */
    l->bytes += o->bytes;
    return true;
}

/* All files of the folder; what is neither named by a digest nor an old temporary one is not ours
 * and stays out. */
static void list(struct db_blobs *b, struct listing *l, int64_t now_s)
{
    int fd = openat(b->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (d == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        struct stat st;
        bool temporary = is_temporary(e->d_name);
        if ((!temporary && !is_digest(e->d_name)) ||
            fstatat(b->dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
            continue;
        if (temporary && st.st_mtim.tv_sec < now_s - USED_S)
            unlinkat(b->dir, e->d_name, 0);
        else if (!temporary && !add(l, e->d_name, &st))
            break;
    }
    closedir(d);
}

/* Bytes that others on the disk can still have before ours would be felt. */
static bool disk_has(const struct db_blobs *b, uint64_t bytes)
{
    struct statvfs fs;
    if (fstatvfs(b->dir, &fs) != 0)
        return true;
    uint64_t room = (uint64_t)fs.f_bavail * fs.f_frsize;
    return room >= bytes && room - bytes >= (uint64_t)fs.f_blocks * fs.f_frsize / FREE_SHARE;
}

/* Removes one, unless it was used since all were looked at. */
static void evict(struct db_blobs *b, const struct old *o, int64_t now_s)
{
    struct stat st;
    pthread_mutex_lock(&b->lock);
    if (fstatat(b->dir, o->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        st.st_atim.tv_sec < now_s - USED_S && unlinkat(b->dir, o->name, 0) == 0)
        b->total_bytes -= o->bytes;
    pthread_mutex_unlock(&b->lock);
}

/* True when bytes more fit below most, and the disk has enough left for others. */
static bool fits(const struct db_blobs *b, uint64_t bytes, uint64_t most)
{
    return b->total_bytes + bytes <= most && disk_has(b, 0);
}

/* Removes what was not used lately until bytes more fit, the oldest first. Room held. */
static bool make_room(struct db_blobs *b, uint64_t bytes, int64_t now_s)
{
    struct listing l = {0};
    if (fits(b, bytes, b->max_bytes))
        return true;
    if (bytes > b->max_bytes || now_s < b->full_until_s)
        return false;
    list(b, &l, now_s);
    b->total_bytes = l.bytes;
    if (l.count > 0)
        qsort(l.files, l.count, sizeof *l.files, by_use);
    for (size_t i = 0; i < l.count && l.files[i].used_s < now_s - USED_S &&
                       !fits(b, bytes, b->max_bytes - b->max_bytes / SPARE_SHARE);
         i++)
        evict(b, &l.files[i], now_s);
    free(l.files);
    bool done = fits(b, bytes, b->max_bytes);
    b->full_until_s = done ? 0 : now_s + FULL_S;
    return done;
}

/* One that is there is left as it is: somebody may have chosen its group and mode. */
static bool make_folder(const char *folder, int64_t group)
{
    if (mkdir(folder, 0750) != 0)
        return errno == EEXIST;
    if (group >= 0 && chown(folder, (uid_t)-1, (gid_t)group) != 0)
        return true; /* the web server may be allowed in by other means */
    return chmod(folder, 02750) == 0;
}

struct db_blobs *db_blobs_open(const char *folder, int64_t group, uint64_t max_bytes,
                               struct db_error *error)
{
    struct db_blobs *b = calloc(1, sizeof *b);
    struct listing l = {0};
    if (b == NULL) {
        db_set_error(error, "memory is short");
        return NULL;
    }
    b->dir = -1;
    b->max_bytes = max_bytes;
    if (!make_folder(folder, group) || realpath(folder, b->folder) == NULL ||
        (b->dir = open(b->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
        faccessat(b->dir, ".", W_OK | X_OK, AT_EACCESS) != 0) {
        db_set_error(error, "%s: %s", folder, strerror(errno));
        if (b->dir >= 0)
            close(b->dir);
        free(b);
        return NULL;
    }
    pthread_mutex_init(&b->lock, NULL);
    pthread_mutex_init(&b->room, NULL);
    list(b, &l, time(NULL));
    b->total_bytes = l.bytes;
    free(l.files);
    return b;
}

void db_blobs_close(struct db_blobs *b)
{
    if (b == NULL)
        return;
    close(b->dir);
    pthread_mutex_destroy(&b->lock);
    pthread_mutex_destroy(&b->room);
    free(b->entries);
    free(b);
}

const char *db_blobs_folder(const struct db_blobs *b)
{
    return b->folder;
}

/* True when members of the group can pass through all folders above. */
static bool reachable(const struct db_blobs *b, gid_t group)
{
    char above[PATH_MAX];
    snprintf(above, sizeof above, "%s", b->folder);
    for (char *end; (end = strrchr(above, '/')) != NULL && end > above;) {
        struct stat st;
        *end = 0;
        if (stat(above, &st) != 0)
            return false;
        mode_t need = st.st_gid == group ? S_IXGRP : S_IXOTH;
        if ((st.st_mode & need) == 0)
            return false;
    }
    return true;
}

const char *db_blobs_doubt(const struct db_blobs *b, int64_t group)
{
    struct stat st;
    if (fstat(b->dir, &st) != 0)
        return NULL;
    bool ours = st.st_gid == getegid();
    if ((st.st_mode & S_IRWXO) != 0)
        return "everybody on this machine can read large documents there: chmod o= it";
    if (group >= 0 && st.st_gid != (gid_t)group && st.st_gid != GROUP_UNKNOWN)
        return "its group is not socket_group, so the web server cannot read it: chgrp it";
    if (!ours && (st.st_mode & (S_IXGRP | S_ISGID)) != (S_IXGRP | S_ISGID))
        return "the web server's group cannot read it and what is made in it: chmod 2750 it";
    if (!ours && !reachable(b, st.st_gid))
        return "a folder above it is closed to the web server's group: move it (blobs)";
    return NULL;
}

static bool same_file(const struct entry *e, const struct stat *st, uint64_t size)
{
    return S_ISREG(st->st_mode) && (uint64_t)st->st_size == size && st->st_ino == e->inode &&
           changed_ns(st) == e->changed_ns;
}

/* Notes its use where other processes see it. False: it is gone. */
static bool touch(struct db_blobs *b, const char *name, int64_t now_s)
{
    struct timespec times[2] = {{.tv_sec = (time_t)now_s}, {.tv_nsec = UTIME_OMIT}};
    return utimensat(b->dir, name, times, AT_SYMLINK_NOFOLLOW) == 0;
}

enum db_blob_state db_blobs_find(struct db_blobs *b, struct db_blob_of of, int64_t now_s,
                                 char name[DB_BLOB_NAME_LEN + 1])
{
    enum db_blob_state state = DB_BLOB_UNSEEN;
    struct stat st;
    pthread_mutex_lock(&b->lock);
    struct entry *set = set_of(b, of.seq), *e = find(set, of);
    if (e != NULL && e->changed_ns != 0 &&
        fstatat(b->dir, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && same_file(e, &st, of.bytes) &&
        (now_s - e->touched_s < TOUCH_EVERY_S || touch(b, e->name, now_s))) {
        if (now_s - e->touched_s >= TOUCH_EVERY_S)
            e->touched_s = now_s;
        memcpy(name, e->name, sizeof e->name);
        state = DB_BLOB_READY;
    } else if (e != NULL) {
        e->changed_ns = 0;
        state = DB_BLOB_SEEN;
    } else {
        take(set, of, now_s);
    }
    pthread_mutex_unlock(&b->lock);
    return state;
}

int db_blobs_open_file(struct db_blobs *b, const char *name)
{
    return openat(b->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

bool db_blobs_create(struct db_blobs *b, struct db_blob_file *f)
{
    pthread_mutex_lock(&b->lock);
    unsigned n = b->names++;
    pthread_mutex_unlock(&b->lock);
    snprintf(f->temporary, sizeof f->temporary, "%s%x-%x", temporary_prefix, (unsigned)getpid(), n);
    f->fd = openat(b->dir, f->temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
    /* Whatever the umask is: the web server must be able to read it. */
    if (f->fd >= 0 && fchmod(f->fd, 0640) == 0)
        return true;
    if (f->fd >= 0)
        db_blobs_discard(b, f);
    return false;
}

/* Lock held. */
static void note(struct db_blobs *b, struct db_blob_of of, const char *name,
                 const struct stat *st)
{
    int64_t now_s = time(NULL);
    struct entry *e = take(set_of(b, of.seq), of, now_s);
    if (e == NULL || !touch(b, name, now_s))
        return;
    e->touched_s = now_s;
    e->inode = st->st_ino;
    e->changed_ns = changed_ns(st);
    snprintf(e->name, sizeof e->name, "%s", name);
}

bool db_blobs_keep(struct db_blobs *b, struct db_blob_file *f, struct db_blob_of of,
                   const char *name)
{
    struct stat st;
    bool kept = false;
    pthread_mutex_lock(&b->room);
    if (fstat(f->fd, &st) == 0 && make_room(b, (uint64_t)st.st_size, time(NULL)) &&
        renameat(b->dir, f->temporary, b->dir, name) == 0) {
        kept = true;
        b->total_bytes += (uint64_t)st.st_size;
        pthread_mutex_lock(&b->lock);
        note(b, of, name, &st);
        pthread_mutex_unlock(&b->lock);
    }
    pthread_mutex_unlock(&b->room);
    if (!kept)
        unlinkat(b->dir, f->temporary, 0);
    return kept;
}

void db_blobs_discard(struct db_blobs *b, struct db_blob_file *f)
{
    unlinkat(b->dir, f->temporary, 0);
    close(f->fd);
    f->fd = -1;
}

void db_blobs_note(struct db_blobs *b, struct db_blob_of of, const char *name, int fd)
{
    struct stat st;
    pthread_mutex_lock(&b->lock);
    if (fstat(fd, &st) == 0)
        note(b, of, name, &st);
    pthread_mutex_unlock(&b->lock);
}
