/* A compiled template, for mustache_compile.c, which makes it, and mustache.c, which renders it.
 *
 * Steps in the order of the text, in one array; those of a partial follow those of the template.
 * Text and names are in a pool behind them, without comments, delimiters and the white space that
 * lines lose. All of it is one piece of memory. */
#ifndef HANJI_HANDLERS_MUSTACHE_INTERNAL_H
#define HANJI_HANDLERS_MUSTACHE_INTERNAL_H

#include "handlers/mustache.h"

/* Steps are small, so that a template with many tags takes not much more than its text. What has
 * more to say uses the steps behind it, whose kind is STEP_MORE. */
enum step_kind {
    STEP_TEXT,     /* at, n: the text */
    STEP_ESCAPED,  /* at, n: a name. Its value, escaped */
    STEP_RAW,      /* at, n: a name. Its value as it is */
    STEP_SECTION,  /* at, n: a name. MORE at: the step behind the section */
    STEP_INVERTED, /* the same */
    STEP_PARTIAL,  /* at, n: blanks before it on its line. MORE at: which file */
    STEP_PARENT,   /* the same. MORE at: the step behind it. In between are only STEP_FILL */
    STEP_BLOCK,    /* at, n: a name. MORE at: the step behind it. MORE at, n: blanks before it */
    STEP_FILL,     /* at, n: the name of the block it fills. MORE at: the step behind it */
    STEP_MORE,
};

enum step_flag {
    STEP_FRESH = 1,  /* begins a line of the file: the indentation of a partial comes first */
    STEP_DOTTED = 2, /* the name has dots */
    STEP_DOT = 4,    /* the name is "." */
    STEP_KEEPS = 8,  /* a section in which "." may be asked for */
    STEP_ALONE = 16, /* partial, parent: is alone on its lines. Block, fill: its text begins on a
                        line of its own */
};

struct step {
    uint32_t at;
    uint16_t n;
    uint8_t kind;
    uint8_t flags;
};

/* Steps of the template or of a partial; none when it is missing. */
struct mustache_file {
    uint32_t from, to;
};

struct mustache {
    size_t bytes;
    const struct step *steps;
    const struct mustache_file *files; /* the first is the template itself */
    const char *pool;
};

#endif
