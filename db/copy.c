#include "db/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db/migrate.h"

enum {
    STEP_BYTES = 1 << 20, /* between syncs: what a commit of the server may find in its way */
    FROM_CACHE_BYTES = 1 << 20,
    PATIENCE_MS = 5000,
    PAGE_BYTES_LEAST = 512,
    /* https://www.sqlite.org/fileformat2.html#the_database_header */
    HEADER_BYTES = 100,
    PAGE_SIZE_AT = 16,
    WRITE_VERSION_AT = 18,
    CHANGES_AT = 24,
    PAGES_AT = 28,
    APPLICATION_AT = 68,
    VALID_FOR_AT = 92,
};

static const char magic[] = "SQLite format 3"; /* with its NUL */

static enum db_result failed(struct db_conn *c, const char *what, struct db_error *error)
{
    db_set_error(error, "%.300s: %s", what, sqlite3_errmsg(c->db));
    return db_conn_failed(c);
}

enum db_result db_copy_totals(struct db_conn *c, struct db_totals *t, struct db_error *error)
{
    sqlite3_stmt *s = NULL;
    enum db_result result = DB_OK;
    static const char sql[] =
        "SELECT (SELECT page_count FROM pragma_page_count),"
        " (SELECT page_size FROM pragma_page_size),"
        " (SELECT count(*) FROM doc),"
        " " DB_LAST_SEQ ","
        " coalesce((SELECT value FROM meta WHERE name = 'schema_version'), 0)";
    if (sqlite3_prepare_v2(c->db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        *t = (struct db_totals){
            .pages = (uint64_t)sqlite3_column_int64(s, 0),
            .page_bytes = (uint64_t)sqlite3_column_int64(s, 1),
            .documents = (uint64_t)sqlite3_column_int64(s, 2),
            .seq = (uint64_t)sqlite3_column_int64(s, 3),
            .schema = sqlite3_column_int64(s, 4),
        };
    else
        result = failed(c, "the file cannot be read", error);
    sqlite3_finalize(s);
    return result;
}

enum db_result db_copy_begin(struct db_conn *from, const char *path, struct db_totals *totals,
                             struct db_error *error)
{
    enum db_result result = db_conn_open(from, path, DB_READ, FROM_CACHE_BYTES, error);
    if (result != DB_OK)
        return result;
    from->busy_limit_ms = PATIENCE_MS;
    result = db_migrate_owner(from, error);
    if (result == DB_OK && sqlite3_exec(from->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        result = failed(from, path, error);
    if (result == DB_OK)
        result = db_copy_totals(from, totals, error);
    if (result != DB_OK)
        db_conn_close(from);
    return result;
}

static enum db_result open_plain(struct db_conn *c, const char *path, const char *settings,
                                 struct db_error *error)
{
    *c = (struct db_conn){0};
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX |
                SQLITE_OPEN_EXRESCODE;
    int rc = sqlite3_open_v2(path, &c->db, flags, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(c->db, settings, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        return DB_OK;
    db_set_error(error, "%.300s: %s", path, c->db ? sqlite3_errmsg(c->db) : sqlite3_errstr(rc));
    db_conn_close(c);
    return db_cause(rc);
}

enum db_result db_copy_open(struct db_conn *c, const char *path, struct db_error *error)
{
    return open_plain(c, path,
                      "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=MEMORY;"
                      "PRAGMA mmap_size=0; PRAGMA foreign_keys=ON; PRAGMA secure_delete=FAST;"
                      "PRAGMA temp_store=MEMORY; PRAGMA synchronous=OFF",
                      error);
}

static bool same_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && lstat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* What has been copied goes to the disk as it comes: everything at once at the end would make the
 * syncs of the server wait for it. */
static int copy_steps(sqlite3_backup *b, int step_pages, int fd, struct db_watch *watch)
{
    int rc = SQLITE_OK;
    while (rc == SQLITE_OK) {
        rc = sqlite3_backup_step(b, step_pages);
        if (rc == SQLITE_OK && fdatasync(fd) != 0)
            return SQLITE_IOERR_FSYNC;
        uint64_t all = (uint64_t)sqlite3_backup_pagecount(b);
        if (watch->progress != NULL)
            watch->progress(watch->arg, "copy", all - (uint64_t)sqlite3_backup_remaining(b), all);
    }
    return rc;
}

/* Says in the header that the file has no log beside it, and syncs. */
static enum db_result finish(const char *path, int fd, struct db_error *error)
{
    unsigned char header[HEADER_BYTES];
    static const unsigned char rollback[] = {1, 1};
    if (pread(fd, header, sizeof header, 0) == (ssize_t)sizeof header &&
        memcmp(header, magic, sizeof magic) == 0 &&
        pwrite(fd, rollback, sizeof rollback, WRITE_VERSION_AT) == (ssize_t)sizeof rollback &&
        fsync(fd) == 0)
        return DB_OK;
    db_set_error(error, "%.300s: %s", path, strerror(errno));
    return errno == ENOSPC || errno == EDQUOT ? DB_FULL : DB_BROKEN;
}

enum db_result db_copy_pages(struct db_conn *from, const char *to, int fd, struct db_watch *watch,
                             struct db_error *error)
{
    struct db_conn dest;
    struct db_totals t = {0};
    enum db_result result = db_copy_totals(from, &t, error);
    if (result == DB_OK && t.page_bytes == 0)
        result = DB_BROKEN;
    if (result == DB_OK)
        result = open_plain(&dest, to,
                            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
                            "PRAGMA locking_mode=EXCLUSIVE; PRAGMA mmap_size=0;"
                            "PRAGMA cache_size=-256",
                            error);
    if (result != DB_OK)
        return result;
    if (!same_file(fd, to)) {
        db_set_error(error, "%.300s: somebody put another file there", to);
        db_conn_close(&dest);
        return DB_BROKEN;
    }
    int rc = SQLITE_NOMEM;
    sqlite3_backup *b = sqlite3_backup_init(dest.db, "main", from->db, "main");
    if (b != NULL) {
        rc = copy_steps(b, (int)(STEP_BYTES / t.page_bytes), fd, watch);
        int end = sqlite3_backup_finish(b);
        rc = rc == SQLITE_DONE ? end : rc;
    }
    db_conn_close(&dest);
    if (rc != SQLITE_OK) {
        db_set_error(error, "%.300s: %s", to, sqlite3_errstr(rc));
        return db_cause(rc) == DB_OK ? DB_BROKEN : db_cause(rc);
    }
    return finish(to, fd, error);
}

static uint32_t be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static const char *look_at_header(const unsigned char *h, uint64_t size_bytes)
{
    uint64_t page_bytes = (uint64_t)(h[PAGE_SIZE_AT] << 8 | h[PAGE_SIZE_AT + 1]);
    if (size_bytes < PAGE_BYTES_LEAST || memcmp(h, magic, sizeof magic) != 0)
        return "this is no SQLite file";
    if (be32(h + APPLICATION_AT) != DB_APPLICATION_ID)
        return "this is an SQLite file of another program";
    if (page_bytes == 1)
        page_bytes = 65536;
    if (page_bytes < PAGE_BYTES_LEAST || (page_bytes & (page_bytes - 1)) != 0)
        return "its header is damaged";
    bool counted = be32(h + CHANGES_AT) == be32(h + VALID_FOR_AT);
    if (size_bytes % page_bytes != 0 ||
        (counted && (uint64_t)be32(h + PAGES_AT) * page_bytes > size_bytes))
        return "the file is truncated: it is shorter than it says";
    return NULL;
}

static bool has_log(const char *path)
{
    char wal[PATH_MAX];
    struct stat st;
    return snprintf(wal, sizeof wal, "%s-wal", path) < (int)sizeof wal && stat(wal, &st) == 0 &&
           st.st_size > 0;
}

enum db_result db_copy_look(const char *path, struct db_error *error)
{
    unsigned char header[HEADER_BYTES] = {0};
    struct stat st;
    const char *why = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) != 0)
        why = strerror(errno);
    else if (!S_ISREG(st.st_mode))
        why = "this is no regular file";
    else if (!has_log(path))
        why = pread(fd, header, sizeof header, 0) < 0
                  ? strerror(errno)
                  : look_at_header(header, (uint64_t)st.st_size);
    if (fd >= 0)
        close(fd);
    if (why == NULL)
        return DB_OK;
    db_set_error(error, "%.300s: %s", path, why);
    return DB_REFUSED;
}
