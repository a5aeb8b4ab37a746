/* fcgi/frame: bodies that go to a file. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fcgi/frame.h"
#include "fcgi/spool.h"
#include "tests/unit/records.h"
#include "tests/unit/temp.h"

static unsigned char text[400000];
static char folder[1024];

static void fill(void)
{
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)(i * 31 + i / 251);
    snprintf(folder, sizeof folder, "%s", temp_path(""));
}

static unsigned open_descriptors(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static void request(struct buf *in, size_t n, size_t split)
{
    rec_begin(in, 1);
    rec(in, FCGI_PARAMS, 1, NULL, 0, 0);
    rec_stdin(in, 1, text, n, split);
}

/* Feeds it in pieces, the first of which ends at cut. */
static enum frame_result feed(struct frame *f, const struct frame_limits *limits, const struct buf *in, size_t cut)
{
    size_t used = 0;
    if (cut > 0) {
        ck_assert_int_eq(frame_feed(f, limits, in->data, cut, &used), FRAME_MORE);
        ck_assert_uint_eq(used, cut);
    }
    enum frame_result result = frame_feed(f, limits, in->data + cut, in->len - cut, &used);
    ck_assert_uint_eq(used, in->len - cut);
    return result;
}

static enum frame_result feed_body(struct frame *f, struct frame_limits limits, size_t n, size_t split)
{
    struct buf in = {0};
    request(&in, n, split);
    enum frame_result result = feed(f, &limits, &in, 0);
    buf_free(&in);
    return result;
}

static void file_holds(int fd, size_t n)
{
    static unsigned char back[sizeof text];
    ck_assert_int_ge(fd, 0);
    ck_assert(spool_read(fd, back, n, 0));
    ck_assert_mem_eq(back, text, n);
    ck_assert(!spool_read(fd, back, 1, n));
}

/* memory_max and the body around it; the records' size */
static const struct {
    size_t memory, body, split;
    bool file;
} sizes[] = {
    {1000, 0, 100, false},    {1000, 1, 100, false},     {1000, 999, 100, false},     {1000, 1000, 7, false},
    {1000, 1001, 7, true},    {1000, 1001, 65535, true}, {4096, 4097, 4096, true},    {65536, 65537, 65535, true},
    {0, 1, 1, true},          {1000, 400000, 65535, true}, {262144, 262144, 999, false}, {262144, 400000, 999, true},
};

START_TEST(a_body_beyond_memory_max_is_in_a_file)
{
    struct frame f = {0};
    const struct frame_limits limits = {.body_max = sizeof text, .memory_max = sizes[_i].memory, .spool = folder};
    ck_assert_int_eq(feed_body(&f, limits, sizes[_i].body, sizes[_i].split), FRAME_REQUEST);
    ck_assert_int_eq(f.body_state, FRAME_BODY_OK);
    ck_assert_uint_eq(f.body_bytes, sizes[_i].body);
    int fd = frame_take_spool(&f);
    ck_assert_int_eq(fd >= 0, sizes[_i].file);
    if (fd >= 0) {
        ck_assert_uint_eq(f.body.len, 0);
        ck_assert_uint_eq(f.charged, 0);
        file_holds(fd, sizes[_i].body);
        close(fd);
    }
    ck_assert_int_eq(frame_take_spool(&f), -1);
    frame_free(&f);
}
END_TEST

/* The same request, cut anywhere. */
START_TEST(cut_at_every_byte)
{
    const struct frame_limits limits = {.body_max = 2000, .memory_max = 300, .spool = folder};
    struct buf in = {0};
    request(&in, 1000, 130);
    unsigned before = open_descriptors();
    for (size_t cut = 0; cut < in.len; cut++) {
        struct frame f = {0};
        ck_assert_int_eq(feed(&f, &limits, &in, cut), FRAME_REQUEST);
        int fd = frame_take_spool(&f);
        file_holds(fd, 1000);
        close(fd);
        frame_free(&f);
    }
    ck_assert_uint_eq(open_descriptors(), before);
    buf_free(&in);
}
END_TEST

/* Given up after any number of bytes: no descriptor stays. */
START_TEST(given_up_at_every_byte)
{
    const struct frame_limits limits = {.body_max = 2000, .memory_max = 300, .spool = folder};
    struct buf in = {0};
    request(&in, 1000, 130);
    unsigned before = open_descriptors();
    for (size_t cut = 1; cut < in.len; cut++) {
        struct frame f = {0};
        size_t used;
        ck_assert_int_eq(frame_feed(&f, &limits, in.data, cut, &used), FRAME_MORE);
        if (cut % 2)
            frame_reset(&f);
        frame_free(&f);
    }
    ck_assert_uint_eq(open_descriptors(), before);
    buf_free(&in);
}
END_TEST

START_TEST(a_frame_is_used_again)
{
    struct frame f = {0};
    const struct frame_limits limits = {.body_max = sizeof text, .memory_max = 1000, .spool = folder};
    unsigned before = open_descriptors();
    for (size_t i = 0; i < 20; i++) {
        size_t n = i % 2 ? 500 : 50000;
        ck_assert_int_eq(feed_body(&f, limits, n, 4000), FRAME_REQUEST);
        ck_assert_uint_eq(f.body_bytes, n);
        if (i % 3 == 0) {
            size_t len;
            unsigned char *p = frame_take_body(&f, &len);
            ck_assert_uint_eq(len, n);
            ck_assert_mem_eq(p, text, n);
            free(p);
        }
        frame_reset(&f);
    }
    frame_free(&f);
    ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

START_TEST(too_large_gives_the_file_back)
{
    struct frame f = {0};
    const struct frame_limits limits = {.body_max = 100000, .memory_max = 1000, .spool = folder};
    unsigned before = open_descriptors();
    ck_assert_int_eq(feed_body(&f, limits, 100001, 4000), FRAME_REQUEST);
    ck_assert_int_eq(f.body_state, FRAME_BODY_TOO_LARGE);
    ck_assert_uint_eq(f.body_bytes, 100001);
    ck_assert_int_eq(frame_take_spool(&f), -1);
    ck_assert_uint_eq(open_descriptors(), before);
    frame_free(&f);
}
END_TEST

START_TEST(no_folder_for_it)
{
    struct frame f = {0};
    const struct frame_limits limits = {.body_max = 100000, .memory_max = 1000, .spool = "/nowhere/at/all"};
    ck_assert_int_eq(feed_body(&f, limits, 1001, 4000), FRAME_REQUEST);
    ck_assert_int_eq(f.body_state, FRAME_BODY_NO_MEMORY);
    ck_assert_int_eq(frame_take_spool(&f), -1);
    frame_reset(&f);
    ck_assert_int_eq(feed_body(&f, limits, 1000, 4000), FRAME_REQUEST); /* small ones still go */
    ck_assert_int_eq(f.body_state, FRAME_BODY_OK);
    frame_free(&f);
}
END_TEST

/* Without a folder bodies stay in memory, up to body_max. */
START_TEST(no_body_goes_to_a_file)
{
    struct frame f = {0};
    const struct frame_limits limits = {.body_max = 100000, .memory_max = 1000};
    ck_assert_int_eq(feed_body(&f, limits, 100000, 4000), FRAME_REQUEST);
    ck_assert_int_eq(f.body_state, FRAME_BODY_OK);
    ck_assert_uint_eq(f.body.len, 100000);
    frame_free(&f);
}
END_TEST

/* Which paths' bodies never go to a file. */
static const struct {
    const char *mount, *uri, *target; /* NULL: not sent */
    bool file;
} places[] = {
    {NULL, "/sends/orders", "/x", false},
    {NULL, "/batch", "/batch", false},
    {"", "/sends/a,b", NULL, false},
    {"/h", "/h/sends/orders", NULL, false},
    {"/h/", "/h/batch", NULL, false},
    {NULL, NULL, "/sends/orders?x=1", false},
    {NULL, NULL, "/%73ends//orders", false},
    {"/h", NULL, "/x/../h/sends/a", false},
    {NULL, "/docs/sends/orders", "/sends/orders", true},
    {NULL, "/sends", NULL, true},
    {NULL, "/batches", NULL, true},
    {NULL, "/batch/", NULL, true},
    {"/h", "/sends/orders", NULL, true},
    {"/sends", "/sends/orders", NULL, true},
    {NULL, "/h/sends/orders", NULL, true},
    {NULL, NULL, "/docs/x?/sends/", true},
    {NULL, NULL, NULL, true},
};

static const char *const unspooled[] = {"/sends/", "/batch", NULL};

static enum frame_result feed_to(struct frame *f, const struct frame_limits *limits, int i, size_t n)
{
    struct buf in = {0}, pairs = {0};
    rec_text(&pairs, "REQUEST_METHOD", "POST");
    if (places[i].mount != NULL)
        rec_text(&pairs, "SCRIPT_NAME", places[i].mount);
    if (places[i].uri != NULL)
        rec_text(&pairs, "DOCUMENT_URI", places[i].uri);
    if (places[i].target != NULL)
        rec_text(&pairs, "REQUEST_URI", places[i].target);
    rec_begin(&in, 1);
    rec_params(&in, 1, &pairs, 1000);
    rec_stdin(&in, 1, text, n, 4000);
    enum frame_result result = feed(f, limits, &in, 0);
    buf_free(&in);
    buf_free(&pairs);
    return result;
}

START_TEST(where_it_stays_in_memory)
{
    struct frame f = {0};
    const struct frame_limits limits = {.body_max = 100000, .memory_max = 1000, .spool = folder, .unspooled = unspooled};
    ck_assert_int_eq(feed_to(&f, &limits, _i, 50000), FRAME_REQUEST);
    ck_assert_int_eq(f.body_state, FRAME_BODY_OK);
    ck_assert_uint_eq(f.body.len, places[_i].file ? 0 : 50000);
    ck_assert_int_eq(f.spooled, places[_i].file);
    frame_reset(&f);
    ck_assert_int_eq(feed_body(&f, limits, 1001, 4000), FRAME_REQUEST); /* the next one is another */
    ck_assert(f.spooled);
    frame_free(&f);
}
END_TEST

START_TEST(what_stays_in_memory_has_its_bounds)
{
    struct frame f = {0};
    struct frame_limits limits = {.body_max = 100000, .memory_max = 1000, .spool = folder, .unspooled = unspooled};
    ck_assert_int_eq(feed_to(&f, &limits, 0, 100001), FRAME_REQUEST);
    ck_assert_int_eq(f.body_state, FRAME_BODY_TOO_LARGE);
    frame_reset(&f);
    frame_set_budget(40000);
    ck_assert_int_eq(feed_to(&f, &limits, 0, 90000), FRAME_REQUEST);
    ck_assert_int_eq(f.body_state, FRAME_BODY_NO_MEMORY);
    ck_assert_uint_eq(f.charged, 0);
    frame_free(&f);
}
END_TEST

START_TEST(no_room_on_the_disk)
{
    struct frame f = {0};
    struct rlimit small = {50000, RLIM_INFINITY};
    const struct frame_limits limits = {.body_max = sizeof text, .memory_max = 1000, .spool = folder};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    unsigned before = open_descriptors();
    ck_assert_int_eq(feed_body(&f, limits, 200000, 4000), FRAME_REQUEST);
    ck_assert_int_eq(f.body_state, FRAME_BODY_NO_SPACE);
    ck_assert_uint_eq(f.body_bytes, 200000);
    ck_assert_uint_eq(open_descriptors(), before);
    frame_reset(&f);
    ck_assert_int_eq(feed_body(&f, limits, 50000, 4000), FRAME_REQUEST);
    ck_assert_int_eq(f.body_state, FRAME_BODY_OK);
    frame_free(&f);
}
END_TEST

START_TEST(no_descriptor_for_it)
{
    struct frame f = {0};
    struct rlimit few;
    const struct frame_limits limits = {.body_max = sizeof text, .memory_max = 1000, .spool = folder};
    getrlimit(RLIMIT_NOFILE, &few);
    rlim_t was = few.rlim_cur;
    few.rlim_cur = 3;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    ck_assert_int_eq(feed_body(&f, limits, 200000, 4000), FRAME_REQUEST);
    ck_assert_int_eq(f.body_state, FRAME_BODY_NO_MEMORY);
    few.rlim_cur = was;
    setrlimit(RLIMIT_NOFILE, &few);
    frame_free(&f);
}
END_TEST

/* The memory for bodies is used up: what would not fit there goes to a file at once. */
START_TEST(without_memory_a_small_body_goes_to_a_file)
{
    struct frame f = {0};
    const struct frame_limits limits = {.body_max = sizeof text, .memory_max = 100000, .spool = folder};
    frame_set_budget(0);
    ck_assert_int_eq(feed_body(&f, limits, 900, 100), FRAME_REQUEST);
    ck_assert_int_eq(f.body_state, FRAME_BODY_OK);
    int fd = frame_take_spool(&f);
    file_holds(fd, 900);
    close(fd);
    frame_free(&f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("frame_spool");
    TCase *t = run_case(s, "frame_spool");
    temp_use(t);
    tcase_add_checked_fixture(t, fill, NULL);
    tcase_add_loop_test(t, a_body_beyond_memory_max_is_in_a_file, 0, COUNT(sizes));
    tcase_add_test(t, cut_at_every_byte);
    tcase_add_test(t, given_up_at_every_byte);
    tcase_add_test(t, a_frame_is_used_again);
    tcase_add_test(t, too_large_gives_the_file_back);
    tcase_add_test(t, no_folder_for_it);
    tcase_add_test(t, no_body_goes_to_a_file);
    tcase_add_loop_test(t, where_it_stays_in_memory, 0, COUNT(places));
    tcase_add_test(t, what_stays_in_memory_has_its_bounds);
    tcase_add_test(t, no_room_on_the_disk);
    tcase_add_test(t, no_descriptor_for_it);
    tcase_add_test(t, without_memory_a_small_body_goes_to_a_file);
    return run_suite(s);
}
