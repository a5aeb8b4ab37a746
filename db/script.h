/* A file of an app's SQL: its statements, the notes in its comments, and its parameters.
 *
 * Parsing needs no database; checking compiles every statement against one and fills in what only
 * SQLite knows. After that a script is constant, and any thread may look at it. Notes stand in
 * comments of their own line before a statement:
 *
 *     -- name: items          its rows are the result `items`
 *     -- set                  its first row's columns are parameters of the statements behind it
 *     -- page: 20 by score desc, id      it is read in pages
 *     -- form: list           once a file: the page whose form posts here
 *
 * The last statement that returns rows is the result `rows` unless a note names it. */
#ifndef HANJI_DB_SCRIPT_H
#define HANJI_DB_SCRIPT_H

#include "db/db.h"

enum db_script_kind {
    DB_SCRIPT_READ,   /* ROUTE.get.sql: nothing in it may write */
    DB_SCRIPT_WRITE,  /* ROUTE.post.sql, put, delete */
    DB_SCRIPT_SCHEMA, /* schema/NNN-*.sql: run once, in order; not checked beforehand */
};

enum {
    DB_SCRIPT_BYTES_MAX = 256 << 10,
    DB_SCRIPT_STATEMENTS_MAX = 64,
    DB_SCRIPT_NAMES_MAX = 64, /* different parameters of a file */
    DB_NAME_MAX = 64,         /* bytes of a name: of a result, a parameter, a route */
    DB_APP_COLUMNS_MAX = 100,
    DB_PAGE_KEYS_MAX = 4,
    DB_PAGE_ROWS_MAX = 1000,
};

/* What "-- page:" says. Its statements are made by db_page (db/page.h). */
struct db_page {
    unsigned rows;
    unsigned keys;
    struct db_page_key {
        const char *column; /* of the result */
        bool descending;
        unsigned index; /* of that column; after the check */
    } key[DB_PAGE_KEYS_MAX];
    /* After the check: the text of each slot of the statement. That of the first reads all of it,
     * in order. */
    const struct db_page_text {
        const char *sql; /* ends with NUL */
        size_t bytes;
    } *text;
};

struct db_statement {
    const char *text; /* ends with NUL */
    size_t bytes;
    unsigned line;    /* of the file, from 1, where it begins */
    const char *name; /* of its result; NULL: its rows are nobody's */
    bool set;
    const struct db_page *page; /* NULL: it is read whole */
    /* After the check. */
    bool returns; /* it is a SELECT, or has RETURNING */
    bool steers;  /* it returns a column whose name begins with '_' */
    unsigned columns;
    const char *const *column; /* their names */
    unsigned parameters;
    const unsigned char *parameter; /* for ?1, ?2 …: which of script->name */
    unsigned slot;  /* the first of its prepared statements in a cache of this script */
    unsigned slots; /* how many it has: one, or those of a page (struct db_page has their text) */
};

struct db_script_name {
    const char *name; /* without its sigil */
    char sigil;       /* ':' any source, '$' the query alone, '@' the body alone */
    bool own;         /* a `-- set` gives it: never the client */
};

struct db_script {
    uint64_t id; /* no other script of this process has had it */
    enum db_script_kind kind;
    const char *file; /* below the app's folder, for people: "scores/add.post.sql" */
    unsigned count;
    struct db_statement *statement;
    unsigned names;
    struct db_script_name *name;
    unsigned slots;   /* of all statements */
    const char *form; /* what "-- form:" says, or NULL */
    void *memory;     /* the script's own */
};

/* Where faults are told: each once, with file and line, in a sentence without a full stop. */
struct db_faults {
    void (*tell)(void *arg, const char *file, unsigned line, const char *text);
    void *arg;
    unsigned count; /* of those told */
};

/* Splits a file. Tells what is wrong and goes on, so that one run names every fault. NULL when
 * there was one, or memory is short (told as well). The text is copied. */
struct db_script *db_script_parse(enum db_script_kind kind, const char *file, const char *text,
                                  size_t bytes, struct db_faults *faults)
    __attribute__((warn_unused_result));
void db_script_free(struct db_script *s);

#endif
