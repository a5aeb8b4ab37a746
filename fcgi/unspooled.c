/* Paths whose bodies never lie in a file: what is sent to others may be sealed before it is stored,
 * so it must not be on the disk in plain text meanwhile. Asked only for bodies that memory_max is
 * too small for. The path is found as fcgi/req.c finds it. */
#include <stdlib.h>
#include <string.h>

#include "fcgi/frame.h"
#include "fcgi/path.h"

/* The value of a parameter, {NULL} when it is not there. */
static struct str value_of(const unsigned char *pairs, size_t n, struct str wanted)
{
    struct str name, value;
    for (size_t at = 0, used; at < n; at += used) {
        used = frame_pair(pairs + at, n - at, &name, &value);
        if (used == 0)
            break;
        if (str_eq(name, wanted))
            return value;
    }
    return (struct str){NULL, 0};
}

static bool listed(struct str path, const char *const *paths)
{
    for (; *paths != NULL; paths++) {
        struct str one = {*paths, strlen(*paths)};
        if (one.p[one.n - 1] == '/' ? str_starts(path, one) : str_eq(path, one))
            return true;
    }
    return false;
}

static bool below(struct str path, struct str mount, const char *const *paths)
{
    if (mount.n > 0 && mount.p[mount.n - 1] == '/')
        mount.n--;
    if (!str_starts(path, mount))
        return false;
    return listed((struct str){path.p + mount.n, path.n - mount.n}, paths);
}

bool frame_unspooled(const unsigned char *pairs, size_t n, const char *const *paths)
{
    struct str mount = value_of(pairs, n, STR_LIT("SCRIPT_NAME"));
    struct str path = value_of(pairs, n, STR_LIT("DOCUMENT_URI"));
    if (path.n > 0)
        return below(path, mount, paths);
    struct str target = value_of(pairs, n, STR_LIT("REQUEST_URI"));
    char *text = target.n > 0 ? malloc(target.n) : NULL;
    if (text == NULL)
        return target.n > 0; /* rather in memory */
    bool yes = below((struct str){text, path_normalise(target, text)}, mount, paths);
    free(text);
    return yes;
}
