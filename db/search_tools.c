/* Score and snippet, as auxiliary functions of FTS5.
 *
 * The score is the part of BM25 that looks at one document: for each word or phrase how often it
 * is there, saturating, measured against the length of the text. The part that weighs rare words is
 * left out on purpose (db/search.h); since every word must be there it would only shift weights. */
#include "db/search_tools.h"

#include <stdlib.h>
#include <string.h>

#include "db/search.h"

enum {
    TEXT_COLUMN = 1,
    PHRASES_MAX = DB_SEARCH_WORDS_MAX + 1, /* and the place */
    TYPICAL_WORDS = 250,                   /* of a text: neither long nor short */
    INSTANCES_MAX = 64,                    /* looked at for a snippet */
    WINDOW = 24,                           /* words of a snippet */
    LEAD = 4,                              /* of these, before the first one found */
    SNIPPET_BYTES = 400, /* of text, besides splits and ellipses */
    EDGE_BYTES = 24, /* punctuation at an edge that is shown rather than cut off */
};

static const char ellipsis[] = "\xe2\x80\xa6";

struct db_search_tools {
    fts5_api *api;
    fts5_tokenizer tokenizer;
    Fts5Tokenizer *unicode;
};

/* ---- score -------------------------------------------------------------------------------- */

static void score(const Fts5ExtensionApi *api, Fts5Context *at, sqlite3_context *result, int argc,
                  sqlite3_value **argv)
{
    unsigned count[PHRASES_MAX] = {0};
    int instances = 0, words = 0;
    double sum = 0;
    (void)argc, (void)argv;
    int rc = api->xInstCount(at, &instances);
    if (rc == SQLITE_OK)
        rc = api->xColumnSize(at, TEXT_COLUMN, &words);
    for (int i = 0; rc == SQLITE_OK && i < instances; i++) {
        int phrase, column, offset;
        rc = api->xInst(at, i, &phrase, &column, &offset);
        if (rc == SQLITE_OK && column == TEXT_COLUMN && phrase >= 0 && phrase < PHRASES_MAX)
            count[phrase]++;
    }
    if (rc != SQLITE_OK) {
        sqlite3_result_error_code(result, rc);
        return;
    }
    double length = 1.2 * (0.25 + 0.75 * words / TYPICAL_WORDS);
    for (int i = 0; i < PHRASES_MAX; i++)
        sum += 2.2 * count[i] / (count[i] + length);
    sqlite3_result_int64(result, (sqlite3_int64)(sum * 1e6 + 0.5));
}

/* ---- snippet ------------------------------------------------------------------------------ */

struct instance {
    int phrase, first, words;
};

struct window {
    int first;          /* word at which it begins */
    int seen;           /* words of the text so far */
    unsigned count;     /* words in it */
    bool cut;           /* the text goes on behind it */
    uint8_t found[WINDOW];  /* 0, or which instance the word belongs to */
    int begin[WINDOW], end[WINDOW]; /* bytes */
};

static int read_instances(const Fts5ExtensionApi *api, Fts5Context *at, struct instance *list,
                          unsigned *n)
{
    int instances = 0;
    int rc = api->xInstCount(at, &instances);
    *n = 0;
    for (int i = 0; rc == SQLITE_OK && i < instances && *n < INSTANCES_MAX; i++) {
        struct instance one;
        int column;
        rc = api->xInst(at, i, &one.phrase, &column, &one.first);
        one.words = rc == SQLITE_OK ? api->xPhraseSize(at, one.phrase) : 0;
        if (rc == SQLITE_OK && column == TEXT_COLUMN && one.phrase < 64)
            list[(*n)++] = one;
    }
    return rc;
}

/* Where most different words stand near each other; the first such place, or the beginning of the
 * text when that shows the same. */
static int best_start(const struct instance *list, unsigned n)
{
    unsigned best = 0;
    int start = 0, last = 0;
    for (unsigned i = 0; i < n; i++) {
        uint64_t phrases = 0;
        int end = 0;
        for (unsigned j = 0; j < n; j++) {
            if (list[j].first < list[i].first || list[j].first >= list[i].first + WINDOW - LEAD)
                continue;
            phrases |= UINT64_C(1) << list[j].phrase;
            end = list[j].first + list[j].words > end ? list[j].first + list[j].words : end;
        }
        unsigned different = (unsigned)__builtin_popcountll(phrases);
        if (different > best || (different == best && list[i].first < start)) {
            best = different;
            start = list[i].first;
            last = end;
        }
    }
    return last <= WINDOW || start <= LEAD ? 0 : start - LEAD;
}

static void mark(struct window *w, const struct instance *list, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        for (int k = list[i].first; k < list[i].first + list[i].words; k++)
            if (k >= w->first && k < w->first + WINDOW && w->found[k - w->first] == 0)
                w->found[k - w->first] = (uint8_t)(i + 1);
}

static int take_word(void *arg, int flags, const char *word, int n, int begin, int end)
{
    struct window *w = arg;
    (void)word, (void)n;
    if (flags & FTS5_TOKEN_COLOCATED)
        return SQLITE_OK;
    if (w->seen++ < w->first)
        return SQLITE_OK;
    if (w->count == WINDOW) {
        w->cut = true;
        return SQLITE_DONE; /* the rest is of no interest */
    }
    w->begin[w->count] = begin;
    w->end[w->count++] = end;
    return SQLITE_OK;
}

struct output {
    size_t n;
    bool full;
    unsigned char bytes[SNIPPET_BYTES + 2 * WINDOW + 2 * sizeof ellipsis];
    size_t text; /* bytes that are not marks */
};

_Static_assert(sizeof ((struct output *)0)->bytes <= DB_SEARCH_SNIPPET_MAX, "room for a snippet");

static void put_split(struct output *o)
{
    if (!o->full)
        o->bytes[o->n++] = DB_SEARCH_SPLIT;
}

static void put_ellipsis(struct output *o)
{
    memcpy(o->bytes + o->n, ellipsis, sizeof ellipsis - 1);
    o->n += sizeof ellipsis - 1;
}

/* Text up to the room that is left, whole characters. */
static void put_text(struct output *o, const char *p, int n)
{
    size_t room = SNIPPET_BYTES - o->text, take = n > 0 ? (size_t)n : 0;
    if (o->full)
        return;
    if (take > room) {
        take = room;
        while (take > 0 && ((unsigned char)p[take] & 0xc0) == 0x80)
            take--;
        o->full = true;
    }
    for (size_t i = 0; i < take; i++) /* a row from outside may hold any byte */
        o->bytes[o->n++] = (unsigned char)p[i] == DB_SEARCH_SPLIT ? 0xfe : (unsigned char)p[i];
    o->text += take;
    if (o->full)
        put_ellipsis(o);
}

static void write_window(const struct window *w, const char *text, int n, struct output *o)
{
    int at = w->first == 0 && w->begin[0] <= EDGE_BYTES ? 0 : w->begin[0];
    int until = w->cut || n - w->end[w->count - 1] > EDGE_BYTES ? w->end[w->count - 1] : n;
    if (at > 0)
        put_ellipsis(o);
    for (unsigned i = 0; i < w->count; i++) {
        unsigned last = i;
        if (w->found[i] == 0)
            continue;
        while (last + 1 < w->count && w->found[last + 1] == w->found[i])
            last++;
        put_text(o, text + at, w->begin[i] - at);
        put_split(o);
        put_text(o, text + w->begin[i], w->end[last] - w->begin[i]);
        put_split(o);
        at = w->end[last];
        i = last;
    }
    put_text(o, text + at, until - at);
    if (until < n && !o->full)
        put_ellipsis(o);
}

static void snippet(const Fts5ExtensionApi *api, Fts5Context *at, sqlite3_context *result,
                    int argc, sqlite3_value **argv)
{
    struct instance list[INSTANCES_MAX];
    struct window w = {0};
    struct output o = {0};
    const char *text = NULL;
    unsigned count;
    int n = 0;
    (void)argc, (void)argv;
    int rc = read_instances(api, at, list, &count);
    if (rc == SQLITE_OK)
        rc = api->xColumnText(at, TEXT_COLUMN, &text, &n);
    if (rc == SQLITE_OK && text != NULL && n > 0) {
        w.first = best_start(list, count);
        mark(&w, list, count);
        rc = api->xTokenize(at, text, n, &w, take_word);
    }
    if (rc != SQLITE_OK && rc != SQLITE_DONE) {
        sqlite3_result_error_code(result, rc);
        return;
    }
    if (w.count > 0)
        write_window(&w, text, n, &o);
    sqlite3_result_blob(result, o.bytes, (int)o.n, SQLITE_TRANSIENT);
}

/* ---- tokenizer ---------------------------------------------------------------------------- */

struct tally {
    unsigned words, last_letters;
};

static int count_word(void *arg, int flags, const char *word, int n, int begin, int end)
{
    struct tally *t = arg;
    (void)begin, (void)end;
    if (flags & FTS5_TOKEN_COLOCATED)
        return SQLITE_OK;
    t->words++;
    t->last_letters = 0;
    for (int i = 0; i < n; i++)
        t->last_letters += ((unsigned char)word[i] & 0xc0) != 0x80;
    return SQLITE_OK;
}

enum db_result db_search_words(const struct db_search_tools *t, const char *text, size_t n,
                               unsigned *words, unsigned *last_letters)
{
    struct tally tally = {0};
    int rc = t->tokenizer.xTokenize(t->unicode, &tally, FTS5_TOKENIZE_QUERY, text, (int)n,
                                    count_word);
    *words = tally.words;
    *last_letters = tally.last_letters;
    return db_cause(rc);
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

struct db_search_tools *db_search_tools_new(struct db_conn *c)
{
    const char *args[] = {"remove_diacritics", "2"}; /* as in the schema */
    void *arg = NULL;
    struct db_search_tools *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->api = find_api(c);
    if (t->api != NULL &&
        t->api->xFindTokenizer(t->api, "unicode61", &arg, &t->tokenizer) == SQLITE_OK &&
        t->tokenizer.xCreate(arg, args, 2, &t->unicode) == SQLITE_OK &&
        t->api->xCreateFunction(t->api, "hanji_score", NULL, score, NULL) == SQLITE_OK &&
        t->api->xCreateFunction(t->api, "hanji_snippet", NULL, snippet, NULL) == SQLITE_OK)
        return t;
    db_search_tools_free(t);
    return NULL;
}

void db_search_tools_free(struct db_search_tools *t)
{
    if (t == NULL)
        return;
    if (t->unicode != NULL)
        t->tokenizer.xDelete(t->unicode);
    free(t);
}
