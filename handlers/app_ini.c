#include "handlers/app_ini.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "db/line.h"
#include "fcgi/conf.h"
#include "fcgi/ini_lines.h"
#include "fcgi/path.h"

enum { KEY_BYTES_MAX = 512, BODY_MAX = 256 << 20 };

enum kind {
    KIND_TITLE,
    KIND_ACCESS,
    KIND_DOCUMENTS,
    KIND_PREFIXES,
    KIND_LINES,
    KIND_NUMBER,
    KIND_CSP
};

struct key {
    const char *name;
    size_t offset;
    uint64_t most;
    enum kind kind;
    enum conf_unit unit;
};

#define AT(member) offsetof(struct app_ini, member)

static const struct key keys[] = {
    {"title", 0, 0, KIND_TITLE, CONF_COUNT},
    {"read", AT(read), 0, KIND_ACCESS, CONF_COUNT},
    {"write", AT(write), 0, KIND_ACCESS, CONF_COUNT},
    {"documents", 0, 0, KIND_DOCUMENTS, CONF_COUNT},
    {"documents_read", AT(documents_read), 0, KIND_PREFIXES, CONF_COUNT},
    {"documents_write", AT(documents_write), 0, KIND_PREFIXES, CONF_COUNT},
    {"sends", AT(sends), 0, KIND_LINES, CONF_COUNT},
    {"rows", AT(rows), APP_ROWS_MAX, KIND_NUMBER, CONF_COUNT},
    {"time", AT(time_ms), APP_TIME_MAX_MS, KIND_NUMBER, CONF_TIME},
    {"body", AT(body), BODY_MAX, KIND_NUMBER, CONF_SIZE},
    {"csp", 0, 0, KIND_CSP, CONF_COUNT},
};
enum { KEYS = sizeof keys / sizeof *keys };

static const char default_csp[] =
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'self'";

struct reading {
    struct app_ini *ini;
    const char *file;
    struct db_faults *faults;
    bool seen[KEYS];
};

static void tell(struct reading *r, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void tell(struct reading *r, int line, const char *format, ...)
{
    char text[240];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->faults->count++;
    r->faults->tell(r->faults->arg, r->file, line > 0 ? (unsigned)line : 0, text);
}

void app_ini_defaults(struct app_ini *ini, const char *name)
{
    *ini = (struct app_ini){.rows = 1000, .time_ms = 5000, .body = 1 << 20};
    snprintf(ini->title, sizeof ini->title, "%s", name);
    memcpy(ini->csp, default_csp, sizeof default_csp);
}

static void set_title(struct reading *r, int line, const char *value)
{
    size_t n = strlen(value);
    if (n == 0 || n > APP_TITLE_MAX || !utf8_ok(value, n))
        tell(r, line, "title: 1 to %d bytes of UTF-8", APP_TITLE_MAX);
    else
        memcpy(r->ini->title, value, n + 1);
}

static void set_access(struct reading *r, int line, const struct key *k, const char *value)
{
    static const char *const names[] = {"rights", "users", "public"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(value, names[i]) == 0) {
            *(enum app_access *)(void *)((char *)r->ini + k->offset) = (enum app_access)i;
            return;
        }
    tell(r, line, "%s: it is rights, users or public", k->name);
}

/* A prefix of document keys, as it stands in the path of a document. */
static bool prefix_ok(struct str prefix)
{
    char path[KEY_BYTES_MAX + 8];
    int n = snprintf(path, sizeof path, "/docs/%.*s", (int)prefix.n, prefix.p);
    return prefix.n > 0 && prefix.n <= KEY_BYTES_MAX && prefix.p[0] != '/' &&
           path_ok((struct str){path, (size_t)n});
}

static void set_list(struct reading *r, int line, const struct key *k, const char *value)
{
    char *lines = (char *)r->ini + k->offset;
    bool names = k->kind == KIND_LINES;
    while (*value != 0) {
        struct str one = conf_next(&value);
        size_t at = strlen(lines);
        if (one.n == 0)
            continue;
        if (names ? !db_line_name_ok(one.p, one.n) : !prefix_ok(one)) {
            tell(r, line, "%s: \"%.*s\" is no %s", k->name, (int)(one.n < 100 ? one.n : 100), one.p,
                 names ? "name of a line" : "beginning of a document's key");
        } else if (at + one.n + 2 > APP_PREFIXES_BYTES) {
            tell(r, line, "%s: all %s together have at most %d bytes", k->name,
                 names ? "names" : "prefixes", APP_PREFIXES_BYTES - 1);
            return;
        } else {
            snprintf(lines + at, APP_PREFIXES_BYTES - at, "%s%.*s", at > 0 ? "\n" : "",
                     (int)one.n, one.p);
        }
    }
}

static void set_number(struct reading *r, int line, const struct key *k, const char *value)
{
    static const char *const units[] = {"", "", " ms"}; /* by enum conf_unit */
    uint64_t v;
    if (!conf_number(k->unit, value, &v))
        tell(r, line, "%s: \"%.60s\" is not %s", k->name, value, conf_wanted(k->unit));
    else if (v < 1 || v > k->most)
        tell(r, line, "%s: it is 1 to %llu%s%s", k->name, (unsigned long long)k->most,
             k->unit == CONF_SIZE ? " bytes" : "", units[k->unit]);
    else
        *(uint64_t *)(void *)((char *)r->ini + k->offset) = v;
}

/* The first line replaces the default, further ones add to it. */
static void set_csp(struct reading *r, int line, const char *value, bool more)
{
    char *csp = r->ini->csp;
    size_t at = more ? strlen(csp) : 0, n = strlen(value);
    for (size_t i = 0; i < n; i++)
        if (value[i] < 0x20 || value[i] > 0x7e) {
            tell(r, line, "csp: printable ASCII only");
            return;
        }
    if (at + n + 3 > APP_CSP_BYTES) {
        tell(r, line, "csp: all lines together have at most %d bytes", APP_CSP_BYTES - 3);
        return;
    }
    snprintf(csp + at, APP_CSP_BYTES - at, "%s%s", at > 0 ? "; " : "", value);
}

static void set(struct reading *r, int line, const struct key *k, const char *value)
{
    bool *seen = &r->seen[k - keys];
    bool several = k->kind == KIND_PREFIXES || k->kind == KIND_LINES || k->kind == KIND_CSP;
    if (*seen && !several) {
        tell(r, line, "%s was set before", k->name);
        return;
    }
    switch (k->kind) {
    case KIND_TITLE:
        set_title(r, line, value);
        break;
    case KIND_ACCESS:
        set_access(r, line, k, value);
        break;
    case KIND_DOCUMENTS:
        r->ini->documents = strcmp(value, "read") == 0;
        if (!r->ini->documents && strcmp(value, "none") != 0)
            tell(r, line, "documents: it is none or read");
        break;
    case KIND_PREFIXES:
    case KIND_LINES:
        set_list(r, line, k, value);
        break;
    case KIND_NUMBER:
        set_number(r, line, k, value);
        break;
    case KIND_CSP:
        set_csp(r, line, value, *seen);
        break;
    }
    *seen = true;
}

static bool take_line(struct ini_lines *l, const char *section, const char *name,
                      const char *value)
{
    struct reading *r = l->arg;
    if (section[0] != 0) {
        tell(r, l->line, "sections such as [%.50s] are not used here", section);
        return false; /* all behind it would be told, too */
    }
    for (size_t i = 0; i < KEYS; i++)
        if (strcmp(name, keys[i].name) == 0) {
            set(r, l->line, &keys[i], value);
            return true;
        }
    tell(r, l->line, "unknown key \"%.100s\"", name);
    return true;
}

void app_ini_read(struct app_ini *ini, const char *file, struct str text,
                  struct db_faults *faults)
{
    struct reading r = {.ini = ini, .file = file, .faults = faults};
    if (text.n == 0)
        return;
    if (memchr(text.p, 0, text.n) != NULL) {
        tell(&r, 0, "it has a NUL: this is no text");
        return;
    }
    /* It is only read; fmemopen's argument is not const. */
    struct ini_lines lines = {.file = fmemopen((void *)(uintptr_t)text.p, text.n, "r"),
                              .take = take_line,
                              .arg = &r};
    if (lines.file == NULL) {
        tell(&r, 0, "memory is short");
        return;
    }
    int line = ini_lines_read(&lines);
    fclose(lines.file);
    if (lines.too_long)
        tell(&r, lines.line, "the line is longer than %d bytes", lines.most);
    else if (line != 0 && !lines.stopped)
        tell(&r, line, "this is not \"key = value\"");
}
