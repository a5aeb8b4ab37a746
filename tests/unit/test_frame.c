/* fcgi/frame: from bytes to exactly one whole request. Bodies and pairs: test_frame_body. */
#include "fcgi/frame.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/records.h"
#include "tests/unit/run.h"

enum { BODY_MAX = 100000 };

static const struct frame_limits limits = {.body_max = BODY_MAX, .memory_max = BODY_MAX};

/* ---- valid requests -------------------------------------------------------------------------- */

static void some_pairs(struct buf *pairs)
{
    rec_text(pairs, "REQUEST_METHOD", "PUT");
    rec_text(pairs, "DOCUMENT_URI", "/docs/a");
    rec_text(pairs, "HTTP_COOKIE", "");
    rec_text(pairs, "QUERY_STRING", "a=1&b=2");
}

/* Without padding and extras, the least a request consists of. */
static void least(struct buf *out)
{
    struct buf pairs = {0};
    some_pairs(&pairs);
    rec_request(out, &pairs, NULL, 0);
    buf_free(&pairs);
}

static void without_params(struct buf *out)
{
    rec_begin(out, 1);
    rec(out, FCGI_PARAMS, 1, NULL, 0, 0);
    rec(out, FCGI_STDIN, 1, NULL, 0, 0);
}

/* Parameters cut in the middle of names and lengths, bodies in small records. */
static void cut_small(struct buf *out)
{
    struct buf pairs = {0};
    some_pairs(&pairs);
    rec_begin(out, 1);
    rec_params(out, 1, &pairs, 3);
    rec_stdin(out, 1, "the body of the request", 23, 5);
    buf_free(&pairs);
}

/* Padding everywhere, also behind the records that end the streams. */
static void padded(struct buf *out)
{
    struct buf pairs = {0};
    some_pairs(&pairs);
    rec(out, FCGI_BEGIN_REQUEST, 1, "\0\1\1\0\0\0\0", 8, 255);
    rec(out, FCGI_PARAMS, 1, pairs.data, pairs.len, 7);
    rec(out, FCGI_PARAMS, 1, NULL, 0, 8);
    rec(out, FCGI_STDIN, 1, "ab", 2, 6);
    rec(out, FCGI_STDIN, 1, "c", 1, 255);
    rec(out, FCGI_STDIN, 1, NULL, 0, 1);
    buf_free(&pairs);
}

/* Management records before, inside and between the streams. */
static void managed(struct buf *out)
{
    static const char ask[] = "\017\0FCGI_MPXS_CONNS";
    rec(out, FCGI_GET_VALUES, 0, ask, sizeof ask - 1, 0);
    rec_begin(out, 1);
    rec(out, 77, 0, "content", 7, 3);
    rec(out, FCGI_PARAMS, 1, "\1\1ab", 4, 0);
    rec(out, FCGI_GET_VALUES, 0, NULL, 0, 0);
    rec(out, FCGI_PARAMS, 1, NULL, 0, 0);
    rec(out, FCGI_STDIN, 1, "x", 1, 0);
    rec(out, 200, 0, NULL, 0, 0);
    rec(out, FCGI_STDIN, 1, NULL, 0, 0);
}

/* Records of requests that are not open are ignored, a second BEGIN is refused. */
static void others(struct buf *out)
{
    rec(out, FCGI_STDIN, 7, "late", 4, 4);
    rec(out, FCGI_ABORT_REQUEST, 1, NULL, 0, 0);
    rec_begin(out, 1);
    rec(out, FCGI_ABORT_REQUEST, 2, NULL, 0, 0);
    rec(out, FCGI_PARAMS, 2, "\1\1xy", 4, 0);
    rec(out, FCGI_PARAMS, 1, "\1\1ab", 4, 0);
    rec_begin(out, 3);
    rec(out, FCGI_PARAMS, 3, NULL, 0, 0);
    rec(out, FCGI_PARAMS, 1, NULL, 0, 0);
    rec(out, FCGI_STDIN, 3, NULL, 0, 0);
    rec(out, FCGI_DATA, 3, "d", 1, 0);
    rec(out, FCGI_STDIN, 1, NULL, 0, 0);
}

static void highest_id_and_close(struct buf *out)
{
    rec(out, FCGI_BEGIN_REQUEST, 65535, "\0\1\0\0\0\0\0", 8, 0);
    rec(out, FCGI_PARAMS, 65535, "\1\1ab", 4, 0);
    rec(out, FCGI_PARAMS, 65535, NULL, 0, 0);
    rec(out, FCGI_STDIN, 65535, "body", 4, 0);
    rec(out, FCGI_STDIN, 65535, NULL, 0, 0);
}

/* Reserved bytes and unknown flags do not matter. */
static void reserved_bytes_set(struct buf *out)
{
    size_t at = out->len;
    rec(out, FCGI_BEGIN_REQUEST, 1, "\0\1\377\1\2\3\4\5", 8, 0);
    out->data[at + 7] = 255;
    rec(out, FCGI_PARAMS, 1, NULL, 0, 0);
    rec(out, FCGI_STDIN, 1, NULL, 0, 0);
}

static void role_first(struct buf *out)
{
    rec(out, FCGI_BEGIN_REQUEST, 4, "\0\2\1\0\0\0\0", 8, 0);
    rec(out, FCGI_PARAMS, 4, "\1\1ab", 4, 0);
    rec(out, FCGI_PARAMS, 4, NULL, 0, 0);
    rec(out, FCGI_STDIN, 4, NULL, 0, 0);
    without_params(out);
}

static const struct {
    const char *name;
    void (*make)(struct buf *out);
    const char *params;
    size_t params_len;
    const char *body;
    unsigned id;
    bool keep;
    size_t replies;
} valid[] = {
    {"least", least, NULL, 0, "", 1, true, 0},
    {"without params", without_params, "", 0, "", 1, true, 0},
    {"cut small", cut_small, NULL, 0, "the body of the request", 1, true, 0},
    {"padded", padded, NULL, 0, "abc", 1, true, 0},
    {"managed", managed, "\1\1ab", 4, "x", 1, true, 8 + 18 + 16 + 8 + 16},
    {"others", others, "\1\1ab", 4, "", 1, true, 16},
    {"highest id", highest_id_and_close, "\1\1ab", 4, "body", 65535, false, 0},
    {"reserved bytes", reserved_bytes_set, "", 0, "", 1, true, 0},
    {"wrong role first", role_first, "", 0, "", 1, true, 16},
};

/* The frame must hold the request of row i. */
static void holds(struct frame *f, int i)
{
    struct buf pairs = {0};
    struct str expected = {valid[i].params, valid[i].params_len};
    if (expected.p == NULL) {
        some_pairs(&pairs);
        expected = (struct str){(const char *)pairs.data, pairs.len};
    }
    size_t at = f->params.len > 0 ? FRAME_PARAMS_AT : 0;
    ck_assert_uint_eq(f->params.len - at, expected.n);
    if (expected.n > 0)
        ck_assert_mem_eq(f->params.data + FRAME_PARAMS_AT, expected.p, expected.n);
    ck_assert_uint_eq(f->body.len, strlen(valid[i].body));
    ck_assert_uint_eq(f->body_bytes, strlen(valid[i].body));
    if (f->body.len > 0)
        ck_assert_mem_eq(f->body.data, valid[i].body, f->body.len);
    ck_assert_int_eq(f->body_state, FRAME_BODY_OK);
    ck_assert_uint_eq(f->id, valid[i].id);
    ck_assert_int_eq(f->keep, valid[i].keep);
    ck_assert_uint_eq(f->replies.len, valid[i].replies);
    buf_free(&pairs);
}

START_TEST(a_request_at_once)
{
    struct frame f = {0};
    struct buf in = {0};
    valid[_i].make(&in);
    ck_assert_int_eq(rec_feed(&f, BODY_MAX, &in), FRAME_REQUEST);
    holds(&f, _i);
    frame_free(&f);
    buf_free(&in);
}
END_TEST

/* In pieces of every size up to 40 bytes: 1 is byte by byte. */
START_TEST(a_request_in_pieces)
{
    struct buf in = {0};
    valid[_i].make(&in);
    for (size_t piece = 1; piece <= 40; piece++) {
        struct frame f = {0};
        enum frame_result result = FRAME_MORE;
        for (size_t at = 0; at < in.len; at += piece) {
            size_t n = in.len - at < piece ? in.len - at : piece, used;
            ck_assert_int_eq(result, FRAME_MORE);
            result = frame_feed(&f, &limits, in.data + at, n, &used);
            ck_assert_uint_eq(used, n);
        }
        ck_assert_int_eq(result, FRAME_REQUEST);
        holds(&f, _i);
        frame_free(&f);
    }
    buf_free(&in);
}
END_TEST

START_TEST(a_request_that_is_cut_is_never_whole)
{
    struct buf in = {0};
    valid[_i].make(&in);
    for (size_t n = 0; n < in.len; n++) {
        struct frame f = {0};
        size_t used;
        enum frame_result result = frame_feed(&f, &limits, in.data, n, &used);
        ck_assert_msg(result == FRAME_MORE, "%s cut at %zu of %zu: %d", valid[_i].name, n, in.len, (int)result);
        ck_assert_uint_eq(used, n);
        frame_free(&f);
    }
    buf_free(&in);
}
END_TEST

START_TEST(what_is_behind_a_request_is_not_touched)
{
    struct frame f = {0};
    struct buf in = {0};
    size_t used;
    valid[_i].make(&in);
    size_t one = in.len;
    ck_assert(buf_add(&in, "\1\1garbage behind it", 20, RECORDS_MAX));
    ck_assert_int_eq(frame_feed(&f, &limits, in.data, in.len, &used), FRAME_REQUEST);
    ck_assert_uint_eq(used, one);
    holds(&f, _i);
    frame_free(&f);
    buf_free(&in);
}
END_TEST

/* All of them on one connection, one after the other, thrice, in one buffer. */
START_TEST(requests_in_a_row)
{
    struct frame f = {0};
    struct buf in = {0};
    size_t at = 0, used;
    for (size_t i = 0; i < 3 * COUNT(valid); i++)
        valid[i % COUNT(valid)].make(&in);
    for (size_t i = 0; i < 3 * COUNT(valid); i++) {
        ck_assert(frame_idle(&f));
        ck_assert_int_eq(frame_feed(&f, &limits, in.data + at, in.len - at, &used), FRAME_REQUEST);
        at += used;
        holds(&f, (int)(i % COUNT(valid)));
        frame_reset(&f);
        buf_free(&f.replies);
    }
    ck_assert_uint_eq(at, in.len);
    frame_free(&f);
    buf_free(&in);
}
END_TEST

START_TEST(idle_means_no_byte_of_a_request)
{
    struct frame f = {0};
    struct buf in = {0};
    size_t used;
    least(&in);
    ck_assert(frame_idle(&f));
    for (size_t i = 0; i < in.len; i++) {
        enum frame_result result = frame_feed(&f, &limits, in.data + i, 1, &used);
        ck_assert_int_eq(result, i + 1 < in.len ? FRAME_MORE : FRAME_REQUEST);
        ck_assert(!frame_idle(&f));
    }
    frame_reset(&f);
    ck_assert(frame_idle(&f));
    frame_free(&f);
    buf_free(&in);
}
END_TEST

START_TEST(nothing_fed_is_nothing_used)
{
    struct frame f = {0};
    size_t used = 99;
    ck_assert_int_eq(frame_feed(&f, &limits, NULL, 0, &used), FRAME_MORE);
    ck_assert_uint_eq(used, 0);
    frame_free(&f);
}
END_TEST

/* ---- wrong records --------------------------------------------------------------------------- */

/* Where the wrong record comes: on a fresh connection, behind BEGIN, behind the parameters, within the body. */
enum stage { FRESH, BEGUN, PARAMS_DONE, IN_BODY, STAGES };

static void reach(struct buf *in, enum stage stage)
{
    if (stage >= BEGUN)
        rec_begin(in, 1);
    if (stage >= PARAMS_DONE) {
        rec(in, FCGI_PARAMS, 1, "\1\1ab", 4, 0);
        rec(in, FCGI_PARAMS, 1, NULL, 0, 0);
    }
    if (stage >= IN_BODY)
        rec(in, FCGI_STDIN, 1, "body", 4, 0);
}

static enum frame_result after(enum stage stage, unsigned type, unsigned id, const char *content, size_t n)
{
    struct frame f = {0};
    struct buf in = {0};
    size_t used;
    reach(&in, stage);
    rec(&in, type, id, content, n, 0);
    enum frame_result result = frame_feed(&f, &limits, in.data, in.len, &used);
    ck_assert(result == FRAME_BAD || used == in.len);
    frame_free(&f);
    buf_free(&in);
    return result;
}

static const char begin_content[16] = "\0\1\1";

/* Types for the open request that a web server does not send at that stage. */
START_TEST(types_out_of_place)
{
    /* By type from 0: m is consumed, a gives up, . is wrong. */
    static const char right[STAGES][10] = {
        [FRESH] = ".mmmmmmmm",
        [BEGUN] = "..a.m....",
        [PARAMS_DONE] = "..a..m...",
        [IN_BODY] = "..a..m...",
    };
    unsigned type = (unsigned)_i;
    for (int stage = FRESH; stage < STAGES; stage++) {
        bool begin = type == FCGI_BEGIN_REQUEST;
        enum frame_result got = after((enum stage)stage, type, 1, begin ? begin_content : "\1\1cd", begin ? 8 : 4);
        char rule = type <= FCGI_DATA ? right[stage][type] : '.';
        enum frame_result expected = rule == 'm' ? FRAME_MORE : rule == 'a' ? FRAME_ABORTED : FRAME_BAD;
        ck_assert_msg(got == expected, "type %u at stage %d: %d", type, stage, (int)got);
    }
}
END_TEST

START_TEST(versions_other_than_1)
{
    struct buf in = {0};
    for (int stage = FRESH; stage < STAGES; stage++)
        for (int version = 0; version < 256; version += version == 0 ? 2 : 1) {
            struct frame f = {0};
            size_t used;
            in.len = 0;
            reach(&in, (enum stage)stage);
            size_t at = in.len;
            rec(&in, stage == FRESH ? FCGI_BEGIN_REQUEST : FCGI_ABORT_REQUEST, 1, begin_content, 8, 0);
            in.data[at] = (unsigned char)version;
            ck_assert_int_eq(frame_feed(&f, &limits, in.data, in.len, &used), FRAME_BAD);
            frame_free(&f);
        }
    buf_free(&in);
}
END_TEST

START_TEST(begin_of_another_length)
{
    static const size_t lengths[] = {0, 1, 4, 7, 9, 16};
    ck_assert_int_eq(after(FRESH, FCGI_BEGIN_REQUEST, 1, begin_content, 8), FRAME_MORE);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        ck_assert_int_eq(after(FRESH, FCGI_BEGIN_REQUEST, 1, begin_content, lengths[i]), FRAME_BAD);
        ck_assert_int_eq(after(BEGUN, FCGI_BEGIN_REQUEST, 2, begin_content, lengths[i]), FRAME_BAD);
    }
}
END_TEST

START_TEST(begin_of_the_open_request)
{
    ck_assert_int_eq(after(BEGUN, FCGI_BEGIN_REQUEST, 1, begin_content, 8), FRAME_BAD);
    ck_assert_int_eq(after(PARAMS_DONE, FCGI_BEGIN_REQUEST, 1, begin_content, 8), FRAME_BAD);
    ck_assert_int_eq(after(IN_BODY, FCGI_BEGIN_REQUEST, 1, begin_content, 8), FRAME_BAD);
}
END_TEST

/* Unknown types are for management records (id 0) alone. */
START_TEST(unknown_types_of_a_request)
{
    static const unsigned types[] = {0, 9, 10, 11, 12, 77, 128, 255};
    for (int stage = FRESH; stage < STAGES; stage++)
        for (size_t i = 0; i < COUNT(types); i++) {
            ck_assert_int_eq(after((enum stage)stage, types[i], 1, "x", 1), FRAME_BAD);
            ck_assert_int_eq(after((enum stage)stage, types[i], 2, "x", 1), FRAME_BAD);
        }
}
END_TEST

START_TEST(params_behind_their_end)
{
    ck_assert_int_eq(after(PARAMS_DONE, FCGI_PARAMS, 1, "\1\1cd", 4), FRAME_BAD);
    ck_assert_int_eq(after(PARAMS_DONE, FCGI_PARAMS, 1, NULL, 0), FRAME_BAD);
    ck_assert_int_eq(after(IN_BODY, FCGI_PARAMS, 1, NULL, 0), FRAME_BAD);
}
END_TEST

/* Also the end of STDIN alone must not make a request of half the parameters. */
START_TEST(stdin_before_the_end_of_params)
{
    ck_assert_int_eq(after(BEGUN, FCGI_STDIN, 1, "x", 1), FRAME_BAD);
    ck_assert_int_eq(after(BEGUN, FCGI_STDIN, 1, NULL, 0), FRAME_BAD);
}
END_TEST

START_TEST(another_protocol)
{
    static const char *const texts[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\3\1\2\0\1\0\1\xfc\3\3", "\0\0\0\0\0\0\0\0",
                                        "\xff\xff\xff\xff\xff\xff\xff\xff"};
    static const size_t lengths[] = {25, 11, 8, 8};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct frame f = {0};
        size_t used;
        ck_assert_int_eq(frame_feed(&f, &limits, (const unsigned char *)texts[i], lengths[i], &used), FRAME_BAD);
        frame_free(&f);
    }
}
END_TEST

START_TEST(params_fill_their_cap_and_not_more)
{
    static char big[FRAME_PARAMS_MAX + 8];
    for (size_t over = 0; over <= 8; over++) {
        struct frame f = {0};
        struct buf in = {0};
        struct buf pairs = {(unsigned char *)big, FRAME_PARAMS_MAX + over, sizeof big};
        rec_begin(&in, 1);
        rec_params(&in, 1, &pairs, 30000);
        size_t used;
        ck_assert_int_eq(frame_feed(&f, &limits, in.data, in.len, &used), over == 0 ? FRAME_MORE : FRAME_BAD);
        frame_free(&f);
        buf_free(&in);
    }
}
END_TEST

/* ---- answers of the frame itself ------------------------------------------------------------- */

START_TEST(get_values_tells_what_is_true)
{
    static const char ask[] = "\016\0FCGI_MAX_CONNS\015\0FCGI_MAX_REQS\017\0FCGI_MPXS_CONNS\1\0X";
    static const char answer[] = "\1\012\0\0\0\022\0\0\017\001FCGI_MPXS_CONNS0";
    struct frame f = {0};
    struct buf in = {0};
    rec(&in, FCGI_GET_VALUES, 0, ask, sizeof ask - 1, 5);
    ck_assert_int_eq(rec_feed(&f, BODY_MAX, &in), FRAME_MORE);
    ck_assert_uint_eq(f.replies.len, sizeof answer - 1);
    ck_assert_mem_eq(f.replies.data, answer, sizeof answer - 1);
    ck_assert(frame_idle(&f));
    frame_free(&f);
    buf_free(&in);
}
END_TEST

START_TEST(get_values_of_nothing_known)
{
    static const char *const asked[] = {"", "\1\0X", "\017\3FCGI_MPXS_CONNZ123"};
    for (size_t i = 0; i < COUNT(asked); i++) {
        struct frame f = {0};
        struct buf in = {0};
        rec(&in, FCGI_GET_VALUES, 0, asked[i], i == 0 ? 0 : i == 1 ? 3 : 20, 0);
        ck_assert_int_eq(rec_feed(&f, BODY_MAX, &in), FRAME_MORE);
        ck_assert_uint_eq(f.replies.len, 8);
        ck_assert_mem_eq(f.replies.data, "\1\012\0\0\0\0\0\0", 8);
        frame_free(&f);
        buf_free(&in);
    }
}
END_TEST

START_TEST(get_values_that_is_malformed)
{
    static const struct str asked[] = {
        STR_LIT("\1"), STR_LIT("\1\0"), STR_LIT("\017\0FCGI_MPXS_CONN"), STR_LIT("\1\1X"),
        STR_LIT("\200\0\0"), STR_LIT("\200\0\0\1"), STR_LIT("\377\377\377\377\377\377\377\377"), STR_LIT("\1\0Xy"),
    };
    static const char much[65534]; /* pairs of two empty texts */
    for (size_t i = 0; i < COUNT(asked); i++)
        ck_assert_int_eq(after(FRESH, FCGI_GET_VALUES, 0, asked[i].p, asked[i].n), FRAME_BAD);
    ck_assert_int_eq(after(FRESH, FCGI_GET_VALUES, 0, much, 64), FRAME_MORE);
    ck_assert_int_eq(after(FRESH, FCGI_GET_VALUES, 0, much, 66), FRAME_BAD);
    ck_assert_int_eq(after(FRESH, FCGI_GET_VALUES, 0, much, sizeof much), FRAME_BAD);
}
END_TEST

/* Every type with request id 0 but GET_VALUES, also those that belong to requests. */
START_TEST(management_records_that_are_not_known)
{
    for (unsigned type = 0; type < 256; type++) {
        struct frame f = {0};
        struct buf in = {0};
        char answer[16] = "\1\013\0\0\0\010";
        if (type == FCGI_GET_VALUES)
            continue;
        answer[8] = (char)type;
        rec(&in, type, 0, "content of it", 13, 2);
        ck_assert_int_eq(rec_feed(&f, BODY_MAX, &in), FRAME_MORE);
        ck_assert_uint_eq(f.replies.len, 16);
        ck_assert_mem_eq(f.replies.data, answer, 16);
        ck_assert(frame_idle(&f));
        frame_free(&f);
        buf_free(&in);
    }
}
END_TEST

/* The types of requests, but with id 0 and empty like the ends of streams: they end nothing. */
START_TEST(management_records_do_not_change_a_request)
{
    unsigned type = (unsigned)_i;
    for (int stage = BEGUN; stage < STAGES; stage++) {
        struct frame f = {0};
        struct buf in = {0};
        reach(&in, (enum stage)stage);
        rec(&in, type, 0, NULL, 0, 0);
        ck_assert_int_eq(rec_feed(&f, BODY_MAX, &in), FRAME_MORE);
        in.len = 0;
        if (stage == BEGUN)
            rec(&in, FCGI_PARAMS, 1, "\1\1ab", 4, 0);
        if (stage == BEGUN)
            rec(&in, FCGI_PARAMS, 1, NULL, 0, 0);
        rec_stdin(&in, 1, "rest", 4, 4);
        ck_assert_int_eq(rec_feed(&f, BODY_MAX, &in), FRAME_REQUEST);
        ck_assert_uint_eq(f.body.len, stage == IN_BODY ? 8 : 4);
        ck_assert_mem_eq(f.params.data + FRAME_PARAMS_AT, "\1\1ab", 4);
        ck_assert_uint_eq(f.id, 1);
        frame_free(&f);
        buf_free(&in);
    }
}
END_TEST

START_TEST(a_second_request_is_refused_and_the_first_goes_on)
{
    struct frame f = {0};
    struct buf in = {0};
    others(&in);
    ck_assert_int_eq(rec_feed(&f, BODY_MAX, &in), FRAME_REQUEST);
    ck_assert_uint_eq(f.replies.len, 16);
    ck_assert_mem_eq(f.replies.data, "\1\3\0\3\0\10\0\0\0\0\0\0\1\0\0\0", 16);
    ck_assert_mem_eq(f.params.data + FRAME_PARAMS_AT, "\1\1ab", 4);
    frame_free(&f);
    buf_free(&in);
}
END_TEST

START_TEST(other_roles_are_refused)
{
    static const unsigned roles[] = {0, 2, 3, 9, 0x0101, 0x0100, 0xffff};
    for (size_t i = 0; i < COUNT(roles); i++) {
        struct frame f = {0};
        struct buf in = {0};
        char content[8] = {(char)(roles[i] >> 8), (char)roles[i], 1};
        rec(&in, FCGI_BEGIN_REQUEST, 5, content, 8, 0);
        ck_assert_int_eq(rec_feed(&f, BODY_MAX, &in), FRAME_MORE);
        ck_assert_uint_eq(f.replies.len, 16);
        ck_assert_mem_eq(f.replies.data, "\1\3\0\5\0\10\0\0\0\0\0\0\3\0\0\0", 16);
        ck_assert(frame_idle(&f));
        frame_free(&f);
        buf_free(&in);
    }
}
END_TEST

/* A peer that makes the frame talk and does not listen. */
START_TEST(answers_have_a_cap)
{
    struct frame f = {0};
    struct buf in = {0};
    size_t used;
    for (int i = 0; i <= FRAME_REPLIES_MAX / 16; i++)
        rec(&in, 77, 0, NULL, 0, 0);
    ck_assert_int_eq(frame_feed(&f, &limits, in.data, in.len, &used), FRAME_BAD);
    ck_assert_uint_le(f.replies.len, FRAME_REPLIES_MAX);
    frame_free(&f);
    buf_free(&in);
}
END_TEST

START_TEST(abort_gives_the_request_up)
{
    for (int stage = BEGUN; stage < STAGES; stage++) {
        struct frame f = {0};
        struct buf in = {0};
        size_t used;
        reach(&in, (enum stage)stage);
        rec(&in, FCGI_ABORT_REQUEST, 1, "ignored", 7, 1);
        size_t one = in.len;
        least(&in);
        ck_assert_int_eq(frame_feed(&f, &limits, in.data, in.len, &used), FRAME_ABORTED);
        ck_assert_uint_eq(used, one);
        ck_assert_uint_eq(f.id, 1);
        ck_assert(f.keep);
        frame_reset(&f);
        ck_assert(frame_idle(&f));
        ck_assert_int_eq(frame_feed(&f, &limits, in.data + one, in.len - one, &used), FRAME_REQUEST);
        holds(&f, 0);
        frame_free(&f);
        buf_free(&in);
    }
}
END_TEST

/* ---- records that are written ---------------------------------------------------------------- */

START_TEST(written_records)
{
    unsigned char p[18];
    memset(p, 0xee, sizeof p);
    frame_put_header(p, FCGI_STDOUT, 0x1234, 0xfff8);
    ck_assert_mem_eq(p, "\1\6\x12\x34\xff\xf8\0\0\xee", 9);
    memset(p, 0xee, sizeof p);
    frame_put_end(p, 0xabcd, FCGI_OVERLOADED);
    ck_assert_mem_eq(p, "\1\3\xab\xcd\0\10\0\0\0\0\0\0\2\0\0\0\xee", 17);
    memset(p, 0xee, sizeof p);
    frame_put_unknown(p, 200);
    ck_assert_mem_eq(p, "\1\13\0\0\0\10\0\0\xc8\0\0\0\0\0\0\0\xee", 17);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("frame");
    TCase *t = run_case(s, "valid");
    tcase_add_loop_test(t, a_request_at_once, 0, COUNT(valid));
    tcase_add_loop_test(t, a_request_in_pieces, 0, COUNT(valid));
    tcase_add_loop_test(t, a_request_that_is_cut_is_never_whole, 0, COUNT(valid));
    tcase_add_loop_test(t, what_is_behind_a_request_is_not_touched, 0, COUNT(valid));
    tcase_add_test(t, requests_in_a_row);
    tcase_add_test(t, idle_means_no_byte_of_a_request);
    tcase_add_test(t, nothing_fed_is_nothing_used);
    t = run_case(s, "wrong");
    tcase_add_loop_test(t, types_out_of_place, 1, 13);
    tcase_add_test(t, versions_other_than_1);
    tcase_add_test(t, begin_of_another_length);
    tcase_add_test(t, begin_of_the_open_request);
    tcase_add_test(t, unknown_types_of_a_request);
    tcase_add_test(t, params_behind_their_end);
    tcase_add_test(t, stdin_before_the_end_of_params);
    tcase_add_test(t, another_protocol);
    tcase_add_test(t, params_fill_their_cap_and_not_more);
    t = run_case(s, "answers");
    tcase_add_test(t, get_values_tells_what_is_true);
    tcase_add_test(t, get_values_of_nothing_known);
    tcase_add_test(t, get_values_that_is_malformed);
    tcase_add_test(t, management_records_that_are_not_known);
    tcase_add_loop_test(t, management_records_do_not_change_a_request, 1, 13);
    tcase_add_test(t, a_second_request_is_refused_and_the_first_goes_on);
    tcase_add_test(t, other_roles_are_refused);
    tcase_add_test(t, answers_have_a_cap);
    tcase_add_test(t, abort_gives_the_request_up);
    t = run_case(s, "written");
    tcase_add_test(t, written_records);
    return run_suite(s);
}
