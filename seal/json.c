#include "seal/json.h"

#include <string.h>

#include "seal/base64.h"

static void skip_space(struct seal_json *j)
{
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\n' || *j->p == '\t' || *j->p == '\r'))
        j->p++;
}

/* The next mark, when it is that one. */
static bool take_mark(struct seal_json *j, char mark)
{
    skip_space(j);
    if (j->p == j->end || *j->p != mark)
        return false;
    j->p++;
    return true;
}

bool seal_json_end(struct seal_json *j)
{
    skip_space(j);
    return j->p == j->end;
}

bool seal_json_text(struct seal_json *j, struct seal_text *text)
{
    if (!take_mark(j, '"'))
        return false;
    const char *from = j->p;
    while (j->p < j->end && *j->p != '"' && *j->p != '\\' && (unsigned char)*j->p >= ' ')
        j->p++;
    *text = (struct seal_text){from, (size_t)(j->p - from)};
    return take_mark(j, '"') && j->p == from + text->n + 1;
}

bool seal_json_number(struct seal_json *j, int64_t *v)
{
    skip_space(j);
    const char *from = j->p;
    for (*v = 0; j->p < j->end && *j->p >= '0' && *j->p <= '9' && j->p - from < 16; j->p++)
        *v = *v * 10 + (*j->p - '0');
    bool more = j->p < j->end && (strchr("0123456789.eE+-", *j->p) != NULL || *j->p == 0);
    return j->p > from && !more && (*from != '0' || j->p == from + 1) && *v < INT64_C(1) << 53;
}

enum { BYTES_MAX = 64, BASE64_MAX = (BYTES_MAX + 2) / 3 * 4 };

bool seal_json_bytes(struct seal_json *j, unsigned char *out, size_t n)
{
    char text[BASE64_MAX];
    unsigned char bytes[BASE64_MAX / 4 * 3];
    size_t length = 0, got = 0, wanted = seal_base64_len(n);
    if (n > BYTES_MAX || !take_mark(j, '"'))
        return false;
    while (j->p < j->end && *j->p != '"' && length < wanted) {
        if (*j->p == '\\' && j->end - j->p > 1 && j->p[1] == '/')
            j->p++;
        text[length++] = *j->p++;
    }
    if (length != wanted || j->p == j->end || *j->p != '"' ||
        !seal_base64_decode(text, length, bytes, &got) || got != n)
        return false;
    memcpy(out, bytes, n);
    j->p++;
    return true;
}

/* The place of a name in the list, 32: it is not there. */
static unsigned find_name(const char *const *names, struct seal_text name)
{
    for (unsigned i = 0; names[i] != NULL; i++)
        if (strlen(names[i]) == name.n && memcmp(names[i], name.p, name.n) == 0)
            return i;
    return 32;
}

static bool all_there(const struct seal_json_shape *shape, uint32_t seen)
{
    for (unsigned i = 0; shape->names[i] != NULL; i++)
        if (((seen | shape->optional) >> i & 1) == 0)
            return false;
    return true;
}

bool seal_json_object(struct seal_json *j, const struct seal_json_shape *shape, uint32_t *seen)
{
    uint32_t got = 0;
    struct seal_text name;
    if (!take_mark(j, '{'))
        return false;
    do {
        if (!seal_json_text(j, &name) || !take_mark(j, ':'))
            return false;
        unsigned i = find_name(shape->names, name);
        if (i >= 32 || (got >> i & 1) != 0 || !shape->take(shape->arg, i, j))
            return false;
        got |= UINT32_C(1) << i;
    } while (take_mark(j, ','));
    if (seen != NULL)
        *seen = got;
    return take_mark(j, '}') && all_there(shape, got);
}

bool seal_json_array(struct seal_json *j, unsigned most, seal_json_fn *take, void *arg)
{
    unsigned n = 0;
    if (!take_mark(j, '['))
        return false;
    if (take_mark(j, ']'))
        return true;
    do {
        if (n == most || !take(arg, n, j))
            return false;
        n++;
    } while (take_mark(j, ','));
    return take_mark(j, ']');
}
