/* Small pages. */
#ifndef HANJI_HANDLERS_HTML_H
#define HANJI_HANDLERS_HTML_H

#include "handlers/json.h"

/* Appends text so that it is text, in an element or in a quoted attribute. */
void html_text(struct json *j, struct str text);

#endif
