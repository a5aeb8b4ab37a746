/* Files of an app's SQL: a first byte for the kind, then the file. What is split is a statement to SQLite too, in the
 * order and on the lines of the file; notes are within their bounds; whatever is refused is told, on a line of the file. */
#include <sqlite3.h>
#include <stdio.h>

#include "db/script.h"
#include "tests/fuzz/must.h"

struct told {
    unsigned lines, count;
};

static void tell(void *arg, const char *file, unsigned line, const char *text)
{
    struct told *told = arg;
    size_t n = strlen(text);
    MUST(strcmp(file, "x.sql") == 0 && line >= 1 && line <= told->lines);
    MUST(n > 0 && n < 300 && text[n - 1] != '.');
    told->count++;
}

static void is_statement(const struct db_statement *s)
{
    char *text = malloc(s->bytes + 2);
    MUST(text != NULL && s->bytes > 0 && strlen(s->text) == s->bytes);
    snprintf(text, s->bytes + 2, "%s;", s->text);
    MUST(sqlite3_complete(text));
    free(text);
}

static void is_page(const struct db_page *page)
{
    MUST(page->rows >= 1 && page->rows <= DB_PAGE_ROWS_MAX);
    MUST(page->keys >= 1 && page->keys <= DB_PAGE_KEYS_MAX);
    for (unsigned i = 0; i < page->keys; i++)
        MUST(page->key[i].column[strspn(page->key[i].column, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"
                                                             "abcdefghijklmnopqrstuvwxyz")] == 0);
}

static void is_sound(const struct db_script *s, const struct told *told)
{
    unsigned line = 1;
    MUST(s->id > 0 && s->count <= DB_SCRIPT_STATEMENTS_MAX && (s->count > 0 || s->kind == DB_SCRIPT_SCHEMA));
    for (unsigned i = 0; i < s->count; line = s->statement[i++].line) {
        const struct db_statement *of = &s->statement[i];
        MUST(of->line >= line && of->line <= told->lines);
        is_statement(of);
        MUST(of->name == NULL || (strlen(of->name) <= DB_NAME_MAX && *of->name >= 'a' && *of->name <= 'z'));
        MUST(!of->set || (of->name == NULL && of->page == NULL));
        if (of->page != NULL)
            is_page(of->page);
        for (unsigned j = 0; j < i && of->name != NULL; j++)
            MUST(s->statement[j].name == NULL || strcmp(s->statement[j].name, of->name) != 0);
    }
    MUST(s->form == NULL || strlen(s->form) <= DB_NAME_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct told told = {.lines = 1};
    struct db_faults faults = {.tell = tell, .arg = &told};
    for (size_t i = 1; i < size; i++)
        told.lines += data[i] == '\n';
    struct db_script *s =
        db_script_parse((enum db_script_kind)(data[0] % 3), "x.sql", (const char *)data + 1, size - 1, &faults);
    MUST(faults.count == told.count && (s == NULL) == (told.count > 0));
    if (s != NULL)
        is_sound(s, &told);
    db_script_free(s);
    return 0;
}
