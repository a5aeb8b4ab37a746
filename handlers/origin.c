#include "handlers/origin.h"

#include <string.h>
#include <strings.h>

bool origin_https(const struct req *r)
{
    return r->https.n > 0 && !str_eq(r->https, STR_LIT("off"));
}

/* True when text is scheme://host of the request, and nothing or a path behind it. A browser leaves
 * the scheme's usual port out of both, and writes the host in small letters. */
static bool is_ours(const struct req *r, struct str text, bool path)
{
    struct str scheme = origin_https(r) ? STR_LIT("https://") : STR_LIT("http://");
    if (r->host.n == 0 || !str_starts(text, scheme) || text.n < scheme.n + r->host.n ||
        strncasecmp(text.p + scheme.n, r->host.p, r->host.n) != 0)
        return false;
    struct str rest = {text.p + scheme.n + r->host.n, text.n - scheme.n - r->host.n};
    return rest.n == 0 || (path && rest.p[0] == '/');
}

enum origin origin_of(const struct req *r)
{
    if (r->fetch_site.n > 0)
        return str_eq(r->fetch_site, STR_LIT("same-origin")) ||
                       str_eq(r->fetch_site, STR_LIT("none"))
                   ? ORIGIN_SAME
                   : ORIGIN_OTHER;
    if (r->origin.n > 0)
        return is_ours(r, r->origin, false) ? ORIGIN_SAME : ORIGIN_OTHER;
    if (r->referer.n > 0)
        return is_ours(r, r->referer, true) ? ORIGIN_SAME : ORIGIN_OTHER;
    return ORIGIN_UNKNOWN;
}
