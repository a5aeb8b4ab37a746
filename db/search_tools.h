/* What a connection needs to search: FTS5's tokenizer, and our functions for score and snippet.
 * Private to db/. */
#ifndef HANJI_DB_SEARCH_TOOLS_H
#define HANJI_DB_SEARCH_TOOLS_H

#include "db/conn.h"

struct db_search_tools;

/* Makes them and registers the functions hanji_score and hanji_snippet. NULL when memory is short
 * or the SQLite that is linked has no FTS5. */
struct db_search_tools *db_search_tools_new(struct db_conn *c) __attribute__((warn_unused_result));

/* Before the connection is closed. Safe with NULL. */
void db_search_tools_free(struct db_search_tools *t);

/* How many words the index would see in a text; *last_letters: code points of the last one. */
enum db_result db_search_words(const struct db_search_tools *t, const char *text, size_t n,
                               unsigned *words, unsigned *last_letters)
    __attribute__((warn_unused_result));

#endif
