#include "handlers/app_fields.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fcgi/path.h"
#include "handlers/content.h"
#include "handlers/json_check.h"
#include "handlers/json_read.h"
#include "handlers/multipart.h"

static enum app_fields_result refuse(struct app_fields_sink *sink, const char *wrong)
{
    sink->wrong = wrong;
    return APP_FIELDS_BAD;
}

/* Counts and tells one field. */
static enum app_fields_result tell(struct app_fields_sink *sink, const struct app_field *field,
                                   unsigned *count)
{
    if (++*count > APP_FIELDS_MAX)
        return refuse(sink, "More than 1000 fields were sent.");
    if (field->name.n > APP_FIELD_NAME_MAX || field->name.n == 0)
        return APP_FIELDS_OK;
    return sink->each(sink->arg, field) ? APP_FIELDS_OK : APP_FIELDS_STOPPED;
}

/* ---- forms ----------------------------------------------------------------------------------- */

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool app_fields_unescape(struct str text, char *to, size_t *n)
{
    size_t len = 0;
    for (size_t i = 0; i < text.n; i++) {
        int c = (unsigned char)text.p[i];
        if (c == '+') {
            c = ' ';
        } else if (c == '%') {
            int hi = i + 1 < text.n ? hex(text.p[i + 1]) : -1;
            int lo = i + 2 < text.n ? hex(text.p[i + 2]) : -1;
            if (hi < 0 || lo < 0)
                return false;
            c = hi * 16 + lo;
            i += 2;
        }
        to[len++] = (char)c;
    }
    *n = len;
    return utf8_ok(to, len);
}

enum app_fields_result app_fields_form(struct str text, char *to, struct app_fields_sink *sink)
{
    static const char wrong[] = "A name or a value that was sent is not UTF-8, or a percent escape "
                                "in it is broken.";
    unsigned count = 0;
    for (size_t at = 0; at < text.n;) {
        const char *p = text.p + at, *amp = memchr(p, '&', text.n - at);
        size_t n = amp != NULL ? (size_t)(amp - p) : text.n - at;
        const char *equals = memchr(p, '=', n);
        size_t name_n = equals != NULL ? (size_t)(equals - p) : n;
        struct app_field f = {.kind = APP_FIELD_TEXT};
        at += n + 1;
        if (n == 0)
            continue;
        f.name.p = to;
        if (!app_fields_unescape((struct str){p, name_n}, to, &f.name.n))
            return refuse(sink, wrong);
        to += f.name.n;
        f.value.p = to;
        if (equals != NULL &&
            !app_fields_unescape((struct str){equals + 1, n - name_n - 1}, to, &f.value.n))
            return refuse(sink, wrong);
        to += f.value.n;
        enum app_fields_result result = tell(sink, &f, &count);
        if (result != APP_FIELDS_OK)
            return result;
    }
    return APP_FIELDS_OK;
}

/* ---- multipart ------------------------------------------------------------------------------- */

/* Undoes what browsers escape in names (HTML 4.10.21.8: %0D, %0A, %22), and a backslash before a
 * quote or a backslash, in place. */
static struct str undo_escapes(char *body, const char *base, struct str s)
{
    char *to = body + (s.p - base), *from = to;
    size_t len = 0;
    for (size_t i = 0; i < s.n; i++) {
        int hi = from[i] == '%' && i + 2 < s.n ? hex(from[i + 1]) : -1;
        int lo = hi >= 0 ? hex(from[i + 2]) : -1;
        int c = hi * 16 + lo;
        if (lo >= 0 && (c == '\r' || c == '\n' || c == '"')) {
            to[len++] = (char)c;
            i += 2;
            continue;
        }
        if (from[i] == '\\' && i + 1 < s.n && (from[i + 1] == '"' || from[i + 1] == '\\'))
            i++;
        to[len++] = from[i];
    }
    return (struct str){to, len};
}

static struct str last_segment(struct str s)
{
    for (size_t i = s.n; i > 0; i--)
        if (s.p[i - 1] == '/' || s.p[i - 1] == '\\')
            return (struct str){s.p + i, s.n - i};
    return s;
}

/* Makes a field of a part. False: it is not UTF-8 where it must be. */
static bool field_of(char *body, const struct multipart_part *part, struct app_field *f)
{
    *f = (struct app_field){.kind = APP_FIELD_TEXT, .value = part->body};
    f->name = undo_escapes(body, body, part->name);
    if (part->file_name.p == NULL)
        return utf8_ok(f->name.p, f->name.n) && utf8_ok(f->value.p, f->value.n);
    f->kind = part->file_name.n == 0 && part->body.n == 0 ? APP_FIELD_NULL : APP_FIELD_FILE;
    /* a path of Windows has backslashes, which are no escapes there */
    f->file_name = last_segment(part->file_name);
    f->file_name = undo_escapes(body, body, f->file_name);
    f->type = part->type.p != NULL && content_type_ok(part->type)
                  ? part->type
                  : STR_LIT("application/octet-stream");
    return utf8_ok(f->name.p, f->name.n) && utf8_ok(f->file_name.p, f->file_name.n);
}

enum app_fields_result app_fields_multipart(char *body, size_t n, struct str type,
                                            struct app_fields_sink *sink)
{
    struct multipart m;
    struct multipart_part part;
    struct app_field f;
    unsigned count = 0;
    if (!multipart_start(&m, type, (struct str){body, n}))
        return refuse(sink, "The body is not multipart/form-data with the boundary that its "
                            "Content-Type names.");
    for (;;) {
        switch (multipart_next(&m, &part)) {
        case MULTIPART_END:
            return APP_FIELDS_OK;
        case MULTIPART_BAD:
            return refuse(sink, "The body is not multipart/form-data that can be read: a part has "
                                "no name, a broken head, or no end.");
        case MULTIPART_PART:
            break;
        }
        if (!field_of(body, &part, &f))
            return refuse(sink, "A name or a value that was sent is not UTF-8.");
        enum app_fields_result result = tell(sink, &f, &count);
        if (result != APP_FIELDS_OK)
            return result;
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* True when the double prints as the digits it was made of. */
static bool exact(double r, struct str digits)
{
    char text[400];
    int n = snprintf(text, sizeof text, "%.0f", r);
    return n > 0 && (size_t)n == digits.n && memcmp(text, digits.p, digits.n) == 0;
}

/* digits is the number, with a NUL behind it. */
static void take_digits(const char *digits, struct str value, struct app_field *f)
{
    bool whole = strspn(digits, "-0123456789") == value.n;
    errno = 0;
    f->i = whole ? strtoll(digits, NULL, 10) : 0;
    f->kind = APP_FIELD_INT;
    if (whole && errno == 0)
        return;
    f->r = strtod(digits, NULL);
    bool finite = f->r - f->r == 0;
    f->kind = finite && (!whole || exact(f->r, value)) ? APP_FIELD_REAL : APP_FIELD_TEXT;
    f->value = value;
}

static enum app_fields_result take_number(struct str value, struct app_field *f)
{
    char few[64], *digits = value.n < sizeof few ? few : malloc(value.n + 1);
    if (digits == NULL)
        return APP_FIELDS_NO_MEMORY;
    memcpy(digits, value.p, value.n);
    digits[value.n] = 0;
    take_digits(digits, value, f);
    if (digits != few)
        free(digits);
    return APP_FIELDS_OK;
}

/* Appends what a string says; *out is that. */
static enum app_fields_result take_text(struct str string, struct buf *text, struct str *out,
                                        struct app_fields_sink *sink)
{
    size_t from = text->len;
    switch (json_text(string, text, text->cap)) {
    case JSON_TEXT_OK:
        *out = (struct str){(const char *)text->data + from, text->len - from};
        return APP_FIELDS_OK;
    case JSON_TEXT_HALF:
        return refuse(sink, "The body has half of a surrogate pair in a string.");
    case JSON_TEXT_LONG:
    case JSON_TEXT_NO_MEMORY:
        break;
    }
    return APP_FIELDS_NO_MEMORY;
}

static enum app_fields_result take_member(struct str value, struct buf *text, struct app_field *f,
                                          struct app_fields_sink *sink)
{
    switch (json_kind(value)) {
    case JSON_STRING:
        return take_text(value, text, &f->value, sink);
    case JSON_NUMBER:
        return take_number(value, f);
    case JSON_TRUE:
    case JSON_FALSE:
        f->kind = APP_FIELD_INT;
        f->i = value.p[0] == 't';
        break;
    case JSON_NULL:
        f->kind = APP_FIELD_NULL;
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        f->value = value;
        break;
    }
    return APP_FIELDS_OK;
}

enum app_fields_result app_fields_json(struct str body, struct buf *text,
                                       struct app_fields_sink *sink)
{
    struct str name, value;
    unsigned count = 0;
    if (!json_check_all(body.p, body.n, NULL))
        return refuse(sink, "The body is not JSON that parses.");
    struct str all = json_value(body);
    if (json_kind(all) != JSON_OBJECT)
        return refuse(sink, "The body is JSON, but no object.");
    for (struct json_walk w = json_enter(all); json_member(&w, &name, &value);) {
        struct app_field f = {.kind = APP_FIELD_TEXT};
        enum app_fields_result result = take_text(name, text, &f.name, sink);
        if (result == APP_FIELDS_OK)
            result = take_member(value, text, &f, sink);
        if (result == APP_FIELDS_OK)
            result = tell(sink, &f, &count);
        if (result != APP_FIELDS_OK)
            return result;
    }
    return APP_FIELDS_OK;
}
