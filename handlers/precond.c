#include "handlers/precond.h"

#include <string.h>

#include "fcgi/resp.h"

struct scan {
    const char *p;
    const char *end;
};

static void skip_blank(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
        s->p++;
}

/* Our own form: decimal, no leading zero, fits 63 bits. */
static bool own_tag(const char *p, size_t n, uint64_t *seq)
{
    uint64_t v = 0;
    if (n == 0 || n > 18 || p[0] == '0')
        return false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(p[i] - '0');
    }
    *seq = v;
    return true;
}

/* One entity tag at s: [W/]"etagc*". */
static bool take_tag(struct scan *s, struct db_tags *tags)
{
    uint64_t seq;
    if (s->end - s->p >= 2 && s->p[0] == 'W' && s->p[1] == '/')
        s->p += 2;
    if (s->p == s->end || *s->p != '"')
        return false;
    const char *start = ++s->p;
    for (; s->p < s->end && *s->p != '"'; s->p++) {
        unsigned char c = (unsigned char)*s->p;
        if (c < 0x21 || c == 0x7f)
            return false;
    }
    if (s->p == s->end)
        return false;
    size_t n = (size_t)(s->p++ - start);
    if (!own_tag(start, n, &seq))
        return true;
    if (tags->count == DB_TAGS_MAX)
        return false;
    tags->seq[tags->count++] = seq;
    return true;
}

bool precond_tags(struct str header, struct db_tags *tags)
{
    *tags = (struct db_tags){.given = 1};
    if (header.n == 0)
        return false;
    struct scan s = {header.p, header.p + header.n};
    bool some = false;
    skip_blank(&s);
    if (s.p < s.end && *s.p == '*') {
        s.p++;
        skip_blank(&s);
        tags->any = 1;
        return s.p == s.end;
    }
    while (s.p < s.end) {
        if (*s.p != ',') {
            if (!take_tag(&s, tags))
                return false;
            some = true;
        }
        skip_blank(&s);
        if (s.p < s.end && *s.p != ',')
            return false;
        while (s.p < s.end && (*s.p == ',' || *s.p == ' ' || *s.p == '\t'))
            s.p++;
    }
    return some;
}

const char *precond_parse(const struct req *req, struct db_precond *p)
{
    memset(p, 0, sizeof *p);
    if (req->if_match.p != NULL && !precond_tags(req->if_match, &p->match))
        return "If-Match";
    if (req->if_none_match.p != NULL && !precond_tags(req->if_none_match, &p->none_match))
        return "If-None-Match";
    p->unmodified_given = req->if_unmodified_since.n > 0 &&
                          parse_http_date(req->if_unmodified_since, &p->unmodified_since);
    return NULL;
}

enum precond_result precond_get(const struct req *req, const struct db_precond *p, bool exists,
                                uint64_t seq, int64_t modified)
{
    struct db_precond first = *p;
    int64_t since;
    first.none_match = (struct db_tags){0};
    if (!db_precond_holds(&first, exists, seq, modified))
        return PRECOND_FAILED;
    if (p->none_match.given)
        return db_precond_holds(&(struct db_precond){.none_match = p->none_match}, exists, seq,
                                modified)
                   ? PRECOND_GO
                   : PRECOND_NOT_MODIFIED;
    if (exists && req->if_modified_since.n > 0 &&
        parse_http_date(req->if_modified_since, &since) && modified <= since)
        return PRECOND_NOT_MODIFIED;
    return PRECOND_GO;
}
