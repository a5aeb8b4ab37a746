#include "db/search.h"

#include <stdlib.h>
#include <string.h>

#include "db/burst.h"
#include "db/reader_internal.h"
#include "db/search_tools.h"

enum {
    LAG_LOOKED_AT = 4096,  /* changes behind the index: beyond, it is behind whatever they are */
    PROGRESS_STEPS = 1000, /* of SQLite's program, between looks at the clock */
    MATCH_ROOM = 2 * (DB_SEARCH_QUERY_MAX + 12 * DB_SEARCH_WORDS_MAX) + 64,
    PREFIX_LETTERS_MIN = 2,
};

static enum db_result tools(struct db_reader *r)
{
    if (r->search == NULL)
        r->search = db_search_tools_new(&r->conn);
    return r->search != NULL ? DB_OK : DB_NO_MEMORY;
}

/* ---- what a person typed ------------------------------------------------------------------ */

struct term {
    const char *p;
    size_t n;
    bool excluded, begins;
};

/* The bytes of one of the marks, a list of them each ended by NUL, that p begins with; 0: none. */
static size_t one_of(const char *marks, const char *p, const char *end)
{
    for (size_t n; (n = strlen(marks)) > 0; marks += n + 1)
        if (n <= (size_t)(end - p) && memcmp(marks, p, n) == 0)
            return n;
    return 0;
}

/* Also the spaces and quotation marks that telephones type: U+00A0, U+3000, U+201C to U+201E. */
static size_t blank(const char *p, const char *end)
{
    return p < end && (unsigned char)*p <= ' ' ? 1
                                               : one_of("\xc2\xa0\0\xe3\x80\x80\0", p, end);
}

static size_t quote(const char *p, const char *end)
{
    return one_of("\"\0\xe2\x80\x9c\0\xe2\x80\x9d\0\xe2\x80\x9e\0", p, end);
}

/* Cuts the next term off; false: there is none. A quotation mark that is not closed reaches to the
 * end. */
static bool next_term(const char **q, const char *end, struct term *t)
{
    const char *p = *q;
    for (size_t n; (n = blank(p, end)) > 0;)
        p += n;
    *t = (struct term){0};
    if (p == end)
        return false;
    t->excluded = *p == '-';
    p += t->excluded;
    size_t quoted = quote(p, end);
    p += quoted;
    t->p = p;
    while (p < end && quote(p, end) == 0 && (quoted > 0 || blank(p, end) == 0))
        p++;
    t->n = (size_t)(p - t->p);
    p += quoted > 0 ? quote(p, end) : 0;
    t->begins = quoted > 0 ? p < end && *p == '*' : t->n > 0 && p[-1] == '*';
    p += quoted > 0 && t->begins;
    *q = p;
    return true;
}

static void put(char *out, size_t *n, const char *p, size_t len)
{
    memcpy(out + *n, p, len);
    *n += len;
}

/* Appends the term in quotes, between which FTS5 sees nothing but text. */
static void put_term(struct db_search_match *m, const struct term *t)
{
    char *out = t->excluded ? m->not_ : m->must;
    size_t *n = t->excluded ? &m->not_len : &m->must_len;
    if (*n > 0)
        put(out, n, t->excluded ? " OR " : " AND ", t->excluded ? 4 : 5);
    put(out, n, "\"", 1);
    put(out, n, t->p, t->n);
    put(out, n, t->begins ? "\" *" : "\"", t->begins ? 3 : 1);
}

static enum db_result wrong(struct db_search_match *m, const char *why)
{
    m->wrong = why;
    return DB_INVALID;
}

enum db_result db_search_parse(struct db_reader *r, const char *q, size_t n,
                               struct db_search_match *m)
{
    struct term t;
    const char *end = q + n;
    m->wrong = NULL;
    m->words = 0;
    m->begins = false;
    m->must_len = m->not_len = 0;
    if (n > DB_SEARCH_QUERY_MAX)
        return wrong(m, "has at most 512 bytes");
    enum db_result result = tools(r);
    while (result == DB_OK && next_term(&q, end, &t)) {
        unsigned words, letters;
        result = db_search_words(r->search, t.p, t.n, &words, &letters);
        if (result != DB_OK || words == 0)
            continue; /* nothing but punctuation */
        if (t.begins && letters < PREFIX_LETTERS_MIN)
            return wrong(m, "has at least two letters before a *");
        if (m->words++ == DB_SEARCH_WORDS_MAX)
            return wrong(m, "has at most 32 words and phrases");
        m->begins |= t.begins;
        put_term(m, &t);
    }
    if (result == DB_OK && m->must_len == 0)
        return wrong(m, "has at least one word to look for");
    return result;
}

/* ---- how the index is --------------------------------------------------------------------- */

/* Keys below "a/" are those from "a/" to before "a0". Bound to parameters n and n + 1. */
static void bind_range(sqlite3_stmt *s, int n, const char *prefix, size_t prefix_len, char *end)
{
    sqlite3_bind_text(s, n, prefix, (int)prefix_len, SQLITE_STATIC);
    if (prefix_len > 0) {
        memcpy(end, prefix, prefix_len);
        end[prefix_len - 1] = '/' + 1;
    }
    sqlite3_bind_text(s, n + 1, prefix_len > 0 ? end : "\xff", prefix_len > 0 ? (int)prefix_len : 1,
                      SQLITE_STATIC);
}

/* True when a change that the index lacks concerns the prefix. */
static enum db_result lags(struct db_reader *r, const char *prefix, size_t prefix_len, bool *yes)
{
    char end[DB_KEY_MAX + 1];
    sqlite3_stmt *s = db_conn_statement(
        &r->conn, SLOT_SEARCH_LAG,
        "SELECT EXISTS (SELECT 1 FROM change, meta AS m WHERE m.name = 'search_seq'"
        " AND change.seq > m.value AND change.seq <= m.value + ?3"
        " AND change.key > ?1 AND change.key < ?2)"
        " OR (SELECT max(seq) FROM change)"
        " > (SELECT value FROM meta WHERE name = 'search_seq') + ?3");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    bind_range(s, 1, prefix, prefix_len, end);
    sqlite3_bind_int64(s, 3, LAG_LOOKED_AT);
    int rc = sqlite3_step(s);
    *yes = rc == SQLITE_ROW && sqlite3_column_int(s, 0) != 0;
    sqlite3_reset(s);
    return db_cause(rc);
}

static enum db_search_state take_state(sqlite3_stmt *s, const char *prefix, size_t prefix_len,
                                       int64_t *collection)
{
    const char *own = (const char *)sqlite3_column_text(s, 1);
    const char *state = (const char *)sqlite3_column_text(s, 2);
    size_t n = (size_t)sqlite3_column_bytes(s, 1);
    *collection = sqlite3_column_int64(s, 0);
    if (own == NULL || state == NULL || n > prefix_len || (n > 0 && memcmp(own, prefix, n) != 0) ||
        strcmp(state, "removing") == 0)
        return DB_SEARCH_NOT_HERE;
    if (sqlite3_column_int(s, 3) != 0)
        return DB_SEARCH_DAMAGED;
    return strcmp(state, "ready") == 0 ? DB_SEARCH_READY : DB_SEARCH_INDEXING;
}

enum db_result db_search_look(struct db_reader *r, const char *prefix, size_t prefix_len,
                              enum db_search_state *state, int64_t *collection)
{
    bool behind = false;
    *state = DB_SEARCH_NOT_HERE;
    *collection = 0;
    sqlite3_stmt *s = db_conn_statement(
        &r->conn, SLOT_SEARCH_LOOK,
        "SELECT id, prefix, state,"
        " (SELECT value FROM meta WHERE name = 'search_damaged') IS 1"
        " FROM search_collection WHERE prefix <= ?1 ORDER BY prefix DESC LIMIT 1");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    sqlite3_bind_text(s, 1, prefix, (int)prefix_len, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        *state = take_state(s, prefix, prefix_len, collection);
    sqlite3_reset(s);
    if (db_cause(rc) != DB_OK || *state != DB_SEARCH_READY)
        return db_cause(rc);
    enum db_result result = lags(r, prefix, prefix_len, &behind);
    if (result == DB_OK && behind)
        *state = DB_SEARCH_BEHIND;
    return result;
}

/* ---- searching ---------------------------------------------------------------------------- */

struct place {
    int64_t id, score;
    size_t key_len, snippet_len;
    char key[DB_KEY_MAX];
    unsigned char snippet[DB_SEARCH_SNIPPET_MAX];
};

struct page {
    uint64_t until_us;
    unsigned count;
    size_t match_len;
    char match[MATCH_ROOM];
    struct place places[DB_SEARCH_LIMIT_MAX + 1];
};

static int out_of_time(void *arg)
{
    const struct page *p = arg;
    return db_clock_us() >= p->until_us;
}

/* What db_cause does not know: an index that contradicts itself is no broken file. */
static enum db_result cause(int rc)
{
    if (rc == SQLITE_CORRUPT_VTAB || (rc & 0xff) == SQLITE_ERROR)
        return DB_INVALID;
    return db_cause(rc);
}

static void write_match(const struct db_search_ask *ask, struct page *p)
{
    const struct db_search_match *m = ask->match;
    sqlite3_snprintf(sizeof p->match, p->match, "(place : \"c%lld\") AND (text : (",
                     (long long)ask->collection);
    p->match_len = strlen(p->match);
    put(p->match, &p->match_len, m->must, m->must_len);
    put(p->match, &p->match_len, "))", 2);
    if (m->not_len == 0)
        return;
    put(p->match, &p->match_len, " NOT (text : (", 14);
    put(p->match, &p->match_len, m->not_, m->not_len);
    put(p->match, &p->match_len, "))", 2);
}

static bool take_place(sqlite3_stmt *s, struct page *p)
{
    struct place *to = &p->places[p->count];
    const char *key = (const char *)sqlite3_column_text(s, 1);
    to->id = sqlite3_column_int64(s, 0);
    to->key_len = (size_t)sqlite3_column_bytes(s, 1);
    to->score = sqlite3_column_int64(s, 2);
    to->snippet_len = 0;
    if (key == NULL || to->key_len > sizeof to->key)
        return false;
    memcpy(to->key, key, to->key_len);
    p->count++;
    return true;
}

/* The page's hits in their order: which documents, without looking at any. */
static enum db_result find(struct db_reader *r, const struct db_search_ask *ask, struct page *p)
{
    char end[DB_KEY_MAX + 1];
    int rc;
    sqlite3_stmt *s = db_conn_statement(
        &r->conn, SLOT_SEARCH_FIND,
        "SELECT i.id, i.key, hanji_score(doc_text) AS score"
        " FROM doc_text CROSS JOIN search_item AS i ON i.id = doc_text.rowid"
        " WHERE doc_text MATCH ?1 AND i.key > ?2 AND i.key < ?3"
        " AND (?4 IS NULL OR hanji_score(doc_text) < ?4"
        " OR (hanji_score(doc_text) = ?4 AND i.key > ?5))"
        " ORDER BY score DESC, i.key LIMIT ?6");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    sqlite3_bind_text(s, 1, p->match, (int)p->match_len, SQLITE_STATIC);
    bind_range(s, 2, ask->prefix, ask->prefix_len, end);
    if (ask->behind) {
        sqlite3_bind_int64(s, 4, ask->after_score);
        sqlite3_bind_text(s, 5, ask->after_key, (int)ask->after_key_len, SQLITE_STATIC);
    }
    sqlite3_bind_int64(s, 6, ask->limit);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW)
        if (!take_place(s, p)) {
            rc = SQLITE_NOMEM;
            break;
        }
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return cause(rc);
}

/* Keeps the snippet of the row that s stands on: id, snippet. */
static void take_snippet(sqlite3_stmt *s, struct page *p)
{
    int64_t id = sqlite3_column_int64(s, 0);
    const void *snippet = sqlite3_column_blob(s, 1);
    size_t n = (size_t)sqlite3_column_bytes(s, 1);
    for (unsigned i = 0; i < p->count; i++)
        if (p->places[i].id == id && snippet != NULL && n <= DB_SEARCH_SNIPPET_MAX) {
            memcpy(p->places[i].snippet, snippet, n);
            p->places[i].snippet_len = n;
        }
}

static int take_snippets(sqlite3_stmt *s, struct page *p)
{
    int rc;
    sqlite3_bind_text(s, 1, p->match, (int)p->match_len, SQLITE_STATIC);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW)
        take_snippet(s, p);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return rc;
}

/* Looks each row up: FTS5 goes straight to it. */
static enum db_result snippets_one_by_one(struct db_reader *r, struct page *p)
{
    sqlite3_stmt *s = db_conn_statement(
        &r->conn, SLOT_SEARCH_SNIPPET,
        "SELECT rowid, hanji_snippet(doc_text) FROM doc_text"
        " WHERE doc_text MATCH ?1 AND rowid = ?2");
    int rc = SQLITE_DONE;
    if (s == NULL)
        return db_conn_failed(&r->conn);
    for (unsigned i = 0; i < p->count && rc == SQLITE_DONE; i++) {
        if (out_of_time(p))
            return DB_TIMEOUT;
        sqlite3_bind_int64(s, 2, p->places[i].id);
        rc = take_snippets(s, p);
    }
    return cause(rc);
}

/* Goes through what was found once more: for a word* FTS5 merges the lists of all words that begin
 * so, each time that it is asked. */
static enum db_result snippets_at_once(struct db_reader *r, struct page *p)
{
    sqlite3_stmt *s = db_conn_statement(
        &r->conn, SLOT_SEARCH_SNIPPETS,
        "SELECT rowid, hanji_snippet(doc_text) FROM doc_text"
        " WHERE doc_text MATCH ?1 AND +rowid IN (SELECT value FROM json_each(?2))");
    char ids[(DB_SEARCH_LIMIT_MAX + 1) * 21 + 3] = "[";
    size_t n = 1;
    if (s == NULL)
        return db_conn_failed(&r->conn);
    for (unsigned i = 0; i < p->count; i++) {
        sqlite3_snprintf(22, ids + n, i > 0 ? ",%lld" : "%lld", (long long)p->places[i].id);
        n += strlen(ids + n);
    }
    ids[n++] = ']';
    sqlite3_bind_text(s, 2, ids, (int)n, SQLITE_STATIC);
    return cause(take_snippets(s, p));
}

static enum db_result show_all(struct db_reader *r, const struct page *p,
                               bool (*each)(void *arg, const struct db_search_hit *hit), void *arg)
{
    enum db_result result = DB_OK;
    bool more = true;
    for (unsigned i = 0; result == DB_OK && more && i < p->count; i++) {
        const struct place *at = &p->places[i];
        struct db_search_hit hit = {
            .row = {.key = at->key, .key_len = at->key_len},
            .score = at->score,
            .snippet = at->snippet,
            .snippet_len = at->snippet_len,
        };
        result = db_doc_get(r, at->key, at->key_len, 0, &hit.row.doc);
        if (result == DB_OK)
            more = each(arg, &hit);
        else if (result == DB_NONE)
            result = DB_INVALID; /* an entry without its document, in one snapshot */
    }
    return result;
}

enum db_result db_search(struct db_reader *r, const struct db_search_ask *ask,
                         bool (*each)(void *arg, const struct db_search_hit *hit), void *arg)
{
    enum db_result result = tools(r);
    struct page *p = result == DB_OK ? malloc(sizeof *p) : NULL;
    if (p == NULL)
        return DB_NO_MEMORY;
    p->until_us = db_clock_us() + ask->at_most_ms * 1000;
    p->count = 0;
    write_match(ask, p);
    db_reader_lend(r, NULL);
    sqlite3_progress_handler(r->conn.db, PROGRESS_STEPS, out_of_time, p);
    result = find(r, ask, p);
    if (result == DB_OK)
        result = ask->match->begins ? snippets_at_once(r, p) : snippets_one_by_one(r, p);
    if (result == DB_OK)
        result = show_all(r, p, each, arg);
    sqlite3_progress_handler(r->conn.db, 0, NULL, NULL);
    free(p);
    return result;
}

/* ---- for operators ------------------------------------------------------------------------ */

enum db_result db_search_list(struct db_reader *r,
                              void (*each)(void *arg, const struct db_search_collection *c),
                              void *arg)
{
    int rc;
    sqlite3_stmt *s = db_conn_statement(
        &r->conn, SLOT_SEARCH_LIST,
        "SELECT prefix, state, (SELECT count(*) FROM search_item AS i WHERE i.key > prefix"
        " AND i.key < iif(prefix = '', CAST(x'ff' AS TEXT),"
        " substr(prefix, 1, length(prefix) - 1) || '0')),"
        " (SELECT value FROM meta WHERE name = 'search_damaged') IS 1"
        " FROM search_collection ORDER BY prefix");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        struct db_search_collection c = {
            .prefix = (const char *)sqlite3_column_text(s, 0),
            .prefix_len = (size_t)sqlite3_column_bytes(s, 0),
            .state = (const char *)sqlite3_column_text(s, 1),
            .documents = (uint64_t)sqlite3_column_int64(s, 2),
            .damaged = sqlite3_column_int(s, 3) != 0,
        };
        if (c.prefix == NULL || c.state == NULL) {
            rc = SQLITE_NOMEM;
            break;
        }
        each(arg, &c);
    }
    sqlite3_reset(s);
    return db_cause(rc);
}
