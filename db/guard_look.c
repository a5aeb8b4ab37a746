#include "db/guard_look.h"

#include <sqlite3.h>
#include <string.h>

enum kind { END, WORD, QUOTED, OTHER };

struct token {
    enum kind kind;
    const char *p; /* without quotes */
    size_t n;
};

struct text {
    const char *p, *end;
};

static bool in_word(char c)
{
    unsigned char u = (unsigned char)c;
    return (u >= '0' && u <= '9') || (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') ||
           u == '_' || u == '$' || u >= 0x80;
}

/* Steps over white space and comments. */
static void skip(struct text *t)
{
    while (t->p < t->end) {
        const char *close = NULL;
        bool two = t->end - t->p >= 2;
        if (*t->p == ' ' || (*t->p >= '\t' && *t->p <= '\r')) {
            t->p++;
            continue;
        }
        if (two && memcmp(t->p, "--", 2) == 0)
            close = memchr(t->p, '\n', (size_t)(t->end - t->p));
        else if (two && memcmp(t->p, "/*", 2) == 0)
            close = memmem(t->p + 2, (size_t)(t->end - t->p - 2), "*/", 2);
        else
            return;
        t->p = close == NULL ? t->end : close + (*close == '*' ? 2 : 1);
    }
}

/* A quote that is written twice stands for itself; such names are none of ours. */
static struct token quoted(struct text *t)
{
    char close = *t->p == '[' ? ']' : *t->p;
    struct token k = {QUOTED, ++t->p, 0};
    for (; t->p < t->end; t->p++) {
        if (*t->p != close)
            continue;
        if (close == ']' || t->p + 1 >= t->end || t->p[1] != close)
            break;
        t->p++;
    }
    k.n = (size_t)(t->p - k.p);
    t->p += t->p < t->end;
    return k;
}

static struct token next(struct text *t)
{
    skip(t);
    struct token k = {END, t->p, 0};
    if (t->p >= t->end)
        return k;
    if (strchr("'\"`[", *t->p) != NULL && *t->p != 0)
        return quoted(t);
    k.kind = in_word(*t->p) ? WORD : OTHER;
    do {
        t->p++;
    } while (k.kind == WORD && t->p < t->end && in_word(*t->p));
    k.n = (size_t)(t->p - k.p);
    return k;
}

static bool is_word(struct token k, const char *word)
{
    return k.kind == WORD && k.n == strlen(word) && sqlite3_strnicmp(k.p, word, (int)k.n) == 0;
}

static bool is_mark(struct token k, char mark)
{
    return k.kind == OTHER && *k.p == mark;
}

bool db_look_rolls_back(const char *sql, size_t n)
{
    struct text t = {sql, sql + n};
    struct token before = {0}, k = {0};
    for (struct token now = next(&t); now.kind != END; before = k, k = now, now = next(&t))
        if (is_word(now, "rollback") &&
            (is_word(k, "or") || is_word(k, "conflict") ||
             (is_mark(k, '(') && is_word(before, "raise"))))
            return true;
    return false;
}

bool db_look_joins_by_names(const char *sql, size_t n)
{
    struct text t = {sql, sql + n};
    struct token k = {0};
    for (struct token now = next(&t); now.kind != END; k = now, now = next(&t))
        if (is_word(now, "natural") || (is_word(k, "using") && is_mark(now, '(')))
            return true;
    return false;
}

bool db_look_names_catalogue(const char *sql, size_t n)
{
    struct text t = {sql, sql + n};
    for (struct token k = next(&t); k.kind != END; k = next(&t))
        if (k.kind != OTHER && k.n >= 7 && sqlite3_strnicmp(k.p, "sqlite_", 7) == 0)
            return true;
    return false;
}

/* FTS5 takes the beginning of an option's name for the option. */
static bool is_content(struct token k)
{
    return k.kind == WORD && k.n <= 7 && sqlite3_strnicmp(k.p, "content", (int)k.n) == 0;
}

void db_look_content(const char *sql, char name[64])
{
    struct text t = {sql, sql + strlen(sql)};
    struct token before = {0}, k = {0};
    name[0] = 0;
    for (struct token now = next(&t); now.kind != END; before = k, k = now, now = next(&t))
        if (is_mark(k, '=') && is_content(before) && now.n > 0)
            sqlite3_snprintf(64, name, "%.*s", (int)(now.n < 63 ? now.n : 63), now.p);
}

/* ---- how large it is with all written out ---- */

enum { WITH_MAX = 64 };

/* What a statement names by WITH. */
struct with {
    const char *name;
    size_t n, bytes;
    unsigned depth, terms;
};

struct sum {
    struct db_look *look;
    struct text text;
    struct with with[WITH_MAX];
    unsigned withs;
    unsigned nested; /* brackets of WITH around here */
    bool failed;
};

/* A part of the text. */
struct size {
    size_t bytes;
    unsigned depth; /* of what it names */
    unsigned terms; /* of compound SELECTs, with those of what it names */
};

static bool look_at_view(struct db_look *look, struct db_look_view *v);

static bool same(struct token k, const char *name, size_t n)
{
    return k.n == n && sqlite3_strnicmp(k.p, name, (int)n) == 0;
}

/* Adds what a word names, if it names something. Where several have the name: the largest. */
static void add_named(struct sum *s, struct token k, struct size *to)
{
    size_t bytes = 0;
    unsigned depth = 0, terms = 0;
    for (unsigned i = 0; i < s->withs; i++)
        if (same(k, s->with[i].name, s->with[i].n)) {
            bytes = s->with[i].bytes > bytes ? s->with[i].bytes : bytes;
            depth = s->with[i].depth > depth ? s->with[i].depth : depth;
            terms = s->with[i].terms > terms ? s->with[i].terms : terms;
        }
    for (unsigned i = 0; i < s->look->views && !s->failed; i++) {
        struct db_look_view *v = &s->look->view[i];
        if (!same(k, v->name, strlen(v->name)))
            continue;
        s->failed = !look_at_view(s->look, v);
        bytes = v->bytes > bytes ? v->bytes : bytes;
        depth = v->depth > depth ? v->depth : depth;
        terms = v->terms > terms ? v->terms : terms;
    }
    to->bytes += bytes;
    to->terms += terms;
    to->depth = depth > to->depth ? depth : to->depth;
    s->failed |= to->bytes > DB_LOOK_BYTES_MAX || to->depth > DB_LOOK_DEPTH_MAX ||
                 to->terms > DB_LOOK_TERMS_MAX;
}

static struct size sum_part(struct sum *s, bool in_brackets);

/* The brackets behind NAME AS are its meaning. */
static void take_with(struct sum *s, struct token name)
{
    struct size size = {0};
    s->failed |= ++s->nested > DB_LOOK_DEPTH_MAX;
    if (s->failed)
        return;
    size = sum_part(s, true);
    s->nested--;
    unsigned i = 0;
    while (i < s->withs && !same(name, s->with[i].name, s->with[i].n))
        i++;
    if (i == WITH_MAX) {
        s->failed = true;
        return;
    }
    struct with *w = &s->with[i];
    if (i == s->withs)
        s->with[s->withs++] = (struct with){.name = name.p, .n = name.n};
    w->bytes = size.bytes > w->bytes ? size.bytes : w->bytes;
    w->depth = size.depth + 1 > w->depth ? size.depth + 1 : w->depth;
    w->terms = size.terms > w->terms ? size.terms : w->terms;
}

static bool is_compound(struct token k)
{
    return is_word(k, "union") || is_word(k, "except") || is_word(k, "intersect");
}

/* Reads NOT MATERIALIZED, MATERIALIZED or nothing, and a bracket, if they are there. */
static bool at_with(struct sum *s)
{
    struct text ahead = s->text;
    struct token k = next(&ahead);
    if (is_word(k, "not"))
        k = next(&ahead);
    if (is_word(k, "materialized"))
        k = next(&ahead);
    if (!is_mark(k, '('))
        return false;
    s->text = ahead;
    return true;
}

/* Up to the bracket that closes it, or the end. */
static struct size sum_part(struct sum *s, bool in_brackets)
{
    struct size size = {0};
    struct token named = {0}, outer = {0}; /* the last word, and that before the bracket */
    const char *start = s->text.p;
    unsigned open = 0;
    for (struct token k = next(&s->text); k.kind != END && !s->failed; k = next(&s->text)) {
        if (is_mark(k, '(') && open++ == 0) {
            outer = named;
        } else if (is_mark(k, ')')) {
            if (open == 0 && in_brackets)
                break;
            open -= open > 0;
            named = open == 0 ? outer : named;
        } else if (is_word(k, "as") && at_with(s)) {
            take_with(s, named);
        } else if (k.kind == WORD || k.kind == QUOTED) {
            size.terms += is_compound(k);
            add_named(s, k, &size);
            named = k;
        }
    }
    size.bytes += (size_t)(s->text.p - start) + 1;
    return size;
}

static struct size sum_text(struct db_look *look, const char *sql, size_t n, bool *ok)
{
    struct sum s = {.look = look, .text = {sql, sql + n}};
    struct size size = sum_part(&s, false);
    *ok = !s.failed && size.bytes <= DB_LOOK_BYTES_MAX;
    return size;
}

/* A view's own name stands in its text: what it names is behind that. */
static const char *behind_name(const char *sql)
{
    struct text t = {sql, sql + strlen(sql)};
    for (struct token k = next(&t); k.kind != END; k = next(&t))
        if (is_word(k, "view")) {
            next(&t);
            return t.p;
        }
    return sql;
}

static bool look_at_view(struct db_look *look, struct db_look_view *v)
{
    if (v->bytes > 0 || v->busy)
        return true;
    v->busy = true;
    const char *text = behind_name(v->sql);
    bool ok;
    struct size size = sum_text(look, text, strlen(text), &ok);
    v->bytes = size.bytes;
    v->depth = size.depth + 1;
    v->terms = size.terms;
    v->busy = false;
    return ok;
}

bool db_look_is_small(struct db_look *look, const char *sql, size_t n)
{
    bool ok;
    sum_text(look, sql, n, &ok);
    return ok;
}
