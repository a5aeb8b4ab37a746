/* fcgi/codec: pins what is relied on in libfcgi, which decodes parameters from memory here. */
#include "fcgi/codec.h"

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/records.h"
#include "tests/unit/run.h"

/* Collects every pair as "NAME=value" and a newline; stops after `most` of them. */
struct seen {
    struct buf text;
    unsigned count;
    unsigned most;
};

static bool take(void *arg, const char *pair, size_t name_len)
{
    struct seen *s = arg;
    if (strcmp(pair, "FCGI_ROLE=RESPONDER") == 0) /* libfcgi puts it in front of all others: see below */
        return true;
    ck_assert_int_eq(pair[name_len], '=');
    ck_assert_ptr_null(memchr(pair, '=', name_len));
    if (s->count == s->most)
        return false;
    s->count++;
    return buf_add(&s->text, pair, strlen(pair), RECORDS_MAX) && buf_add(&s->text, "\n", 1, RECORDS_MAX);
}

static bool count_only(void *arg, const char *pair, size_t name_len)
{
    (void)pair, (void)name_len;
    ++*(unsigned *)arg;
    return true;
}

/* Puts the pairs into the frame as one request. */
static void collect(struct frame *f, const struct buf *pairs)
{
    struct buf in = {0};
    frame_reset(f);
    rec_begin(&in, 1);
    rec_params(&in, 1, pairs, 65535);
    rec_stdin(&in, 1, NULL, 0, 1);
    ck_assert_int_eq(rec_feed(f, 1000, &in), FRAME_REQUEST);
    buf_free(&in);
}

static bool decode(struct frame *f, const struct buf *pairs, struct seen *s)
{
    *s = (struct seen){.most = 1000};
    collect(f, pairs);
    return codec_decode(f, take, s);
}

static void gives(const struct buf *pairs, const char *expected)
{
    struct frame f = {0};
    struct seen s;
    ck_assert(decode(&f, pairs, &s));
    ck_assert_uint_eq(s.text.len, strlen(expected));
    ck_assert_mem_eq(s.text.data, expected, s.text.len);
    buf_free(&s.text);
    frame_free(&f);
}

START_TEST(parameters_in_order)
{
    struct buf pairs = {0};
    rec_text(&pairs, "REQUEST_METHOD", "GET");
    rec_text(&pairs, "EMPTY", "");
    rec_text(&pairs, "a", "b");
    rec_text(&pairs, "QUERY_STRING", "x=1&y==2");
    gives(&pairs, "REQUEST_METHOD=GET\nEMPTY=\na=b\nQUERY_STRING=x=1&y==2\n");
    buf_free(&pairs);
}
END_TEST

static bool first_is_role(void *arg, const char *pair, size_t name_len)
{
    unsigned *count = arg;
    if ((*count)++ == 0) {
        ck_assert_str_eq(pair, "FCGI_ROLE=RESPONDER");
        ck_assert_uint_eq(name_len, 9);
    }
    return true;
}

START_TEST(libfcgi_adds_one_of_its_own)
{
    struct buf pairs = {0};
    struct frame f = {0};
    unsigned count = 0;
    rec_text(&pairs, "A", "1");
    collect(&f, &pairs);
    ck_assert(codec_decode(&f, first_is_role, &count));
    ck_assert_uint_eq(count, 2);
    buf_free(&pairs);
    frame_free(&f);
}
END_TEST

/* req.c decides what a repeated parameter means, so it must see all of them, the first one first. */
START_TEST(repeated_parameters_are_all_there_in_order)
{
    struct buf pairs = {0};
    rec_text(&pairs, "X", "first");
    rec_text(&pairs, "Y", "between");
    rec_text(&pairs, "X", "second");
    rec_text(&pairs, "X", "");
    gives(&pairs, "X=first\nY=between\nX=second\nX=\n");
    buf_free(&pairs);
}
END_TEST

START_TEST(bytes_are_kept_as_they_are)
{
    struct buf pairs = {0};
    rec_text(&pairs, "A", "\x01\t \xff\xc3\xa9%00\\\"'");
    rec_text(&pairs, "b\xff \x7f", "c");
    gives(&pairs, "A=\x01\t \xff\xc3\xa9%00\\\"'\nb\xff \x7f=c\n");
    buf_free(&pairs);
}
END_TEST

static const size_t lengths[] = {126, 127, 128, 129, 255, 256, 8000, 8191, 8192, 8193, 16384, 30000};

/* Around 127 bytes the encoding of a length changes, around 8192 libfcgi's own buffer is filled again. */
START_TEST(long_names_and_values)
{
    struct buf pairs = {0}, expected = {0};
    static char name[30000], value[30000];
    size_t n = lengths[_i];
    for (size_t i = 0; i < n; i++) {
        name[i] = (char)('A' + i % 26);
        value[i] = (char)('a' + i % 25);
    }
    rec_text(&pairs, "before", "1");
    rec_pair(&pairs, (struct str){name, n}, (struct str){value, n});
    rec_text(&pairs, "after", "2");
    ck_assert(buf_add(&expected, "before=1\n", 9, RECORDS_MAX) && buf_add(&expected, name, n, RECORDS_MAX) &&
              buf_add(&expected, "=", 1, RECORDS_MAX) && buf_add(&expected, value, n, RECORDS_MAX) &&
              buf_add(&expected, "\nafter=2\n", 10, RECORDS_MAX));
    gives(&pairs, (char *)expected.data);
    buf_free(&pairs);
    buf_free(&expected);
}
END_TEST

/* Moves a pair byte by byte across the end of libfcgi's buffer of 8192 bytes, lengths of both forms included. */
START_TEST(pairs_across_the_end_of_the_buffer)
{
    static char fill[8300], value[200];
    memset(fill, 'f', sizeof fill);
    memset(value, 'v', sizeof value);
    for (size_t n = 8000; n < 8300; n++) {
        struct buf pairs = {0};
        struct frame f = {0};
        struct seen s;
        rec_pair(&pairs, STR_LIT("F"), (struct str){fill, n});
        rec_text(&pairs, "SHORT", "value");
        rec_pair(&pairs, STR_LIT("LONG"), (struct str){value, sizeof value});
        ck_assert(decode(&f, &pairs, &s));
        ck_assert_uint_eq(s.count, 3);
        ck_assert_uint_eq(s.text.len, 3 + n + 12 + 6 + sizeof value);
        ck_assert_mem_eq(s.text.data + 3 + n, "SHORT=value\nLONG=vvv", 20);
        buf_free(&s.text);
        buf_free(&pairs);
        frame_free(&f);
    }
}
END_TEST

START_TEST(as_many_pairs_as_are_allowed)
{
    struct buf pairs = {0};
    struct frame f = {0};
    struct seen s;
    for (int i = 0; i < FRAME_PAIRS_MAX; i++) {
        char name[16], value[16];
        snprintf(name, sizeof name, "N%d", i);
        snprintf(value, sizeof value, "%d", i * i);
        rec_text(&pairs, name, value);
    }
    ck_assert(decode(&f, &pairs, &s));
    ck_assert_uint_eq(s.count, FRAME_PAIRS_MAX);
    ck_assert_mem_eq(s.text.data + s.text.len - 11, "N255=65025\n", 11);
    buf_free(&s.text);
    rec_text(&pairs, "ONE", "more");
    ck_assert(!decode(&f, &pairs, &s));
    ck_assert_uint_eq(s.count, 0);
    buf_free(&pairs);
    frame_free(&f);
}
END_TEST

START_TEST(as_many_bytes_as_are_allowed)
{
    struct buf pairs = {0};
    struct frame f = {0};
    struct seen s;
    static char value[FRAME_PARAMS_MAX];
    memset(value, 'v', sizeof value);
    rec_pair(&pairs, STR_LIT("V"), (struct str){value, FRAME_PARAMS_MAX - 6});
    ck_assert_uint_eq(pairs.len, FRAME_PARAMS_MAX);
    for (int again = 0; again < 3; again++) {
        ck_assert(decode(&f, &pairs, &s));
        ck_assert_uint_eq(s.text.len, FRAME_PARAMS_MAX - 6 + 3);
        buf_free(&s.text);
    }
    buf_free(&pairs);
    frame_free(&f);
}
END_TEST

static const struct str malformed[] = {
    STR_LIT(""),         STR_LIT("\1"),         STR_LIT("\1\1a"),      STR_LIT("\1\5ab"),        STR_LIT("\0\1a"),
    STR_LIT("\2\1a=b"),  STR_LIT("\1\1a\0"),    STR_LIT("\1\1\0b"),    STR_LIT("\1\1ab\200\0\0"), STR_LIT("\1\1ab\1"),
    STR_LIT("\377\377\377\377\377\377\377\377"), STR_LIT("\1\377\377\377\377a"),
};

START_TEST(a_block_that_is_malformed_gives_nothing)
{
    struct buf pairs = {0};
    struct frame f = {0};
    struct seen s;
    ck_assert(buf_add(&pairs, malformed[_i].p, malformed[_i].n, 1000));
    ck_assert(!decode(&f, &pairs, &s));
    ck_assert_uint_eq(s.count, 0);
    buf_free(&pairs);
    frame_free(&f);
}
END_TEST

/* What one request leaves behind must not reach the next: refused before libfcgi, by the callback, or not at all. */
START_TEST(the_next_request_is_not_disturbed)
{
    struct buf good = {0}, bad = {0}, large = {0};
    struct frame f = {0};
    struct seen s;
    static char value[20000];
    memset(value, 'v', sizeof value);
    rec_text(&good, "A", "1");
    rec_text(&good, "B", "2");
    rec_pair(&large, STR_LIT("L"), (struct str){value, sizeof value});
    rec_text(&large, "M", "3");
    ck_assert(buf_add(&bad, "\1\1ab\1\1a", 7, 100));
    for (int i = 0; i < 50; i++) {
        ck_assert(!decode(&f, &bad, &s));
        collect(&f, &large);
        s = (struct seen){.most = 1};
        ck_assert(!codec_decode(&f, take, &s));
        ck_assert_uint_eq(s.count, 1);
        buf_free(&s.text);
        ck_assert(decode(&f, &good, &s));
        ck_assert_uint_eq(s.text.len, 8);
        ck_assert_mem_eq(s.text.data, "A=1\nB=2\n", 8);
        buf_free(&s.text);
    }
    buf_free(&good);
    buf_free(&bad);
    buf_free(&large);
    frame_free(&f);
}
END_TEST

/* ---- no descriptor, no leak, any thread ------------------------------------------------------ */

#if defined(__x86_64__) || defined(__i386__)
/* Ends the process at any system call that takes a descriptor. */
static bool forbid_descriptors(void)
{
    static const int calls[] = {
        SYS_read,  SYS_write, SYS_readv, SYS_writev,  SYS_close,    SYS_poll,     SYS_select, SYS_fcntl, SYS_ioctl, SYS_dup,
        SYS_dup2,  SYS_lseek, SYS_fstat, SYS_pipe,    SYS_open,     SYS_openat,   SYS_socket, SYS_accept4,
#if defined(__x86_64__)
        SYS_accept, SYS_recvfrom, SYS_sendto, SYS_recvmsg, SYS_sendmsg, SYS_shutdown, SYS_pread64, SYS_pwrite64,
#endif
    };
    struct sock_filter code[COUNT(calls) * 2 + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    size_t n = 1;
    for (size_t i = 0; i < COUNT(calls); i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)n, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
#else
static bool forbid_descriptors(void)
{
    return false;
}
#endif

enum { CHILD_OK = 0, CHILD_WRONG = 1 };

static _Noreturn void decode_without_descriptors(struct frame *f)
{
    unsigned count = 0;
    forbid_descriptors(); /* where the kernel or an emulator has no such filter, descriptors are counted below */
    bool ok = codec_decode(f, count_only, &count) && count == 3;
    syscall(SYS_exit_group, ok ? CHILD_OK : CHILD_WRONG);
    abort();
}

START_TEST(no_descriptor_is_touched)
{
    struct buf pairs = {0};
    struct frame f = {0};
    static char value[20000];
    memset(value, 'v', sizeof value);
    rec_text(&pairs, "A", "1");
    rec_pair(&pairs, STR_LIT("L"), (struct str){value, sizeof value});
    collect(&f, &pairs);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        decode_without_descriptors(&f);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == CHILD_OK, "status %#x", (unsigned)status);
    buf_free(&pairs);
    frame_free(&f);
}
END_TEST

static unsigned open_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;
    ck_assert_ptr_nonnull(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

/* libfcgi's zero descriptors: closing or reading 0, 1 or 2 would be its favourite mistakes. */
START_TEST(descriptors_stay_open)
{
    struct buf pairs = {0};
    struct frame f = {0};
    struct seen s;
    rec_text(&pairs, "A", "1");
    unsigned before = open_descriptors();
    for (int i = 0; i < 10; i++) {
        ck_assert(decode(&f, &pairs, &s));
        buf_free(&s.text);
    }
    ck_assert_uint_eq(open_descriptors(), before);
    buf_free(&pairs);
    frame_free(&f);
}
END_TEST

/* Bytes in use; under sanitizers, which look for leaks themselves, always 0. */
static size_t in_use(void)
{
#if SANITIZED
    return 0;
#else
    return mallinfo2().uordblks + mallinfo2().hblkhd;
#endif
}

START_TEST(nothing_leaks)
{
    struct buf pairs = {0}, bad = {0};
    struct frame f = {0}, g = {0};
    unsigned count = 0;
    size_t before = 0;
    for (int i = 0; i < 15; i++)
        rec_text(&pairs, "HTTP_SOME_HEADER", "with a value of some length");
    ck_assert(buf_add(&bad, "\1\1ab\1\1a", 7, 100));
    for (unsigned i = 0; i < (SANITIZED ? 10000u : 100000u); i++) {
        collect(&f, &pairs);
        ck_assert(codec_decode(&f, count_only, &count));
        if (i % 10 == 0) {
            collect(&g, &bad);
            ck_assert(!codec_decode(&g, count_only, &count));
        }
        if (i == 1000)
            before = in_use();
    }
    ck_assert_uint_le(in_use(), before);
    ck_assert_uint_eq(count % 16, 0);
    buf_free(&pairs);
    buf_free(&bad);
    frame_free(&f);
    frame_free(&g);
}
END_TEST

static void *decode_often(void *arg)
{
    struct frame f = {0};
    unsigned *count = arg;
    struct buf pairs = {0};
    rec_text(&pairs, "A", "1");
    rec_text(&pairs, "B", "2");
    for (int i = 0; i < 2000; i++) {
        collect(&f, &pairs);
        if (!codec_decode(&f, count_only, count))
            return "refused";
    }
    buf_free(&pairs);
    frame_free(&f);
    return NULL;
}

START_TEST(threads_do_not_meet)
{
    pthread_t threads[4];
    unsigned counts[4] = {0};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, decode_often, &counts[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *said;
        ck_assert_int_eq(pthread_join(threads[i], &said), 0);
        ck_assert_ptr_null(said);
        ck_assert_uint_eq(counts[i], 6000);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("codec");
    TCase *t = run_case(s, "decode");
    tcase_add_test(t, parameters_in_order);
    tcase_add_test(t, libfcgi_adds_one_of_its_own);
    tcase_add_test(t, repeated_parameters_are_all_there_in_order);
    tcase_add_test(t, bytes_are_kept_as_they_are);
    tcase_add_loop_test(t, long_names_and_values, 0, COUNT(lengths));
    tcase_add_test(t, pairs_across_the_end_of_the_buffer);
    tcase_add_test(t, as_many_pairs_as_are_allowed);
    tcase_add_test(t, as_many_bytes_as_are_allowed);
    t = run_case(s, "refused");
    tcase_add_loop_test(t, a_block_that_is_malformed_gives_nothing, 0, COUNT(malformed));
    tcase_add_test(t, the_next_request_is_not_disturbed);
    t = run_case(s, "process");
    tcase_add_test(t, no_descriptor_is_touched);
    tcase_add_test(t, descriptors_stay_open);
    tcase_add_test(t, nothing_leaks);
    tcase_add_test(t, threads_do_not_meet);
    return run_suite(s);
}
