/* What a Content-Type says about a body. Pure functions, any thread. */
#ifndef HANJI_HANDLERS_CONTENT_H
#define HANJI_HANDLERS_CONTENT_H

#include "db/op.h"
#include "fcgi/buf.h"

/* True for what can be stored and sent back as a header: printable ASCII with a '/' in it, at most
 * DB_TYPE_MAX bytes. RFC 9110 8.3.1 allows more in quoted parameters than anybody sends. */
bool content_type_ok(struct str type);

/* application/json and everything that ends in +json, whatever the parameters. */
bool content_is_json(struct str type);

/* text/… and JSON. */
bool content_is_text(struct str type);

/* TEXT in the file, for people and json_extract, where that gives back the same bytes. */
enum db_value_type content_form(struct str type, const void *body, size_t n);

#endif
