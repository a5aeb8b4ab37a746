/* Which form of an app's answer a client wants. Pure, any thread. */
#ifndef HANJI_HANDLERS_APP_ACCEPT_H
#define HANJI_HANDLERS_APP_ACCEPT_H

#include "handlers/app_out.h"

/* By an Accept header (RFC 9110 12.5.1): the one that is wanted most, JSON before the others where
 * that is the same. A wildcard alone means JSON. html: there is a page. */
enum app_format app_accept(struct str accept, bool html);

/* By its name in ?format=. False: there is none of that name. */
bool app_format_named(struct str name, enum app_format *format) __attribute__((warn_unused_result));

#endif
