#include "handlers/app_visit.h"

#include <string.h>

static bool has_bytes(const struct db_value *v)
{
    return (v->type == DB_VALUE_TEXT || v->type == DB_VALUE_BLOB) && v->n > 0;
}

static size_t names(const struct app_visit *v)
{
    return v->script != NULL ? v->script->names : 0;
}

size_t app_visit_bytes(const struct app_visit *v)
{
    size_t n = v->mount.n + v->base.n + v->path.n + v->query.n + v->cookie.n + v->request_id.n +
               v->user.n + v->result.n + v->error.n;
    for (unsigned i = 0; i < v->segments; i++)
        n += v->segment[i].value.n;
    for (size_t i = 0; i < names(v); i++)
        n += has_bytes(&v->value[i]) ? v->value[i].n : 0;
    return n;
}

static void keep(struct str *s, char **memory)
{
    if (s->n == 0)
        return;
    memcpy(*memory, s->p, s->n);
    s->p = *memory;
    *memory += s->n;
}

void app_visit_keep(const struct app_visit *v, struct app_visit *to, char *memory)
{
    *to = *v;
    struct str *const texts[] = {&to->mount,      &to->base, &to->path,   &to->query, &to->cookie,
                                 &to->request_id, &to->user, &to->result, &to->error};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        keep(texts[i], &memory);
    for (unsigned i = 0; i < to->segments; i++)
        keep(&to->segment[i].value, &memory);
    for (size_t i = 0; i < names(to); i++) {
        struct str text = {to->value[i].p, to->value[i].n};
        if (!has_bytes(&to->value[i]))
            continue;
        keep(&text, &memory);
        to->value[i].p = text.p;
    }
}

void app_answer_reset(struct app_answer *a)
{
    struct app_answer fresh = {.head = a->head, .text = a->text, .spare = a->spare, .fd = -1};
    fresh.head->len = fresh.text->len = 0;
    *a = fresh;
}
