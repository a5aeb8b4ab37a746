/*
 * FastCGI as a protocol of the load engine: a client that speaks to hanji's socket directly, without nginx.
 *
 * The parameters are those that nginx sends with the configuration in nginx-conf/. Records follow
 * the FastCGI specification 1.0, sections 3.3 to 5.5; request id 1, FCGI_KEEP_CONN set.
 */
#ifndef BENCH_FASTCGI_H
#define BENCH_FASTCGI_H

#include "drive.h"

extern const struct protocol fastcgi;

/* The socket to connect to; dies when its path is too long. */
void fastcgi_address(struct options *options, const char *path);

#endif
