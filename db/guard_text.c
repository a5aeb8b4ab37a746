/* Functions on text in the place of SQLite's own: the same results, but no argument makes them slow
 * where nothing can stop them. SQLite's take time with the product of two lengths.
 *
 * LIKE and GLOB still do, in the worst case, and look at the clock. The others take time with the
 * sum. The server's own statements on such a connection use them, too: CHECKs of the table doc. */
#include <string.h>

#include "db/guard_internal.h"

enum { WORK = 1 << 16 }; /* bytes compared between two looks at the clock */

static void stopped(sqlite3_context *ctx)
{
    sqlite3_result_error(ctx, "stopped at the time limit", -1);
}

static bool is_null(sqlite3_value *v)
{
    return sqlite3_value_type(v) == SQLITE_NULL;
}

static bool is_blob(sqlite3_value *v)
{
    return sqlite3_value_type(v) == SQLITE_BLOB;
}

static bool continues(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* The character at *p, which is not the end; steps over it. Malformed ones are read as SQLite does,
 * which compares what it reads. */
static unsigned take_char(const unsigned char **p, const unsigned char *end)
{
    static const unsigned char bits[] = {0x1f, 0x1f, 0x1f, 0x1f, 0x0f, 0x0f, 0x07, 0x03};
    unsigned c = *(*p)++;
    if (c < 0xc0)
        return c;
    c &= c >= 0xfe ? 0 : c >= 0xfc ? 0x01 : bits[(c - 0xc0) / 8];
    for (; *p < end && continues(**p); (*p)++)
        c = (c << 6) + (**p & 0x3f);
    return c < 0x80 || (c & 0xfffff800) == 0xd800 || (c & 0xfffffffe) == 0xfffe ? 0xfffd : c;
}

static void skip_char(const unsigned char **p, const unsigned char *end)
{
    if (*(*p)++ < 0xc0)
        return;
    while (*p < end && continues(**p))
        (*p)++;
}

/* ---- LIKE and GLOB ---- */

/* 0: there is no such sign. */
struct signs {
    unsigned all, one, escape;
    bool sets;   /* [a-z] */
    bool folds;  /* ASCII letters are equal in both cases */
};

struct match {
    struct signs signs;
    const unsigned char *p, *p_end; /* of the pattern */
    const unsigned char *s, *s_end;
};

enum verdict { NO, YES, LATE };

static unsigned fold(unsigned c)
{
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

/* Whether c is in the set behind p, which stands behind '['; steps over it. One without an end has
 * nothing in it. */
static bool in_set(struct match *m, unsigned c)
{
    unsigned before = 0, k;
    bool seen = false, invert = false;
#define NEXT() (m->p < m->p_end ? take_char(&m->p, m->p_end) : 0)
    k = NEXT();
    if (k == '^') {
        invert = true;
        k = NEXT();
    }
    if (k == ']') {
        seen = c == ']';
        k = NEXT();
    }
    for (; k != 0 && k != ']'; k = NEXT()) {
        if (k == '-' && m->p < m->p_end && *m->p != ']' && before > 0) {
            k = NEXT();
            seen |= c >= before && c <= k;
            before = 0;
        } else {
            seen |= c == k;
            before = k;
        }
    }
#undef NEXT
    return k == ']' && seen != invert;
}

/* Compares one sign of the pattern, which is not that for all, with one character. */
static bool match_one(struct match *m)
{
    unsigned k = take_char(&m->p, m->p_end), c;
    if (m->s == m->s_end)
        return false;
    c = take_char(&m->s, m->s_end);
    if (m->signs.sets && k == '[')
        return in_set(m, c);
    if (k == m->signs.escape && k != 0) {
        if (m->p == m->p_end)
            return false;
        k = take_char(&m->p, m->p_end);
    } else if (k == m->signs.one && k != 0) {
        return true;
    }
    return k == c || (m->signs.folds && k < 0x80 && c < 0x80 && fold(k) == fold(c));
}

/* Steps over what the pattern cannot begin with at p: a shortcut where that is plain ASCII. */
static void seek(struct match *m)
{
    unsigned k = *m->p;
    if (k >= 0x80 || k == m->signs.all || k == m->signs.one || k == m->signs.escape ||
        (m->signs.sets && k == '['))
        return;
    if (m->signs.folds) {
        for (k = fold(k); m->s < m->s_end && fold(*m->s) != k;)
            m->s++;
        return;
    }
    const void *at = m->s < m->s_end ? memchr(m->s, (int)k, (size_t)(m->s_end - m->s)) : NULL;
    m->s = at != NULL ? at : m->s_end;
}

/* Where it fails, only the last sign for all is gone back to: those before it need no other
 * place. */
static enum verdict match(struct match *m, struct db_conn *c)
{
    const unsigned char *again_p = NULL, *again_s = NULL;
    size_t work = 0;
    for (;;) {
        if (m->p == m->p_end && m->s == m->s_end)
            return YES;
        if (m->p < m->p_end && *m->p == m->signs.all && m->signs.all != 0) {
            if (++m->p == m->p_end)
                return YES;
            again_p = m->p;
        } else if (m->p < m->p_end && match_one(m)) {
            continue;
        } else {
            if (again_p == NULL || again_s == m->s_end)
                return NO;
            work += (size_t)(m->p - again_p) + 1;
            if (work > WORK && (work = 0, db_guard_late(c)))
                return LATE;
            m->p = again_p;
            m->s = again_s;
            skip_char(&m->s, m->s_end);
        }
        seek(m);
        again_s = m->s;
    }
}

static struct match matching(sqlite3_value *pattern, sqlite3_value *text, struct signs signs)
{
    struct match m = {.signs = signs};
    m.p = sqlite3_value_text(pattern);
    m.s = sqlite3_value_text(text);
    if (m.p == NULL || m.s == NULL)
        return (struct match){0};
    m.p_end = m.p + strnlen((const char *)m.p, (size_t)sqlite3_value_bytes(pattern));
    m.s_end = m.s + strnlen((const char *)m.s, (size_t)sqlite3_value_bytes(text));
    return m;
}

/* False: the function was answered. */
static bool comparable(sqlite3_context *ctx, sqlite3_value **argv)
{
    sqlite3 *db = sqlite3_context_db_handle(ctx);
    if (is_blob(argv[0]) || is_blob(argv[1])) {
        sqlite3_result_int(ctx, 0);
        return false;
    }
    if (sqlite3_value_bytes(argv[0]) > sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, -1)) {
        sqlite3_result_error(ctx, "LIKE or GLOB pattern too complex", -1);
        return false;
    }
    return true;
}

static void compare(sqlite3_context *ctx, sqlite3_value **argv, struct signs signs)
{
    struct match m = matching(argv[0], argv[1], signs);
    if (m.p == NULL)
        return;
    enum verdict v = match(&m, sqlite3_user_data(ctx));
    if (v == LATE)
        stopped(ctx);
    else
        sqlite3_result_int(ctx, v == YES);
}

static void sql_glob(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (comparable(ctx, argv))
        compare(ctx, argv, (struct signs){.all = '*', .one = '?', .sets = true});
}

static void sql_like(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct signs signs = {.all = '%', .one = '_', .folds = true};
    if (!comparable(ctx, argv))
        return;
    if (argc == 3) {
        const unsigned char *p = sqlite3_value_text(argv[2]);
        if (p == NULL)
            return;
        const unsigned char *end = p + strlen((const char *)p);
        if (p < end)
            signs.escape = take_char(&p, end);
        if (signs.escape == 0 || p < end) {
            sqlite3_result_error(ctx, "ESCAPE expression must be a single character", -1);
            return;
        }
        signs.all = signs.all == signs.escape ? 0 : signs.all;
        signs.one = signs.one == signs.escape ? 0 : signs.one;
    }
    compare(ctx, argv, signs);
}

/* ---- instr, replace, trim ---- */

/* Where part first stands in whole: 1 for its beginning, 0 for nowhere. In text characters count,
 * and it begins where one does. */
static sqlite3_int64 place(const unsigned char *whole, size_t n, const unsigned char *part,
                           size_t part_n, bool text)
{
    sqlite3_int64 at = 1;
    if (text && continues(part[0]))
        return part_n <= n && memcmp(whole, part, part_n) == 0;
    const unsigned char *found = part_n <= n ? memmem(whole, n, part, part_n) : NULL;
    if (found == NULL)
        return 0;
    for (const unsigned char *p = whole + 1; p <= found; p++)
        at += !text || !continues(*p);
    return at;
}

/* A blob stays one: the value may be used again. */
static const unsigned char *bytes_of(sqlite3_value *v)
{
    return is_blob(v) ? sqlite3_value_blob(v) : sqlite3_value_text(v);
}

static void sql_instr(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (is_null(argv[0]) || is_null(argv[1]))
        return;
    bool text = !is_blob(argv[0]) || !is_blob(argv[1]);
    const unsigned char *whole = bytes_of(argv[0]), *part = bytes_of(argv[1]);
    size_t n = (size_t)sqlite3_value_bytes(argv[0]);
    size_t part_n = (size_t)sqlite3_value_bytes(argv[1]);
    if (part_n == 0)
        sqlite3_result_int(ctx, 1);
    else if (n == 0)
        sqlite3_result_int(ctx, 0);
    else if (whole == NULL || part == NULL)
        sqlite3_result_error_nomem(ctx);
    else
        sqlite3_result_int64(ctx, place(whole, n, part, part_n, text));
}

struct bytes {
    const unsigned char *p;
    size_t n;
};

static struct bytes text_of(sqlite3_value *v)
{
    struct bytes b = {sqlite3_value_text(v), 0};
    b.n = b.p != NULL ? (size_t)sqlite3_value_bytes(v) : 0;
    return b;
}

/* Behind whole's next part, NULL when there is none. */
static const unsigned char *behind(const unsigned char *from, struct bytes whole, struct bytes part)
{
    size_t left = whole.n - (size_t)(from - whole.p);
    const unsigned char *at = part.n == 1 ? memchr(from, part.p[0], left)
                              : left >= part.n ? memmem(from, left, part.p, part.n) : NULL;
    return at != NULL ? at + part.n : NULL;
}

static void replace_all(unsigned char *out, struct bytes whole, struct bytes part,
                        struct bytes with)
{
    const unsigned char *from = whole.p, *to;
    for (; (to = behind(from, whole, part)) != NULL; from = to) {
        size_t n = (size_t)(to - from) - part.n;
        memcpy(out, from, n);
        memcpy(out + n, with.p, with.n);
        out += n + with.n;
    }
    memcpy(out, from, whole.n - (size_t)(from - whole.p));
}

static void sql_replace(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    struct bytes whole = text_of(argv[0]), part = text_of(argv[1]);
    if (whole.p == NULL || part.p == NULL)
        return;
    if (part.p[0] == 0) {
        sqlite3_result_value(ctx, argv[0]);
        return;
    }
    struct bytes with = text_of(argv[2]);
    if (with.p == NULL)
        return;
    uint64_t n = whole.n;
    for (const unsigned char *p = whole.p; (p = behind(p, whole, part)) != NULL;)
        n += with.n - part.n;
    if (n > (uint64_t)sqlite3_limit(sqlite3_context_db_handle(ctx), SQLITE_LIMIT_LENGTH, -1)) {
        sqlite3_result_error_toobig(ctx);
        return;
    }
    unsigned char *out = sqlite3_malloc64(n + 1);
    if (out == NULL) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    replace_all(out, whole, part, with);
    out[n] = 0;
    sqlite3_result_text64(ctx, (char *)out, n, sqlite3_free, SQLITE_UTF8);
}

/* The characters that trim takes away. */
struct set {
    bool single[256]; /* those of one byte */
    const unsigned char *p, *end; /* all, where there are longer ones; else p is NULL */
};

static struct set set_of(const unsigned char *chars)
{
    struct set set = {.p = NULL, .end = chars + strlen((const char *)chars)};
    for (const unsigned char *p = chars; p < set.end;) {
        const unsigned char *start = p;
        skip_char(&p, set.end);
        if (p - start == 1)
            set.single[*start] = true;
        else
            set.p = chars;
    }
    return set;
}

/* The bytes of a character of the set at the beginning or the end of text; 0 when there is none. */
static size_t found_in(const struct set *set, struct bytes text, bool at_end)
{
    if (set->single[at_end ? text.p[text.n - 1] : text.p[0]])
        return 1;
    for (const unsigned char *p = set->p; p != NULL && p < set->end;) {
        const unsigned char *start = p;
        skip_char(&p, set->end);
        size_t n = (size_t)(p - start);
        if (n <= text.n && memcmp(at_end ? text.p + text.n - n : text.p, start, n) == 0)
            return n;
    }
    return 0;
}

enum { LEFT = 1, RIGHT = 2 };

/* False: the time is over. */
static bool trim(struct db_conn *c, const struct set *set, struct bytes *text, int sides)
{
    size_t work = 0, cost = set->p != NULL ? (size_t)(set->end - set->p) : 1, n;
    while ((sides & LEFT) && text->n > 0 && (n = found_in(set, *text, false)) > 0) {
        work += n == 1 ? 1 : cost;
        text->p += n;
        text->n -= n;
        if (work > WORK && (work = 0, db_guard_late(c)))
            return false;
    }
    while ((sides & RIGHT) && text->n > 0 && (n = found_in(set, *text, true)) > 0) {
        work += n == 1 ? 1 : cost;
        text->n -= n;
        if (work > WORK && (work = 0, db_guard_late(c)))
            return false;
    }
    return true;
}

static void trim_sides(sqlite3_context *ctx, int argc, sqlite3_value **argv, int sides)
{
    struct bytes text = text_of(argv[0]);
    const unsigned char *chars =
        argc == 2 ? sqlite3_value_text(argv[1]) : (const unsigned char *)" ";
    if (text.p == NULL || chars == NULL)
        return;
    struct set set = set_of(chars);
    if (trim(sqlite3_user_data(ctx), &set, &text, sides))
        sqlite3_result_text(ctx, (const char *)text.p, (int)text.n, SQLITE_TRANSIENT);
    else
        stopped(ctx);
}

static void sql_trim(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    trim_sides(ctx, argc, argv, LEFT | RIGHT);
}

static void sql_ltrim(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    trim_sides(ctx, argc, argv, LEFT);
}

static void sql_rtrim(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    trim_sides(ctx, argc, argv, RIGHT);
}

int db_guard_add_text(struct db_conn *c)
{
    static const struct {
        const char *name;
        int args;
        void (*call)(sqlite3_context *ctx, int argc, sqlite3_value **argv);
    } all[] = {
        {"like", 2, sql_like},   {"like", 3, sql_like},       {"glob", 2, sql_glob},
        {"instr", 2, sql_instr}, {"replace", 3, sql_replace}, {"trim", 1, sql_trim},
        {"trim", 2, sql_trim},   {"ltrim", 1, sql_ltrim},     {"ltrim", 2, sql_ltrim},
        {"rtrim", 1, sql_rtrim}, {"rtrim", 2, sql_rtrim},
    };
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof all / sizeof *all; i++)
        rc = sqlite3_create_function_v2(c->db, all[i].name, all[i].args,
                                        SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, c,
                                        all[i].call, NULL, NULL, NULL);
    return rc;
}
