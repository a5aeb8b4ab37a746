/* POST /snapshot: several documents as they are at one moment.
 *
 * It is a read, whatever the method: all documents come from the snapshot of the round. A key that
 * is none, or that may not be read, is told with its index; what is absent is null. */
#include "handlers/snapshot.h"

#include "handlers/embed.h"
#include "handlers/json_read.h"
#include "handlers/several.h"
#include "handlers/store.h"

/* The array that is the member keys, the only one there is. */
static bool take_keys(struct call *c, struct str value, struct str *keys)
{
    struct str name;
    bool ok = json_kind(value) == JSON_OBJECT;
    struct json_walk w = json_enter(value);
    if (ok)
        ok = json_member(&w, &name, keys) && json_says(name, "keys") &&
             json_kind(*keys) == JSON_ARRAY;
    if (ok)
        ok = !json_member(&w, &name, &value);
    if (!ok)
        problem(c, 400, "The body is an object with one member, keys: an array of strings.");
    return ok;
}

struct reading {
    struct call *call;
    struct db_reader *reader;
    struct json json;
    struct problem_part part;
    uint64_t left; /* bytes of bodies that may still be embedded */
};

/* Sets part.key; in the session's value, until the next. */
static bool take_key(struct reading *r, struct str item)
{
    struct buf *key = &session_of(r->call)->value;
    key->len = 0;
    r->part.key = (struct str){NULL, 0};
    if (json_kind(item) != JSON_STRING) {
        problem_at(r->call, 400, "A key is a string.", &r->part);
        return false;
    }
    if (json_text(item, key, DB_KEY_MAX) != JSON_TEXT_OK) {
        problem_at(r->call, 400, "This is not the key of a document.", &r->part);
        return false;
    }
    r->part.key = (struct str){key->len > 0 ? (const char *)key->data : "", key->len};
    return several_allowed(r->call, &r->part, false);
}

static bool put_document(struct reading *r)
{
    struct db_doc doc;
    uint64_t most = r->left < EMBED_ONE_MAX ? r->left : EMBED_ONE_MAX;
    enum db_result result = db_doc_get(r->reader, r->part.key.p, r->part.key.n, most, &doc);
    if (result == DB_NONE) {
        json_raw(&r->json, r->part.index > 0 ? ",\nnull" : "\nnull");
        return true;
    }
    if (result != DB_OK) {
        problem_result(r->call, result, 0);
        return false;
    }
    json_raw(&r->json, r->part.index > 0 ? ",\n{" : "\n{");
    embed_facts(&r->json, r->part.key, &doc);
    uint64_t taken = embed_body(&r->json, &doc);
    r->left -= taken < r->left ? taken : r->left;
    json_raw(&r->json, "}");
    return true;
}

static bool put_documents(struct reading *r, struct str keys)
{
    struct json_walk w = json_enter(keys);
    struct str item;
    uint64_t seq, documents;
    enum db_result result = r->reader ? db_reader_totals(r->reader, &seq, &documents) : DB_BROKEN;
    if (result != DB_OK) {
        problem_result(r->call, result, 0);
        return false;
    }
    json_raw(&r->json, "{\"seq\":");
    json_u64(&r->json, seq);
    json_raw(&r->json, ",\"documents\":[");
    for (r->part.index = 0; json_item(&w, &item); r->part.index++) {
        if (r->part.index == SEVERAL_MAX) {
            problem(r->call, 422, "A snapshot has at most 1000 keys.");
            return false;
        }
        if (!take_key(r, item) || !put_document(r))
            return false;
    }
    json_raw(&r->json, "]}\n");
    return true;
}

enum verdict snapshot(struct call *c)
{
    struct several body;
    struct buf *text = &session_of(c)->text;
    struct str keys;
    struct reading r = {.call = c, .left = EMBED_ALL_MAX};
    if (!several_take(c, &body))
        return REPLY;
    enum several_state state = several_read(&body);
    if (state != SEVERAL_OK) {
        several_fault(c, &body, state);
        several_free(&body);
        return REPLY;
    }
    r.reader = session_reader(c);
    r.json = json_start(text);
    bool ok = take_keys(c, body.value, &keys) && put_documents(&r, keys);
    several_free(&body);
    if (!ok)
        return REPLY;
    if (r.json.failed)
        return FAIL;
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    resp_header(c->resp, "Cache-Control", STR_LIT("no-store"));
    resp_body(c->resp, text->data, text->len);
    return REPLY;
}
