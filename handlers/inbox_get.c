/* What came to an inbox: GET /inbox/NAME, in order of arrival, and GET /inbox/NAME/N.
 *
 * A message is sent back as it was before it was sealed, with the type that its sender gave it, and
 * under the same guards as a document: it came from elsewhere. */
#include <stdio.h>
#include <string.h>

#include "fcgi/path.h"
#include "handlers/docs.h"
#include "handlers/embed.h"
#include "handlers/inbox.h"
#include "handlers/json.h"
#include "handlers/param.h"
#include "handlers/problem.h"
#include "handlers/store.h"

enum { MESSAGES_DEFAULT = 100, MESSAGES_MAX = 1000, LINK_MAX = 128 };

struct listing {
    struct json json;
    unsigned limit, rows;
    bool more, bodies;
    uint64_t left; /* bytes of bodies that may still be in this page */
    int64_t last;
};

static void put_row(struct listing *l, const struct db_inbox_row *row)
{
    struct json *j = &l->json;
    char sender[SEAL_KEY_ID_HEX + 1];
    json_put_count(j, l->rows > 0 ? ",\n{\"n\":" : "\n{\"n\":", row->number);
    json_put_text(j, ",\"id\":", row->id);
    if (row->sender != NULL)
        seal_key_hex(row->sender, sender);
    json_put_text(j, ",\"sender\":", row->sender != NULL ? sender : NULL);
    json_put_text(j, ",\"line\":", row->line);
    if (row->line != NULL)
        json_put_count(j, ",\"seq\":", (int64_t)row->seq);
    else
        json_raw(j, ",\"seq\":null");
    json_put_text(j, ",\"type\":", row->type);
    json_put_count(j, ",\"size\":", (int64_t)row->bytes);
    json_put_count(j, ",\"sent\":", row->sent);
    json_put_count(j, ",\"received\":", row->received);
}

static bool list_row(void *arg, const struct db_inbox_row *row)
{
    struct listing *l = arg;
    const struct db_doc doc = {.type = row->type,
                               .type_len = strlen(row->type),
                               .body = row->bytes > 0 ? row->body : "",
                               .size = row->bytes};
    if (l->rows == l->limit || (l->bodies && row->bytes > l->left && l->rows > 0)) {
        l->more = true;
        return false;
    }
    put_row(l, row);
    if (l->bodies) {
        uint64_t taken = embed_body(&l->json, &doc);
        l->left -= taken < l->left ? taken : l->left;
    }
    json_raw(&l->json, "}");
    l->rows++;
    l->last = row->number;
    return !l->json.failed;
}

/* The number that `after` gives, and whether bodies are wanted. */
static bool take_parameters(struct call *c, struct listing *l, uint64_t *after)
{
    struct buf *value = &session_of(c)->value;
    *after = 0;
    if (!param_number(c, "limit", MESSAGES_MAX, &l->limit))
        return false;
    enum query_result found = query_find(c->req->query, "after", value);
    struct str text = {(const char *)value->data, value->len};
    if (found != QUERY_NONE &&
        (found != QUERY_OK || !param_digits(text, INT64_MAX, after))) {
        param_refuse(c, "after", "is one number of a message");
        return false;
    }
    found = query_find(c->req->query, "include", value);
    text = (struct str){(const char *)value->data, value->len};
    l->bodies = found == QUERY_OK && str_eq(text, STR_LIT("body"));
    if (found != QUERY_NONE && !l->bodies) {
        param_refuse(c, "include", "can only be body");
        return false;
    }
    return true;
}

static void put_next(struct call *c, const struct listing *l)
{
    struct buf *link = &session_of(c)->link;
    char tail[LINK_MAX];
    int n = snprintf(tail, sizeof tail, "?after=%lld&limit=%u%s>; rel=\"next\"",
                     (long long)l->last, l->limit, l->bodies ? "&include=body" : "");
    link->len = 0;
    if (buf_add(link, "<", 1, RESP_HEAD_MAX) && path_encode(link, c->req->mount) &&
        path_encode(link, c->req->path) && buf_add(link, tail, (size_t)n, RESP_HEAD_MAX))
        resp_header(c->resp, "Link", (struct str){(char *)link->data, link->len});
    else
        c->resp->failed = true;
}

enum verdict inbox_messages(struct call *c, struct str name)
{
    struct listing l = {.limit = MESSAGES_DEFAULT, .left = EMBED_ALL_MAX};
    struct buf *text = &session_of(c)->text;
    struct db_inbox in;
    uint64_t after;
    if (!take_parameters(c, &l, &after) || !inbox_find(c, name, &in))
        return REPLY;
    l.json = json_start(text);
    json_raw(&l.json, "{\"messages\":[");
    enum db_result result = db_inbox_messages(session_reader(c), in.id, (int64_t)after,
                                              l.limit + 1, l.bodies, list_row, &l);
    if (result != DB_OK) {
        problem_result(c, result, 0);
        return REPLY;
    }
    bool more = l.more && l.limit > 0;
    json_raw(&l.json, "],\n\"next\":");
    if (more)
        json_u64(&l.json, (uint64_t)l.last);
    else
        json_raw(&l.json, "null");
    json_raw(&l.json, "}\n");
    if (l.json.failed)
        return FAIL;
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    resp_header(c->resp, "Cache-Control", STR_LIT("no-cache"));
    if (more)
        put_next(c, &l);
    resp_body(c->resp, text->data, text->len);
    return REPLY;
}

enum verdict inbox_message(struct call *c, struct str name, int64_t number)
{
    struct db_inbox in;
    struct db_inbox_row row;
    if (!inbox_find(c, name, &in))
        return REPLY;
    enum db_result result = db_inbox_message(session_reader(c), in.id, number, &row);
    if (result == DB_NONE) {
        problem(c, 404, "There is no message of that number in this inbox.");
        return REPLY;
    }
    if (result != DB_OK) {
        problem_result(c, result, 0);
        return REPLY;
    }
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", (struct str){row.type, strlen(row.type)});
    docs_guards(c->resp);
    resp_body(c->resp, row.body, row.bytes);
    return REPLY;
}
