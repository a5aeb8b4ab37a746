/* A small blocking FastCGI client, for operator commands that talk to a running server. */
#ifndef HANJI_FCGI_CLIENT_H
#define HANJI_FCGI_CLIENT_H

#include "fcgi/buf.h"

struct client_request {
    const char *method;
    const char *path;
    struct str query; /* encoded; n 0: none */
    const char *content_type; /* NULL: none */
    const void *body;
    size_t n;
};

/* Asks over the unix socket and appends the answer's body to out, at most 16 MiB. Returns as
 * client_post does. */
unsigned client_ask(const char *socket, const struct client_request *request, struct buf *out);

/* Posts n bytes to path over the unix socket and appends the answer's body to out. Returns the HTTP
 * status; 0 when nobody listens there; 599 when somebody does but may not be reached (errno says
 * why) or does not answer properly within 30 s. */
unsigned client_post(const char *socket, const char *path, const void *body, size_t n,
                     struct buf *out);

#endif
