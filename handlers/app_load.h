/* From an app's files to an app: parsed, its tables made, every statement and template compiled.
 *
 * An app is made whole or not at all. Tables that are due are first made in a store of their own,
 * where everything is compiled; only what compiles there changes the real file. A file of schema/
 * that reads differently since it was run is told and nothing else: the app goes on with the tables
 * that are there. */
#ifndef HANJI_HANDLERS_APP_LOAD_H
#define HANJI_HANDLERS_APP_LOAD_H

#include "handlers/app_files.h"
#include "handlers/app_news.h"

struct app_loading {
    const struct app_source *source;
    const struct db_config *db; /* the store it is for */
    const char *spool;          /* a folder for a store that lives a moment */
    uint64_t body_max;          /* of the server */
    struct app_news *news;      /* the app holds it; NULL: an app that is only checked */
    /* Applies an operation of the writer and waits for its result. */
    enum db_result (*apply)(void *arg, struct db_op *op);
    void *arg;
};

/* NULL: a fault was told. Not on a loop's thread. The files are not needed any more afterwards. */
struct app *app_load(const struct app_loading *l, const struct app_files *files,
                     struct db_faults *faults) __attribute__((warn_unused_result));

/* The same without any store of ours: in a new one that is gone afterwards. True: no fault. */
bool app_check(const struct app_loading *l, const struct app_files *files,
               struct db_faults *faults);

#endif
