/* Functions of apps on text: slug, html, url_encode, uuid7. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "db/guard_internal.h"

enum { SLUG_MAX = 80 };

/* U+00C0 to U+017F as ASCII letters; '-' parts words. */
static const char *const folded[] = {
    "a", "a", "a", "a", "ae", "a", "ae", "c", "e", "e", "e", "e", "i", "i", "i", "i",
    "d", "n", "o", "o", "o", "o", "oe", "-", "o", "u", "u", "u", "ue", "y", "th", "ss",
    "a", "a", "a", "a", "ae", "a", "ae", "c", "e", "e", "e", "e", "i", "i", "i", "i",
    "d", "n", "o", "o", "o", "o", "oe", "-", "o", "u", "u", "u", "ue", "y", "th", "y",
    "a", "a", "a", "a", "a", "a", "c", "c", "c", "c", "c", "c", "c", "c", "d", "d",
    "d", "d", "e", "e", "e", "e", "e", "e", "e", "e", "e", "e", "g", "g", "g", "g",
    "g", "g", "g", "g", "h", "h", "h", "h", "i", "i", "i", "i", "i", "i", "i", "i",
    "i", "i", "ij", "ij", "j", "j", "k", "k", "k", "l", "l", "l", "l", "l", "l", "l",
    "l", "l", "l", "n", "n", "n", "n", "n", "n", "n", "n", "n", "o", "o", "o", "o",
    "o", "o", "oe", "oe", "r", "r", "r", "r", "r", "r", "s", "s", "s", "s", "s", "s",
    "s", "s", "t", "t", "t", "t", "t", "t", "u", "u", "u", "u", "u", "u", "u", "u",
    "u", "u", "u", "u", "w", "w", "y", "y", "y", "z", "z", "z", "z", "z", "z", "s",
};

_Static_assert(sizeof folded / sizeof *folded == 0x180 - 0xc0, "one for each character");

/* The next character; 0xfffd where it is malformed. */
static unsigned next_char(const unsigned char **p, const unsigned char *end)
{
    unsigned c = *(*p)++;
    int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc2 ? 1 : 0;
    if (c < 0x80)
        return c;
    c &= more == 3 ? 0x07 : more == 2 ? 0x0f : more == 1 ? 0x1f : 0;
    for (; more > 0 && *p < end && (**p & 0xc0) == 0x80; more--)
        c = c << 6 | (*(*p)++ & 0x3f);
    return more == 0 && c >= 0x80 ? c : 0xfffd;
}

/* What a character becomes: letters and digits, "-" where words part, "" nothing. */
static const char *fold(unsigned c, char one[2])
{
    one[0] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    one[1] = 0;
    if ((one[0] >= 'a' && one[0] <= 'z' && c < 0x80) || (c >= '0' && c <= '9'))
        return one;
    if (c == '\'' || c == 0x2019) /* apostrophes */
        return "";
    if (c < 0xc0 || (c >= 0x2000 && c < 0x2070) || c == 0x3000)
        return "-";
    return c < 0x180 ? folded[c - 0xc0] : "";
}

static void sql_slug(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct db_guard_str text = db_guard_str(argv[0]);
    char out[SLUG_MAX], one[2];
    size_t n = 0;
    bool parted = false;
    (void)argc;
    if (text.p == NULL)
        return;
    const unsigned char *p = (const unsigned char *)text.p, *end = p + text.n;
    while (p < end) {
        const char *to = fold(next_char(&p, end), one);
        size_t len = strlen(to);
        if (*to == '-') {
            parted = n > 0;
            continue;
        }
        if (n + parted + len > SLUG_MAX)
            break;
        if (len > 0 && parted)
            out[n++] = '-';
        parted = parted && len == 0;
        memcpy(out + n, to, len);
        n += len;
    }
    sqlite3_result_text(ctx, out, (int)n, SQLITE_TRANSIENT);
}

/* What a byte becomes, and of how many bytes; at most six. */
typedef size_t encode_fn(unsigned char c, char to[8]);

static size_t to_html(unsigned char c, char to[8])
{
    static const struct {
        char of;
        const char *is;
    } all[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].of == (char)c) {
            size_t n = strlen(all[i].is);
            memcpy(to, all[i].is, n);
            return n;
        }
    to[0] = (char)c;
    return 1;
}

/* RFC 3986 2.1, 2.3. */
static size_t to_url(unsigned char c, char to[8])
{
    static const char digits[] = "0123456789ABCDEF";
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '-' || c == '.' || c == '_' || c == '~';
    to[0] = plain ? (char)c : '%';
    to[1] = digits[c >> 4];
    to[2] = digits[c & 15];
    return plain ? 1 : 3;
}

static void encode(sqlite3_context *ctx, sqlite3_value *v, encode_fn *how)
{
    struct db_guard_str text = db_guard_str(v);
    char one[8];
    size_t n = 0, at = 0;
    if (text.p == NULL)
        return;
    for (size_t i = 0; i < text.n; i++)
        n += how((unsigned char)text.p[i], one);
    if (n > (size_t)sqlite3_limit(sqlite3_context_db_handle(ctx), SQLITE_LIMIT_LENGTH, -1)) {
        sqlite3_result_error_toobig(ctx);
        return;
    }
    char *out = sqlite3_malloc64(n + 1);
    if (out == NULL) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    for (size_t i = 0; i < text.n; i++) {
        size_t len = how((unsigned char)text.p[i], one);
        memcpy(out + at, one, len);
        at += len;
    }
    out[n] = 0;
    sqlite3_result_text64(ctx, out, n, sqlite3_free, SQLITE_UTF8);
}

static void sql_html(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    encode(ctx, argv[0], to_html);
}

static void sql_url_encode(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    encode(ctx, argv[0], to_url);
}

/* ---- uuid7 ---- */

/* Of the last one in this process: each is above those before it. */
static struct {
    pthread_mutex_t lock;
    uint64_t ms;
    uint64_t random; /* 74 bits, the upper 64 of them */
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t random64(void)
{
    uint64_t v;
    sqlite3_randomness(sizeof v, &v);
    return v;
}

/* Goes on by a step that cannot be guessed. */
static void advance(uint64_t now_ms)
{
    uint64_t step = 1 + (random64() >> 24);
    if (now_ms > last.ms) {
        last.ms = now_ms;
        last.random = random64() >> 1;
    } else if (last.random > UINT64_MAX - step) {
        last.ms++;
        last.random = random64() >> 1;
    } else {
        last.random += step;
    }
}

/* RFC 9562 5.7: 48 bits of milliseconds, version, 12 bits, variant, 62 bits. */
static void sql_uuid7(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct timespec t;
    char text[40];
    (void)argc;
    (void)argv;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t low = random64() & 0x3ff;
    pthread_mutex_lock(&last.lock);
    advance((uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000);
    uint64_t ms = last.ms & 0xffffffffffff, high = last.random;
    pthread_mutex_unlock(&last.lock);
    uint64_t tail = (high << 10 | low) & 0x3fffffffffffffff; /* the lower 62 of 74 bits */
    int n = snprintf(text, sizeof text, "%08llx-%04llx-7%03llx-%04llx-%012llx",
                     (unsigned long long)(ms >> 16), (unsigned long long)(ms & 0xffff),
                     (unsigned long long)(high >> 52),
                     (unsigned long long)(0x8000 | tail >> 48),
                     (unsigned long long)(tail & 0xffffffffffff));
    sqlite3_result_text(ctx, text, n, SQLITE_TRANSIENT);
}

int db_guard_add_encode(struct db_conn *c)
{
    static const struct db_guard_function all[] = {
        {"slug", sql_slug, 1, SQLITE_DIRECTONLY | SQLITE_DETERMINISTIC},
        {"html", sql_html, 1, SQLITE_DIRECTONLY | SQLITE_DETERMINISTIC},
        {"url_encode", sql_url_encode, 1, SQLITE_DIRECTONLY | SQLITE_DETERMINISTIC},
        {"uuid7", sql_uuid7, 0, SQLITE_DIRECTONLY},
    };
    return db_guard_add(c, all, sizeof all / sizeof *all);
}
