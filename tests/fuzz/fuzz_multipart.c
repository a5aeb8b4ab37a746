/* handlers/multipart and what app_fields makes of it, over any bytes: the first line is the Content-Type. Parts lie inside of
 * the body, in order. */
#include "fcgi/path.h"
#include "handlers/app_fields.h"
#include "handlers/multipart.h"
#include "tests/fuzz/must.h"

struct place {
    const char *from, *end;
};

static void inside(const struct place *p, struct str s)
{
    MUST(s.p == NULL || (s.p >= p->from && s.p + s.n <= p->end));
}

static bool each(void *arg, const struct app_field *f)
{
    const struct place *p = arg;
    inside(p, f->name);
    MUST(utf8_ok(f->name.p, f->name.n));
    if (f->kind == APP_FIELD_NULL)
        return true;
    inside(p, f->value);
    if (f->kind == APP_FIELD_TEXT) {
        MUST(utf8_ok(f->value.p, f->value.n));
        return true;
    }
    MUST(f->kind == APP_FIELD_FILE && f->type.n > 0 && utf8_ok(f->file_name.p, f->file_name.n));
    MUST(f->file_name.n == 0 || memchr(f->file_name.p, '/', f->file_name.n) == NULL);
    return true;
}

static void walk(struct str type, struct str body)
{
    struct multipart m;
    struct multipart_part part;
    struct place place = {body.p, body.p + body.n};
    const char *last = body.p;
    if (!multipart_start(&m, type, body))
        return;
    while (multipart_next(&m, &part) == MULTIPART_PART) {
        MUST(part.name.p != NULL);
        inside(&place, part.name);
        inside(&place, part.body);
        MUST(part.body.p > last);
        last = part.body.p;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = size > 0 ? memchr(data, '\n', size) : NULL;
    if (line == NULL)
        return 0;
    struct str type = {(const char *)data, (size_t)(line - data)};
    size_t n = size - type.n - 1;
    char *body = malloc(n > 0 ? n : 1);
    MUST(body != NULL);
    memcpy(body, line + 1, n);
    walk(type, (struct str){body, n});
    struct place place = {body, body + n};
    struct app_fields_sink sink = {each, &place, NULL};
    enum app_fields_result result = app_fields_multipart(body, n, type, &sink);
    MUST(result == APP_FIELDS_OK || (result == APP_FIELDS_BAD && sink.wrong != NULL));
    free(body);
    return 0;
}
