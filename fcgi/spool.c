#include "fcgi/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* For file systems that do not have O_TMPFILE. */
static int open_and_unlink(const char *folder)
{
    char name[4096];
    int n = snprintf(name, sizeof name, "%s/.hanji-body-XXXXXX", folder);
    if (n < 0 || (size_t)n >= sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        unlink(name);
    return fd;
}

int spool_open(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT))
        fd = open_and_unlink(folder);
    return fd;
}

bool spool_write(int fd, const void *p, size_t n)
{
    const char *at = p;
    while (n > 0) {
        ssize_t wrote = write(fd, at, n);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        at += wrote;
        n -= (size_t)wrote;
    }
    return true;
}

bool spool_read(int fd, void *p, size_t n, size_t offset)
{
    char *at = p;
    while (n > 0) {
        ssize_t got = pread(fd, at, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = 0;
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
        offset += (size_t)got;
    }
    return true;
}
