#include "handlers/app_steer.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "fcgi/path.h"
#include "handlers/content.h"
#include "handlers/cookie.h"

enum {
    HEAD_MAX = 6144,
    LOCATION_MAX = 2048,
    COOKIE_WORD_MAX = 32,
    CACHE_MAX = 200,
    AGE_DIGITS = 9,
};

struct steering {
    const struct app_visit *v;
    struct app_answer *a;
    bool no_memory;
};

/* Says what is wrong; always false. */
static bool wrong(struct steering *s, const char *text)
{
    snprintf(s->a->message, sizeof s->a->message, "%s", text);
    return false;
}

static bool add(struct steering *s, const char *p, size_t n)
{
    if (buf_add(s->a->head, p, n, HEAD_MAX))
        return true;
    s->no_memory = s->a->head->len + n <= HEAD_MAX;
    return wrong(s, "what the columns that begin with _ say is too long for a head");
}

static bool add_text(struct steering *s, const char *text)
{
    return add(s, text, strlen(text));
}

/* What is not a visible character of ASCII, or means something else in a URL or a header, is
 * escaped. */
static bool add_escaped(struct steering *s, struct str text, const char *special)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        bool plain = c > 0x20 && c < 0x7f && strchr(special, c) == NULL;
        char escaped[3] = {'%', digits[c >> 4], digits[c & 15]};
        if (!add(s, plain ? (const char *)&text.p[i] : escaped, plain ? 1 : 3))
            return false;
    }
    return true;
}

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return true;
    return false;
}

static struct str text_of(const struct db_cell *cell)
{
    return (struct str){cell->p, cell->n};
}

static bool is_text(const struct db_cell *cell)
{
    return cell->type == DB_CELL_TEXT;
}

/* ---- the columns ----------------------------------------------------------------------------- */

static bool take_status(struct steering *s, const struct db_cell *cell)
{
    if (cell->type != DB_CELL_INT || cell->i < 200 || cell->i > 599)
        return wrong(s, "_status is not a whole number from 200 to 599");
    s->a->status = (unsigned)cell->i;
    return true;
}

static bool take_location(struct steering *s, const struct db_cell *cell)
{
    struct str to = text_of(cell);
    bool whole = is_text(cell) && (str_starts(to, STR_LIT("http://")) ||
                                   str_starts(to, STR_LIT("https://")));
    bool rooted = !whole && to.n > 0 && to.p[0] == '/';
    if (!is_text(cell) || to.n > LOCATION_MAX || has_control(to) || !utf8_ok(to.p, to.n) ||
        (rooted && to.n > 1 && (to.p[1] == '/' || to.p[1] == '\\')))
        return wrong(s, "_location is not a path or an address");
    if (s->a->located)
        return wrong(s, "_location is said twice");
    s->a->located = true;
    struct str before = whole ? STR_LIT("") : rooted ? s->v->mount : s->v->base;
    return add_text(s, "Location: ") && add_escaped(s, before, "\"<>\\^`{|}") &&
           add_escaped(s, to, "\"<>\\^`{|}") && add_text(s, "\r\n");
}

/* Splits "; Max-Age=N" off the end. False: it is not that. */
static bool take_age(struct str *value, struct str *age)
{
    const char *semicolon = memrchr(value->p, ';', value->n);
    *age = (struct str){NULL, 0};
    if (semicolon == NULL)
        return true;
    struct str rest = {semicolon + 1, value->n - (size_t)(semicolon - value->p) - 1};
    while (rest.n > 0 && rest.p[0] == ' ') {
        rest.p++;
        rest.n--;
    }
    if (rest.n <= 8 || strncasecmp(rest.p, "max-age=", 8) != 0)
        return false;
    *age = (struct str){rest.p + 8, rest.n - 8};
    for (size_t i = 0; i < age->n; i++)
        if (age->p[i] < '0' || age->p[i] > '9')
            return false;
    value->n = (size_t)(semicolon - value->p);
    return age->n <= AGE_DIGITS;
}

static bool cookie_name_ok(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_'))
            return false;
    }
    return name.n > 0 && name.n <= COOKIE_WORD_MAX;
}

static bool take_cookie(struct steering *s, const struct db_cell *cell)
{
    static const char rule[] = "_cookie is not \"name=value\", maybe with \"; Max-Age=SECONDS\"";
    struct str text = text_of(cell), age;
    const char *equals = is_text(cell) && text.n > 0 ? memchr(text.p, '=', text.n) : NULL;
    if (equals == NULL)
        return wrong(s, rule);
    struct str name = {text.p, (size_t)(equals - text.p)};
    struct str value = {equals + 1, text.n - name.n - 1};
    if (!cookie_name_ok(name) || !take_age(&value, &age) || !utf8_ok(value.p, value.n))
        return wrong(s, rule);
    if (value.n > APP_COOKIE_MAX)
        return wrong(s, "_cookie has more than 1024 bytes");
    return add_text(s, "Set-Cookie: ") && add_text(s, s->v->app->name) && add_text(s, "_") &&
           add(s, name.p, name.n) && add_text(s, "=") && add_escaped(s, value, "\"%+,;\\") &&
           add_text(s, "; Path=") && add_escaped(s, s->v->base, "\"%,;\\") &&
           (age.p == NULL || (add_text(s, "; Max-Age=") && add(s, age.p, age.n))) &&
           add_text(s, "; HttpOnly; SameSite=Lax") &&
           (!s->v->https || add_text(s, "; Secure")) && add_text(s, "\r\n");
}

static bool take_cache(struct steering *s, const struct db_cell *cell)
{
    struct str text = text_of(cell);
    bool ok = is_text(cell) && text.n > 0 && text.n <= CACHE_MAX && !s->a->cached;
    for (size_t i = 0; ok && i < text.n; i++)
        ok = text.p[i] >= 0x20 && text.p[i] < 0x7f;
    if (!ok)
        return wrong(s, "_cache is not what a Cache-Control header may say");
    s->a->cached = true;
    return add_text(s, "Cache-Control: ") && add(s, text.p, text.n) && add_text(s, "\r\n");
}

static bool take_type(struct steering *s, const struct db_cell *cell)
{
    struct str type = text_of(cell);
    if (!is_text(cell) || !content_type_ok(type))
        return wrong(s, "_type is not a Content-Type");
    s->a->type = NULL;
    return add_text(s, "Content-Type: ") && add(s, type.p, type.n) && add_text(s, "\r\n");
}

static bool take_body(struct steering *s, const struct db_cell *cell)
{
    struct str text;
    if (cell->type == DB_CELL_BLOB)
        text = text_of(cell);
    else if (!app_out_text(cell, s->a->spare, &text)) {
        s->no_memory = true;
        return false;
    }
    s->a->raw = true;
    s->a->text->len = 0;
    if (text.n > APP_ANSWER_MAX)
        return wrong(s, "_body has more than 16 MiB");
    s->no_memory = !buf_add(s->a->text, text.p, text.n, APP_ANSWER_MAX);
    return !s->no_memory;
}

bool app_disposition(struct buf *head, struct str name)
{
    static const char digits[] = "0123456789ABCDEF";
    char plain[101] = "", coded[301] = "";
    size_t n = 0, m = 0;
    for (size_t i = 0; i < name.n && n < sizeof plain - 1 && m + 3 < sizeof coded; i++) {
        unsigned char c = (unsigned char)name.p[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '_' || c == '.';
        plain[n++] = word || c == ' ' ? (char)c : '_';
        if (word) {
            coded[m++] = (char)c;
        } else {
            coded[m++] = '%';
            coded[m++] = digits[c >> 4];
            coded[m++] = digits[c & 15];
        }
    }
    char line[512];
    int len = snprintf(line, sizeof line,
                       "Content-Disposition: attachment; filename=\"%.*s\"; "
                       "filename*=UTF-8''%.*s\r\n",
                       (int)n, plain, (int)m, coded);
    return len > 0 && buf_add(head, line, (size_t)len, HEAD_MAX);
}

static bool take_file_name(struct steering *s, const struct db_cell *cell)
{
    struct str name = text_of(cell);
    if (!is_text(cell) || name.n == 0 || name.n > 100 || has_control(name) ||
        !utf8_ok(name.p, name.n))
        return wrong(s, "_filename is not a name of at most 100 bytes");
    s->no_memory = !app_disposition(s->a->head, name);
    return !s->no_memory;
}

static const struct reserved {
    const char *name;
    bool (*take)(struct steering *s, const struct db_cell *cell);
} reserved[] = {
    {"_status", take_status}, {"_location", take_location}, {"_cookie", take_cookie},
    {"_cache", take_cache},   {"_type", take_type},         {"_body", take_body},
    {"_filename", take_file_name},
};

static const struct reserved *find(const char *name)
{
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strcmp(reserved[i].name, name) == 0)
            return &reserved[i];
    return NULL;
}

/* The column `message` of a row that says an error: cut between characters, without what ends a C
 * string. */
static void take_message(struct app_answer *a, const struct db_cursor *row, unsigned column)
{
    struct db_cell cell;
    struct str text;
    db_cursor_cell(row, column, &cell);
    if (!app_out_text(&cell, a->spare, &text))
        return;
    size_t n = text.n < APP_MESSAGE_MAX ? text.n : APP_MESSAGE_MAX, nul = strnlen(text.p, n);
    while (n > 0 && n < text.n && ((unsigned char)text.p[n] & 0xc0) == 0x80)
        n--;
    n = nul < n ? nul : n;
    memcpy(a->message, text.p, n);
    a->message[n] = 0;
}

enum app_steer app_steer(const struct app_visit *v, const struct db_cursor *row,
                         struct app_answer *a)
{
    struct steering s = {.v = v, .a = a};
    struct db_cell cell;
    unsigned columns = db_cursor_columns(row), message = columns;
    for (unsigned i = 0; i < columns; i++) {
        const char *name = db_cursor_column(row, i);
        const struct reserved *r = name[0] == '_' ? find(name) : NULL;
        if (strcmp(name, "message") == 0)
            message = i;
        if (r == NULL)
            continue;
        db_cursor_cell(row, i, &cell);
        if (cell.type != DB_CELL_NULL && !r->take(&s, &cell))
            return s.no_memory ? APP_STEER_NO_MEMORY : APP_STEER_WRONG;
    }
    a->stopped = a->status >= 400;
    if (a->stopped && message < columns)
        take_message(a, row, message);
    return APP_STEER_OK;
}

bool app_cookie(const struct app_visit *v, struct str name, char *to, size_t *n)
{
    char whole[DB_APP_NAME_MAX + 1 + COOKIE_WORD_MAX + 1];
    int len = snprintf(whole, sizeof whole, "%s_%.*s", v->app->name, (int)name.n, name.p);
    if (len < 0 || (size_t)len >= sizeof whole || v->cookie.n == 0)
        return false;
    struct str value = cookie_find(v->cookie, (struct str){whole, (size_t)len});
    return value.p != NULL && app_fields_unescape(value, to, n);
}
