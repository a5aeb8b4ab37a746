#include "handlers/param.h"

#include <stdio.h>

#include "fcgi/path.h"
#include "handlers/problem.h"
#include "handlers/store.h"

enum { DIGITS_MAX = 19 };

void param_refuse(struct call *c, const char *name, const char *rule)
{
    char detail[160];
    snprintf(detail, sizeof detail, "The query parameter %s %s.", name, rule);
    problem(c, 400, detail);
}

bool param_digits(struct str text, uint64_t max, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9' || i >= DIGITS_MAX)
            return false;
        *value = *value * 10 + (uint64_t)(text.p[i] - '0');
    }
    return text.n > 0 && *value <= max;
}

bool param_number(struct call *c, const char *name, unsigned max, unsigned *value)
{
    char rule[64];
    uint64_t n;
    struct buf *text = &session_of(c)->value;
    enum query_result found = query_find(c->req->query, name, text);
    if (found == QUERY_NONE)
        return true;
    if (found == QUERY_OK && param_digits((struct str){(char *)text->data, text->len}, max, &n)) {
        *value = (unsigned)n;
        return true;
    }
    snprintf(rule, sizeof rule, "is one whole number from 0 to %u", max);
    param_refuse(c, name, rule);
    return false;
}
