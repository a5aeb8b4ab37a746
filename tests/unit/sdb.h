/* A store in the test's folder (tdb.h) with what searching needs. */
#ifndef HANJI_TESTS_UNIT_SDB_H
#define HANJI_TESTS_UNIT_SDB_H

#include "db/search.h"
#include "tests/unit/tdb.h"

/* A checked fixture: makes a store and opens sdb_conn, as the writer has it. */
extern struct db_conn sdb_conn;
void sdb_open(void);
void sdb_close(void);

/* An operation on a prefix, or on none. */
struct db_op *sdb_op(enum db_op_kind kind, const char *prefix);

/* One operation in a burst of its own; its result. */
enum db_result sdb_apply(struct db_op *op);

void sdb_put(const char *key, const char *body);
void sdb_put_json(const char *key, const char *body);

/* Steps until nothing is left; how many. */
unsigned sdb_settle(void);

/* Makes a collection searchable. */
void sdb_add(const char *prefix);

struct db_reader *sdb_reader(void);

/* How the index is for a prefix. */
enum db_search_state sdb_look(const char *prefix);

/* What a search found: "key key", or "wrong". */
struct sdb_found {
    char keys[4096];
    char snippet[1024]; /* of the first, with | for the splits */
    int64_t score, last_score;
    char last[600];
    unsigned count;
};

/* A search of which nothing may go wrong but the words; DB_INVALID says that they did. behind: what comes after that
 * which f has. */
enum db_result sdb_page(const char *prefix, const char *q, unsigned limit, struct sdb_found *f, bool behind);

/* The keys that are found, with a space between; "wrong" when the query is. */
const char *sdb_search(const char *prefix, const char *q);

/* The snippet of the only hit in n/, with | for the splits. */
const char *sdb_snippet(const char *q);

/* For db_search: adds to a struct sdb_found. */
bool sdb_take(void *arg, const struct db_search_hit *hit);

#endif
