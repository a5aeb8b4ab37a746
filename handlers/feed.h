/* How entries of the change feed look. */
#ifndef HANJI_HANDLERS_FEED_H
#define HANJI_HANDLERS_FEED_H

#include "db/change.h"
#include "handlers/json.h"

/* Answers are as new as the moment; and JSON or a stream, as Accept says. */
#define FEED_HEADERS "Cache-Control: no-cache\r\nVary: Accept\r\n"

/* {"seq":7,"key":"notes/a","op":"put","etag":"\"7\""}; etag is null where the document is gone. */
void feed_json(struct json *j, const struct db_change *change);

#endif
