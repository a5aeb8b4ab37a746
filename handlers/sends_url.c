#include "handlers/sends_url.h"

#include <arpa/inet.h>
#include <string.h>

#include "db/line.h"

enum { HOST_MAX = 253, LABEL_MAX = 63, PORT_DIGITS_MAX = 5, PORT_MAX = 65535 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static struct str rest_of(struct str s, size_t at)
{
    return (struct str){s.p + at, s.n - at};
}

/* What RFC 3986 has in a path or a query, with whole escapes. */
static bool characters_ok(struct str s)
{
    static const char others[] = "-._~:/?[]@!$&'()*+,;=";
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool escape = c == '%' && s.n - i > 2 && is_hex(s.p[i + 1]) && is_hex(s.p[i + 2]);
        bool plain = is_digit(c) || is_letter(c) || (c != 0 && strchr(others, c) != NULL);
        if (!escape && !plain)
            return false;
    }
    return true;
}

/* The first that is no visible ASCII, or that others than RFC 3986 read in another way. */
static const char *sign_wrong(struct str url)
{
    for (size_t i = 0; i < url.n; i++) {
        char c = url.p[i];
        if (c <= ' ' || c > '~')
            return "has visible ASCII characters only: escape others as %XX, write a name with "
                   "others as xn--…";
        if (c == '\\')
            return "has a backslash, which parsers do not agree about";
        if (c == '#')
            return "has a fragment, which is never sent";
    }
    return NULL;
}

static bool number_ok(struct str s, unsigned most)
{
    unsigned v = 0;
    if (s.n == 0 || s.n > PORT_DIGITS_MAX || (s.n > 1 && s.p[0] == '0'))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (!is_digit(s.p[i]))
            return false;
        v = v * 10 + (unsigned)(s.p[i] - '0');
    }
    return v <= most;
}

/* Up to the sign, or all; moves *s behind it. */
static struct str cut(struct str *s, char sign)
{
    const char *at = s->n > 0 ? memchr(s->p, sign, s->n) : NULL;
    struct str first = {s->p, at != NULL ? (size_t)(at - s->p) : s->n};
    *s = rest_of(*s, at != NULL ? first.n + 1 : s->n);
    return first;
}

static bool ipv4_ok(struct str host)
{
    unsigned count = 0;
    for (struct str left = host; left.n > 0 && count <= 4; count++)
        if (!number_ok(cut(&left, '.'), 255))
            return false;
    return count == 4 && host.p[host.n - 1] != '.';
}

/* A last part that is a number makes it an address for parsers that know all its spellings. */
static bool ends_in_number(struct str host)
{
    size_t end = host.n, from, i;
    if (end > 0 && host.p[end - 1] == '.')
        end--;
    for (from = end; from > 0 && host.p[from - 1] != '.'; from--)
        continue;
    for (i = from; i < end && is_digit(host.p[i]); i++)
        continue;
    if (i == end)
        return end > from;
    if (end - from < 2 || host.p[from] != '0' || (host.p[from + 1] | 0x20) != 'x')
        return false;
    for (i = from + 2; i < end && is_hex(host.p[i]); i++)
        continue;
    return i == end;
}

static bool label_ok(struct str label)
{
    for (size_t i = 0; i < label.n; i++)
        if (!is_digit(label.p[i]) && !is_letter(label.p[i]) && label.p[i] != '-' &&
            label.p[i] != '_')
            return false;
    return label.n >= 1 && label.n <= LABEL_MAX && label.p[0] != '-' &&
           label.p[label.n - 1] != '-';
}

static bool name_ok(struct str host)
{
    if (host.n > 0 && host.p[host.n - 1] == '.')
        host.n--; /* the root, as in "example.org." */
    if (host.n == 0 || host.n > HOST_MAX || host.p[host.n - 1] == '.')
        return false;
    for (struct str left = host; left.n > 0;)
        if (!label_ok(cut(&left, '.')))
            return false;
    return true;
}

static bool ipv6_ok(struct str host)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (host.n >= sizeof text)
        return false;
    memcpy(text, host.p, host.n);
    text[host.n] = 0;
    return inet_pton(AF_INET6, text, &address) == 1;
}

static const char *host_wrong(struct str host)
{
    if (host.n == 0)
        return "has no host";
    if (ends_in_number(host))
        return ipv4_ok(host) ? NULL
                             : "ends in a number, and is no address of four plain numbers such "
                               "as 192.0.2.7";
    return name_ok(host) ? NULL : "has a host that is no name";
}

static const char *authority_wrong(struct str authority)
{
    struct str left = authority, host;
    const char *wrong;
    if (memchr(authority.p, '@', authority.n) != NULL)
        return "has a user or a password in it";
    if (authority.n > 0 && authority.p[0] == '[') {
        left = rest_of(authority, 1);
        if (memchr(left.p, ']', left.n) == NULL)
            return "has a '[' without its ']'";
        host = cut(&left, ']');
        wrong = ipv6_ok(host) ? NULL : "has no IPv6 address between its brackets";
        if (wrong == NULL && left.n > 0 && left.p[0] != ':')
            wrong = "has something behind its ']'";
        if (wrong != NULL || left.n == 0)
            return wrong;
        left = rest_of(left, 1);
    } else {
        bool has_port = memchr(authority.p, ':', authority.n) != NULL;
        host = cut(&left, ':');
        wrong = host_wrong(host);
        if (wrong != NULL || !has_port)
            return wrong;
    }
    return number_ok(left, PORT_MAX) && !(left.n == 1 && left.p[0] == '0')
               ? NULL
               : "has a port that is none of 1 to 65535";
}

const char *sends_url_wrong(struct str url)
{
    static const struct str schemes[] = {{"https://", 8}, {"http://", 7}};
    size_t at = 0, end;
    if (url.n > DB_LINE_URL_MAX)
        return "has more than 2048 characters";
    const char *wrong = sign_wrong(url);
    if (wrong != NULL)
        return wrong;
    for (size_t i = 0; i < 2; i++)
        if (str_starts(url, schemes[i]))
            at = schemes[i].n;
    if (at == 0)
        return "does not begin with https:// or http:// in small letters";
    for (end = at; end < url.n && url.p[end] != '/' && url.p[end] != '?'; end++)
        continue;
    wrong = authority_wrong((struct str){url.p + at, end - at});
    if (wrong == NULL && !characters_ok(rest_of(url, end)))
        wrong = "has a character that no path and no query has; escape it as %XX";
    return wrong;
}
