/* One decoded request: what a handler may look at.
 *
 * All text is NUL-terminated, owned by the round and dead when the round ends: a handler that parks
 * copies what it needs into its operation. Fields of absent parameters are {NULL, 0}. A request
 * that cannot be understood still becomes a struct req, with `fault` set: it is answered, never
 * executed. */
#ifndef HANJI_FCGI_REQ_H
#define HANJI_FCGI_REQ_H

#include <stdbool.h>
#include <stdint.h>

#include "fcgi/buf.h"
#include "fcgi/frame.h"

enum method {
    METHOD_GET = 1,
    METHOD_HEAD = 2,
    METHOD_PUT = 4,
    METHOD_DELETE = 8,
    METHOD_POST = 16,
    METHOD_PATCH = 32,
    METHOD_OTHER = 64,
};

struct req {
    enum method method;
    bool operator_; /* came over the control socket, which only this user and root can open */
    uint16_t fault_status; /* 0, or the status that answers this request: 400, 413, 503 */
    const char *fault;     /* one sentence for the person who sent it */
    struct str method_name;
    struct str path;  /* below the mount, starts with '/', path_ok */
    struct str mount; /* SCRIPT_NAME, "" or "/prefix" */
    struct str query;
    struct str request_id;
    struct str content_type;
    struct str content_length;
    struct str authorization;
    struct str if_match;
    struct str if_none_match;
    struct str if_modified_since;
    struct str if_unmodified_since;
    struct str if_range;
    struct str range;
    struct str idempotency_key;
    struct str webhook_id, webhook_timestamp, webhook_signature;
    struct str accept;
    struct str last_event_id;
    struct str document_uri, request_uri;
    struct str https; /* not empty and not "off": the client came over TLS */
    struct str host;  /* as the client sent it, with its port */
    struct str cookie;
    struct str origin;
    struct str requested_method; /* Access-Control-Request-Method */
    struct str fetch_site; /* Sec-Fetch-Site */
    struct str referer;
    struct str user_agent;
    struct str remote_addr; /* where the web server sends it */
    struct str sendfile;    /* "off": the web server could not send the file it was told of */
    struct str check_uri;   /* a path of the site that the web server asks about (auth_request) */
    struct frame *frame; /* holds the body; frame_take_body moves it out */
};

/* Memory of a round: grows by blocks, forgotten all at once. */
struct arena {
    struct arena_block *blocks;
    size_t used; /* of the first block */
};

/* n bytes, aligned for any field of a request; NULL when memory is short. */
void *arena_alloc(struct arena *a, size_t n) __attribute__((warn_unused_result));

/* Forgets everything, keeping one block for the next round. */
void arena_reset(struct arena *a);

void arena_free(struct arena *a);

/* Copies a request whose body does not matter any more: the struct and all its text, in one piece
 * of memory from malloc. NULL when memory is short. */
struct req *req_copy(const struct req *r) __attribute__((warn_unused_result));

/* Decodes the whole request in f into memory of the arena. NULL: the parameters are broken or
 * memory is short; the connection is to be closed. */
struct req *req_decode(struct arena *a, struct frame *f)
    __attribute__((warn_unused_result));

#endif
