/* Apps over HTTP: /apps/NAME/ROUTE. */
#ifndef HANJI_HANDLERS_APPS_H
#define HANJI_HANDLERS_APPS_H

#include "handlers/access.h"
#include "handlers/app.h"
#include "handlers/cursor.h"
#include "handlers/routes.h"

struct store;

handler_fn apps;

/* Reads the secret that protects cursors, and has one made where there is none. NULL, and said in
 * the log, when that cannot be: then lists have no pages but the first. When the store is open,
 * before threads of loops run; the caller frees it. */
struct cursor_keys *apps_cursors(struct store *s);

/* Answers a request to an app that is mounted where the first base_len bytes of the path say, its
 * last slash included: "/apps/scores/", "/console/". */
enum verdict apps_serve(struct call *c, const struct app *app, size_t base_len)
    __attribute__((warn_unused_result));

/* Judges whether who may read the app whose documents a prefix names: "apps/NAME/…". */
enum access apps_judge_documents(struct call *c, const struct credential *who, struct str prefix);

#endif
