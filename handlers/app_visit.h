/* A request to an app, in a form that can outlive the request; and what is to be answered.
 *
 * On the loop a visit points into the request and the session; one that parks or goes to another
 * thread is copied whole (app_visit_keep) and holds its app. */
#ifndef HANJI_HANDLERS_APP_VISIT_H
#define HANJI_HANDLERS_APP_VISIT_H

#include "handlers/app.h"
#include "handlers/app_fields.h"
#include "handlers/app_out.h"
#include "handlers/store.h"

enum {
    APP_MESSAGE_MAX = 500,        /* bytes of a sentence that an app's SQL says */
    APP_ANSWER_MAX = 16 << 20,    /* bytes of JSON or HTML */
    APP_LOOP_ANSWER_MAX = 256 << 10, /* … that is made on a loop's thread */
    APP_LOOP_LIMIT_US = 2000,     /* for what runs there */
};

/* Fields of a body that was sent, kept to be shown again. */
struct app_input {
    char *memory;       /* the body, decoded in place, from malloc */
    struct buf text;    /* what could not stand in it */
    struct buf fields;  /* struct app_field, one behind the other */
    unsigned count;
};

struct app_visit {
    const struct app *app;
    const struct app_route *route;
    const struct db_script *script; /* what is run; NULL: nothing, it is only a page */
    const struct cursor_keys *cursors;
    const char *spool; /* folder for answers that are too long for memory */
    enum app_format format;
    bool https;
    bool person; /* the answer hangs on who asks */
    const char *method; /* a constant */
    int64_t now_s;
    struct str mount;
    struct str base; /* of the app: the mount, "/apps/NAME/" */
    struct str path; /* below the mount */
    struct str query;
    struct str cookie;
    struct str request_id;
    struct str user;   /* p is NULL: nobody, or a program */
    struct str result; /* which one of CSV; p is NULL: the last */
    struct str error;  /* said above a form that is shown again; p is NULL: nothing is wrong */
    unsigned status;   /* what is answered unless the SQL says something else */
    const struct app_input *input; /* what was sent then */
    unsigned segments;
    struct app_segment segment[APP_SEGMENTS_MAX];
    struct db_value value[DB_SCRIPT_NAMES_MAX]; /* of the script's names */
};

/* The bytes that a copy needs behind it, and the copy: *to with its text in memory. */
size_t app_visit_bytes(const struct app_visit *v);
void app_visit_keep(const struct app_visit *v, struct app_visit *to, char *memory);

/* What is answered, as far as it hangs on the app. */
struct app_answer {
    unsigned status;  /* 0: nothing was said */
    const char *type; /* Content-Type of text or file; NULL: it is in head */
    struct buf *head; /* header lines, each ended by CRLF */
    struct buf *text; /* the body */
    struct buf *spare; /* scratch */
    int fd;           /* a file without a name that has the body instead, or -1 */
    uint64_t bytes;   /* of it */
    bool raw;         /* the body is what _body said */
    bool located;     /* head has a Location */
    bool cached;      /* head has a Cache-Control */
    bool stopped;     /* a status of 400 or more was said: message, and no body */
    char message[APP_MESSAGE_MAX + 1];
};

/* Forgets what was said. Keeps the buffers. */
void app_answer_reset(struct app_answer *a);

#endif
