/* Looking into JSON that is in memory: values as slices of the text, byte for byte.
 *
 * Nothing is converted, so large numbers, spelling, duplicate names and order survive for whoever
 * stores a slice. The text must have passed json_check; for any other the answers are meaningless,
 * but nothing outside of it is touched. Pure functions, any thread. */
#ifndef HANJI_HANDLERS_JSON_READ_H
#define HANJI_HANDLERS_JSON_READ_H

#include "fcgi/buf.h"

enum json_kind {
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL
};

/* The value of a text, without the white space around it. */
struct str json_value(struct str text);

enum json_kind json_kind(struct str value);

/* A place between the members of an object or the items of an array. */
struct json_walk {
    const char *p;
    const char *end;
};

struct json_walk json_enter(struct str value);

/* The next item of an array; false at its end. */
bool json_item(struct json_walk *w, struct str *item);

/* The next member of an object, the name with its quotes; false at its end. */
bool json_member(struct json_walk *w, struct str *name, struct str *value);

/* True when the string, which has its quotes, says text, whatever its escapes. */
bool json_says(struct str string, const char *text);

enum json_text {
    JSON_TEXT_OK,
    JSON_TEXT_HALF, /* half of a surrogate pair, which is no character */
    JSON_TEXT_LONG, /* out would pass max_bytes */
    JSON_TEXT_NO_MEMORY
};

/* Appends what the string says to out, in UTF-8. */
enum json_text json_text(struct str string, struct buf *out, size_t max_bytes)
    __attribute__((warn_unused_result));

#endif
