/* db/search: what a query means, what is found, and how it is shown. */
#include "db/search.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/sdb.h"

/* ---- what a query means ---------------------------------------------------------------------- */

static void library(void)
{
    sdb_put("n/a", "Green tea is made of leaves. It's a drink, e-mail me!");
    sdb_put("n/b", "black tea and green apples; caf\xc3\xa9 \xc3\x89t\xc3\xa9");
    sdb_put("n/c", "AND OR NOT NEAR place text \"quoted\" c1 star* 50% (x) {y} ^z a:b");
    sdb_put("n/d", "teapot teatime");
    sdb_add("n/");
}

static const struct {
    const char *q, *keys;
} meanings[] = {
    {"tea", "n/b n/a"},
    {"TEA", "n/b n/a"},
    {"green tea", "n/b n/a"},
    {"tea green", "n/b n/a"},
    {"\"green tea\"", "n/a"},
    {"\"tea green\"", ""},
    {"\"green tea", "n/a"},
    {"tea -black", "n/a"},
    {"-black tea", "n/a"},
    {"tea -\"green tea\"", "n/b"},
    {"tea -black -leaves", ""},
    {"te*", "n/d n/b n/a n/c"},
    {"tea*", "n/d n/b n/a"},
    {"teap*", "n/d"},
    {"\"green te\"*", "n/a"},
    {"tea* -teap*", "n/b n/a"},
    {"cafe", "n/b"},
    {"CAF\xc3\x89", "n/b"},
    {"ete", "n/b"},
    {"e-mail", "n/a"},
    {"it's", "n/a"},
    {"AND", "n/b n/c"},
    {"OR", "n/c"},
    {"NOT", "n/c"},
    {"NEAR(a b)", ""},
    {"a:b", "n/c"},
    {"place:c1", ""},
    {"text:tea", ""},
    {"\"place text\"", "n/c"},
    {"c1", "n/c"},
    {"^z", "n/c"},
    {"{y}", "n/c"},
    {"(x)", "n/c"},
    {"50%", "n/c"},
    {"tea AND black", "n/b"},
    {"tea OR zebra", ""},
    {"tea + black", "n/b"},
    {"tea & ()", "n/b n/a"},
    {"tea -", "n/b n/a"},
    {"tea -&", "n/b n/a"},
    {"tea --black", "n/a"},
    {"tea\"black\"", "n/b"},
    {"tea\tblack\ngreen", "n/b"},
    {"\"\" tea", "n/b n/a"},
    {"* tea", "n/b n/a"},
    {"tea\xc2\xa0" "black", "n/b"},
    {"\xe2\x80\x9cgreen tea\xe2\x80\x9d", "n/a"},
    {"\xe2\x80\x9etea green\"", ""},
    {"zebra", ""},
    {"", "wrong"},
    {" ", "wrong"},
    {"\"", "wrong"},
    {"\"\"", "wrong"},
    {"*", "wrong"},
    {"\"*\"", "wrong"},
    {"-", "wrong"},
    {"-tea", "wrong"},
    {"-tea -black", "wrong"},
    {"...", "wrong"},
    {"t*", "wrong"},
    {"tea t*", "wrong"},
    {"tea -t*", "wrong"},
    {"\"green t\"*", "wrong"},
};

START_TEST(a_query_means)
{
    library();
    ck_assert_str_eq(sdb_search("n/", meanings[_i].q), meanings[_i].keys);
}
END_TEST

START_TEST(a_query_has_bounds)
{
    char q[600] = "";
    sdb_put("n/a", "ab");
    sdb_add("n/");
    for (int i = 0; i < 32; i++)
        strcat(q, "ab ");
    ck_assert_str_eq(sdb_search("n/", q), "n/a");
    strcat(q, "-x");
    ck_assert_str_eq(sdb_search("n/", q), "wrong");
    memset(q, 'a', 512);
    q[512] = 0;
    ck_assert_str_eq(sdb_search("n/", q), "");
    strcat(q, "a");
    ck_assert_str_eq(sdb_search("n/", q), "wrong");
    for (int i = 0; i < 512; i++)
        q[i] = i % 2 == 0 ? '"' : '-';
    q[512] = 0;
    ck_assert_str_eq(sdb_search("n/", q), "wrong");
}
END_TEST

START_TEST(no_query_is_an_error_of_fts5)
{
    static const char pieces[][8] = {"\"", "-", "*", "(", ")", "{", "}", ":", "^", "+", " ", "AND", "OR", "NOT", "NEAR",
                                     "/2", "text", "place", "c1", "tea", "te", ";", "'", ",", "\xc3\xa9", "\xff", "|"};
    unsigned seed = 1;
    sdb_put("n/a", "tea");
    sdb_add("n/");
    for (int i = 0; i < 3000; i++) {
        char q[200] = "";
        for (unsigned k = seed % 12 + 1; k > 0; k--) {
            seed = seed * 1103515245 + 12345;
            strcat(q, pieces[(seed >> 16) % COUNT(pieces)]);
        }
        (void)sdb_search("n/", q);
    }
}
END_TEST

/* ---- what is found --------------------------------------------------------------------------- */

START_TEST(json_is_its_strings_and_numbers)
{
    sdb_put_json("n/a", "{\"name\":\"gr\\u00fcn\",\"deep\":[{\"x\":[\"leaf\",1984,2.5,true,null]}]}");
    sdb_put_json("n/b", "\"alone\"");
    sdb_put_json("n/c", "[true,null]");
    sdb_add("n/");
    ck_assert_str_eq(sdb_search("n/", "grun leaf"), "n/a");
    ck_assert_str_eq(sdb_search("n/", "1984"), "n/a");
    ck_assert_str_eq(sdb_search("n/", "\"2.5\""), "n/a");
    ck_assert_str_eq(sdb_search("n/", "name"), "");
    ck_assert_str_eq(sdb_search("n/", "true"), "");
    ck_assert_str_eq(sdb_search("n/", "alone"), "n/b");
    tdb_is_sound();
}
END_TEST

START_TEST(other_types_are_not_indexed)
{
    static const struct {
        const char *type;
        enum db_value_type form;
        bool found;
    } types[] = {
        {"text/plain", DB_VALUE_TEXT, true},
        {"TEXT/HTML; charset=utf-8", DB_VALUE_TEXT, true},
        {"application/ld+json; x=y", DB_VALUE_TEXT, true},
        {"APPLICATION/JSON", DB_VALUE_TEXT, true},
        {"application/octet-stream", DB_VALUE_TEXT, false},
        {"application/jsonx", DB_VALUE_TEXT, false},
        {"text", DB_VALUE_TEXT, false},
        {"text/plain", DB_VALUE_BLOB, false},
        {"application/json", DB_VALUE_BLOB, false},
    };
    char key[16];
    sdb_add("n/");
    for (size_t i = 0; i < COUNT(types); i++) {
        snprintf(key, sizeof key, "n/%d", (int)i);
        ck_assert_int_eq(sdb_apply(tdb_put_bytes(key, types[i].type, types[i].form, "\"word\"", 6)), DB_OK);
    }
    sdb_settle();
    ck_assert_str_eq(sdb_search("n/", "word"), "n/0 n/1 n/2 n/3");
    tdb_is_sound();
}
END_TEST

START_TEST(broken_json_from_outside_is_skipped)
{
    sqlite3 *db = tdb_shell();
    tdb_sql(db, "INSERT INTO doc (key, type, body) VALUES ('n/a', 'application/json', '{word'),"
                " ('n/b', 'application/json', ''), ('n/c', 'application/json', '{\"a\":\"word\"}'),"
                " ('n/d', 'text/plain', 'word ' || CAST(x'fffe' AS TEXT) || ' word'),"
                " ('n/e', 'text/plain', 'word' || char(0) || 'word')");
    sqlite3_close(db);
    sdb_add("n/");
    ck_assert_str_eq(sdb_search("n/", "word"), "n/d n/e n/c");
    tdb_is_sound();
}
END_TEST

START_TEST(what_is_larger_than_a_mebibyte_is_not_indexed)
{
    size_t n = DB_SEARCH_BODY_MAX;
    char *body = malloc(n + 1);
    memset(body, 'a', n + 1);
    memcpy(body, "word ", 5);
    sdb_add("n/");
    ck_assert_int_eq(sdb_apply(tdb_put_bytes("n/a", "text/plain", DB_VALUE_TEXT, body, n)), DB_OK);
    ck_assert_int_eq(sdb_apply(tdb_put_bytes("n/b", "text/plain", DB_VALUE_TEXT, body, n + 1)), DB_OK);
    sdb_settle();
    ck_assert_str_eq(sdb_search("n/", "word"), "n/a");
    ck_assert_int_eq(sdb_apply(tdb_put_bytes("n/a", "text/plain", DB_VALUE_TEXT, body, n + 1)), DB_OK);
    sdb_settle();
    ck_assert_str_eq(sdb_search("n/", "word"), "");
    tdb_is_sound();
    free(body);
}
END_TEST

START_TEST(better_hits_come_first_and_ties_by_key)
{
    sdb_put("n/c", "tea and something else");
    sdb_put("n/a", "tea tea and something");
    sdb_put("n/d", "tea");
    sdb_put("n/b", "tea and something else");
    sdb_add("n/");
    ck_assert_str_eq(sdb_search("n/", "tea"), "n/a n/d n/b n/c");
}
END_TEST

START_TEST(a_score_does_not_depend_on_other_documents)
{
    static struct sdb_found before, after;
    sdb_put("n/a", "tea leaves");
    sdb_add("n/");
    sdb_add("secret/");
    ck_assert_int_eq(sdb_page("n/", "tea", 10, &before, false), DB_OK);
    for (int i = 0; i < 50; i++) {
        char key[16];
        snprintf(key, sizeof key, i % 2 == 0 ? "secret/%d" : "n/x%d", i);
        sdb_put(key, "tea tea tea and much more text than before");
    }
    sdb_settle();
    after.last[0] = 0;
    ck_assert_int_eq(sdb_page("n/", "tea leaves", 10, &after, false), DB_OK);
    ck_assert_str_eq(after.keys, "n/a");
    ck_assert_int_eq(sdb_page("n/", "tea -more", 10, &after, false), DB_OK);
    ck_assert_int_eq(before.score, after.score);
}
END_TEST

START_TEST(pages_cover_all_once)
{
    static struct sdb_found f;
    static char seen[8192];
    char key[16], body[64];
    unsigned count = 0;
    for (int i = 0; i < 50; i++) {
        snprintf(key, sizeof key, "n/%02d", i);
        snprintf(body, sizeof body, "%s", "tea tea tea tea" + (i % 4) * 4);
        sdb_put(key, body);
    }
    sdb_add("n/");
    const char *all = sdb_search("n/", "tea");
    for (bool behind = false; count < 100; behind = true) {
        ck_assert_int_eq(sdb_page("n/", "tea", 7, &f, behind), DB_OK);
        if (f.count == 0)
            break;
        count += f.count;
        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s%s", seen[0] != 0 ? " " : "", f.keys);
    }
    ck_assert_uint_eq(count, 50);
    ck_assert_str_eq(seen, all);
}
END_TEST

START_TEST(collections_do_not_see_each_other)
{
    sdb_put("a/1", "word");
    sdb_put("b/1", "word");
    sdb_put("ab", "word");
    sdb_put("a", "word");
    sdb_put("a0", "word");
    sdb_put("a/sub/2", "word");
    sdb_add("a/");
    sdb_add("b/");
    ck_assert_str_eq(sdb_search("a/", "word"), "a/1 a/sub/2");
    ck_assert_str_eq(sdb_search("a/sub/", "word"), "a/sub/2");
    ck_assert_str_eq(sdb_search("a/1/", "word"), "");
    ck_assert_str_eq(sdb_search("b/", "word"), "b/1");
    ck_assert_int_eq(sdb_look("c/"), DB_SEARCH_NOT_HERE);
    ck_assert_int_eq(sdb_look(""), DB_SEARCH_NOT_HERE);
    ck_assert_int_eq(sdb_look("ab/"), DB_SEARCH_NOT_HERE);
    tdb_is_sound();
}
END_TEST

START_TEST(everything_can_be_one_collection)
{
    sdb_put("a/1", "word");
    sdb_put("z", "word");
    sdb_put("\xf4\x8f\xbf\xbf", "word");
    sdb_add("");
    ck_assert_str_eq(sdb_search("", "word"), "a/1 z \xf4\x8f\xbf\xbf");
    ck_assert_str_eq(sdb_search("a/", "word"), "a/1");
    ck_assert_int_eq(sdb_apply(sdb_op(DB_OP_SEARCH_ADD, "a/")), DB_EXISTS);
    tdb_is_sound();
}
END_TEST

/* ---- snippets -------------------------------------------------------------------------------- */

static const struct {
    const char *text, *q, *snippet;
} snippets[] = {
    {"tea", "tea", "|tea|"},
    {"(tea)", "tea", "(|tea|)"},
    {"We drink tea.", "tea", "We drink |tea|."},
    {"tea and tea", "tea", "|tea| and |tea|"},
    {"tea tea", "tea", "|tea| |tea|"},
    {"a b c d", "\"b c\" \"c d\"", "a |b c| |d|"},
    {"green tea, black tea", "\"black tea\"", "green tea, |black tea|"},
    {"teapot", "te*", "|teapot|"},
    {"CAF\xc3\x89!", "cafe", "|CAF\xc3\x89|!"},
    {"a <b>tea</b> & \"x\"", "tea", "a <b>|tea|</b> & \"x\""},
    {"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 tea", "tea",
     "\xe2\x80\xa6" "26 27 28 29 |tea|"},
    {"tea 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30", "tea",
     "|tea| 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24\xe2\x80\xa6"},
    {"tea 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 green tea", "green tea",
     "\xe2\x80\xa6" "27 28 29 30 |green| |tea|"},
};

START_TEST(a_snippet_shows_where)
{
    sdb_put("n/a", snippets[_i].text);
    sdb_add("n/");
    const char *got = sdb_snippet(snippets[_i].q);
    size_t n = strlen(got);
    if (n > 0 && got[n - 1] == '|' && snippets[_i].snippet[strlen(snippets[_i].snippet) - 1] != '|')
        ck_abort_msg("%s", got);
    ck_assert_str_eq(got, snippets[_i].snippet);
}
END_TEST

START_TEST(a_snippet_is_short_whatever_the_text)
{
    size_t n = 200000;
    char *body = malloc(n + 1);
    for (int kind = 0; kind < 4; kind++) {
        memset(body, kind == 0 ? 'a' : ' ', n);
        for (size_t i = 0; kind == 2 && i + 2 <= n; i += 2) /* two bytes a letter, one word */
            memcpy(body + i, "\xc3\xa9", 2);
        memset(body + n, 0, 1);
        memcpy(body, kind == 3 ? "tea         " : "tea ", 4);
        memcpy(body + n - 5, " leaf", 5);
        sdb_put("n/a", body);
        if (kind == 0)
            sdb_add("n/");
        sdb_settle();
        const char *got = sdb_snippet("tea leaf");
        ck_assert_uint_lt(strlen(got), 450);
        ck_assert_msg(strstr(got, "|tea|") != NULL, "%d: %s", kind, got);
    }
    free(body);
}
END_TEST

/* ---- time ------------------------------------------------------------------------------------ */

START_TEST(a_search_ends_in_time)
{
    struct db_search_match m;
    struct db_search_ask ask = {.match = &m, .prefix = "n/", .prefix_len = 2, .limit = 100, .at_most_ms = 0};
    static struct sdb_found f;
    enum db_search_state state;
    sdb_put("n/a", "word");
    sdb_add("n/");
    struct db_reader *r = sdb_reader();
    ck_assert_int_eq(db_search_parse(r, "word", 4, &m), DB_OK);
    ck_assert_int_eq(db_search_look(r, "n/", 2, &state, &ask.collection), DB_OK);
    ck_assert_int_eq(db_search(r, &ask, sdb_take, &f), DB_TIMEOUT);
    ask.at_most_ms = 20000;
    ck_assert_int_eq(db_search(r, &ask, sdb_take, &f), DB_OK);
    ck_assert_str_eq(f.keys, "n/a");
    db_reader_close(r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("search");
    TCase *t = run_case(s, "search");
    temp_use(t);
    tcase_add_checked_fixture(t, sdb_open, sdb_close);
    tcase_add_loop_test(t, a_query_means, 0, COUNT(meanings));
    tcase_add_test(t, a_query_has_bounds);
    tcase_add_test(t, no_query_is_an_error_of_fts5);
    tcase_add_test(t, json_is_its_strings_and_numbers);
    tcase_add_test(t, other_types_are_not_indexed);
    tcase_add_test(t, broken_json_from_outside_is_skipped);
    tcase_add_test(t, what_is_larger_than_a_mebibyte_is_not_indexed);
    tcase_add_test(t, better_hits_come_first_and_ties_by_key);
    tcase_add_test(t, a_score_does_not_depend_on_other_documents);
    tcase_add_test(t, pages_cover_all_once);
    tcase_add_test(t, collections_do_not_see_each_other);
    tcase_add_test(t, everything_can_be_one_collection);
    tcase_add_loop_test(t, a_snippet_shows_where, 0, COUNT(snippets));
    tcase_add_test(t, a_snippet_is_short_whatever_the_text);
    tcase_add_test(t, a_search_ends_in_time);
    return run_suite(s);
}
