/* handlers/json: what is written is JSON, whatever the text. SQLite, as a second opinion, reads it back. */
#include "handlers/json.h"

#include <sqlite3.h>
#include <string.h>

#include "tests/unit/run.h"

static struct buf out;

static void is_out(const char *expected)
{
    ck_assert_uint_eq(out.len, strlen(expected));
    ck_assert_mem_eq(out.data, expected, out.len);
}

START_TEST(parts_follow_each_other)
{
    struct json j = json_start(&out);
    json_raw(&j, "{\"a\":");
    json_u64(&j, 0);
    json_raw(&j, ",\"b\":");
    json_string(&j, STR_LIT("x"));
    json_raw(&j, ",\"c\":");
    json_etag(&j, 7);
    json_raw(&j, ",\"d\":");
    json_u64(&j, UINT64_MAX);
    json_raw(&j, "}");
    ck_assert(!j.failed);
    is_out("{\"a\":0,\"b\":\"x\",\"c\":\"\\\"7\\\"\",\"d\":18446744073709551615}");
    buf_free(&out);
}
END_TEST

START_TEST(starting_over_forgets)
{
    struct json j = json_start(&out);
    json_raw(&j, "some text");
    unsigned char *data = out.data;
    j = json_start(&out);
    json_raw(&j, "[]");
    is_out("[]");
    ck_assert_ptr_eq(out.data, data);
    buf_free(&out);
}
END_TEST

static const struct {
    struct str text;
    const char *json;
} strings[] = {
    {STR_LIT(""), "\"\""},
    {{NULL, 0}, "\"\""},
    {STR_LIT("plain"), "\"plain\""},
    {STR_LIT("\""), "\"\\\"\""},
    {STR_LIT("\\"), "\"\\\\\""},
    {STR_LIT("\\\""), "\"\\\\\\\"\""},
    {STR_LIT("a\"b\\c"), "\"a\\\"b\\\\c\""},
    {STR_LIT("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\""},
    {STR_LIT("\0"), "\"\\u0000\""},
    {STR_LIT("a\0b"), "\"a\\u0000b\""},
    {STR_LIT("\x01\x1f"), "\"\\u0001\\u001f\""},
    {STR_LIT("\x0b\x1b"), "\"\\u000b\\u001b\""},
    {STR_LIT("/"), "\"/\""},
    {STR_LIT("</script>"), "\"</script>\""},
    {STR_LIT("\x7f"), "\"\x7f\""},
    {STR_LIT("\xc3\xa9\xf0\x9f\x93\x9c"), "\"\xc3\xa9\xf0\x9f\x93\x9c\""},
    {STR_LIT("\xe2\x80\xa8"), "\"\xe2\x80\xa8\""},
    /* bytes that are no UTF-8 become U+FFFD, one for one; what is around them stays */
    {STR_LIT("\xff"), "\"\xef\xbf\xbd\""},
    {STR_LIT("\x80"), "\"\xef\xbf\xbd\""},
    {STR_LIT("a\xc3"), "\"a\xef\xbf\xbd\""},
    {STR_LIT("\xc3z"), "\"\xef\xbf\xbdz\""},
    {STR_LIT("\xc3\"\n\\"), "\"\xef\xbf\xbd\\\"\\n\\\\\""},
    {STR_LIT("\xe2\x82"), "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    {STR_LIT("\xe2\x82\xac\xe2"), "\"\xe2\x82\xac\xef\xbf\xbd\""},
    {STR_LIT("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {STR_LIT("\xc0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    {STR_LIT("\xf0\x9f\x93\xff\xf0\x9f\x93\x9c"),
     "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x93\x9c\""},
};

START_TEST(strings_are_escaped)
{
    struct json j = json_start(&out);
    json_string(&j, strings[_i].text);
    ck_assert(!j.failed);
    is_out(strings[_i].json);
    buf_free(&out);
}
END_TEST

/* Every ASCII byte before, behind and between others. */
START_TEST(another_reader_gets_the_same_text)
{
    sqlite3 *db;
    sqlite3_stmt *s;
    ck_assert_int_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT json_extract(?1, '$')", -1, &s, NULL), SQLITE_OK);
    for (unsigned c = 1; c < 128; c++) {
        char text[] = {(char)c, 'x', (char)c, (char)c, 0};
        struct json j = json_start(&out);
        json_string(&j, (struct str){text, 4});
        sqlite3_bind_text(s, 1, (char *)out.data, (int)out.len, SQLITE_STATIC);
        ck_assert_int_eq(sqlite3_step(s), SQLITE_ROW);
        ck_assert_str_eq((const char *)sqlite3_column_text(s, 0), text);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    sqlite3_close(db);
    buf_free(&out);
}
END_TEST

/* Strings are looked at in words: every character at every place of some of them, alone and after another. */
START_TEST(escapes_within_longer_text)
{
    char text[40], one[64];
    for (unsigned c = 0; c < 128; c++) {
        struct json j = json_start(&out);
        json_string(&j, (struct str){(char[]){(char)c}, 1});
        size_t one_len = out.len - 2; /* what strings_are_escaped has judged */
        memcpy(one, out.data + 1, one_len);
        for (size_t n = 1; n <= sizeof text; n++)
            for (size_t i = 0; i < n; i++) {
                memset(text, 'a', n);
                text[i] = (char)c;
                j = json_start(&out);
                json_string(&j, (struct str){text, n});
                ck_assert_uint_eq(out.len, n + 1 + one_len);
                ck_assert(out.data[0] == '"' && out.data[out.len - 1] == '"');
                ck_assert_mem_eq(out.data + 1, text, i);
                ck_assert_mem_eq(out.data + 1 + i, one, one_len);
                ck_assert_mem_eq(out.data + 1 + i + one_len, text + i + 1, n - i - 1);
            }
    }
    buf_free(&out);
}
END_TEST

START_TEST(a_failure_stays)
{
    static char big[1 << 20];
    memset(big, 'a', sizeof big);
    struct json j = json_start(&out);
    for (int i = 0; i < 100; i++)
        json_string(&j, (struct str){big, sizeof big});
    ck_assert(j.failed);
    ck_assert_uint_le(out.len, 64 << 20);
    size_t before = out.len;
    json_u64(&j, 7);
    json_etag(&j, 7);
    json_raw(&j, "x");
    json_string(&j, STR_LIT("x"));
    ck_assert(j.failed);
    ck_assert_uint_eq(out.len, before);
    buf_free(&out);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("json");
    TCase *t = run_case(s, "json");
    tcase_add_test(t, parts_follow_each_other);
    tcase_add_test(t, starting_over_forgets);
    tcase_add_loop_test(t, strings_are_escaped, 0, COUNT(strings));
    tcase_add_test(t, another_reader_gets_the_same_text);
    tcase_add_test(t, escapes_within_longer_text);
    tcase_add_test(t, a_failure_stays);
    return run_suite(s);
}
