/* The tags of a template: what each becomes, and what is wrong with it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "handlers/mustache_parse.h"

enum { NAME_SHOWN = 60 }; /* bytes of a name in a message */

/* ---- places and errors ---- */

static struct mustache_place place(struct mustache_parse *p, size_t at)
{
    if (at < p->counted) {
        p->counted = 0;
        p->counted_line = p->counted_column = 1;
    }
    for (; p->counted < at; p->counted++) {
        if (p->text.p[p->counted] == '\n') {
            p->counted_line++;
            p->counted_column = 1;
        } else {
            p->counted_column += ((unsigned char)p->text.p[p->counted] & 0xc0) != 0x80;
        }
    }
    return (struct mustache_place){mustache_file_name(p->u, p->file), p->counted_line,
                                   p->counted_column};
}

bool mustache_fail(struct mustache_parse *p, size_t at, const char *format, ...)
{
    struct mustache_error *e = p->u->error;
    struct mustache_place where = place(p, at);
    if (where.file.n > 0)
        memcpy(e->file, where.file.p, where.file.n);
    e->file[where.file.n] = '\0';
    e->line = where.line;
    e->column = where.column;
    va_list args;
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    return false;
}

/* As much of a name as is shown; for "%.*s". */
static int shown(struct str name)
{
    size_t n = name.n;
    if (n > NAME_SHOWN)
        for (n = NAME_SHOWN; n > 0 && ((unsigned char)name.p[n] & 0xc0) == 0x80;)
            n--;
    return (int)n;
}

static const char *kind_word(enum step_kind kind)
{
    return kind == STEP_PARENT                        ? "parent"
           : kind == STEP_BLOCK || kind == STEP_FILL ? "block"
                                                      : "section";
}

/* ---- tags ---- */

/* "." may be asked for here, in all sections that are open. */
static void keep_dot(struct mustache_parse *p)
{
    for (unsigned i = 0; i < p->depth && !p->u->no_memory; i++)
        if (p->open[i].kind == STEP_SECTION)
            mustache_steps(p->u)[p->open[i].step].flags |= STEP_KEEPS;
}

static bool push(struct mustache_parse *p, const struct mustache_tag *t, struct mustache_open open)
{
    if (p->depth == MUSTACHE_NESTING_MAX)
        return mustache_fail(p, t->at, "more than %d sections, parents and blocks in one another",
                             MUSTACHE_NESTING_MAX);
    open.name = t->name;
    open.at = t->at;
    open.dedent = p->dedent;
    p->open[p->depth++] = open;
    return true;
}

/* Flags of a name whose value is asked for; tells who wants to know about it. */
static unsigned value_flags(struct mustache_parse *p, const struct mustache_tag *t)
{
    const struct mustache_input *in = p->u->in;
    if (t->name.n == 1 && t->name.p[0] == '.') {
        keep_dot(p);
        return STEP_DOT;
    }
    if (in->mentions != NULL) {
        struct mustache_place at = place(p, t->at);
        in->mentions(in->arg, &at, t->name);
    }
    return memchr(t->name.p, '.', t->name.n) != NULL ? STEP_DOTTED : 0;
}

static void take_value(struct mustache_parse *p, const struct mustache_tag *t)
{
    enum step_kind kind = t->sigil == 0 ? STEP_ESCAPED : STEP_RAW;
    mustache_put_text(p, mustache_lead(p));
    mustache_go_on(p, t->end, false);
    mustache_add(p->u, kind, mustache_take_fresh(p) | value_flags(p, t), t->name);
}

static bool take_section(struct mustache_parse *p, const struct mustache_tag *t)
{
    enum step_kind kind = t->sigil == '#' ? STEP_SECTION : STEP_INVERTED;
    unsigned flags = mustache_take_alone(p, t) ? 0 : mustache_take_fresh(p);
    flags |= value_flags(p, t);
    uint32_t step = mustache_add(p->u, kind, flags, t->name);
    mustache_add_number(p->u, 0);
    return push(p, t, (struct mustache_open){.kind = kind, .step = step});
}

/* The number of a partial or parent, which may be a new one; 0: the error is set. */
static unsigned file_of(struct mustache_parse *p, const struct mustache_tag *t)
{
    struct mustache_unit *u = p->u;
    if (t->name.p[0] == '*') {
        mustache_fail(p, t->at, "names of partials are fixed: \"*\" is not supported");
        return 0;
    }
    for (unsigned i = 1; i < u->n_files; i++)
        if (str_eq(mustache_file_name(u, i), t->name))
            return i;
    if (u->n_files > MUSTACHE_FILES_MAX) {
        mustache_fail(p, t->at, "more than %d partials", MUSTACHE_FILES_MAX);
        return 0;
    }
    struct mustache_place at = place(p, t->at);
    struct mustache_named named = {(uint32_t)u->names.len, (uint32_t)t->name.n, p->file, at.line,
                                   at.column, {0, 0}};
    u->no_memory = u->no_memory ||
                   !buf_add(&u->names, t->name.p, t->name.n, MUSTACHE_POOL_MAX_BYTES);
    u->files[u->n_files] = named;
    return u->n_files++;
}

static bool take_partial(struct mustache_parse *p, const struct mustache_tag *t)
{
    unsigned file = file_of(p, t);
    if (file == 0)
        return false;
    struct str blanks = mustache_carried(p, mustache_lead(p));
    bool alone = mustache_take_alone(p, t);
    mustache_add(p->u, STEP_PARTIAL, alone ? STEP_ALONE : mustache_take_fresh(p),
                 alone ? blanks : (struct str){NULL, 0});
    mustache_add_number(p->u, file);
    keep_dot(p);
    return true;
}

/* Whether a parent is alone on its lines is known at its end. */
static bool take_parent(struct mustache_parse *p, const struct mustache_tag *t)
{
    unsigned file = file_of(p, t);
    if (file == 0)
        return false;
    struct str blanks = mustache_carried(p, mustache_lead(p));
    uint32_t step = mustache_add(p->u, STEP_PARENT, mustache_take_fresh(p), blanks);
    mustache_add_number(p->u, 0);
    mustache_add_number(p->u, file);
    keep_dot(p);
    mustache_go_on(p, t->end, false);
    return push(p, t, (struct mustache_open){.kind = STEP_PARENT, .step = step, .led = p->led});
}

static bool take_block(struct mustache_parse *p, const struct mustache_tag *t)
{
    size_t next;
    bool alone = p->led && mustache_line_ends(p, t->end, &next);
    struct mustache_open open = {.kind = STEP_BLOCK};
    unsigned flags = mustache_take_fresh(p) | (alone ? STEP_ALONE : 0);
    open.step = mustache_add(p->u, STEP_BLOCK, flags, t->name);
    mustache_add_number(p->u, 0);
    mustache_add(p->u, STEP_MORE, 0, mustache_carried(p, mustache_lead(p)));
    keep_dot(p);
    if (alone)
        open.indent = mustache_carried(p, mustache_first_indent(p, next));
    mustache_go_on(p, alone ? next : t->end, alone);
    return push(p, t, open);
}

/* A block in a parent: what is around it has no effect, so that only the end of the line counts. */
static bool take_fill(struct mustache_parse *p, const struct mustache_tag *t)
{
    size_t next;
    bool alone = mustache_line_ends(p, t->end, &next);
    struct mustache_open open = {.kind = STEP_FILL};
    open.step = mustache_add(p->u, STEP_FILL, alone ? STEP_ALONE : 0, t->name);
    mustache_add_number(p->u, 0);
    struct str dedent = alone ? mustache_first_indent(p, next) : p->indent;
    if (!push(p, t, open))
        return false;
    p->dedent = dedent;
    p->fresh = false;
    mustache_go_on(p, alone ? next : t->end, alone);
    return true;
}

static void end_parent(struct mustache_parse *p, const struct mustache_tag *t,
                       const struct mustache_open *o)
{
    size_t next;
    bool alone = o->led && mustache_line_ends(p, t->end, &next);
    if (alone && !p->u->no_memory)
        mustache_steps(p->u)[o->step].flags |= STEP_ALONE;
    p->fresh = false;
    mustache_go_on(p, alone ? next : t->end, alone);
}

static void end_fill(struct mustache_parse *p, const struct mustache_tag *t)
{
    p->dedent = mustache_top(p)->dedent;
    mustache_go_on(p, t->end, false);
}

static bool take_end(struct mustache_parse *p, const struct mustache_tag *t)
{
    if (p->depth == 0)
        return mustache_fail(p, t->at, "\"%.*s\" ends here, but nothing is open", shown(t->name),
                             t->name.p);
    struct mustache_open o = *mustache_top(p);
    if (!str_eq(o.name, t->name)) {
        unsigned line = place(p, o.at).line;
        return mustache_fail(p, t->at, "\"%.*s\" ends here, but the %s \"%.*s\" of line %u is open",
                             shown(t->name), t->name.p, kind_word(o.kind), shown(o.name), o.name.p,
                             line);
    }
    if (o.kind == STEP_PARENT)
        end_parent(p, t, &o);
    else if (o.kind == STEP_FILL)
        end_fill(p, t);
    else
        mustache_take_alone(p, t);
    p->depth--;
    struct mustache_unit *u = p->u;
    u->growing = MUSTACHE_NO_STEP;
    if (u->no_memory)
        return true;
    mustache_steps(u)[o.step + 1].at = mustache_n_steps(u);
    if (o.indent.n > 0 && mustache_n_steps(u) > o.step + 3) {
        struct step *blanks = &mustache_steps(u)[o.step + 2];
        *blanks = (struct step){(uint32_t)u->pool.len, (uint16_t)o.indent.n, STEP_MORE, 0};
        u->no_memory = !buf_add(&u->pool, o.indent.p, o.indent.n, MUSTACHE_POOL_MAX_BYTES);
    }
    return true;
}

static bool take_delimiters(struct mustache_parse *p, const struct mustache_tag *t)
{
    struct str left = t->name;
    size_t n = 0;
    while (n < left.n && !mustache_is_space(left.p[n]))
        n++;
    struct str right = {left.p + n, left.n - n};
    left.n = n;
    while (right.n > 0 && mustache_is_space(right.p[0]))
        right = (struct str){right.p + 1, right.n - 1};
    bool ok = left.n > 0 && right.n > 0 && left.n <= MUSTACHE_DELIMITER_MAX &&
              right.n <= MUSTACHE_DELIMITER_MAX;
    for (size_t i = 0; i < t->name.n; i++)
        ok = ok && t->name.p[i] != '=';
    for (size_t i = 0; i < right.n; i++)
        ok = ok && !mustache_is_space(right.p[i]);
    if (!ok)
        return mustache_fail(p, t->at,
                             "new delimiters are two words without \"=\", as in {{=<%% %%>=}}");
    mustache_take_alone(p, t);
    p->left = left;
    p->right = right;
    return true;
}

static bool check_name(struct mustache_parse *p, const struct mustache_tag *t)
{
    struct str s = t->name;
    bool value = strchr("#^{&", t->sigil) != NULL; /* also 0: the string's end is found */
    if (s.n == 0)
        return mustache_fail(p, t->at, "a tag without a name");
    if (s.n > MUSTACHE_NAME_MAX)
        return mustache_fail(p, t->at, "a name of more than %d bytes", MUSTACHE_NAME_MAX);
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 0x7f)
            return mustache_fail(p, t->at, "a name has no blanks and no control characters");
    if (!value || (s.n == 1 && s.p[0] == '.'))
        return true;
    bool dots = s.p[0] == '.' || s.p[s.n - 1] == '.' || memmem(s.p, s.n, "..", 2) != NULL;
    return !dots || mustache_fail(p, t->at, "dots stand between names: \"%.*s\"", shown(s), s.p);
}

static bool take_named(struct mustache_parse *p, const struct mustache_tag *t)
{
    if (!check_name(p, t))
        return false;
    if (mustache_in_parent(p) && t->sigil != '$' && t->sigil != '/')
        return mustache_fail(p, t->at,
                             "in a parent only blocks have an effect, {{$name}}…{{/name}}");
    switch (t->sigil) {
    case '#':
    case '^':
        return take_section(p, t);
    case '>':
        return take_partial(p, t);
    case '<':
        return take_parent(p, t);
    case '$':
        return mustache_in_parent(p) ? take_fill(p, t) : take_block(p, t);
    case '/':
        return take_end(p, t);
    default:
        take_value(p, t);
        return true;
    }
}

static const char *find(const struct mustache_parse *p, struct str what, size_t from)
{
    return memmem(p->text.p + from, p->text.n - from, what.p, what.n);
}

/* Reads the tag that begins at p->at. */
bool mustache_take_tag(struct mustache_parse *p)
{
    struct mustache_tag t = {.at = p->at};
    size_t from = p->at + p->left.n;
    char right[MUSTACHE_DELIMITER_MAX + 1];
    size_t n = 0;
    if (from < p->text.n && strchr("#^/><$!={&", p->text.p[from]) != NULL && p->text.p[from] != 0)
        t.sigil = p->text.p[from++];
    if (t.sigil == '{' || t.sigil == '=')
        right[n++] = t.sigil == '{' ? '}' : '=';
    memcpy(right + n, p->right.p, p->right.n);
    n += p->right.n;
    const char *end = find(p, (struct str){right, n}, from);
    if (end == NULL)
        return mustache_fail(p, t.at, "a tag without its end: \"%.*s\" is missing", (int)n, right);
    size_t to = (size_t)(end - p->text.p);
    t.end = to + n;
    while (from < to && mustache_is_space(p->text.p[from]))
        from++;
    while (from < to && mustache_is_space(p->text.p[to - 1]))
        to--;
    t.name = mustache_slice(p, from, to);
    if (++p->u->tags > MUSTACHE_TAGS_MAX)
        return mustache_fail(p, t.at, "more than %d tags", MUSTACHE_TAGS_MAX);
    if (t.sigil == '=')
        return take_delimiters(p, &t);
    if (t.sigil != '!')
        return take_named(p, &t);
    mustache_take_alone(p, &t);
    return true;
}

bool mustache_all_ended(struct mustache_parse *p)
{
    const struct mustache_open *o = mustache_top(p);
    return o == NULL || mustache_fail(p, o->at, "the %s \"%.*s\" has no end", kind_word(o->kind),
                                      shown(o->name), o->name.p);
}
