/* Brings the file to the schema of this program.
 *
 * Steps are numbered files that only add; each whole upgrade is one transaction. A file made for a
 * program newer than this one (meta.min_program) is refused, one with unknown later steps that only
 * added is opened. Called before anything else uses the file, from the thread that starts it. */
#ifndef HANJI_DB_MIGRATE_H
#define HANJI_DB_MIGRATE_H

#include "db/conn.h"

/* Creates the schema in a new file, or applies the steps that are missing. */
enum db_result db_migrate(struct db_conn *c, struct db_error *error)
    __attribute__((warn_unused_result));

/* For those that only read: DB_REFUSED with the reason when the file is not ours, too new or too
 * old. */
enum db_result db_migrate_check(struct db_conn *c, struct db_error *error)
    __attribute__((warn_unused_result));

/* The parts of it, for a copy that is no store yet. Owner: DB_REFUSED with the reason when the file
 * is another program's or needs a newer one. Version: the last step that was applied. Steps:
 * applies those that are missing, in one transaction. */
enum db_result db_migrate_owner(struct db_conn *c, struct db_error *error)
    __attribute__((warn_unused_result));
enum db_result db_migrate_version(struct db_conn *c, int64_t *version, struct db_error *error)
    __attribute__((warn_unused_result));
enum db_result db_migrate_steps(struct db_conn *c, struct db_error *error)
    __attribute__((warn_unused_result));

#endif
