/* What a client sends to an app, as fields: names with values, from a query, a form, or JSON.
 *
 * Everything is decoded where it stands, or into memory that the caller has for it; each field is
 * told once, in order. Text is UTF-8 and may hold NULs. What is malformed is refused as a whole,
 * also where nobody would have looked at it. Pure functions, any thread. */
#ifndef HANJI_HANDLERS_APP_FIELDS_H
#define HANJI_HANDLERS_APP_FIELDS_H

#include <stdint.h>

#include "fcgi/buf.h"

enum {
    APP_FIELDS_MAX = 1000,
    APP_FIELD_NAME_MAX = 200, /* longer names are nobody's, and are not told */
};

enum app_field_kind {
    APP_FIELD_TEXT,
    APP_FIELD_NULL,
    APP_FIELD_INT,
    APP_FIELD_REAL,
    APP_FIELD_FILE, /* bytes, with type and file_name */
};

struct app_field {
    struct str name;
    uint8_t kind;
    struct str value; /* of TEXT and FILE */
    int64_t i;
    double r;
    struct str type;      /* of FILE: the Content-Type that was sent, or application/octet-stream */
    struct str file_name; /* of FILE: the last segment of the name that was sent */
};

/* Told each field. False: no more; whoever said so knows why. */
typedef bool app_field_fn(void *arg, const struct app_field *field);

enum app_fields_result {
    APP_FIELDS_OK,
    APP_FIELDS_STOPPED, /* by app_field_fn */
    APP_FIELDS_BAD,     /* malformed: a sentence says how */
    APP_FIELDS_NO_MEMORY,
};

struct app_fields_sink {
    app_field_fn *each;
    void *arg;
    const char *wrong; /* filled with APP_FIELDS_BAD: a sentence about what was sent */
};

/* application/x-www-form-urlencoded (WHATWG URL 5.1): also a query. Decodes into `to`, which has
 * room for text.n bytes and may be the same memory. */
enum app_fields_result app_fields_form(struct str text, char *to, struct app_fields_sink *sink)
    __attribute__((warn_unused_result));

/* multipart/form-data of that Content-Type (handlers/multipart.h). Names are decoded in place. A
 * file that is empty and has no name is NULL: that is what a form sends when none was chosen. */
enum app_fields_result app_fields_multipart(char *body, size_t n, struct str type,
                                            struct app_fields_sink *sink)
    __attribute__((warn_unused_result));

/* The members of a JSON object, decoded into text, whose memory does not move: it must have room
 * for n bytes. Whole numbers of 64 bits are INT, others REAL, or their text where REAL would change
 * them; true is 1 and false 0; arrays and objects are their JSON. */
enum app_fields_result app_fields_json(struct str body, struct buf *text,
                                       struct app_fields_sink *sink)
    __attribute__((warn_unused_result));

/* Decodes percent escapes and '+' of a form, in the way of app_fields_form. False: an escape is
 * broken, or what comes of it is not UTF-8. */
bool app_fields_unescape(struct str text, char *to, size_t *n) __attribute__((warn_unused_result));

#endif
