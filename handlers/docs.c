/* Documents over HTTP.
 *
 * What is stored is what is served, byte for byte, with the Content-Type it came with. The ETag is
 * the sequence number of the last change, so it is strong and never comes back. Stored documents
 * are served with nosniff and a sandboxing policy: a stored HTML page cannot act as the site. */
#include "handlers/docs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/doc.h"
#include "fcgi/path.h"
#include "handlers/access.h"
#include "handlers/json.h"
#include "handlers/precond.h"
#include "handlers/problem.h"
#include "handlers/store.h"

enum { DOCS_PREFIX_LEN = 6, LIST_DEFAULT = 100, LIST_MAX = 1000 };

/* Browsers ask again each time and mostly get 304; caches shared by people keep nothing private. */
#define GUARDS                                                                                     \
    "X-Content-Type-Options: nosniff\r\n"                                                          \
    "Content-Security-Policy: sandbox; default-src 'none'; style-src 'unsafe-inline'; "            \
    "img-src data:\r\n"
static const char private_headers[] = "Cache-Control: private, no-cache\r\n" GUARDS;
static const char public_headers[] = "Cache-Control: no-cache\r\n" GUARDS;

static const char no_document[] = "There is no document with this key.";

static struct str key_of(const struct req *req)
{
    return (struct str){req->path.p + DOCS_PREFIX_LEN, req->path.n - DOCS_PREFIX_LEN};
}

/* Answers when the key or a precondition is malformed. */
static bool refused(struct call *c, struct db_precond *p)
{
    char detail[96];
    if (key_of(c->req).n > DB_KEY_MAX) {
        problem(c, 400, "A key has at most 512 bytes.");
        return true;
    }
    const char *header = precond_parse(c->req, p);
    if (header == NULL)
        return false;
    snprintf(detail, sizeof detail, "The header %s is malformed.", header);
    problem(c, 400, detail);
    return true;
}

static void put_validators(struct call *c, const struct db_doc *doc)
{
    resp_etag(c->resp, doc->seq);
    resp_header_date(c->resp, "Last-Modified", doc->modified);
    if (access_is_public(c))
        resp_fixed(c->resp, public_headers, sizeof public_headers - 1);
    else
        resp_fixed(c->resp, private_headers, sizeof private_headers - 1);
}

static enum verdict get(struct call *c, const struct db_precond *p)
{
    struct str key = key_of(c->req);
    struct db_doc doc = {0};
    bool head = c->req->method == METHOD_HEAD;
    struct db_reader *reader = session_reader(c);
    enum db_result result = reader ? db_doc_get(reader, key.p, key.n, !head, &doc) : DB_BROKEN;
    if (result != DB_OK && result != DB_NONE) {
        problem_result(c, result, 0);
        return REPLY;
    }
    switch (precond_get(c->req, p, result == DB_OK, doc.seq, doc.modified)) {
    case PRECOND_FAILED:
        problem_result(c, DB_PRECONDITION, 0);
        return REPLY;
    case PRECOND_NOT_MODIFIED:
        resp_start(c->resp, 304);
        put_validators(c, &doc);
        resp_no_body(c->resp);
        return REPLY;
    case PRECOND_GO:
        break;
    }
    if (result == DB_NONE) {
        problem(c, 404, no_document);
        return REPLY;
    }
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", (struct str){doc.type, doc.type_len});
    put_validators(c, &doc);
    resp_body(c->resp, doc.body, (size_t)doc.size);
    return REPLY;
}

/* RFC 9110 8.3.1 allows more in quoted parameters than anybody sends; what is refused here could
 * not be sent back in a header. */
static bool type_ok(struct str type)
{
    bool slash = false;
    for (size_t i = 0; i < type.n; i++) {
        unsigned char ch = (unsigned char)type.p[i];
        if (ch < 0x20 || ch > 0x7e)
            return false;
        slash |= ch == '/';
    }
    return slash && type.n <= DB_TYPE_MAX;
}

static bool ends_with(struct str s, const char *end)
{
    size_t n = strlen(end);
    return s.n >= n && strncasecmp(s.p + s.n - n, end, n) == 0;
}

static bool starts_with(struct str s, const char *start)
{
    size_t n = strlen(start);
    return s.n >= n && strncasecmp(s.p, start, n) == 0;
}

/* The type without parameters. */
static struct str essence(struct str type)
{
    const char *semicolon = memchr(type.p, ';', type.n);
    if (semicolon != NULL)
        type.n = (size_t)(semicolon - type.p);
    while (type.n > 0 && type.p[type.n - 1] == ' ')
        type.n--;
    return type;
}

static bool is_json(struct str type)
{
    struct str e = essence(type);
    return (e.n == 16 && starts_with(e, "application/json")) || ends_with(e, "+json");
}

static bool is_text(struct str type)
{
    return starts_with(type, "text/") || is_json(type);
}

static const char no_json[] = "The body is not JSON that parses.";

/* TEXT in the file, for people and json_extract, where that gives back the same bytes. */
static enum db_value_type body_form(struct str type, const unsigned char *body, size_t n)
{
    bool lossless = n == 0 || (memchr(body, 0, n) == NULL && utf8_ok((const char *)body, n));
    return is_text(type) && lossless ? DB_VALUE_TEXT : DB_VALUE_BLOB;
}

static void put_location(struct call *c, const struct write *w)
{
    struct buf *link = &session_of(c)->link;
    const struct db_value *key = &w->op->values[0];
    link->len = 0;
    if (path_encode(link, (struct str){w->mount, w->mount_len}) &&
        buf_add(link, "/docs/", DOCS_PREFIX_LEN, RESP_HEAD_MAX) &&
        path_encode(link, (struct str){key->p, key->n}))
        resp_header(c->resp, "Location", (struct str){(char *)link->data, link->len});
    else
        c->resp->failed = true;
}

static void wrote(struct write *w, struct call *c)
{
    const struct db_op *op = w->op;
    if (op->result == DB_INVALID && op->validate_json) {
        problem(c, 400, no_json);
        return;
    }
    if (op->result == DB_NONE) {
        problem(c, 404, no_document);
        return;
    }
    if (op->result != DB_OK) {
        problem_result(c, op->result, op->pid);
        return;
    }
    resp_start(c->resp, op->created ? 201 : 204);
    if (op->kind == DB_OP_PUT)
        resp_etag(c->resp, op->seq);
    if (op->created) {
        put_location(c, w);
        resp_body(c->resp, NULL, 0);
    } else {
        resp_no_body(c->resp);
    }
}

static enum verdict put(struct call *c, const struct db_precond *p)
{
    struct str key = key_of(c->req), type = c->req->content_type;
    size_t n;
    if (type.n == 0)
        type = STR_LIT("application/octet-stream");
    if (!type_ok(type)) {
        problem(c, 400, "The Content-Type is malformed or longer than 255 bytes.");
        return REPLY;
    }
    struct db_op *op = db_op_new(DB_OP_PUT, key.n + type.n);
    if (op == NULL)
        return FAIL;
    unsigned char *body = frame_take_body(c->req->frame, &n);
    db_op_copy(op, 0, DB_VALUE_TEXT, key.p, key.n);
    db_op_copy(op, 1, DB_VALUE_TEXT, type.p, type.n);
    db_op_take(op, 2, body_form(type, body, n), body, n);
    op->precond = *p;
    op->validate_json = is_json(type);
    if (op->validate_json && op->values[2].type == DB_VALUE_BLOB) {
        db_op_free(op); /* JSON is UTF-8 without NUL (RFC 8259 8.1); SQLite would not look */
        problem(c, 400, no_json);
        return REPLY;
    }
    return store_write(c, op, wrote);
}

static enum verdict delete(struct call *c, const struct db_precond *p)
{
    struct str key = key_of(c->req);
    struct db_op *op = db_op_new(DB_OP_DELETE, key.n);
    if (op == NULL)
        return FAIL;
    db_op_copy(op, 0, DB_VALUE_TEXT, key.p, key.n);
    op->precond = *p;
    return store_write(c, op, wrote);
}

enum verdict docs_item(struct call *c)
{
    struct db_precond p;
    if (refused(c, &p))
        return REPLY;
    switch (c->req->method) {
    case METHOD_PUT:
        return put(c, &p);
    case METHOD_DELETE:
        return delete (c, &p);
    default:
        return get(c, &p);
    }
}

/* A list being written: one row more than the limit is read, to know whether there is a next
 * page. */
struct listing {
    struct json json;
    unsigned limit;
    unsigned rows;
    size_t last_len;
    char last[DB_KEY_MAX];
    bool more;
};

static bool list_row(void *arg, const struct db_doc_row *row)
{
    struct listing *l = arg;
    char date[RFC3339_LEN];
    if (l->rows == l->limit) {
        l->more = true;
        return false;
    }
    json_raw(&l->json, l->rows++ > 0 ? ",\n{\"key\":" : "\n{\"key\":");
    json_string(&l->json, (struct str){row->key, row->key_len});
    json_raw(&l->json, ",\"etag\":");
    json_etag(&l->json, row->doc.seq);
    json_raw(&l->json, ",\"type\":");
    json_string(&l->json, (struct str){row->doc.type, row->doc.type_len});
    json_raw(&l->json, ",\"size\":");
    json_u64(&l->json, row->doc.size);
    json_raw(&l->json, ",\"modified\":");
    put_rfc3339(date, row->doc.modified);
    json_string(&l->json, (struct str){date, sizeof date});
    json_raw(&l->json, "}");
    l->last_len = row->key_len < sizeof l->last ? row->key_len : sizeof l->last;
    memcpy(l->last, row->key, l->last_len);
    return !l->json.failed;
}

static void bad_parameter(struct call *c, const char *name, const char *rule)
{
    char detail[128];
    snprintf(detail, sizeof detail, "The query parameter %s %s.", name, rule);
    problem(c, 400, detail);
}

static bool take_limit(struct call *c, unsigned *limit)
{
    struct buf *value = &session_of(c)->value;
    enum query_result found = query_find(c->req->query, "limit", value);
    unsigned n = 0;
    *limit = LIST_DEFAULT;
    if (found == QUERY_NONE)
        return true;
    bool ok = found == QUERY_OK && value->len > 0 && value->len <= 4;
    for (size_t i = 0; ok && i < value->len; i++) {
        ok = value->data[i] >= '0' && value->data[i] <= '9';
        n = n * 10 + (unsigned)(value->data[i] - '0');
    }
    *limit = n;
    if (ok && n <= LIST_MAX)
        return true;
    bad_parameter(c, "limit", "is one whole number from 0 to 1000");
    return false;
}

static void put_next(struct call *c, const struct listing *l)
{
    struct buf *link = &session_of(c)->link;
    char tail[48];
    int n = snprintf(tail, sizeof tail, "&limit=%u>; rel=\"next\"", l->limit);
    link->len = 0;
    if (buf_add(link, "<", 1, RESP_HEAD_MAX) && path_encode(link, c->req->mount) &&
        path_encode(link, c->req->path) && buf_add(link, "?after=", 7, RESP_HEAD_MAX) &&
        path_encode(link, (struct str){l->last, l->last_len}) &&
        buf_add(link, tail, (size_t)n, RESP_HEAD_MAX))
        resp_header(c->resp, "Link", (struct str){(char *)link->data, link->len});
    else
        c->resp->failed = true;
}

static enum verdict list(struct call *c, struct listing *l, const struct db_doc_range *range)
{
    struct db_reader *reader = session_reader(c);
    struct buf *text = &session_of(c)->text;
    l->json = json_start(text);
    json_raw(&l->json, "{\"items\":[");
    enum db_result result = reader ? db_doc_list(reader, range, list_row, l) : DB_BROKEN;
    if (result != DB_OK) {
        problem_result(c, result, 0);
        return REPLY;
    }
    bool more = l->more && l->limit > 0;
    json_raw(&l->json, "],\n\"next\":");
    if (more)
        json_string(&l->json, (struct str){l->last, l->last_len});
    else
        json_raw(&l->json, "null");
    json_raw(&l->json, "}\n");
    if (l->json.failed)
        return FAIL;
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    resp_header(c->resp, "Cache-Control", STR_LIT("no-cache"));
    if (more)
        put_next(c, l);
    resp_body(c->resp, text->data, text->len);
    return REPLY;
}

enum verdict docs_collection(struct call *c)
{
    struct buf *value = &session_of(c)->value;
    struct str prefix = key_of(c->req);
    struct listing l = {0};
    if (prefix.n > DB_KEY_MAX) {
        problem(c, 400, "A key has at most 512 bytes.");
        return REPLY;
    }
    if (!take_limit(c, &l.limit))
        return REPLY;
    value->len = 0;
    enum query_result found = query_find(c->req->query, "after", value);
    if (found == QUERY_BAD || found == QUERY_TWICE || value->len > DB_KEY_MAX) {
        bad_parameter(c, "after", "is one key of at most 512 bytes");
        return REPLY;
    }
    struct db_doc_range range = {
        .prefix = prefix.p,
        .prefix_len = prefix.n,
        .after = found == QUERY_OK ? (const char *)value->data : "",
        .after_len = found == QUERY_OK ? value->len : 0,
        .limit = l.limit + 1,
    };
    return list(c, &l, &range);
}
