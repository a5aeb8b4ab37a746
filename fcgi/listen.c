#include "fcgi/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fcgi/log.h"

enum { FIRST_INHERITED = 3 };

int listen_inherited(void)
{
    const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
    if (pid == NULL || fds == NULL || strtol(pid, NULL, 10) != getpid() ||
        strtol(fds, NULL, 10) < 1)
        return -1;
    /* Several workers may wait on it: one that comes late must not block in accept. */
    int flags = fcntl(FIRST_INHERITED, F_GETFL);
    if (flags < 0 || fcntl(FIRST_INHERITED, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(FIRST_INHERITED, F_SETFD, FD_CLOEXEC) != 0)
        return -1;
    return FIRST_INHERITED;
}

static int fail(struct conf_error *error, const char *path, const char *why)
{
    snprintf(error->text, sizeof error->text, "%.300s: %.200s", path, why);
    return -1;
}

/* Whether somebody accepts connections there. A worker that still drains after its supervisor
 * was killed keeps the socket open, too; it is known by the supervisor, who called listen, being
 * gone. */
static bool alive(const struct sockaddr_un *address)
{
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    bool connected = connect(fd, (const struct sockaddr *)address, sizeof *address) == 0;
    bool yes = connected || errno == EAGAIN;
    if (connected && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid > 0 &&
        kill(peer.pid, 0) != 0 && errno == ESRCH)
        yes = false;
    close(fd);
    return yes;
}

static bool give_to_group(const char *path, const char *group)
{
    if (group[0] == 0)
        return true;
    const struct group *g = getgrnam(group);
    return g != NULL && chown(path, (uid_t)-1, g->gr_gid) == 0;
}

/* The address of a socket that may be made there: of nothing, or in place of another socket. */
static bool may_bind(const char *path, struct sockaddr_un *address, struct conf_error *error)
{
    struct stat st;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address->sun_path)
        return fail(error, path, "the name is too long for a unix socket") == 0;
    memcpy(address->sun_path, path, strlen(path) + 1);
    if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
        return fail(error, path,
                    "something that is no socket is there; it is left as it is") == 0;
    return true;
}

/* A socket of that type (SOCK_STREAM, SOCK_DGRAM) in place of what is there, -1 with error set. */
static int bind_there(int type, const struct sockaddr_un *address, unsigned mode,
                      struct conf_error *error)
{
    int fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail(error, address->sun_path, strerror(errno));
    unlink(address->sun_path);
    mode_t old = umask(0777 & ~(mode_t)mode);
    int rc = bind(fd, (const struct sockaddr *)address, sizeof *address);
    int saved = errno;
    umask(old);
    if (rc == 0)
        return fd;
    close(fd);
    return fail(error, address->sun_path, strerror(saved));
}

int listen_datagram(const char *path, struct conf_error *error)
{
    struct sockaddr_un address;
    return may_bind(path, &address, error) ? bind_there(SOCK_DGRAM, &address, 0600, error) : -1;
}

int listen_unix(const char *path, unsigned mode, const char *group, int backlog,
                struct conf_error *error)
{
    struct sockaddr_un address;
    if (!may_bind(path, &address, error))
        return -1;
    if (alive(&address))
        return fail(error, path, "another server listens there");
    int fd = bind_there(SOCK_STREAM, &address, mode, error);
    if (fd < 0)
        return -1;
    if (!give_to_group(path, group)) {
        close(fd);
        snprintf(error->text, sizeof error->text,
                 "%s: cannot be given to the group \"%s\": %s", path, group,
                 errno != 0 ? strerror(errno) : "no such group");
        return -1;
    }
    if (listen(fd, backlog) == 0)
        return fd;
    int saved = errno;
    close(fd);
    return fail(error, path, strerror(saved));
}

static void give_to_folder_owner(int fd, char *path)
{
    struct stat file, folder;
    char *slash = strrchr(path, '/');
    if (slash == NULL || fstat(fd, &file) != 0)
        return;
    *slash = 0;
    if (stat(slash == path ? "/" : path, &folder) == 0 && file.st_uid != folder.st_uid &&
        fchown(fd, folder.st_uid, folder.st_gid) != 0)
        log_line(LOG_WARN, "the lock file stays root's", "folder", path, NULL);
    *slash = '/';
}

int listen_lock(const char *database, struct conf_error *error)
{
    char path[PATH_MAX + 8], real[PATH_MAX];
    snprintf(path, sizeof path, "%s.lock",
             realpath(database, real) != NULL ? real : database);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail(error, path, strerror(errno));
    if (geteuid() == 0)
        give_to_folder_owner(fd, path);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    return fail(error, path, "another server serves this database");
}
