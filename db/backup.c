#include "db/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "db/burst.h"
#include "db/copy.h"
#include "db/place.h"

/* The cause of a failed system call on path. */
static enum db_result failed(struct db_error *error, const char *path)
{
    int why = errno;
    db_set_error(error, "%.300s: %s", path, strerror(why));
    return why == EEXIST ? DB_REFUSED : why == ENOSPC || why == EDQUOT ? DB_FULL : DB_BROKEN;
}

static enum db_result name_file(struct db_place *to, struct db_error *error)
{
    struct tm tm;
    char stamp[32];
    time_t now = time(NULL);
    if (to->name[0] != 0)
        return DB_OK;
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", gmtime_r(&now, &tm));
    if (db_place_name(to, "hanji-%s.db", stamp))
        return DB_OK;
    return db_refuse(error, to->folder, "the name is too long");
}

/* The copy holds what the snapshot held, and nothing in it is wrong. */
static enum db_result verify(const struct db_backup *b, const char *temp,
                             const struct db_totals *want, struct db_error *error)
{
    struct db_conn c;
    struct db_totals have = {0};
    struct db_watch *w = b->watch;
    enum db_result result = db_copy_look(temp, error);
    if (w->progress != NULL)
        w->progress(w->arg, "verify", 0, 1);
    if (result == DB_OK)
        result = db_copy_begin(&c, temp, &have, error);
    if (result != DB_OK)
        return result;
    if (have.pages != want->pages || have.documents != want->documents || have.seq != want->seq ||
        have.schema != want->schema) {
        db_set_error(error, "the copy does not hold what was copied");
        result = DB_BROKEN;
    }
    if (result == DB_OK)
        result = db_check_integrity(&c, b->each, b->arg, error);
    if (result == DB_OK)
        result = db_check_rules(&c, false, b->each, b->arg, error);
    db_conn_close(&c);
    if (w->progress != NULL && result == DB_OK)
        w->progress(w->arg, "verify", 1, 1);
    return result;
}

/* Copies into the file fd and verifies it. */
static enum db_result fill(struct db_backup *b, const struct db_config *config, int fd,
                           struct db_error *error)
{
    struct db_conn from;
    struct db_totals totals;
    struct stat st;
    uint64_t start_us = db_clock_us();
    enum db_result result = db_copy_begin(&from, config->path, &totals, error);
    if (result != DB_OK)
        return result;
    result = db_copy_pages(&from, b->watch->temp, fd, b->watch, error);
    db_conn_close(&from); /* the log may be used again while the copy is verified */
    b->held_ms = (db_clock_us() - start_us) / 1000;
    b->documents = totals.documents;
    b->seq = totals.seq;
    if (result == DB_OK)
        result = verify(b, b->watch->temp, &totals, error);
    if (result == DB_OK && fstat(fd, &st) == 0)
        b->size_bytes = (uint64_t)st.st_size;
    return result;
}

static enum db_result copy_to(struct db_backup *b, const struct db_config *config,
                              const struct db_place *to, struct db_error *error)
{
    struct db_place part = *to;
    if (!db_place_name(&part, ".hanji-backup.%ld.part", (long)getpid()) ||
        !db_place_path(&part, "", b->watch->temp))
        return db_refuse(error, to->folder, "the name is too long");
    b->watch->unfinished = 1; /* before it is there: a signal may come at once */
    int fd = db_place_make(&part, 0600);
    if (fd < 0) {
        b->watch->unfinished = 0;
        return failed(error, b->watch->temp);
    }
    enum db_result result = fill(b, config, fd, error);
    if (result == DB_OK && !db_place_put(to, part.name, b->replace))
        result = failed(error, b->path);
    if (result == DB_OK && !db_place_sync(to))
        result = failed(error, to->folder);
    if (result != DB_OK)
        unlinkat(part.dir, part.name, 0);
    b->watch->unfinished = 0;
    close(fd);
    return result;
}

enum db_result db_backup(const struct db_config *config, struct db_backup *b,
                         struct db_error *error)
{
    struct db_place to;
    enum db_result result = db_place_open(&to, b->dest, error);
    if (result == DB_OK)
        result = name_file(&to, error);
    if (result == DB_OK)
        result = db_place_judge(&to, config->path, b->replace, error);
    if (result == DB_OK && !db_place_path(&to, "", b->path))
        result = db_refuse(error, to.folder, "the name is too long");
    if (result == DB_OK)
        result = copy_to(b, config, &to, error);
    db_place_close(&to);
    return result;
}
