#include "handlers/multipart.h"

#include <string.h>
#include <strings.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct str trim(struct str s)
{
    while (s.n > 0 && is_blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

static bool same_word(struct str s, const char *word)
{
    return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

/* Takes the next parameter of a field, behind a ';': its name, and its value without quotes. False
 * at the end, or when it is malformed: then *bad is set. */
static bool take_parameter(struct str *rest, struct str *name, struct str *value, bool *bad)
{
    *rest = trim(*rest);
    if (rest->n == 0)
        return false;
    const char *end = rest->p + rest->n, *p = rest->p;
    *bad = true;
    if (*p++ != ';')
        return false;
    while (p < end && is_blank(*p))
        p++;
    const char *equals = memchr(p, '=', (size_t)(end - p));
    if (equals == NULL)
        return false;
    *name = trim((struct str){p, (size_t)(equals - p)});
    p = equals + 1;
    while (p < end && is_blank(*p))
        p++;
    const char *from = p;
    if (p < end && *p == '"') {
        /* browsers escape a quote as %22 (HTML 4.10.21.8), others as \" */
        for (from = ++p; p < end && *p != '"'; p++)
            if (*p == '\\' && p + 1 < end)
                p++;
        if (p >= end)
            return false;
        *value = (struct str){from, (size_t)(p++ - from)};
    } else {
        while (p < end && *p != ';' && !is_blank(*p))
            p++;
        *value = (struct str){from, (size_t)(p - from)};
    }
    *rest = (struct str){p, (size_t)(end - p)};
    *bad = false;
    return true;
}

/* What stands before the first ';'; *rest begins with that. */
static struct str take_word(struct str text, struct str *rest)
{
    const char *semicolon = memchr(text.p, ';', text.n);
    size_t n = semicolon != NULL ? (size_t)(semicolon - text.p) : text.n;
    *rest = (struct str){text.p + n, text.n - n};
    return trim((struct str){text.p, n});
}

static bool boundary_ok(struct str b)
{
    for (size_t i = 0; i < b.n; i++)
        if (b.p[i] < 0x20 || b.p[i] > 0x7e)
            return false;
    return b.n > 0 && b.n <= MULTIPART_BOUNDARY_MAX && b.p[b.n - 1] != ' ';
}

/* Moves behind the rest of a delimiter's line. False: it is not one, or it is the last. */
static bool end_line(struct multipart *m, bool *last)
{
    *last = m->end - m->p >= 2 && m->p[0] == '-' && m->p[1] == '-';
    if (*last)
        return false;
    while (m->p < m->end && is_blank(*m->p))
        m->p++;
    if (m->end - m->p < 2 || m->p[0] != '\r' || m->p[1] != '\n')
        return false;
    m->p += 2;
    return true;
}

bool multipart_start(struct multipart *m, struct str content_type, struct str body)
{
    struct str rest, name, value, boundary = {NULL, 0};
    bool bad = false;
    (void)take_word(content_type, &rest);
    while (boundary.p == NULL && take_parameter(&rest, &name, &value, &bad))
        if (same_word(name, "boundary"))
            boundary = value;
    if (bad || boundary.p == NULL || !boundary_ok(boundary))
        return false;
    memcpy(m->boundary, "\r\n--", 4);
    memcpy(m->boundary + 4, boundary.p, boundary.n);
    m->boundary_len = 4 + boundary.n;
    m->p = body.p;
    m->end = body.p + body.n;
    if (body.n == 0)
        return false;
    /* the first delimiter may stand at the very beginning, without its CRLF */
    if (body.n >= m->boundary_len - 2 &&
        memcmp(body.p, m->boundary + 2, m->boundary_len - 2) == 0) {
        m->p += m->boundary_len - 2;
        return true;
    }
    const char *first = memmem(body.p, body.n, m->boundary, m->boundary_len);
    if (first == NULL)
        return false;
    m->p = first + m->boundary_len;
    return true;
}

static bool take_disposition(struct str value, struct multipart_part *part)
{
    struct str rest, name, parameter;
    bool bad = false;
    if (!same_word(take_word(value, &rest), "form-data"))
        return false;
    while (take_parameter(&rest, &name, &parameter, &bad)) {
        struct str *to = same_word(name, "name")       ? &part->name
                         : same_word(name, "filename") ? &part->file_name
                                                       : NULL;
        if (to != NULL && to->p != NULL)
            return false;
        if (to != NULL)
            *to = parameter;
    }
    return !bad;
}

/* One line of a part's head. False: it is none. */
static bool take_line(struct str line, struct multipart_part *part)
{
    const char *colon = memchr(line.p, ':', line.n);
    if (colon == NULL)
        return false;
    struct str name = {line.p, (size_t)(colon - line.p)};
    struct str value = trim((struct str){colon + 1, line.n - name.n - 1});
    for (size_t i = 0; i < value.n; i++)
        if (((unsigned char)value.p[i] < 0x20 && value.p[i] != '\t') || value.p[i] == 0x7f)
            return false;
    if (same_word(name, "content-disposition"))
        return part->name.p == NULL && take_disposition(value, part);
    if (same_word(name, "content-type")) {
        bool twice = part->type.p != NULL;
        part->type = value;
        return !twice;
    }
    if (same_word(name, "content-transfer-encoding")) /* deprecated: RFC 7578 4.7 */
        return same_word(value, "7bit") || same_word(value, "8bit") || same_word(value, "binary");
    return true;
}

static bool take_head(struct multipart *m, struct multipart_part *part)
{
    size_t left = (size_t)(m->end - m->p);
    const char *limit = m->p + (left < MULTIPART_HEAD_MAX ? left : MULTIPART_HEAD_MAX);
    for (;;) {
        const char *end = memmem(m->p, (size_t)(limit - m->p), "\r\n", 2);
        if (end == NULL)
            return false;
        struct str line = {m->p, (size_t)(end - m->p)};
        m->p = end + 2;
        if (line.n == 0)
            return part->name.p != NULL;
        if (!take_line(line, part))
            return false;
    }
}

enum multipart_result multipart_next(struct multipart *m, struct multipart_part *part)
{
    bool last;
    memset(part, 0, sizeof *part);
    if (!end_line(m, &last))
        return last ? MULTIPART_END : MULTIPART_BAD;
    if (!take_head(m, part))
        return MULTIPART_BAD;
    /* an empty part: the CRLF before the delimiter is the one that ended the head */
    size_t back = 2;
    const char *from = m->p - back;
    const char *end = memmem(from, (size_t)(m->end - from), m->boundary, m->boundary_len);
    if (end == NULL)
        return MULTIPART_BAD;
    part->body = (struct str){m->p, end < m->p ? 0 : (size_t)(end - m->p)};
    m->p = end + m->boundary_len;
    return MULTIPART_PART;
}
