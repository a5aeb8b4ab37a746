/* Documents inside of JSON: what is known of one, and its body. */
#ifndef HANJI_HANDLERS_EMBED_H
#define HANJI_HANDLERS_EMBED_H

#include "db/doc.h"
#include "handlers/json.h"

enum {
    EMBED_ONE_MAX = 1 << 20, /* bytes of a body that is embedded */
    EMBED_ALL_MAX = 4 << 20, /* of all bodies in one answer, as embed_body counts */
};

/* "key":…,"etag":…,"type":…,"size":…,"modified":… */
void embed_facts(struct json *j, struct str key, const struct db_doc *doc);

/* ,"body":… for JSON, as it stands; ,"text":… for text; ,"base64":… for anything else, and for what
 * is not what its type says; ,"omitted":true when doc has no body although it is not empty. Returns
 * what it takes of EMBED_ALL_MAX: the bytes of the body, more where JSON must escape most of it. */
uint64_t embed_body(struct json *j, const struct db_doc *doc);

#endif
