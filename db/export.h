/* Documents one after the other, in byte order of their keys, for an export.
 *
 * No snapshot is held for long: db_export_pause ends it, and the next document is looked for in a
 * new one, behind the key of the last. So each document is whole, and together they are a walk
 * during which others may write: what did not change after db_export_seq is in it exactly. One
 * thread. */
#ifndef HANJI_DB_EXPORT_H
#define HANJI_DB_EXPORT_H

#include "db/doc.h"

enum { DB_EXPORT_WHOLE_MAX = 1 << 20 }; /* bytes of a body that is given whole */

struct db_export;

/* Pointers die at the next call for the same export. */
struct db_export_doc {
    const char *key;
    size_t key_len;
    const char *type;
    size_t type_len;
    int64_t modified;
    uint64_t seq;
    uint64_t size;
    bool text;        /* the body is TEXT in the file; not always UTF-8 */
    const void *body; /* NULL when empty, or above DB_EXPORT_WHOLE_MAX: db_export_read */
};

/* range: prefix and after as for db_doc_list; limit is not used. */
enum db_result db_export_open(const struct db_config *config, const struct db_doc_range *range,
                              struct db_export **out, struct db_error *error)
    __attribute__((warn_unused_result));
void db_export_close(struct db_export *e);

/* The state when it was opened. */
uint64_t db_export_seq(const struct db_export *e);
uint64_t db_export_documents(const struct db_export *e);

/* The next document; DB_NONE behind the last. */
enum db_result db_export_next(struct db_export *e, struct db_export_doc *doc)
    __attribute__((warn_unused_result));

/* The document of that key, as db_export_next gives one; the walk goes on behind it. DB_NONE when
 * it is not there. */
enum db_result db_export_find(struct db_export *e, const char *key, size_t key_len,
                              struct db_export_doc *doc) __attribute__((warn_unused_result));

/* n bytes of the body of the document that was given last, from `at` on. */
enum db_result db_export_read(struct db_export *e, void *p, size_t n, uint64_t at)
    __attribute__((warn_unused_result));

/* Ends the snapshot: to be called before waiting for anybody. The document is dead. */
void db_export_pause(struct db_export *e);

#endif
