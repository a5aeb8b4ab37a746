#include "handlers/export_out.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fcgi/path.h"
#include "seal/base64.h"

enum {
    PIECE_BYTES = 49152, /* of a large body at a time; a multiple of 3, so that base64 joins */
    FULL_BYTES = 256 << 10,
    /* A document given whole takes at most six bytes a byte ("\u0001"). */
    BUF_MAX = FULL_BYTES + 7 * DB_EXPORT_WHOLE_MAX,
};

static void add(struct export_out *o, const void *p, size_t n)
{
    if (o->failed == 0 && !buf_add(&o->buf, p, n, BUF_MAX))
        o->failed = ENOMEM;
}

static void add_text(struct export_out *o, const char *text)
{
    add(o, text, strlen(text));
}

static void add_number(struct export_out *o, const char *name, int64_t v)
{
    char text[64];
    int n = snprintf(text, sizeof text, ",\"%s\":%lld", name, (long long)v);
    add(o, text, (size_t)n);
}

/* What a JSON string has for these bytes (RFC 8259 7); everything else stands for itself. */
static void add_escaped(struct export_out *o, const char *p, size_t n)
{
    size_t plain = 0;
    char escape[8];
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        add(o, p + plain, i - plain);
        plain = i + 1;
        if (c == '"' || c == '\\')
            snprintf(escape, sizeof escape, "\\%c", c);
        else if (c == '\n')
            snprintf(escape, sizeof escape, "\\n");
        else
            snprintf(escape, sizeof escape, "\\u%04x", c);
        add_text(o, escape);
    }
    add(o, p + plain, n - plain);
}

static void add_string(struct export_out *o, const char *name, const char *p, size_t n)
{
    add_text(o, ",\"");
    add_text(o, name);
    add_text(o, "\":\"");
    add_escaped(o, p, n);
    add_text(o, "\"");
}

static void add_base64(struct export_out *o, const void *p, size_t n)
{
    size_t chars = seal_base64_len(n);
    if (o->failed == 0 && !buf_reserve(&o->buf, chars + 1, BUF_MAX))
        o->failed = ENOMEM;
    if (o->failed != 0)
        return;
    seal_base64_encode((char *)o->buf.data + o->buf.len, p, n);
    o->buf.len += chars;
}

void export_header(struct export_out *o, uint64_t seq, struct str prefix, struct str after)
{
    add_text(o, "{\"hanji\":\"export\",\"version\":1");
    add_number(o, "seq", (int64_t)seq);
    add_string(o, "prefix", prefix.p, prefix.n);
    add_string(o, "after", after.p, after.n);
    add_text(o, "}\n");
}

void export_end(struct export_out *o, uint64_t documents)
{
    add_text(o, "{\"hanji\":\"end\"");
    add_number(o, "documents", (int64_t)documents);
    add_text(o, "}\n");
}

/* Where the last character that is not whole begins: what comes before can be looked at alone. */
static size_t whole_characters(const unsigned char *p, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char c = p[n - back];
        if (c >= 0xc0)
            return (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) > back ? n - back : n;
        if (c < 0x80)
            break;
    }
    return n;
}

/* Calls each for the whole body in pieces that end with a character. */
static enum db_result by_pieces(struct db_export *e, const struct db_export_doc *doc,
                                bool (*each)(void *arg, const char *p, size_t n), void *arg)
{
    unsigned char piece[PIECE_BYTES];
    for (uint64_t at = 0; at < doc->size;) {
        size_t n = doc->size - at < sizeof piece ? (size_t)(doc->size - at) : sizeof piece;
        enum db_result result = db_export_read(e, piece, n, at);
        if (result != DB_OK)
            return result;
        if (doc->text && at + n < doc->size)
            n = whole_characters(piece, n);
        if (!each(arg, (const char *)piece, n))
            return DB_INVALID;
        at += n;
    }
    return DB_OK;
}

static bool piece_is_utf8(void *arg, const char *p, size_t n)
{
    (void)arg;
    return utf8_ok(p, n);
}

static bool text_piece(void *arg, const char *p, size_t n)
{
    struct export_out *o = arg;
    add_escaped(o, p, n);
    return !export_full(o) || export_flush(o);
}

static bool binary_piece(void *arg, const char *p, size_t n)
{
    struct export_out *o = arg;
    add_base64(o, p, n);
    return !export_full(o) || export_flush(o);
}

/* A failed write ends the walk through the pieces as DB_INVALID; the caller looks at o->failed. */
static enum db_result add_large(struct export_out *o, struct db_export *e,
                                const struct db_export_doc *doc)
{
    struct db_export_doc bytes = *doc;
    enum db_result result = DB_INVALID;
    if (doc->text)
        result = by_pieces(e, doc, piece_is_utf8, NULL);
    if (result != DB_OK && result != DB_INVALID)
        return result;
    bool text = result == DB_OK;
    bytes.text = text;
    add_text(o, text ? ",\"text\":\"" : ",\"base64\":\"");
    result = by_pieces(e, &bytes, text ? text_piece : binary_piece, o);
    add_text(o, "\"");
    return result == DB_INVALID ? DB_OK : result;
}

enum db_result export_document(struct export_out *o, struct db_export *e,
                               const struct db_export_doc *doc)
{
    enum db_result result = DB_OK;
    if (!utf8_ok(doc->key, doc->key_len))
        return DB_INVALID;
    add_text(o, "{\"key\":\"");
    add_escaped(o, doc->key, doc->key_len);
    add_text(o, "\"");
    add_string(o, "type", doc->type, doc->type_len);
    add_number(o, "modified", doc->modified);
    add_number(o, "seq", (int64_t)doc->seq);
    add_number(o, "size", (int64_t)doc->size);
    if (doc->body == NULL && doc->size > 0) {
        result = add_large(o, e, doc);
    } else if (doc->text && utf8_ok(doc->body, (size_t)doc->size)) {
        add_string(o, "text", doc->body, (size_t)doc->size);
    } else {
        add_text(o, ",\"base64\":\"");
        add_base64(o, doc->body, (size_t)doc->size);
        add_text(o, "\"");
    }
    add_text(o, "}\n");
    return result;
}

bool export_full(const struct export_out *o)
{
    return o->buf.len >= FULL_BYTES;
}

bool export_flush(struct export_out *o)
{
    for (size_t at = 0; o->failed == 0 && at < o->buf.len;) {
        ssize_t n = write(o->fd, o->buf.data + at, o->buf.len - at);
        if (n < 0 && errno != EINTR)
            o->failed = errno;
        at += n > 0 ? (size_t)n : 0;
    }
    o->buf.len = 0;
    return o->failed == 0;
}
