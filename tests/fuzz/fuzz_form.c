/* handlers/app_fields over any bytes as a form and as JSON: names and values are UTF-8 and inside of what was given, and a
 * form that is decoded where it stands says what one says that is decoded elsewhere. */
#include "fcgi/path.h"
#include "handlers/app_fields.h"
#include "tests/fuzz/must.h"

struct seen {
    unsigned count;
    uint64_t sum; /* of what was told */
};

static bool each(void *arg, const struct app_field *f)
{
    struct seen *s = arg;
    MUST(f->name.n > 0 && f->name.n <= APP_FIELD_NAME_MAX && utf8_ok(f->name.p, f->name.n));
    MUST(f->kind != APP_FIELD_FILE);
    if (f->kind == APP_FIELD_TEXT)
        MUST(utf8_ok(f->value.p, f->value.n));
    for (size_t i = 0; i < f->name.n; i++)
        s->sum = s->sum * 31 + (unsigned char)f->name.p[i];
    for (size_t i = 0; f->kind == APP_FIELD_TEXT && i < f->value.n; i++)
        s->sum = s->sum * 31 + (unsigned char)f->value.p[i];
    MUST(++s->count <= APP_FIELDS_MAX);
    return true;
}

static void as_form(struct str text)
{
    struct seen one = {0}, two = {0};
    struct app_fields_sink a = {each, &one, NULL}, b = {each, &two, NULL};
    char *to = malloc(text.n + 1), *copy = malloc(text.n + 1);
    MUST(to != NULL && copy != NULL);
    memcpy(copy, text.p, text.n);
    enum app_fields_result result = app_fields_form(text, to, &a);
    MUST(app_fields_form((struct str){copy, text.n}, copy, &b) == result);
    MUST(one.sum == two.sum && one.count == two.count);
    MUST(result == APP_FIELDS_OK || a.wrong != NULL);
    free(to);
    free(copy);
}

static void as_json(struct str text)
{
    struct seen s = {0};
    struct app_fields_sink sink = {each, &s, NULL};
    struct buf out = {0};
    char *copy = malloc(text.n + 1); /* exactly so long: reading beyond is seen */
    MUST(copy != NULL && buf_reserve(&out, text.n + 1, SIZE_MAX / 2));
    copy = realloc(copy, text.n > 0 ? text.n : 1);
    MUST(copy != NULL);
    memcpy(copy, text.p, text.n);
    enum app_fields_result result = app_fields_json((struct str){copy, text.n}, &out, &sink);
    MUST(result == APP_FIELDS_OK || (result == APP_FIELDS_BAD && sink.wrong != NULL));
    buf_free(&out);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct str text = {(const char *)data + 1, size - 1};
    if (data[0] & 1)
        as_json(text);
    else
        as_form(text);
    return 0;
}
