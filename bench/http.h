/*
 * HTTP/1.1 as a protocol of the load engine. Keep-alive unless a header says otherwise.
 */
#ifndef BENCH_HTTP_H
#define BENCH_HTTP_H

#include "drive.h"

extern const struct protocol http;

/* Send no User-Agent and no Accept. Set before the options are checked. */
extern bool http_bare;

/* Where to connect to; also what the Host header says. Dies on a malformed one. */
void http_address(struct options *options, const char *host, const char *port);

#endif
