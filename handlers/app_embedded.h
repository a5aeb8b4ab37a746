/* Apps whose files the build puts into the program (handlers/embed_apps.sh): the console, and what
 * `hanji app new` writes. */
#ifndef HANJI_HANDLERS_APP_EMBEDDED_H
#define HANJI_HANDLERS_APP_EMBEDDED_H

#include "handlers/app.h"

extern const struct app_source embedded_apps[];
extern const size_t embedded_app_count;

#endif
