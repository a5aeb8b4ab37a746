/* A name in a folder, for files that operators ask for: making, comparing and replacing files
 * without following a link at the name.
 *
 * The folder is resolved once and held open; everything happens relative to it, so that nobody can
 * put another folder under the name meanwhile. */
#ifndef HANJI_DB_PLACE_H
#define HANJI_DB_PLACE_H

#include <limits.h>
#include <sys/stat.h>

#include "db/db.h"

struct db_place {
    int dir; /* the open folder, -1: none */
    char folder[PATH_MAX];   /* its name without links */
    char name[NAME_MAX + 1]; /* of the file in it; may be "" */
};

/* Splits path and opens the folder. A path that names a folder, or ends in '/', leaves name "".
 * DB_BROKEN with error set when the folder cannot be opened or a name is too long. */
enum db_result db_place_open(struct db_place *p, const char *path, struct db_error *error)
    __attribute__((warn_unused_result));

/* Safe when it was not opened but has dir -1. */
void db_place_close(struct db_place *p);

/* Sets name from a printf format. False when it is too long. */
bool db_place_name(struct db_place *p, const char *format, ...)
    __attribute__((format(printf, 2, 3), warn_unused_result));

/* "FOLDER/NAME" plus a suffix ("" for none) in out; false when it does not fit. */
bool db_place_path(const struct db_place *p, const char *suffix, char out[PATH_MAX])
    __attribute__((warn_unused_result));

/* What stands under NAME plus suffix, a link itself. False when there is nothing. */
bool db_place_stat(const struct db_place *p, const char *suffix, struct stat *st)
    __attribute__((warn_unused_result));

/* Whether an operator may have a new file there: DB_REFUSED with error set when the name is a link,
 * one of the files of the database, no file, or exists and shall not be replaced; and when a -wal
 * or -journal beside it would be taken for the new file's. */
enum db_result db_place_judge(const struct db_place *to, const char *database, bool replace,
                              struct db_error *error) __attribute__((warn_unused_result));

/* Makes the file, which must not exist; a descriptor for reading and writing, or -1 (errno). */
int db_place_make(const struct db_place *p, mode_t mode) __attribute__((warn_unused_result));

/* Puts the file `from` of the same folder under p's name. Without `replace` an existing name is
 * EEXIST. False with errno set. */
bool db_place_put(const struct db_place *p, const char *from, bool replace)
    __attribute__((warn_unused_result));

/* Makes names durable. False with errno set. */
bool db_place_sync(const struct db_place *p) __attribute__((warn_unused_result));

#endif
