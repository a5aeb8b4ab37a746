/* fcgi/resp: the exact records of a response, its caps, and what is refused in a header. */
#include "fcgi/resp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fcgi/frame.h"
#include "tests/unit/run.h"

static struct buf out;

static void is_out(const void *expected, size_t n)
{
    ck_assert_uint_eq(out.len, n);
    ck_assert_mem_eq(out.data, expected, n);
}

#define IS_OUT(literal) is_out(literal, sizeof(literal) - 1)
#define END_1 "\1\6\0\1\0\0\0\0" "\1\3\0\1\0\10\0\0\0\0\0\0\0\0\0\0"

/* What the STDOUT records carry, checked and put together. */
static struct buf stdout_of(uint16_t id)
{
    struct buf text = {0};
    bool ended = false;
    size_t at = 0;
    while (!ended) {
        const unsigned char *h = out.data + at;
        ck_assert_uint_le(at + 8, out.len);
        size_t content = (size_t)h[4] << 8 | h[5];
        ck_assert_mem_eq(h, ((unsigned char[]){1, 6, (unsigned char)(id >> 8), (unsigned char)id}), 4);
        ck_assert_uint_le(content, FRAME_CONTENT_MAX);
        ck_assert_uint_eq(h[6], 0);
        ck_assert_uint_le(at + 8 + content, out.len);
        ck_assert(buf_add(&text, h + 8, content, RESP_MAX));
        at += 8 + content;
        ended = content == 0;
    }
    ck_assert_uint_eq(out.len - at, 16);
    return text;
}

static struct resp start(unsigned status)
{
    struct resp r;
    resp_init(&r, &out, 1, false);
    resp_start(&r, status);
    return r;
}

/* ---- exact bytes ----------------------------------------------------------------------------- */

START_TEST(a_small_response)
{
    struct resp r = start(200);
    resp_header(&r, "Content-Type", STR_LIT("text/plain"));
    resp_etag(&r, 7);
    resp_body(&r, "hello", 5);
    resp_finish(&r, false);
    ck_assert(!r.failed);
    IS_OUT("\1\6\0\1\0\117\0\0"
           "Status: 200 OK\r\nContent-Type: text/plain\r\nETag: \"7\"\r\nContent-Length: 5\r\n\r\nhello" END_1);
    buf_free(&out);
}
END_TEST

START_TEST(the_id_is_that_of_the_request)
{
    struct resp r;
    resp_init(&r, &out, 0xabcd, false);
    resp_start(&r, 204);
    resp_no_body(&r);
    resp_finish(&r, false);
    IS_OUT("\1\6\xab\xcd\0\32\0\0Status: 204 No Content\r\n\r\n"
           "\1\6\xab\xcd\0\0\0\0\1\3\xab\xcd\0\10\0\0\0\0\0\0\0\0\0\0");
    buf_free(&out);
}
END_TEST

/* nginx closes the connection by itself after this answer: the record of an unknown type behind the end. */
START_TEST(a_response_that_retires_the_connection)
{
    struct resp r = start(204);
    resp_no_body(&r);
    resp_finish(&r, true);
    IS_OUT("\1\6\0\1\0\32\0\0Status: 204 No Content\r\n\r\n" END_1 "\1\13\0\0\0\10\0\0\0\0\0\0\0\0\0\0");
    buf_free(&out);
}
END_TEST

START_TEST(responses_stand_behind_each_other)
{
    struct resp r = start(204);
    resp_no_body(&r);
    resp_finish(&r, false);
    size_t one = out.len;
    r = start(204);
    resp_no_body(&r);
    resp_finish(&r, false);
    ck_assert_uint_eq(out.len, 2 * one);
    ck_assert_mem_eq(out.data, out.data + one, one);
    buf_free(&out);
}
END_TEST

START_TEST(a_reset_drops_this_response_alone)
{
    struct resp r = start(204);
    resp_no_body(&r);
    resp_finish(&r, false);
    size_t one = out.len;
    static char body[200000];
    r = start(200);
    resp_body(&r, body, sizeof body);
    resp_reset(&r);
    ck_assert(!r.failed);
    resp_start(&r, 204);
    resp_no_body(&r);
    resp_finish(&r, false);
    ck_assert_uint_eq(out.len, 2 * one);
    ck_assert_mem_eq(out.data, out.data + one, one);
    buf_free(&out);
}
END_TEST

/* ---- bodies ---------------------------------------------------------------------------------- */

/* The head is 36 bytes and the digits of the length: sizes around one, two and three full records. */
static const size_t sizes[] = {0,     1,     9,      65000,  65486,  65487,  65488,  65527,  65528,
                               65529, 131012, 131013, 131014, 131015, 131056, 196541, 196542, 196543, 1 << 20};

START_TEST(bodies_are_cut_into_records)
{
    static char body[1 << 20];
    char head[128];
    size_t n = sizes[_i];
    for (size_t i = 0; i < n; i++)
        body[i] = (char)(i * 131 + i / 8192);
    struct resp r = start(200);
    resp_body(&r, body, n);
    resp_finish(&r, false);
    ck_assert(!r.failed);
    struct buf text = stdout_of(1);
    size_t head_len = (size_t)snprintf(head, sizeof head, "Status: 200 OK\r\nContent-Length: %zu\r\n\r\n", n);
    ck_assert_uint_eq(text.len, head_len + n);
    ck_assert_mem_eq(text.data, head, head_len);
    ck_assert_mem_eq(text.data + head_len, body, n);
    size_t records = (text.len + FRAME_CONTENT_MAX - 1) / FRAME_CONTENT_MAX;
    ck_assert_uint_eq(out.len, text.len + 8 * records + 24);
    buf_free(&text);
    buf_free(&out);
}
END_TEST

START_TEST(records_are_full_before_the_next_begins)
{
    static char body[140000];
    struct resp r = start(200);
    resp_body(&r, body, sizeof body);
    resp_finish(&r, false);
    ck_assert_mem_eq(out.data, "\1\6\0\1\377\370\0\0", 8);
    ck_assert_mem_eq(out.data + 8 + FRAME_CONTENT_MAX, "\1\6\0\1\377\370\0\0", 8);
    buf_free(&out);
}
END_TEST

START_TEST(head_has_the_length_and_no_body)
{
    struct resp r;
    resp_init(&r, &out, 1, true);
    resp_start(&r, 200);
    resp_body(&r, "hello", 5);
    resp_finish(&r, false);
    IS_OUT("\1\6\0\1\0\45\0\0Status: 200 OK\r\nContent-Length: 5\r\n\r\n" END_1);
    buf_free(&out);
}
END_TEST

START_TEST(head_stays_head_after_a_reset)
{
    struct resp r;
    resp_init(&r, &out, 1, true);
    resp_start(&r, 200);
    resp_reset(&r);
    resp_start(&r, 404);
    resp_body(&r, "hello", 5);
    resp_finish(&r, false);
    IS_OUT("\1\6\0\1\0\54\0\0Status: 404 Not Found\r\nContent-Length: 5\r\n\r\n" END_1);
    buf_free(&out);
}
END_TEST

/* A body with these is dropped by nginx, with a warning. */
START_TEST(a_304_and_a_204_have_no_body)
{
    struct resp r = start(304);
    resp_etag(&r, 5);
    resp_body(&r, "hello", 5);
    resp_finish(&r, false);
    struct buf text = stdout_of(1);
    ck_assert_uint_eq(text.len, sizeof "Status: 304 Not Modified\r\nETag: \"5\"\r\nContent-Length: 5\r\n\r\n" - 1);
    buf_free(&text);
    out.len = 0;
    r = start(304);
    resp_no_body(&r);
    resp_finish(&r, false);
    text = stdout_of(1);
    ck_assert_uint_eq(text.len, sizeof "Status: 304 Not Modified\r\n\r\n" - 1);
    buf_free(&text);
    out.len = 0;
    r = start(204);
    resp_body(&r, "hello", 5);
    resp_finish(&r, false);
    text = stdout_of(1);
    ck_assert_ptr_null(memmem(text.data, text.len, "hello", 5));
    buf_free(&text);
    buf_free(&out);
}
END_TEST

/* ---- heads ----------------------------------------------------------------------------------- */

static const struct str injections[] = {
    STR_LIT("a\r\nX: y"), STR_LIT("a\r"),   STR_LIT("a\nb"),  STR_LIT("\r\n\r\n<html>"), STR_LIT("\0"),   STR_LIT("a\0b"),
    STR_LIT("\x01"),      STR_LIT("\x1f"),  STR_LIT("a\x7f"), STR_LIT("\x0b"),           STR_LIT("\x0c"), STR_LIT("\x1b[31m"),
};

START_TEST(a_header_is_not_split)
{
    struct resp r = start(200);
    resp_header(&r, "Location", injections[_i]);
    ck_assert(r.failed);
    resp_body(&r, "hello", 5);
    size_t before = out.len;
    resp_finish(&r, false);
    ck_assert(r.failed);
    ck_assert_uint_eq(out.len, before);
    ck_assert(memmem(out.data, out.len, "Location", 8) == NULL);
    buf_free(&out);
}
END_TEST

START_TEST(what_a_value_may_hold)
{
    char value[256];
    size_t n = 0;
    value[n++] = '\t';
    for (int c = 0x20; c < 256; c++)
        if (c != 0x7f)
            value[n++] = (char)c;
    struct resp r = start(200);
    resp_header(&r, "X", (struct str){value, n});
    resp_header(&r, "Empty", STR_LIT(""));
    resp_no_body(&r);
    resp_finish(&r, false);
    ck_assert(!r.failed);
    struct buf text = stdout_of(1);
    ck_assert_mem_eq(text.data + 16, "X: \t !", 6);
    ck_assert_mem_eq(text.data + text.len - 14, "\xff\r\nEmpty: \r\n\r\n", 14);
    buf_free(&text);
    buf_free(&out);
}
END_TEST

/* One header that fills the head to the cap, and the same with one byte more. */
START_TEST(a_head_has_a_cap)
{
    static char value[RESP_HEAD_MAX];
    memset(value, 'v', sizeof value);
    struct resp r = start(200);
    resp_header(&r, "X", (struct str){value, RESP_HEAD_MAX - 5});
    ck_assert(!r.failed);
    resp_header(&r, "Y", STR_LIT(""));
    ck_assert(r.failed);
    ck_assert(!r.no_memory);
    resp_reset(&r);
    resp_start(&r, 200);
    resp_header(&r, "X", (struct str){value, RESP_HEAD_MAX - 4});
    ck_assert(r.failed);
    buf_free(&out);
}
END_TEST

START_TEST(many_small_headers_have_a_cap)
{
    struct resp r = start(200);
    int n = 0;
    while (n < 10000 && !r.failed) {
        resp_header(&r, "X-Name", STR_LIT("value"));
        n++;
    }
    ck_assert_int_eq(n, RESP_HEAD_MAX / 15 + 1);
    ck_assert_uint_le(out.len, RESP_HEAD_MAX + 100);
    buf_free(&out);
}
END_TEST

START_TEST(the_length_is_a_header_too)
{
    static char value[RESP_HEAD_MAX];
    memset(value, 'v', sizeof value);
    struct resp r = start(200);
    resp_header(&r, "X", (struct str){value, RESP_HEAD_MAX - 10});
    resp_body(&r, "hello", 5);
    ck_assert(r.failed);
    buf_free(&out);
}
END_TEST

START_TEST(lines_written_beforehand_count)
{
    static char lines[RESP_HEAD_MAX + 1];
    memset(lines, 'v', sizeof lines);
    struct resp r = start(200);
    resp_fixed(&r, "A: b\r\n", 6);
    resp_fixed(&r, lines, RESP_HEAD_MAX - 6);
    ck_assert(!r.failed);
    resp_header(&r, "X", STR_LIT(""));
    ck_assert(r.failed);
    buf_free(&out);
}
END_TEST

START_TEST(lines_written_beforehand_have_the_cap_too)
{
    static char lines[RESP_HEAD_MAX + 1];
    memset(lines, 'v', sizeof lines);
    struct resp r = start(304);
    resp_fixed(&r, lines, sizeof lines);
    resp_no_body(&r);
    ck_assert(r.failed);
    buf_free(&out);
}
END_TEST

START_TEST(a_failed_response_can_be_built_again)
{
    struct resp r = start(200);
    resp_header(&r, "X", STR_LIT("\n"));
    ck_assert(r.failed);
    resp_reset(&r);
    ck_assert(!r.failed);
    resp_start(&r, 500);
    resp_body(&r, NULL, 0);
    resp_finish(&r, false);
    IS_OUT("\1\6\0\1\0\70\0\0Status: 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n" END_1);
    buf_free(&out);
}
END_TEST

START_TEST(headers_of_numbers_and_dates)
{
    struct resp r = start(200);
    resp_header_u64(&r, "N", 0);
    resp_header_u64(&r, "M", UINT64_MAX);
    resp_etag(&r, UINT64_MAX);
    resp_header_date(&r, "Last-Modified", 784111777);
    resp_no_body(&r);
    resp_finish(&r, false);
    struct buf text = stdout_of(1);
    static const char expected[] = "Status: 200 OK\r\nN: 0\r\nM: 18446744073709551615\r\nETag: \"18446744073709551615\"\r\n"
                                   "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n";
    ck_assert_uint_eq(text.len, sizeof expected - 1);
    ck_assert_mem_eq(text.data, expected, text.len);
    buf_free(&text);
    buf_free(&out);
}
END_TEST

/* nginx turns an empty reason into a broken status line. */
START_TEST(every_status_has_a_reason)
{
    for (unsigned status = 100; status < 1000; status++)
        ck_assert_uint_ge(strlen(resp_reason(status)), 2);
    ck_assert_str_eq(resp_reason(412), "Precondition Failed");
    ck_assert_str_eq(resp_reason(507), "Insufficient Storage");
    ck_assert_str_eq(resp_reason(413), "Content Too Large");
}
END_TEST

START_TEST(digits)
{
    uint64_t v = 1;
    for (int i = 0; i < 200; i++, v = v * 7 + (uint64_t)i) {
        char p[24], expected[24];
        memset(p, 'x', sizeof p);
        int n = snprintf(expected, sizeof expected, "%" PRIu64 "x", v);
        ck_assert_uint_eq(put_u64(p, v), n - 1);
        ck_assert_mem_eq(p, expected, n);
    }
    char p[24];
    ck_assert_uint_eq(put_u64(p, 0), 1);
    ck_assert_int_eq(p[0], '0');
    ck_assert_uint_eq(put_u64(p, UINT64_MAX), 20);
    ck_assert_mem_eq(p, "18446744073709551615", 20);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("resp");
    TCase *t = run_case(s, "bytes");
    tcase_add_test(t, a_small_response);
    tcase_add_test(t, the_id_is_that_of_the_request);
    tcase_add_test(t, a_response_that_retires_the_connection);
    tcase_add_test(t, responses_stand_behind_each_other);
    tcase_add_test(t, a_reset_drops_this_response_alone);
    t = run_case(s, "body");
    tcase_add_loop_test(t, bodies_are_cut_into_records, 0, COUNT(sizes));
    tcase_add_test(t, records_are_full_before_the_next_begins);
    tcase_add_test(t, head_has_the_length_and_no_body);
    tcase_add_test(t, head_stays_head_after_a_reset);
    tcase_add_test(t, a_304_and_a_204_have_no_body);
    t = run_case(s, "head");
    tcase_add_loop_test(t, a_header_is_not_split, 0, COUNT(injections));
    tcase_add_test(t, what_a_value_may_hold);
    tcase_add_test(t, a_head_has_a_cap);
    tcase_add_test(t, many_small_headers_have_a_cap);
    tcase_add_test(t, the_length_is_a_header_too);
    tcase_add_test(t, lines_written_beforehand_count);
    tcase_add_test(t, lines_written_beforehand_have_the_cap_too);
    tcase_add_test(t, a_failed_response_can_be_built_again);
    tcase_add_test(t, headers_of_numbers_and_dates);
    tcase_add_test(t, every_status_has_a_reason);
    tcase_add_test(t, digits);
    return run_suite(s);
}
