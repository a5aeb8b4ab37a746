#include "handlers/feed.h"

void feed_json(struct json *j, const struct db_change *change)
{
    json_raw(j, "{\"seq\":");
    json_u64(j, change->seq);
    json_raw(j, ",\"key\":");
    json_string(j, (struct str){change->key, change->key_len});
    if (change->deleted) {
        json_raw(j, ",\"op\":\"delete\",\"etag\":null}");
    } else {
        json_raw(j, ",\"op\":\"put\",\"etag\":");
        json_etag(j, change->seq);
        json_raw(j, "}");
    }
}
