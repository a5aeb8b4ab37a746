/* What browsers send, in lines: a cookie's name, a Cookie header, host, Origin, Referer, a hash of a password. */
#include <string.h>

#include "handlers/auth.h"
#include "handlers/cookie.h"
#include "handlers/origin.h"
#include "seal/password.h"
#include "tests/fuzz/must.h"


enum { LINES = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str line[LINES] = {{NULL, 0}};
    const char *at = (const char *)data, *end = at + size;
    for (int i = 0; i < LINES && at < end; i++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        line[i] = (struct str){at, (size_t)((stop ? stop : end) - at)};
        at += line[i].n + 1;
    }
    if (line[0].n > 0) {
        struct str value = cookie_find(line[1], line[0]);
        MUST(value.p == NULL || (value.p >= line[1].p && value.p + value.n <= line[1].p + line[1].n));
        MUST(value.n == 0 || memchr(value.p, ';', value.n) == NULL);
    }
    char name[COOKIE_NAME_MAX];
    size_t n = cookie_name(name, line[1], size % 2);
    MUST(n < sizeof name && strlen(name) == n && strcspn(name, "=; \t,\"") == n);

    struct req r = {.host = line[2], .origin = line[3], .referer = line[4]};
    enum origin origin = origin_of(&r);
    MUST(origin != ORIGIN_SAME || line[2].n > 0);
    MUST((origin == ORIGIN_UNKNOWN) == (line[3].n == 0 && line[4].n == 0));
    MUST(!auth_next_ok(line[3]) || (line[3].p[0] == '/' && (line[3].n == 1 || line[3].p[1] != '/')));

    char hash[SEAL_PASSWORD_HASH_MAX * 2] = "";
    if (line[5].n < sizeof hash && line[5].n > 0)
        memcpy(hash, line[5].p, line[5].n);
    (void)seal_password_outdated(hash);
    return 0;
}
