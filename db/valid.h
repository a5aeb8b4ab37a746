/* What may be stored. Private to db/. */
#ifndef HANJI_DB_VALID_H
#define HANJI_DB_VALID_H

#include "db/conn.h"

/* UTF-8 as RFC 3629 has it, without NUL. */
bool db_valid_text(const unsigned char *p, size_t n);

/* The rules of docs/api.md for keys. */
bool db_valid_key(const unsigned char *p, size_t n);

/* Sets *yes when it is JSON, as SQLite reads it. */
enum db_result db_valid_json(struct db_conn *c, const char *p, size_t n, bool *yes)
    __attribute__((warn_unused_result));

#endif
