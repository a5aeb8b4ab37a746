/* handlers/multipart: the parts of a body, and what is none. */
#include "handlers/multipart.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

#define TYPE "multipart/form-data; boundary=XX"
#define TEXT(s) ((struct str){(s), sizeof(s) - 1})

static struct multipart m;
static struct multipart_part part;

static bool is(struct str s, const char *text)
{
    return s.n == strlen(text) && (s.n == 0 || memcmp(s.p, text, s.n) == 0);
}

static void begin(const char *body)
{
    ck_assert(multipart_start(&m, TEXT(TYPE), (struct str){body, strlen(body)}));
}

static void take(const char *name, const char *body)
{
    ck_assert_int_eq(multipart_next(&m, &part), MULTIPART_PART);
    ck_assert(is(part.name, name));
    ck_assert(is(part.body, body));
}

#define HEAD(name) "--XX\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n"

START_TEST(one_part)
{
    begin(HEAD("a") "hello\r\n--XX--\r\n");
    take("a", "hello");
    ck_assert_ptr_null(part.file_name.p);
    ck_assert_ptr_null(part.type.p);
    ck_assert_int_eq(multipart_next(&m, &part), MULTIPART_END);
}
END_TEST

START_TEST(several_parts_in_order)
{
    begin(HEAD("a") "1\r\n" HEAD("b") "2\r\n" HEAD("a") "3\r\n--XX--");
    take("a", "1");
    take("b", "2");
    take("a", "3");
    ck_assert_int_eq(multipart_next(&m, &part), MULTIPART_END);
}
END_TEST

START_TEST(a_file_has_a_name_and_a_type)
{
    begin("--XX\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"a b.png\"\r\n"
          "Content-Type: image/png\r\n\r\n\x89PNG\r\n--XX--");
    take("photo", "\x89PNG");
    ck_assert(is(part.file_name, "a b.png"));
    ck_assert(is(part.type, "image/png"));
}
END_TEST

START_TEST(empty_bodies)
{
    begin(HEAD("a") "\r\n" HEAD("b") "--XX--");
    take("a", "");
    take("b", "");
    ck_assert_int_eq(multipart_next(&m, &part), MULTIPART_END);
}
END_TEST

START_TEST(what_stands_before_and_behind_is_nothing)
{
    begin("a preamble\r\n" HEAD("a") "1\r\n--XX--\r\nan epilogue\r\n" HEAD("b") "2");
    take("a", "1");
    ck_assert_int_eq(multipart_next(&m, &part), MULTIPART_END);
}
END_TEST

START_TEST(line_breaks_and_boundaries_without_one_are_content)
{
    begin(HEAD("a") "one\r\n\r\ntwo --XX\r\n-XX\n--XX \r\n--XX--");
    take("a", "one\r\n\r\ntwo --XX\r\n-XX\n--XX ");
}
END_TEST

START_TEST(blanks_behind_a_boundary)
{
    begin("--XX \t \r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--XX--");
    take("a", "1");
}
END_TEST

static const char *const spellings[] = {
    "CONTENT-DISPOSITION: FORM-DATA; NAME=\"a\"",
    "content-disposition:form-data;name=\"a\"",
    "Content-Disposition: form-data ; name = \"a\" ",
    "Content-Disposition: form-data; name=a",
    "X: y\r\nContent-Disposition: form-data; other=\"x;y\"; name=\"a\"",
    "Content-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: 8BIT",
};

START_TEST(spellings_of_a_head)
{
    char body[300];
    snprintf(body, sizeof body, "--XX\r\n%s\r\n\r\n1\r\n--XX--", spellings[_i]);
    begin(body);
    take("a", "1");
}
END_TEST

static const char *const wrong_heads[] = {
    "",
    "Content-Disposition: form-data",
    "Content-Disposition: attachment; name=\"a\"",
    "Content-Disposition: form-data; name=\"a",
    "Content-Disposition: form-data; name=\"a\\\"",
    "Content-Disposition: form-data; name=\"a\"; name=\"b\"",
    "Content-Disposition: form-data; name=\"a\" filename=\"b\"",
    "Content-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; name=\"a\"",
    "Content-Disposition: form-data; name=\"a\"\r\nContent-Type: a/b\r\nContent-Type: a/b",
    "Content-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: base64",
    "Content-Disposition: form-data; name=\"a\001\"",
    "no colon\r\nContent-Disposition: form-data; name=\"a\"",
    "Content-Type: text/plain",
};

START_TEST(heads_that_are_none)
{
    char body[300];
    snprintf(body, sizeof body, "--XX\r\n%s\r\n\r\n1\r\n--XX--", wrong_heads[_i]);
    begin(body);
    ck_assert_int_eq(multipart_next(&m, &part), MULTIPART_BAD);
}
END_TEST

START_TEST(a_head_that_is_too_long)
{
    static char body[MULTIPART_HEAD_MAX + 200];
    int n = sprintf(body, "--XX\r\nX: ");
    memset(body + n, 'x', MULTIPART_HEAD_MAX);
    strcpy(body + n + MULTIPART_HEAD_MAX, "\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--XX--");
    begin(body);
    ck_assert_int_eq(multipart_next(&m, &part), MULTIPART_BAD);
}
END_TEST

static const char *const cut[] = {
    "--XX", "--XX\r", "--XX\r\n", "--XX\r\nContent-Disposition: form-data; name=\"a\"",
    HEAD("a"), HEAD("a") "1", HEAD("a") "1\r\n--X", "--XXY\r\n\r\n",
};

START_TEST(an_end_that_comes_too_early)
{
    begin(cut[_i]);
    ck_assert_int_eq(multipart_next(&m, &part), MULTIPART_BAD);
}
END_TEST

static const struct {
    struct str type, body;
} no_start[] = {
    {TEXT("multipart/form-data"), TEXT("--XX--")},
    {TEXT("multipart/form-data; boundary="), TEXT("--XX--")},
    {TEXT("multipart/form-data; boundary=\"\""), TEXT("--XX--")},
    {TEXT("multipart/form-data; boundary=\"XX"), TEXT("--XX--")},
    {TEXT("multipart/form-data; boundary=\"XX \""), TEXT("--XX --")},
    {TEXT("multipart/form-data; boundary=aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggghh"),
     TEXT("--XX--")},
    {TEXT(TYPE), TEXT("")},
    {TEXT(TYPE), TEXT("-")},
    {TEXT(TYPE), TEXT("--X")},
    {TEXT(TYPE), TEXT("x--XX--")},
    {TEXT(TYPE), TEXT("x\n--XX--")},
    {TEXT(""), TEXT("--XX--")},
};

START_TEST(bodies_that_do_not_begin)
{
    ck_assert(!multipart_start(&m, no_start[_i].type, no_start[_i].body));
}
END_TEST

static const char *const boundaries[] = {
    "multipart/form-data;boundary=XX", "Multipart/Form-Data; Boundary=\"XX\"",
    "multipart/form-data; charset=utf-8; boundary=XX; more=yes", "multipart/form-data ; boundary = XX",
};

START_TEST(spellings_of_a_boundary)
{
    struct str type = {boundaries[_i], strlen(boundaries[_i])};
    ck_assert(multipart_start(&m, type, TEXT(HEAD("a") "1\r\n--XX--")));
    take("a", "1");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("multipart");
    TCase *t = run_case(s, "multipart");
    tcase_add_test(t, one_part);
    tcase_add_test(t, several_parts_in_order);
    tcase_add_test(t, a_file_has_a_name_and_a_type);
    tcase_add_test(t, empty_bodies);
    tcase_add_test(t, what_stands_before_and_behind_is_nothing);
    tcase_add_test(t, line_breaks_and_boundaries_without_one_are_content);
    tcase_add_test(t, blanks_behind_a_boundary);
    tcase_add_loop_test(t, spellings_of_a_head, 0, COUNT(spellings));
    tcase_add_loop_test(t, heads_that_are_none, 0, COUNT(wrong_heads));
    tcase_add_test(t, a_head_that_is_too_long);
    tcase_add_loop_test(t, an_end_that_comes_too_early, 0, COUNT(cut));
    tcase_add_loop_test(t, bodies_that_do_not_begin, 0, COUNT(no_start));
    tcase_add_loop_test(t, spellings_of_a_boundary, 0, COUNT(boundaries));
    return run_suite(s);
}
