/* fcgi/buf: growth, its cap, and slices of text. */
#include "fcgi/buf.h"

#include <stdint.h>
#include <string.h>

#include "tests/unit/run.h"

START_TEST(zeroes_are_an_empty_buffer)
{
    struct buf b = {0};
    ck_assert(buf_reserve(&b, 0, 0));
    ck_assert(buf_add(&b, NULL, 0, 100));
    ck_assert_uint_eq(b.len, 0);
    buf_free(&b);
}
END_TEST

START_TEST(bytes_are_appended_in_order)
{
    struct buf b = {0};
    ck_assert(buf_add(&b, "one", 3, 100));
    ck_assert(buf_add(&b, "\0two", 4, 100));
    ck_assert_uint_eq(b.len, 7);
    ck_assert_mem_eq(b.data, "one\0two", 7);
    buf_free(&b);
}
END_TEST

START_TEST(reserve_does_not_change_the_length)
{
    struct buf b = {0};
    ck_assert(buf_add(&b, "x", 1, 10000));
    ck_assert(buf_reserve(&b, 5000, 10000));
    ck_assert_uint_eq(b.len, 1);
    ck_assert_uint_ge(b.cap, 5001);
    ck_assert_int_eq(b.data[0], 'x');
    buf_free(&b);
}
END_TEST

START_TEST(growth_doubles)
{
    struct buf b = {0};
    unsigned grown = 0;
    for (size_t i = 0, cap = 0; i < 1000000; i++) {
        unsigned char c = (unsigned char)(i * 7);
        if (!buf_add(&b, &c, 1, 1 << 20) || b.len != i + 1 || b.len > b.cap)
            ck_abort_msg("after %zu bytes", i);
        grown += b.cap != cap;
        cap = b.cap;
    }
    ck_assert_uint_le(grown, 20);
    for (size_t i = 0; i < 1000000; i += 9973)
        ck_assert_uint_eq(b.data[i], (unsigned char)(i * 7));
    buf_free(&b);
}
END_TEST

START_TEST(it_fills_to_the_cap_and_not_beyond)
{
    static const size_t caps[] = {512, 513, 1000, 4096, 65528, 65560};
    struct buf b = {0};
    size_t max = caps[_i];
    for (size_t i = 0; i < max; i++)
        if (!buf_add(&b, "x", 1, max))
            ck_abort_msg("after %zu bytes", i);
    ck_assert_uint_eq(b.len, max);
    ck_assert_uint_le(b.cap, max);
    ck_assert(!buf_add(&b, "y", 1, max));
    ck_assert_uint_eq(b.len, max);
    buf_free(&b);
}
END_TEST

START_TEST(a_refused_growth_changes_nothing)
{
    struct buf b = {0};
    ck_assert(buf_add(&b, "abc", 3, 600));
    unsigned char *data = b.data;
    size_t cap = b.cap;
    ck_assert(!buf_add(&b, "unused", 600, 600));
    ck_assert(!buf_reserve(&b, 601, 600));
    ck_assert_ptr_eq(b.data, data);
    ck_assert_uint_eq(b.cap, cap);
    ck_assert_uint_eq(b.len, 3);
    ck_assert_mem_eq(b.data, "abc", 3);
    buf_free(&b);
}
END_TEST

START_TEST(sizes_that_would_wrap_are_refused)
{
    struct buf b = {0};
    ck_assert(buf_add(&b, "abcdefgh", 8, 600));
    ck_assert(!buf_reserve(&b, SIZE_MAX, SIZE_MAX));
    ck_assert(!buf_reserve(&b, SIZE_MAX - 7, SIZE_MAX));
    ck_assert(!buf_reserve(&b, SIZE_MAX, 600));
    ck_assert_uint_eq(b.len, 8);
    buf_free(&b);
}
END_TEST

/* "False when that would pass max_bytes": also when the cap is less than the first allocation … */
START_TEST(a_small_cap_holds)
{
    struct buf b = {0};
    char text[200] = "";
    ck_assert(buf_add(&b, text, 10, 100));
    ck_assert(buf_add(&b, text, 90, 100));
    ck_assert(!buf_add(&b, text, 1, 100));
    buf_free(&b);
}
END_TEST

/* … and when an earlier caller was allowed more. */
START_TEST(the_cap_of_this_call_counts)
{
    struct buf b = {0};
    char text[2000] = "";
    ck_assert(buf_add(&b, text, sizeof text, 4096));
    b.len = 0;
    ck_assert(buf_add(&b, text, 600, 600));
    ck_assert(!buf_add(&b, text, 1, 600));
    ck_assert_uint_eq(b.len, 600);
    buf_free(&b);
}
END_TEST

START_TEST(memory_that_is_not_there_is_refused)
{
    struct buf b = {0};
    ck_assert(buf_add(&b, "abc", 3, 600));
    if (!SANITIZED) /* they end the program */
        ck_assert(!buf_reserve(&b, SIZE_MAX / 2 - 4096, SIZE_MAX / 2));
    ck_assert_uint_eq(b.len, 3);
    ck_assert_mem_eq(b.data, "abc", 3);
    buf_free(&b);
}
END_TEST

START_TEST(a_freed_buffer_is_empty_and_usable)
{
    struct buf b = {0};
    ck_assert(buf_add(&b, "abc", 3, 600));
    buf_free(&b);
    ck_assert_ptr_null(b.data);
    ck_assert_uint_eq(b.len + b.cap, 0);
    buf_free(&b);
    ck_assert(buf_add(&b, "d", 1, 600));
    ck_assert_int_eq(b.data[0], 'd');
    buf_free(&b);
}
END_TEST

START_TEST(texts_are_equal_byte_for_byte)
{
    ck_assert(str_eq(STR_LIT("abc"), STR_LIT("abc")));
    ck_assert(str_eq(STR_LIT("a\0b"), STR_LIT("a\0b")));
    ck_assert(str_eq((struct str){NULL, 0}, STR_LIT("")));
    ck_assert(!str_eq(STR_LIT("abc"), STR_LIT("abd")));
    ck_assert(!str_eq(STR_LIT("abc"), STR_LIT("ABC")));
    ck_assert(!str_eq(STR_LIT("abc"), STR_LIT("ab")));
    ck_assert(!str_eq(STR_LIT("ab"), STR_LIT("abc")));
    ck_assert(!str_eq(STR_LIT("a\0b"), STR_LIT("a\0c")));
    ck_assert(!str_eq(STR_LIT("a"), (struct str){NULL, 0}));
}
END_TEST

START_TEST(prefixes)
{
    ck_assert(str_starts(STR_LIT("abc"), STR_LIT("ab")));
    ck_assert(str_starts(STR_LIT("abc"), STR_LIT("abc")));
    ck_assert(str_starts(STR_LIT("abc"), STR_LIT("")));
    ck_assert(str_starts((struct str){NULL, 0}, (struct str){NULL, 0}));
    ck_assert(!str_starts(STR_LIT("abc"), STR_LIT("abcd")));
    ck_assert(!str_starts(STR_LIT("abc"), STR_LIT("b")));
    ck_assert(!str_starts(STR_LIT(""), STR_LIT("a")));
    ck_assert(!str_starts((struct str){NULL, 0}, STR_LIT("a")));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("buf");
    TCase *t = run_case(s, "buffer");
    tcase_add_test(t, zeroes_are_an_empty_buffer);
    tcase_add_test(t, bytes_are_appended_in_order);
    tcase_add_test(t, reserve_does_not_change_the_length);
    tcase_add_test(t, growth_doubles);
    tcase_add_loop_test(t, it_fills_to_the_cap_and_not_beyond, 0, 6);
    tcase_add_test(t, a_refused_growth_changes_nothing);
    tcase_add_test(t, sizes_that_would_wrap_are_refused);
    tcase_add_test(t, a_small_cap_holds);
    tcase_add_test(t, the_cap_of_this_call_counts);
    tcase_add_test(t, memory_that_is_not_there_is_refused);
    tcase_add_test(t, a_freed_buffer_is_empty_and_usable);
    t = run_case(s, "text");
    tcase_add_test(t, texts_are_equal_byte_for_byte);
    tcase_add_test(t, prefixes);
    return run_suite(s);
}
