#include "fcgi/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "fcgi/frame.h"
#include "fcgi/resp.h"

enum { ANSWER_MAX_BYTES = 16 << 20, ANSWER_TIMEOUT_S = 30, NO_ANSWER = 599 };

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = ANSWER_TIMEOUT_S};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* A length takes one byte below 128, else four. */
static bool add_length(struct buf *out, size_t n)
{
    unsigned char b[4] = {(unsigned char)(n >> 24 | 0x80), (unsigned char)(n >> 16),
                          (unsigned char)(n >> 8), (unsigned char)n};
    return n < 128 ? buf_add(out, b + 3, 1, ANSWER_MAX_BYTES)
                   : buf_add(out, b, 4, ANSWER_MAX_BYTES);
}

static bool add_pair(struct buf *out, const char *name, struct str value)
{
    return add_length(out, strlen(name)) && add_length(out, value.n) &&
           buf_add(out, name, strlen(name), ANSWER_MAX_BYTES) &&
           buf_add(out, value.p, value.n, ANSWER_MAX_BYTES);
}

static bool add_text(struct buf *out, const char *name, const char *value)
{
    return add_pair(out, name, (struct str){value, strlen(value)});
}

static bool add_record(struct buf *out, enum frame_type type, const void *p, size_t n)
{
    unsigned char header[FRAME_HEADER_BYTES];
    frame_put_header(header, type, 1, n);
    return buf_add(out, header, sizeof header, ANSWER_MAX_BYTES) &&
           buf_add(out, p, n, ANSWER_MAX_BYTES);
}

static bool add_stream(struct buf *out, enum frame_type type, const unsigned char *p, size_t n)
{
    for (size_t at = 0; at < n; at += FRAME_CONTENT_MAX) {
        size_t take = n - at < FRAME_CONTENT_MAX ? n - at : FRAME_CONTENT_MAX;
        if (!add_record(out, type, p + at, take))
            return false;
    }
    return add_record(out, type, NULL, 0);
}

/* Everything before the body. */
static bool build(struct buf *out, const struct client_request *r)
{
    static const unsigned char begin[8] = {0, FRAME_RESPONDER};
    struct buf params = {0};
    char length[21] = "";
    length[put_u64(length, r->n)] = 0;
    bool ok = add_text(&params, "REQUEST_METHOD", r->method) &&
              add_text(&params, "DOCUMENT_URI", r->path) &&
              (r->query.n == 0 || add_pair(&params, "QUERY_STRING", r->query)) &&
              (r->content_type == NULL || add_text(&params, "CONTENT_TYPE", r->content_type)) &&
              (r->body == NULL || add_text(&params, "CONTENT_LENGTH", length)) &&
              add_record(out, FCGI_BEGIN_REQUEST, begin, sizeof begin) &&
              add_stream(out, FCGI_PARAMS, params.data, params.len);
    buf_free(&params);
    return ok;
}

static bool send_all(int fd, const unsigned char *p, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t n = send(fd, p + at, len - at, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* The body from where it lies: it may be large. */
static bool send_body(int fd, const unsigned char *p, size_t n)
{
    unsigned char header[FRAME_HEADER_BYTES];
    for (size_t at = 0; at < n;) {
        size_t take = n - at < FRAME_CONTENT_MAX ? n - at : FRAME_CONTENT_MAX;
        frame_put_header(header, FCGI_STDIN, 1, take);
        if (!send_all(fd, header, sizeof header) || !send_all(fd, p + at, take))
            return false;
        at += take;
    }
    frame_put_header(header, FCGI_STDIN, 1, 0);
    return send_all(fd, header, sizeof header);
}

static bool receive(int fd, struct buf *answer)
{
    for (;;) {
        if (!buf_reserve(answer, 4096, ANSWER_MAX_BYTES))
            return false;
        ssize_t n = recv(fd, answer->data + answer->len, 4096, 0);
        if (n == 0)
            return true; /* without KEEP_CONN the server closes behind its answer */
        if (n < 0 && errno != EINTR)
            return false;
        answer->len += n > 0 ? (size_t)n : 0;
    }
}

/* Joins the STDOUT records of raw in place; false when END_REQUEST is missing. */
static bool join_stdout(struct buf *raw)
{
    size_t len = 0;
    for (size_t at = 0; raw->len - at >= FRAME_HEADER_BYTES;) {
        const unsigned char *h = raw->data + at;
        size_t content = (size_t)(h[4] << 8 | h[5]), whole = FRAME_HEADER_BYTES + content + h[6];
        unsigned type = h[1];
        if (whole > raw->len - at)
            return false;
        if (type == FCGI_END_REQUEST) {
            raw->len = len;
            return true;
        }
        if (type == FCGI_STDOUT) {
            memmove(raw->data + len, h + FRAME_HEADER_BYTES, content);
            len += content;
        }
        at += whole;
    }
    return false;
}

static unsigned take_answer(struct buf *raw, struct buf *out)
{
    static const char status[] = "Status: ";
    if (!join_stdout(raw) || raw->len < sizeof status + 3 ||
        memcmp(raw->data, status, sizeof status - 1) != 0)
        return NO_ANSWER;
    const unsigned char *body = memmem(raw->data, raw->len, "\r\n\r\n", 4);
    if (body == NULL)
        return NO_ANSWER;
    size_t at = (size_t)(body - raw->data) + 4;
    if (!buf_add(out, raw->data + at, raw->len - at, ANSWER_MAX_BYTES))
        return NO_ANSWER;
    return (unsigned)strtoul((const char *)raw->data + sizeof status - 1, NULL, 10);
}

unsigned client_ask(const char *socket, const struct client_request *r, struct buf *out)
{
    struct buf request = {0}, raw = {0};
    int fd = connect_to(socket);
    if (fd < 0)
        return errno == ENOENT || errno == ECONNREFUSED ? 0 : NO_ANSWER;
    unsigned status = NO_ANSWER;
    if (build(&request, r) && send_all(fd, request.data, request.len) &&
        send_body(fd, r->body, r->n) && receive(fd, &raw))
        status = take_answer(&raw, out);
    close(fd);
    buf_free(&request);
    buf_free(&raw);
    return status;
}

unsigned client_post(const char *socket, const char *path, const void *body, size_t n,
                     struct buf *out)
{
    const struct client_request r = {.method = "POST", .path = path, .body = body, .n = n};
    return client_ask(socket, &r, out);
}
