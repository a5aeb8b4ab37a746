/* Users: reading. Made and changed by operations (DB_OP_USER_*). */
#ifndef HANJI_DB_USER_H
#define HANJI_DB_USER_H

#include "db/reader.h"

enum { DB_USER_NAME_MAX = 64 };

/* Pointers die at the next read of the same reader, at the latest at db_reader_end. */
struct db_user {
    int64_t id;
    const char *name;
    const char *hash; /* Argon2id as libsodium writes it, or what no password has */
    const char *read; /* prefixes, one a line */
    size_t read_len;
    const char *write;
    size_t write_len;
    int64_t created;  /* Unix seconds */
    int64_t sessions; /* rows in session, expired or not; db_user_list only */
};

/* Finds a user by name, ASCII letters compared without case. DB_NONE when there is none. */
enum db_result db_user_find(struct db_reader *r, const char *name, size_t name_len,
                            struct db_user *user) __attribute__((warn_unused_result));

/* The same by number. */
enum db_result db_user_get(struct db_reader *r, int64_t id, struct db_user *user)
    __attribute__((warn_unused_result));

/* Calls each for every user in order of name. */
enum db_result db_user_list(struct db_reader *r,
                            void (*each)(void *arg, const struct db_user *user), void *arg)
    __attribute__((warn_unused_result));

#endif
