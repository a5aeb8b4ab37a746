#include "handlers/embed.h"

#include "fcgi/path.h"
#include "fcgi/resp.h"
#include "handlers/content.h"
#include "handlers/json_check.h"
#include "seal/base64.h"

void embed_facts(struct json *j, struct str key, const struct db_doc *doc)
{
    char date[RFC3339_LEN];
    json_raw(j, "\"key\":");
    json_string(j, key);
    json_raw(j, ",\"etag\":");
    json_etag(j, doc->seq);
    json_raw(j, ",\"type\":");
    json_string(j, (struct str){doc->type, doc->type_len});
    json_raw(j, ",\"size\":");
    json_u64(j, doc->size);
    json_raw(j, ",\"modified\":\"");
    put_rfc3339(date, doc->modified);
    json_bytes(j, (struct str){date, sizeof date});
    json_raw(j, "\"");
}

static void put_base64(struct json *j, struct str body)
{
    size_t n = seal_base64_len(body.n);
    json_raw(j, ",\"base64\":\"");
    if (json_reserve(j, n + 1)) {
        seal_base64_encode((char *)j->out->data + j->out->len, body.p, body.n);
        j->out->len += n;
    }
    json_raw(j, "\"");
}

uint64_t embed_body(struct json *j, const struct db_doc *doc)
{
    size_t from = j->out->len;
    struct str type = {doc->type, doc->type_len}, body = {doc->body, (size_t)doc->size};
    if (body.p == NULL && doc->size > 0) {
        json_raw(j, ",\"omitted\":true");
        return 0;
    }
    if (content_is_json(type) && json_check_all(body.p, body.n, NULL)) {
        json_raw(j, ",\"body\":");
        json_bytes(j, body);
    } else if (content_is_text(type) && utf8_ok(body.p, body.n)) {
        json_raw(j, ",\"text\":");
        json_string(j, body);
    } else {
        put_base64(j, body);
    }
    uint64_t half = (j->out->len - from) / 2;
    return half > doc->size ? half : doc->size;
}
