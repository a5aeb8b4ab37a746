/* The console over HTTP: /console/, and /console, which leads there. */
#ifndef HANJI_HANDLERS_CONSOLE_H
#define HANJI_HANDLERS_CONSOLE_H

#include "handlers/routes.h"

handler_fn console;

struct store;

/* Gives the functions of the console's SQL (db/guard.h) what they need of the server: its figures,
 * its apps, and tokens. Once, before the loops run; store must outlive them. */
void console_hooks(struct store *store);

#endif
