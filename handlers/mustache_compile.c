/* The files of a template, one after the other, and what is made of them in the end. */
#include <stdlib.h>
#include <string.h>

#include "fcgi/path.h"
#include "handlers/mustache_parse.h"

static bool check_text(struct mustache_parse *p)
{
    if (p->text.n > MUSTACHE_TEXT_MAX)
        return mustache_fail(p, 0, "more than %d bytes", MUSTACHE_TEXT_MAX);
    for (size_t at = 0; at < p->text.n;) { /* line by line, to say which one it is */
        const char *newline = memchr(p->text.p + at, '\n', p->text.n - at);
        size_t next = newline != NULL ? (size_t)(newline - p->text.p) + 1 : p->text.n;
        if (!utf8_ok(p->text.p + at, next - at))
            return mustache_fail(p, at, "a line that is not UTF-8");
        at = next;
    }
    return true;
}

static bool parse(struct mustache_unit *u, unsigned file, struct str text)
{
    struct mustache_parse p = {
        .u = u,
        .file = file,
        .text = text,
        .clean = true,
        .fresh = true,
        .left = STR_LIT("{{"),
        .right = STR_LIT("}}"),
        .counted_line = 1,
        .counted_column = 1,
    };
    if (!check_text(&p))
        return false;
    if (str_starts(text, STR_LIT("\xef\xbb\xbf"))) /* a mark that editors leave there */
        p.text = (struct str){text.p + 3, text.n - 3};
    u->growing = MUSTACHE_NO_STEP;
    while (p.at < p.text.n && !u->no_memory) {
        const char *tag = memmem(p.text.p + p.at, p.text.n - p.at, p.left.p, p.left.n);
        mustache_take_text(&p, tag != NULL ? (size_t)(tag - p.text.p) : p.text.n);
        if (tag != NULL && !mustache_take_tag(&p))
            return false;
    }
    return u->no_memory || mustache_all_ended(&p);
}

/* The text of a file; false when there is none. */
static bool load(struct mustache_unit *u, unsigned file, struct str *text)
{
    const struct mustache_input *in = u->in;
    const struct mustache_named *f = &u->files[file];
    *text = in->text;
    if (file == 0)
        return true;
    if (in->load != NULL && in->load(in->arg, mustache_file_name(u, file), text))
        return true;
    if (in->missing != NULL) {
        struct mustache_place at = {mustache_file_name(u, f->by), f->line, f->column};
        in->missing(in->arg, &at, mustache_file_name(u, file));
    }
    return false;
}

/* Everything in one piece. NULL: memory is short. */
static struct mustache *assemble(const struct mustache_unit *u)
{
    size_t files_bytes = u->n_files * sizeof(struct mustache_file);
    size_t bytes = sizeof(struct mustache) + files_bytes + u->steps.len + u->pool.len;
    unsigned char *memory = u->no_memory ? NULL : malloc(bytes);
    if (memory == NULL)
        return NULL;
    struct mustache *t = (struct mustache *)(void *)memory;
    struct mustache_file *files = (struct mustache_file *)(void *)(memory + sizeof *t);
    unsigned char *behind = memory + sizeof *t + files_bytes;
    for (unsigned i = 0; i < u->n_files; i++)
        files[i] = u->files[i].steps;
    if (u->steps.len > 0)
        memcpy(behind, u->steps.data, u->steps.len);
    if (u->pool.len > 0)
        memcpy(behind + u->steps.len, u->pool.data, u->pool.len);
    *t = (struct mustache){bytes, (const struct step *)(void *)behind, files,
                           (const char *)behind + u->steps.len};
    return t;
}

struct mustache *mustache_compile(const struct mustache_input *input, struct mustache_error *error)
{
    struct mustache_unit u = {.in = input, .error = error, .n_files = 1};
    struct mustache *t = NULL;
    *error = (struct mustache_error){.text = "no memory"};
    for (unsigned i = 0; i < u.n_files && !u.no_memory; i++) {
        struct str text;
        u.files[i].steps.from = mustache_n_steps(&u);
        if (load(&u, i, &text) && !parse(&u, i, text))
            goto out;
        u.files[i].steps.to = mustache_n_steps(&u);
    }
    t = assemble(&u);
out:
    buf_free(&u.steps);
    buf_free(&u.pool);
    buf_free(&u.names);
    return t;
}

void mustache_free(struct mustache *t)
{
    free(t);
}

size_t mustache_bytes(const struct mustache *t)
{
    return t->bytes;
}
