#include "tests/unit/sdb.h"

#include <stdio.h>
#include <string.h>

#include "db/search_index.h"

struct db_conn sdb_conn;

void sdb_open(void)
{
    tdb_make();
    tdb_open(&sdb_conn);
}

void sdb_close(void)
{
    db_conn_close(&sdb_conn);
}

struct db_op *sdb_op(enum db_op_kind kind, const char *prefix)
{
    struct db_op *op = db_op_new(kind, prefix != NULL ? strlen(prefix) : 0);
    if (prefix != NULL)
        db_op_copy(op, 0, DB_VALUE_TEXT, prefix, strlen(prefix));
    return op;
}

/* One operation in a burst of its own; its result. */
enum db_result sdb_apply(struct db_op *op)
{
    enum db_result result = tdb_burst(&sdb_conn, op);
    ck_assert_msg(result == op->result || result == DB_OK, "%d", (int)result);
    result = op->result;
    tdb_free(op);
    return result;
}

void sdb_put(const char *key, const char *body)
{
    ck_assert_int_eq(sdb_apply(tdb_put(key, body)), DB_OK);
}

void sdb_put_json(const char *key, const char *body)
{
    ck_assert_int_eq(sdb_apply(tdb_put_bytes(key, "application/json", DB_VALUE_TEXT, body, strlen(body))), DB_OK);
}

/* Steps until nothing is left; how many. */
unsigned sdb_settle(void)
{
    unsigned steps = 0;
    bool more = true;
    for (; more; steps++) {
        ck_assert_int_eq(db_search_step(&sdb_conn, &more), DB_OK);
        ck_assert_uint_lt(steps, 100000);
    }
    return steps;
}

void sdb_add(const char *prefix)
{
    ck_assert_int_eq(sdb_apply(sdb_op(DB_OP_SEARCH_ADD, prefix)), DB_OK);
    sdb_settle();
}

struct db_reader *sdb_reader(void)
{
    struct db_reader *r;
    ck_assert_int_eq(db_reader_open(&tdb_config, &r, &tdb_error), DB_OK);
    return r;
}

enum db_search_state sdb_look(const char *prefix)
{
    enum db_search_state state;
    int64_t collection;
    struct db_reader *r = sdb_reader();
    ck_assert_int_eq(db_search_look(r, prefix, strlen(prefix), &state, &collection), DB_OK);
    db_reader_close(r);
    return state;
}

bool sdb_take(void *arg, const struct db_search_hit *hit)
{
    struct sdb_found *f = arg;
    size_t n = strlen(f->keys);
    snprintf(f->keys + n, sizeof f->keys - n, "%s%.*s", n > 0 ? " " : "", (int)hit->row.key_len, hit->row.key);
    if (f->count++ == 0) {
        f->score = hit->score;
        ck_assert_uint_lt(hit->snippet_len, sizeof f->snippet);
        for (size_t i = 0; i < hit->snippet_len; i++)
            f->snippet[i] = hit->snippet[i] == DB_SEARCH_SPLIT ? '|' : (char)hit->snippet[i];
    }
    ck_assert(f->count == 1 || hit->score <= f->last_score);
    f->last_score = hit->score;
    snprintf(f->last, sizeof f->last, "%.*s", (int)hit->row.key_len, hit->row.key);
    return true;
}

/* A search of which nothing may go wrong but the words; DB_INVALID says that they did. */
enum db_result sdb_page(const char *prefix, const char *q, unsigned limit, struct sdb_found *f, bool behind)
{
    struct db_search_match *m = malloc(sizeof *m);
    struct db_reader *r = sdb_reader();
    enum db_search_state state;
    char after[600];
    struct db_search_ask ask = {.match = m, .prefix = prefix, .prefix_len = strlen(prefix), .behind = behind,
                                .after_score = f->last_score, .after_key = after, .limit = limit, .at_most_ms = 20000};
    snprintf(after, sizeof after, "%s", f->last);
    ask.after_key_len = strlen(after);
    memset(f, 0, sizeof *f);
    ck_assert_int_eq(db_reader_begin(r), DB_OK);
    enum db_result result = db_search_parse(r, q, strlen(q), m);
    if (result == DB_OK) {
        ck_assert_int_eq(db_search_look(r, prefix, strlen(prefix), &state, &ask.collection), DB_OK);
        ck_assert_int_eq(state, DB_SEARCH_READY);
        ck_assert_int_eq(db_search(r, &ask, sdb_take, f), DB_OK);
    } else {
        ck_assert_int_eq(result, DB_INVALID);
        ck_assert_ptr_nonnull(m->wrong);
        strcpy(f->keys, "wrong");
    }
    db_reader_close(r);
    free(m);
    return result;
}

const char *sdb_search(const char *prefix, const char *q)
{
    static struct sdb_found f;
    f.last[0] = 0;
    (void)sdb_page(prefix, q, 100, &f, false);
    return f.keys;
}

const char *sdb_snippet(const char *q)
{
    static struct sdb_found f;
    ck_assert_int_eq(sdb_page("n/", q, 1, &f, false), DB_OK);
    ck_assert_uint_eq(f.count, 1);
    return f.snippet;
}
