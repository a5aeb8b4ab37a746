/* The address of a line: what may be stored and handed to the courier.
 *
 * Stricter than RFC 3986, so that every parser sees the same host in it: http or https in small
 * letters, no user and password, no backslash, no fragment, visible ASCII only; the host is a name,
 * an IPv4 address in its four plain numbers, or an IPv6 address in brackets; 2130706433, 0x7f.1 and
 * the other disguises of an address are refused. Which addresses may be reached is not judged here:
 * a name leads anywhere, so the courier looks at the socket's. Pure functions, any thread. */
#ifndef HANJI_HANDLERS_SENDS_URL_H
#define HANJI_HANDLERS_SENDS_URL_H

#include "fcgi/buf.h"

/* NULL, or what is wrong with it, to stand behind "The address ". */
const char *sends_url_wrong(struct str url) __attribute__((warn_unused_result));

#endif
