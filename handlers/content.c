#include "handlers/content.h"

#include <string.h>
#include <strings.h>

#include "db/doc.h"
#include "fcgi/path.h"

bool content_type_ok(struct str type)
{
    bool slash = false;
    for (size_t i = 0; i < type.n; i++) {
        unsigned char ch = (unsigned char)type.p[i];
        if (ch < 0x20 || ch > 0x7e)
            return false;
        slash |= ch == '/';
    }
    return slash && type.n <= DB_TYPE_MAX;
}

static bool ends_with(struct str s, const char *end)
{
    size_t n = strlen(end);
    return s.n >= n && strncasecmp(s.p + s.n - n, end, n) == 0;
}

static bool starts_with(struct str s, const char *start)
{
    size_t n = strlen(start);
    return s.n >= n && strncasecmp(s.p, start, n) == 0;
}

/* The type without parameters. */
static struct str essence(struct str type)
{
    const char *semicolon = type.n > 0 ? memchr(type.p, ';', type.n) : NULL;
    if (semicolon != NULL)
        type.n = (size_t)(semicolon - type.p);
    while (type.n > 0 && type.p[type.n - 1] == ' ')
        type.n--;
    return type;
}

bool content_is_json(struct str type)
{
    struct str e = essence(type);
    return (e.n == 16 && starts_with(e, "application/json")) || ends_with(e, "+json");
}

static bool is_text(struct str type)
{
    return starts_with(type, "text/") || content_is_json(type);
}

enum db_value_type content_form(struct str type, const void *body, size_t n)
{
    bool lossless = n == 0 || (memchr(body, 0, n) == NULL && utf8_ok((const char *)body, n));
    return is_text(type) && lossless ? DB_VALUE_TEXT : DB_VALUE_BLOB;
}
