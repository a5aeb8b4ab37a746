/* Lists of documents: what is below a prefix, page by page, in the order of the keys' bytes.
 *
 * A page is read by seeking to where it begins: it costs the same at any depth. It is one state of
 * the store. */
#include <stdio.h>
#include <string.h>

#include "db/doc.h"
#include "fcgi/path.h"
#include "handlers/docs.h"
#include "handlers/embed.h"
#include "handlers/json.h"
#include "handlers/param.h"
#include "handlers/problem.h"
#include "handlers/search.h"
#include "handlers/store.h"

enum { LIST_DEFAULT = 100, LIST_MAX = 1000 };

/* A list being written: one row more than the limit is read, to know whether there is a next
 * page. */
struct listing {
    struct json json;
    struct json folders; /* written meanwhile, in a buffer of its own */
    unsigned limit;
    unsigned rows;
    unsigned items;
    bool delimited, bodies;
    uint64_t left; /* bytes of bodies that may still be in this page */
    size_t last_len;
    char last[DB_KEY_MAX];
    bool more;
};

static void put_item(struct listing *l, const struct db_doc_row *row)
{
    uint64_t taken = 0;
    json_raw(&l->json, l->items++ > 0 ? ",\n{" : "\n{");
    embed_facts(&l->json, (struct str){row->key, row->key_len}, &row->doc);
    if (l->bodies)
        taken = embed_body(&l->json, &row->doc);
    l->left -= taken < l->left ? taken : l->left;
    json_raw(&l->json, "}");
}

static void put_folder(struct listing *l, const struct db_doc_row *row)
{
    json_raw(&l->folders, l->rows > l->items ? ",\n" : "\n");
    json_string(&l->folders, (struct str){row->key, row->key_len});
}

static bool list_row(void *arg, const struct db_doc_row *row)
{
    struct listing *l = arg;
    uint64_t bytes = row->doc.body != NULL ? row->doc.size : 0;
    if (l->rows == l->limit || (bytes > l->left && l->rows > 0)) {
        l->more = true;
        return false;
    }
    if (row->folder)
        put_folder(l, row);
    else
        put_item(l, row);
    l->rows++;
    l->last_len = row->key_len < sizeof l->last ? row->key_len : sizeof l->last;
    memcpy(l->last, row->key, l->last_len);
    return !l->json.failed && !l->folders.failed;
}

/* A parameter that has one value; *given says whether it is there. */
static bool take_word(struct call *c, const char *name, const char *word, bool *given)
{
    struct buf *value = &session_of(c)->value;
    char rule[32];
    enum query_result found = query_find(c->req->query, name, value);
    struct str is = {(const char *)value->data, value->len};
    *given = found == QUERY_OK;
    if (found == QUERY_NONE || (*given && str_eq(is, (struct str){word, strlen(word)})))
        return true;
    snprintf(rule, sizeof rule, "can only be %s", word);
    param_refuse(c, name, rule);
    return false;
}

static void put_next(struct call *c, const struct listing *l)
{
    struct buf *link = &session_of(c)->link;
    char tail[80];
    int n = snprintf(tail, sizeof tail, "&limit=%u%s%s>; rel=\"next\"", l->limit,
                     l->delimited ? "&delimiter=/" : "", l->bodies ? "&include=body" : "");
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
    l->folders = json_start(&session_of(c)->link);
    json_raw(&l->json, "{\"items\":[");
    enum db_result result = reader ? db_doc_list(reader, range, list_row, l) : DB_BROKEN;
    if (result != DB_OK) {
        problem_result(c, result, 0);
        return REPLY;
    }
    bool more = l->more && l->limit > 0;
    json_raw(&l->json, "],\n");
    if (l->delimited) {
        json_raw(&l->json, "\"prefixes\":[");
        json_bytes(&l->json, (struct str){(char *)l->folders.out->data, l->folders.out->len});
        json_raw(&l->json, "],\n");
    }
    json_raw(&l->json, "\"next\":");
    if (more)
        json_string(&l->json, (struct str){l->last, l->last_len});
    else
        json_raw(&l->json, "null");
    json_raw(&l->json, "}\n");
    if (l->json.failed || l->folders.failed)
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
    struct str prefix = docs_key(c->req);
    struct listing l = {.limit = LIST_DEFAULT, .left = EMBED_ALL_MAX};
    if (c->req->method == METHOD_POST)
        return docs_create(c);
    if (search_asked(c))
        return search_collection(c);
    if (prefix.n > DB_KEY_MAX) {
        problem(c, 400, "A key has at most 512 bytes.");
        return REPLY;
    }
    if (!param_number(c, "limit", LIST_MAX, &l.limit) ||
        !take_word(c, "delimiter", "/", &l.delimited) ||
        !take_word(c, "include", "body", &l.bodies))
        return REPLY;
    value->len = 0;
    enum query_result found = query_find(c->req->query, "after", value);
    if (found == QUERY_BAD || found == QUERY_TWICE || value->len > DB_KEY_MAX) {
        param_refuse(c, "after", "is one key of at most 512 bytes");
        return REPLY;
    }
    struct db_doc_range range = {
        .prefix = prefix.p,
        .prefix_len = prefix.n,
        .after = found == QUERY_OK ? (const char *)value->data : "",
        .after_len = found == QUERY_OK ? value->len : 0,
        .limit = l.limit + 1,
        .folders = l.delimited,
        .body_max = l.bodies ? EMBED_ONE_MAX : -1,
    };
    return list(c, &l, &range);
}
