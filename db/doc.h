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
    uint64_t seq;
    int64_t modified; /* Unix seconds */
    const char *type;
    size_t type_len;
    const void *body; /* NULL when it was not asked for, or is empty */
    uint64_t size;    /* bytes of body */
};

/* Finds key in the reader's snapshot. DB_NONE when it is not there. */
enum db_result db_doc_get(struct db_reader *r, const char *key, size_t key_len, bool want_body,
                          struct db_doc *doc) __attribute__((warn_unused_result));

/* True for application/json and everything that ends in +json, whatever the parameters. */
bool db_type_is_json(const char *type, size_t n);

struct db_doc_row {
    const char *key;
    size_t key_len;
    struct db_doc doc; /* without body */
};

/* A part of the keys, in byte order: those below prefix ("" or ending in '/') and behind after (""
 * for the start), at most limit. */
struct db_doc_range {
    const char *prefix;
    size_t prefix_len;
    const char *after;
    size_t after_len;
    unsigned limit;
};

/* Calls each for every row in order, until it returns false. */
enum db_result db_doc_list(struct db_reader *r, const struct db_doc_range *range,
                           bool (*each)(void *arg, const struct db_doc_row *row), void *arg)
    __attribute__((warn_unused_result));

#endif
