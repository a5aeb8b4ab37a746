/* Deliveries: messages on their way over HTTP, with libcurl. The only part that knows it.
 *
 * A POST over HTTP/1.1, over TLS from 1.2 on, to the URL of the line and nowhere else: no redirect
 * is followed, no proxy used, whatever the environment says, no cookie, .netrc, or user in the URL.
 * The name of the peer is always verified, with the line's own authorities instead of the machine's
 * where it has some. Addresses are judged when a socket is made, and again when a connection that
 * another line made is used (courier_guard.h). An answer is read to its headers and
 * COURIER_SAID_MAX bytes of body, and never unpacked. Once its headers have come its status stands,
 * whatever becomes of the rest.
 *
 * libcurl sends a request once more by itself when a kept connection turns out to be dead before a
 * byte of an answer came. That is left so: a receiver sees the same id, timestamp and signature
 * twice at most, which it must be ready for with any sender, and without kept connections each
 * message would cost a TLS handshake.
 *
 * One thread only, but courier_curl_wake. */
#ifndef HANJI_HANDLERS_COURIER_CURL_H
#define HANJI_HANDLERS_COURIER_CURL_H

#include "handlers/courier_item.h"
#include "handlers/courier_plan.h"

enum {
    COURIER_SAID_MAX = 16 << 10,    /* bytes of an answer that are read */
    COURIER_HEADERS_MAX = 64 << 10, /* of its headers */
    COURIER_DRIP_BYTES = 1024,      /* a second, that a body must come with */
    COURIER_DRIP_S = 3,             /* or is cut after this */
};

struct courier_curl;

/* total_ms: of one delivery; connect_ms: of it, until a connection stands. ended is called from
 * courier_curl_run with what became of each. NULL: it cannot be used. */
struct courier_curl_config {
    int64_t total_ms, connect_ms;
    void (*ended)(void *arg, struct courier_item *item, const struct courier_end *end,
                  int64_t took_ms, const char *detail);
    void *arg;
};
struct courier_curl *courier_curl_new(const struct courier_curl_config *config);

/* Ends what is on its way without a word. Safe with NULL. */
void courier_curl_free(struct courier_curl *c);

/* Sends it; the item must stay. False: memory is short, nothing was begun. */
bool courier_curl_send(struct courier_curl *c, struct courier_item *item)
    __attribute__((warn_unused_result));

/* Does what can be done, then waits for more: at most wait_ms, until one of n descriptors can be
 * read or courier_curl_wake was called. */
enum { COURIER_FDS_MAX = 2 };
void courier_curl_run(struct courier_curl *c, int64_t wait_ms, const int *fds, unsigned n);

/* From any thread: ends the wait of courier_curl_run, or the next one. */
void courier_curl_wake(struct courier_curl *c);

#endif
