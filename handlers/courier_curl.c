#include "handlers/courier_curl.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "handlers/courier_answer.h"
#include "handlers/courier_guard.h"

enum {
    CONNECTIONS = 64, /* kept and in use */
    BUFFER_BYTES = 16384,
    SAID_KEPT = 1024, /* a larger answer's memory is given back */
    HEADERS = 5,
    WAIT_MOST_MS = 60000,
    HEADER_ROOM = 32 + COURIER_SIGNATURE_ROOM, /* the longest: webhook-signature, Content-Type */
};

struct flight {
    struct flight *next, **at; /* of those that fly, or next of those kept */
    CURL *easy;
    struct courier_curl *owner;
    struct courier_item *item;
    struct curl_slist headers[HEADERS];
    char text[HEADERS][HEADER_ROOM];
    int64_t began_ms;
    size_t header_bytes;
    bool answered; /* the headers of an answer have come: its status stands */
    bool blocked;  /* its address is not allowed */
    bool own_ca;   /* it is set to authorities of a line */
    struct buf said;
    char why[CURL_ERROR_SIZE];
};

struct courier_curl {
    struct courier_curl_config config;
    CURLM *multi;
    struct flight *kept, *flying;
};

static int64_t mono_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- callbacks ---- */

static bool allowed(struct flight *f, enum courier_place place)
{
    bool ok = place == COURIER_PUBLIC || (place == COURIER_PRIVATE && f->item->target->private_);
    f->blocked |= !ok;
    return ok;
}

static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct flight *f = arg;
    if (purpose != CURLSOCKTYPE_IPCXN || !allowed(f, courier_guard_place(&a->addr, a->addrlen)))
        return CURL_SOCKET_BAD;
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* Also of a connection that was made for another line, which may be allowed more. */
static int before_request(void *arg, char *peer, char *local, int peer_port, int local_port)
{
    (void)local, (void)peer_port, (void)local_port;
    return allowed(arg, courier_guard_text(peer)) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static size_t take_header(char *p, size_t size, size_t n, void *arg)
{
    struct flight *f = arg;
    long status = 0;
    f->header_bytes += size * n;
    if (f->header_bytes > COURIER_HEADERS_MAX)
        return 0;
    bool last = n * size <= 2 && (p[0] == '\r' || p[0] == '\n');
    if (last && curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK &&
        status >= 200) {
        f->answered = true;
        curl_easy_setopt(f->easy, CURLOPT_LOW_SPEED_LIMIT, (long)COURIER_DRIP_BYTES);
        curl_easy_setopt(f->easy, CURLOPT_LOW_SPEED_TIME, (long)COURIER_DRIP_S);
    }
    return size * n;
}

static size_t take_body(char *p, size_t size, size_t n, void *arg)
{
    struct flight *f = arg;
    size_t bytes = size * n, room = COURIER_SAID_MAX - f->said.len;
    if (!buf_add(&f->said, p, bytes < room ? bytes : room, COURIER_SAID_MAX))
        return 0;
    return bytes <= room ? bytes : 0;
}

/* ---- handles ---- */

#define SET(option, value) (curl_easy_setopt(e, CURLOPT_##option, value) == CURLE_OK)

/* All that is the same for every delivery. */
static bool set_common(struct flight *f)
{
    CURL *e = f->easy;
    const struct courier_curl_config *config = &f->owner->config;
    return SET(PRIVATE, f) && SET(ERRORBUFFER, f->why) && SET(NOSIGNAL, 1L) &&
           /* where it goes, and where not */
           SET(PROTOCOLS_STR, "http,https") && SET(FOLLOWLOCATION, 0L) && SET(PROXY, "") &&
           SET(NOPROXY, "*") && SET(DISALLOW_USERNAME_IN_URL, 1L) &&
           SET(NETRC, (long)CURL_NETRC_IGNORED) && SET(OPENSOCKETFUNCTION, open_socket) &&
           SET(OPENSOCKETDATA, f) && SET(PREREQFUNCTION, before_request) && SET(PREREQDATA, f) &&
           /* who it is */
           SET(SSL_VERIFYPEER, 1L) && SET(SSL_VERIFYHOST, 2L) &&
           SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) &&
           /* how long, how much; a resolver that hangs is left behind: nobody waits for it */
           SET(QUICK_EXIT, 1L) &&
           SET(CONNECTTIMEOUT_MS, (long)config->connect_ms) &&
           SET(TIMEOUT_MS, (long)config->total_ms) && SET(HEADERFUNCTION, take_header) &&
           SET(HEADERDATA, f) && SET(WRITEFUNCTION, take_body) && SET(WRITEDATA, f) &&
           SET(BUFFERSIZE, (long)BUFFER_BYTES) && SET(UPLOAD_BUFFERSIZE, (long)BUFFER_BYTES) &&
           SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) && SET(HTTP_CONTENT_DECODING, 0L) &&
           SET(USERAGENT, "hanji-courier/" HANJI_VERSION) && SET(POST, 1L);
}

static void free_flight(struct flight *f)
{
    if (f == NULL)
        return;
    curl_easy_cleanup(f->easy);
    buf_free(&f->said);
    free(f);
}

static struct flight *new_flight(struct courier_curl *c)
{
    struct flight *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    f->owner = c;
    f->easy = curl_easy_init();
    if (f->easy == NULL || !set_common(f)) {
        free_flight(f);
        return NULL;
    }
    return f;
}

/* One that is kept, or a new one. */
static struct flight *get_flight(struct courier_curl *c)
{
    struct flight *f = c->kept;
    if (f == NULL)
        return new_flight(c);
    c->kept = f->next;
    return f;
}

static void keep_flight(struct courier_curl *c, struct flight *f)
{
    f->item = NULL;
    f->said.len = 0;
    if (f->said.cap > SAID_KEPT)
        buf_free(&f->said);
    f->next = c->kept;
    c->kept = f;
}

/* ---- sending ---- */

/* A line's own authorities are instead of the machine's, of which there are a file and a folder. */
static bool set_authorities(struct flight *f)
{
    CURL *e = f->easy;
    const struct courier_target *t = f->item->target;
    if (f->own_ca) {
        curl_easy_reset(e);
        f->own_ca = false;
        if (!set_common(f))
            return false;
    }
    if (t->ca == NULL)
        return true;
    struct curl_blob blob = {.data = t->ca, .len = t->ca_bytes, .flags = CURL_BLOB_COPY};
    f->own_ca = true;
    return SET(CAINFO_BLOB, &blob) && SET(CAPATH, NULL);
}

/* What a header may say. */
static bool visible(const char *text)
{
    for (const char *p = text; *p != 0; p++)
        if (*p < 0x20 || *p > 0x7e)
            return false;
    return text[0] != 0 && strlen(text) < COURIER_SIGNATURE_ROOM;
}

static void set_headers(struct flight *f)
{
    const struct courier_item *item = f->item;
    const char *type = visible(item->type) ? item->type : "application/octet-stream";
    snprintf(f->text[0], HEADER_ROOM, "webhook-id: %s", item->id);
    snprintf(f->text[1], HEADER_ROOM, "webhook-timestamp: %lld", (long long)item->signed_s);
    snprintf(f->text[2], HEADER_ROOM, "webhook-signature: %s", item->signature);
    snprintf(f->text[3], HEADER_ROOM, "Content-Type: %s", type);
    snprintf(f->text[4], HEADER_ROOM, "Expect:");
    for (int i = 0; i < HEADERS; i++) {
        f->headers[i].data = f->text[i];
        f->headers[i].next = i + 1 < HEADERS ? &f->headers[i + 1] : NULL;
    }
}

static bool set_message(struct flight *f)
{
    CURL *e = f->easy;
    const struct courier_item *item = f->item;
    set_headers(f);
    return set_authorities(f) && SET(URL, (const char *)item->target->url) &&
           SET(HTTPHEADER, f->headers) && SET(POSTFIELDS, item->body) &&
           SET(POSTFIELDSIZE_LARGE, (curl_off_t)item->bytes) &&
           SET(LOW_SPEED_LIMIT, 0L) && SET(LOW_SPEED_TIME, 0L);
}

bool courier_curl_send(struct courier_curl *c, struct courier_item *item)
{
    struct flight *f = get_flight(c);
    if (f == NULL)
        return false;
    f->item = item;
    f->header_bytes = 0;
    f->answered = f->blocked = false;
    f->why[0] = 0;
    f->began_ms = mono_ms();
    if (!set_message(f) || curl_multi_add_handle(c->multi, f->easy) != CURLM_OK) {
        free_flight(f);
        return false;
    }
    f->next = c->flying;
    f->at = &c->flying;
    if (f->next != NULL)
        f->next->at = &f->next;
    c->flying = f;
    return true;
}

/* ---- ending ---- */

/* No answer: what went wrong. */
static enum courier_outcome why(const struct flight *f, CURLcode rc, bool sent)
{
    double named = 0;
    if (f->blocked)
        return COURIER_BLOCKED_ADDRESS;
    switch (rc) {
    case CURLE_OUT_OF_MEMORY:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_FAILED_INIT:
    case CURLE_NOT_BUILT_IN:
    case CURLE_LOGIN_DENIED:
    case CURLE_URL_MALFORMAT:
        return COURIER_LOCAL;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return COURIER_DNS;
    case CURLE_COULDNT_CONNECT:
        return COURIER_REFUSED;
    case CURLE_OPERATION_TIMEDOUT:
        curl_easy_getinfo(f->easy, CURLINFO_NAMELOOKUP_TIME, &named);
        return named > 0 || sent ? COURIER_TIMEOUT : COURIER_DNS;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
        return COURIER_TLS;
    default:
        if (sent)
            return COURIER_CUT;
        return rc == CURLE_UNSUPPORTED_PROTOCOL ? COURIER_LOCAL : COURIER_REFUSED;
    }
}

static void tell(const struct flight *f, CURLcode rc, const struct courier_end *end, char *detail)
{
    char text[DB_MARK_DETAIL_MAX];
    char *location = NULL;
    struct str said = {(const char *)f->said.data, f->said.len};
    if (end->outcome == COURIER_REDIRECT &&
        curl_easy_getinfo(f->easy, CURLINFO_REDIRECT_URL, &location) == CURLE_OK &&
        location != NULL) {
        snprintf(text, sizeof text, "Location: %s", location);
        said = (struct str){text, strlen(text)};
    } else if (end->status == 0) {
        const char *what = f->why[0] != 0 ? f->why : curl_easy_strerror(rc);
        said = (struct str){what, strlen(what)};
    }
    if (end->outcome == COURIER_BLOCKED_ADDRESS)
        said = STR_LIT("the address is private, and the line does not allow it");
    courier_printable(said, detail, DB_MARK_DETAIL_MAX);
}

static void ended(struct courier_curl *c, struct flight *f, CURLcode rc)
{
    char detail[DB_MARK_DETAIL_MAX];
    struct courier_end end = {.outcome = COURIER_CUT};
    long status = 0, sent = 0;
    curl_off_t later = 0;
    curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(f->easy, CURLINFO_REQUEST_SIZE, &sent);
    curl_easy_getinfo(f->easy, CURLINFO_RETRY_AFTER, &later);
    bool too_much = f->header_bytes > COURIER_HEADERS_MAX && status >= 200;
    end.sent = sent > 0 && !f->blocked;
    if (f->answered || too_much) {
        end.status = (unsigned)status;
        end.retry_after_s = later;
        courier_answer((struct str){(const char *)f->said.data, f->said.len}, &end);
    } else {
        end.outcome = why(f, rc, end.sent);
    }
    tell(f, rc, &end, detail);
    struct courier_item *item = f->item;
    int64_t took_ms = mono_ms() - f->began_ms;
    curl_multi_remove_handle(c->multi, f->easy);
    *f->at = f->next;
    if (f->next != NULL)
        f->next->at = f->at;
    keep_flight(c, f);
    c->config.ended(c->config.arg, item, &end, took_ms, detail);
}

/* ---- running ---- */

void courier_curl_run(struct courier_curl *c, int64_t wait_ms, const int *fds, unsigned n)
{
    int running, left;
    struct flight *f;
    bool some = false;
    curl_multi_perform(c->multi, &running);
    for (CURLMsg *m; (m = curl_multi_info_read(c->multi, &left)) != NULL;) {
        CURLcode rc = m->data.result;
        if (m->msg != CURLMSG_DONE ||
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&f) != CURLE_OK)
            continue;
        ended(c, f, rc);
        some = true;
    }
    if (some)
        return; /* what may be sent instead goes first */
    struct curl_waitfd extra[COURIER_FDS_MAX];
    for (unsigned i = 0; i < n; i++)
        extra[i] = (struct curl_waitfd){.fd = fds[i], .events = CURL_WAIT_POLLIN};
    curl_multi_poll(c->multi, extra, n, (int)(wait_ms < WAIT_MOST_MS ? wait_ms : WAIT_MOST_MS),
                    NULL);
}

void courier_curl_wake(struct courier_curl *c)
{
    curl_multi_wakeup(c->multi);
}

struct courier_curl *courier_curl_new(const struct courier_curl_config *config)
{
    struct courier_curl *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->config = *config;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(c);
        return NULL;
    }
    c->multi = curl_multi_init();
    if (c->multi == NULL ||
        curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS) != CURLM_OK ||
        curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) != CURLM_OK) {
        courier_curl_free(c);
        return NULL;
    }
    return c;
}

static void free_all(struct courier_curl *c, struct flight *list, bool flying)
{
    for (struct flight *f = list; f != NULL;) {
        struct flight *next = f->next;
        if (flying)
            curl_multi_remove_handle(c->multi, f->easy);
        free_flight(f);
        f = next;
    }
}

void courier_curl_free(struct courier_curl *c)
{
    if (c == NULL)
        return;
    free_all(c, c->flying, true);
    free_all(c, c->kept, false);
    curl_multi_cleanup(c->multi);
    curl_global_cleanup();
    free(c);
}
