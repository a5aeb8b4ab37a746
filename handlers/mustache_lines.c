/* Text and white space of a template: what is written, and what its tags take along. */
#include <string.h>

#include "handlers/mustache_parse.h"

/* ---- steps ---- */

uint32_t mustache_add(struct mustache_unit *u, enum step_kind kind, unsigned flags, struct str text)
{
    struct step s = {(uint32_t)u->pool.len, (uint16_t)text.n, (uint8_t)kind, (uint8_t)flags};
    uint32_t i = mustache_n_steps(u);
    u->no_memory = u->no_memory || !buf_add(&u->pool, text.p, text.n, MUSTACHE_POOL_MAX_BYTES) ||
                   !buf_add(&u->steps, &s, sizeof s, MUSTACHE_POOL_MAX_BYTES);
    u->growing = MUSTACHE_NO_STEP;
    return i;
}

void mustache_add_number(struct mustache_unit *u, uint32_t number)
{
    uint32_t i = mustache_add(u, STEP_MORE, 0, (struct str){NULL, 0});
    if (!u->no_memory)
        mustache_steps(u)[i].at = number;
}

static void grow_text(struct mustache_parse *p, struct str text)
{
    struct mustache_unit *u = p->u;
    while (text.n > 0 && !u->no_memory) {
        size_t n = text.n < UINT16_MAX ? text.n : UINT16_MAX;
        struct step *last = u->growing != MUSTACHE_NO_STEP ? &mustache_steps(u)[u->growing] : NULL;
        bool joins = last != NULL && last->n + n <= UINT16_MAX &&
                     p->fresh == (u->pool.data[u->pool.len - 1] == '\n');
        if (joins && buf_add(&u->pool, text.p, n, MUSTACHE_POOL_MAX_BYTES))
            last->n = (uint16_t)(last->n + n);
        else if (joins)
            u->no_memory = true;
        else
            u->growing = mustache_add(u, STEP_TEXT, p->fresh ? STEP_FRESH : 0,
                                      (struct str){text.p, n});
        p->fresh = text.p[n - 1] == '\n';
        text = (struct str){text.p + n, text.n - n};
    }
}

/* ---- white space ---- */

/* The blanks at the beginning of the line that begins at `from`. */
static struct str indent_of(const struct mustache_parse *p, size_t from)
{
    size_t to = from;
    while (to < p->text.n && mustache_is_blank(p->text.p[to]))
        to++;
    return mustache_slice(p, from, to);
}

struct str mustache_first_indent(const struct mustache_parse *p, size_t from)
{
    for (;;) {
        struct str indent = indent_of(p, from);
        size_t at = from + indent.n;
        while (at < p->text.n && p->text.p[at] == '\r')
            at++;
        if (at == p->text.n || p->text.p[at] != '\n')
            return indent;
        from = at + 1;
    }
}

/* Takes from the beginning of a line what its block was indented with, or as much as there is. */
static struct str undent(const struct mustache_parse *p, struct str line)
{
    size_t n = 0;
    while (n < line.n && n < p->dedent.n && line.p[n] == p->dedent.p[n])
        n++;
    return (struct str){line.p + n, line.n - n};
}

struct str mustache_carried(const struct mustache_parse *p, struct str blanks)
{
    struct str s = undent(p, blanks);
    return (struct str){s.p, s.n < UINT16_MAX ? s.n : UINT16_MAX};
}

bool mustache_line_ends(const struct mustache_parse *p, size_t from, size_t *next)
{
    size_t at = from + indent_of(p, from).n;
    if (p->text.n - at >= 2 && p->text.p[at] == '\r' && p->text.p[at + 1] == '\n')
        at++;
    *next = at < p->text.n ? at + 1 : at;
    return at == p->text.n || p->text.p[at] == '\n';
}

void mustache_put_text(struct mustache_parse *p, struct str text)
{
    if (mustache_in_parent(p))
        return;
    if (p->dedent.n == 0) {
        grow_text(p, text);
        return;
    }
    while (text.n > 0) {
        const char *newline = memchr(text.p, '\n', text.n);
        size_t n = newline != NULL ? (size_t)(newline - text.p) + 1 : text.n;
        struct str line = {text.p, n};
        grow_text(p, line.p > p->text.p && line.p[-1] == '\n' ? undent(p, line) : line);
        text = (struct str){text.p + n, text.n - n};
    }
}

void mustache_take_text(struct mustache_parse *p, size_t end)
{
    struct str text = mustache_slice(p, p->at, end);
    const char *newline = text.n > 0 ? memrchr(text.p, '\n', text.n) : NULL;
    if (newline != NULL) {
        p->line = (size_t)(newline - p->text.p) + 1;
        p->clean = true;
    }
    if (p->clean)
        p->indent = indent_of(p, p->line);
    p->led = end < p->text.n && p->clean && p->line + p->indent.n >= end;
    mustache_put_text(p, mustache_slice(p, p->at, p->led ? p->line : end));
    p->at = end;
}

void mustache_go_on(struct mustache_parse *p, size_t at, bool next_line)
{
    p->at = at;
    p->clean = next_line;
    if (next_line) {
        p->line = at;
        p->fresh = true;
    }
}

bool mustache_take_alone(struct mustache_parse *p, const struct mustache_tag *t)
{
    size_t next;
    bool alone = p->led && mustache_line_ends(p, t->end, &next);
    if (!alone)
        mustache_put_text(p, mustache_lead(p));
    mustache_go_on(p, alone ? next : t->end, alone);
    return alone;
}
