/* SQL's printf and format in the place of SQLite's: the same results, conversion by conversion made
 * by SQLite, but a width or precision beyond what a text may have is an error at once. With '%.*c'
 * and 2000000000 SQLite's own counts to the end, for a minute, and nothing can stop it. */
#include <stdio.h>
#include <string.h>

#include "db/guard_internal.h"

struct args {
    sqlite3_value **next;
    int left;
};

struct printing {
    sqlite3_context *ctx;
    sqlite3_str *out;
    struct args args;
    unsigned max; /* of a width or precision */
};

/* What stands between '%' and the letter. */
struct spec {
    char flags[8]; /* those of "#!0,", without doubles */
    char prefix;   /* '+', ' ' or 0 */
    bool left, exact; /* it has a precision */
    unsigned width, precision;
    char text[64]; /* written anew for sqlite3_str_appendf */
};

static sqlite3_value *take(struct args *a)
{
    if (a->left == 0)
        return NULL;
    a->left--;
    return *a->next++;
}

static sqlite3_int64 take_int(struct args *a)
{
    sqlite3_value *v = take(a);
    return v != NULL ? sqlite3_value_int64(v) : 0;
}

static double take_double(struct args *a)
{
    sqlite3_value *v = take(a);
    return v != NULL ? sqlite3_value_double(v) : 0;
}

static const char *take_text(struct args *a)
{
    sqlite3_value *v = take(a);
    return v != NULL ? (const char *)sqlite3_value_text(v) : NULL;
}

/* Digits as SQLite reads them. */
static unsigned number(const char **f)
{
    unsigned n = 0;
    for (; **f >= '0' && **f <= '9'; ++*f)
        n = n * 10 + (unsigned)(**f - '0');
    return n & 0x7fffffff;
}

static void add_flag(struct spec *s, char c)
{
    size_t n = strlen(s->flags);
    if (c == '-')
        s->left = true;
    else if (c == '+' || c == ' ')
        s->prefix = c;
    else if (strchr(s->flags, c) == NULL)
        s->flags[n] = c;
}

static void star_width(struct spec *s, struct args *a)
{
    int width = (int)take_int(a);
    s->left |= width < 0;
    s->width = width >= 0 ? (unsigned)width : width > INT32_MIN ? (unsigned)-width : 0;
}

static void read_precision(struct spec *s, const char **f, struct args *a)
{
    s->exact = true;
    if (*++*f != '*') {
        s->precision = number(f);
        return;
    }
    int precision = (int)take_int(a);
    s->exact = precision > INT32_MIN;
    s->precision = !s->exact ? 0 : (unsigned)(precision < 0 ? -precision : precision);
    ++*f;
}

/* Reads up to the letter, which *f is set to. */
static void read_spec(struct spec *s, const char **f, struct args *a)
{
    for (;; ++*f) {
        char c = **f;
        if (c != 0 && strchr("-+ #!0,", c) != NULL) {
            add_flag(s, c);
        } else if (c == 'l') {
            *f += (*f)[1] == 'l' ? 2 : 1;
            return;
        } else if (c >= '1' && c <= '9') {
            s->width = number(f);
            if (**f != '.' && **f != 'l')
                return;
            --*f;
        } else if (c == '*') {
            star_width(s, a);
            if ((*f)[1] != '.' && (*f)[1] != 'l') {
                ++*f;
                return;
            }
        } else if (c == '.') {
            read_precision(s, f, a);
            if (**f != 'l')
                return;
            --*f;
        } else {
            return;
        }
    }
}

/* The specification as SQLite shall read it. */
static const char *write_spec(struct spec *s, const char *length, char letter)
{
    char prefix[2] = {s->prefix, 0}, width[16] = "", precision[16] = "";
    if (s->width > 0)
        snprintf(width, sizeof width, "%u", s->width);
    if (s->exact)
        snprintf(precision, sizeof precision, ".%u", s->precision);
    snprintf(s->text, sizeof s->text, "%%%s%s%s%s%s%s%c", s->left ? "-" : "", prefix, s->flags,
             width, precision, length, letter);
    return s->text;
}

/* A character, as often as the precision says. */
static bool put_char(struct printing *p, const struct spec *s)
{
    const char *text = take_text(&p->args);
    int n = 1;
    unsigned times = s->exact && s->precision > 1 ? s->precision : 1;
    unsigned pad = s->width > times ? s->width - times : 0;
    if (text == NULL)
        text = "";
    const unsigned char *bytes = (const unsigned char *)text;
    while (bytes[0] >= 0xc0 && n < 4 && (bytes[n] & 0xc0) == 0x80)
        n++;
    if ((uint64_t)times * (unsigned)n > p->max)
        return false;
    if (!s->left)
        sqlite3_str_appendchar(p->out, (int)pad, ' ');
    for (unsigned i = 0; i < times; i++)
        sqlite3_str_append(p->out, text, n);
    if (s->left)
        sqlite3_str_appendchar(p->out, (int)pad, ' ');
    return true;
}

enum next { GO_ON, END, TOO_LARGE };

static enum next put_one(struct printing *p, const char **f)
{
    struct spec s = {{0}, 0, false, false, 0, 0, {0}};
    read_spec(&s, f, &p->args);
    char letter = **f;
    if (s.width > p->max || (s.exact && s.precision > p->max))
        return TOO_LARGE;
    if (letter == 0)
        return END;
    ++*f;
    if (letter == 'c')
        return put_char(p, &s) ? GO_ON : TOO_LARGE;
    if (letter == 'n')
        sqlite3_str_append(p->out, "", 0); /* which is not nothing */
    else if (letter == '%')
        sqlite3_str_appendf(p->out, write_spec(&s, "", letter));
    else if (strchr("diuoxXrp", letter) != NULL)
        sqlite3_str_appendf(p->out, write_spec(&s, "ll", letter), take_int(&p->args));
    else if (strchr("feEgG", letter) != NULL)
        sqlite3_str_appendf(p->out, write_spec(&s, "", letter), take_double(&p->args));
    else if (strchr("szqQw", letter) != NULL) /* to C z would mean that it is freed */
        sqlite3_str_appendf(p->out, write_spec(&s, "", letter == 'z' ? 's' : letter),
                            take_text(&p->args));
    else
        return END; /* as SQLite does at what it does not know */
    return GO_ON;
}

/* False: the function was answered with an error. */
static bool print(struct printing *p, const char *f)
{
    struct db_conn *c = sqlite3_user_data(p->ctx);
    for (unsigned count = 1; *f != 0; count++) {
        size_t n = strcspn(f, "%");
        if (n > 0)
            sqlite3_str_append(p->out, f, (int)n);
        f += n;
        if (*f == 0)
            return true;
        if (*++f == 0) {
            sqlite3_str_appendchar(p->out, 1, '%');
            return true;
        }
        enum next next = put_one(p, &f);
        if (next == END)
            return true;
        if (next == TOO_LARGE || sqlite3_str_errcode(p->out) == SQLITE_TOOBIG) {
            sqlite3_result_error_toobig(p->ctx);
            return false;
        }
        if (count % 1024 == 0 && db_guard_late(c)) {
            db_guard_fail(p->ctx, "printf", "stopped at the time limit");
            return false;
        }
    }
    return true;
}

static void sql_printf(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    sqlite3 *db = sqlite3_context_db_handle(ctx);
    const char *format = argc > 0 ? (const char *)sqlite3_value_text(argv[0]) : NULL;
    if (format == NULL)
        return;
    struct printing p = {ctx, sqlite3_str_new(db), {argv + 1, argc - 1}, 0};
    p.max = (unsigned)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, -1);
    bool ok = print(&p, format);
    int n = sqlite3_str_length(p.out), code = sqlite3_str_errcode(p.out);
    char *text = sqlite3_str_finish(p.out);
    if (ok && code == SQLITE_TOOBIG)
        sqlite3_result_error_toobig(ctx);
    else if (ok && code != SQLITE_OK)
        sqlite3_result_error_nomem(ctx);
    else if (ok)
        sqlite3_result_text(ctx, text, n, SQLITE_TRANSIENT); /* NULL for nothing, as SQLite's */
    sqlite3_free(text);
}

int db_guard_add_printf(struct db_conn *c)
{
    static const struct db_guard_function all[] = {
        {"printf", sql_printf, -1, SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS},
        {"format", sql_printf, -1, SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS},
    };
    return db_guard_add(c, all, sizeof all / sizeof *all);
}
