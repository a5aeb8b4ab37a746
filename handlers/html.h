/* Text in pages of HTML.
 *
 * What is written here is text again for whoever reads the page, in an element or in a quoted
 * attribute: & < > " ' become references, all else stays as it is. Any thread. */
#ifndef HANJI_HANDLERS_HTML_H
#define HANJI_HANDLERS_HTML_H

#include "handlers/json.h"

/* Appends text, escaped; false as for buf_add. Part of it may be there then. */
bool html_add(struct buf *out, struct str text, size_t max_bytes)
    __attribute__((warn_unused_result));

/* The same into a page that is written with the functions of json.h. */
void html_text(struct json *j, struct str text);

/* How many bytes at the start of text can stand in a page as they are. Eight at a time. */
size_t html_plain(struct str text);

#endif
