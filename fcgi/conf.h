/* The configuration: one table of keys from which files, environment, flags and --help are read.
 *
 * Precedence: flag, environment (HANJI_KEY), file, default. A wrong value is refused with where it
 * stands; nothing is guessed. Read once at start, then constant. */
#ifndef HANJI_FCGI_CONF_H
#define HANJI_FCGI_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "fcgi/buf.h"
#include "fcgi/log.h"

enum {
    CONF_TEXT_MAX = 1024, /* room for a text, or a list from several lines */
    CONF_VALUE_MAX = 180, /* bytes of one value: with its key it fits a line of a file */
    CONF_KEYS_MAX = 64,
};

/* How the web server is told to send a file by itself. */
enum sendfile_header {
    SENDFILE_NONE,
    SENDFILE_X_ACCEL_REDIRECT, /* nginx: a URI of an internal location */
    SENDFILE_X_SENDFILE,       /* lighttpd and others: the name of the file */
};

struct conf {
    char database[CONF_TEXT_MAX];
    char socket[CONF_TEXT_MAX];
    char socket_group[CONF_TEXT_MAX];
    char control[CONF_TEXT_MAX];
    char spool[CONF_TEXT_MAX]; /* folder of the database; not a key */
    char blobs[CONF_TEXT_MAX];
    char sendfile_header_name[CONF_TEXT_MAX];
    enum sendfile_header sendfile_header;
    char public_[CONF_TEXT_MAX];
    char sites[CONF_TEXT_MAX];
    char cors[CONF_TEXT_MAX];
    char basic[CONF_TEXT_MAX];
    char apps[CONF_TEXT_MAX];
    char keys[CONF_TEXT_MAX];
    char courier[CONF_TEXT_MAX];
    char courier_socket[CONF_TEXT_MAX];
    char log_level_name[CONF_TEXT_MAX];
    enum log_level log_level;
    uint64_t socket_mode;
    uint64_t threads;
    uint64_t pool_threads;
    uint64_t pool_queue;
    uint64_t backlog;
    uint64_t max_connections;
    uint64_t max_watchers;
    uint64_t heartbeat_ms;
    uint64_t max_body_bytes;
    uint64_t body_memory_bytes;
    uint64_t body_in_memory_bytes;
    uint64_t request_timeout_ms;
    uint64_t write_timeout_ms;
    uint64_t drain_timeout_ms;
    uint64_t session_idle_ms;
    uint64_t session_max_ms;
    uint64_t sends_keep_ms;
    uint64_t courier_idle_ms;
    uint64_t send_timeout_ms;
    uint64_t retry_first_ms;
    uint64_t retry_most_ms;
    uint64_t retry_for_ms;
    uint64_t line_fails_for_ms;
    uint64_t queue_operations;
    uint64_t queue_bytes;
    uint64_t burst_operations;
    uint64_t checkpoint_bytes;
    uint64_t wal_limit_bytes;
    uint64_t accel_min_bytes;
    uint64_t blobs_max_bytes;
    uint64_t read_cache_bytes;
    uint64_t write_cache_bytes;
    /* where each value was set, in order of the table: a line of file, or an enum conf_origin */
    char file[CONF_TEXT_MAX];
    int origin[CONF_KEYS_MAX];
};

enum conf_origin { CONF_DEFAULT = 0, CONF_ENVIRONMENT = -1, CONF_FLAG = -2 };

struct conf_error {
    char text[512];
};

/* Defaults, then the file (NULL: none), then the environment. False with error set when something
 * is wrong. */
bool conf_load(struct conf *c, const char *file, struct conf_error *error)
    __attribute__((warn_unused_result));

/* One flag: name without "--", '-' and '_' alike. False with error set for an unknown name or a
 * wrong value. */
bool conf_flag(struct conf *c, const char *name, const char *value, struct conf_error *error)
    __attribute__((warn_unused_result));

/* Fills what depends on other keys and checks what spans several. Call after the last flag. */
bool conf_finish(struct conf *c, struct conf_error *error) __attribute__((warn_unused_result));

/* Says where the value of a key was set and why it is wrong; always false. */
bool conf_refuse(const struct conf *c, const char *key, const char *why, struct conf_error *error);

/* The next of a list's values, without the blanks around it; n is 0 for an empty one. Moves *list
 * behind it; at the end **list is 0. */
struct str conf_next(const char **list);

enum conf_unit { CONF_COUNT, CONF_SIZE, CONF_TIME };

/* A number as values are written: bytes from a size ("1m"), milliseconds from a time ("5s"). False
 * when it is none; conf_wanted says what it should have been. */
bool conf_number(enum conf_unit unit, const char *value, uint64_t *number)
    __attribute__((warn_unused_result));
const char *conf_wanted(enum conf_unit unit);

/* Prints the keys, their defaults and meanings, for --help. */
void conf_help(FILE *out);

/* Puts what flags have set into the environment, for a program of ours that is to see the same. */
void conf_to_environment(const struct conf *c);

/* Prints every key with its effective value, as a file that conf_load reads back. */
void conf_print(const struct conf *c, FILE *out);

#endif
