/* handlers/cursor: where a page begins, as clients carry it. */
#include "handlers/cursor.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

static struct cursor_keys keys;
static struct db_page page;
static struct db_statement of = {.name = "rows", .page = &page};
static struct db_script script = {.file = "page.get.sql"};
static struct db_cell row[DB_PAGE_KEYS_MAX];
static char text[CURSOR_MAX + 1];
static unsigned char memory[SEAL_BOX_MAX];
static struct db_value key[DB_PAGE_KEYS_MAX];

static void init(void)
{
    unsigned char secret[DB_SECRET_BYTES] = {7};
    ck_assert(seal_init());
    cursor_keys_make(secret, &keys);
    page = (struct db_page){.rows = 20, .keys = 4};
    page.key[0].column = "score";
    page.key[0].descending = true;
    page.key[1].column = "share";
    page.key[2].column = "name";
    page.key[3].column = "id";
    row[0] = (struct db_cell){.type = DB_CELL_INT, .i = INT64_MIN};
    row[1] = (struct db_cell){.type = DB_CELL_REAL, .r = -0.1};
    row[2] = (struct db_cell){.type = DB_CELL_TEXT, .p = "a\0b", .n = 3};
    row[3] = (struct db_cell){.type = DB_CELL_NULL};
}

static size_t make(void)
{
    return cursor_write(&keys, "scores", &script, &of, row, text);
}

static bool takes(const char *app, size_t n)
{
    return cursor_read(&keys, app, &script, &of, (struct str){text, n}, memory, key);
}

START_TEST(keys_of_every_kind_come_back)
{
    size_t n = make();
    ck_assert_uint_gt(n, 0);
    ck_assert_uint_eq(strlen(text), n);
    ck_assert(takes("scores", n));
    ck_assert(key[0].type == DB_VALUE_INT && key[0].i == INT64_MIN);
    ck_assert(key[1].type == DB_VALUE_REAL && key[1].r == -0.1);
    ck_assert(key[2].type == DB_VALUE_TEXT && key[2].n == 3);
    ck_assert_mem_eq(key[2].p, "a\0b", 3);
    ck_assert(key[3].type == DB_VALUE_NONE);
}
END_TEST

START_TEST(bytes_and_empty_text)
{
    row[2] = (struct db_cell){.type = DB_CELL_BLOB, .p = "\xff", .n = 1};
    row[3] = (struct db_cell){.type = DB_CELL_TEXT, .p = "", .n = 0};
    ck_assert(takes("scores", make()));
    ck_assert(key[2].type == DB_VALUE_BLOB && key[2].n == 1);
    ck_assert(key[3].type == DB_VALUE_TEXT && key[3].n == 0);
}
END_TEST

START_TEST(the_same_row_has_the_same_cursor)
{
    char first[CURSOR_MAX + 1];
    make();
    strcpy(first, text);
    make();
    ck_assert_str_eq(first, text);
}
END_TEST

START_TEST(of_another_app)
{
    size_t n = make();
    ck_assert(!takes("score", n));
    ck_assert(!takes("scoresp", n));
}
END_TEST

START_TEST(of_another_file)
{
    size_t n = make();
    struct db_script other = {.file = "other.get.sql"};
    ck_assert(!cursor_read(&keys, "scores", &other, &of, (struct str){text, n}, memory, key));
}
END_TEST

START_TEST(of_another_result)
{
    size_t n = make();
    of.name = "others";
    ck_assert(!takes("scores", n));
    of.name = "rows";
}
END_TEST

START_TEST(of_another_order)
{
    size_t n = make();
    page.key[3].descending = true;
    ck_assert(!takes("scores", n));
    page.key[3].descending = false;
    page.key[0].column = "points";
    ck_assert(!takes("scores", n));
    page.key[0].column = "score";
    page.keys = 3;
    ck_assert(!takes("scores", n));
}
END_TEST

START_TEST(that_somebody_changed)
{
    size_t n = make();
    text[n / 2] = text[n / 2] == 'A' ? 'B' : 'A';
    ck_assert(!takes("scores", n));
    ck_assert(!takes("scores", n - 1));
    ck_assert(!takes("scores", 0));
}
END_TEST

START_TEST(of_another_database)
{
    unsigned char secret[DB_SECRET_BYTES] = {8};
    size_t n = make();
    cursor_keys_make(secret, &keys);
    ck_assert(!takes("scores", n));
}
END_TEST

START_TEST(keys_that_are_too_long)
{
    static char vast[SEAL_BOX_MAX];
    row[2] = (struct db_cell){.type = DB_CELL_TEXT, .p = vast, .n = sizeof vast};
    ck_assert_uint_eq(make(), 0);
    row[2].n = 900;
    size_t n = make();
    ck_assert_uint_gt(n, 0);
    ck_assert_uint_le(n, CURSOR_MAX);
    ck_assert(takes("scores", n));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cursor");
    TCase *t = run_case(s, "cursor");
    tcase_add_checked_fixture(t, init, NULL);
    tcase_add_test(t, keys_of_every_kind_come_back);
    tcase_add_test(t, bytes_and_empty_text);
    tcase_add_test(t, the_same_row_has_the_same_cursor);
    tcase_add_test(t, of_another_app);
    tcase_add_test(t, of_another_file);
    tcase_add_test(t, of_another_result);
    tcase_add_test(t, of_another_order);
    tcase_add_test(t, that_somebody_changed);
    tcase_add_test(t, of_another_database);
    tcase_add_test(t, keys_that_are_too_long);
    return run_suite(s);
}
