/* handlers/mustache: every test of the specification, with SQLite's JSON functions as the source of its data.
 *
 * The source is as harsh as its contract allows: a text dies at the next call of any of its functions. */
#include "handlers/mustache.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/temp.h"

#define DATA "tests/data/mustache-spec/"

static sqlite3 *db;
static sqlite3_stmt *find_name, *find_row, *next_item, *load_file;
static char *alive;

static sqlite3_stmt *prepare(const char *sql)
{
    sqlite3_stmt *s;
    ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    return s;
}

/* The text of a column, in memory of its own until the next call. */
static struct str text_of(sqlite3_stmt *s, int column)
{
    size_t n = (size_t)sqlite3_column_bytes(s, column);
    free(alive);
    alive = malloc(n + 1);
    memcpy(alive, sqlite3_column_text(s, column), n);
    return (struct str){alive, n};
}

/* The row of s, which is id, type, text, as a value. A list is the one that has this id. */
static bool value_of(sqlite3_stmt *s, struct mustache_value *v)
{
    free(alive);
    alive = NULL;
    if (sqlite3_step(s) == SQLITE_ROW) {
        const char *type = (const char *)sqlite3_column_text(s, 1);
        v->index = sqlite3_column_int64(s, 0);
        v->kind = strcmp(type, "object") == 0                                 ? MUSTACHE_CONTEXT
                  : strcmp(type, "array") == 0                                ? MUSTACHE_LIST
                  : strcmp(type, "null") == 0 || strcmp(type, "false") == 0 ? MUSTACHE_FALSE
                                                                              : MUSTACHE_TEXT;
        if (v->kind == MUSTACHE_TEXT)
            v->text = text_of(s, 2);
    } else {
        v->kind = MUSTACHE_ABSENT;
    }
    ck_assert_int_eq(sqlite3_reset(s), SQLITE_OK);
    return true;
}

static bool find(void *arg, const struct mustache_value *context, struct str name, struct mustache_value *v)
{
    bool dot = str_eq(name, STR_LIT("."));
    sqlite3_stmt *s = dot ? find_row : find_name;
    (void)arg;
    ck_assert(v->kind == MUSTACHE_ABSENT);
    ck_assert(context == NULL || (context->kind == MUSTACHE_CONTEXT && !dot));
    sqlite3_bind_int64(s, 1, context != NULL ? context->index : 0);
    if (!dot)
        sqlite3_bind_text(s, 2, name.p, (int)name.n, SQLITE_TRANSIENT);
    return value_of(s, v);
}

static bool next(void *arg, const struct mustache_value *list, struct mustache_value *item)
{
    (void)arg;
    ck_assert(list->kind == MUSTACHE_LIST);
    sqlite3_bind_int64(next_item, 1, list->index);
    sqlite3_bind_int64(next_item, 2, item->kind == MUSTACHE_ABSENT ? 0 : item->index);
    return value_of(next_item, item);
}

static bool load(void *arg, struct str name, struct str *text)
{
    (void)arg;
    sqlite3_reset(load_file);
    sqlite3_bind_text(load_file, 2, name.p, (int)name.n, SQLITE_TRANSIENT);
    if (sqlite3_step(load_file) != SQLITE_ROW)
        return false;
    *text = text_of(load_file, 0);
    return true;
}

static const struct mustache_source source = {.find = find, .next = next};

/* One test: the row of `tests` is name, template, expected, data, partials. */
static void one(const char *file, sqlite3_stmt *test)
{
    const char *name = (const char *)sqlite3_column_text(test, 0);
    struct str template = {(const char *)sqlite3_column_text(test, 1), (size_t)sqlite3_column_bytes(test, 1)};
    struct mustache_input input = {.text = template, .load = load};
    struct mustache_error error;
    struct buf text = {0}, spare = {0};
    sqlite3_exec(db, "DELETE FROM node", NULL, NULL, NULL);
    sqlite3_stmt *fill = prepare("INSERT INTO node SELECT id, parent, key, type, atom FROM json_tree(?1)");
    sqlite3_bind_value(fill, 1, sqlite3_column_value(test, 3));
    ck_assert_int_eq(sqlite3_step(fill), SQLITE_DONE);
    sqlite3_finalize(fill);
    sqlite3_reset(load_file);
    sqlite3_bind_value(load_file, 1, sqlite3_column_value(test, 4));

    struct mustache *t = mustache_compile(&input, &error);
    ck_assert_msg(t != NULL, "%s: %s: %u:%u: %s", file, name, error.line, error.column, error.text);
    struct mustache_out out = {&text, &spare, 1 << 20};
    ck_assert_int_eq(mustache_render(t, &source, &out), MUSTACHE_OK);
    ck_assert(buf_add(&text, "", 1, 1 << 21));
    ck_assert_msg(strcmp((char *)text.data, (const char *)sqlite3_column_text(test, 2)) == 0,
                  "%s: %s: template <%s>, expected <%s>, rendered <%s>", file, name, template.p,
                  (const char *)sqlite3_column_text(test, 2), (char *)text.data);
    mustache_free(t);
    buf_free(&text);
    buf_free(&spare);
    sqlite3_reset(load_file);
}

static const struct {
    const char *file;
    int tests;
} files[] = {
    {"comments.json", 12},     {"delimiters.json", 14}, {"inheritance.json", 27}, {"interpolation.json", 42},
    {"inverted.json", 22},     {"partials.json", 12},   {"sections.json", 34},
};

START_TEST(specification)
{
    char path[128];
    size_t n;
    int count = 0;
    snprintf(path, sizeof path, DATA "%s", files[_i].file);
    char *json = temp_read(path, &n);
    ck_assert_int_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "CREATE TABLE node (id INTEGER PRIMARY KEY, parent, key, type, atom)", NULL, NULL, NULL),
                     SQLITE_OK);
    find_name = prepare("SELECT id, type, CASE type WHEN 'true' THEN 'true' ELSE atom END FROM node"
                        " WHERE parent = coalesce(nullif(?1, 0), (SELECT min(id) FROM node)) AND key = ?2");
    find_row = prepare("SELECT id, type, atom FROM node WHERE parent IS NULL AND ?1 = 0");
    next_item = prepare("SELECT id, type, atom FROM node WHERE parent = ?1 AND id > ?2 ORDER BY id LIMIT 1");
    load_file = prepare("SELECT value FROM json_each(coalesce(?1, '{}')) WHERE key = ?2");
    sqlite3_stmt *tests = prepare("SELECT value->>'name', value->>'template', value->>'expected', value->'data',"
                                  " value->'partials' FROM json_each(?1, '$.tests')");
    sqlite3_bind_text(tests, 1, json, (int)n, SQLITE_STATIC);
    for (; sqlite3_step(tests) == SQLITE_ROW; count++)
        one(files[_i].file, tests);
    ck_assert_int_eq(count, files[_i].tests);
    sqlite3_stmt *all[] = {find_name, find_row, next_item, load_file, tests};
    for (size_t i = 0; i < COUNT(all); i++)
        sqlite3_finalize(all[i]);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    free(json);
    free(alive);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mustache_spec");
    TCase *t = run_case(s, "specification");
    tcase_add_loop_test(t, specification, 0, COUNT(files));
    return run_suite(s);
}
