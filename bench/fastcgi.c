#include "fastcgi.h"

#include "util.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

enum {
    FCGI_BEGIN_REQUEST = 1,
    FCGI_END_REQUEST = 3,
    FCGI_PARAMS = 4,
    FCGI_STDIN = 5,
    FCGI_STDOUT = 6,
    FCGI_STDERR = 7,
    FCGI_UNKNOWN_TYPE = 11,
    RECORD_MOST = 32768, /* content of one record we send */
};

/* ---- sending ---- */

static void add_record_head(struct text *text, int type, size_t len)
{
    const unsigned char head[8] = {1, (unsigned char)type, 0, 1, (unsigned char)(len >> 8),
                                   (unsigned char)len, 0, 0};
    text_add(text, head, sizeof head);
}

static void add_length(struct text *text, size_t len)
{
    if (len < 128) {
        const unsigned char one[1] = {(unsigned char)len};
        text_add(text, one, sizeof one);
    } else {
        const unsigned char four[4] = {(unsigned char)(0x80 | (len >> 24)),
                                       (unsigned char)(len >> 16), (unsigned char)(len >> 8),
                                       (unsigned char)len};
        text_add(text, four, sizeof four);
    }
}

static void add_param(struct text *text, const char *name, const char *value)
{
    add_length(text, strlen(name));
    add_length(text, strlen(value));
    text_add(text, name, strlen(name));
    text_add(text, value, strlen(value));
}

/* "Authorization: x" becomes HTTP_AUTHORIZATION=x. */
static void add_header_param(struct text *text, const char *header)
{
    char name[128] = "HTTP_";
    size_t len = strcspn(header, ":");

    if (len > sizeof name - 6)
        die("header name too long: %s", header);
    for (size_t i = 0; i < len; i++)
        name[5 + i] = header[i] == '-' ? '_' : (char)toupper((unsigned char)header[i]);
    add_param(text, name, header + len + 2);
}

/* The path goes first, so that its place in the record is known. */
static void add_params(struct text *text, struct kind *kind, const struct workload *load)
{
    static const char name[] = "DOCUMENT_URI";
    char path[sizeof kind->path + KEY_DIGITS];
    char length[24];
    const char *hole = strstr(kind->path, "{}");
    const char *query = strchr(kind->path, '?');
    bool accepts = false;
    size_t len = strlen(kind->path) + (hole != NULL ? KEY_DIGITS - 2 : 0);

    if (query != NULL && hole != NULL)
        die("no query with {} over FastCGI: %s", kind->path);
    if (query != NULL) {
        (void)snprintf(path, sizeof path, "%.*s", (int)(query - kind->path), kind->path);
        add_param(text, name, path);
    } else {
        add_length(text, strlen(name));
        add_length(text, len);
        text_add(text, name, strlen(name));
        text_add_path(text, kind);
    }
    add_param(text, "REQUEST_METHOD", kind->method);
    if (query != NULL)
        add_param(text, "QUERY_STRING", query + 1);
    if (kind->sends) {
        (void)snprintf(length, sizeof length, "%zu", kind->size);
        add_param(text, "CONTENT_TYPE",
                  kind->sent != NULL ? "application/json" : "application/octet-stream");
        add_param(text, "CONTENT_LENGTH", length);
    }
    add_param(text, "REQUEST_ID", "0123456789abcdef0123456789abcdef");
    add_param(text, "REMOTE_ADDR", "127.0.0.1");
    add_param(text, "HTTP_HOST", "127.0.0.1");
    add_param(text, "HTTP_PROXY", "");
    add_param(text, "HTTP_USER_AGENT", "hanji-bench/1");
    for (size_t i = 0; i < load->headers_len; i++) {
        accepts = accepts || strncmp(load->headers[i], "Accept:", 7) == 0;
        add_header_param(text, load->headers[i]);
    }
    if (!accepts)
        add_param(text, "HTTP_ACCEPT", "*/*");
}

/* STDIN records; digits of the key are expected in the first, whole. */
static void add_stdin(struct text *text, struct kind *kind, const struct workload *load)
{
    struct text body = {0};
    size_t first = kind->marks_len;

    text_add_body(&body, kind, load);
    if (kind->marks_len > first)
        kind->marks[first] += text->len + 8;
    for (size_t at = 0; at < body.len;) {
        size_t len = body.len - at < RECORD_MOST ? body.len - at : RECORD_MOST;
        add_record_head(text, FCGI_STDIN, len);
        text_add(text, body.bytes + at, len);
        at += len;
    }
    free(body.bytes);
    add_record_head(text, FCGI_STDIN, 0);
}

static void render(struct kind *kind, const struct workload *load)
{
    static const unsigned char begin_body[8] = {0, 1 /* responder */, 1 /* keep */};
    struct text text = {0};
    struct text params = {0};

    add_record_head(&text, FCGI_BEGIN_REQUEST, sizeof begin_body);
    text_add(&text, begin_body, sizeof begin_body);
    add_params(&params, kind, load);
    if (params.len > RECORD_MOST)
        die("parameters too long");
    add_record_head(&text, FCGI_PARAMS, params.len);
    for (size_t i = 0; i < kind->marks_len; i++)
        kind->marks[i] += text.len;
    text_add(&text, params.bytes, params.len);
    free(params.bytes);
    add_record_head(&text, FCGI_PARAMS, 0);
    add_stdin(&text, kind, load);
    kind->bytes = text.bytes;
    kind->bytes_len = text.len;
}

/* ---- receiving ---- */

static void begin(struct conn *conn)
{
    memset(&conn->record, 0, sizeof conn->record);
}

/* Takes a complete record head; false when the record has no place here. */
static bool take_record_head(struct record *record)
{
    unsigned type = record->head[1];

    record->content_left = (size_t)record->head[4] << 8 | record->head[5];
    record->padding_left = record->head[6];
    if (record->head[0] != 1 || record->ended)
        return type == FCGI_UNKNOWN_TYPE; /* a draining server's farewell may follow the end */
    return (type == FCGI_STDOUT || type == FCGI_STDERR || type == FCGI_END_REQUEST) &&
           record->head[2] == 0 && record->head[3] == 1 &&
           (type != FCGI_END_REQUEST || record->content_left == 8);
}

/* Takes content and padding of the current record; how many bytes it used. 0: malformed. */
static size_t take_content(struct conn *conn, const char *bytes, size_t len)
{
    struct record *record = &conn->record;
    size_t part;

    if (record->content_left == 0) {
        part = len < record->padding_left ? len : record->padding_left;
        record->padding_left -= part;
        return part;
    }
    part = len < record->content_left ? len : record->content_left;
    if (record->head[1] == FCGI_STDOUT && answer_feed(&conn->answer, bytes, part) != MORE)
        return 0;
    if (record->head[1] == FCGI_END_REQUEST) {
        size_t at = 8 - record->content_left; /* byte 4 is the protocol status, 0 "complete" */
        if (at <= 4 && at + part > 4 && bytes[4 - at] != 0)
            return 0;
    }
    record->content_left -= part;
    return part;
}

static enum outcome take(struct conn *conn, const char *bytes, size_t len)
{
    struct record *record = &conn->record;

    while (len > 0) {
        size_t part;

        if (record->head_len < sizeof record->head) {
            part = sizeof record->head - record->head_len;
            part = len < part ? len : part;
            memcpy(record->head + record->head_len, bytes, part);
            record->head_len += part;
            if (record->head_len == sizeof record->head && !take_record_head(record))
                return BAD_PROTOCOL;
        } else {
            part = take_content(conn, bytes, len);
            if (part == 0)
                return BAD_PROTOCOL;
        }
        if (record->head_len == sizeof record->head && record->content_left == 0 &&
            record->padding_left == 0) {
            record->ended = record->ended || record->head[1] == FCGI_END_REQUEST;
            record->head_len = 0;
        }
        bytes += part;
        len -= part;
    }
    if (!record->ended)
        return MORE;
    return answer_whole(&conn->answer) ? answer_judge(&conn->answer) : BAD_PROTOCOL;
}

const struct protocol fastcgi = {.render = render, .begin = begin, .take = take};

void fastcgi_address(struct options *options, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof address.sun_path)
        die("SOCKET: path too long: %s", path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    memcpy(&options->address, &address, sizeof address);
    options->address_len = sizeof address;
}
