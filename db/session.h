/* Sessions of people who logged in: reading. Begun and ended by operations (DB_OP_SESSION_*). */
#ifndef HANJI_DB_SESSION_H
#define HANJI_DB_SESSION_H

#include "db/reader.h"

enum {
    DB_SESSION_HASH_BYTES = 32,
    DB_SESSION_LABEL_MAX = 120,
    DB_SESSIONS_PER_USER = 64, /* a login beyond ends the one that was unused for longest */
};

/* A session with its user. Pointers die at the next read of the same reader, at the latest at
 * db_reader_end. */
struct db_session {
    int64_t user;    /* its number */
    int64_t created; /* Unix seconds */
    int64_t seen;    /* last use, to within an hour */
    int64_t expires;
    const char *name;
    const char *read; /* the user's prefixes, one a line */
    size_t read_len;
    const char *write;
    size_t write_len;
};

/* Finds the session whose hash that is, expired or not. DB_NONE when there is none, or no user. */
enum db_result db_session_find(struct db_reader *r,
                               const unsigned char hash[DB_SESSION_HASH_BYTES],
                               struct db_session *session) __attribute__((warn_unused_result));

/* What a JSON body of a login says. Pointers die as those above, and with the text. */
struct db_login {
    const char *user;
    size_t user_len;
    const char *password;
    size_t password_len;
};

/* Reads the members "user" and "password" of a JSON object. DB_INVALID when the text is not JSON or
 * one of them is not a string. */
enum db_result db_login_json(struct db_reader *r, const void *json, size_t n,
                             struct db_login *login) __attribute__((warn_unused_result));

#endif
