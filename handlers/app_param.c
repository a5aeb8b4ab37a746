#include "handlers/app_param.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fcgi/path.h"
#include "handlers/app_steer.h"
#include "handlers/json.h"
#include "handlers/problem.h"

enum { INPUT_MAX = 4 << 20, ARRAYS_MAX = 16 << 20 };

struct app_desk *app_desk(struct session *s)
{
    if (s->desk == NULL)
        s->desk = calloc(1, sizeof *s->desk);
    return s->desk;
}

void app_desk_free(struct app_desk *d)
{
    if (d == NULL)
        return;
    struct buf *const all[] = {&d->input, &d->arrays, &d->head, &d->spare, &d->pieces, &d->text};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buf_free(all[i]);
    free(d);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

void app_input_free(struct app_input *in)
{
    free(in->memory);
    buf_free(&in->text);
    buf_free(&in->fields);
    *in = (struct app_input){0};
}

const struct app_field *app_input_field(const struct app_input *in, unsigned i)
{
    return (const struct app_field *)(const void *)in->fields.data + i;
}

static bool keep_field(void *arg, const struct app_field *field)
{
    struct app_input *in = arg;
    in->count++;
    return buf_add(&in->fields, field, sizeof *field, (APP_FIELDS_MAX + 1) * sizeof *field);
}

static bool is_type(struct str type, const char *name)
{
    size_t n = strlen(name);
    return type.n >= n && strncasecmp(type.p, name, n) == 0 &&
           (type.n == n || type.p[n] == ';' || type.p[n] == ' ' || type.p[n] == '\t');
}

static enum app_fields_result decode(struct app_input *in, size_t n, struct str type,
                                     struct app_fields_sink *sink)
{
    struct str body = {in->memory, n};
    if (is_type(type, "application/json")) {
        if (!buf_reserve(&in->text, n, n))
            return APP_FIELDS_NO_MEMORY;
        return app_fields_json(body, &in->text, sink);
    }
    if (is_type(type, "multipart/form-data"))
        return app_fields_multipart(in->memory, n, type, sink);
    return app_fields_form(body, in->memory, sink);
}

static bool known_type(struct str type)
{
    return is_type(type, "application/json") || is_type(type, "multipart/form-data") ||
           is_type(type, "application/x-www-form-urlencoded");
}

bool app_input_take(struct call *c, const struct app *app, struct app_input *in)
{
    char detail[96];
    struct app_fields_sink sink = {keep_field, in, NULL};
    struct str type = c->req->content_type;
    uint64_t bytes = c->req->frame->body_bytes;
    size_t n;
    if (bytes > app->body_max) {
        snprintf(detail, sizeof detail,
                 "The body is larger than %llu bytes, the most that this app takes.",
                 (unsigned long long)app->body_max);
        problem(c, 413, detail);
        return false;
    }
    if (bytes == 0)
        return true;
    if (!known_type(type)) {
        problem(c, 415, "An app takes forms (application/x-www-form-urlencoded, "
                        "multipart/form-data) and application/json.");
        return false;
    }
    in->memory = (char *)frame_take_body(c->req->frame, &n);
    enum app_fields_result result = in->memory != NULL ? decode(in, n, type, &sink)
                                                       : APP_FIELDS_NO_MEMORY;
    if (result == APP_FIELDS_BAD)
        problem(c, 400, sink.wrong);
    else if (result != APP_FIELDS_OK)
        problem_result(c, DB_NO_MEMORY, 0);
    return result == APP_FIELDS_OK;
}

/* ---- parameters ------------------------------------------------------------------------------ */

enum source { SOURCE_NONE, SOURCE_QUERY, SOURCE_BODY, SOURCE_FILE, SOURCE_PATH };

/* An item of NAME[]. */
struct item {
    unsigned name;
    struct str text;
};

struct taking {
    struct app_visit *v;
    struct buf *arrays; /* texts of JSON */
    struct buf items;   /* struct item */
    char *to, *end;       /* where the next text is decoded */
    enum source source;
    uint8_t from[DB_SCRIPT_NAMES_MAX]; /* enum source */
    bool array[DB_SCRIPT_NAMES_MAX];
    const char *twice; /* a name that is given twice */
    bool no_memory;
};

static bool may_give(enum source source, const struct db_script_name *name)
{
    if (name->own || name->name[0] == '_')
        return false;
    if (source == SOURCE_PATH)
        return name->sigil == ':';
    return name->sigil == ':' || name->sigil == (source == SOURCE_QUERY ? '$' : '@');
}

static struct db_value value_of(const struct app_field *f)
{
    struct db_value v = {.type = DB_VALUE_NONE};
    switch ((enum app_field_kind)f->kind) {
    case APP_FIELD_TEXT:
    case APP_FIELD_FILE:
        v.type = f->kind == APP_FIELD_TEXT ? DB_VALUE_TEXT : DB_VALUE_BLOB;
        v.p = f->value.p;
        v.n = f->value.n;
        break;
    case APP_FIELD_INT:
        v.type = DB_VALUE_INT;
        v.i = f->i;
        break;
    case APP_FIELD_REAL:
        v.type = DB_VALUE_REAL;
        v.r = f->r;
        break;
    case APP_FIELD_NULL:
        break;
    }
    return v;
}

static struct db_value text_value(struct str s)
{
    return (struct db_value){.type = DB_VALUE_TEXT, .p = s.p, .n = s.n};
}

/* What comes from a stronger source stays. False: it is there twice. */
static bool set(struct taking *t, unsigned i, enum source source, struct db_value value)
{
    if (t->from[i] == source && source != SOURCE_FILE) {
        t->twice = t->v->script->name[i].name;
        return false;
    }
    if (t->from[i] > source)
        return true;
    t->from[i] = (uint8_t)source;
    t->array[i] = false;
    t->v->value[i] = value;
    return true;
}

/* One more item of the array i. */
static bool add_item(struct taking *t, unsigned i, const struct app_field *f)
{
    struct item item = {i, f->value};
    if (t->from[i] == t->source && (!t->array[i] || f->kind != APP_FIELD_TEXT)) {
        t->twice = t->v->script->name[i].name;
        return false;
    }
    if (t->from[i] > t->source)
        return true;
    t->from[i] = (uint8_t)t->source;
    t->array[i] = true;
    t->no_memory = !buf_add(&t->items, &item, sizeof item, ARRAYS_MAX);
    return !t->no_memory;
}

static bool says(struct str s, const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return s.n == n + m && memcmp(s.p, name, n) == 0 && memcmp(s.p + n, suffix, m) == 0;
}

/* The name is that of the file with a suffix: :photo_type of photo. */
static bool derived(const char *name, struct str file, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n == file.n + m && memcmp(name, file.p, file.n) == 0 &&
           memcmp(name + file.n, suffix, m) == 0;
}

static bool take_field(void *arg, const struct app_field *f)
{
    struct taking *t = arg;
    const struct db_script *s = t->v->script;
    for (unsigned i = 0; i < s->names; i++) {
        const char *name = s->name[i].name;
        bool ok = true;
        if (!may_give(t->source, &s->name[i]))
            continue;
        if (says(f->name, name, ""))
            ok = set(t, i, t->source, value_of(f));
        else if (says(f->name, name, "[]"))
            ok = add_item(t, i, f);
        else if (f->kind == APP_FIELD_FILE && derived(name, f->name, "_type"))
            ok = set(t, i, SOURCE_FILE, text_value(f->type));
        else if (f->kind == APP_FIELD_FILE && derived(name, f->name, "_name"))
            ok = set(t, i, SOURCE_FILE, text_value(f->file_name));
        if (!ok)
            return false;
    }
    return true;
}

static void take_path(struct taking *t)
{
    t->source = SOURCE_PATH;
    for (unsigned k = 0; k < t->v->segments; k++) {
        const struct app_segment *segment = &t->v->segment[k];
        struct app_field f = {.name = segment->name, .value = segment->value};
        (void)take_field(t, &f);
    }
}

/* ---- what the server says -------------------------------------------------------------------- */

static struct db_value own_cookie(struct taking *t, struct str name)
{
    struct str value = {t->to, 0};
    if ((size_t)(t->end - t->to) < t->v->cookie.n + t->v->query.n ||
        !app_cookie(t->v, name, t->to, &value.n))
        return (struct db_value){.type = DB_VALUE_NONE};
    t->to += value.n;
    return text_value(value);
}

/* The value of a name that begins with '_', which is without it here. */
static struct db_value own_value(struct taking *t, const char *name)
{
    static const char cookie[] = "cookie_";
    struct app_visit *v = t->v;
    v->person |= strcmp(name, "user") == 0;
    if (strcmp(name, "now") == 0)
        return (struct db_value){.type = DB_VALUE_INT, .i = v->now_s};
    if (strcmp(name, "user") == 0 && v->user.p != NULL)
        return text_value(v->user);
    if (strcmp(name, "request_id") == 0)
        return text_value(v->request_id);
    if (strcmp(name, "method") == 0)
        return text_value((struct str){v->method, strlen(v->method)});
    if (strcmp(name, "app") == 0)
        return text_value(v->base);
    if (strncmp(name, cookie, sizeof cookie - 1) != 0)
        return (struct db_value){.type = DB_VALUE_NONE};
    name += sizeof cookie - 1;
    v->person = true;
    return own_cookie(t, (struct str){name, strlen(name)});
}

static void take_own(struct taking *t)
{
    const struct db_script *s = t->v->script;
    for (unsigned i = 0; i < s->names; i++) {
        t->v->value[i] = (struct db_value){.type = DB_VALUE_NONE};
        if (s->name[i].name[0] == '_')
            t->v->value[i] = own_value(t, s->name[i].name + 1);
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Writes the array i behind the others; where it lies is told when all are there. */
static void write_array(struct taking *t, unsigned i)
{
    struct json j = {.out = t->arrays};
    const struct item *items = (const struct item *)(const void *)t->items.data;
    struct db_value *v = &t->v->value[i];
    const char *between = "[";
    *v = (struct db_value){.type = DB_VALUE_TEXT, .i = (int64_t)t->arrays->len};
    for (size_t k = 0; k < t->items.len / sizeof *items; k++) {
        if (items[k].name != i)
            continue;
        json_raw(&j, between);
        json_string(&j, items[k].text);
        between = ",";
    }
    json_raw(&j, "]");
    v->n = t->arrays->len - (size_t)v->i;
    t->no_memory |= j.failed;
}

static void write_arrays(struct taking *t)
{
    unsigned names = t->v->script->names;
    for (unsigned i = 0; i < names; i++)
        if (t->array[i])
            write_array(t, i);
    for (unsigned i = 0; i < names; i++)
        if (t->array[i])
            t->v->value[i].p = (const char *)t->arrays->data + t->v->value[i].i;
}

/* False: it was answered. */
static bool judge(struct call *c, const struct taking *t, enum app_fields_result result,
                  const char *wrong)
{
    char detail[DB_NAME_MAX + 40];
    if (result == APP_FIELDS_OK && !t->no_memory)
        return true;
    if (t->no_memory || result == APP_FIELDS_NO_MEMORY) {
        problem_result(c, DB_NO_MEMORY, 0);
    } else if (result == APP_FIELDS_BAD) {
        problem(c, 400, wrong);
    } else {
        snprintf(detail, sizeof detail, "The parameter %s is given twice.", t->twice);
        problem(c, 400, detail);
    }
    return false;
}

static bool take_body(struct taking *t, const struct app_input *in)
{
    t->source = SOURCE_BODY;
    for (unsigned i = 0; i < in->count; i++)
        if (!take_field(t, app_input_field(in, i)))
            return false;
    return true;
}

static bool nobody(void *arg, const struct app_field *field)
{
    (void)arg;
    (void)field;
    return true;
}

/* Also what nobody wants must be well-formed. */
static enum app_fields_result take_query(struct taking *t, struct app_fields_sink *sink)
{
    enum app_fields_result result;
    t->source = SOURCE_QUERY;
    if (t->v->query.n == 0)
        return APP_FIELDS_OK;
    *sink = (struct app_fields_sink){t->v->script != NULL ? take_field : nobody, t, NULL};
    result = app_fields_form(t->v->query, t->to, sink);
    t->to += t->v->query.n;
    return result;
}

bool app_params_take(struct call *c, struct app_visit *v, const struct app_input *in)
{
    struct app_desk *desk = session_of(c)->desk;
    struct app_fields_sink sink = {nobody, NULL, NULL};
    struct taking t = {.v = v, .arrays = &desk->arrays};
    t.to = (char *)desk->input.data + desk->input.len;
    t.end = (char *)desk->input.data + desk->input.cap;
    desk->arrays.len = 0;
    if (v->script != NULL) {
        take_own(&t);
        take_path(&t);
    }
    enum app_fields_result result = APP_FIELDS_OK;
    if (v->script != NULL && in != NULL && !take_body(&t, in))
        result = APP_FIELDS_STOPPED;
    if (result == APP_FIELDS_OK)
        result = take_query(&t, &sink);
    if (result == APP_FIELDS_OK && t.items.len > 0)
        write_arrays(&t);
    buf_free(&t.items);
    return judge(c, &t, result, sink.wrong);
}

static struct str put(struct buf *to, struct str text)
{
    struct str kept = {(const char *)to->data + to->len, text.n};
    if (text.n > 0)
        memcpy(to->data + to->len, text.p, text.n);
    to->len += text.n;
    return kept;
}

bool app_visit_start(struct call *c, struct app_visit *v, size_t base_len)
{
    struct app_desk *desk = app_desk(session_of(c));
    size_t room = v->mount.n + base_len + v->user.n + v->query.n + v->cookie.n;
    if (desk == NULL)
        return false;
    desk->input.len = 0;
    if (!buf_reserve(&desk->input, room + 1, INPUT_MAX))
        return false;
    v->base = put(&desk->input, v->mount);
    (void)put(&desk->input, (struct str){v->path.p, base_len});
    v->base.n += base_len;
    if (v->user.p != NULL)
        v->user = put(&desk->input, v->user);
    return true;
}
