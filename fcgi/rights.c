#include "fcgi/rights.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "fcgi/log.h"

void rights_worker(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        log_line(LOG_WARN, "privileges cannot be given up", "reason", strerror(errno), NULL);
}
