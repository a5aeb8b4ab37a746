/* Mustache: templates of text with names in it, https://mustache.github.io/mustache.5.html.
 *
 * The specification's interpolation, sections, inverted sections, partials, delimiters, comments
 * and inheritance, each of its tests. Lambdas and dynamic names are not supported.
 *
 * A template is compiled once, with all its partials and parents; what is compiled never changes
 * and may be rendered by several threads at once. A change of a partial needs a new compilation
 * of all that use it.
 *
 * Data is pulled: while it renders, the template asks a source for one name after the other and
 * for one item of a list after the other. So a result set is stepped while its rows are written,
 * and nothing is built in memory but the text. */
#ifndef HANJI_HANDLERS_MUSTACHE_H
#define HANJI_HANDLERS_MUSTACHE_H

#include <stdint.h>

#include "fcgi/buf.h"

enum {
    MUSTACHE_TEXT_MAX = 256 << 10,  /* bytes of a template, and of each partial */
    MUSTACHE_TAGS_MAX = 10000,      /* of a template with its partials */
    MUSTACHE_FILES_MAX = 64,        /* partials and parents, those that are missing too */
    MUSTACHE_NESTING_MAX = 64,      /* sections, blocks and parents within each other */
    MUSTACHE_NAME_MAX = 255,        /* bytes of a name */
    MUSTACHE_DELIMITER_MAX = 16,    /* bytes of a delimiter */
    MUSTACHE_PARTS_MAX = 32,        /* rendering: partials within partials */
    MUSTACHE_DEPTH_MAX = 200,       /* rendering: sections, partials, blocks within each other */
    MUSTACHE_STEPS_MAX = 4 << 20,   /* rendering: tags, pieces of text and rounds of lists */
};

/* ---- compiling ---- */

/* Where something stands. */
struct mustache_place {
    struct str file;       /* the partial's name; empty: the template that was given */
    unsigned line, column; /* from 1; the column in characters */
};

struct mustache_input {
    struct str text;
    void *arg;
    /* The text of a partial or parent; false: there is none, and it renders as nothing. Called once
     * for each name. The text may go at the next call. NULL: there are no partials. */
    bool (*load)(void *arg, struct str name, struct str *text);
    /* Told about each partial that is missing, with the place that first names it. May be NULL. */
    void (*missing)(void *arg, const struct mustache_place *at, struct str name);
    /* Told about each name whose value is asked for, as often as it stands there, with its dots;
     * not about ".". May be NULL. */
    void (*mentions)(void *arg, const struct mustache_place *at, struct str name);
};

struct mustache_error {
    char file[MUSTACHE_NAME_MAX + 1]; /* as in mustache_place */
    unsigned line, column;
    char text[256]; /* what is wrong, without a full stop */
};

struct mustache;

/* Compiles; mustache_free ends it. NULL: *error says why. Nothing of input is kept. */
struct mustache *mustache_compile(const struct mustache_input *input, struct mustache_error *error)
    __attribute__((warn_unused_result));

void mustache_free(struct mustache *t);

/* Memory that the compiled template takes. */
size_t mustache_bytes(const struct mustache *t);

/* ---- rendering ---- */

enum mustache_kind {
    MUSTACHE_ABSENT,  /* there is no such name: what is outside is asked */
    MUSTACHE_FALSE,   /* there is, and it is false or nothing: a section is left out, its text, as
                       * that of zero, is written */
    MUSTACHE_TEXT,    /* written; a section is there once, "." in it is this text */
    MUSTACHE_CONTEXT, /* has names; not written; a section is there once, asks it for names first */
    MUSTACHE_LIST,    /* has items; not written; a section is there once for each */
};

struct mustache_value {
    enum mustache_kind kind;
    struct str text; /* of MUSTACHE_TEXT, maybe of FALSE. May die at the next call of the source. */
    void *of;        /* the source's own: what the context, list or item is, */
    int64_t index;   /* and which one */
};

/* Where values come from. Each function returns false when the source failed, so that rendering
 * must end; the source remembers why. */
struct mustache_source {
    void *arg;
    /* Sets *value, which is ABSENT before, to what has this name in a context (NULL: outermost).
     * A name has no dots, but for the outermost context may be "." itself. A list is asked, too:
     * for what {{list.name}} is. */
    bool (*find)(void *arg, const struct mustache_value *context, struct str name,
                 struct mustache_value *value);
    /* Sets *item to the one behind it; when its kind is ABSENT, to the first. ABSENT again: there
     * is none. of and index of an item are as this function left them. A list may be begun again,
     * also while a walk over it is not done (a section within itself): a source that cannot do
     * that fails. */
    bool (*next)(void *arg, const struct mustache_value *list, struct mustache_value *item);
    /* Sets *any: whether the list has an item. Disturbs no walk; for an inverted section. NULL:
     * next is called instead, for a first item. */
    bool (*some)(void *arg, const struct mustache_value *list, bool *any);
};

struct mustache_out {
    struct buf *text;  /* the answer is added to what is there */
    struct buf *spare; /* texts that "." may ask for again; keep it for the next rendering */
    size_t max_bytes;  /* that text, and spare, may have */
};

enum mustache_result {
    MUSTACHE_OK,
    MUSTACHE_FAILED,    /* the source did */
    MUSTACHE_TOO_LARGE, /* more than max_bytes */
    MUSTACHE_TOO_DEEP,  /* more than MUSTACHE_PARTS_MAX or MUSTACHE_DEPTH_MAX */
    MUSTACHE_TOO_LONG,  /* more than MUSTACHE_STEPS_MAX */
    MUSTACHE_NO_MEMORY,
};

/* Renders. Unless it returns MUSTACHE_OK, a part of the answer stands in out->text. It needs up to
 * about 100 KiB of stack and allocates only where a buffer grows. */
enum mustache_result mustache_render(const struct mustache *t, const struct mustache_source *source,
                                     const struct mustache_out *out)
    __attribute__((warn_unused_result));

/* What a result means, for a log or a person; a constant. */
const char *mustache_says(enum mustache_result result);

#endif
