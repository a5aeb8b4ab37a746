/* The files below static/ of an app: judged here, sent by the web server.
 *
 * For the document server `sendfile_header` decides how: X-Accel-Redirect to the internal location
 * /_hanji/apps/ of nginx-conf/hanji-locations.conf, X-Sendfile, or streamed by us; files of an app
 * that is part of the program are answered from memory. No name with a segment that begins with
 * '.', nothing but regular files, no link out of static/. */
#ifndef HANJI_HANDLERS_APP_STATIC_H
#define HANJI_HANDLERS_APP_STATIC_H

#include "handlers/app.h"

/* True for a path below the app's that is a file of static/, there or not: "static/app.css". */
bool app_static_is(struct str path);

/* Answers GET and HEAD of it. The caller has judged the method and the right to read. */
enum verdict app_static(struct call *c, const struct app *a, struct str path)
    __attribute__((warn_unused_result));

#endif
