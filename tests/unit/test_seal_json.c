/* seal/json: exactly the shape that was asked for is read, and nothing behind the text is looked at. */
#include "seal/json.h"

#include <string.h>

#include "tests/unit/run.h"

static int64_t number;
static struct seal_text text;
static unsigned char bytes[64];
static uint32_t seen;
static unsigned items;

static bool take(void *arg, unsigned i, struct seal_json *j)
{
    (void)arg;
    items++;
    return i == 0 ? seal_json_number(j, &number) : i == 1 ? seal_json_text(j, &text) : seal_json_bytes(j, bytes, 3);
}

static bool take_number(void *arg, unsigned i, struct seal_json *j)
{
    (void)arg, (void)i;
    items++;
    return seal_json_number(j, &number);
}

static bool read_object(const char *s)
{
    static const char *const names[] = {"n", "t", "b", NULL};
    struct seal_json_shape shape = {names, 1u << 2, take, NULL};
    size_t n = strlen(s);
    char *copy = malloc(n > 0 ? n : 1); /* no NUL: reading behind its end is noticed */
    memcpy(copy, s, n);
    struct seal_json j = {copy, copy + n};
    items = 0;
    bool ok = seal_json_object(&j, &shape, &seen) && seal_json_end(&j);
    ck_assert(j.p >= copy && j.p <= j.end);
    free(copy);
    return ok;
}

static bool read_array(const char *s)
{
    struct seal_json j = {s, s + strlen(s)};
    items = 0;
    return seal_json_array(&j, 3, take_number, NULL) && seal_json_end(&j);
}

static const char *const right[] = {
    "{\"n\":1,\"t\":\"a\",\"b\":\"YWJj\"}",
    "{\"b\":\"YWJj\",\"t\":\"a\",\"n\":1}",
    " { \"n\" : 1 , \"t\" : \"a\" } \r\n\t",
    "{\"n\":0,\"t\":\"\"}",
    "{\"n\":9007199254740991,\"t\":\"\xc3\xa9 [{,:}]\"}",
    "{\"n\":1,\"t\":\"a\",\"b\":\"\\/\\/\\/\\/\"}",
};

START_TEST(what_is_of_the_shape)
{
    ck_assert(read_object(right[_i]));
}
END_TEST

START_TEST(values_and_what_was_there)
{
    ck_assert(read_object("{\"n\":42,\"t\":\"a\"}"));
    ck_assert_int_eq(number, 42);
    ck_assert_uint_eq(seen, 3);
    ck_assert(read_object("{\"n\":42,\"t\":\"a\",\"b\":\"YWJj\"}"));
    ck_assert_mem_eq(bytes, "abc", 3);
    ck_assert_uint_eq(seen, 7);
}
END_TEST

static const char *const wrong[] = {
    "",
    " ",
    "{",
    "}",
    "{}",
    "[]",
    "{\"n\":1}",
    "{\"t\":\"a\"}",
    "{\"n\":1,\"t\":\"a\"",
    "{\"n\":1,\"t\":\"a\",}",
    "{,\"n\":1,\"t\":\"a\"}",
    "{\"n\":1 \"t\":\"a\"}",
    "{\"n\":1,,\"t\":\"a\"}",
    "{\"n\":1,\"t\":\"a\"}x",
    "{\"n\":1,\"t\":\"a\"}}",
    "{\"n\":1,\"n\":1,\"t\":\"a\"}",
    "{\"n\":1,\"t\":\"a\",\"x\":1}",
    "{\"N\":1,\"t\":\"a\"}",
    "{\"n \":1,\"t\":\"a\"}",
    "{\"\":1,\"t\":\"a\"}",
    "{n:1,\"t\":\"a\"}",
    "{\"\\u006e\":1,\"t\":\"a\"}",
    "{\"n\":01,\"t\":\"a\"}",
    "{\"n\":-1,\"t\":\"a\"}",
    "{\"n\":+1,\"t\":\"a\"}",
    "{\"n\":1.0,\"t\":\"a\"}",
    "{\"n\":1e1,\"t\":\"a\"}",
    "{\"n\":0x1,\"t\":\"a\"}",
    "{\"n\":,\"t\":\"a\"}",
    "{\"n\":\"1\",\"t\":\"a\"}",
    "{\"n\":true,\"t\":\"a\"}",
    "{\"n\":9007199254740992,\"t\":\"a\"}",
    "{\"n\":99999999999999999,\"t\":\"a\"}",
    "{\"n\":1,\"t\":\"a\n\"}",
    "{\"n\":1,\"t\":\"a\n",
    "{\"n\":1,\"t\":\"\n\"}",
    "{\"n\":1,\"t\":\"a\\n\"}",
    "{\"n\":1,\"t\":\"a",
    "{\"n\":1,\"t\":'a'}",
    "{\"n\":1,\"t\":null}",
    "{\"n\":1,\"t\":\"a\",\"b\":\"\"}",
    "{\"n\":1,\"t\":\"a\",\"b\":\"YWJ\"}",
    "{\"n\":1,\"t\":\"a\",\"b\":\"YWJjYWJj\"}",
    "{\"n\":1,\"t\":\"a\",\"b\":\"YWJj ",
    "{\"n\":1,\"t\":\"a\",\"b\":\"YWI=\"}",
    "{\"n\":1,\"t\":\"a\",\"b\":\"YW-_\"}",
    "{\"n\":1,\"t\":\"a\",\"b\":\"YWJ\\",
    "{\"n\":1,\"t\":\"a\",\"b\":\"YWJ\\u006a\"}",
    "{\"n\":1,\"t\":\"a\",\"b\":\"Y W J j\"}",
};

START_TEST(what_is_not)
{
    ck_assert(!read_object(wrong[_i]));
}
END_TEST

START_TEST(arrays_of_up_to_so_many)
{
    static const char *const good[] = {"[]", "[ ]", "[1]", "[1,2]", " [ 1 , 2 , 3 ] "};
    static const char *const bad[] = {"", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1,2,3,4]", "[[1]]", "{}",
                                     "[1]]", "[1}"};
    for (unsigned i = 0; i < COUNT(good); i++) {
        ck_assert_msg(read_array(good[i]), "%s", good[i]);
        ck_assert_uint_eq(items, i < 2 ? 0 : i - 1);
    }
    for (unsigned i = 0; i < COUNT(bad); i++)
        ck_assert_msg(!read_array(bad[i]), "%s", bad[i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("seal json");
    TCase *t = run_case(s, "json");
    tcase_add_loop_test(t, what_is_of_the_shape, 0, COUNT(right));
    tcase_add_test(t, values_and_what_was_there);
    tcase_add_loop_test(t, what_is_not, 0, COUNT(wrong));
    tcase_add_test(t, arrays_of_up_to_so_many);
    return run_suite(s);
}
