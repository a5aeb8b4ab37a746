#include "fcgi/conf.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum kind { KIND_TEXT, KIND_COUNT, KIND_MODE, KIND_SIZE, KIND_TIME };

struct key {
    const char *name;
    enum kind kind;
    size_t offset;
    const char *initial;
    uint64_t min;
    uint64_t max;
    const char *help;
};

#define AT(member) offsetof(struct conf, member)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define DAY_MS UINT64_C(86400000)

/* The table. Order is the order of --help and of hanji.conf(5). */
static const struct key keys[] = {
    {"database", KIND_TEXT, AT(database), "/var/lib/hanji/hanji.db", 0, 0,
     "the SQLite file; its folder must be writable"},
    {"socket", KIND_TEXT, AT(socket), "/run/hanji/hanji.sock", 0, 0,
     "FastCGI socket for nginx; unused when one is passed in (LISTEN_FDS)"},
    {"socket_mode", KIND_MODE, AT(socket_mode), "0660", 0, 0777, "permissions of that socket"},
    {"socket_group", KIND_TEXT, AT(socket_group), "", 0, 0,
     "group that owns that socket: the one nginx's workers run in"},
    {"control", KIND_TEXT, AT(control), "", 0, 0,
     "socket for operator commands, mode 0600 (default: the database's name with .control)"},
    {"threads", KIND_COUNT, AT(threads), "1", 1, 64, "reactor threads"},
    {"backlog", KIND_COUNT, AT(backlog), "4096", 1, 65535, "connections waiting to be accepted"},
    {"max_connections", KIND_COUNT, AT(max_connections), "16384", 1, 1000000,
     "connections per reactor thread; further ones wait in the backlog"},
    {"max_body", KIND_SIZE, AT(max_body_bytes), "1m", 1024, 256 * MIB,
     "largest request body; 413 beyond"},
    {"body_memory", KIND_SIZE, AT(body_memory_bytes), "64m", 65536, 16 * GIB,
     "memory for all request bodies in flight, and for answers not yet taken; 503 beyond"},
    {"request_timeout", KIND_TIME, AT(request_timeout_ms), "60s", 10, DAY_MS,
     "time for a request to arrive whole"},
    {"write_timeout", KIND_TIME, AT(write_timeout_ms), "60s", 10, DAY_MS,
     "time for an answer to be taken"},
    {"drain_timeout", KIND_TIME, AT(drain_timeout_ms), "30s", 10, DAY_MS,
     "time to finish after SIGTERM"},
    {"queue_operations", KIND_COUNT, AT(queue_operations), "4096", 1, 1000000,
     "writes that may wait; 503 beyond"},
    {"queue_bytes", KIND_SIZE, AT(queue_bytes), "64m", 65536, 16 * GIB,
     "memory of waiting writes; 503 beyond"},
    {"burst_operations", KIND_COUNT, AT(burst_operations), "1024", 1, 65536,
     "most writes in one commit; 1 commits each alone"},
    {"checkpoint_size", KIND_SIZE, AT(checkpoint_bytes), "16m", 65536, 16 * GIB,
     "size of the write-ahead log at which it is copied into the file"},
    {"wal_limit", KIND_SIZE, AT(wal_limit_bytes), "256m", MIB, 64 * GIB,
     "bound of the write-ahead log; writes get 503 beyond"},
    {"read_cache", KIND_SIZE, AT(read_cache_bytes), "1m", 65536, 16 * GIB,
     "page cache of each reactor thread"},
    {"write_cache", KIND_SIZE, AT(write_cache_bytes), "2m", 65536, 16 * GIB,
     "page cache of the writer"},
    {"public", KIND_TEXT, AT(public_), "", 0, 0,
     "document-key prefixes anybody may read, separated by commas"},
    {"log_level", KIND_TEXT, AT(log_level_name), "info", 0, 0, "error, warn, info or debug"},
};
enum { KEYS = sizeof keys / sizeof *keys };

static bool fail(struct conf_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool fail(struct conf_error *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return false;
}

static bool name_eq(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        int x = *a == '-' ? '_' : tolower((unsigned char)*a);
        if (x != *b)
            return false;
    }
    return *a == *b;
}

static const struct key *find(const char *name)
{
    for (size_t i = 0; i < KEYS; i++)
        if (name_eq(name, keys[i].name))
            return &keys[i];
    return NULL;
}

/* The factor a unit stands for; 0 when the kind does not have it. */
static uint64_t unit_factor(enum kind kind, const char *unit)
{
    static const struct {
        enum kind kind;
        char unit[3];
        uint32_t factor;
    } units[] = {
        {KIND_SIZE, "", 1},     {KIND_SIZE, "k", 1024},   {KIND_SIZE, "m", 1 << 20},
        {KIND_SIZE, "g", 1 << 30}, {KIND_TIME, "ms", 1},  {KIND_TIME, "s", 1000},
        {KIND_TIME, "m", 60000}, {KIND_TIME, "h", 3600000}, {KIND_COUNT, "", 1},
        {KIND_MODE, "", 1},
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].kind == kind && strcasecmp(unit, units[i].unit) == 0)
            return units[i].factor;
    return 0;
}

static const char *wanted(enum kind kind)
{
    switch (kind) {
    case KIND_SIZE: return "a size such as 512k, 16m or 1g";
    case KIND_TIME: return "a time such as 500ms, 30s or 5m";
    case KIND_MODE: return "an octal mode such as 0660";
    default: return "a whole number";
    }
}

static bool set_number(struct conf *c, const struct key *k, const char *value, const char *where,
                       struct conf_error *error)
{
    char *end = NULL;
    errno = 0;
    uint64_t v = strtoull(value, &end, k->kind == KIND_MODE ? 8 : 10);
    uint64_t factor = end != value && isdigit((unsigned char)value[0]) ? unit_factor(k->kind, end)
                                                                       : 0;
    if (errno != 0 || factor == 0 || v > UINT64_MAX / factor)
        return fail(error, "%s: %s: \"%s\" is not %s", where, k->name, value, wanted(k->kind));
    v *= factor;
    if (v < k->min || v > k->max)
        return fail(error, "%s: %s: %s is outside what is possible (%llu to %llu)", where, k->name,
                    value, (unsigned long long)k->min, (unsigned long long)k->max);
    *(uint64_t *)(void *)((char *)c + k->offset) = v;
    return true;
}

static bool set(struct conf *c, const struct key *k, const char *value, const char *where,
                struct conf_error *error)
{
    if (k->kind != KIND_TEXT)
        return set_number(c, k, value, where, error);
    size_t n = strlen(value);
    if (n >= CONF_TEXT_MAX)
        return fail(error, "%s: %s is longer than %d bytes", where, k->name, CONF_TEXT_MAX - 1);
    memcpy((char *)c + k->offset, value, n + 1);
    return true;
}

struct reading {
    struct conf *c;
    const char *file;
    struct conf_error *error;
    bool failed;
};

/* inih calls this for each line; its own line numbers are only in ini_parse's result, so a wrong
 * key or value returns 0, which makes ini_parse report that line. */
static int take_line(void *arg, const char *section, const char *name, const char *value)
{
    struct reading *r = arg;
    const struct key *k = find(name);
    if (r->failed)
        return 0;
    if (section[0] != 0)
        r->failed = !fail(r->error, "sections such as [%s] are not used here", section);
    else if (k == NULL)
        r->failed = !fail(r->error, "unknown key \"%s\"", name);
    else
        r->failed = !set(r->c, k, value, "", r->error);
    return !r->failed;
}

static bool load_file(struct conf *c, const char *file, struct conf_error *error)
{
    struct reading r = {c, file, error, false};
    int line = ini_parse(file, take_line, &r);
    if (line == 0)
        return true;
    if (line < 0)
        return fail(error, "%s: %s", file, line == -1 ? strerror(errno) : "not enough memory");
    struct conf_error inner = *error;
    const char *why = r.failed ? inner.text : "this is not \"key = value\"";
    return fail(error, "%s:%d: %s", file, line, why + strspn(why, ": "));
}

static bool load_environment(struct conf *c, struct conf_error *error)
{
    for (size_t i = 0; i < KEYS; i++) {
        char name[64] = "HANJI_";
        size_t at = strlen(name);
        for (const char *p = keys[i].name; *p; p++)
            name[at++] = (char)toupper((unsigned char)*p);
        name[at] = 0;
        const char *value = getenv(name);
        if (value != NULL && !set(c, &keys[i], value, name, error))
            return false;
    }
    return true;
}

bool conf_load(struct conf *c, const char *file, struct conf_error *error)
{
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < KEYS; i++)
        if (!set(c, &keys[i], keys[i].initial, "default", error))
            return false;
    if (file != NULL && !load_file(c, file, error))
        return false;
    return load_environment(c, error);
}

bool conf_flag(struct conf *c, const char *name, const char *value, struct conf_error *error)
{
    char where[64];
    const struct key *k = find(name);
    if (k == NULL)
        return fail(error, "unknown flag --%s", name);
    snprintf(where, sizeof where, "--%s", k->name);
    return set(c, k, value, where, error);
}

bool conf_finish(struct conf *c, struct conf_error *error)
{
    if (c->control[0] == 0) {
        int n = snprintf(c->control, sizeof c->control, "%s.control", c->database);
        if (n < 0 || (size_t)n >= sizeof c->control)
            return fail(error, "database: the name is too long");
    }
    if (!log_level_parse(c->log_level_name, &c->log_level))
        return fail(error, "log_level: \"%s\" is not error, warn, info or debug",
                    c->log_level_name);
    if (c->queue_bytes < c->max_body_bytes)
        return fail(error, "queue_bytes is smaller than max_body: no such body could be stored");
    if (c->body_memory_bytes < c->max_body_bytes)
        return fail(error, "body_memory is smaller than max_body: no such body could be taken");
    if (c->wal_limit_bytes <= c->checkpoint_bytes)
        return fail(error, "wal_limit must be larger than checkpoint_size");
    return true;
}

void conf_help(FILE *out)
{
    for (size_t i = 0; i < KEYS; i++)
        fprintf(out, "  --%-17s %s%s%s%s\n", keys[i].name, keys[i].help,
                keys[i].initial[0] ? " [" : "", keys[i].initial, keys[i].initial[0] ? "]" : "");
}

void conf_print(const struct conf *c, FILE *out)
{
    for (size_t i = 0; i < KEYS; i++) {
        const void *at = (const char *)c + keys[i].offset;
        uint64_t v = keys[i].kind == KIND_TEXT ? 0 : *(const uint64_t *)at;
        if (keys[i].kind == KIND_TEXT)
            fprintf(out, "%s = %s\n", keys[i].name, (const char *)at);
        else if (keys[i].kind == KIND_MODE)
            fprintf(out, "%s = %04llo\n", keys[i].name, (unsigned long long)v);
        else
            fprintf(out, "%s = %llu%s\n", keys[i].name, (unsigned long long)v,
                    keys[i].kind == KIND_TIME ? "ms" : "");
    }
}
