/* API tokens: reading. Made and revoked by operations (DB_OP_TOKEN_*). */
#ifndef HANJI_DB_TOKEN_H
#define HANJI_DB_TOKEN_H

#include "db/reader.h"

enum { DB_TOKEN_HASH_BYTES = 32, DB_TOKEN_NAME_MAX = 64, DB_TOKEN_PREFIXES_MAX = 4096 };

/* Pointers die at the next read of the same reader, at the latest at db_reader_end. */
struct db_token {
    const unsigned char *hash; /* DB_TOKEN_HASH_BYTES */
    const char *name;
    const char *read; /* prefixes, one a line */
    size_t read_len;
    const char *write;
    size_t write_len;
    int64_t created; /* Unix seconds */
    int64_t expires; /* Unix seconds, 0: never */
};

/* Finds the token whose hash that is, expired or not. DB_NONE when there is none. */
enum db_result db_token_find(struct db_reader *r, const unsigned char hash[DB_TOKEN_HASH_BYTES],
                             struct db_token *token) __attribute__((warn_unused_result));

/* Calls each for every token in order of name. */
enum db_result db_token_list(struct db_reader *r,
                             void (*each)(void *arg, const struct db_token *token), void *arg)
    __attribute__((warn_unused_result));

#endif
