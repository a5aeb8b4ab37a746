/* Templates: the input is a template and, behind the first NUL, two partials "a" and "b" with a NUL between them. Whatever
 * compiles renders the same twice, within its cap and within the kinds of failure; an error has a place in its file.
 *
 * Data: what a name is follows from its first letter. A text dies at the next call. */
#include "handlers/mustache.h"
#include "tests/fuzz/must.h"

enum { OUT_MAX = 20000, ITEMS = 3 };

struct files {
    struct str text[3]; /* the template, a, b */
};

static char *alive;

static void give_text(struct mustache_value *v, const char *text)
{
    size_t n = strlen(text);
    free(alive);
    alive = malloc(n + 1);
    MUST(alive != NULL);
    memcpy(alive, text, n + 1);
    v->kind = MUSTACHE_TEXT;
    v->text = (struct str){alive, n};
}

static bool find(void *arg, const struct mustache_value *context, struct str name, struct mustache_value *v)
{
    (void)arg;
    free(alive);
    alive = NULL;
    MUST(name.n > 0 && v->kind == MUSTACHE_ABSENT && (name.p[0] != '.' || (name.n == 1 && context == NULL)));
    MUST(context == NULL || context->kind == MUSTACHE_CONTEXT || context->kind == MUSTACHE_LIST); /* {{list.name}} */
    switch (name.p[0]) {
    case 'l':
        v->kind = MUSTACHE_LIST;
        v->index = name.n > 1 ? name.p[1] : ITEMS;
        break;
    case 'c':
        v->kind = MUSTACHE_CONTEXT;
        break;
    case 'f':
        v->kind = MUSTACHE_FALSE;
        break;
    case 'n': /* of an inner context only */
        if (context != NULL)
            give_text(v, "1");
        break;
    case 'x':
        return false;
    case 'a':
        break;
    default:
        give_text(v, "<t>\n\"&'");
    }
    return true;
}

static bool next(void *arg, const struct mustache_value *list, struct mustache_value *item)
{
    (void)arg;
    free(alive);
    alive = NULL;
    MUST(list->kind == MUSTACHE_LIST);
    item->index++;
    switch (item->index) {
    case 1:
        give_text(item, "item");
        break;
    case 2:
        item->kind = MUSTACHE_CONTEXT;
        break;
    case ITEMS:
        item->kind = MUSTACHE_FALSE;
        break;
    default:
        item->kind = MUSTACHE_ABSENT;
    }
    return true;
}

static bool load(void *arg, struct str name, struct str *text)
{
    const struct files *files = arg;
    if (name.n != 1 || (name.p[0] != 'a' && name.p[0] != 'b'))
        return false;
    *text = files->text[name.p[0] - 'a' + 1];
    return true;
}

static void look_at(void *arg, const struct mustache_place *at, struct str name)
{
    const struct files *files = arg;
    const struct str *in = &files->text[at->file.n == 0 ? 0 : at->file.p[0] - 'a' + 1];
    MUST(at->line >= 1 && at->column >= 1 && at->line + at->column <= in->n + 2);
    MUST(name.n > 0 && name.n <= MUSTACHE_NAME_MAX);
}

/* The next part of the input, in memory of its own. */
static struct str part(const uint8_t **data, size_t *size)
{
    const uint8_t *nul = *size > 0 ? memchr(*data, 0, *size) : NULL;
    size_t n = nul != NULL ? (size_t)(nul - *data) : *size;
    char *copy = malloc(n + (n == 0));
    MUST(copy != NULL);
    if (n > 0)
        memcpy(copy, *data, n);
    size_t used = nul != NULL ? n + 1 : n;
    *data += used;
    *size -= used;
    return (struct str){copy, n};
}

static void render(const struct mustache *t)
{
    const struct mustache_source source = {NULL, find, next, NULL};
    struct buf text[2] = {{0}, {0}}, spare = {0};
    enum mustache_result result[2];
    for (int i = 0; i < 2; i++) {
        struct mustache_out out = {&text[i], &spare, OUT_MAX};
        result[i] = mustache_render(t, &source, &out);
        MUST(text[i].len <= OUT_MAX && spare.len == 0 && result[i] != MUSTACHE_NO_MEMORY);
    }
    MUST(result[0] == result[1] && text[0].len == text[1].len);
    MUST(text[0].len == 0 || memcmp(text[0].data, text[1].data, text[0].len) == 0);
    buf_free(&text[0]);
    buf_free(&text[1]);
    buf_free(&spare);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct files files;
    struct mustache_error error;
    for (int i = 0; i < 3; i++)
        files.text[i] = part(&data, &size);
    struct mustache_input input = {files.text[0], &files, load, look_at, look_at};
    struct mustache *t = mustache_compile(&input, &error);
    if (t == NULL) {
        struct mustache_place at = {{error.file, strlen(error.file)}, error.line, error.column};
        look_at(&files, &at, STR_LIT("x"));
        MUST(strlen(error.text) > 5 && strlen(error.text) < sizeof error.text - 1);
    } else {
        MUST(mustache_bytes(t) > 0);
        render(t);
    }
    mustache_free(t);
    for (int i = 0; i < 3; i++)
        free((void *)files.text[i].p);
    free(alive);
    alive = NULL;
    return 0;
}
