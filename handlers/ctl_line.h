/* `hanji line`: what of it only looks. */
#ifndef HANJI_HANDLERS_CTL_LINE_H
#define HANJI_HANDLERS_CTL_LINE_H

#include "fcgi/conf.h"

/* Why a line is paused that a person paused. */
#define CTL_LINE_PAUSED "paused by an operator"

/* Print the lines; one line with its keys and what is parked on it, or one of its messages with its
 * tries (id not NULL). The exit status. */
int ctl_line_list(const struct conf *conf);
int ctl_line_show(const struct conf *conf, const char *name, const char *id);

#endif
