/* Which addresses a line may deliver to. Judged on the address a socket is about to be connected
 * to, so that no spelling of a URL, name or later answer of a resolver gets around it. Pure, any
 * thread. */
#ifndef HANJI_HANDLERS_COURIER_GUARD_H
#define HANJI_HANDLERS_COURIER_GUARD_H

#include <sys/socket.h>

enum courier_place {
    COURIER_PUBLIC,  /* the Internet */
    COURIER_PRIVATE, /* this machine, its networks: only where the line allows it */
    COURIER_NEVER,   /* link-local (where clouds keep their secrets), multicast, no unicast */
};

/* IPv4 addresses inside of IPv6 ones (mapped, translated, NAT64, 6to4) are judged as what they
 * are. What is in no list of public addresses is not public. */
enum courier_place courier_guard_place(const struct sockaddr *address, socklen_t n);

/* The same of an address as text, without brackets; a zone behind '%' is passed over. */
enum courier_place courier_guard_text(const char *address);

#endif
