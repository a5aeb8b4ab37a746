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

static bool starts_with(struct str s, const char *start)
{
    size_t n = strlen(start);
    return s.n >= n && strncasecmp(s.p, start, n) == 0;
}

bool content_is_json(struct str type)
{
    return db_type_is_json(type.p, type.n);
}

bool content_is_text(struct str type)
{
    return starts_with(type, "text/") || content_is_json(type);
}

enum db_value_type content_form(struct str type, const void *body, size_t n)
{
    bool lossless = n == 0 || (memchr(body, 0, n) == NULL && utf8_ok((const char *)body, n));
    return content_is_text(type) && lossless ? DB_VALUE_TEXT : DB_VALUE_BLOB;
}
