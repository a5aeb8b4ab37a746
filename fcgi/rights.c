#include "fcgi/rights.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "fcgi/log.h"

void rights_worker(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        log_line(LOG_WARN, "privileges cannot be given up", "reason", strerror(errno), NULL);
}

/* LeakSanitizer looks at the process as a debugger does: it may only while a core could be left. */
#if defined(__SANITIZE_ADDRESS__)
#define OBSERVED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OBSERVED 1
#endif
#endif
#ifndef OBSERVED
#define OBSERVED 0
#endif

void rights_secrets(void)
{
    struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none); /* a unit that forbids the call has LimitCORE=0 */
    if (!OBSERVED && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        log_line(LOG_WARN, "a core could be left, with keys in it", "reason", strerror(errno),
                 NULL);
}
