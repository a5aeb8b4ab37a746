#include "handlers/cookie.h"

#include <string.h>

static void add(char *to, size_t *n, size_t cap, const char *text)
{
    size_t len = strlen(text);
    if (len >= cap - *n)
        return;
    memcpy(to + *n, text, len + 1);
    *n += len;
}

size_t cookie_name(char name[COOKIE_NAME_MAX], struct str mount, bool https)
{
    static const char hex[] = "0123456789abcdef";
    size_t n = 0;
    name[0] = 0;
    add(name, &n, COOKIE_NAME_MAX, https ? "__Host-hanji_session" : "hanji_session");
    for (size_t i = 0; i < mount.n; i++) {
        unsigned char c = (unsigned char)mount.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-';
        char text[4] = {plain ? (char)c : '_', plain ? 0 : hex[c >> 4], hex[c & 15], 0};
        add(name, &n, COOKIE_NAME_MAX, text);
    }
    return n;
}

static struct str trim(struct str s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t')) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

struct str cookie_find(struct str header, struct str name)
{
    struct str found = {NULL, 0};
    for (size_t at = 0; at < header.n;) {
        const char *p = header.p + at, *end = memchr(p, ';', header.n - at);
        size_t n = end ? (size_t)(end - p) : header.n - at;
        struct str pair = trim((struct str){p, n});
        at += n + 1;
        if (!str_starts(pair, name) || pair.n == name.n || pair.p[name.n] != '=')
            continue;
        struct str value = trim((struct str){pair.p + name.n + 1, pair.n - name.n - 1});
        if (found.p != NULL && !str_eq(found, value))
            return (struct str){NULL, 0};
        found = value;
    }
    return found;
}

void cookie_set(struct resp *r, struct str mount, bool https, const char *value,
                uint64_t max_age_s)
{
    char line[COOKIE_NAME_MAX + COOKIE_VALUE_MAX + 96], age[21];
    size_t n = cookie_name(line, mount, https);
    age[put_u64(age, value ? max_age_s : 0)] = 0;
    add(line, &n, sizeof line, "=");
    add(line, &n, sizeof line, value ? value : "");
    add(line, &n, sizeof line, "; Path=/; Max-Age=");
    add(line, &n, sizeof line, age);
    add(line, &n, sizeof line, "; HttpOnly; SameSite=Lax");
    if (https)
        add(line, &n, sizeof line, "; Secure");
    resp_header(r, "Set-Cookie", (struct str){line, n});
}
