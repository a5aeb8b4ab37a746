/* highlight and snippet for the full-text indexes of apps, in the place of FTS5's. Those take time
 * with the square of the hits: minutes for one long text that anybody may have stored, and nothing
 * can stop them. These take time with the length of the text.
 *
 * highlight gives what FTS5's gives. snippet picks its part by the first hits of a text alone. */
#include <stdlib.h>
#include <string.h>

#include "db/guard_internal.h"

enum {
    HITS_MAX = 100,   /* that snippet looks at */
    PHRASES_MAX = 64, /* that it tells apart */
    TOKENS_MAX = 64,  /* of a snippet, as FTS5 has it */
};

/* What is being written: marked text, up to a bound. */
struct output {
    char *p;
    size_t n, cap, max;
    int code; /* of SQLite, why it is not complete */
};

static void put(struct output *o, const char *p, size_t n)
{
    if (o->code != SQLITE_OK || n == 0)
        return;
    if (n > o->max - o->n) {
        o->code = SQLITE_TOOBIG;
        return;
    }
    if (o->n + n > o->cap) {
        size_t cap = 2 * (o->n + n) + 64;
        char *grown = sqlite3_realloc64(o->p, cap);
        if (grown == NULL) {
            o->code = SQLITE_NOMEM;
            return;
        }
        o->p = grown;
        o->cap = cap;
    }
    memcpy(o->p + o->n, p, n);
    o->n += n;
}

static void put_str(struct output *o, struct db_guard_str s)
{
    put(o, s.p, s.n);
}

/* Hits of a column one by one, those that overlap as one. */
struct hits {
    const Fts5ExtensionApi *api;
    Fts5Context *at;
    int column, next, count;
    int first, last; /* words of the hit now; -1: there is none any more */
};

/* Reads the next hit of the column: SQLite's code. */
static int read_hit(struct hits *h, int *first, int *last)
{
    *first = -1;
    while (h->next < h->count) {
        int phrase, column, word, rc = h->api->xInst(h->at, h->next, &phrase, &column, &word);
        if (rc != SQLITE_OK)
            return rc;
        if (column == h->column) {
            *first = word;
            *last = word + h->api->xPhraseSize(h->at, phrase) - 1;
            return SQLITE_OK;
        }
        h->next++;
    }
    return SQLITE_OK;
}

static int next_hit(struct hits *h)
{
    int first = -1, last = -1, rc = read_hit(h, &first, &last);
    h->first = first;
    h->last = last;
    while (rc == SQLITE_OK && first >= 0 && first <= h->last) {
        h->last = last > h->last ? last : h->last;
        h->next++;
        rc = read_hit(h, &first, &last);
    }
    return rc;
}

static int first_hit(struct hits *h, const Fts5ExtensionApi *api, Fts5Context *at, int column)
{
    *h = (struct hits){.api = api, .at = at, .column = column};
    int rc = api->xInstCount(at, &h->count);
    return rc == SQLITE_OK ? next_hit(h) : rc;
}

/* A text on its way to the output. */
struct marking {
    struct hits hits;
    struct output out;
    struct db_guard_str before, after; /* a hit */
    const char *text;
    int written;    /* bytes of the text */
    int word;       /* that comes next */
    int from, upto; /* the words that are wanted */
    int open;       /* a hit has begun */
};

static void put_upto(struct marking *m, int end)
{
    if (end > m->written)
        put(&m->out, m->text + m->written, (size_t)(end - m->written));
    m->written = end > m->written ? end : m->written;
}

/* Hits that end before the words that are wanted count for nothing. */
static int skip_hits(struct marking *m, int word)
{
    int rc = SQLITE_OK;
    while (rc == SQLITE_OK && m->hits.first >= 0 && m->hits.last < word)
        rc = next_hit(&m->hits);
    return rc;
}

static int take_word(void *arg, int flags, const char *token, int n, int begin, int end)
{
    struct marking *m = arg;
    (void)token, (void)n;
    if (flags & FTS5_TOKEN_COLOCATED)
        return SQLITE_OK;
    int word = m->word++, rc = SQLITE_OK;
    if (word < m->from)
        return SQLITE_OK;
    if (word == m->from) {
        m->written = word > 0 ? begin : 0;
        rc = skip_hits(m, word);
    }
    if (rc != SQLITE_OK)
        return rc;
    if (!m->open && m->hits.first >= 0 && word >= m->hits.first) {
        put_upto(m, begin);
        put_str(&m->out, m->before);
        m->open = 1;
    }
    if (m->open && (word == m->hits.last || word == m->upto)) {
        put_upto(m, end);
        put_str(&m->out, m->after);
        m->open = 0;
        rc = next_hit(&m->hits);
    }
    if (rc == SQLITE_OK && word == m->upto) {
        put_upto(m, end);
        rc = SQLITE_DONE;
    }
    return rc == SQLITE_OK ? m->out.code : rc;
}

static void answer(sqlite3_context *ctx, struct output *o, int rc)
{
    if (rc == SQLITE_OK || rc == SQLITE_DONE)
        rc = o->code;
    if (rc == SQLITE_OK) {
        sqlite3_result_text64(ctx, o->p != NULL ? o->p : "", o->n,
                              o->p != NULL ? sqlite3_free : SQLITE_STATIC, SQLITE_UTF8);
        return;
    }
    sqlite3_free(o->p);
    if (rc == SQLITE_TOOBIG)
        sqlite3_result_error_toobig(ctx);
    else
        sqlite3_result_error_code(ctx, rc);
}

static bool wrong_args(sqlite3_context *ctx, int argc, int want, const char *text)
{
    if (argc != want)
        sqlite3_result_error(ctx, text, -1);
    return argc != want;
}

static struct output output_for(sqlite3_context *ctx)
{
    int max = sqlite3_limit(sqlite3_context_db_handle(ctx), SQLITE_LIMIT_LENGTH, -1);
    return (struct output){.max = (size_t)max};
}

/* highlight(table, column, before, after) */
static void highlight(const Fts5ExtensionApi *api, Fts5Context *at, sqlite3_context *ctx, int argc,
                      sqlite3_value **argv)
{
    struct marking m = {.upto = -1, .out = output_for(ctx)};
    int n = 0;
    if (wrong_args(ctx, argc, 3, "wrong number of arguments to function highlight()"))
        return;
    int column = sqlite3_value_int(argv[0]);
    m.before = db_guard_str(argv[1]);
    m.after = db_guard_str(argv[2]);
    int rc = api->xColumnText(at, column, &m.text, &n);
    if (rc == SQLITE_RANGE || (rc == SQLITE_OK && m.text == NULL)) {
        sqlite3_result_text(ctx, "", 0, SQLITE_STATIC); /* as FTS5 answers */
        return;
    }
    if (rc == SQLITE_OK)
        rc = first_hit(&m.hits, api, at, column);
    if (rc == SQLITE_OK)
        rc = api->xTokenize(at, m.text, n, &m, take_word);
    if (rc == SQLITE_OK)
        put_upto(&m, n);
    answer(ctx, &m.out, rc);
}

/* ---- snippet ---- */

struct hit {
    int phrase, column, word;
};

/* The part to show: words of a column from one on. */
struct part {
    int column, from, worth;
};

/* How much is in the words from hit i on: different phrases count most. */
static int worth(const struct hit *hit, int count, int i, int words, int *last)
{
    uint64_t seen = 0;
    int worth = 0;
    for (int k = i; k < count && hit[k].column == hit[i].column &&
                    hit[k].word < hit[i].word + words; k++) {
        uint64_t bit = UINT64_C(1) << (hit[k].phrase % PHRASES_MAX);
        worth += seen & bit ? 1 : 1000;
        seen |= bit;
        *last = hit[k].word;
    }
    return worth;
}

/* Hits of the column, or of any (-1), up to a bound: how many, or SQLite's code in *rc. */
static int read_hits(const Fts5ExtensionApi *api, Fts5Context *at, int column,
                     struct hit hit[HITS_MAX], int *rc)
{
    int all = 0, count = 0;
    *rc = api->xInstCount(at, &all);
    for (int i = 0; i < all && count < HITS_MAX && *rc == SQLITE_OK; i++) {
        struct hit *h = &hit[count];
        *rc = api->xInst(at, i, &h->phrase, &h->column, &h->word);
        count += column < 0 || h->column == column;
    }
    return count;
}

/* The best part, with its hits in the middle. */
static struct part best_part(const struct hit *hit, int count, int column, int words)
{
    struct part best = {column < 0 ? 0 : column, 0, 0};
    for (int i = 0; i < count; i++) {
        int last = hit[i].word, w = worth(hit, count, i, words, &last);
        if (w <= best.worth)
            continue;
        int from = hit[i].word - (words - (last - hit[i].word + 1)) / 2;
        best = (struct part){hit[i].column, from > 0 ? from : 0, w};
    }
    return best;
}

static int count_word(void *arg, int flags, const char *token, int n, int begin, int end)
{
    (void)token, (void)n, (void)begin, (void)end;
    *(int *)arg += (flags & FTS5_TOKEN_COLOCATED) == 0;
    return SQLITE_OK;
}

/* Moves a part that would go beyond the end of the text, which has that many words. */
static void fit(struct part *p, int words, int all)
{
    if (p->from > all - words)
        p->from = all > words ? all - words : 0;
}

/* snippet(table, column or -1, before, after, ellipsis, words) */
static void snippet(const Fts5ExtensionApi *api, Fts5Context *at, sqlite3_context *ctx, int argc,
                    sqlite3_value **argv)
{
    struct marking m = {.out = output_for(ctx)};
    struct hit hit[HITS_MAX];
    int n = 0, rc, all = 0;
    if (wrong_args(ctx, argc, 5, "wrong number of arguments to function snippet()"))
        return;
    int words = sqlite3_value_int(argv[4]);
    words = words < 1 ? 1 : words > TOKENS_MAX ? TOKENS_MAX : words;
    struct db_guard_str ellipsis = db_guard_str(argv[3]);
    m.before = db_guard_str(argv[1]);
    m.after = db_guard_str(argv[2]);
    int count = read_hits(api, at, sqlite3_value_int(argv[0]), hit, &rc);
    struct part part = best_part(hit, count, sqlite3_value_int(argv[0]), words);
    if (rc == SQLITE_OK)
        rc = api->xColumnText(at, part.column, &m.text, &n);
    if (rc == SQLITE_OK && m.text != NULL)
        rc = api->xTokenize(at, m.text, n, &all, count_word);
    if (rc == SQLITE_OK && m.text != NULL)
        rc = first_hit(&m.hits, api, at, part.column);
    if (rc != SQLITE_OK || m.text == NULL) {
        answer(ctx, &m.out, rc == SQLITE_RANGE ? SQLITE_OK : rc);
        return;
    }
    fit(&part, words, all);
    m.from = part.from;
    m.upto = part.from + words - 1;
    if (m.from > 0)
        put_str(&m.out, ellipsis);
    rc = api->xTokenize(at, m.text, n, &m, take_word);
    if (m.upto < all - 1)
        put_str(&m.out, ellipsis);
    else
        put_upto(&m, n);
    answer(ctx, &m.out, rc);
}

static fts5_api *find_api(struct db_conn *c)
{
    fts5_api *api = NULL;
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(c->db, "SELECT fts5(?1)", -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_pointer(s, 1, (void *)&api, "fts5_api_ptr", NULL);
        sqlite3_step(s);
    }
    sqlite3_finalize(s);
    return api;
}

int db_guard_add_fts(struct db_conn *c)
{
    fts5_api *api = find_api(c);
    if (api == NULL)
        return SQLITE_OK; /* an SQLite without FTS5 */
    int rc = api->xCreateFunction(api, "highlight", NULL, highlight, NULL);
    return rc == SQLITE_OK ? api->xCreateFunction(api, "snippet", NULL, snippet, NULL) : rc;
}
