#include "fcgi/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fcgi/resp.h"

enum {
    LINE_MAX_BYTES = 2048,
    TAIL_BYTES = 64, /* held back: a cut line still closes its quotes and ends */
    ESCAPE_MAX = 4,
    NAME_MAX_BYTES = 64,
};

struct line {
    char text[LINE_MAX_BYTES];
    size_t len;
};

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static enum log_level threshold = LOG_INFO;

bool log_level_parse(const char *name, enum log_level *level)
{
    for (unsigned i = 0; i < sizeof level_names / sizeof *level_names; i++)
        if (strcmp(name, level_names[i]) == 0) {
            *level = (enum log_level)i;
            return true;
        }
    return false;
}

void log_set_level(enum log_level level)
{
    threshold = level;
}

static void add(struct line *l, const char *p, size_t n)
{
    size_t room = l->len < sizeof l->text - TAIL_BYTES ? sizeof l->text - TAIL_BYTES - l->len : 0;
    if (n > room)
        n = room;
    memcpy(l->text + l->len, p, n);
    l->len += n;
}

static void add_quoted(struct line *l, const char *s)
{
    static const char hex[] = "0123456789abcdef";
    add(l, "\"", 1);
    for (; *s != 0 && l->len + ESCAPE_MAX <= sizeof l->text - TAIL_BYTES; s++) {
        unsigned char c = (unsigned char)*s;
        char escaped[4] = {'\\', 'x', hex[c >> 4], hex[c & 15]};
        if (c == '"' || c == '\\') {
            escaped[1] = (char)c;
            add(l, escaped, 2);
        } else if (c < 0x20 || c == 0x7f) {
            add(l, escaped, 4);
        } else {
            add(l, s, 1);
        }
    }
    l->text[l->len++] = '"'; /* of the bytes held back */
}

static void open_line(struct line *l, enum log_level level, const char *message)
{
    l->len = 0;
    if (getenv("JOURNAL_STREAM") == NULL) {
        char ts[RFC3339_LEN];
        put_rfc3339(ts, time(NULL));
        add(l, "ts=", 3);
        add(l, ts, sizeof ts);
        add(l, " ", 1);
    }
    add(l, "level=", 6);
    add(l, level_names[level], strlen(level_names[level]));
    add(l, " msg=", 5);
    add_quoted(l, message);
}

static void send_line(struct line *l)
{
    l->text[l->len++] = '\n';
    ssize_t n = write(STDERR_FILENO, l->text, l->len);
    (void)n; /* nowhere left to say it */
}

void log_line(enum log_level level, const char *message, ...)
{
    struct line l;
    va_list args;
    if (level > threshold)
        return;
    open_line(&l, level, message);
    va_start(args, message);
    for (const char *name; (name = va_arg(args, const char *)) != NULL;) {
        const char *value = va_arg(args, const char *);
        if (l.len + NAME_MAX_BYTES + TAIL_BYTES > sizeof l.text - TAIL_BYTES)
            break; /* no room for a pair that says anything */
        add(&l, " ", 1);
        add(&l, name, strnlen(name, NAME_MAX_BYTES));
        add(&l, "=", 1);
        add_quoted(&l, value ? value : "");
    }
    va_end(args);
    send_line(&l);
}

void log_detail(enum log_level level, const char *message, const char *format, ...)
{
    char detail[1024];
    va_list args;
    if (level > threshold)
        return;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    log_line(level, message, "detail", detail, NULL);
}
