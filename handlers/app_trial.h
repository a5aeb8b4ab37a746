/* A store that lives a moment: the real migrations in a folder of its own, to try an app's tables
 * and statements in. */
#ifndef HANJI_HANDLERS_APP_TRIAL_H
#define HANJI_HANDLERS_APP_TRIAL_H

#include "db/op.h"

struct app_trial {
    struct db_config db;
    char folder[256];
    char path[280];
};

/* Names a new folder below spool. False with errno set. */
bool app_trial_open(struct app_trial *t, const char *spool) __attribute__((warn_unused_result));

/* Removes it with all that is in it. */
void app_trial_close(struct app_trial *t);

#endif
