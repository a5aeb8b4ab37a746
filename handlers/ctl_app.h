/* hanji app: the parts of the command. Each gets the arguments behind its word. */
#ifndef HANJI_HANDLERS_CTL_APP_H
#define HANJI_HANDLERS_CTL_APP_H

#include "handlers/ctl.h"

ctl_fn ctl_app_new;   /* new [--from APP] NAME */
ctl_fn ctl_app_check; /* check [NAME|FOLDER] */
ctl_fn ctl_app_list;  /* list */
ctl_fn ctl_app_run;   /* run [--post|--put|--delete] NAME ROUTE [NAME=VALUE]... */

/* Says why and how, returns CTL_USAGE. */
int ctl_app_usage(const char *why);

/* Says that the configuration names no folder of apps, unless it does. */
bool ctl_app_folder(const struct conf *conf);

#endif
