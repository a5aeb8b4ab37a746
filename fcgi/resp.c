#include "fcgi/resp.h"

#include <string.h>

#include "fcgi/frame.h"

static void no_memory(struct resp *r)
{
    r->failed = true;
    r->no_memory = true;
}

static void open_record(struct resp *r)
{
    r->record = r->out->len;
    if (!buf_reserve(r->out, FRAME_HEADER_BYTES, RESP_MAX))
        no_memory(r);
    else
        r->out->len += FRAME_HEADER_BYTES;
}

static void close_record(struct resp *r)
{
    size_t content = r->out->len - r->record - FRAME_HEADER_BYTES;
    if (content == 0)
        r->out->len = r->record;
    else
        frame_put_header(r->out->data + r->record, FCGI_STDOUT, r->id, content);
}

static void put(struct resp *r, const void *p, size_t n)
{
    const unsigned char *from = p;
    while (n > 0 && !r->failed) {
        size_t room = FRAME_CONTENT_MAX - (r->out->len - r->record - FRAME_HEADER_BYTES);
        if (room == 0) {
            close_record(r);
            open_record(r);
            continue;
        }
        size_t take = n < room ? n : room;
        if (!buf_add(r->out, from, take, RESP_MAX)) {
            no_memory(r);
            return;
        }
        from += take;
        n -= take;
    }
}

static void put_text(struct resp *r, const char *s)
{
    put(r, s, strlen(s));
}

void resp_init(struct resp *r, struct buf *out, uint16_t id, bool head_request)
{
    *r = (struct resp){.out = out, .begin = out->len, .id = id, .head_request = head_request};
    open_record(r);
}

void resp_reset(struct resp *r)
{
    struct str extra = r->extra;
    r->out->len = r->begin;
    resp_init(r, r->out, r->id, r->head_request);
    r->extra = extra;
}

const char *resp_reason(unsigned status)
{
    switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 206: return "Partial Content";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 416: return "Range Not Satisfiable";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    case 507: return "Insufficient Storage";
    default: return "Unknown";
    }
}

size_t put_u64(char *p, uint64_t v)
{
    char digits[20];
    size_t n = 0;
    do {
        digits[n++] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    for (size_t i = 0; i < n; i++)
        p[i] = digits[n - 1 - i];
    return n;
}

void resp_extra(struct resp *r, struct str lines)
{
    r->extra = lines;
}

void resp_start(struct resp *r, unsigned status)
{
    char digits[20];
    r->status = (uint16_t)status;
    r->no_content = r->head_request || status == 204 || status == 304;
    put(r, "Status: ", 8);
    put(r, digits, put_u64(digits, status));
    put(r, " ", 1);
    put_text(r, resp_reason(status));
    put(r, "\r\n", 2);
    if (r->extra.n > 0)
        resp_fixed(r, r->extra.p, r->extra.n);
}

/* RFC 9110 5.5: visible characters, spaces, tabs and bytes above 0x7f. */
static bool value_ok(struct str v)
{
    for (size_t i = 0; i < v.n; i++) {
        unsigned char c = (unsigned char)v.p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

void resp_header(struct resp *r, const char *name, struct str value)
{
    size_t name_len = strlen(name);
    r->head += name_len + value.n + 4;
    if (r->head > RESP_HEAD_MAX || !value_ok(value)) {
        r->failed = true;
        return;
    }
    put(r, name, name_len);
    put(r, ": ", 2);
    put(r, value.p, value.n);
    put(r, "\r\n", 2);
}

void resp_fixed(struct resp *r, const char *lines, size_t n)
{
    r->head += n;
    if (r->head > RESP_HEAD_MAX)
        r->failed = true;
    put(r, lines, n);
}

void resp_header_u64(struct resp *r, const char *name, uint64_t value)
{
    char digits[20];
    resp_header(r, name, (struct str){digits, put_u64(digits, value)});
}

void resp_etag(struct resp *r, uint64_t seq)
{
    char tag[22];
    tag[0] = '"';
    size_t n = 1 + put_u64(tag + 1, seq);
    tag[n++] = '"';
    resp_header(r, "ETag", (struct str){tag, n});
}

void resp_header_date(struct resp *r, const char *name, int64_t unix_s)
{
    char date[HTTP_DATE_LEN];
    put_http_date(date, unix_s);
    resp_header(r, name, (struct str){date, sizeof date});
}

void resp_body(struct resp *r, const void *body, size_t n)
{
    resp_length(r, n);
    resp_write(r, body, n);
}

void resp_no_body(struct resp *r)
{
    put(r, "\r\n", 2);
}

void resp_length(struct resp *r, uint64_t n)
{
    resp_header_u64(r, "Content-Length", n);
    put(r, "\r\n", 2);
}

void resp_write(struct resp *r, const void *p, size_t n)
{
    if (!r->no_content)
        put(r, p, n);
}

void resp_flush(struct resp *r)
{
    if (r->failed)
        return;
    close_record(r);
    open_record(r);
    if (!r->failed)
        r->out->len = r->record;
}

void resp_finish(struct resp *r, bool retire)
{
    unsigned char tail[8 + 16 + 16];
    size_t n = 24;
    if (r->failed)
        return;
    close_record(r);
    frame_put_header(tail, FCGI_STDOUT, r->id, 0);
    frame_put_end(tail + 8, r->id, FCGI_REQUEST_COMPLETE);
    if (retire) {
        frame_put_unknown(tail + n, 0);
        n += 16;
    }
    if (!buf_add(r->out, tail, n, RESP_MAX))
        no_memory(r);
}
