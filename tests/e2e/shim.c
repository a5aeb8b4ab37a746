/* shim.so, preloaded: makes syncs slow or fail, the disk full or unreadable, while the program runs.
 *
 * SHIM_CONTROL names a file of four 32-bit numbers that is mapped and read at every call, so a test changes them at
 * any time: [0] microseconds that each fsync/fdatasync takes longer, [1] how many of the next syncs fail with EIO,
 * [2] non-zero: writes that need room in the database, its WAL or an unlinked file fail with ENOSPC,
 * [3] non-zero: reads of the database or its WAL fail with EIO. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile uint32_t *control;

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("SHIM_CONTROL");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *map = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map != MAP_FAILED)
        control = map;
}

static int sync_fails(void)
{
    if (!control)
        return 0;
    if (control[0])
        usleep(control[0]);
    if (!control[1])
        return 0;
    __atomic_sub_fetch(&control[1], 1, __ATOMIC_SEQ_CST);
    errno = EIO;
    return 1;
}

/* Puts the file's name into path; 0 when it is none of the store. */
static int of_store(int fd, char *path, size_t size)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, size - 1);
    if (n <= 0)
        return 0;
    path[n] = 0;
    return (strstr(path, "hanji.db") || strstr(path, "(deleted)")) && !strstr(path, "-shm");
}

static int unreadable(int fd)
{
    char path[4096];
    if (!control || !control[3] || !of_store(fd, path, sizeof path) || strstr(path, "(deleted)"))
        return 0;
    errno = EIO;
    return 1;
}

/* A write beyond the end of a file of the store needs room. */
static int no_room(int fd, size_t size, off_t offset)
{
    char path[4096];
    struct stat st;
    if (!control || !control[2] || !of_store(fd, path, sizeof path))
        return 0;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || offset + (off_t)size <= st.st_size)
        return 0;
    errno = ENOSPC;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int fsync(int fd) { return sync_fails() ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return sync_fails() ? -1 : REAL(fdatasync)(fd); }

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    return no_room(fd, size, offset) ? -1 : REAL(pwrite)(fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    return no_room(fd, size, offset) ? -1 : REAL(pwrite64)(fd, data, size, offset);
}

ssize_t pread(int fd, void *data, size_t size, off_t offset)
{
    return unreadable(fd) ? -1 : REAL(pread)(fd, data, size, offset);
}

ssize_t pread64(int fd, void *data, size_t size, off64_t offset)
{
    return unreadable(fd) ? -1 : REAL(pread64)(fd, data, size, offset);
}
