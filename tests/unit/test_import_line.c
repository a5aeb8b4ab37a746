/* handlers/import_line: what a line says, however it is spelled and cut; and every fault is one. */
#include "handlers/import_line.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

static struct import_line line;

/* Reads text in pieces of that size up to the first line's end, a fault, or the end of the text. */
static enum import_result read_by(const char *text, size_t n, size_t piece)
{
    enum import_result result = IMPORT_MORE;
    import_line_free(&line);
    import_line_init(&line, 1000);
    for (size_t at = 0; at < n && result == IMPORT_MORE;) {
        size_t used = 0, take = n - at < piece ? n - at : piece;
        result = import_line_feed(&line, (const unsigned char *)text + at, take, &used);
        ck_assert_uint_le(used, take);
        at += used;
    }
    return result == IMPORT_MORE ? import_line_finish(&line) : result;
}

static bool is(const struct buf *b, const char *text, size_t n)
{
    return b->len == n && (n == 0 || memcmp(b->data, text, n) == 0);
}

/* Good lines, and the document that each is. */
static const struct {
    const char *line, *key, *type, *body;
    size_t size;
} good[] = {
    {"{\"key\":\"a\",\"type\":\"text/plain\",\"text\":\"hello\"}\n", "a", "text/plain", "hello", 5},
    {"{\"key\":\"a/b\",\"text\":\"\"}", "a/b", "application/octet-stream", "", 0},
    {" { \"text\" : \"x\" , \"key\" : \"a\" } \r\n", "a", "application/octet-stream", "x", 1},
    {"{\"key\":\"\\u00e9\\/\\ud83d\\ude00\",\"text\":\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\"}", "é/😀", "application/octet-stream",
     "\"\\\b\f\n\r\t\0", 8},
    {"{\"key\":\"é\",\"text\":\"é\"}", "é", "application/octet-stream", "é", 2},
    {"{\"key\":\"a\",\"base64\":\"AP8Q\"}", "a", "application/octet-stream", "\0\xff\x10", 3},
    {"{\"key\":\"a\",\"base64\":\"AA==\"}", "a", "application/octet-stream", "\0", 1},
    {"{\"key\":\"a\",\"base64\":\"AAE=\"}", "a", "application/octet-stream", "\0\1", 2},
    {"{\"key\":\"a\",\"base64\":\"\\/+AA\"}", "a", "application/octet-stream", "\xff\xe0\0", 3},
    {"{\"key\":\"a\",\"base64\":\"\"}", "a", "application/octet-stream", "", 0},
    {"{\"k\\u0065y\":\"a\",\"text\":\"x\"}", "a", "application/octet-stream", "x", 1},
    {"{\"key\":\"a\",\"size\":3,\"text\":\"abc\"}", "a", "application/octet-stream", "abc", 3},
    {"{\"text\":\"abc\",\"size\":3,\"key\":\"a\"}", "a", "application/octet-stream", "abc", 3},
    {"{\"key\":\"a\",\"etag\":\"\\\"7\\\"\",\"seq\":7,\"x\":null,\"y\":true,\"z\":-1.5e-3,\"text\":\"x\"}", "a",
     "application/octet-stream", "x", 1},
    {"{\"key\":\"a\",\"a member whose name is very, very long indeed\":\"and its value is long as well, longer than any\","
     "\"text\":\"x\"}", "a", "application/octet-stream", "x", 1},
    {"{\"x\":1,\"x\":2,\"key\":\"a\",\"text\":\"x\"}", "a", "application/octet-stream", "x", 1},
};

START_TEST(a_good_line)
{
    for (size_t piece = 1; piece <= 40; piece += piece < 9 ? 1 : 31) {
        enum import_result result = read_by(good[_i].line, strlen(good[_i].line), piece);
        ck_assert_msg(result == IMPORT_LINE, "%s: %s", good[_i].line, line.fault);
        ck_assert_int_eq(line.kind, IMPORT_DOCUMENT);
        ck_assert_msg(is(&line.key, good[_i].key, strlen(good[_i].key)), "%s", good[_i].line);
        ck_assert_msg(is(&line.type, good[_i].type, strlen(good[_i].type)), "%s", good[_i].line);
        ck_assert_msg(is(&line.body, good[_i].body, good[_i].size), "%s", good[_i].line);
    }
}
END_TEST

static const struct {
    const char *line, *why;
} bad[] = {
    {"[]", "object"}, {"x", "object"}, {"\"key\"", "object"}, {"{", "too early"}, {"{\"key\"", "too early"},
    {"{\"key\":\"a\",\"text\":\"x", "too early"}, {"{\"key\":\"a\",\"text\":\"x\"", "too early"},
    {"{\"key\":\"a\",\"text\":\"x\"}}", "behind"}, {"{\"key\":\"a\",\"text\":\"x\"} {}", "behind"},
    {"{\"key\":\"a\",}", "JSON"}, {"{,}", "JSON"}, {"{\"key\" \"a\"}", "JSON"}, {"{\"key\":\"a\" \"text\":\"x\"}", "JSON"},
    {"{key:\"a\"}", "JSON"}, {"{\"x\":nul,\"key\":\"a\",\"text\":\"\"}", "JSON"}, {"{\"x\":'a'}", "JSON"},
    {"{}", "key"}, {"{\"text\":\"x\"}", "key"}, {"{\"key\":\"a\"}", "one of"},
    {"{\"key\":\"a\",\"text\":\"x\",\"base64\":\"\"}", "one of"},
    {"{\"key\":\"a\",\"key\":\"b\",\"text\":\"x\"}", "twice"}, {"{\"text\":\"a\",\"text\":\"b\"}", "twice"},
    {"{\"key\":\"\",\"text\":\"x\"}", "key"}, {"{\"key\":\"/a\",\"text\":\"x\"}", "key"},
    {"{\"key\":\"a/\",\"text\":\"x\"}", "key"},
    {"{\"key\":\"a//b\",\"text\":\"x\"}", "key"}, {"{\"key\":\"a/../b\",\"text\":\"x\"}", "key"},
    {"{\"key\":\".\",\"text\":\"x\"}", "key"}, {"{\"key\":\"a\\\\b\",\"text\":\"x\"}", "key"},
    {"{\"key\":\"a\\u0000\",\"text\":\"x\"}", "key"}, {"{\"key\":\"a\\n\",\"text\":\"x\"}", "key"},
    {"{\"key\":\"\xff\",\"text\":\"x\"}", "key"}, {"{\"key\":\"\xed\xa0\x80\",\"text\":\"x\"}", "key"},
    {"{\"key\":\"a\",\"text\":\"\xff\"}", "UTF-8"}, {"{\"key\":\"a\",\"text\":\"\xc3\"}", "UTF-8"},
    {"{\"key\":\"a\",\"text\":\"\t\"}", "control"}, {"{\"key\":\"a\",\"text\":\"\\x\"}", "JSON"},
    {"{\"key\":\"a\",\"text\":\"\\u12\"}", "JSON"}, {"{\"key\":\"a\",\"text\":\"\\u12g4\"}", "JSON"},
    {"{\"key\":\"a\",\"text\":\"\\ud83d\"}", "surrogate"}, {"{\"key\":\"a\",\"text\":\"\\ude00\"}", "surrogate"},
    {"{\"key\":\"a\",\"text\":\"\\ud83d\\u0041\"}", "surrogate"}, {"{\"key\":\"a\",\"text\":\"\\ud83dx\"}", "surrogate"},
    {"{\"key\":\"a\",\"text\":\"\\ud83d\\n\"}", "surrogate"},
    {"{\"key\":\"a\",\"base64\":\"A\"}", "base64"}, {"{\"key\":\"a\",\"base64\":\"AAA\"}", "base64"},
    {"{\"key\":\"a\",\"base64\":\"A===\"}", "base64"}, {"{\"key\":\"a\",\"base64\":\"AAA=AAAA\"}", "base64"},
    {"{\"key\":\"a\",\"base64\":\"AA=A\"}", "base64"}, {"{\"key\":\"a\",\"base64\":\"AB==\"}", "canonical"},
    {"{\"key\":\"a\",\"base64\":\"AAB=\"}", "canonical"}, {"{\"key\":\"a\",\"base64\":\"AA-_\"}", "base64"},
    {"{\"key\":\"a\",\"base64\":\"AA AA\"}", "base64"}, {"{\"key\":\"a\",\"base64\":\"====\"}", "base64"},
    {"{\"key\":\"a\",\"size\":2,\"text\":\"x\"}", "size"}, {"{\"key\":\"a\",\"size\":0,\"text\":\"x\"}", "size"},
    {"{\"key\":\"a\",\"size\":-1,\"text\":\"x\"}", "value"}, {"{\"key\":\"a\",\"size\":1.0,\"text\":\"x\"}", "value"},
    {"{\"key\":\"a\",\"size\":\"1\",\"text\":\"x\"}", "value"}, {"{\"key\":\"a\",\"size\":null,\"text\":\"x\"}", "value"},
    {"{\"key\":\"a\",\"size\":99999999999999999999999999999999999999,\"text\":\"x\"}", "value"},
    {"{\"key\":7,\"text\":\"x\"}", "value"}, {"{\"key\":null,\"text\":\"x\"}", "value"}, {"{\"key\":\"a\",\"text\":7}", "value"},
    {"{\"key\":\"a\",\"text\":[\"x\"]}", "array"}, {"{\"key\":\"a\",\"x\":{},\"text\":\"x\"}", "object"},
    {"{\"key\":\"a\",\"type\":\"\",\"text\":\"x\"}", "type"}, {"{\"key\":\"a\",\"type\":\"t\\n\",\"text\":\"x\"}", "type"},
    {"{\"key\":\"a\",\"type\":\"é\",\"text\":\"x\"}", "type"},
    {"{\"key\":\"a\",\"modified\":253402300800,\"text\":\"x\"}", "9999"}, {"{\"hanji\":\"export\",\"version\":2}", "version"},
    {"{\"hanji\":\"export\"}", "missing"}, {"{\"hanji\":\"end\"}", "missing"}, {"{\"hanji\":\"song\"}", "not known"},
    {"{\"hanji\":1}", "value"},
};

START_TEST(a_bad_line)
{
    for (size_t piece = 1; piece <= 100; piece += 33) {
        enum import_result result = read_by(bad[_i].line, strlen(bad[_i].line), piece);
        ck_assert_msg(result == IMPORT_FAULT, "%s", bad[_i].line);
        ck_assert_msg(strstr(line.fault, bad[_i].why) != NULL, "%s: %s", bad[_i].line, line.fault);
    }
}
END_TEST

START_TEST(headers_ends_and_blanks)
{
    static const char header[] = "{\"hanji\":\"export\",\"version\":1,\"seq\":7}\n";
    static const char end[] = "{\"hanji\":\"end\",\"documents\":12}";
    ck_assert_int_eq(read_by(header, strlen(header), 7), IMPORT_LINE);
    ck_assert_int_eq(line.kind, IMPORT_HEADER);
    ck_assert_int_eq(read_by(end, strlen(end), 7), IMPORT_LINE);
    ck_assert_int_eq(line.kind, IMPORT_END);
    ck_assert_uint_eq(line.documents, 12);
    ck_assert_int_eq(read_by(" \r\n", 3, 1), IMPORT_LINE);
    ck_assert_int_eq(line.kind, IMPORT_BLANK);
    ck_assert_int_eq(read_by("", 0, 1), IMPORT_MORE);
    ck_assert_int_eq(read_by("  ", 2, 1), IMPORT_MORE);
}
END_TEST

START_TEST(the_time)
{
    static const char with[] = "{\"key\":\"a\",\"modified\":253402300799,\"text\":\"\"}";
    static const char without[] = "{\"key\":\"a\",\"text\":\"\"}";
    ck_assert_int_eq(read_by(with, strlen(with), 9), IMPORT_LINE);
    ck_assert(line.has_modified);
    ck_assert_int_eq(line.modified, 253402300799);
    ck_assert_int_eq(read_by(without, strlen(without), 9), IMPORT_LINE);
    ck_assert(!line.has_modified);
}
END_TEST

/* Nothing of a line is left in the next. */
START_TEST(lines_follow_each_other)
{
    static const char text[] = "{\"key\":\"a\",\"type\":\"x/y\",\"modified\":5,\"size\":1,\"text\":\"1\"}\n\n"
                               "{\"key\":\"b\",\"text\":\"22\"}\n";
    size_t used = 0, at = 0;
    import_line_init(&line, 1000);
    ck_assert_int_eq(import_line_feed(&line, (const unsigned char *)text, strlen(text), &used), IMPORT_LINE);
    at = used;
    ck_assert_int_eq(import_line_feed(&line, (const unsigned char *)text + at, strlen(text) - at, &used), IMPORT_LINE);
    ck_assert_int_eq(line.kind, IMPORT_BLANK);
    at += used;
    ck_assert_int_eq(import_line_feed(&line, (const unsigned char *)text + at, strlen(text) - at, &used), IMPORT_LINE);
    ck_assert(is(&line.key, "b", 1) && is(&line.type, "application/octet-stream", 24) && is(&line.body, "22", 2));
    ck_assert(!line.has_modified);
    ck_assert_int_eq(import_line_finish(&line), IMPORT_MORE);
}
END_TEST

START_TEST(bodies_up_to_the_bound)
{
    char text[3000];
    for (int size = 999; size <= 1001; size++) {
        int n = snprintf(text, sizeof text, "{\"key\":\"a\",\"text\":\"%0*d\"}", size, 0);
        ck_assert_int_eq(read_by(text, (size_t)n, 100), size <= 1000 ? IMPORT_LINE : IMPORT_FAULT);
        n = snprintf(text, sizeof text, "{\"key\":\"%0*d\",\"text\":\"\"}", size - 488, 0);
        ck_assert_int_eq(read_by(text, (size_t)n, 100), size <= 1000 ? IMPORT_LINE : IMPORT_FAULT);
    }
    memset(text, 'A', sizeof text);
    memcpy(text, "{\"key\":\"a\",\"base64\":\"", 21);
    memcpy(text + 21 + 1336, "\"}", 3); /* 1002 bytes */
    ck_assert_int_eq(read_by(text, strlen(text), 5000), IMPORT_FAULT);
    ck_assert_ptr_nonnull(strstr(line.fault, "large"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("import_line");
    TCase *t = run_case(s, "import_line");
    tcase_add_loop_test(t, a_good_line, 0, COUNT(good));
    tcase_add_loop_test(t, a_bad_line, 0, COUNT(bad));
    tcase_add_test(t, headers_ends_and_blanks);
    tcase_add_test(t, the_time);
    tcase_add_test(t, lines_follow_each_other);
    tcase_add_test(t, bodies_up_to_the_bound);
    return run_suite(s);
}
