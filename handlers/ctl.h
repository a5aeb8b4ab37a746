/* Operator commands: what `hanji COMMAND` does besides serving.
 *
 * Each gets the arguments behind its name and returns the exit status: 0 done, 1 failed, 2 wrong
 * usage. Results go to standard output, everything else to standard error. */
#ifndef HANJI_HANDLERS_CTL_H
#define HANJI_HANDLERS_CTL_H

#include "fcgi/conf.h"

enum { CTL_OK = 0, CTL_FAILED = 1, CTL_USAGE = 2 };

typedef int ctl_fn(const struct conf *conf, int argc, char **argv);

ctl_fn ctl_token;   /* token new|list|revoke */
ctl_fn ctl_sql;     /* sql [SQL...] */
ctl_fn ctl_check;   /* check [FILE] */
ctl_fn ctl_backup;  /* backup [--force] DEST */
ctl_fn ctl_restore; /* restore FILE */

#endif
