/* The words of SQL, as far as splitting a file needs them: where strings, comments and parameters
 * begin and end. As SQLite's own tokenizer sees them. Private to db/script. */
#ifndef HANJI_DB_SCRIPT_SCAN_H
#define HANJI_DB_SCRIPT_SCAN_H

#include "db/script.h"

struct db_slice {
    const char *p;
    size_t n;
};

enum db_sql_token_kind {
    DB_TOKEN_SEMICOLON,
    DB_TOKEN_WORD,         /* a keyword, a name or a number, not quoted */
    DB_TOKEN_VARIABLE,     /* :x $x @x #x ?1 */
    DB_TOKEN_OTHER,        /* also strings and quoted names */
    DB_TOKEN_COMMENT,      /* "--" to before the end of the line; the others are passed over */
    DB_TOKEN_OPEN_STRING,  /* one, or a quoted name, that does not end */
    DB_TOKEN_OPEN_COMMENT, /* a comment in slashes that does not end */
};

struct db_sql_token {
    enum db_sql_token_kind kind;
    struct db_slice text;
    unsigned line; /* where it begins */
    int depth;     /* of parentheses around it, since the scan's depth was set */
    bool first_in_line;
};

struct db_scan {
    const char *p, *end;
    unsigned line; /* from 1 */
    int depth;
    bool first_in_line; /* nothing but blanks stands before p in its line */
};

/* Cuts off the next token. False at the end. */
bool db_script_token(struct db_scan *scan, struct db_sql_token *t);

/* True for a byte that a name may have: letters, digits, '_', '$', and all beyond ASCII. */
bool db_script_in_name(char c);

/* The bytes of the character of UTF-8 (RFC 3629) that p begins with; 0: it begins with none. */
size_t db_script_utf8(const char *p, size_t n);

/* Tells a fault. */
void db_script_fault(struct db_faults *faults, const char *file, unsigned line, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));

#endif
