/* How templates become steps: mustache_compile.c has the files, mustache_tags.c the tags of one,
 * mustache_lines.c its text and white space. All of it is one compilation, on one thread.
 *
 * Kept true: white space is settled when compiling, so that rendering copies pieces and knows
 * nothing of tags. What a line loses: a tag that is alone on it (a section's, a partial's, a
 * comment, …) takes the whole line with it; the text that fills a block loses the indentation it
 * was written with. What a line gets: the steps that begin one are marked (STEP_FRESH), for the
 * indentation of a partial, which is known only when rendering. */
#ifndef HANJI_HANDLERS_MUSTACHE_PARSE_H
#define HANJI_HANDLERS_MUSTACHE_PARSE_H

#include "handlers/mustache_internal.h"

/* Of steps, and of text; out of reach, since files, their bytes and tags have caps. */
enum { MUSTACHE_POOL_MAX_BYTES = 64 << 20 };

#define MUSTACHE_NO_STEP UINT32_MAX

/* A partial that is named somewhere; the first is the template. */
struct mustache_named {
    uint32_t name_at, name_n; /* in unit.names */
    unsigned by;              /* the file that names it first, */
    unsigned line, column;    /* and where */
    struct mustache_file steps;
};

/* One compilation. */
struct mustache_unit {
    const struct mustache_input *in;
    struct mustache_error *error;
    struct buf steps, pool, names;
    struct mustache_named files[MUSTACHE_FILES_MAX + 1];
    unsigned n_files;
    unsigned tags;
    uint32_t growing; /* the text that the next text may be added to, or MUSTACHE_NO_STEP */
    bool no_memory;   /* from then on nothing is added, and compiling ends at the next tag */
};

/* A tag that waits for its end. */
struct mustache_open {
    enum step_kind kind;
    struct str name;
    size_t at;
    uint32_t step;
    bool led;          /* a parent: only blanks were before it on its line */
    struct str indent; /* a block that is alone: the blanks before its first line */
    struct str dedent; /* the parse's, as it was outside */
};

/* One file while it is read. */
struct mustache_parse {
    struct mustache_unit *u;
    unsigned file;
    struct str text;
    size_t at;
    size_t line;         /* where the line of `at` begins */
    struct str indent;   /* its first blanks */
    bool clean;          /* no tag stands on that line before `at` */
    bool fresh;          /* what is written next begins a line */
    bool led;            /* the tag at hand has only blanks before it on its line, from `line` */
    struct str dedent;   /* what lines lose at their beginning */
    struct str left, right; /* delimiters */
    unsigned depth;
    struct mustache_open open[MUSTACHE_NESTING_MAX];
    size_t counted; /* as far as lines and columns were counted */
    unsigned counted_line, counted_column;
};

struct mustache_tag {
    char sigil; /* of # ^ / > < $ ! = { &, or 0 */
    struct str name;
    size_t at, end;
};


/* ---- mustache_lines.c ---- */

/* Adds a step with its text, at most UINT16_MAX bytes, and returns its number. Text after it is a
 * step of its own. */
uint32_t mustache_add(struct mustache_unit *u, enum step_kind kind, unsigned flags,
                      struct str text);

/* Adds a STEP_MORE. */
void mustache_add_number(struct mustache_unit *u, uint32_t number);

/* Adds text of the file as it is to be written. */
void mustache_put_text(struct mustache_parse *p, struct str text);

/* Takes the text before a tag, or before the end; not the blanks that lead the tag. */
void mustache_take_text(struct mustache_parse *p, size_t end);

/* Whether a tag is alone on its line; if not, the blanks before it are text. Goes on behind it. */
bool mustache_take_alone(struct mustache_parse *p, const struct mustache_tag *t);

/* Goes on behind a tag: on its line, or when it takes the line along, on the next. */
void mustache_go_on(struct mustache_parse *p, size_t at, bool next_line);

/* True when nothing but blanks stands between `from` and the end of the line; *next is behind. */
bool mustache_line_ends(const struct mustache_parse *p, size_t from, size_t *next);

/* The blanks at the beginning of the first line that is not empty. */
struct str mustache_first_indent(const struct mustache_parse *p, size_t from);

/* Blanks as a step carries them: without what their block was indented with. */
struct str mustache_carried(const struct mustache_parse *p, struct str blanks);

/* ---- mustache_tags.c ---- */

/* Reads the tag that begins at p->at. False: the error is set. */
bool mustache_take_tag(struct mustache_parse *p) __attribute__((warn_unused_result));

/* False when a tag waits for its end; the error is set. */
bool mustache_all_ended(struct mustache_parse *p) __attribute__((warn_unused_result));

/* Sets the error for a place and returns false. */
bool mustache_fail(struct mustache_parse *p, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- for all of them ---- */

/* The name of a file; empty for the template. */
static inline struct str mustache_file_name(const struct mustache_unit *u, unsigned file)
{
    const struct mustache_named *f = &u->files[file];
    return (struct str){f->name_n > 0 ? (const char *)u->names.data + f->name_at : NULL, f->name_n};
}

static inline struct step *mustache_steps(struct mustache_unit *u)
{
    return (struct step *)(void *)u->steps.data;
}

static inline uint32_t mustache_n_steps(const struct mustache_unit *u)
{
    return (uint32_t)(u->steps.len / sizeof(struct step));
}

static inline bool mustache_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline bool mustache_is_space(char c)
{
    return mustache_is_blank(c) || c == '\n' || c == '\r';
}

static inline struct str mustache_slice(const struct mustache_parse *p, size_t from, size_t to)
{
    return (struct str){p->text.p + from, to - from};
}

static inline struct mustache_open *mustache_top(struct mustache_parse *p)
{
    return p->depth > 0 ? &p->open[p->depth - 1] : NULL;
}

static inline bool mustache_in_parent(struct mustache_parse *p)
{
    return p->depth > 0 && mustache_top(p)->kind == STEP_PARENT;
}

/* The blanks that lead the tag at hand. */
static inline struct str mustache_lead(const struct mustache_parse *p)
{
    return mustache_slice(p, p->led ? p->line : p->at, p->at);
}

/* The flag of a step that begins a line, which then is begun. */
static inline unsigned mustache_take_fresh(struct mustache_parse *p)
{
    unsigned flag = p->fresh ? STEP_FRESH : 0;
    p->fresh = false;
    return flag;
}

#endif
