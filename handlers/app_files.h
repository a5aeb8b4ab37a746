/* The files of an app that are read: which they are by their names, and their bytes.
 *
 * Names that begin with '.' are nobody's business, static/ is not looked into. A link is followed
 * as far as it stays in the app's folder. */
#ifndef HANJI_HANDLERS_APP_FILES_H
#define HANJI_HANDLERS_APP_FILES_H

#include "db/script.h"
#include "handlers/app.h"

enum {
    APP_FILES_MAX = 1200,
    APP_FILE_BYTES_MAX = 256 << 10,
    APP_ALL_BYTES_MAX = 8 << 20,
    APP_DEPTH_MAX = 8,
    APP_PATH_MAX = 255,
};

enum app_kind {
    APP_NOTHING, /* not read */
    APP_INI,     /* app.ini */
    APP_SCHEMA,  /* schema/NNN-name.sql */
    APP_SCRIPT,  /* ROUTE.get.sql … */
    APP_EVENT,   /* EVENT.inbox.sql; pattern is EVENT */
    APP_PAGE,    /* ROUTE.html */
    APP_PARTIAL, /* _name.html, and any .html in a folder _name */
};

struct app_text {
    enum app_kind kind;
    enum app_method method;         /* of a script */
    char pattern[APP_PATH_MAX + 1]; /* of a script, an event and a page */
    char path[APP_PATH_MAX + 1];    /* below the app's folder */
    const char *data;
    size_t bytes;
};

struct app_files {
    struct app_text *list; /* in order of path */
    unsigned count;
    size_t bytes;
    bool owned; /* data are from malloc */
    int64_t newest_ms; /* when one of them was changed last, Unix milliseconds */
};

/* What a path below the app's folder is. NULL, or why there must be no such file: a constant. Fills
 * kind, method, pattern and path. */
const char *app_file_kind(const char *path, struct app_text *text);

/* True for the name of an event: 1 to 64 letters, digits, '-' and '_', a letter or digit first. */
bool app_event_ok(struct str name);

/* Reads them all. Tells every fault; what was read is in files in any case, to be freed. */
void app_files_read(struct app_files *files, const struct app_source *source,
                    struct db_faults *faults);
void app_files_free(struct app_files *files);

/* The file with that path; NULL: there is none. */
const struct app_text *app_files_find(const struct app_files *files, const char *path);

/* Opens a file below the folder that is open as dir, without following a link out of it. -1 with
 * errno set: EXDEV or ELOOP where a link would have had to be followed. */
int app_open_below(int dir, const char *path, int flags) __attribute__((warn_unused_result));

#endif
