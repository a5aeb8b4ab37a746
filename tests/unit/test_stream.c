/* fcgi/loop with streams and parks: a loop over a socket in the test's folder, an app that does what the path says. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fcgi/loop.h"
#include "tests/unit/records.h"
#include "tests/unit/temp.h"

enum { PIECE = 60000, ENDLESS = 1 << 30 };

static struct loop *loop;
static pthread_t loop_thread;
static int listener;

/* ---- the app --------------------------------------------------------------------------------- */

enum end { END_WELL, END_BREAK };

struct source {
    struct stream stream;
    int at, pieces;
    bool waits; /* STREAM_WAIT after each piece */
    enum end end;
    struct source *next; /* of those that wait */
};

struct chain {
    struct park park;
    int left; /* parks still to come */
};

static struct source *waiting; /* the loop's thread only */
static atomic_uint opened, closed, fills, answers, released, parked;
static atomic_bool hold; /* parks are kept until it is false */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct park *held;

static enum stream_state state_after(struct source *s)
{
    if (s->at >= s->pieces)
        return s->end == END_BREAK ? STREAM_BREAK : STREAM_END;
    if (!s->waits)
        return STREAM_MORE;
    s->next = waiting;
    waiting = s;
    return STREAM_WAIT;
}

static enum stream_state fill(struct stream *stream, struct call *c)
{
    static char piece[PIECE];
    struct source *s = (struct source *)stream;
    ck_assert_ptr_null(c->req);
    ck_assert_ptr_null(c->park);
    atomic_fetch_add(&fills, 1);
    if (s->at < s->pieces) {
        memset(piece, 'a' + s->at % 26, sizeof piece);
        resp_write(c->resp, piece, s->waits ? 10 : sizeof piece);
        s->at++;
    }
    return state_after(s);
}

static void close_source(struct stream *stream)
{
    for (struct source **p = &waiting; *p != NULL; p = &(*p)->next)
        if (*p == (struct source *)stream) {
            *p = (*p)->next;
            break;
        }
    atomic_fetch_add(&closed, 1);
    free(stream);
}

static enum verdict begin_stream(struct call *c, const char *how, int pieces)
{
    struct source *s = calloc(1, sizeof *s);
    s->pieces = pieces;
    s->waits = strcmp(how, "wait") == 0;
    s->end = strcmp(how, "break") == 0 ? END_BREAK : END_WELL;
    s->stream.fill = fill;
    s->stream.close = close_source;
    resp_start(c->resp, 200);
    resp_no_body(c->resp);
    atomic_fetch_add(&opened, 1);
    loop_stream(c, &s->stream);
    return STREAM;
}

static void reply(struct call *c, const char *text)
{
    resp_start(c->resp, 200);
    resp_body(c->resp, text, strlen(text));
    atomic_fetch_add(&answers, 1);
}

static void give_to_resumer(struct park *p)
{
    pthread_mutex_lock(&lock);
    p->next = held;
    held = p;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&parked, 1);
}


static enum verdict resume(struct park *p, struct call *c)
{
    struct chain *was = (struct chain *)p;
    if (c->resp == NULL) {
        atomic_fetch_add(&released, 1);
        return REPLY;
    }
    if (was->left == -1)
        return begin_stream(c, "more", 3);
    if (was->left == -2)
        return FAIL;
    if (was->left == 0) {
        reply(c, "resumed");
        return REPLY;
    }
    struct chain *next = loop_park(c, sizeof *next, resume);
    next->left = was->left - 1;
    give_to_resumer(&next->park);
    return PARK;
}

static enum verdict answer(struct call *c)
{
    char how[16] = "";
    int n = 0;
    if (sscanf(c->req->path.p, "/%15[a-z]/%d", how, &n) < 1 || strcmp(how, "reply") == 0) {
        reply(c, "replied");
        return REPLY;
    }
    if (strcmp(how, "fail") == 0)
        return FAIL;
    if (strcmp(how, "park") != 0)
        return begin_stream(c, how, n);
    struct chain *p = loop_park(c, sizeof *p, resume);
    p->left = n;
    give_to_resumer(&p->park);
    return PARK;
}

static void ready_all(void *thread)
{
    struct source *list = waiting;
    (void)thread;
    waiting = NULL;
    for (struct source *next; list != NULL; list = next) {
        next = list->next;
        loop_stream_ready(&list->stream);
    }
}

static void end_all(void *thread)
{
    for (struct source *s = waiting; s != NULL; s = s->next)
        s->at = s->pieces;
    ready_all(thread);
}

static void *open_app(struct loop *l, void *arg)
{
    (void)l;
    return arg;
}

static void nothing(void *thread)
{
    (void)thread;
}

static const struct loop_app app = {.open = open_app,
                               .close = nothing,
                               .answer = answer,
                               .round_end = nothing,
                               .poked = ready_all,
                               .timer = nothing,
                               .drain = end_all,
                               .arg = &opened};

/* ---- around it ------------------------------------------------------------------------------- */

static atomic_bool stopping;
static pthread_t resumer;

static void *resume_held(void *arg)
{
    (void)arg;
    while (!atomic_load(&stopping)) {
        pthread_mutex_lock(&lock);
        struct park *list = atomic_load(&hold) ? NULL : held;
        if (list != NULL)
            held = NULL;
        pthread_mutex_unlock(&lock);
        loop_resume(list);
        usleep(200);
    }
    return NULL;
}

static void *run(void *arg)
{
    loop_run(arg);
    return NULL;
}

static void set_up(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max; /* both ends are in this process */
    setrlimit(RLIMIT_NOFILE, &files);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", temp_path("s"));
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(listener, 4096), 0);
    const struct loop_config config = {.app = &app,
                                       .listener = listener,
                                       .control = -1,
                                       .limits = {.body_max = 1000, .memory_max = 1000},
                                       .max_connections = 4000,
                                       .output_bytes = 64 << 20,
                                       .request_timeout_ms = 20000,
                                       .write_timeout_ms = 20000};
    loop = loop_new(&config);
    ck_assert_ptr_nonnull(loop);
    ck_assert_int_eq(pthread_create(&loop_thread, NULL, run, loop), 0);
    ck_assert_int_eq(pthread_create(&resumer, NULL, resume_held, NULL), 0);
}

static void drain(uint64_t at_most_ms)
{
    loop_drain(loop, at_most_ms);
    pthread_join(loop_thread, NULL);
}

static void tear_down(void)
{
    atomic_store(&hold, false);
    drain(0);
    atomic_store(&stopping, true);
    pthread_join(resumer, NULL);
    loop_free(loop);
    close(listener);
    ck_assert_uint_eq(closed, opened);
}

static int connect_to(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", temp_path("s"));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_msg(connect(fd, (struct sockaddr *)&at, sizeof at) == 0, "%s", strerror(errno));
    return fd;
}

static void ask(int fd, const char *path)
{
    struct buf pairs = {0}, out = {0};
    rec_text(&pairs, "REQUEST_METHOD", "GET");
    rec_text(&pairs, "DOCUMENT_URI", path);
    rec_request(&out, &pairs, NULL, 0);
    ck_assert_int_eq(write(fd, out.data, out.len), out.len);
    buf_free(&pairs);
    buf_free(&out);
}

static bool read_all(int fd, void *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = read(fd, (char *)p + at, n - at);
        if (got <= 0)
            return false;
        at += (size_t)got;
    }
    return true;
}

/* Reads an answer to its end; false when the connection ended first. The body goes to `body`, behind the head. */
static bool answered(int fd, struct buf *body)
{
    static unsigned char content[65536];
    unsigned char h[FRAME_HEADER_BYTES];
    body->len = 0;
    while (read_all(fd, h, sizeof h)) {
        size_t n = (size_t)h[4] << 8 | h[5];
        if (!read_all(fd, content, n) || (h[6] > 0 && !read_all(fd, h, h[6])))
            return false;
        if (h[1] == FCGI_END_REQUEST) {
            const unsigned char *end = memmem(body->data, body->len, "\r\n\r\n", 4);
            ck_assert_ptr_nonnull(end);
            size_t head = (size_t)(end + 4 - body->data);
            memmove(body->data, body->data + head, body->len - head);
            body->len -= head;
            return true;
        }
        ck_assert(h[1] != FCGI_STDOUT || buf_add(body, content, n, 64 << 20));
    }
    return false;
}

static void wait_until(atomic_uint *counter, unsigned n)
{
    for (int i = 0; atomic_load(counter) < n; i++) {
        ck_assert_msg(i < 100000, "%u of %u", atomic_load(counter), n);
        usleep(100);
    }
}

static void is_stream(const struct buf *body, int pieces)
{
    ck_assert_uint_eq(body->len, (size_t)pieces * PIECE);
    for (int i = 0; i < pieces; i++)
        for (size_t j = 0; j < PIECE; j += 997)
            ck_assert_int_eq(body->data[(size_t)i * PIECE + j], 'a' + i % 26);
}

static void still_answers(void)
{
    struct buf body = {0};
    int fd = connect_to();
    ask(fd, "/reply");
    ck_assert(answered(fd, &body));
    ck_assert_uint_eq(body.len, 7);
    buf_free(&body);
    close(fd);
}

/* ---- streams --------------------------------------------------------------------------------- */

static const int counts[] = {0, 1, 2, 40, 200};

START_TEST(all_pieces_in_order)
{
    struct buf body = {0};
    char path[32];
    int fd = connect_to();
    snprintf(path, sizeof path, "/more/%d", counts[_i]);
    for (int i = 0; i < 3; i++) { /* the connection is used again */
        ask(fd, path);
        ck_assert(answered(fd, &body));
        is_stream(&body, counts[_i]);
    }
    buf_free(&body);
    close(fd);
}
END_TEST

START_TEST(a_request_behind_a_stream_waits_for_its_end)
{
    struct buf body = {0};
    int fd = connect_to();
    ask(fd, "/more/50");
    ask(fd, "/reply");
    ck_assert(answered(fd, &body));
    is_stream(&body, 50);
    ck_assert(answered(fd, &body));
    ck_assert_uint_eq(body.len, 7);
    buf_free(&body);
    close(fd);
}
END_TEST

START_TEST(a_stream_that_waits_is_asked_when_it_is_ready)
{
    struct buf body = {0};
    int fd = connect_to();
    ask(fd, "/wait/5");
    for (unsigned i = 1; i <= 5; i++) {
        wait_until(&fills, i);
        usleep(5000);
        ck_assert_uint_eq(fills, i);
        loop_poke(loop);
    }
    ck_assert(answered(fd, &body));
    ck_assert_uint_eq(body.len, 50);
    buf_free(&body);
    close(fd);
}
END_TEST

/* The client must see that bytes are missing: no end of the request, and the connection goes. */
START_TEST(a_stream_that_breaks)
{
    struct buf body = {0};
    int fd = connect_to();
    ask(fd, "/break/3");
    ck_assert(!answered(fd, &body));
    wait_until(&closed, 1);
    buf_free(&body);
    close(fd);
    still_answers();
}
END_TEST

START_TEST(the_peer_leaves)
{
    char some[1000];
    for (unsigned i = 1; i <= 50; i++) {
        int fd = connect_to();
        ask(fd, i % 2 ? "/more/1000000000" : "/wait/1000000000");
        if (i % 3)
            ck_assert(read_all(fd, some, 20));
        close(fd);
    }
    wait_until(&closed, opened);
    wait_until(&opened, 1);
    still_answers();
}
END_TEST

/* The peer says that it sends no more, which is how a web server gives up. */
START_TEST(the_peer_stops_sending)
{
    int fd = connect_to();
    ask(fd, "/wait/1000000000");
    wait_until(&fills, 1);
    shutdown(fd, SHUT_WR);
    wait_until(&closed, 1);
    close(fd);
}
END_TEST

/* One that does not read costs a piece, however long its stream. */
START_TEST(a_slow_reader)
{
    int fd = connect_to();
    ask(fd, "/more/1000000000");
    wait_until(&fills, 1);
    usleep(100000);
    unsigned was = fills;
    usleep(100000);
    ck_assert_uint_eq(fills, was);
    ck_assert_uint_lt(was, 20);
    still_answers();
    close(fd);
    wait_until(&closed, 1);
}
END_TEST

static atomic_bool enough;

static void *swallow(void *arg)
{
    char sink[65536];
    int fd = *(int *)arg;
    while (!atomic_load(&enough) && read(fd, sink, sizeof sink) > 0)
        continue;
    return NULL;
}

START_TEST(fast_readers_do_not_hold_the_others)
{
    pthread_t threads[4];
    int fds[4];
    for (int i = 0; i < 4; i++) {
        fds[i] = connect_to();
        ask(fds[i], "/more/1000000000");
        ck_assert_int_eq(pthread_create(&threads[i], NULL, swallow, &fds[i]), 0);
    }
    wait_until(&fills, 100);
    for (int i = 0; i < 50; i++)
        still_answers();
    atomic_store(&enough, true);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        close(fds[i]);
    }
    wait_until(&closed, 4);
}
END_TEST

START_TEST(many_streams)
{
    enum { MANY = 400 };
    static int fds[MANY];
    struct buf body = {0};
    for (int i = 0; i < MANY; i++) {
        fds[i] = connect_to();
        ask(fds[i], "/more/9");
    }
    for (int i = 0; i < MANY; i++) {
        ck_assert(answered(fds[i], &body));
        is_stream(&body, 9);
        close(fds[i]);
    }
    wait_until(&closed, MANY);
    buf_free(&body);
}
END_TEST

START_TEST(a_drain_ends_what_waits_and_lets_the_rest_finish)
{
    struct buf body = {0};
    int waits = connect_to(), sends = connect_to();
    ask(waits, "/wait/1000000000");
    ask(sends, "/more/100");
    wait_until(&opened, 2);
    wait_until(&fills, 2);
    loop_drain(loop, 10000);
    ck_assert(answered(waits, &body));
    ck_assert_uint_ge(body.len, 10);
    ck_assert(answered(sends, &body));
    is_stream(&body, 100);
    close(waits);
    close(sends);
    buf_free(&body);
    pthread_join(loop_thread, NULL);
    ck_assert_int_eq(pthread_create(&loop_thread, NULL, run, loop), 0); /* for tear_down */
}
END_TEST

/* ---- parks ----------------------------------------------------------------------------------- */

START_TEST(parked_again_and_again)
{
    struct buf body = {0};
    int fd = connect_to();
    ask(fd, "/park/20");
    ck_assert(answered(fd, &body));
    ck_assert_uint_eq(body.len, 7);
    ck_assert_uint_eq(parked, 21);
    ask(fd, "/park/0");
    ck_assert(answered(fd, &body));
    buf_free(&body);
    close(fd);
}
END_TEST

START_TEST(a_parked_request_may_go_on_as_a_stream)
{
    struct buf body = {0};
    int fd = connect_to();
    ask(fd, "/park/-1");
    ck_assert(answered(fd, &body));
    is_stream(&body, 3);
    buf_free(&body);
    close(fd);
}
END_TEST

/* Nothing could be built: a clean 500, and the connection is good for the next one. */
START_TEST(one_that_fails)
{
    static const char *const paths[] = {"/fail", "/park/-2"};
    struct buf body = {0};
    int fd = connect_to();
    for (size_t i = 0; i < COUNT(paths); i++) {
        ask(fd, paths[i]);
        ck_assert(answered(fd, &body));
        ask(fd, "/reply");
        ck_assert(answered(fd, &body));
        ck_assert_uint_eq(body.len, 7);
    }
    ck_assert_uint_eq(loop_get_stats(loop)->requests[5], COUNT(paths));
    buf_free(&body);
    close(fd);
}
END_TEST

/* All are answered, and others meanwhile. */
START_TEST(more_than_a_round_takes_come_back_at_once)
{
    enum { MANY = 1500 };
    static int fds[MANY];
    struct buf body = {0};
    atomic_store(&hold, true);
    for (int i = 0; i < MANY; i++) {
        fds[i] = connect_to();
        ask(fds[i], "/park/1");
    }
    wait_until(&parked, MANY);
    atomic_store(&hold, false);
    still_answers();
    for (int i = 0; i < MANY; i++) {
        ck_assert(answered(fds[i], &body));
        close(fds[i]);
    }
    ck_assert_uint_eq(answers, MANY + 1);
    buf_free(&body);
}
END_TEST

/* Whoever has the park brings it back, only to be released. */
START_TEST(the_peer_leaves_while_it_is_parked)
{
    enum { MANY = 100 };
    atomic_store(&hold, true);
    for (unsigned i = 0; i < MANY; i++) {
        int fd = connect_to();
        ask(fd, "/park/3");
        wait_until(&parked, i + 1);
        close(fd);
    }
    usleep(20000);
    atomic_store(&hold, false);
    wait_until(&released, MANY);
    ck_assert_uint_eq(answers, 0);
    still_answers();
}
END_TEST

/* A drain waits for what is parked, whatever its time says: nothing may come back to a loop that is gone. */
START_TEST(a_drain_waits_for_parks)
{
    struct buf body = {0};
    int fd = connect_to();
    atomic_store(&hold, true);
    ask(fd, "/park/0");
    wait_until(&parked, 1);
    loop_drain(loop, 0);
    usleep(50000);
    ck_assert_uint_eq(answers, 0);
    atomic_store(&hold, false);
    pthread_join(loop_thread, NULL);
    ck_assert_uint_eq(answers + released, 1);
    close(fd);
    buf_free(&body);
    ck_assert_int_eq(pthread_create(&loop_thread, NULL, run, loop), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("stream");
    TCase *t = run_case(s, "streams");
    temp_use(t);
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_loop_test(t, all_pieces_in_order, 0, COUNT(counts));
    tcase_add_test(t, a_request_behind_a_stream_waits_for_its_end);
    tcase_add_test(t, a_stream_that_waits_is_asked_when_it_is_ready);
    tcase_add_test(t, a_stream_that_breaks);
    tcase_add_test(t, the_peer_leaves);
    tcase_add_test(t, the_peer_stops_sending);
    tcase_add_test(t, a_slow_reader);
    tcase_add_test(t, fast_readers_do_not_hold_the_others);
    tcase_add_test(t, many_streams);
    tcase_add_test(t, a_drain_ends_what_waits_and_lets_the_rest_finish);
    t = run_case(s, "parks");
    temp_use(t);
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, parked_again_and_again);
    tcase_add_test(t, a_parked_request_may_go_on_as_a_stream);
    tcase_add_test(t, one_that_fails);
    tcase_add_test(t, more_than_a_round_takes_come_back_at_once);
    tcase_add_test(t, the_peer_leaves_while_it_is_parked);
    tcase_add_test(t, a_drain_waits_for_parks);
    return run_suite(s);
}
