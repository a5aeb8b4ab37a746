#include "db/script.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/script_scan.h"

/* What is known of a page before there is memory for it. */
struct page_draft {
    unsigned rows, keys;
    struct {
        struct db_slice column;
        bool descending;
    } key[DB_PAGE_KEYS_MAX];
};

struct draft {
    struct db_slice text;
    unsigned line;
    struct db_slice name;
    bool set, page;
    struct page_draft of; /* the page */
};

/* The notes since the last statement. */
struct notes {
    unsigned line; /* of the last of them; 0: there is none */
    struct db_slice name;
    bool set, page;
    struct page_draft of;
};

struct parse {
    enum db_script_kind kind;
    const char *file;
    struct db_faults *faults;
    struct notes notes;
    struct db_slice form;
    unsigned form_line; /* 0: there is none */
    unsigned count;
    bool too_many;
    struct draft draft[DB_SCRIPT_STATEMENTS_MAX];
};

/* ---- faults ------------------------------------------------------------------------------- */

void db_script_fault(struct db_faults *faults, const char *file, unsigned line, const char *format,
                     ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    faults->count++;
    faults->tell(faults->arg, file, line, text);
}

#define fault(p, line, ...) db_script_fault((p)->faults, (p)->file, line, __VA_ARGS__)

/* ---- notes -------------------------------------------------------------------------------- */

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

static struct db_slice trimmed(struct db_slice s)
{
    for (; s.n > 0 && blank(*s.p); s.p++, s.n--)
        ;
    for (; s.n > 0 && blank(s.p[s.n - 1]); s.n--)
        ;
    return s;
}

static bool in_word(char c)
{
    return db_script_in_name(c) && c != '$' && (unsigned char)c < 0x80;
}

static bool same(struct db_slice a, struct db_slice b)
{
    return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

static bool is(struct db_slice s, const char *text)
{
    return same(s, (struct db_slice){text, strlen(text)});
}

/* The same in any case of letters. */
static bool reads(struct db_slice s, const char *text)
{
    return s.n == strlen(text) && strncasecmp(s.p, text, s.n) == 0;
}

/* Cuts off a word of letters, digits and '_', and the blanks around it. */
static struct db_slice cut_word(struct db_slice *s)
{
    struct db_slice word;
    *s = trimmed(*s);
    word = *s;
    for (; s->n > 0 && in_word(*s->p); s->p++, s->n--)
        ;
    word.n -= s->n;
    *s = trimmed(*s);
    return word;
}

static bool cut_char(struct db_slice *s, char c)
{
    if (s->n == 0 || *s->p != c)
        return false;
    s->p++;
    s->n--;
    return true;
}

/* [a-z][a-z0-9_]*: what a result may be called. */
static bool result_name(struct db_slice s)
{
    if (s.n == 0 || *s.p < 'a' || *s.p > 'z')
        return false;
    for (size_t i = 1; i < s.n; i++)
        if (!in_word(s.p[i]) || (s.p[i] >= 'A' && s.p[i] <= 'Z'))
            return false;
    return true;
}

static bool name_taken(const struct parse *p, struct db_slice name)
{
    for (unsigned i = 0; i < p->count; i++)
        if (same(p->draft[i].name, name))
            return true;
    return false;
}

static void note_name(struct parse *p, unsigned line, struct db_slice value)
{
    if (p->notes.name.n > 0)
        fault(p, line, "a statement has one name");
    else if (!result_name(value))
        fault(p, line, "a name is a-z, 0-9 and _, and begins with a letter");
    else if (value.n > DB_NAME_MAX)
        fault(p, line, "a name has at most %d bytes", DB_NAME_MAX);
    else if (is(value, "next") || is(value, "prev"))
        fault(p, line, "the name %.*s is kept for pages", (int)value.n, value.p);
    else if (name_taken(p, value))
        fault(p, line, "the name %.*s stands twice in this file", (int)value.n, value.p);
    else
        p->notes.name = value;
}

static void note_set(struct parse *p, unsigned line, struct db_slice value)
{
    if (value.n > 0)
        fault(p, line, "the note is written -- set, with nothing behind it");
    else
        p->notes.set = true;
}

/* "score desc"; false: it is not that. */
static bool take_key(struct page_draft *page, struct db_slice *value)
{
    struct db_slice column = cut_word(value), order = cut_word(value);
    bool digit = column.n > 0 && *column.p >= '0' && *column.p <= '9';
    if (column.n == 0 || digit || !(order.n == 0 || reads(order, "asc") || reads(order, "desc")))
        return false;
    if (page->keys < DB_PAGE_KEYS_MAX) {
        page->key[page->keys].column = column;
        page->key[page->keys].descending = reads(order, "desc");
    }
    page->keys++;
    return true;
}

/* "20 by score desc, id"; false: it is not that. */
static bool take_page(struct page_draft *page, struct db_slice value)
{
    struct db_slice rows = cut_word(&value);
    for (size_t i = 0; i < rows.n; i++) {
        if (rows.p[i] < '0' || rows.p[i] > '9')
            return false;
        if (page->rows <= DB_PAGE_ROWS_MAX)
            page->rows = page->rows * 10 + (unsigned)(rows.p[i] - '0');
    }
    if (rows.n == 0 || !reads(cut_word(&value), "by"))
        return false;
    do
        if (!take_key(page, &value))
            return false;
    while (cut_char(&value, ','));
    return value.n == 0;
}

static struct db_slice key_twice(const struct page_draft *page)
{
    for (unsigned i = 0; i < page->keys; i++)
        for (unsigned j = 0; j < i; j++)
            if (page->key[i].column.n == page->key[j].column.n &&
                strncasecmp(page->key[i].column.p, page->key[j].column.p, page->key[i].column.n) ==
                    0)
                return page->key[i].column;
    return (struct db_slice){0};
}

static void note_page(struct parse *p, unsigned line, struct db_slice value)
{
    struct page_draft page = {0};
    if (p->kind != DB_SCRIPT_READ)
        fault(p, line, "a page stands in a get file");
    else if (p->notes.page)
        fault(p, line, "a statement has one page");
    else if (!take_page(&page, value))
        fault(p, line, "a page is written as in -- page: 20 by score desc, id");
    else if (page.rows < 1 || page.rows > DB_PAGE_ROWS_MAX)
        fault(p, line, "a page has 1 to %d rows", DB_PAGE_ROWS_MAX);
    else if (page.keys > DB_PAGE_KEYS_MAX)
        fault(p, line, "a page has at most %d keys", DB_PAGE_KEYS_MAX);
    else if (key_twice(&page).n > 0)
        fault(p, line, "the key %.*s stands twice in a page", (int)key_twice(&page).n,
              key_twice(&page).p);
    else
        p->notes.of = page;
    p->notes.page = true;
}

/* A route as the files are called, without a suffix: "list", "item/:id". */
static bool route_name(struct db_slice s)
{
    char before = '/';
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!(db_script_in_name(c) || c == '-' || c == '.' || c == ':' || c == '/') ||
            (before == '/' && (c == '/' || c == '.' || c == '_')))
            return false;
        before = c;
    }
    return before != '/';
}

static void note_form(struct parse *p, unsigned line, struct db_slice value)
{
    if (p->kind != DB_SCRIPT_WRITE)
        fault(p, line, "a form stands in a post, put or delete file");
    else if (p->form_line > 0)
        fault(p, line, "a file has one form");
    else if (!route_name(value))
        fault(p, line, "a form is called as its file, as in -- form: list");
    else if (value.n > DB_NAME_MAX)
        fault(p, line, "a form has at most %d bytes", DB_NAME_MAX);
    p->form_line = line;
    p->form = is(value, "index") ? (struct db_slice){value.p, 0} : value;
}

/* The kinds of notes. A word that is none of them begins a comment like any other. */
static const struct {
    const char *word;
    void (*take)(struct parse *p, unsigned line, struct db_slice value);
} notes[] = {
    {"name", note_name}, {"set", note_set}, {"page", note_page}, {"form", note_form},
};

/* Which note a comment is, and what it says; false: it is none. */
static bool note_of(struct db_slice comment, unsigned *which, struct db_slice *value)
{
    struct db_slice rest = {comment.p + 2, comment.n - 2};
    struct db_slice word = cut_word(&rest);
    bool colon = cut_char(&rest, ':');
    *value = trimmed(rest);
    for (*which = 0; *which < sizeof notes / sizeof notes[0]; ++*which)
        if (is(word, notes[*which].word))
            return colon || (value->n == 0 && is(word, "set"));
    return false;
}

/* between: no statement has begun that has not ended. */
static void take_comment(struct parse *p, const struct db_sql_token *t, bool between)
{
    unsigned which;
    struct db_slice value;
    if (p->kind == DB_SCRIPT_SCHEMA || !note_of(t->text, &which, &value))
        return;
    if (!t->first_in_line || !between) {
        fault(p, t->line, "a note stands in a line of its own, before its statement");
        return;
    }
    notes[which].take(p, t->line, value);
    if (notes[which].take != note_form)
        p->notes.line = t->line;
}

/* ---- statements --------------------------------------------------------------------------- */

/* Where a statement is, after sqlite3_complete: a trigger has statements of its own, each with its
 * semicolon, and ends with "; END ;". */
enum state { BETWEEN, PLAIN, EXPLAIN, CREATE, TRIGGER, TRIGGER_SEMICOLON, TRIGGER_END };

static bool word_is(const struct db_sql_token *t, const char *word)
{
    return t->kind == DB_TOKEN_WORD && reads(t->text, word);
}

static enum state after_word(enum state state, const struct db_sql_token *t)
{
    bool explain = word_is(t, "EXPLAIN");
    switch (state) {
    case BETWEEN:
    case EXPLAIN:
        if (word_is(t, "CREATE"))
            return CREATE;
        return state == BETWEEN ? explain ? EXPLAIN : PLAIN : explain ? PLAIN : EXPLAIN;
    case CREATE:
        return word_is(t, "TEMP") || word_is(t, "TEMPORARY") ? CREATE
               : word_is(t, "TRIGGER")                       ? TRIGGER
                                                             : PLAIN;
    case TRIGGER_SEMICOLON: return word_is(t, "END") ? TRIGGER_END : TRIGGER;
    case TRIGGER_END: return TRIGGER;
    default: return state;
    }
}

/* The state behind a token; BETWEEN: it was the semicolon that ends the statement. */
static enum state after(enum state state, const struct db_sql_token *t)
{
    if (t->kind != DB_TOKEN_SEMICOLON)
        return after_word(state, t);
    return state == TRIGGER || state == TRIGGER_SEMICOLON ? TRIGGER_SEMICOLON : BETWEEN;
}

/* Gives the statement that begins here the notes before it. */
static struct draft *begin_statement(struct parse *p, const struct db_sql_token *t)
{
    static const struct notes none;
    struct notes n = p->notes;
    p->notes = none;
    if (n.set && n.page)
        fault(p, n.line, "a statement is either -- set or a page");
    else if (n.set && n.name.n > 0)
        fault(p, n.line, "a statement is either -- set or has a name");
    if (p->count == DB_SCRIPT_STATEMENTS_MAX) {
        if (!p->too_many)
            fault(p, t->line, "a file has at most %d statements", DB_SCRIPT_STATEMENTS_MAX);
        p->too_many = true;
        return NULL;
    }
    struct draft *d = &p->draft[p->count++];
    *d = (struct draft){.text = {t->text.p, 0}, .line = t->line, .name = n.name,
                        .set = n.set, .page = n.page, .of = n.of};
    return d;
}

/* Looks at a token inside a statement for what can be told now. */
static void judge(struct parse *p, const struct draft *d, const struct db_sql_token *t)
{
    if (p->kind == DB_SCRIPT_SCHEMA && t->kind == DB_TOKEN_VARIABLE)
        fault(p, t->line, "a schema file has no parameters");
    if (d->page && t->depth == 0 && (word_is(t, "ORDER") || word_is(t, "LIMIT")))
        fault(p, t->line, "leave ORDER BY and LIMIT to the page note");
}

static const char *unended(enum db_sql_token_kind kind)
{
    return kind == DB_TOKEN_OPEN_COMMENT ? "a comment begins here and does not end"
                                         : "a string or a name begins here and does not end";
}

static void split(struct parse *p, const char *text, size_t bytes)
{
    struct db_scan scan = {.p = text, .end = text + bytes, .line = 1, .first_in_line = true};
    struct db_sql_token t;
    struct draft *d = NULL;
    enum state state = BETWEEN;
    while (db_script_token(&scan, &t)) {
        if (t.kind == DB_TOKEN_COMMENT) {
            take_comment(p, &t, state == BETWEEN);
            continue;
        }
        if (t.kind == DB_TOKEN_OPEN_COMMENT || t.kind == DB_TOKEN_OPEN_STRING) {
            fault(p, t.line, "%s", unended(t.kind));
            return;
        }
        if (state == BETWEEN && t.kind != DB_TOKEN_SEMICOLON)
            d = begin_statement(p, &t);
        state = after(state, &t);
        if (state == BETWEEN) {
            scan.depth = 0;
        } else if (d != NULL) {
            judge(p, d, &t);
            d->text.n = (size_t)(t.text.p + t.text.n - d->text.p);
        }
    }
    if (d != NULL && (state == TRIGGER || state == TRIGGER_SEMICOLON))
        fault(p, d->line, "a trigger begins here and does not end with ; END");
    if (p->notes.line > 0)
        fault(p, p->notes.line, "no statement stands behind this note");
}

/* ---- the script --------------------------------------------------------------------------- */

static char *put_text(char **at, struct db_slice s)
{
    char *text = *at;
    if (s.n > 0)
        memcpy(text, s.p, s.n);
    text[s.n] = 0;
    *at += s.n + 1;
    return text;
}

static size_t page_bytes(const struct page_draft *page)
{
    size_t n = 0;
    for (unsigned i = 0; i < page->keys; i++)
        n += page->key[i].column.n + 1;
    return n;
}

static size_t text_bytes(const struct parse *p, unsigned *pages)
{
    size_t n = strlen(p->file) + 1 + p->form.n + 1;
    *pages = 0;
    for (unsigned i = 0; i < p->count; i++) {
        const struct draft *d = &p->draft[i];
        n += d->text.n + 1 + d->name.n + 1 + page_bytes(&d->of);
        *pages += d->page;
    }
    return n;
}

static void put_page(struct db_page *page, const struct page_draft *of, char **at)
{
    page->rows = of->rows;
    page->keys = of->keys;
    for (unsigned i = 0; i < of->keys; i++) {
        page->key[i].column = put_text(at, of->key[i].column);
        page->key[i].descending = of->key[i].descending;
    }
}

static void put_statement(struct db_statement *s, const struct draft *d, char **at)
{
    s->bytes = d->text.n;
    s->text = put_text(at, d->text);
    s->line = d->line;
    s->name = d->name.n > 0 ? put_text(at, d->name) : NULL;
    s->set = d->set;
}

/* One block: the script, its statements, their pages, all text. */
static struct db_script *make(const struct parse *p)
{
    static _Atomic uint64_t ids;
    unsigned pages;
    size_t texts = text_bytes(p, &pages);
    struct db_script *s = calloc(1, sizeof *s + p->count * sizeof *s->statement +
                                        pages * sizeof(struct db_page) + texts);
    if (s == NULL)
        return NULL;
    s->statement = (struct db_statement *)(s + 1);
    struct db_page *page = (struct db_page *)(s->statement + p->count);
    char *at = (char *)(page + pages);
    s->id = atomic_fetch_add(&ids, 1) + 1;
    s->kind = p->kind;
    s->file = put_text(&at, (struct db_slice){p->file, strlen(p->file)});
    s->form = p->form_line > 0 ? put_text(&at, p->form) : NULL;
    s->count = p->count;
    for (unsigned i = 0; i < p->count; i++) {
        put_statement(&s->statement[i], &p->draft[i], &at);
        if (p->draft[i].page) {
            put_page(page, &p->draft[i].of, &at);
            s->statement[i].page = page++;
        }
    }
    return s;
}

/* What a file must be before it is looked at; the line of what it is not, else 0. */
static unsigned judge_bytes(const char *text, size_t bytes, const char **why)
{
    unsigned line = 1;
    for (size_t i = 0, n; i < bytes; i += n) {
        n = db_script_utf8(text + i, bytes - i);
        *why = text[i] == 0 ? "there is a NUL byte" : "there are bytes that are not UTF-8";
        if (n == 0 || text[i] == 0)
            return line;
        line += text[i] == '\n';
    }
    return 0;
}

struct db_script *db_script_parse(enum db_script_kind kind, const char *file, const char *text,
                                  size_t bytes, struct db_faults *faults)
{
    const char *why;
    unsigned told = faults->count, line;
    if (bytes > DB_SCRIPT_BYTES_MAX) {
        db_script_fault(faults, file, 1, "the file has more than %d KiB",
                        DB_SCRIPT_BYTES_MAX >> 10);
        return NULL;
    }
    if ((line = judge_bytes(text, bytes, &why)) > 0) {
        db_script_fault(faults, file, line, "%s", why);
        return NULL;
    }
    struct db_script *script = NULL;
    struct parse *p = calloc(1, sizeof *p);
    if (p != NULL) {
        bool mark = bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
        p->kind = kind;
        p->file = file;
        p->faults = faults;
        split(p, text + 3 * mark, bytes - 3 * mark);
        if (p->count == 0 && kind != DB_SCRIPT_SCHEMA && faults->count == told)
            fault(p, 1, "there is no statement in this file");
        if (faults->count == told)
            script = make(p);
        free(p);
    }
    if (script == NULL && faults->count == told)
        db_script_fault(faults, file, 0, "memory is short");
    return script;
}

void db_script_free(struct db_script *s)
{
    if (s == NULL)
        return;
    free(s->memory);
    free(s);
}
