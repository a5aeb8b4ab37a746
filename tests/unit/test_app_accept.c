/* handlers/app_accept: which form of an answer a client wants. */
#include "handlers/app_accept.h"

#include <string.h>

#include "tests/unit/run.h"

#define J APP_FORMAT_JSON
#define H APP_FORMAT_HTML
#define C APP_FORMAT_CSV
#define L APP_FORMAT_LINES

static const struct {
    const char *accept;
    enum app_format with_page, without;
} cases[] = {
    {"", J, J},
    {"*/*", J, J},
    {"application/json", J, J},
    {"text/html", H, J},
    {"TEXT/HTML", H, J},
    {"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", H, J},
    {"text/html, application/json", J, J},
    {"application/json;q=0.5, text/html", H, J},
    {"application/json, text/html;q=0.9", J, J},
    {"text/html;q=0", J, J},
    {"text/html;q=0.0, */*", J, J},
    {"text/html;level=1;q=0.7, application/json;q=0.701", J, J},
    {"text/html;q=0.702, application/json;q=0.701", H, J},
    {"text/csv", C, C},
    {"text/csv;q=0.5, application/json;q=0.4", C, C},
    {"application/x-ndjson", L, L},
    {"text/*", H, C},
    {"text/*;q=0.1, application/*;q=0.9", J, J},
    {"image/png", J, J},
    {"text/htmlx", J, J},
    {"text", J, J},
    {",,;;q=,=", J, J},
    {"text/html;q=nonsense", J, J},
    {"  text/html  ;  q=1.000  ", H, J},
};

START_TEST(the_one_that_is_wanted_most)
{
    struct str accept = {cases[_i].accept, strlen(cases[_i].accept)};
    ck_assert_int_eq(app_accept(accept, true), cases[_i].with_page);
    ck_assert_int_eq(app_accept(accept, false), cases[_i].without);
}
END_TEST

START_TEST(names)
{
    enum app_format format = APP_FORMAT_JSON;
    ck_assert(app_format_named(STR_LIT("csv"), &format) && format == APP_FORMAT_CSV);
    ck_assert(app_format_named(STR_LIT("ndjson"), &format) && format == APP_FORMAT_LINES);
    ck_assert(app_format_named(STR_LIT("html"), &format) && format == APP_FORMAT_HTML);
    ck_assert(app_format_named(STR_LIT("json"), &format) && format == APP_FORMAT_JSON);
    ck_assert(!app_format_named(STR_LIT(""), &format) && !app_format_named(STR_LIT("JSON"), &format));
    ck_assert(!app_format_named(STR_LIT("xml"), &format) && !app_format_named(STR_LIT("csvx"), &format));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("app_accept");
    TCase *t = run_case(s, "app_accept");
    tcase_add_loop_test(t, the_one_that_is_wanted_most, 0, COUNT(cases));
    tcase_add_test(t, names);
    return run_suite(s);
}
