/* What the columns of an app's SQL whose names begin with '_' say about the answer.
 *
 *     _status    200 to 599; from 400 on it is an error, and the column `message` says what
 *     _location  relative to the app, "/…" below the mount, or http(s)://…
 *     _cookie    "name=value", maybe "; Max-Age=SECONDS" behind it
 *     _cache     Cache-Control
 *     _type, _body, _filename   the answer is that cell
 *
 * Whatever they say becomes header lines that are well-formed, or a fault of the app. */
#ifndef HANJI_HANDLERS_APP_STEER_H
#define HANJI_HANDLERS_APP_STEER_H

#include "handlers/app_visit.h"

enum app_steer {
    APP_STEER_OK,
    APP_STEER_WRONG, /* a.message says what, to the app's owner */
    APP_STEER_NO_MEMORY,
};

/* Takes what the row says that the cursor is at. */
enum app_steer app_steer(const struct app_visit *v, const struct db_cursor *row,
                         struct app_answer *a) __attribute__((warn_unused_result));

/* The value of a cookie that _cookie set earlier, decoded into to, which has room for
 * the bytes of the request's. False: there is none. */
enum { APP_COOKIE_MAX = 1024 };
bool app_cookie(const struct app_visit *v, struct str name, char *to, size_t *n)
    __attribute__((warn_unused_result));

/* Content-Disposition: attachment with a name that any header can have, made of text. */
bool app_disposition(struct buf *head, struct str name) __attribute__((warn_unused_result));

#endif
