/* app.ini: what an app is called, who may use it, and how far it may go. Pure; any thread. */
#ifndef HANJI_HANDLERS_APP_INI_H
#define HANJI_HANDLERS_APP_INI_H

#include "db/script.h"
#include "handlers/app.h"

enum {
    APP_TITLE_MAX = 100,
    APP_PREFIXES_BYTES = 2048,
    APP_CSP_BYTES = 1024,
    APP_ROWS_MAX = 10000,
    APP_TIME_MAX_MS = 60000,
};

struct app_ini {
    char title[APP_TITLE_MAX + 1];
    enum app_access read, write;
    bool documents;
    char documents_read[APP_PREFIXES_BYTES]; /* key prefixes, one a line */
    char documents_write[APP_PREFIXES_BYTES];
    char sends[APP_PREFIXES_BYTES]; /* names of lines, one a line */
    uint64_t rows;
    uint64_t time_ms;
    uint64_t body; /* bytes */
    char csp[APP_CSP_BYTES];
};

/* What holds where nothing is said. */
void app_ini_defaults(struct app_ini *ini, const char *name);

/* Reads n bytes of app.ini over what is there; file is how people know it. Tells every fault. */
void app_ini_read(struct app_ini *ini, const char *file, struct str text,
                  struct db_faults *faults);

#endif
