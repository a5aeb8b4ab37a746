/* Rendering: a walk over the steps of a compiled template, which stays as it is.
 *
 * Kept true: what the walk is in (contexts, blocks that were filled, indentation) are lists on the
 * stack, from the innermost outwards; so what a partial or a section adds is gone when it ends, and
 * nothing is allocated. A text of the source is written before the source is asked again; the one
 * that "." may ask for later is copied, and only where a "." is. */
#include <string.h>

#include "handlers/html.h"
#include "handlers/mustache_internal.h"

/* A section that the walk is in. */
struct level {
    const struct level *outer;
    struct mustache_value value;
    size_t kept_at; /* where a text was copied to, in the spare buffer */
};

/* The blocks that a parent tag fills: steps from, to. */
struct fills {
    const struct fills *outer;
    uint32_t from, to;
};

/* Blanks that each line gets; those outside come first. */
struct indent {
    const struct indent *outer;
    struct str blanks;
};

/* Where the walk is. */
struct scope {
    const struct level *level;
    const struct fills *fills;
    const struct indent *indent;
    unsigned parts; /* partials within each other */
};

struct render {
    const struct mustache *t;
    const struct mustache_source *source;
    const struct mustache_out *out;
    unsigned depth;
    unsigned steps;  /* that are left */
    bool in_line;    /* the next text continues a line, though it was the first of one */
};

static enum mustache_result run(struct render *r, uint32_t from, uint32_t to,
                                const struct scope *s);

/* ---- output ---- */

static struct str pooled(const struct render *r, const struct step *s)
{
    return (struct str){r->t->pool + s->at, s->n};
}

/* Why a buffer did not take n bytes. */
static enum mustache_result refused(const struct render *r, const struct buf *b, size_t n)
{
    size_t max = r->out->max_bytes;
    return n > max || b->len > max - n ? MUSTACHE_TOO_LARGE : MUSTACHE_NO_MEMORY;
}

static enum mustache_result put(struct render *r, struct str text)
{
    struct buf *b = r->out->text;
    return buf_add(b, text.p, text.n, r->out->max_bytes) ? MUSTACHE_OK : refused(r, b, text.n);
}

static enum mustache_result put_escaped(struct render *r, struct str text)
{
    struct buf *b = r->out->text;
    size_t longest = sizeof "&quot;"; /* the most that was missing */
    return html_add(b, text, r->out->max_bytes) ? MUSTACHE_OK : refused(r, b, longest);
}

static enum mustache_result put_indent(struct render *r, const struct indent *indent)
{
    if (indent == NULL)
        return MUSTACHE_OK;
    enum mustache_result rc = put_indent(r, indent->outer);
    return rc == MUSTACHE_OK ? put(r, indent->blanks) : rc;
}

/* The indentation inside of something; *more is used when there are blanks to add. */
static const struct indent *indent_more(struct indent *more, const struct indent *outer,
                                        struct str blanks)
{
    *more = (struct indent){outer, blanks};
    return blanks.n > 0 ? more : outer;
}

/* Begins a line. */
static enum mustache_result begin_line(struct render *r, const struct indent *indent)
{
    bool already = r->in_line;
    r->in_line = false;
    return already ? MUSTACHE_OK : put_indent(r, indent);
}

/* Text of which each line is indented, unless it is empty. */
static enum mustache_result put_lines(struct render *r, const struct step *step,
                                      const struct indent *indent)
{
    struct str text = pooled(r, step);
    bool fresh = (step->flags & STEP_FRESH) != 0;
    enum mustache_result rc = MUSTACHE_OK;
    while (text.n > 0 && rc == MUSTACHE_OK) {
        const char *newline = memchr(text.p, '\n', text.n);
        size_t n = newline != NULL ? (size_t)(newline - text.p) + 1 : text.n;
        bool empty = text.p[0] == '\n' || (n == 2 && memcmp(text.p, "\r\n", 2) == 0);
        if (fresh)
            rc = begin_line(r, empty ? NULL : indent);
        if (rc == MUSTACHE_OK)
            rc = put(r, (struct str){text.p, n});
        fresh = newline != NULL;
        text = (struct str){text.p + n, text.n - n};
    }
    return rc;
}

/* ---- values ---- */

/* Asks the contexts, from the innermost outwards. */
static bool look_up(struct render *r, const struct level *level, struct str name,
                    struct mustache_value *v)
{
    const struct mustache_source *source = r->source;
    for (; level != NULL; level = level->outer) {
        if (level->value.kind != MUSTACHE_CONTEXT)
            continue;
        if (!source->find(source->arg, &level->value, name, v))
            return false;
        if (v->kind != MUSTACHE_ABSENT)
            return true;
    }
    return source->find(source->arg, NULL, name, v);
}

/* "a.b.c": the first name is looked for everywhere, each other only in what the one before is. */
static bool look_up_dotted(struct render *r, const struct level *level, struct str name,
                           struct mustache_value *v)
{
    const struct mustache_source *source = r->source;
    for (bool first = true;; first = false) {
        const char *dot = memchr(name.p, '.', name.n);
        struct str part = {name.p, dot != NULL ? (size_t)(dot - name.p) : name.n};
        struct mustache_value in = *v;
        *v = (struct mustache_value){.kind = MUSTACHE_ABSENT};
        if (!first && in.kind != MUSTACHE_CONTEXT && in.kind != MUSTACHE_LIST)
            return true;
        if (!(first ? look_up(r, level, part, v) : source->find(source->arg, &in, part, v)))
            return false;
        if (dot == NULL)
            return true;
        name = (struct str){dot + 1, name.n - part.n - 1};
    }
}

/* The value that a step names. False: the source failed. */
static bool value_of(struct render *r, const struct step *step, const struct level *level,
                     struct mustache_value *v)
{
    *v = (struct mustache_value){.kind = MUSTACHE_ABSENT};
    if (step->flags & STEP_DOTTED)
        return look_up_dotted(r, level, pooled(r, step), v);
    if (!(step->flags & STEP_DOT) || level == NULL)
        return look_up(r, level, pooled(r, step), v);
    *v = level->value;
    if (v->kind == MUSTACHE_TEXT)
        v->text.p = (const char *)r->out->spare->data + level->kept_at;
    else
        v->text.n = 0;
    return true;
}

static enum mustache_result put_value(struct render *r, const struct step *step,
                                      const struct level *level)
{
    struct mustache_value v;
    if (!value_of(r, step, level, &v))
        return MUSTACHE_FAILED;
    if ((v.kind != MUSTACHE_TEXT && v.kind != MUSTACHE_FALSE) || v.text.n == 0)
        return MUSTACHE_OK;
    return step->kind == STEP_ESCAPED ? put_escaped(r, v.text) : put(r, v.text);
}

/* ---- sections ---- */

/* Renders a section once, with the value as the innermost. */
static enum mustache_result once(struct render *r, const struct step *step,
                                 const struct mustache_value *v, const struct scope *s)
{
    struct level level = {s->level, *v, r->out->spare->len};
    struct scope inner = *s;
    inner.level = &level;
    if (v->kind == MUSTACHE_TEXT && (step->flags & STEP_KEEPS) &&
        !buf_add(r->out->spare, v->text.p, v->text.n, r->out->max_bytes))
        return refused(r, r->out->spare, v->text.n);
    uint32_t from = (uint32_t)(step - r->t->steps);
    enum mustache_result rc = run(r, from + 2, step[1].at, &inner);
    r->out->spare->len = level.kept_at;
    return rc;
}

static enum mustache_result each(struct render *r, const struct step *step,
                                 const struct mustache_value *list, const struct scope *s)
{
    struct mustache_value item = {.kind = MUSTACHE_ABSENT};
    enum mustache_result rc = MUSTACHE_OK;
    while (rc == MUSTACHE_OK) {
        if (!r->source->next(r->source->arg, list, &item))
            return MUSTACHE_FAILED;
        if (item.kind == MUSTACHE_ABSENT)
            break;
        if (r->steps-- == 0)
            return MUSTACHE_TOO_LONG;
        rc = once(r, step, &item, s);
    }
    return rc;
}

static enum mustache_result section(struct render *r, const struct step *step,
                                    const struct scope *s)
{
    struct mustache_value v;
    if (!value_of(r, step, s->level, &v))
        return MUSTACHE_FAILED;
    switch (v.kind) {
    case MUSTACHE_LIST:
        return each(r, step, &v, s);
    case MUSTACHE_TEXT:
    case MUSTACHE_CONTEXT:
        return once(r, step, &v, s);
    default:
        return MUSTACHE_OK;
    }
}

static bool has_items(struct render *r, const struct mustache_value *list, bool *any)
{
    struct mustache_value item = {.kind = MUSTACHE_ABSENT};
    if (r->source->some != NULL)
        return r->source->some(r->source->arg, list, any);
    if (!r->source->next(r->source->arg, list, &item))
        return false;
    *any = item.kind != MUSTACHE_ABSENT;
    return true;
}

static enum mustache_result inverted(struct render *r, const struct step *step,
                                     const struct scope *s)
{
    struct mustache_value v;
    if (!value_of(r, step, s->level, &v))
        return MUSTACHE_FAILED;
    bool any = v.kind == MUSTACHE_TEXT || v.kind == MUSTACHE_CONTEXT;
    if (v.kind == MUSTACHE_LIST && !has_items(r, &v, &any))
        return MUSTACHE_FAILED;
    return any ? MUSTACHE_OK : run(r, (uint32_t)(step - r->t->steps) + 2, step[1].at, s);
}

/* ---- partials, parents and blocks ---- */

/* Another file. Alone on its lines it is indented as its tag is; else it is not indented. */
static enum mustache_result part(struct render *r, const struct step *step, uint32_t file,
                                 struct scope inner)
{
    struct indent indent;
    inner.indent =
        step->flags & STEP_ALONE ? indent_more(&indent, inner.indent, pooled(r, step)) : NULL;
    if (inner.parts++ == MUSTACHE_PARTS_MAX)
        return MUSTACHE_TOO_DEEP;
    return run(r, r->t->files[file].from, r->t->files[file].to, &inner);
}

static enum mustache_result parent(struct render *r, const struct step *step, const struct scope *s)
{
    struct scope inner = *s;
    struct fills fills = {s->fills, (uint32_t)(step - r->t->steps) + 3, step[1].at};
    inner.fills = &fills;
    if (!(step->flags & STEP_ALONE)) {
        enum mustache_result rc = put(r, pooled(r, step)); /* these blanks are text */
        if (rc != MUSTACHE_OK)
            return rc;
    }
    return part(r, step, step[2].at, inner);
}

/* Looks for what fills a block: the outermost parent tag that does. *by is that tag's. False: too
 * many steps. */
static bool filled(struct render *r, struct str name, const struct fills *fills,
                   const struct step **fill, const struct fills **by)
{
    const struct step *steps = r->t->steps;
    for (; fills != NULL; fills = fills->outer) {
        for (uint32_t i = fills->from; i < fills->to; i = steps[i + 1].at) {
            if (r->steps == 0)
                return false;
            r->steps--;
            if (str_eq(pooled(r, &steps[i]), name)) {
                *fill = &steps[i];
                *by = fills;
                break;
            }
        }
    }
    return true;
}

/* A block with the text that stands in it. */
static enum mustache_result block_as_it_is(struct render *r, const struct step *step,
                                           const struct scope *s)
{
    enum mustache_result rc = MUSTACHE_OK;
    if ((step->flags & (STEP_FRESH | STEP_ALONE)) == STEP_FRESH) {
        rc = begin_line(r, s->indent);
        if (rc == MUSTACHE_OK)
            rc = put(r, pooled(r, &step[2]));
    }
    if (rc != MUSTACHE_OK)
        return rc;
    return run(r, (uint32_t)(step - r->t->steps) + 3, step[1].at, s);
}

/* A block with what a parent tag filled it with. That belongs to the file of the parent tag: its
 * blocks are filled by those that included that file. */
static enum mustache_result block(struct render *r, const struct step *step, const struct scope *s)
{
    const struct step *fill = NULL;
    const struct fills *by = NULL;
    if (!filled(r, pooled(r, step), s->fills, &fill, &by))
        return MUSTACHE_TOO_LONG;
    if (fill == NULL)
        return block_as_it_is(r, step, s);
    struct indent indent;
    struct scope inner = *s;
    enum mustache_result rc = MUSTACHE_OK;
    inner.fills = by->outer;
    inner.indent = indent_more(&indent, s->indent, pooled(r, &step[2]));
    if (!(step->flags & STEP_FRESH))
        r->in_line = (fill->flags & STEP_ALONE) != 0;
    else if (!(fill->flags & STEP_ALONE))
        rc = begin_line(r, inner.indent);
    if (rc == MUSTACHE_OK)
        rc = run(r, (uint32_t)(fill - r->t->steps) + 2, fill[1].at, &inner);
    r->in_line = false;
    return rc;
}

/* ---- the walk ---- */

static enum mustache_result text(struct render *r, const struct step *step, const struct scope *s)
{
    return s->indent == NULL ? put(r, pooled(r, step)) : put_lines(r, step, s->indent);
}

/* Does one step and sets *next to the one behind. */
static enum mustache_result do_step(struct render *r, const struct step *step,
                                    const struct scope *s, uint32_t *next)
{
    switch ((enum step_kind)step->kind) {
    case STEP_TEXT:
        *next += 1;
        return text(r, step, s);
    case STEP_ESCAPED:
    case STEP_RAW:
        *next += 1;
        return put_value(r, step, s->level);
    case STEP_SECTION:
        *next = step[1].at;
        return section(r, step, s);
    case STEP_INVERTED:
        *next = step[1].at;
        return inverted(r, step, s);
    case STEP_PARTIAL:
        *next += 2;
        return part(r, step, step[1].at, *s);
    case STEP_PARENT:
        *next = step[1].at;
        return parent(r, step, s);
    case STEP_BLOCK:
        *next = step[1].at;
        return block(r, step, s);
    case STEP_FILL:
    case STEP_MORE:
        break;
    }
    return MUSTACHE_FAILED; /* not reached: they stand behind others */
}

/* True for a step that begins a line and does not do so itself, as text and blocks do, and files
 * that are alone on their lines. */
static bool begins_line(const struct step *step)
{
    return (step->flags & (STEP_FRESH | STEP_ALONE)) == STEP_FRESH && step->kind != STEP_TEXT &&
           step->kind != STEP_BLOCK;
}

static enum mustache_result run(struct render *r, uint32_t from, uint32_t to, const struct scope *s)
{
    enum mustache_result rc = MUSTACHE_OK;
    if (r->depth == MUSTACHE_DEPTH_MAX)
        return MUSTACHE_TOO_DEEP;
    r->depth++;
    for (uint32_t i = from; i < to && rc == MUSTACHE_OK;) {
        const struct step *step = &r->t->steps[i];
        if (r->steps-- == 0) {
            rc = MUSTACHE_TOO_LONG;
            break;
        }
        if (s->indent != NULL && begins_line(step))
            rc = begin_line(r, s->indent);
        if (rc == MUSTACHE_OK)
            rc = do_step(r, step, s, &i);
    }
    r->depth--;
    return rc;
}

enum mustache_result mustache_render(const struct mustache *t, const struct mustache_source *source,
                                     const struct mustache_out *out)
{
    struct render r = {.t = t, .source = source, .out = out, .steps = MUSTACHE_STEPS_MAX};
    struct scope outermost = {0};
    out->spare->len = 0;
    return run(&r, t->files[0].from, t->files[0].to, &outermost);
}

const char *mustache_says(enum mustache_result result)
{
    switch (result) {
    case MUSTACHE_OK:
        return "rendered";
    case MUSTACHE_FAILED:
        return "its data could not be read";
    case MUSTACHE_TOO_LARGE:
        return "the page would be too large";
    case MUSTACHE_TOO_DEEP:
        return "partials, sections or blocks are too deep within each other: does a partial "
               "include itself without end?";
    case MUSTACHE_TOO_LONG:
        return "the page takes too many steps: sections within sections, or partials that are "
               "included again and again";
    case MUSTACHE_NO_MEMORY:
        return "no memory";
    }
    return "unknown";
}
