/* Paths and query strings. The input is taken as the target of a request, as a path, and as a query. */
#include "fcgi/path.h"
#include "tests/fuzz/must.h"

static bool has(struct str s, const char *part)
{
    return s.n > 0 && memmem(s.p, s.n, part, strlen(part)) != NULL;
}

static bool ends(struct str s, const char *part)
{
    size_t n = strlen(part);
    return s.n >= n && memcmp(s.p + s.n - n, part, n) == 0;
}

/* What may be routed has one spelling and stays below its root. */
static void check_routable(struct str path)
{
    MUST(path.n > 0 && path.p[0] == '/');
    MUST(!has(path, "//") && !has(path, "/./") && !has(path, "/../") && !has(path, "\\"));
    MUST(!ends(path, "/.") && !ends(path, "/.."));
    MUST(utf8_ok(path.p, path.n));
    for (size_t i = 0; i < path.n; i++)
        MUST((unsigned char)path.p[i] >= 0x20 && path.p[i] != 0x7f);
}

static void target(struct str in)
{
    struct buf encoded = {0};
    char *first = malloc(in.n + 1), *second = malloc(3 * in.n + 1);
    MUST(first != NULL && second != NULL);
    size_t n = path_normalise(in, first);
    MUST(n <= in.n);
    if (n > 0) {
        struct str path = {first, n};
        MUST(path.p[0] == '/' && !has(path, "//") && !has(path, "/./") && !has(path, "/../"));
        MUST(!ends(path, "/.") && !ends(path, "/.."));
        MUST(memchr(first, 0, n) == NULL);
        if (path_encode(&encoded, path)) {
            struct str again = {(const char *)encoded.data, encoded.len};
            MUST(path_normalise(again, second) == n && memcmp(first, second, n) == 0);
        } else {
            MUST(n > 65536 / 3);
        }
        if (path_ok(path))
            check_routable(path);
    }
    buf_free(&encoded);
    free(first);
    free(second);
}

static void query(struct str in)
{
    struct buf value = {0}, again = {0}, text = {0};
    enum query_result found = query_find(in, "a", &value);
    if (found == QUERY_OK) {
        struct str v = {(const char *)value.data, value.len};
        MUST(v.n <= QUERY_VALUE_MAX && utf8_ok(v.p, v.n) && (v.n == 0 || memchr(v.p, 0, v.n) == NULL));
        MUST(buf_add(&text, "b=1&a=", 6, 65536) && path_encode(&text, v) && buf_add(&text, "&c", 2, 65536));
        MUST(query_find((struct str){(const char *)text.data, text.len}, "a", &again) == QUERY_OK);
        MUST(again.len == v.n && (v.n == 0 || memcmp(again.data, v.p, v.n) == 0));
        MUST(query_find((struct str){(const char *)text.data, text.len}, "bc", &again) == QUERY_NONE);
    }
    MUST(found != QUERY_NONE || !(in.n >= 2 && memcmp(in.p, "a=", 2) == 0));
    buf_free(&value);
    buf_free(&again);
    buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size};
    target(in);
    query(in);
    if (path_ok(in))
        check_routable(in);
    return 0;
}
