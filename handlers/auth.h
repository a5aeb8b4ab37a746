/* Logging in and out, and who is it: /auth/... */
#ifndef HANJI_HANDLERS_AUTH_H
#define HANJI_HANDLERS_AUTH_H

#include "handlers/routes.h"

handler_fn auth_login;   /* GET: the page; POST: a name and a password for a session */
handler_fn auth_logout;  /* POST: ends the session, or all of the user's */
handler_fn auth_session; /* GET: who asks, and what may he */
handler_fn auth_check;   /* any method, from nginx's auth_request: may he do that there? */

/* True for where a login may lead: an absolute path of this site, as it stands in a URL. */
bool auth_next_ok(struct str next);

#endif
