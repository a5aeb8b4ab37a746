/*
 * post: a bare libcurl multi loop that posts to a receiver: how fast a courier with libcurl could be that neither reads a
 * queue, nor signs, nor keeps books.
 *
 *   post -b BODYFILE [-c CONNECTIONS] [-n POSTS] [-s STATUS] [-i FROM] [-w whsec_…] [-H 'Name: value']… URL…
 *
 * The URLs take turns. Every post has the bytes of BODYFILE, a webhook-id of its own (from the number FROM on), and the headers
 * given; with -w also a signature that a receiver can verify (Standard Webhooks, v1). Connections are kept. An answer with
 * another status, or none, counts as an error. Prints one line of JSON.
 */
#include "util.h"

#include <curl/curl.h>
#include <getopt.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TRANSFERS_MOST = 1024, HEADERS_MOST = 16, LINE_SIZE = 128, BODY_MOST = 1 << 20, SECRET_MOST = 64 };

static struct {
    const char *headers[HEADERS_MOST];
    size_t headers_len;
    char **urls;
    uint64_t urls_len;
    char *body;
    size_t body_len;
    uint64_t posts;
    uint64_t connections;
    uint64_t first;
    long status;
    unsigned char secret[SECRET_MOST];
    size_t secret_len;
} asked = {.posts = 1000, .connections = 8, .status = 200};

static uint64_t begun, answered, errors;

struct transfer {
    CURL *easy;
    struct curl_slist *headers;
};

static size_t discard(char *bytes, size_t size, size_t count, void *arg)
{
    (void)bytes;
    (void)arg;
    return size * count;
}

/* webhook-signature over ID.TIMESTAMP.BODY. */
static void sign(const char *id, int64_t timestamp, char line[LINE_SIZE])
{
    unsigned char mac[crypto_auth_hmacsha256_BYTES];
    crypto_auth_hmacsha256_state state;
    char before[LINE_SIZE];
    int len = snprintf(before, sizeof before, "%s.%" PRId64 ".", id, timestamp);
    static const char name[] = "webhook-signature: v1,";

    (void)crypto_auth_hmacsha256_init(&state, asked.secret, asked.secret_len);
    (void)crypto_auth_hmacsha256_update(&state, (const unsigned char *)before, (unsigned long long)len);
    (void)crypto_auth_hmacsha256_update(&state, (const unsigned char *)asked.body, asked.body_len);
    (void)crypto_auth_hmacsha256_final(&state, mac);
    memcpy(line, name, sizeof name - 1);
    (void)sodium_bin2base64(line + sizeof name - 1, LINE_SIZE - sizeof name, mac, sizeof mac,
                            sodium_base64_VARIANT_ORIGINAL);
}

static void set_headers(struct transfer *t)
{
    char line[LINE_SIZE];
    char id[LINE_SIZE / 2];

    curl_slist_free_all(t->headers);
    t->headers = NULL;
    (void)snprintf(id, sizeof id, "msg_%026" PRIu64, asked.first + begun);
    (void)snprintf(line, sizeof line, "webhook-id: %s", id);
    t->headers = curl_slist_append(t->headers, line);
    t->headers = curl_slist_append(t->headers, "Expect:");
    if (asked.secret_len > 0) {
        int64_t now = time(NULL);

        (void)snprintf(line, sizeof line, "webhook-timestamp: %" PRId64, now);
        t->headers = curl_slist_append(t->headers, line);
        sign(id, now, line);
        t->headers = curl_slist_append(t->headers, line);
    }
    for (size_t i = 0; i < asked.headers_len; i++)
        t->headers = curl_slist_append(t->headers, asked.headers[i]);
    if (t->headers == NULL)
        die("out of memory");
}

static void begin(CURLM *multi, struct transfer *t)
{
    set_headers(t);
    (void)curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
    (void)curl_easy_setopt(t->easy, CURLOPT_URL, asked.urls[begun % asked.urls_len]);
    if (curl_multi_add_handle(multi, t->easy) != CURLM_OK)
        die("curl_multi_add_handle failed");
    begun++;
}

static void make(struct transfer *t)
{
    t->easy = curl_easy_init();
    if (t->easy == NULL)
        die("out of memory");
    (void)curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
    (void)curl_easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(t->easy, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS, 20000L);
    (void)curl_easy_setopt(t->easy, CURLOPT_USERAGENT, "hanji-bench/1");
    (void)curl_easy_setopt(t->easy, CURLOPT_POST, 1L);
    (void)curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE, (long)asked.body_len);
    (void)curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, asked.body);
    (void)curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, discard);
}

/* Judges what ended, and begins the next with the same handle. */
static void turn(CURLM *multi, const CURLMsg *message)
{
    CURL *easy = message->easy_handle;
    struct transfer *t = NULL;
    long status = 0;

    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&t);
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (message->data.result == CURLE_OK && status == asked.status)
        answered++;
    else
        errors++;
    (void)curl_multi_remove_handle(multi, easy);
    if (begun < asked.posts)
        begin(multi, t);
}

static void run(void)
{
    static struct transfer transfers[TRANSFERS_MOST];
    CURLM *multi = curl_multi_init();

    if (multi == NULL)
        die("out of memory");
    for (uint64_t i = 0; i < asked.connections; i++)
        make(&transfers[i]);
    for (uint64_t i = 0; i < asked.connections && begun < asked.posts; i++)
        begin(multi, &transfers[i]);
    while (answered + errors < asked.posts) {
        const CURLMsg *message;
        int running;
        int left;

        if (curl_multi_perform(multi, &running) != CURLM_OK)
            die("curl_multi_perform failed");
        while ((message = curl_multi_info_read(multi, &left)) != NULL)
            if (message->msg == CURLMSG_DONE)
                turn(multi, message);
        if (answered + errors < asked.posts && curl_multi_poll(multi, NULL, 0, 1000, NULL) != CURLM_OK)
            die("curl_multi_poll failed");
    }
    for (uint64_t i = 0; i < asked.connections; i++) {
        curl_easy_cleanup(transfers[i].easy);
        curl_slist_free_all(transfers[i].headers);
    }
    (void)curl_multi_cleanup(multi);
}

static void read_body(const char *path)
{
    FILE *file = fopen(path, "rb");

    asked.body = malloc(BODY_MOST);
    if (file == NULL || asked.body == NULL)
        die("cannot read %s", path);
    asked.body_len = fread(asked.body, 1, BODY_MOST, file);
    (void)fclose(file);
}

static void read_secret(const char *text)
{
    if (strncmp(text, "whsec_", 6) != 0 ||
        sodium_base642bin(asked.secret, sizeof asked.secret, text + 6, strlen(text + 6), NULL, &asked.secret_len, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0)
        die("-w: not a secret");
}

static void usage(void)
{
    die("usage: post -b BODYFILE [-c CONNECTIONS] [-n POSTS] [-s STATUS] [-i FROM] [-w whsec_...] "
        "[-H 'Name: value']... URL...");
}

static void take_option(int letter)
{
    switch (letter) {
    case 'b':
        read_body(optarg);
        break;
    case 'c':
        asked.connections = parse_number("-c", optarg, 1, TRANSFERS_MOST);
        break;
    case 'n':
        asked.posts = parse_number("-n", optarg, 1, UINT32_MAX);
        break;
    case 's':
        asked.status = (long)parse_number("-s", optarg, 100, 599);
        break;
    case 'i':
        asked.first = parse_number("-i", optarg, 0, UINT32_MAX);
        break;
    case 'w':
        read_secret(optarg);
        break;
    case 'H':
        if (asked.headers_len == HEADERS_MOST)
            die("too many headers");
        asked.headers[asked.headers_len++] = optarg;
        break;
    default:
        usage();
    }
}

int main(int argc, char **argv)
{
    int letter;

    while ((letter = getopt(argc, argv, "b:c:n:s:i:w:H:")) != -1)
        take_option(letter);
    asked.urls = argv + optind;
    asked.urls_len = (uint64_t)(argc - optind);
    if (asked.urls_len == 0 || asked.body == NULL)
        usage();
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
        die("curl_global_init failed");

    int64_t start = now_ns();

    run();

    double seconds = (double)(now_ns() - start) / 1e9;

    (void)printf("{\"answered\":%" PRIu64 ",\"compared\":0,\"errors_total\":%" PRIu64
                 ",\"errors\":{},\"issued\":%" PRIu64 ",\"seconds\":%.6f,\"rate\":%.1f,\"cpu_us_per_request\":%.2f}\n",
                 answered, errors, begun, seconds, (double)answered / seconds,
                 (double)cpu_ns() / 1000.0 / (double)begun);
    curl_global_cleanup();
    return errors == 0 ? 0 : 1;
}
