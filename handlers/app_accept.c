#include "handlers/app_accept.h"

#include <string.h>
#include <strings.h>

enum { FORMATS = 4, NEVER = -1 };

static const struct {
    const char *name, *type;
} formats[FORMATS] = {
    [APP_FORMAT_JSON] = {"json", "application/json"},
    [APP_FORMAT_HTML] = {"html", "text/html"},
    [APP_FORMAT_CSV] = {"csv", "text/csv"},
    [APP_FORMAT_LINES] = {"ndjson", "application/x-ndjson"},
};

bool app_format_named(struct str name, enum app_format *format)
{
    for (int i = 0; i < FORMATS; i++) {
        if (!str_eq(name, (struct str){formats[i].name, strlen(formats[i].name)}))
            continue;
        *format = (enum app_format)i;
        return true;
    }
    return false;
}

static struct str trim(struct str s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t')) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* Splits at the first of that character; the rest stays in *s. */
static struct str cut(struct str *s, char at)
{
    const char *end = s->n > 0 ? memchr(s->p, at, s->n) : NULL;
    struct str head = {s->p, end != NULL ? (size_t)(end - s->p) : s->n};
    size_t skip = end != NULL ? head.n + 1 : head.n;
    *s = (struct str){s->p + skip, s->n - skip};
    return trim(head);
}

/* 0 to 1000; what is no weight counts as 1. */
static int weight(struct str parameters)
{
    while (parameters.n > 0) {
        struct str one = cut(&parameters, ';');
        if (one.n < 3 || (one.p[0] != 'q' && one.p[0] != 'Q') || one.p[1] != '=')
            continue;
        int q = one.p[2] == '1' ? 1000 : 0, unit = 100;
        for (size_t i = 4; one.p[2] == '0' && i < one.n && unit > 0; i++, unit /= 10)
            if (one.p[i] >= '0' && one.p[i] <= '9')
                q += (one.p[i] - '0') * unit;
        return q;
    }
    return 1000;
}

/* How exactly a media range names a type: 0 not, 1 all, 2 its kind, 3 itself. */
static int match(struct str range, const char *type)
{
    size_t n = strlen(type), kind = (size_t)(strchr(type, '/') - type) + 1;
    if (range.n == n && strncasecmp(range.p, type, n) == 0)
        return 3;
    if (range.n == kind + 1 && strncasecmp(range.p, type, kind) == 0 && range.p[kind] == '*')
        return 2;
    return str_eq(range, STR_LIT("*/*")) ? 1 : 0;
}

enum app_format app_accept(struct str accept, bool html)
{
    int q[FORMATS] = {NEVER, NEVER, NEVER, NEVER}, how[FORMATS] = {0};
    if (accept.n == 0)
        return APP_FORMAT_JSON;
    while (accept.n > 0) {
        struct str one = cut(&accept, ',');
        struct str range = cut(&one, ';');
        int w = weight(one);
        for (int i = 0; i < FORMATS; i++) {
            int m = match(range, formats[i].type);
            if (m <= how[i])
                continue;
            how[i] = m;
            q[i] = w;
        }
    }
    int best = APP_FORMAT_JSON;
    for (int i = 1; i < FORMATS; i++)
        if ((i != APP_FORMAT_HTML || html) && how[i] > 1 && q[i] > 0 && q[i] > q[best])
            best = i;
    return (enum app_format)best;
}
