/* Listening sockets: inherited from systemd, or made here. Start-up only. */
#ifndef HANJI_FCGI_LISTEN_H
#define HANJI_FCGI_LISTEN_H

#include <stdbool.h>

#include "fcgi/conf.h"

/* The first socket that systemd (or whoever speaks sd_listen_fds(3)) passed, -1 for none. */
int listen_inherited(void);

/* Makes a listening unix socket. A stale file of a server that is gone is replaced; a live one is
 * an error. group may be "". Returns the descriptor, or -1 with error set. */
int listen_unix(const char *path, unsigned mode, const char *group, int backlog,
                struct conf_error *error);

/* Makes a datagram socket, mode 0600, in place of another that is there. Never blocks. Returns the
 * descriptor, or -1 with error set. */
int listen_datagram(const char *path, struct conf_error *error);

/* Takes the lock that lets one server only serve a database, on "DATABASE.lock" by the database's
 * real name; -1 with error set when another holds it. Held until the descriptor is closed. A lock
 * file that root makes belongs to the owner of its folder, whom the server runs as. */
int listen_lock(const char *database, struct conf_error *error);

#endif
