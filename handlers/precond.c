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

static bool date(struct str header, int64_t *unix_s)
{
    return header.n > 0 && parse_http_date(header, unix_s);
}

const char *precond_parse(const struct req *req, struct precond *p)
{
    memset(p, 0, sizeof *p);
    if (req->if_match.p != NULL && !precond_tags(req->if_match, &p->db.match))
        return "If-Match";
    if (req->if_none_match.p != NULL && !precond_tags(req->if_none_match, &p->db.none_match))
        return "If-None-Match";
    p->db.unmodified_given = date(req->if_unmodified_since, &p->db.unmodified_since);
    p->modified_given = date(req->if_modified_since, &p->modified_since);
    p->range = req->range;
    p->if_range = req->if_range;
    return NULL;
}

enum precond_result precond_get(const struct precond *p, uint64_t seq, int64_t modified)
{
    struct db_precond first = p->db, second = {.none_match = p->db.none_match};
    first.none_match = (struct db_tags){0};
    if (!db_precond_holds(&first, true, seq, modified))
        return PRECOND_FAILED;
    if (p->db.none_match.given)
        return db_precond_holds(&second, true, seq, modified) ? PRECOND_GO
                                                              : PRECOND_NOT_MODIFIED;
    return p->modified_given && modified <= p->modified_since ? PRECOND_NOT_MODIFIED : PRECOND_GO;
}

bool precond_range(const struct precond *p, uint64_t seq, int64_t modified, int64_t now_s)
{
    struct str s = p->if_range;
    struct db_tags tags;
    int64_t since;
    if (s.n == 0)
        return true;
    if (s.p[0] == '"')
        return precond_tags(s, &tags) && tags.count == 1 && tags.seq[0] == seq &&
               memchr(s.p, ',', s.n) == NULL;
    /* A date tells states apart only when no second change can have come in the same second. */
    return parse_http_date(s, &since) && since == modified && modified + 1 < now_s;
}
