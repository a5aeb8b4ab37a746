#include "fcgi/conf.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fcgi/ini_lines.h"

enum kind { KIND_TEXT, KIND_LIST, KIND_COUNT, KIND_MODE, KIND_SIZE, KIND_TIME };

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
    {"pool_threads", KIND_COUNT, AT(pool_threads), "2", 1, 64,
     "threads for slow work: hashing, large bodies; started when needed"},
    {"pool_queue", KIND_COUNT, AT(pool_queue), "64", 1, 65536,
     "slow requests that may wait for one of them; 503 beyond"},
    {"backlog", KIND_COUNT, AT(backlog), "4096", 1, 65535, "connections waiting to be accepted"},
    {"max_connections", KIND_COUNT, AT(max_connections), "16384", 1, 1000000,
     "connections per reactor thread; further ones wait in the backlog"},
    {"max_watchers", KIND_COUNT, AT(max_watchers), "10000", 0, 1000000,
     "requests per reactor thread that wait for changes; 503 beyond"},
    {"heartbeat", KIND_TIME, AT(heartbeat_ms), "20s", 100, 60000,
     "silence after which a stream of changes gets a sign of life"},
    {"max_body", KIND_SIZE, AT(max_body_bytes), "64m", 1024, 256 * MIB,
     "largest request body; 413 beyond"},
    {"body_in_memory", KIND_SIZE, AT(body_in_memory_bytes), "256k", 4096, 16 * MIB,
     "larger request bodies wait in an unlinked file beside the database"},
    {"body_memory", KIND_SIZE, AT(body_memory_bytes), "64m", 65536, 16 * GIB,
     "memory for all request bodies in flight; further ones wait in files, too"},
    {"sendfile_header", KIND_TEXT, AT(sendfile_header_name), "x-accel-redirect", 0, 0,
     "how the web server sends large documents: x-accel-redirect, x-sendfile or none"},
    {"accel_min", KIND_SIZE, AT(accel_min_bytes), "32k", 1, GIB,
     "documents of this size and more are sent by the web server, from a file"},
    {"blobs", KIND_TEXT, AT(blobs), "", 0, 0,
     "folder of those files; the web server must be able to read it (default: the database's "
     "name with .blobs)"},
    {"blobs_max", KIND_SIZE, AT(blobs_max_bytes), "1g", MIB, 1024 * GIB,
     "size of that folder beyond which files not used for ten minutes are removed"},
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
    {"public", KIND_LIST, AT(public_), "", 0, 0,
     "document-key prefixes anybody may read, separated by commas; may stand on several lines"},
    {"sites", KIND_LIST, AT(sites), "", 0, 0,
     "prefixes anybody may read whose documents may act as pages: served without the sandbox"},
    {"cors", KIND_LIST, AT(cors), "", 0, 0,
     "origins whose scripts may use the interface, such as https://app.example; * for any"},
    {"basic", KIND_LIST, AT(basic), "", 0, 0,
     "prefixes that may also be read with a name and a password (HTTP Basic)"},
    {"apps", KIND_TEXT, AT(apps), "", 0, 0,
     "folder of apps: each folder in it is one, served at /apps/NAME/"},
    {"session_idle", KIND_TIME, AT(session_idle_ms), "14d", 60000, 400 * DAY_MS,
     "a session that was not used for so long ends"},
    {"session_max", KIND_TIME, AT(session_max_ms), "90d", 60000, 400 * DAY_MS,
     "a session ends after this time in any case"},
    {"sends_keep", KIND_TIME, AT(sends_keep_ms), "30d", 60000, 4000 * DAY_MS,
     "messages that were delivered or skipped stay so long, to be looked at and sent again"},
    {"keys", KIND_TEXT, AT(keys), "", 0, 0,
     "folder of the keys that sign and open sends (default: keys, beside the database)"},
    {"courier", KIND_TEXT, AT(courier), "", 0, 0,
     "program that delivers sends, none: another service runs it (default: hanji-courier beside "
     "the running program)"},
    {"courier_socket", KIND_TEXT, AT(courier_socket), "", 0, 0,
     "socket by which it is woken, mode 0600 (default: the database's name with .courier)"},
    {"courier_idle", KIND_TIME, AT(courier_idle_ms), "30s", 1, DAY_MS,
     "time without work after which the courier leaves"},
    {"send_timeout", KIND_TIME, AT(send_timeout_ms), "30s", 100, 600000,
     "time for one delivery; a third of it for the connection"},
    {"retry_first", KIND_TIME, AT(retry_first_ms), "5s", 1, DAY_MS,
     "pause behind the first failure of a delivery; then 5m, 30m, 2h, 5h, 10h, 14h, 20h, 24h"},
    {"retry_most", KIND_TIME, AT(retry_most_ms), "24h", 1, DAY_MS,
     "no such pause is longer"},
    {"retry_for", KIND_TIME, AT(retry_for_ms), "4d", 1, 400 * DAY_MS,
     "a message that fails when it is older waits for a person"},
    {"line_fails_for", KIND_TIME, AT(line_fails_for_ms), "5d", 1, 400 * DAY_MS,
     "a line that has been failing for so long is disabled"},
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
        {KIND_TIME, "m", 60000}, {KIND_TIME, "h", 3600000}, {KIND_TIME, "d", 86400000},
        {KIND_COUNT, "", 1},    {KIND_MODE, "", 1},
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].kind == kind && strcasecmp(unit, units[i].unit) == 0)
            return units[i].factor;
    return 0;
}

#define A_SIZE "a size such as 512k, 16m or 1g"
#define A_TIME "a time such as 500ms, 30s, 5m or 14d"

static const char *wanted(enum kind kind)
{
    switch (kind) {
    case KIND_SIZE: return A_SIZE;
    case KIND_TIME: return A_TIME;
    case KIND_MODE: return "an octal mode such as 0660";
    default: return "a whole number";
    }
}

static void environment_name(const struct key *k, char *out, size_t n)
{
    size_t len = (size_t)snprintf(out, n, "HANJI_");
    for (const char *p = k->name; *p != 0 && len + 1 < n; p++)
        out[len++] = (char)toupper((unsigned char)*p);
    out[len] = 0;
}

/* "hanji.conf:3", "HANJI_THREADS" or "--threads". */
static void origin_of(const struct conf *c, const struct key *k, char *out, size_t n)
{
    int origin = c->origin[k - keys];
    if (origin == CONF_ENVIRONMENT) {
        environment_name(k, out, n);
    } else if (origin == CONF_FLAG) {
        snprintf(out, n, "--%s", k->name);
    } else if (origin == CONF_DEFAULT) {
        snprintf(out, n, "default of %s", k->name);
    } else {
        snprintf(out, n, "%.200s:%d: %s", c->file, origin, k->name);
    }
}

static bool refuse(const struct conf *c, const struct key *k, struct conf_error *error,
                   const char *why)
{
    char where[CONF_TEXT_MAX];
    origin_of(c, k, where, sizeof where);
    return fail(error, "%.300s: %.200s", where, why);
}

bool conf_refuse(const struct conf *c, const char *key, const char *why, struct conf_error *error)
{
    return refuse(c, find(key), error, why);
}

/* False for what is no number of that kind, or too large for 64 bit. */
static bool parse_number(enum kind kind, const char *value, uint64_t *number)
{
    char *end = NULL;
    errno = 0;
    uint64_t v = strtoull(value, &end, kind == KIND_MODE ? 8 : 10);
    uint64_t factor = end != value && isdigit((unsigned char)value[0]) ? unit_factor(kind, end) : 0;
    if (errno != 0 || factor == 0 || v > UINT64_MAX / factor)
        return false;
    *number = v * factor;
    return true;
}

bool conf_number(enum conf_unit unit, const char *value, uint64_t *number)
{
    return parse_number(unit == CONF_SIZE   ? KIND_SIZE
                        : unit == CONF_TIME ? KIND_TIME
                                            : KIND_COUNT,
                        value, number);
}

const char *conf_wanted(enum conf_unit unit)
{
    return unit == CONF_SIZE ? A_SIZE : unit == CONF_TIME ? A_TIME : "a whole number";
}

static bool set_number(struct conf *c, const struct key *k, const char *value,
                       struct conf_error *error)
{
    char why[200];
    uint64_t v;
    if (!parse_number(k->kind, value, &v)) {
        snprintf(why, sizeof why, "\"%.100s\" is not %s", value, wanted(k->kind));
        return refuse(c, k, error, why);
    }
    if (v < k->min || v > k->max) {
        snprintf(why, sizeof why, "%.60s is outside what is possible (%llu to %llu)", value,
                 (unsigned long long)k->min, (unsigned long long)k->max);
        return refuse(c, k, error, why);
    }
    *(uint64_t *)(void *)((char *)c + k->offset) = v;
    return true;
}

static bool is_number(const struct key *k)
{
    return k->kind != KIND_TEXT && k->kind != KIND_LIST;
}

/* What could not stand in a file is refused from everywhere, so that conf_print can be read
 * back. */
static bool fits_a_file(const char *value)
{
    size_t n = strlen(value);
    for (size_t i = 0; i < n; i++) {
        bool mark = i > 0 && value[i - 1] == ' ' && (value[i] == ';' || value[i] == '#');
        if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f || mark)
            return false;
    }
    return n <= CONF_VALUE_MAX && (n == 0 || (value[0] != ' ' && value[n - 1] != ' '));
}

static bool set(struct conf *c, const struct key *k, const char *value, int origin,
                struct conf_error *error)
{
    bool more = k->kind == KIND_LIST && origin > 0 && c->origin[k - keys] > 0;
    c->origin[k - keys] = origin;
    if (is_number(k))
        return set_number(c, k, value, error);
    if (!fits_a_file(value))
        return refuse(c, k, error,
                      strlen(value) > CONF_VALUE_MAX
                          ? "the value is too long: 180 bytes are the most"
                          : "a value has no control characters, no blank at its ends and none "
                            "before ';' or '#'");
    char *text = (char *)c + k->offset;
    size_t at = more ? strlen(text) : 0;
    int n = snprintf(text + at, CONF_TEXT_MAX - at, "%s%s", at > 0 ? "," : "", value);
    if (n < 0 || at + (size_t)n >= CONF_TEXT_MAX)
        return refuse(c, k, error, "the value is longer than 1023 bytes");
    return true;
}

struct reading {
    struct conf *c;
    struct conf_error *error;
};

static bool take_line(struct ini_lines *l, const char *section, const char *name,
                      const char *value)
{
    struct reading *r = l->arg;
    const struct key *k = find(name);
    if (section[0] != 0)
        return fail(r->error, "%.200s:%d: sections such as [%.50s] are not used here", r->c->file,
                    l->line, section);
    if (k == NULL)
        return fail(r->error, "%.200s:%d: unknown key \"%.100s\"", r->c->file, l->line, name);
    return set(r->c, k, value, l->line, r->error);
}

static bool load_file(struct conf *c, const char *file, struct conf_error *error)
{
    struct reading r = {.c = c, .error = error};
    struct ini_lines lines = {.file = fopen(file, "re"), .take = take_line, .arg = &r};
    snprintf(c->file, sizeof c->file, "%s", file);
    if (lines.file == NULL)
        return fail(error, "%.300s: %s", file, strerror(errno));
    int line = ini_lines_read(&lines);
    bool unread = ferror(lines.file) != 0;
    fclose(lines.file);
    if (unread)
        return fail(error, "%.300s: %s", file, strerror(EIO));
    if (lines.too_long)
        return fail(error, "%.200s:%d: the line is longer than %d bytes", file, lines.line,
                    lines.most);
    if (lines.stopped)
        return false;
    return line == 0 || fail(error, "%.300s:%d: this is not \"key = value\"", file, line);
}

static bool load_environment(struct conf *c, struct conf_error *error)
{
    for (size_t i = 0; i < KEYS; i++) {
        char name[64];
        environment_name(&keys[i], name, sizeof name);
        const char *value = getenv(name);
        if (value != NULL && !set(c, &keys[i], value, CONF_ENVIRONMENT, error))
            return false;
    }
    return true;
}

bool conf_load(struct conf *c, const char *file, struct conf_error *error)
{
    _Static_assert((int)KEYS <= (int)CONF_KEYS_MAX, "room for where each key was set");
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < KEYS; i++)
        if (!set(c, &keys[i], keys[i].initial, CONF_DEFAULT, error))
            return false;
    if (file != NULL && !load_file(c, file, error))
        return false;
    return load_environment(c, error);
}

bool conf_flag(struct conf *c, const char *name, const char *value, struct conf_error *error)
{
    const struct key *k = find(name);
    if (k == NULL)
        return fail(error, "unknown flag --%.100s", name);
    return set(c, k, value, CONF_FLAG, error);
}

/* NAME.SUFFIX of the database, unless it was set. */
static bool beside_database(const struct conf *c, char *text, const char *suffix)
{
    if (text[0] != 0)
        return true;
    int n = snprintf(text, CONF_TEXT_MAX, "%s.%s", c->database, suffix);
    return n >= 0 && n <= CONF_VALUE_MAX;
}

static bool parse_sendfile_header(struct conf *c)
{
    static const char *const names[] = {"none", "x-accel-redirect", "x-sendfile"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(c->sendfile_header_name, names[i]) == 0) {
            c->sendfile_header = (enum sendfile_header)i;
            return true;
        }
    return false;
}

static void set_spool(struct conf *c)
{
    const char *slash = strrchr(c->database, '/');
    size_t n = slash == NULL ? 0 : slash == c->database ? 1 : (size_t)(slash - c->database);
    snprintf(c->spool, sizeof c->spool, "%.*s", n > 0 ? (int)n : 1, n > 0 ? c->database : ".");
}

/* A folder of that name beside the database, unless it was set. */
static bool in_its_folder(const struct conf *c, char *text, const char *name)
{
    if (text[0] != 0)
        return true;
    const char *slash = strcmp(c->spool, "/") == 0 ? "" : "/";
    int n = snprintf(text, CONF_TEXT_MAX, "%s%s%s", c->spool, slash, name);
    return n >= 0 && n <= CONF_VALUE_MAX;
}

bool conf_finish(struct conf *c, struct conf_error *error)
{
    if (!beside_database(c, c->control, "control") || !beside_database(c, c->blobs, "blobs") ||
        !beside_database(c, c->courier_socket, "courier"))
        return conf_refuse(c, "database", "the name is too long", error);
    set_spool(c);
    if (!in_its_folder(c, c->keys, "keys"))
        return conf_refuse(c, "database", "the name is too long", error);
    if (!log_level_parse(c->log_level_name, &c->log_level))
        return conf_refuse(c, "log_level", "it is error, warn, info or debug", error);
    if (!parse_sendfile_header(c))
        return conf_refuse(c, "sendfile_header", "it is x-accel-redirect, x-sendfile or none",
                           error);
    if (c->queue_bytes < 2 * c->body_in_memory_bytes)
        return conf_refuse(c, "queue_bytes",
                           "it is smaller than twice body_in_memory: such bodies could not be "
                           "stored",
                           error);
    if (c->wal_limit_bytes <= c->checkpoint_bytes)
        return conf_refuse(c, "wal_limit", "it must be larger than checkpoint_size", error);
    return true;
}

struct str conf_next(const char **list)
{
    size_t n = strcspn(*list, ","), lead = strspn(*list, " \t");
    struct str one = {*list + lead, n > lead ? n - lead : 0};
    while (one.n > 0 && (one.p[one.n - 1] == ' ' || one.p[one.n - 1] == '\t'))
        one.n--;
    *list += n + ((*list)[n] == ',');
    return one;
}

void conf_help(FILE *out)
{
    for (size_t i = 0; i < KEYS; i++)
        fprintf(out, "  --%-17s %s%s%s%s\n", keys[i].name, keys[i].help,
                keys[i].initial[0] ? " [" : "", keys[i].initial, keys[i].initial[0] ? "]" : "");
}

static void print_list(const char *name, const char *list, FILE *out)
{
    if (strlen(list) <= CONF_VALUE_MAX) {
        fprintf(out, "%s = %s\n", name, list);
        return;
    }
    while (list[0] != 0) {
        size_t n = strcspn(list, ",");
        fprintf(out, "%s = %.*s\n", name, (int)n, list);
        list += n + (list[n] == ',');
        list += strspn(list, " ");
    }
}

void conf_to_environment(const struct conf *c)
{
    for (size_t i = 0; i < KEYS; i++) {
        const void *at = (const char *)c + keys[i].offset;
        uint64_t v = is_number(&keys[i]) ? *(const uint64_t *)at : 0;
        char name[64], number[32];
        if (c->origin[i] != CONF_FLAG)
            continue;
        snprintf(number, sizeof number, keys[i].kind == KIND_MODE ? "%04llo" : "%llu%s",
                 (unsigned long long)v, keys[i].kind == KIND_TIME ? "ms" : "");
        environment_name(&keys[i], name, sizeof name);
        setenv(name, is_number(&keys[i]) ? number : (const char *)at, 1);
    }
}

void conf_print(const struct conf *c, FILE *out)
{
    for (size_t i = 0; i < KEYS; i++) {
        const void *at = (const char *)c + keys[i].offset;
        uint64_t v = is_number(&keys[i]) ? *(const uint64_t *)at : 0;
        if (keys[i].kind == KIND_LIST)
            print_list(keys[i].name, at, out);
        else if (!is_number(&keys[i]))
            fprintf(out, "%s = %s\n", keys[i].name, (const char *)at);
        else if (keys[i].kind == KIND_MODE)
            fprintf(out, "%s = %04llo\n", keys[i].name, (unsigned long long)v);
        else
            fprintf(out, "%s = %llu%s\n", keys[i].name, (unsigned long long)v,
                    keys[i].kind == KIND_TIME ? "ms" : "");
    }
}
