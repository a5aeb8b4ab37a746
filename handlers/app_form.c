#include "handlers/app_form.h"

#include <string.h>

#include "fcgi/path.h"
#include "handlers/app_param.h"

enum { PATH_MAX_BYTES = 8192 };

static const struct app_route *route_of(const struct app_visit *v)
{
    const struct app_route *own = v->route;
    if (v->script != NULL && v->script->form != NULL)
        return app_route(v->app, v->script->form);
    return own->page != NULL || own->script[APP_GET] != NULL ? own : NULL;
}

/* A parameter of the path. An empty one, or one with a slash in it, would be another path. */
static bool find(const struct app_visit *v, const struct app_input *input, struct str name,
                 struct str *value)
{
    *value = (struct str){NULL, 0};
    for (unsigned i = 0; i < v->segments && value->p == NULL; i++)
        if (str_eq(v->segment[i].name, name))
            *value = v->segment[i].value;
    for (unsigned i = 0; i < input->count && value->p == NULL; i++) {
        const struct app_field *f = app_input_field(input, i);
        if (f->kind == APP_FIELD_TEXT && str_eq(f->name, name))
            *value = f->value;
    }
    return value->p != NULL && value->n > 0 && memchr(value->p, '/', value->n) == NULL;
}

static bool add(struct buf *to, struct str text)
{
    return buf_add(to, text.p, text.n, PATH_MAX_BYTES);
}

/* Writes the path; values of parameters are told in to. */
static bool write_path(const struct app_visit *v, const struct app_input *input, size_t base_len,
                       struct buf *path, struct app_visit *to)
{
    const struct app_route *route = to->route;
    size_t n = strlen(route->pattern);
    path->len = 0;
    if (!add(path, (struct str){v->path.p, base_len}))
        return false;
    to->segments = 0;
    for (unsigned i = 0; i < route->segments; i++) {
        struct str text = route->segment[i];
        if (text.n > 1 && text.p[0] == ':') {
            struct app_segment *s = &to->segment[to->segments++];
            s->name = (struct str){text.p + 1, text.n - 1};
            if (!find(v, input, s->name, &text))
                return false;
            s->value = text;
        }
        if ((i > 0 && !add(path, STR_LIT("/"))) || !add(path, text))
            return false;
    }
    bool index = n > 0 && route->pattern[n - 1] == '/' && path->data[path->len - 1] != '/';
    return !index || add(path, STR_LIT("/"));
}

bool app_form(const struct app_visit *v, const struct app_input *input, size_t base_len,
              struct buf *path, struct app_visit *to)
{
    const struct app_route *route = route_of(v);
    if (route == NULL)
        return false;
    *to = *v;
    to->route = route;
    to->script = route->script[APP_GET];
    to->method = "GET";
    to->format = APP_FORMAT_HTML;
    if (!write_path(v, input, base_len, path, to))
        return false;
    to->path = (struct str){(const char *)path->data, path->len};
    return path_ok(to->path);
}
