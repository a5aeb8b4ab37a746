/* The page on which a person logs in. Works without scripts; everything it needs is in it. */
#ifndef HANJI_HANDLERS_AUTH_PAGE_H
#define HANJI_HANDLERS_AUTH_PAGE_H

#include "fcgi/loop.h"

struct auth_page {
    unsigned status;
    struct str name;    /* fills the field */
    struct str next;    /* where to go on; {NULL, 0}: stay */
    struct str user;    /* who is logged in; {NULL, 0}: nobody */
    const char *error;  /* what went wrong, or NULL */
};

void auth_page(struct call *c, const struct auth_page *page);

#endif
