/*
 * slowsync: a preload library that makes a disk's sync take a given time.
 *
 *   LD_PRELOAD=build/bench/slowsync.so HANJI_SYNC_US=5000 hanji …
 *
 * fsync and fdatasync of a regular file first do the real call, then sleep what is left of
 * HANJI_SYNC_US since the call began; a real sync that takes longer is not shortened.
 * HANJI_SYNC_REAL=0 leaves the real call out: nothing is durable then, only the timing counts.
 * HANJI_SYNC_STATS=FILE: three 64-bit counters in the machine's byte order, kept while running by
 * every process under the shim: calls, ns inside real calls, ns in all. Directories, sockets and
 * everything else go straight through. Without HANJI_SYNC_US nothing changes.
 *
 * Called on whatever thread syncs; the counters are atomic, the rest is set once at load.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct stats {
    _Atomic uint64_t calls;
    _Atomic uint64_t real_ns;
    _Atomic uint64_t all_ns;
};

typedef int sync_call(int fd);

static sync_call *real_fsync;
static sync_call *real_fdatasync;
static int64_t target_ns;
static bool skip_real;
static struct stats own_stats;
static struct stats *stats = &own_stats;

static sync_call *find(const char *name)
{
    sync_call *call;
    void *symbol = dlsym(RTLD_NEXT, name);

    if (symbol == NULL)
        abort();
    memcpy(&call, &symbol, sizeof call); /* ISO C has no cast from object to function */
    return call;
}

static void map_stats(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *memory;

    if (fd < 0)
        return;
    if (ftruncate(fd, sizeof *stats) == 0) {
        memory = mmap(NULL, sizeof *stats, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (memory != MAP_FAILED)
            stats = memory;
    }
    (void)close(fd);
}

__attribute__((constructor)) static void load(void)
{
    const char *target_us = getenv("HANJI_SYNC_US");
    const char *real = getenv("HANJI_SYNC_REAL");
    const char *path = getenv("HANJI_SYNC_STATS");

    real_fsync = find("fsync");
    real_fdatasync = find("fdatasync");
    if (target_us != NULL)
        target_ns = (int64_t)strtoul(target_us, NULL, 10) * 1000;
    skip_real = real != NULL && strcmp(real, "0") == 0;
    if (path != NULL && path[0] != '\0')
        map_stats(path);
}

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_until(int64_t until_ns)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                             .tv_nsec = (long)(until_ns % 1000000000)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static int slow_sync(sync_call *real, int fd)
{
    struct stat status;
    int64_t start_ns;
    int64_t real_end_ns;
    int result = 0;
    int error;

    if (target_ns == 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return real(fd);
    start_ns = now_ns();
    if (!skip_real)
        result = real(fd);
    error = errno;
    real_end_ns = now_ns();
    if (real_end_ns < start_ns + target_ns)
        sleep_until(start_ns + target_ns);
    atomic_fetch_add(&stats->calls, 1);
    atomic_fetch_add(&stats->real_ns, (uint64_t)(real_end_ns - start_ns));
    atomic_fetch_add(&stats->all_ns, (uint64_t)(now_ns() - start_ns));
    errno = error;
    return result;
}

int fsync(int fd)
{
    return slow_sync(real_fsync, fd);
}

int fdatasync(int fildes)
{
    return slow_sync(real_fdatasync, fildes);
}
