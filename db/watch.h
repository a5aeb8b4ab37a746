/* Long work of db/ seen from outside: how far it is, and which unfinished file is there. */
#ifndef HANJI_DB_WATCH_H
#define HANJI_DB_WATCH_H

#include <limits.h>
#include <signal.h>
#include <stdint.h>

struct db_watch {
    /* How much of `all` is done, in whatever unit; called often. May be NULL. */
    void (*progress)(void *arg, const char *what, uint64_t done, uint64_t all);
    void *arg;
    /* While `unfinished` is not 0, temp names a file that is removed when the work fails. A signal
     * handler that ends the process may remove it as well. */
    volatile sig_atomic_t unfinished;
    char temp[PATH_MAX];
};

#endif
