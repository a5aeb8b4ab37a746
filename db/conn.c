#include "db/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "db/memory.h"

enum {
    BUSY_STEP_NS = 300000,   /* short steps: with long ones one of two processes starves */
    BUSY_WRITE_MS = 5000,
    BUSY_READ_MS = 20,       /* a reader sits on a reactor's thread */
    TEMP_IN_FILES = 1, TEMP_IN_MEMORY = 2, /* values of PRAGMA temp_store */
    JOURNAL_LIMIT = 4 << 20, /* what a WAL shrinks to at the commit after a whole checkpoint */
};

enum db_result db_init(void)
{
    if (sqlite3_config(SQLITE_CONFIG_MULTITHREAD) != SQLITE_OK || !db_memory_init() ||
        sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) != SQLITE_OK ||
        /* No slab of pages for each connection beforehand: an idle one needs a few. */
        sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0) != SQLITE_OK ||
        sqlite3_initialize() != SQLITE_OK)
        return DB_BROKEN;
    return DB_OK;
}

bool db_temporary_folder(const char *folder)
{
    sqlite3_temp_directory = sqlite3_mprintf("%s", folder);
    return sqlite3_temp_directory != NULL;
}

const char *db_sqlite_version(void)
{
    return sqlite3_libversion();
}

bool db_sqlite_has_wal_race(void)
{
    int v = sqlite3_libversion_number();
    bool mended = v >= 3051003 || (v >= 3050007 && v < 3051000) || (v >= 3044006 && v < 3045000);
    return v >= 3007000 && !mended;
}

/* No checkpoint of its own (the server's rule), WAL files that stay for readers of the group, and
 * patience with the server's commits. */
const char *const db_shell_commands[] = {
    ".output /dev/null",
    "PRAGMA wal_autocheckpoint=0",
    "PRAGMA synchronous=FULL",
    ".timeout 5000",
    ".filectrl persist_wal 1",
    ".output stdout",
    NULL,
};

const char *db_result_text(enum db_result result)
{
    switch (result) {
    case DB_OK: return "done";
    case DB_NONE: return "there is no such row";
    case DB_PRECONDITION: return "the row is not in the required state";
    case DB_INVALID: return "the value is not what its type says";
    case DB_EXISTS: return "a row of that name exists";
    case DB_CONFLICT: return "the row does not allow this";
    case DB_TOO_LARGE: return "the value is too large";
    case DB_REUSED: return "the key belongs to another request";
    case DB_OVERLOAD: return "too many writes are waiting";
    case DB_BUSY: return "another process held the write lock too long";
    case DB_WAL_LIMIT: return "the write-ahead log is at its bound";
    case DB_FULL: return "the disk is full";
    case DB_NO_MEMORY: return "memory is short";
    case DB_TIMEOUT: return "it took too long";
    case DB_BROKEN: return "the store cannot be read or written";
    case DB_REFUSED: return "this program does not open this file";
    }
    return "unknown";
}

enum db_result db_refuse(struct db_error *error, const char *path, const char *why)
{
    db_set_error(error, "%.300s: %s", path, why);
    return DB_REFUSED;
}

void db_set_error(struct db_error *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
}

enum db_result db_cause(int code)
{
    if (code == SQLITE_IOERR_NOMEM)
        return DB_NO_MEMORY;
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE: return DB_OK;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return DB_BUSY;
    case SQLITE_FULL: return DB_FULL;
    case SQLITE_NOMEM: return DB_NO_MEMORY;
    case SQLITE_INTERRUPT: return DB_TIMEOUT;
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH: return DB_INVALID;
    case SQLITE_NOTADB: return DB_REFUSED;
    default: return DB_BROKEN;
    }
}

static int wait_for_lock(void *arg, int tries)
{
    struct db_conn *c = arg;
    struct timespec step = {0, BUSY_STEP_NS}, now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    if (tries == 0)
        c->busy_since_ms = now_ms;
    if (now_ms - c->busy_since_ms >= c->busy_limit_ms)
        return 0;
    c->waited = true;
    nanosleep(&step, NULL);
    return 1;
}

/* A file that root makes belongs to whoever owns its folder: the server runs as that user. */
static void give_to_folder_owner(int fd, const char *path)
{
    char folder[4096];
    struct stat file, dir;
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (geteuid() != 0 || n >= sizeof folder)
        return;
    memcpy(folder, n > 0 ? path : ".", n > 0 ? n : 1);
    folder[n > 0 ? n : 1] = 0;
    if (fstat(fd, &file) == 0 && stat(folder, &dir) == 0 && file.st_size == 0 &&
        fchown(fd, dir.st_uid, dir.st_gid) != 0)
        return; /* then it stays root's, and the server says that it cannot open it */
}

/* The file is made here, not by SQLite, so that its mode (which -wal and -shm inherit) lets nginx's
 * group read it but nobody else. */
static enum db_result make_file(const char *path, struct db_error *error)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0) {
        db_set_error(error, "%s: %s", path, strerror(errno));
        return errno == ENOSPC ? DB_FULL : DB_BROKEN;
    }
    give_to_folder_owner(fd, path);
    close(fd);
    return DB_OK;
}

/* A writer's temporary data goes to files: a savepoint keeps what it may have to undo, which is all
 * of a large body. */
static int settings(sqlite3 *db, enum db_access access, uint64_t cache_bytes)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "PRAGMA wal_autocheckpoint=0; PRAGMA mmap_size=0; PRAGMA synchronous=FULL;"
             "PRAGMA secure_delete=FAST; PRAGMA foreign_keys=ON; PRAGMA temp_store=%d;"
             "PRAGMA cache_size=-%llu; PRAGMA journal_size_limit=%d",
             access == DB_READ ? TEMP_IN_MEMORY : TEMP_IN_FILES,
             (unsigned long long)(cache_bytes / 1024), JOURNAL_LIMIT);
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

void db_conn_keep_wal(struct db_conn *c)
{
    int on = 1;
    sqlite3_file_control(c->db, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
}

enum db_result db_conn_open(struct db_conn *c, const char *path, enum db_access access,
                            uint64_t cache_bytes, struct db_error *error)
{
    enum db_result made = access == DB_CREATE ? make_file(path, error) : DB_OK;
    *c = (struct db_conn){0};
    if (made != DB_OK)
        return made;
    if (access != DB_CREATE && faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0) {
        db_set_error(error, "%s: %s", path, strerror(errno));
        return errno == ENOENT ? DB_NONE : DB_BROKEN;
    }
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                (access == DB_READ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
    int rc = sqlite3_open_v2(path, &c->db, flags, NULL);
    if (rc == SQLITE_OK) {
        c->cache_bytes = cache_bytes;
        c->busy_limit_ms = access == DB_READ ? BUSY_READ_MS : BUSY_WRITE_MS;
        sqlite3_busy_handler(c->db, wait_for_lock, c);
        rc = settings(c->db, access, cache_bytes);
    }
    /* Ready before they are needed: a transaction must be ended also when memory is short. */
    if (rc == SQLITE_OK && !(db_conn_statement(c, SLOT_ROLLBACK, "ROLLBACK") &&
                             db_conn_statement(c, SLOT_COMMIT, "COMMIT")))
        rc = sqlite3_extended_errcode(c->db);
    if (rc == SQLITE_OK)
        return DB_OK;
    db_set_error(error, "%s: %s", path, c->db ? sqlite3_errmsg(c->db) : sqlite3_errstr(rc));
    db_conn_close(c);
    return db_cause(rc);
}

void db_conn_close(struct db_conn *c)
{
    for (int i = 0; i < SLOTS; i++)
        sqlite3_finalize(c->statements[i]);
    db_app_cache_free(c->apps);
    sqlite3_close(c->db);
    *c = (struct db_conn){0};
}

sqlite3_stmt *db_conn_statement(struct db_conn *c, enum db_slot slot, const char *sql)
{
    sqlite3_stmt **s = &c->statements[slot];
    if (*s != NULL)
        return *s;
    if (sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, s, NULL) != SQLITE_OK)
        return NULL;
    return *s;
}

enum db_result db_conn_failed(struct db_conn *c)
{
    enum db_result cause = db_cause(sqlite3_extended_errcode(c->db));
    return cause == DB_OK ? DB_BROKEN : cause;
}

int db_conn_run(sqlite3_stmt *s)
{
    int rc = sqlite3_step(s);
    int reset = sqlite3_reset(s);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_DONE : reset;
}

int db_conn_do(struct db_conn *c, enum db_slot slot, const char *sql)
{
    sqlite3_stmt *s = db_conn_statement(c, slot, sql);
    return s != NULL ? db_conn_run(s) : sqlite3_extended_errcode(c->db);
}
