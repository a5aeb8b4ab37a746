/* One line a thing, logfmt, on standard error: level=… msg="…" key=value…
 *
 * Outside journald, which has its own, a line begins with ts= (UTC). Values are quoted and control
 * characters escaped, so that no input can forge a line. Each line is one write(2), so that threads
 * and processes do not mix. Never called on the hot read path. */
#ifndef HANJI_FCGI_LOG_H
#define HANJI_FCGI_LOG_H

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* "error", "warn", "info" or "debug"; false for anything else. */
bool log_level_parse(const char *name, enum log_level *level);
void log_set_level(enum log_level level);

/* Writes a line: message, then pairs of name and value (const char *), ended by NULL. */
void log_line(enum log_level level, const char *message, ...) __attribute__((sentinel));

/* The same with one printf-formatted detail, for what is not per request. */
void log_detail(enum log_level level, const char *message, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
