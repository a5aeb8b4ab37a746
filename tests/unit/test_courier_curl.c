/* handlers/courier_curl: what becomes of a delivery to receivers that do what they want. The receiver is a thread here; the
 * path of a request says how it is answered. TLS is in the end-to-end tests. */
#include "handlers/courier_curl.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/run.h"

/* ---- the receiver ---- */

static int listener;
static unsigned port;
static atomic_uint connections, requests;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char seen[4096]; /* the last request, its beginning; read when it was answered */

static bool say(int fd, const char *text)
{
    return send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
}

static void say_again(int fd, const char *text, unsigned times)
{
    for (unsigned i = 0; i < times && say(fd, text); i++)
        ;
}

/* Until the other one has closed, or five seconds. */
static void hang(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    poll(&p, 1, 5000);
}

static void drip(int fd)
{
    say(fd, "HTTP/1.1 503 Later\r\nRetry-After: 7\r\nContent-Length: 900\r\n\r\n");
    for (int i = 0; i < 90 && say(fd, "."); i++)
        usleep(100000);
}

static const struct {
    const char *path, *answer;
} fixed[] = {
    {"/200 ", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
    {"/204 ", "HTTP/1.1 204 None\r\n\r\n"},
    {"/500 ", "HTTP/1.1 500 Bad\r\nContent-Length: 11\r\n\r\nsorry\x01\x1b[1m!"},
    {"/301 ", "HTTP/1.1 301 Moved\r\nLocation: /200\r\nContent-Length: 0\r\n\r\n"},
    {"/307 ", "HTTP/1.1 307 Moved\r\nLocation: /200\r\nContent-Length: 0\r\n\r\n"},
    {"/302 ", "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"},
    {"/gap ", "HTTP/1.1 409 Gap\r\nContent-Length: 27\r\n\r\n{\"code\":\"gap\",\"expected\":3}"},
    {"/410 ", "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"},
    {"/429 ", "HTTP/1.1 429 Slow\r\nRetry-After: 120\r\nContent-Length: 0\r\n\r\n"},
    {"/429-date ", "HTTP/1.1 429 Slow\r\nRetry-After: Wed, 01 Jan 2020 00:00:00 GMT\r\nContent-Length: 0\r\n\r\n"},
    {"/429-soon ", "HTTP/1.1 429 Slow\r\nRetry-After: soon\r\nContent-Length: 0\r\n\r\n"},
    {"/429-big ", "HTTP/1.1 429 Slow\r\nRetry-After: 99999999999999999999\r\nContent-Length: 0\r\n\r\n"},
    {"/100 ", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n"},
    {"/http09 ", "hello, this is no HTTP\r\n"},
    {"/garbage ", "\x16\x03\x01\x00\xff\xff\xff\xff\r\n\r\n"},
    {"/status ", "HTTP/1.1 abc\r\n\r\n"},
    {"/nothing ", ""},
    {"/half-headers ", "HTTP/1.1 200 OK\r\nContent-Le"},
    {"/half-body ", "HTTP/1.1 500 OK\r\nContent-Length: 100\r\n\r\nhalf"},
    {"/half-body-200 ", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"},
    {"/chunk ", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"},
    {"/length ", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"},
    {"/gzip ", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b??"},
};

/* What keeps the connection; the others end it. */
static bool answer(int fd, const char *path)
{
    for (size_t i = 0; i < COUNT(fixed); i++)
        if (strncmp(path, fixed[i].path, strlen(fixed[i].path)) == 0)
            return say(fd, fixed[i].answer) && strstr(fixed[i].answer, "Content-Length: ") != NULL &&
                   strstr(fixed[i].path, "half") == NULL && strstr(fixed[i].path, "length") == NULL;
    if (strncmp(path, "/once ", 6) == 0) /* looks as if it would keep it */
        say(fd, fixed[0].answer);
    if (strncmp(path, "/hang ", 6) == 0)
        hang(fd);
    if (strncmp(path, "/hang-200 ", 10) == 0 && say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"))
        hang(fd);
    if (strncmp(path, "/hang-headers ", 14) == 0 && say(fd, "HTTP/1.1 200 OK\r\nX: "))
        hang(fd);
    if (strncmp(path, "/drip ", 6) == 0)
        drip(fd);
    if (strncmp(path, "/huge ", 6) == 0 && say(fd, "HTTP/1.1 200 OK\r\n\r\n"))
        say_again(fd, "all work and no play makes jack a dull boy\n", 1000000);
    if (strncmp(path, "/huge-headers ", 14) == 0 && say(fd, "HTTP/1.1 200 OK\r\n"))
        say_again(fd, "X-Header: all work and no play makes jack a dull boy\r\n", 1000000);
    if (strncmp(path, "/huge-100 ", 10) == 0)
        say_again(fd, "HTTP/1.1 100 Continue\r\n\r\n", 1000000);
    return false;
}

static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char text[sizeof seen];
    for (bool more = true; more;) {
        size_t n = 0, whole = 0;
        while (whole == 0 || n < whole) {
            ssize_t got = recv(fd, text + n, sizeof text - 1 - n, 0);
            if (got <= 0)
                goto out;
            n += (size_t)got;
            text[n] = 0;
            const char *body = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");
            if (strncmp(text, "POST /413 ", 10) == 0) { /* before the body is there, and gone */
                say(fd, "HTTP/1.1 413 Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                shutdown(fd, SHUT_WR);
                hang(fd);
                goto out;
            }
            if (body != NULL && length != NULL)
                whole = (size_t)(body - text) + 4 + strtoul(length + 16, NULL, 10);
        }
        pthread_mutex_lock(&mutex);
        memcpy(seen, text, n + 1);
        pthread_mutex_unlock(&mutex);
        requests++;
        more = answer(fd, text + 5);
    }
out:
    close(fd);
    return NULL;
}

static void *receive(void *arg)
{
    for (;;) {
        pthread_t thread;
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            return arg;
        connections++;
        if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0)
            pthread_detach(thread);
    }
}

/* libcurl's resolver asks this one: a name server that does not answer. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(name, "slow.invalid") == 0) {
        sleep(5);
        return EAI_AGAIN;
    }
    return real(name, service, hints, found);
}

/* ---- the courier ---- */

static struct courier_curl *curl;
static struct courier_end end;
static char detail[DB_MARK_DETAIL_MAX];
static int64_t took_ms;
static unsigned over;
static char large[300000];

static void ended(void *arg, struct courier_item *item, const struct courier_end *how, int64_t took,
                  const char *text)
{
    ck_assert_ptr_nonnull(item);
    ck_assert_ptr_null(arg);
    item->mark = (struct db_mark){.status = how->status, .counted = how->sent, .took_ms = took,
                                  .wait_until_ms = how->retry_after_s};
    strcpy(item->mark.outcome, courier_outcome_name(how->outcome));
    end = *how;
    took_ms = took;
    strcpy(detail, text);
    over++;
}

static void open_all(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    pthread_t thread;
    const struct courier_curl_config config = {.total_ms = 800, .connect_ms = 500, .ended = ended};
    listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(listen(listener, 64), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&a, &len), 0);
    port = ntohs(a.sin_port);
    ck_assert_int_eq(pthread_create(&thread, NULL, receive, NULL), 0);
    pthread_detach(thread);
    setenv("http_proxy", "http://127.0.0.1:1/", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1/", 1);
    curl = courier_curl_new(&config);
    ck_assert_ptr_nonnull(curl);
    memset(large, 'x', sizeof large);
}

static void close_all(void)
{
    courier_curl_free(curl);
}

/* An item for a URL (of the receiver, when it begins with '/'). */
static struct courier_item *make(const char *url, bool private_)
{
    struct courier_target *t = calloc(1, sizeof *t + 400);
    struct courier_item *item = calloc(1, sizeof *item);
    snprintf(t->url, 400, url[0] == '/' ? "http://127.0.0.1:%2$u%1$s" : "%1$s", url, port);
    t->private_ = private_;
    t->items = 1;
    item->target = t;
    item->body = strdup("{\"a\":1}");
    item->bytes = strlen(item->body);
    item->type = "application/json";
    item->signed_s = 1764547200;
    strcpy(item->id, "msg_01234567890123456789012345");
    strcpy(item->signature, "v1,abc v1a,def");
    return item;
}

static void deliver(struct courier_item *item)
{
    unsigned before = over;
    ck_assert(courier_curl_send(curl, item));
    for (int i = 0; over == before && i < 1000; i++)
        courier_curl_run(curl, 100, NULL, 0);
    ck_assert_uint_eq(over, before + 1);
    courier_item_free(item);
}

static void post(const char *url)
{
    deliver(make(url, true));
}

/* ---- tests ---- */

START_TEST(request)
{
    post("/200");
    ck_assert_int_eq(end.outcome, COURIER_DELIVERED);
    ck_assert(end.sent);
    ck_assert_uint_eq(end.status, 200);
    ck_assert_str_eq(detail, "ok");
    ck_assert_ptr_nonnull(strstr(seen, "POST /200 HTTP/1.1\r\n"));
    ck_assert_ptr_nonnull(strstr(seen, "\r\nwebhook-id: msg_01234567890123456789012345\r\n"));
    ck_assert_ptr_nonnull(strstr(seen, "\r\nwebhook-timestamp: 1764547200\r\n"));
    ck_assert_ptr_nonnull(strstr(seen, "\r\nwebhook-signature: v1,abc v1a,def\r\n"));
    ck_assert_ptr_nonnull(strstr(seen, "\r\nContent-Type: application/json\r\n"));
    ck_assert_ptr_nonnull(strstr(seen, "\r\nUser-Agent: hanji-courier/" HANJI_VERSION "\r\n"));
    ck_assert_ptr_nonnull(strstr(seen, "\r\n\r\n{\"a\":1}"));
    ck_assert_ptr_null(strcasestr(seen, "Expect"));
    ck_assert_ptr_null(strcasestr(seen, "Accept-Encoding"));
    ck_assert_ptr_null(strcasestr(seen, "Cookie"));
    ck_assert_ptr_null(strcasestr(seen, "Authorization"));
}
END_TEST

/* What would be two headers is none of them. */
START_TEST(hostile_type)
{
    static const char *const types[] = {"a/b\r\nX-Evil: 1", "a/b\nX-Evil: 1", "a/b\tX-Evil", "t\xc3\xa9xt/plain", "", "\x7f"};
    for (size_t i = 0; i < COUNT(types); i++) {
        struct courier_item *item = make("/200", true);
        item->type = types[i];
        deliver(item);
        ck_assert_ptr_nonnull(strstr(seen, "\r\nContent-Type: application/octet-stream\r\n"));
        ck_assert_ptr_null(strstr(seen, "Evil"));
    }
}
END_TEST

static const struct {
    const char *url;
    enum courier_outcome outcome;
    unsigned status;
    bool sent;
    int64_t retry_after_s;
    const char *detail; /* NULL: something */
} cases[] = {
    {"/204", COURIER_DELIVERED, 204, true, 0, ""},
    {"/100", COURIER_DELIVERED, 201, true, 0, ""},
    {"/500", COURIER_ERROR, 500, true, 0, "sorry [1m!"},
    {"/301", COURIER_REDIRECT, 301, true, 0, NULL},
    {"/307", COURIER_REDIRECT, 307, true, 0, NULL},
    {"/302", COURIER_REDIRECT, 302, true, 0, "Location: file:///etc/passwd"},
    {"/gap", COURIER_GAP, 409, true, 0, "{\"code\":\"gap\",\"expected\":3}"},
    {"/410", COURIER_GONE, 410, true, 0, ""},
    {"/429", COURIER_THROTTLED, 429, true, 120, ""},
    {"/429-soon", COURIER_THROTTLED, 429, true, 0, ""},
    {"/429-big", COURIER_THROTTLED, 429, true, 0, ""},
    {"/http09", COURIER_CUT, 0, true, 0, NULL},
    {"/garbage", COURIER_CUT, 0, true, 0, NULL},
    {"/status", COURIER_CUT, 0, true, 0, NULL},
    {"/nothing", COURIER_CUT, 0, true, 0, NULL},
    {"/half-headers", COURIER_CUT, 0, true, 0, NULL},
    {"/half-body", COURIER_ERROR, 500, true, 0, "half"},
    {"/half-body-200", COURIER_DELIVERED, 200, true, 0, "half"},
    {"/chunk", COURIER_DELIVERED, 200, true, 0, ""},
    {"/length", COURIER_CUT, 0, true, 0, NULL},
    {"/gzip", COURIER_DELIVERED, 200, true, 0, "??"},
    {"/huge-headers", COURIER_DELIVERED, 200, true, 0, ""},
    {"/huge-100", COURIER_CUT, 0, true, 0, NULL},
    {"http://127.0.0.1:1/", COURIER_REFUSED, 0, false, 0, NULL},
    {"http://nowhere.invalid/", COURIER_DNS, 0, false, 0, NULL},
    {"ftp://127.0.0.1/", COURIER_LOCAL, 0, false, 0, NULL},
    {"file:///etc/passwd", COURIER_LOCAL, 0, false, 0, NULL},
    {"http://", COURIER_LOCAL, 0, false, 0, NULL},
    {"http://a b/", COURIER_LOCAL, 0, false, 0, NULL},
    {"http://169.254.169.254/", COURIER_BLOCKED_ADDRESS, 0, false, 0, NULL},
    {"http://0.0.0.0:80/", COURIER_BLOCKED_ADDRESS, 0, false, 0, NULL},
};

START_TEST(receivers)
{
    ck_assert_uint_lt(_i, COUNT(cases));
    post(cases[_i].url);
    ck_assert_msg(end.outcome == cases[_i].outcome && end.status == cases[_i].status && end.sent == cases[_i].sent,
                  "%s: %s %u sent %d: %s", cases[_i].url, courier_outcome_name(end.outcome), end.status, end.sent, detail);
    ck_assert_int_eq(end.retry_after_s, cases[_i].retry_after_s);
    if (cases[_i].detail != NULL)
        ck_assert_str_eq(detail, cases[_i].detail);
    ck_assert_int_lt(took_ms, 2500);
}
END_TEST

static const struct {
    const char *url;
    enum courier_outcome outcome;
    unsigned status;
    int64_t retry_after_s;
} slow[] = {
    {"/hang", COURIER_TIMEOUT, 0, 0},
    {"/hang-headers", COURIER_TIMEOUT, 0, 0},
    {"/hang-200", COURIER_DELIVERED, 200, 0},
    {"/drip", COURIER_THROTTLED, 503, 7},
};

/* All at once, each until its time is over. */
START_TEST(slow_receivers)
{
    struct courier_item *items[COUNT(slow)];
    for (size_t i = 0; i < COUNT(slow); i++) {
        items[i] = make(slow[i].url, true);
        ck_assert(courier_curl_send(curl, items[i]));
    }
    for (int i = 0; over < COUNT(slow) && i < 1000; i++)
        courier_curl_run(curl, 100, NULL, 0);
    for (size_t i = 0; i < COUNT(slow); i++) {
        const struct db_mark *mark = &items[i]->mark;
        ck_assert_str_eq(mark->outcome, courier_outcome_name(slow[i].outcome));
        ck_assert_uint_eq(mark->status, slow[i].status);
        ck_assert_int_eq(mark->wait_until_ms, slow[i].retry_after_s);
        ck_assert(mark->counted);
        ck_assert_int_ge(mark->took_ms, 700);
        ck_assert_int_lt(mark->took_ms, 2500);
        courier_item_free(items[i]);
    }
}
END_TEST

START_TEST(retry_after_past)
{
    post("/429-date");
    ck_assert_int_le(end.retry_after_s, 0);
}
END_TEST

/* Not followed: nothing else was asked for. */
START_TEST(redirects)
{
    post("/307");
    post("/301");
    ck_assert_uint_eq(requests, 2);
    ck_assert_ptr_nonnull(strstr(detail, "/200"));
}
END_TEST

START_TEST(huge)
{
    post("/huge");
    ck_assert_int_eq(end.outcome, COURIER_DELIVERED);
    ck_assert_uint_eq(strlen(detail), DB_MARK_DETAIL_MAX - 1);
    ck_assert_int_lt(took_ms, 1000);
}
END_TEST

START_TEST(early_413)
{
    struct courier_item *item = make("/413", true);
    free(item->body);
    item->body = memcpy(malloc(sizeof large), large, sizeof large);
    item->bytes = sizeof large;
    deliver(item);
    ck_assert_int_eq(end.outcome, COURIER_TOO_LARGE);
    ck_assert_uint_eq(end.status, 413);
}
END_TEST

START_TEST(kept_connection)
{
    for (int i = 0; i < 5; i++)
        post("/200");
    ck_assert_uint_eq(connections, 1);
}
END_TEST

/* One that the receiver has closed meanwhile costs nothing but a new one. */
START_TEST(dead_connection)
{
    for (int i = 0; i < 5; i++) {
        post("/once");
        ck_assert_int_eq(end.outcome, COURIER_DELIVERED);
    }
    ck_assert_uint_eq(requests, 5);
}
END_TEST

/* In every spelling, and on a connection that a line made which may. */
START_TEST(private_addresses)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", "2130706433", "0x7f.1", "0177.0.0.1", "127.1",
                                        "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "10.0.0.1", "192.168.0.1"};
    for (size_t i = 0; i < COUNT(hosts); i++) {
        char url[100];
        snprintf(url, sizeof url, "http://%s:%u/200", hosts[i], port);
        deliver(make(url, false));
        ck_assert_msg(end.outcome == COURIER_BLOCKED_ADDRESS && !end.sent, "%s: %s", url, detail);
    }
    ck_assert_uint_eq(connections, 0);
}
END_TEST

START_TEST(borrowed_connection)
{
    post("/200");
    deliver(make("/200", false));
    ck_assert_int_eq(end.outcome, COURIER_BLOCKED_ADDRESS);
    ck_assert(!end.sent);
    ck_assert_uint_eq(requests, 1);
    post("/200");
    ck_assert_int_eq(end.outcome, COURIER_DELIVERED);
}
END_TEST

START_TEST(user_in_url)
{
    char url[100];
    snprintf(url, sizeof url, "http://user:secret@127.0.0.1:%u/200", port);
    post(url);
    ck_assert_int_eq(end.outcome, COURIER_LOCAL);
    ck_assert_uint_eq(connections, 0);
}
END_TEST

/* Many at once, some of which hang, and an end in the middle of it. */
START_TEST(many)
{
    struct courier_item *items[60];
    for (size_t i = 0; i < COUNT(items); i++) {
        items[i] = make(i % 3 == 0 ? "/hang" : "/200", true);
        ck_assert(courier_curl_send(curl, items[i]));
    }
    for (int i = 0; over < 40 && i < 1000; i++)
        courier_curl_run(curl, 100, NULL, 0);
    ck_assert_uint_eq(over, 40);
    courier_curl_free(curl);
    curl = NULL;
    for (size_t i = 0; i < COUNT(items); i++)
        courier_item_free(items[i]);
}
END_TEST

/* Who waits for a name holds up nobody, neither while it waits nor when its time is over. */
START_TEST(slow_resolver)
{
    struct timespec from, to;
    struct courier_item *slow_one = make("http://slow.invalid/", true);
    clock_gettime(CLOCK_MONOTONIC, &from);
    ck_assert(courier_curl_send(curl, slow_one));
    post("/200");
    ck_assert_int_eq(end.outcome, COURIER_DELIVERED);
    for (int i = 0; over < 2 && i < 1000; i++)
        courier_curl_run(curl, 100, NULL, 0);
    ck_assert_str_eq(slow_one->mark.outcome, "dns");
    ck_assert(!slow_one->mark.counted);
    courier_item_free(slow_one);
    courier_curl_free(curl);
    curl = NULL;
    clock_gettime(CLOCK_MONOTONIC, &to);
    ck_assert_int_le(to.tv_sec - from.tv_sec, 3);
}
END_TEST

START_TEST(waiting)
{
    int pipes[2];
    struct timespec from, to;
    ck_assert_int_eq(pipe(pipes), 0);
    clock_gettime(CLOCK_MONOTONIC, &from);
    courier_curl_wake(curl);
    courier_curl_run(curl, 10000, pipes, 1);
    ck_assert_int_eq(write(pipes[1], "x", 1), 1);
    courier_curl_run(curl, 10000, pipes, 1);
    clock_gettime(CLOCK_MONOTONIC, &to);
    ck_assert_int_lt(to.tv_sec - from.tv_sec, 5);
    close(pipes[0]);
    close(pipes[1]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("courier_curl");
    TCase *c = run_case(s, "deliveries");
    tcase_add_checked_fixture(c, open_all, close_all);
    tcase_add_test(c, request);
    tcase_add_test(c, hostile_type);
    tcase_add_loop_test(c, receivers, 0, COUNT(cases));
    tcase_add_test(c, slow_receivers);
    tcase_add_test(c, retry_after_past);
    tcase_add_test(c, redirects);
    tcase_add_test(c, huge);
    tcase_add_test(c, early_413);
    tcase_add_test(c, kept_connection);
    tcase_add_test(c, dead_connection);
    tcase_add_test(c, private_addresses);
    tcase_add_test(c, borrowed_connection);
    tcase_add_test(c, user_in_url);
    tcase_add_test(c, many);
    tcase_add_test(c, slow_resolver);
    tcase_add_test(c, waiting);
    return run_suite(s);
}
