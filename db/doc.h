/* Documents: reading. Writing goes by operations (db/op.h), applied in db/doc.c too. */
#ifndef HANJI_DB_DOC_H
#define HANJI_DB_DOC_H

#include "db/reader.h"

enum {
    DB_KEY_MAX = 512,
    DB_TYPE_MAX = 255,
    DB_PATCH_BYTES_MAX = 4 << 20, /* of a document that is patched, and of the patch */
};

/* One document. Pointers die at the next read of the same reader and at db_reader_end. */
struct db_doc {
    int64_t id; /* of the row, for db_doc_body */
    uint64_t seq;
    int64_t modified; /* Unix seconds */
    const char *type;
    size_t type_len;
    const void *body; /* NULL when it is empty, or larger than was asked for */
    uint64_t size;    /* bytes of body */
};

/* Finds key in the reader's snapshot, with its body when that has at most body_max bytes. DB_NONE
 * when it is not there. */
enum db_result db_doc_get(struct db_reader *r, const char *key, size_t key_len, uint64_t body_max,
                          struct db_doc *doc) __attribute__((warn_unused_result));

/* True for application/json and everything that ends in +json, whatever the parameters. */
bool db_type_is_json(const char *type, size_t n);

/* Calls each with the body of a document that db_doc_get found in the same snapshot, in pieces and
 * in order, until it returns false (DB_INVALID). Holds one piece in memory. */
enum db_result db_doc_body(struct db_reader *r, const struct db_doc *doc,
                           bool (*each)(void *arg, const void *p, size_t n), void *arg)
    __attribute__((warn_unused_result));

struct db_doc_row {
    const char *key;
    size_t key_len;
    struct db_doc doc; /* all zero for a folder */
    bool folder; /* key stands for all that begin with it: it ends in '/' */
};

/* A part of the keys, in byte order: those below prefix ("" or ending in '/') and behind after (""
 * for the start), at most limit. With folders, keys that go on behind a further '/' are told as one
 * row, at the cost of one; an after that ends in '/' is behind all of them. */
struct db_doc_range {
    const char *prefix;
    size_t prefix_len;
    const char *after;
    size_t after_len;
    unsigned limit;
    bool folders;
    int64_t body_max; /* bodies of at most that many bytes come along; -1: none */
};

/* True when the part begins behind after, not at its prefix: after lies within it, or behind it. */
bool db_doc_behind(const struct db_doc_range *range);

/* Calls each for every row in order, until it returns false. */
enum db_result db_doc_list(struct db_reader *r, const struct db_doc_range *range,
                           bool (*each)(void *arg, const struct db_doc_row *row), void *arg)
    __attribute__((warn_unused_result));

#endif
