#include "db/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "db/copy.h"
#include "db/migrate.h"
#include "db/place.h"
#include "db/schema.h"

enum {
    STEP_BITS = 40, /* 8191 restores until SEQ_BITS; a lost store had room for 10^12 changes */
    SEQ_BITS = 53,  /* what a number in JSON keeps everywhere */
    KEPT_TRIES = 10,
    FOLD_CACHE_BYTES = 1 << 20,
    SHM_DMS_AT = 128,        /* byte of -shm that every user of the database has locked */
    PENDING_AT = 0x40000000, /* where transactions lock a file that is not in WAL mode */
    PENDING_BYTES = 512,
};

/* The old database, beside which the new one is made. */
struct target {
    struct db_place at;
    char path[PATH_MAX];
    bool exists;
    struct stat st;
};

static enum db_result failed(struct db_error *error, const char *path)
{
    int why = errno;
    db_set_error(error, "%.300s: %s", path, strerror(why));
    return why == ENOSPC || why == EDQUOT ? DB_FULL : DB_BROKEN;
}

/* A process, other than this one, that has locked a part of the file; 0: none. Closing drops locks
 * of this process: only while it has no connection to the database. */
static int64_t locked_by(const struct db_place *at, const char *suffix, off_t from, off_t bytes)
{
    char path[PATH_MAX];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = from, .l_len = bytes};
    int fd = db_place_path(at, suffix, path) ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (fd < 0)
        return 0;
    int64_t pid = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? lock.l_pid : 0;
    close(fd);
    return pid;
}

static enum db_result open_target(struct target *t, const char *database, struct db_error *error)
{
    char real[PATH_MAX];
    const char *path = realpath(database, real) != NULL ? real : database;
    enum db_result result = db_place_open(&t->at, path, error);
    if (result != DB_OK)
        return result;
    if (t->at.name[0] == 0 || !db_place_path(&t->at, "", t->path))
        return db_refuse(error, path, "this is no name for a database");
    t->exists = db_place_stat(&t->at, "", &t->st);
    if (t->exists && !S_ISREG(t->st.st_mode))
        return db_refuse(error, t->path, "something that is no file is there");
    int64_t pid = locked_by(&t->at, "-shm", SHM_DMS_AT, 1);
    if (pid == 0)
        pid = locked_by(&t->at, "", PENDING_AT, PENDING_BYTES);
    if (pid == 0)
        return DB_OK;
    db_set_error(error, "%.300s: process %lld has the database open; end it first", t->path,
                 (long long)pid);
    return DB_REFUSED;
}

static enum db_result open_source(struct db_conn *from, const char *source, const struct target *t,
                                  struct db_totals *totals, struct db_error *error)
{
    struct stat st;
    enum db_result result = db_copy_look(source, error);
    if (result != DB_OK)
        return result;
    if (t->exists && stat(source, &st) == 0 && st.st_dev == t->st.st_dev &&
        st.st_ino == t->st.st_ino)
        return db_refuse(error, source, "this is the database itself");
    result = db_copy_begin(from, source, totals, error);
    if (result != DB_OK)
        return result;
    if (totals->schema <= (int64_t)schema_step_count)
        return DB_OK;
    db_conn_close(from);
    db_set_error(error, "%.300s: its schema is number %lld, this program knows %zu: upgrade it",
                 source, (long long)totals->schema, schema_step_count);
    return DB_REFUSED;
}

/* Copies the old database's log into it, so that the file is whole by itself. */
static enum db_result fold_old(const struct target *t, struct db_error *error)
{
    struct db_conn old;
    enum db_result result = db_conn_open(&old, t->path, DB_WRITE, FOLD_CACHE_BYTES, error);
    if (result != DB_OK)
        return result;
    db_conn_keep_wal(&old);
    int rc = sqlite3_wal_checkpoint_v2(old.db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if (rc != SQLITE_OK)
        db_set_error(error, "%.300s: its log cannot be copied into it: %s", t->path,
                     sqlite3_errmsg(old.db));
    db_conn_close(&old);
    return db_cause(rc);
}

/* The last number that the old database knows of, if there is one that can be read. It is looked at
 * without the right to write first: SQLite would throw away the log of a damaged one. */
static enum db_result ask_old(const struct target *t, struct db_restore *r, uint64_t *seq,
                              struct db_error *error)
{
    struct db_conn old;
    struct db_totals totals = {0};
    *seq = 0;
    if (!t->exists)
        return DB_OK;
    enum db_result result = t->st.st_size > 0 ? db_conn_open(&old, t->path, DB_READ,
                                                             FOLD_CACHE_BYTES, error)
                                              : DB_BROKEN;
    bool not_ours = false;
    if (result == DB_OK) {
        result = db_migrate_owner(&old, error);
        not_ours = result == DB_REFUSED && sqlite3_errcode(old.db) != SQLITE_NOTADB;
        if (result == DB_OK)
            result = db_copy_totals(&old, &totals, error);
        db_conn_close(&old);
    }
    if (not_ours)
        return db_refuse(error, t->path,
                         "another or a newer program made it; move it away by hand");
    *seq = totals.seq;
    if (result == DB_OK)
        result = fold_old(t, error);
    r->unreadable = result == DB_BROKEN || result == DB_REFUSED;
    return r->unreadable ? DB_OK : result;
}

static int bind_and_run(sqlite3 *db, const char *sql, int64_t value)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (rc == SQLITE_OK && sqlite3_bind_parameter_count(s) > 0)
        rc = sqlite3_bind_int64(s, 1, value);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(s) == SQLITE_DONE ? SQLITE_OK : sqlite3_extended_errcode(db);
    sqlite3_finalize(s);
    return rc;
}

/* The store goes on from `horizon`. What later changes made useless leaves the feed first: the mark
 * of what was looked at must be beyond the gap. */
static int go_on_from(sqlite3 *db, uint64_t horizon)
{
    static const char *const steps[] = {
        "BEGIN IMMEDIATE",
        "DELETE FROM change WHERE seq IN (SELECT prev FROM change WHERE prev IS NOT NULL)",
        "DELETE FROM sqlite_sequence WHERE name = 'change'",
        "INSERT INTO sqlite_sequence (name, seq) VALUES ('change', ?1)",
        /* What was sent since would be sent again, under numbers that are taken: not before a
         * person says so. */
        "UPDATE line SET state = 'paused', reason = 'restored' WHERE state <> 'disabled'",
        "DELETE FROM session", /* one that was ended since must not be valid again */
        "INSERT INTO meta (name, value) VALUES ('horizon', ?1)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        "INSERT INTO meta (name, value) VALUES ('pruned', ?1)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        "COMMIT",
    };
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof steps / sizeof *steps; i++)
        rc = bind_and_run(db, steps[i], (int64_t)horizon);
    return rc;
}

/* Nothing in the copy is wrong, and it has this program's schema. */
static enum db_result verify(struct db_conn *c, struct db_restore *r, struct db_error *error)
{
    struct db_watch *w = r->watch;
    if (w->progress != NULL)
        w->progress(w->arg, "verify", 0, 1);
    enum db_result result = db_check_integrity(c, r->each, r->arg, error);
    if (result == DB_OK)
        result = db_migrate_steps(c, error);
    if (result == DB_OK)
        result = db_check_rules(c, false, r->each, r->arg, error);
    if (w->progress != NULL && result == DB_OK)
        w->progress(w->arg, "verify", 1, 1);
    return result;
}

/* Makes the copy a store that may take the old one's place. */
static enum db_result prepare(const struct target *t, struct db_restore *r, struct db_error *error)
{
    struct db_conn c;
    uint64_t old_seq = 0;
    enum db_result result = db_copy_open(&c, r->watch->temp, error);
    if (result != DB_OK)
        return result;
    result = verify(&c, r, error);
    if (result == DB_OK)
        result = ask_old(t, r, &old_seq, error);
    uint64_t newest = r->backup_seq > old_seq ? r->backup_seq : old_seq;
    r->horizon = ((newest >> STEP_BITS) + 1) << STEP_BITS;
    if (result == DB_OK && r->horizon >> SEQ_BITS != 0)
        result = db_refuse(error, r->source, "no sequence numbers are left to go on from");
    if (result == DB_OK && go_on_from(c.db, r->horizon) != SQLITE_OK) {
        db_set_error(error, "%.300s: %s", r->watch->temp, sqlite3_errmsg(c.db));
        result = db_conn_failed(&c);
    }
    db_conn_close(&c);
    return result;
}

/* Owner and mode as the old file had them; else the folder's owner, and its group may read. */
static enum db_result give_away(const struct target *t, int fd, struct db_error *error)
{
    struct stat dir;
    if (!t->exists && fstat(t->at.dir, &dir) != 0)
        return failed(error, t->at.folder);
    const struct stat *as = t->exists ? &t->st : &dir;
    mode_t mode = t->exists ? t->st.st_mode & 07777 : 0640;
    bool wanted = as->st_uid != geteuid() || as->st_gid != getegid();
    if (wanted && fchown(fd, as->st_uid, as->st_gid) != 0 && geteuid() == 0)
        return failed(error, t->path);
    if (fchmod(fd, mode) != 0 || fsync(fd) != 0)
        return failed(error, t->path);
    return DB_OK;
}

/* Gives the old file a second name, `kept`. */
static enum db_result link_old(const struct target *t, struct db_place *kept,
                               struct db_restore *r, struct db_error *error)
{
    struct tm tm;
    char stamp[32], again[16] = "";
    time_t now = time(NULL);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", gmtime_r(&now, &tm));
    for (int i = 1;; i++) {
        if (!db_place_name(kept, "%s.before-restore-%s%s", t->at.name, stamp, again) ||
            !db_place_path(kept, "", r->kept))
            return db_refuse(error, t->path, "the name is too long");
        if (linkat(t->at.dir, t->at.name, t->at.dir, kept->name, 0) == 0)
            return DB_OK;
        if (errno != EEXIST || i >= KEPT_TRIES)
            break;
        snprintf(again, sizeof again, "-%d", i);
    }
    if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK)
        return db_refuse(error, t->path, "the file system has no hard links: move the database and "
                                      "its -wal away by hand, then restore again");
    return failed(error, r->kept);
}

/* Gives the log of an old file that could not be opened a second name as well. */
static bool link_log(const struct target *t, const struct db_place *kept, const char *suffix)
{
    char from[PATH_MAX], to[PATH_MAX];
    return db_place_path(&t->at, suffix, from) && db_place_path(kept, suffix, to) &&
           (link(from, to) == 0 || errno == ENOENT);
}

/* The old log goes before the new file comes: it was copied into the old one, or stands beside its
 * second name. */
static bool unlink_logs(const struct target *t)
{
    static const char *const parts[] = {"-wal", "-journal", "-shm"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!db_place_path(&t->at, parts[i], path) || (unlink(path) != 0 && errno != ENOENT))
            return false;
    return true;
}

/* A crash at any moment leaves the old store or the new one. */
static enum db_result swap(const struct target *t, const char *temp_name, struct db_restore *r,
                           struct db_error *error)
{
    struct db_place kept = t->at;
    enum db_result result = t->exists ? link_old(t, &kept, r, error) : DB_OK;
    if (result != DB_OK)
        return result;
    bool linked = !r->unreadable || (link_log(t, &kept, "-wal") && link_log(t, &kept, "-journal"));
    if (linked && db_place_sync(&t->at) && unlink_logs(t) && db_place_sync(&t->at) &&
        db_place_put(&t->at, temp_name, true))
        return db_place_sync(&t->at) ? DB_OK : failed(error, t->at.folder);
    result = failed(error, t->path);
    if (t->exists && !r->unreadable)
        unlinkat(kept.dir, kept.name, 0);
    return result;
}

static enum db_result restore_into(struct target *t, struct db_restore *r, struct db_error *error)
{
    struct db_conn from;
    struct db_totals totals = {0};
    struct db_place part = t->at;
    int fd = -1;
    if (!db_place_name(&part, ".%s.restoring", t->at.name) ||
        !db_place_path(&part, "", r->watch->temp))
        return db_refuse(error, t->path, "the name is too long");
    enum db_result result = open_source(&from, r->source, t, &totals, error);
    if (result != DB_OK)
        return result;
    unlinkat(part.dir, part.name, 0); /* of a restore that was cut off: the lock is ours */
    r->watch->unfinished = 1; /* before it is there: a signal may come at once */
    fd = db_place_make(&part, 0600);
    result = fd >= 0 ? db_copy_pages(&from, r->watch->temp, fd, r->watch, error)
                     : failed(error, r->watch->temp);
    db_conn_close(&from);
    r->documents = totals.documents;
    r->backup_seq = totals.seq;
    if (result == DB_OK)
        result = prepare(t, r, error);
    if (result == DB_OK)
        result = give_away(t, fd, error);
    if (result == DB_OK)
        result = swap(t, part.name, r, error);
    if (result != DB_OK && fd >= 0)
        unlinkat(part.dir, part.name, 0);
    r->watch->unfinished = 0;
    if (fd >= 0)
        close(fd);
    return result;
}

enum db_result db_restore(const struct db_config *config, struct db_restore *r,
                          struct db_error *error)
{
    struct target t = {.at = {.dir = -1}};
    r->kept[0] = 0;
    r->unreadable = false;
    enum db_result result = open_target(&t, config->path, error);
    if (result == DB_OK)
        result = restore_into(&t, r, error);
    db_place_close(&t.at);
    return result;
}
