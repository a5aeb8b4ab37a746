/* The prepared statements of apps on one connection.
 *
 * Kept by script: an app that was edited has other scripts, whose ids are new; the statements of
 * the old ones go when room is needed. What is in use is of the script that was asked for last. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "db/app_internal.h"

enum { SCRIPTS_MAX = 48 };

struct entry {
    uint64_t id; /* 0: free */
    uint64_t used;
    unsigned slots;
    sqlite3_stmt **statement;
};

struct db_app_cache {
    uint64_t uses;
    struct entry entry[SCRIPTS_MAX];
};

static void clear(struct entry *e)
{
    for (unsigned i = 0; i < e->slots; i++)
        sqlite3_finalize(e->statement[i]);
    free(e->statement);
    *e = (struct entry){0};
}

void db_app_cache_free(struct db_app_cache *cache)
{
    for (int i = 0; cache != NULL && i < SCRIPTS_MAX; i++)
        clear(&cache->entry[i]);
    free(cache);
}

unsigned db_app_cache_count(const struct db_app_cache *cache)
{
    unsigned count = 0;
    for (int i = 0; cache != NULL && i < SCRIPTS_MAX; i++)
        for (unsigned j = 0; j < cache->entry[i].slots; j++)
            count += cache->entry[i].statement[j] != NULL;
    return count;
}

/* That of the script, or one that was cleared for it. */
static struct entry *find(struct db_app_cache *cache, uint64_t id)
{
    struct entry *oldest = cache->entry;
    for (struct entry *e = cache->entry; e < cache->entry + SCRIPTS_MAX; e++) {
        if (e->id == id)
            return e;
        if (e->used < oldest->used)
            oldest = e;
    }
    clear(oldest);
    return oldest;
}

static struct entry *entry_of(struct db_conn *c, const struct db_script *s)
{
    if (c->apps == NULL)
        c->apps = calloc(1, sizeof *c->apps);
    if (c->apps == NULL)
        return NULL;
    struct entry *e = find(c->apps, s->id);
    e->used = ++c->apps->uses;
    if (e->id == s->id)
        return e;
    e->statement = calloc(s->slots, sizeof(sqlite3_stmt *));
    if (e->statement == NULL)
        return NULL;
    e->slots = s->slots;
    e->id = s->id;
    return e;
}

sqlite3_stmt *db_app_statement(struct db_conn *c, const struct db_script *s, unsigned slot,
                               const char *sql, size_t n, int *code)
{
    struct entry *e = entry_of(c, s);
    *code = SQLITE_NOMEM;
    if (e == NULL)
        return NULL;
    assert(slot < e->slots);
    sqlite3_stmt **at = &e->statement[slot];
    if (*at != NULL) {
        sqlite3_reset(*at);
        sqlite3_clear_bindings(*at);
        return *at;
    }
    *code = sqlite3_prepare_v3(c->db, sql, (int)n, SQLITE_PREPARE_PERSISTENT, at, NULL);
    return *at;
}

sqlite3_stmt *db_app_take(struct db_conn *c, const struct db_script *s, unsigned slot,
                          const char *sql, size_t n, int *code)
{
    sqlite3_stmt *statement = db_app_statement(c, s, slot, sql, n, code);
    if (statement != NULL)
        entry_of(c, s)->statement[slot] = NULL;
    return statement;
}

void db_app_give(struct db_conn *c, uint64_t script_id, unsigned slot, sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
    for (int i = 0; c->apps != NULL && i < SCRIPTS_MAX; i++) {
        struct entry *e = &c->apps->entry[i];
        if (e->id == script_id && e->statement[slot] == NULL) {
            e->statement[slot] = statement;
            return;
        }
    }
    sqlite3_finalize(statement); /* the cache has another, or has dropped the script */
}
