/* handlers/html: text in a page is text again for whoever reads it. */
#include "handlers/html.h"

#include <string.h>

#include "tests/unit/run.h"

static const struct {
    struct str text;
    const char *html;
} texts[] = {
    {STR_LIT(""), ""},
    {{NULL, 0}, ""},
    {STR_LIT("plain"), "plain"},
    {STR_LIT("<"), "&lt;"},
    {STR_LIT(">"), "&gt;"},
    {STR_LIT("&"), "&amp;"},
    {STR_LIT("\""), "&quot;"},
    {STR_LIT("'"), "&#39;"},
    {STR_LIT("&amp;"), "&amp;amp;"},
    {STR_LIT("<<<<<<<<<<"), "&lt;&lt;&lt;&lt;&lt;&lt;&lt;&lt;&lt;&lt;"},
    {STR_LIT("0123456789abcdef"), "0123456789abcdef"},
    {STR_LIT("<script>alert('x')</script>"), "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"},
    {STR_LIT("a \"quoted\" attribute"), "a &quot;quoted&quot; attribute"},
    {STR_LIT("\xc3\xa4\xe7\xb4\x99\xf0\x9f\x8d\xb5<"), "\xc3\xa4\xe7\xb4\x99\xf0\x9f\x8d\xb5&lt;"},
};

static void is(const struct buf *out, const char *html)
{
    ck_assert_uint_eq(out->len, strlen(html));
    ck_assert(out->len == 0 || memcmp(out->data, html, out->len) == 0);
}

START_TEST(text_is_escaped)
{
    struct buf out = {0};
    ck_assert(html_add(&out, texts[_i].text, 1000));
    is(&out, texts[_i].html);
    buf_free(&out);
}
END_TEST

START_TEST(both_ways_write_the_same)
{
    struct buf out = {0};
    struct json j = json_start(&out);
    html_text(&j, texts[_i].text);
    ck_assert(!j.failed);
    is(&out, texts[_i].html);
    buf_free(&out);
}
END_TEST

START_TEST(each_byte_at_each_place)
{
    for (int c = 0; c < 256; c++) {
        bool special = c != 0 && strchr("&<>\"'", c) != NULL;
        for (size_t at = 0; at < 20; at++) {
            char text[20];
            memset(text, 'x', sizeof text);
            text[at] = (char)c;
            ck_assert_uint_eq(html_plain((struct str){text, sizeof text}), special ? at : sizeof text);
        }
    }
}
END_TEST

START_TEST(neighbours_of_a_special_byte_are_plain)
{
    for (int c = 0; c < 256; c++) {
        char text[16];
        struct buf out = {0};
        memset(text, '&', sizeof text);
        text[7] = (char)c;
        bool special = c != 0 && strchr("&<>\"'", c) != NULL;
        ck_assert(html_add(&out, (struct str){text, sizeof text}, 1000));
        ck_assert_uint_eq(out.len, 15 * 5 + (special ? (c == '<' || c == '>' ? 4 : c == '"' ? 6 : 5) : 1));
        buf_free(&out);
    }
}
END_TEST

START_TEST(no_more_than_the_cap)
{
    for (size_t max = 0; max <= 12; max++) {
        struct buf out = {0};
        ck_assert_int_eq(html_add(&out, STR_LIT("ab<cd&"), max), false);
        ck_assert_uint_le(out.len, max);
        buf_free(&out);
    }
    struct buf out = {0};
    ck_assert(html_add(&out, STR_LIT("ab<cd&"), 13));
    is(&out, "ab&lt;cd&amp;");
    buf_free(&out);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("html");
    TCase *t = run_case(s, "text");
    tcase_add_loop_test(t, text_is_escaped, 0, COUNT(texts));
    tcase_add_loop_test(t, both_ways_write_the_same, 0, COUNT(texts));
    tcase_add_test(t, each_byte_at_each_place);
    tcase_add_test(t, neighbours_of_a_special_byte_are_plain);
    tcase_add_test(t, no_more_than_the_cap);
    return run_suite(s);
}
