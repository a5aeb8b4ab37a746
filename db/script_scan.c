#include "db/script_scan.h"

#include <string.h>

static const unsigned char *bytes(const char *p)
{
    return (const unsigned char *)p;
}

bool db_script_in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || (unsigned char)c >= 0x80;
}

size_t db_script_utf8(const char *p, size_t n)
{
    const unsigned char *u = bytes(p);
    if (u[0] < 0x80)
        return 1;
    size_t len = u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : u[0] < 0xf5 ? 4 : 0;
    if (len == 0 || len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((u[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xf0 && u[1] < 0x90);
    bool surrogate = u[0] == 0xed && u[1] > 0x9f;
    bool beyond = u[0] == 0xf4 && u[1] > 0x8f;
    return overlong || surrogate || beyond ? 0 : len;
}

/* Goes on by n bytes. */
static void pass(struct db_scan *scan, size_t n)
{
    for (; n > 0; n--, scan->p++) {
        if (*scan->p == '\n') {
            scan->line++;
            scan->first_in_line = true;
        } else if (*scan->p != ' ' && *scan->p != '\t' && *scan->p != '\r' && *scan->p != '\f') {
            scan->first_in_line = false;
        }
    }
}

static size_t left(const struct db_scan *scan)
{
    return (size_t)(scan->end - scan->p);
}

static bool at(const struct db_scan *scan, const char *two)
{
    return left(scan) >= 2 && scan->p[0] == two[0] && scan->p[1] == two[1];
}

/* The bytes of a string or a quoted name; 0: it does not end. A doubled quote stands for itself,
 * but in brackets. */
static size_t quoted(const char *p, const char *end)
{
    char quote = *p == '[' ? ']' : *p;
    for (const char *q = p + 1; q < end; q++) {
        if (*q != quote)
            continue;
        if (quote == ']' || q + 1 == end || q[1] != quote)
            return (size_t)(q + 1 - p);
        q++;
    }
    return 0;
}

/* The bytes of a comment in slashes; 0: it does not end. */
static size_t commented(const struct db_scan *scan)
{
    for (const char *q = scan->p + 2; scan->end - q >= 2; q++)
        if (q[0] == '*' && q[1] == '/')
            return (size_t)(q + 2 - scan->p);
    return 0;
}

static size_t to_line_end(const struct db_scan *scan)
{
    const char *end = memchr(scan->p, '\n', left(scan));
    return end != NULL ? (size_t)(end - scan->p) : left(scan);
}

static size_t name_bytes(const char *p, const char *end)
{
    const char *q = p;
    while (q < end && db_script_in_name(*q))
        q++;
    return (size_t)(q - p);
}

/* What the scan stands on, which is not blank; sets kind and returns its bytes. */
static size_t measure(struct db_scan *scan, enum db_sql_token_kind *kind)
{
    size_t n;
    switch (*scan->p) {
    case ';': *kind = DB_TOKEN_SEMICOLON; return 1;
    case '\'':
    case '"':
    case '`':
    case '[':
        n = quoted(scan->p, scan->end);
        *kind = n > 0 ? DB_TOKEN_OTHER : DB_TOKEN_OPEN_STRING;
        return n > 0 ? n : left(scan);
    case '(': scan->depth++; break;
    case ')': scan->depth--; break;
    case '?':
    case ':':
    case '@':
    case '#':
    case '$':
        n = name_bytes(scan->p + 1, scan->end);
        *kind = n > 0 || *scan->p == '?' ? DB_TOKEN_VARIABLE : DB_TOKEN_OTHER;
        return 1 + n;
    default:
        n = name_bytes(scan->p, scan->end);
        *kind = n > 0 ? DB_TOKEN_WORD : DB_TOKEN_OTHER;
        return n > 0 ? n : 1;
    }
    *kind = DB_TOKEN_OTHER;
    return 1;
}

bool db_script_token(struct db_scan *scan, struct db_sql_token *t)
{
    size_t n;
    for (;; pass(scan, n)) {
        if (scan->p == scan->end)
            return false;
        n = 1;
        if (strchr(" \t\r\n\f", *scan->p) != NULL)
            continue;
        if (!at(scan, "/*") || (n = commented(scan)) == 0)
            break;
    }
    *t = (struct db_sql_token){.text.p = scan->p, .line = scan->line, .depth = scan->depth,
                           .first_in_line = scan->first_in_line};
    if (at(scan, "/*")) {
        t->kind = DB_TOKEN_OPEN_COMMENT;
        n = left(scan);
    } else if (at(scan, "--")) {
        t->kind = DB_TOKEN_COMMENT;
        n = to_line_end(scan);
    } else {
        n = measure(scan, &t->kind);
    }
    t->text.n = n;
    pass(scan, n);
    return true;
}
