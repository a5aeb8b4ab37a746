/* Lines, messages and tries as JSON: the same over HTTP and for whoever else shows them. No
 * secrets. */
#ifndef HANJI_HANDLERS_SENDS_SHOW_H
#define HANJI_HANDLERS_SENDS_SHOW_H

#include "db/line.h"
#include "handlers/json.h"

/* Writes an object. */
void sends_put_line(struct json *j, const struct db_line *line);

/* Writes the members of a message, without braces. */
void sends_put_message(struct json *j, const struct db_message *m);
void sends_put_attempt(struct json *j, const struct db_attempt *a);

/* "open", "paused", "disabled" */
const char *sends_line_state(enum db_line_state state);

#endif
