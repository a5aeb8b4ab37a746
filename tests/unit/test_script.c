/* db/script: how a file of SQL is split, what its notes mean, and what is told of its faults. */
#include "db/script.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

static char told[8192];

static void tell(void *arg, const char *file, unsigned line, const char *text)
{
    (void)arg;
    ck_assert_str_eq(file, "a/x.sql");
    snprintf(told + strlen(told), sizeof told - strlen(told), "%s%u: %s", told[0] != 0 ? "\n" : "", line, text);
}

static struct db_script *parse_bytes(enum db_script_kind kind, const char *text, size_t n)
{
    struct db_faults faults = {.tell = tell};
    told[0] = 0;
    struct db_script *s = db_script_parse(kind, "a/x.sql", text, n, &faults);
    ck_assert_msg((s == NULL) == (faults.count > 0), "%s", told);
    ck_assert_int_eq(faults.count > 0, told[0] != 0);
    return s;
}

static struct db_script *parse(enum db_script_kind kind, const char *text)
{
    struct db_script *s = parse_bytes(kind, text, strlen(text));
    ck_assert_msg(s != NULL, "%s", told);
    return s;
}

/* The statements, each as "line:text", with a bar between. */
static const char *split_as(enum db_script_kind kind, const char *text)
{
    static char out[8192];
    struct db_script *s = parse(kind, text);
    out[0] = 0;
    for (unsigned i = 0; i < s->count; i++) {
        ck_assert_uint_eq(strlen(s->statement[i].text), s->statement[i].bytes);
        snprintf(out + strlen(out), sizeof out - strlen(out), "%s%u:%s", i > 0 ? "|" : "", s->statement[i].line,
                 s->statement[i].text);
    }
    db_script_free(s);
    return out;
}

/* ---- splitting ------------------------------------------------------------------------------- */

static const struct {
    const char *text, *parts;
} splits[] = {
    {"SELECT 1", "1:SELECT 1"},
    {"SELECT 1;", "1:SELECT 1"},
    {"SELECT 1;\n", "1:SELECT 1"},
    {"SELECT 1;SELECT 2", "1:SELECT 1|1:SELECT 2"},
    {"\n\nSELECT 1;\n\n SELECT\n2 ;", "3:SELECT 1|5:SELECT\n2"},
    {";;SELECT 1;;;SELECT 2;;", "1:SELECT 1|1:SELECT 2"},
    {"SELECT 1\r\n;\r\nSELECT 2\r\n", "1:SELECT 1|3:SELECT 2"},
    {"\xef\xbb\xbfSELECT 1", "1:SELECT 1"},
    {"SELECT ';';SELECT 2", "1:SELECT ';'|1:SELECT 2"},
    {"SELECT 'a'';b';SELECT 2", "1:SELECT 'a'';b'|1:SELECT 2"},
    {"SELECT 'a\n;b';SELECT 2", "1:SELECT 'a\n;b'|2:SELECT 2"},
    {"SELECT '--';SELECT 2", "1:SELECT '--'|1:SELECT 2"},
    {"SELECT '/*';SELECT 2", "1:SELECT '/*'|1:SELECT 2"},
    {"SELECT \";\"\"\";SELECT 2", "1:SELECT \";\"\"\"|1:SELECT 2"},
    {"SELECT `;```;SELECT 2", "1:SELECT `;```|1:SELECT 2"},
    {"SELECT [;'];SELECT 2", "1:SELECT [;']|1:SELECT 2"},
    {"SELECT [a]];SELECT 2", "1:SELECT [a]]|1:SELECT 2"},
    {"SELECT x';';SELECT 2", "1:SELECT x';'|1:SELECT 2"},
    {"SELECT 1 -- a;b\n;SELECT 2", "1:SELECT 1|2:SELECT 2"},
    {"SELECT 1 -- it's\n+ 1;SELECT 2", "1:SELECT 1 -- it's\n+ 1|2:SELECT 2"},
    {"SELECT 1 /* ; ' \n */ + 1;SELECT 2", "1:SELECT 1 /* ; ' \n */ + 1|2:SELECT 2"},
    {"SELECT 1 /*/ ; */;SELECT 2", "1:SELECT 1|1:SELECT 2"},
    {"SELECT 1 /* a */;", "1:SELECT 1"},
    {"/* a\n;b */ SELECT 1", "2:SELECT 1"},
    {"-- a;b\nSELECT 1", "2:SELECT 1"},
    {"SELECT 1 -- end", "1:SELECT 1"},
    {"SELECT 1-2;SELECT 4/2", "1:SELECT 1-2|1:SELECT 4/2"},
    {"SELECT '\xc3\xa9;', \xc3\xa9;SELECT 2", "1:SELECT '\xc3\xa9;', \xc3\xa9|1:SELECT 2"},
    {"SELECT begin;end;", "1:SELECT begin|1:end"},
    {"CREATE TABLE t (a);SELECT 2", "1:CREATE TABLE t (a)|1:SELECT 2"},
    {"CREATE TRIGGER t AFTER INSERT ON x BEGIN SELECT 1; SELECT 2; END;SELECT 3",
     "1:CREATE TRIGGER t AFTER INSERT ON x BEGIN SELECT 1; SELECT 2; END|1:SELECT 3"},
    {"create temp Trigger t begin select 1; end;SELECT 3", "1:create temp Trigger t begin select 1; end|1:SELECT 3"},
    {"CREATE TEMPORARY TRIGGER t BEGIN a; END;b", "1:CREATE TEMPORARY TRIGGER t BEGIN a; END|1:b"},
    {"CREATE /* x */ TRIGGER t BEGIN a; -- c\n END -- d\n ; b",
     "1:CREATE /* x */ TRIGGER t BEGIN a; -- c\n END|3:b"},
    {"CREATE TRIGGER t BEGIN SELECT CASE WHEN 1 THEN 2 END; END;b",
     "1:CREATE TRIGGER t BEGIN SELECT CASE WHEN 1 THEN 2 END; END|1:b"},
    {"CREATE TRIGGER t BEGIN a;; END;b", "1:CREATE TRIGGER t BEGIN a;; END|1:b"},
    {"CREATE TRIGGER t BEGIN a; \"END\"; END;b", "1:CREATE TRIGGER t BEGIN a; \"END\"; END|1:b"},
    {"CREATE TRIGGER t BEGIN a; END", "1:CREATE TRIGGER t BEGIN a; END"},
    {"CREATE TRIGGER t BEGIN a; ENDING; END;b", "1:CREATE TRIGGER t BEGIN a; ENDING; END|1:b"},
    {"EXPLAIN CREATE TRIGGER t BEGIN a; END;b", "1:EXPLAIN CREATE TRIGGER t BEGIN a; END|1:b"},
    {"CREATE UNIQUE TRIGGER t BEGIN a; END;b", "1:CREATE UNIQUE TRIGGER t BEGIN a|1:END|1:b"},
    {"SELECT CREATE TRIGGER;b", "1:SELECT CREATE TRIGGER|1:b"},
};

START_TEST(a_file_is_split)
{
    ck_assert_str_eq(split_as(DB_SCRIPT_WRITE, splits[_i].text), splits[_i].parts);
}
END_TEST

/* Every part is one statement to SQLite too. */
START_TEST(each_part_is_complete)
{
    struct db_script *s = parse(DB_SCRIPT_SCHEMA, splits[_i].text);
    for (unsigned i = 0; i < s->count; i++) {
        char text[400];
        snprintf(text, sizeof text, "%s;", s->statement[i].text);
        ck_assert_msg(sqlite3_complete(text), "%s", text);
    }
    db_script_free(s);
}
END_TEST

START_TEST(the_text_is_copied)
{
    char text[] = "-- name: a\nSELECT 1; -- b\nSELECT 2", file[] = "a/x.sql";
    struct db_faults faults = {.tell = tell};
    struct db_script *s = db_script_parse(DB_SCRIPT_READ, file, text, sizeof text - 1, &faults);
    memset(text, 'x', sizeof text);
    file[0] = 'x';
    ck_assert_str_eq(s->file, "a/x.sql");
    ck_assert_str_eq(s->statement[0].text, "SELECT 1");
    ck_assert_str_eq(s->statement[0].name, "a");
    ck_assert_ptr_null(s->statement[1].name);
    ck_assert_int_eq(s->kind, DB_SCRIPT_READ);
    db_script_free(s);
}
END_TEST

START_TEST(no_two_scripts_have_one_id)
{
    struct db_script *a = parse(DB_SCRIPT_READ, "SELECT 1"), *b = parse(DB_SCRIPT_READ, "SELECT 1");
    ck_assert_uint_ne(a->id, 0);
    ck_assert_uint_ne(a->id, b->id);
    db_script_free(a);
    db_script_free(b);
    db_script_free(NULL);
}
END_TEST

START_TEST(a_schema_may_be_empty)
{
    ck_assert_str_eq(split_as(DB_SCRIPT_SCHEMA, "-- name: of nothing\n"), "");
}
END_TEST

/* ---- notes ----------------------------------------------------------------------------------- */

/* What the notes of the first statement say. */
static const char *noted(const char *text)
{
    static char out[512];
    struct db_script *s = parse(DB_SCRIPT_READ, text);
    const struct db_statement *of = &s->statement[0];
    snprintf(out, sizeof out, "%s%s", of->name != NULL ? of->name : "-", of->set ? " set" : "");
    if (of->page != NULL)
        snprintf(out + strlen(out), sizeof out - strlen(out), " %u by", of->page->rows);
    for (unsigned i = 0; of->page != NULL && i < of->page->keys; i++)
        snprintf(out + strlen(out), sizeof out - strlen(out), " %s%s", of->page->key[i].column,
                 of->page->key[i].descending ? "-" : "+");
    db_script_free(s);
    return out;
}

static const struct {
    const char *text, *says;
} notes[] = {
    {"SELECT 1", "-"},
    {"-- name: items\nSELECT 1", "items"},
    {"--name:items\nSELECT 1", "items"},
    {"  --  name :  i_2 \t\r\n\nSELECT 1", "i_2"},
    {"-- name: rows\nSELECT 1", "rows"},
    {"/* a */\n-- name: a\n/* b */ SELECT 1", "a"},
    {"-- name: a\n;;\nSELECT 1", "a"},
    {"-- name: a\n-- what it is for\nSELECT 1", "a"},
    {"-- set\nSELECT 1", "- set"},
    {"-- set:\nSELECT 1", "- set"},
    {"-- page: 20 by score desc, id\nSELECT 1", "- 20 by score- id+"},
    {"-- page: 1 by a asc\nSELECT 1", "- 1 by a+"},
    {"-- page: 1000 by a,b,c,d desc\nSELECT 1", "- 1000 by a+ b+ c+ d-"},
    {"-- name: p\n-- page: 0020 by A_1\nSELECT 1", "p 20 by A_1+"},
    {"-- page: 5 BY a DESC, b Asc\nSELECT 1", "- 5 by a- b+"},
    {"-- page: 5 by desc desc\nSELECT 1", "- 5 by desc-"},
    {"-- page: 5 by a\nSELECT (SELECT 1 ORDER BY 1 LIMIT 2), [limit], count() OVER (ORDER BY a)", "- 5 by a+"},
    {"-- page: 5 by a\nSELECT (1); SELECT 2 ORDER BY 1", "- 5 by a+"},
    {"-- names: x\nSELECT 1", "-"},
    {"-- Name: x\nSELECT 1", "-"},
    {"-- name x\nSELECT 1", "-"},
    {"-- a name: x\nSELECT 1", "-"},
    {"--- name: x\nSELECT 1", "-"},
    {"-- set the rows\nSELECT 1", "-"},
    {"-- set, then\nSELECT 1", "-"},
    {"-- pages: 20\nSELECT 1", "-"},
    {"/* name: x */ SELECT 1", "-"},
    {"/*\n-- name: x\n*/ SELECT 1", "-"},
    {"SELECT '\n-- name: x\n'", "-"},
};

START_TEST(notes_say)
{
    ck_assert_str_eq(noted(notes[_i].text), notes[_i].says);
}
END_TEST

START_TEST(a_form_is_named_once_and_anywhere)
{
    static const char *const forms[][2] = {
        {"-- form: list\nSELECT 1", "list"},          {"SELECT 1;\n-- form: item/:id\nSELECT 2", "item/:id"},
        {"SELECT 1;\n-- form: list-2", "list-2"},     {"-- form: index\nSELECT 1", ""},
        {"-- form: index\n-- set\nSELECT 1", ""},
    };
    struct db_script *s = parse(DB_SCRIPT_WRITE, "SELECT 1");
    ck_assert_ptr_null(s->form);
    db_script_free(s);
    for (size_t i = 0; i < COUNT(forms); i++) {
        s = parse(DB_SCRIPT_WRITE, forms[i][0]);
        ck_assert_str_eq(s->form, forms[i][1]);
        db_script_free(s);
    }
}
END_TEST

START_TEST(a_schema_has_no_notes)
{
    ck_assert_str_eq(split_as(DB_SCRIPT_SCHEMA, "-- page: one\n-- name: A\n-- set: x\nSELECT 1 -- form: 2\n"),
                     "4:SELECT 1");
}
END_TEST

/* ---- faults ---------------------------------------------------------------------------------- */

#define LONG_32 "abcdefghijklmnopqrstuvwxyz_01234"
#define PAGE_FORM "1: a page is written as in -- page: 20 by score desc, id"
#define NAME_FORM "1: a name is a-z, 0-9 and _, and begins with a letter"
#define FORM_FORM "1: a form is called as its file, as in -- form: list"
#define PLACE "a note stands in a line of its own, before its statement"

enum { R = DB_SCRIPT_READ, W = DB_SCRIPT_WRITE, S = DB_SCRIPT_SCHEMA };

static const struct {
    int kind;
    const char *text, *faults;
} wrongs[] = {
    {R, "", "1: there is no statement in this file"},
    {W, " ;; -- x\n/* y */", "1: there is no statement in this file"},
    {R, "SELECT 1;\n'a", "2: a string or a name begins here and does not end"},
    {R, "SELECT 1, \"a\n;", "1: a string or a name begins here and does not end"},
    {R, "SELECT `a``;", "1: a string or a name begins here and does not end"},
    {R, "SELECT\n[a;", "2: a string or a name begins here and does not end"},
    {R, "SELECT 1;\n/* a", "2: a comment begins here and does not end"},
    {R, "SELECT 1 /*/", "1: a comment begins here and does not end"},
    {S, "SELECT 1 /*", "1: a comment begins here and does not end"},
    {R, "SELECT\n\xff", "2: there are bytes that are not UTF-8"},
    {R, "SELECT '\xc3'", "1: there are bytes that are not UTF-8"},
    {R, "SELECT 1 -- \xc0\xaf", "1: there are bytes that are not UTF-8"},
    {R, "SELECT 1 -- \xed\xa0\x80", "1: there are bytes that are not UTF-8"},
    {R, "SELECT 1 -- \xe0\x80\xaf", "1: there are bytes that are not UTF-8"},
    {R, "SELECT 1 -- \xf4\x90\x80\x80", "1: there are bytes that are not UTF-8"},
    {R, "SELECT 1 -- \xe2\x82", "1: there are bytes that are not UTF-8"},
    {R, "-- name:\nSELECT 1", NAME_FORM},
    {R, "-- name: A\nSELECT 1", NAME_FORM},
    {R, "-- name: _a\nSELECT 1", NAME_FORM},
    {R, "-- name: 1a\nSELECT 1", NAME_FORM},
    {R, "-- name: a-b\nSELECT 1", NAME_FORM},
    {R, "-- name: aB\nSELECT 1", NAME_FORM},
    {R, "-- name: a$\nSELECT 1", NAME_FORM},
    {R, "-- name: a b\nSELECT 1", NAME_FORM},
    {R, "-- name: \xc3\xa9\nSELECT 1", NAME_FORM},
    {R, "-- name: a\xc3\xa9\nSELECT 1", NAME_FORM},
    {R, "-- name: " LONG_32 LONG_32 "5\nSELECT 1", "1: a name has at most 64 bytes"},
    {R, "-- name: next\nSELECT 1", "1: the name next is kept for pages"},
    {R, "-- name: prev\nSELECT 1", "1: the name prev is kept for pages"},
    {R, "-- name: a\n-- name: b\nSELECT 1", "2: a statement has one name"},
    {R, "-- name: a\nSELECT 1;\n-- name: a\nSELECT 2", "3: the name a stands twice in this file"},
    {R, "-- set: a\nSELECT 1", "1: the note is written -- set, with nothing behind it"},
    {R, "-- set\n-- name: a\nSELECT 1", "2: a statement is either -- set or has a name"},
    {R, "-- page: 5 by a\n-- set\nSELECT 1", "2: a statement is either -- set or a page"},
    {R, "-- page:\nSELECT 1", PAGE_FORM},
    {R, "-- page: x\nSELECT 1", PAGE_FORM},
    {R, "-- page: 20\nSELECT 1", PAGE_FORM},
    {R, "-- page: 20 by\nSELECT 1", PAGE_FORM},
    {R, "-- page: 20 by a,\nSELECT 1", PAGE_FORM},
    {R, "-- page: 20 by a b\nSELECT 1", PAGE_FORM},
    {R, "-- page: 20 by a desc b\nSELECT 1", PAGE_FORM},
    {R, "-- page: 20 by 1\nSELECT 1", PAGE_FORM},
    {R, "-- page: 20 by a$\nSELECT 1", PAGE_FORM},
    {R, "-- page: 20 by \"a\"\nSELECT 1", PAGE_FORM},
    {R, "-- page: 20 by [a]\nSELECT 1", PAGE_FORM},
    {R, "-- page: 20x by a\nSELECT 1", PAGE_FORM},
    {R, "-- page: -1 by a\nSELECT 1", PAGE_FORM},
    {R, "-- page: by a\nSELECT 1", PAGE_FORM},
    {R, "-- page: 0 by a\nSELECT 1", "1: a page has 1 to 1000 rows"},
    {R, "-- page: 1001 by a\nSELECT 1", "1: a page has 1 to 1000 rows"},
    {R, "-- page: 99999999999999999999 by a\nSELECT 1", "1: a page has 1 to 1000 rows"},
    {R, "-- page: 5 by a, b, c, d, e\nSELECT 1", "1: a page has at most 4 keys"},
    {R, "-- page: 5 by a, b, A desc\nSELECT 1", "1: the key A stands twice in a page"},
    {R, "-- page: 5 by a\n-- page: 6 by a\nSELECT 1", "2: a statement has one page"},
    {R, "-- page: 5 by a\nSELECT 1\nORDER BY a", "3: leave ORDER BY and LIMIT to the page note"},
    {R, "-- page: 5 by a\nSELECT 1\nlimit 5", "3: leave ORDER BY and LIMIT to the page note"},
    {W, "-- page: 5 by a\nSELECT 1", "1: a page stands in a get file"},
    {R, "-- form: a\nSELECT 1", "1: a form stands in a post, put or delete file"},
    {W, "-- form: a\n-- form: b\nSELECT 1", "2: a file has one form"},
    {W, "-- form:\nSELECT 1", FORM_FORM},
    {W, "-- form: /a\nSELECT 1", FORM_FORM},
    {W, "-- form: a/\nSELECT 1", FORM_FORM},
    {W, "-- form: a//b\nSELECT 1", FORM_FORM},
    {W, "-- form: ../b\nSELECT 1", FORM_FORM},
    {W, "-- form: _b\nSELECT 1", FORM_FORM},
    {W, "-- form: a b\nSELECT 1", FORM_FORM},
    {W, "-- form: a?b\nSELECT 1", FORM_FORM},
    {W, "-- form: " LONG_32 LONG_32 "5\nSELECT 1", "1: a form has at most 64 bytes"},
    {R, "SELECT 1; -- name: a\nSELECT 2", "1: " PLACE},
    {R, "SELECT 1 -- set\n, 2", "1: " PLACE},
    {R, "SELECT 1\n-- name: a\n, 2", "2: " PLACE},
    {R, "SELECT 1;\n-- name: a", "2: no statement stands behind this note"},
    {R, "SELECT 1;\n-- set\n;\n", "2: no statement stands behind this note"},
    {S, "SELECT 1;\nSELECT :a", "2: a schema file has no parameters"},
    {S, "SELECT 1;\nCREATE TRIGGER t BEGIN a END;\nSELECT 2;", "2: a trigger begins here and does not end with ; END"},
    {S, "CREATE TRIGGER t BEGIN a;", "1: a trigger begins here and does not end with ; END"},
    {S, "SELECT ?", "1: a schema file has no parameters"},
    {R, "-- name: A\nSELECT 1;\n-- page: 0 by a\nSELECT 2;\n-- set: 1",
     NAME_FORM "\n3: a page has 1 to 1000 rows\n5: the note is written -- set, with nothing behind it"
               "\n5: no statement stands behind this note"},
};

START_TEST(what_is_wrong_is_told)
{
    struct db_script *s = parse_bytes((enum db_script_kind)wrongs[_i].kind, wrongs[_i].text, strlen(wrongs[_i].text));
    ck_assert_ptr_null(s);
    ck_assert_str_eq(told, wrongs[_i].faults);
}
END_TEST

START_TEST(a_nul_byte_is_told)
{
    ck_assert_ptr_null(parse_bytes(DB_SCRIPT_READ, "SELECT 1\n\0", 10));
    ck_assert_str_eq(told, "2: there is a NUL byte");
}
END_TEST

START_TEST(there_are_at_most_64_statements)
{
    char text[1000] = "";
    for (int i = 0; i < 64; i++)
        strcat(text, "SELECT 1;\n");
    struct db_script *s = parse(DB_SCRIPT_READ, text);
    ck_assert_uint_eq(s->count, 64);
    db_script_free(s);
    strcat(text, "SELECT 1;\nSELECT 2");
    ck_assert_ptr_null(parse_bytes(DB_SCRIPT_READ, text, strlen(text)));
    ck_assert_str_eq(told, "65: a file has at most 64 statements");
}
END_TEST

START_TEST(there_are_at_most_256_kib)
{
    size_t n = DB_SCRIPT_BYTES_MAX;
    char *text = malloc(n + 1);
    memset(text, ' ', n + 1);
    memcpy(text, "SELECT 1", 8);
    struct db_script *s = parse_bytes(DB_SCRIPT_READ, text, n);
    ck_assert_uint_eq(s->statement[0].bytes, 8);
    db_script_free(s);
    ck_assert_ptr_null(parse_bytes(DB_SCRIPT_READ, text, n + 1));
    ck_assert_str_eq(told, "1: the file has more than 256 KiB");
    free(text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("script");
    TCase *t = run_case(s, "split");
    tcase_add_loop_test(t, a_file_is_split, 0, COUNT(splits));
    tcase_add_loop_test(t, each_part_is_complete, 0, COUNT(splits));
    tcase_add_test(t, the_text_is_copied);
    tcase_add_test(t, no_two_scripts_have_one_id);
    tcase_add_test(t, a_schema_may_be_empty);
    t = run_case(s, "notes");
    tcase_add_loop_test(t, notes_say, 0, COUNT(notes));
    tcase_add_test(t, a_form_is_named_once_and_anywhere);
    tcase_add_test(t, a_schema_has_no_notes);
    t = run_case(s, "faults");
    tcase_add_loop_test(t, what_is_wrong_is_told, 0, COUNT(wrongs));
    tcase_add_test(t, a_nul_byte_is_told);
    tcase_add_test(t, there_are_at_most_64_statements);
    tcase_add_test(t, there_are_at_most_256_kib);
    return run_suite(s);
}
