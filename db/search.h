/* Full-text search over the collections that people opted in (FTS5, db/schema/004-search.sql).
 *
 * The index follows the change feed: it is brought in line in steps, by the writer when it is quiet
 * or far behind, and whenever a search finds it behind (DB_OP_SEARCH_SYNC). A search runs on a
 * snapshot of its own and answers only when the index is in line with that snapshot, so that it
 * sees every write that was acknowledged before.
 *
 * A hit's score depends on its document and the words alone, not on other documents: it tells
 * nothing about those that the reader may not see, and pages stay what they were while others
 * write. */
#ifndef HANJI_DB_SEARCH_H
#define HANJI_DB_SEARCH_H

#include "db/doc.h"

enum {
    DB_SEARCH_WORDS_MAX = 32,
    DB_SEARCH_QUERY_MAX = 512,      /* bytes of what a person typed */
    DB_SEARCH_LIMIT_MAX = 100,      /* hits of a page */
    DB_SEARCH_COLLECTIONS_MAX = 64, /* that can be opted in */
    DB_SEARCH_BODY_MAX = 1 << 20,   /* bytes of a document that is indexed */
    DB_SEARCH_SNIPPET_MAX = 480,    /* bytes */
    DB_SEARCH_SPLIT = 0xff,         /* between the parts of a snippet; in no UTF-8 */
};

/* What a person typed, as expressions of FTS5. */
struct db_search_match {
    const char *wrong; /* with DB_INVALID: what is, to stand behind "q" */
    unsigned words;
    bool begins; /* there is a word* */
    size_t must_len, not_len;
    char must[DB_SEARCH_QUERY_MAX + 12 * DB_SEARCH_WORDS_MAX];
    char not_[DB_SEARCH_QUERY_MAX + 12 * DB_SEARCH_WORDS_MAX];
};

/* Words are joined by AND, "phrases" stand in quotes, -word is not to be there, word* begins a
 * word; everything else is taken literally. Whatever q is, this gives an expression that FTS5
 * understands, or DB_INVALID. q is UTF-8 without NUL. */
enum db_result db_search_parse(struct db_reader *r, const char *q, size_t n,
                               struct db_search_match *m) __attribute__((warn_unused_result));

enum db_search_state {
    DB_SEARCH_READY,
    DB_SEARCH_NOT_HERE, /* no opted-in collection covers the prefix */
    DB_SEARCH_INDEXING, /* it was opted in, and is not wholly in the index yet */
    DB_SEARCH_BEHIND,   /* the index lacks changes of it that this snapshot has */
    DB_SEARCH_DAMAGED,
};

/* How the index is, in the reader's snapshot, for what lies below prefix ("" or ending in '/');
 * *collection is for db_search when it is ready. */
enum db_result db_search_look(struct db_reader *r, const char *prefix, size_t prefix_len,
                              enum db_search_state *state, int64_t *collection)
    __attribute__((warn_unused_result));

struct db_search_ask {
    const struct db_search_match *match;
    int64_t collection;
    const char *prefix;
    size_t prefix_len;
    bool behind; /* only what comes behind this place */
    int64_t after_score;
    const char *after_key;
    size_t after_key_len;
    unsigned limit; /* at most DB_SEARCH_LIMIT_MAX + 1 */
    uint64_t at_most_ms; /* DB_TIMEOUT then */
};

/* Pointers die when the callback returns. */
struct db_search_hit {
    struct db_doc_row row;
    int64_t score; /* millionths, never negative */
    const unsigned char *snippet; /* parts: text, found, text, found … */
    size_t snippet_len;
};

/* Calls each for every hit, best score first, then by key, until it returns false. In the snapshot
 * in which db_search_look said that the index is ready. DB_INVALID: the index is damaged. */
enum db_result db_search(struct db_reader *r, const struct db_search_ask *ask,
                         bool (*each)(void *arg, const struct db_search_hit *hit), void *arg)
    __attribute__((warn_unused_result));

struct db_search_collection {
    const char *prefix;
    size_t prefix_len;
    const char *state;
    uint64_t documents; /* in the index */
    bool damaged;       /* all of the index is */
};

/* Calls each for every opted-in collection in order of prefix. */
enum db_result db_search_list(struct db_reader *r,
                              void (*each)(void *arg, const struct db_search_collection *c),
                              void *arg) __attribute__((warn_unused_result));

#endif
