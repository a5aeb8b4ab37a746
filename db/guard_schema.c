/* What the authorizer does not see of an app's SQL: new names of ALTER … RENAME, foreign keys, what
 * a full-text index takes its text from, the end of transactions, and texts that grow.
 *
 * Looked at in the text before it is prepared, and in the catalogue after a file of schema/ was
 * run. These statements are the server's. */
#include <stdlib.h>
#include <string.h>

#include "db/guard_internal.h"
#include "db/guard_look.h"

/* ?1 is NAME_ with its length ?2. */
#define OWN(column) "lower(substr(" column ", 1, ?2)) = ?1"

static bool bind_name(sqlite3_stmt *s, const struct db_grant *grant)
{
    char name[DB_APP_NAME_MAX + 2];
    sqlite3_snprintf(sizeof name, name, "%s_", grant->app);
    return sqlite3_bind_text(s, 1, name, -1, SQLITE_TRANSIENT) == SQLITE_OK &&
           sqlite3_bind_int(s, 2, (int)strlen(name)) == SQLITE_OK;
}

/* The statement of a slot for that app; NULL: it failed. */
static sqlite3_stmt *of_app(struct db_conn *c, const struct db_grant *grant, enum db_slot slot,
                            const char *sql)
{
    sqlite3_stmt *s = db_conn_statement(c, slot, sql);
    return s != NULL && bind_name(s, grant) ? s : NULL;
}

/* FNV-1a, 64 bits. */
static uint64_t hash(const unsigned char *p, size_t n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* What is not the app's; the order does not count. */
static enum db_result hash_foreign(struct db_conn *c, const struct db_grant *grant, uint64_t *sum)
{
    sqlite3_stmt *s = of_app(c, grant, SLOT_GUARD_FOREIGN,
                             "SELECT type || ' ' || name || ' ' || tbl_name FROM sqlite_schema"
                             " WHERE NOT " OWN("name") " AND NOT"
                             " (type IN ('index', 'trigger') AND " OWN("tbl_name") ")");
    int rc;
    if (s == NULL)
        return db_conn_failed(c);
    *sum = 0;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW)
        *sum += hash(sqlite3_column_text(s, 0), (size_t)sqlite3_column_bytes(s, 0));
    sqlite3_reset(s);
    return db_cause(rc);
}

enum db_result db_guard_schema_begin(struct db_conn *c, const struct db_grant *grant)
{
    return hash_foreign(c, grant, &c->guard.foreign);
}

/* ---- views ---- */

static void free_views(struct db_look *look)
{
    for (unsigned i = 0; i < look->views; i++) {
        sqlite3_free((char *)look->view[i].name);
        sqlite3_free((char *)look->view[i].sql);
    }
    free(look->view);
    *look = (struct db_look){0};
}

#define OBJECTS                                                                                    \
    "SELECT type, name, sql FROM sqlite_schema WHERE " OWN("name") " AND sql IS NOT NULL"

/* Reads the app's views. DB_TOO_LARGE: there are too many. */
static enum db_result take_views(struct db_conn *c, const struct db_grant *grant,
                                 struct db_look *look)
{
    sqlite3_stmt *s = of_app(c, grant, SLOT_GUARD_OBJECTS, OBJECTS);
    enum db_result result = DB_OK;
    int rc = SQLITE_DONE;
    *look = (struct db_look){calloc(DB_LOOK_VIEWS_MAX, sizeof *look->view), 0};
    if (s == NULL)
        return db_conn_failed(c);
    while (result == DB_OK && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        if (strcmp((const char *)sqlite3_column_text(s, 0), "view") != 0)
            continue;
        if (look->view == NULL || look->views == DB_LOOK_VIEWS_MAX) {
            result = look->view == NULL ? DB_NO_MEMORY : DB_TOO_LARGE;
            break;
        }
        struct db_look_view *v = &look->view[look->views++];
        v->name = sqlite3_mprintf("%s", sqlite3_column_text(s, 1));
        v->sql = sqlite3_mprintf("%s", sqlite3_column_text(s, 2));
        result = v->name == NULL || v->sql == NULL ? DB_NO_MEMORY : DB_OK;
    }
    sqlite3_reset(s);
    return result != DB_OK ? result : db_cause(rc);
}

/* ---- before it is prepared ---- */

static bool fault(struct db_error *error, const char *text)
{
    db_set_error(error, "%s", text);
    return false;
}

static bool look_at(struct db_conn *c, const struct db_grant *grant, const char *sql, size_t n,
                    struct db_error *error)
{
    struct db_look look = {0};
    enum db_result result = take_views(c, grant, &look);
    bool ok = result == DB_OK;
    if (!ok)
        fault(error, result == DB_TOO_LARGE ? "the app has more than 200 views"
                                            : db_result_text(result));
    else if (!db_look_is_small(&look, sql, n))
        ok = fault(error, "with its views and WITH written out it is too large");
    free_views(&look);
    return ok;
}

bool db_guard_text(struct db_conn *c, const char *sql, size_t n, struct db_error *error)
{
    struct db_guard *g = &c->guard;
    const struct db_grant *grant = g->grant;
    bool schema = g->mode == DB_GUARD_SCHEMA;
    g->text_ok = false;
    if (db_look_rolls_back(sql, n))
        return fault(error, "ROLLBACK would end the transaction: use ABORT");
    if (db_look_joins_by_names(sql, n))
        return fault(error, "NATURAL and USING are not for apps: join with ON");
    if (schema && db_look_names_catalogue(sql, n))
        return fault(error, "sqlite_… is not the app's");
    db_guard_pause(c);
    bool ok = look_at(c, grant, sql, n, error);
    db_guard_resume(c);
    g->text_ok = ok && schema;
    return ok;
}

/* ---- afterwards ---- */

/* Foreign keys to what is not the app's. */
static bool keys_ok(struct db_conn *c, const struct db_grant *grant, struct db_error *error)
{
    sqlite3_stmt *s = of_app(c, grant, SLOT_GUARD_KEYS,
                             "SELECT s.name, f.\"table\" FROM sqlite_schema AS s,"
                             " pragma_foreign_key_list(s.name) AS f WHERE s.type = 'table' AND "
                             OWN("s.name") " AND NOT " OWN("f.\"table\"") " LIMIT 1");
    int rc = s != NULL ? sqlite3_step(s) : SQLITE_ERROR;
    if (rc == SQLITE_ROW)
        db_set_error(error, "a foreign key of %s points to %s, which is not the app's",
                     sqlite3_column_text(s, 0), sqlite3_column_text(s, 1));
    else if (rc != SQLITE_DONE)
        db_set_error(error, "%s", sqlite3_errmsg(c->db));
    sqlite3_reset(s);
    return rc == SQLITE_DONE;
}

static bool object_ok(const struct db_grant *grant, const char *name, const char *sql,
                      struct db_error *error)
{
    char content[64];
    if (db_look_rolls_back(sql, strlen(sql))) {
        db_set_error(error, "%s: ROLLBACK would end the transaction", name);
        return false;
    }
    if (sqlite3_strnicmp(sql, "create virtual", 14) != 0)
        return true;
    db_look_content(sql, content);
    if (content[0] == 0 || db_guard_owns(grant, content))
        return true;
    db_set_error(error, "%s: its content is %s, which is not the app's", name, content);
    return false;
}

static bool objects_ok(struct db_conn *c, const struct db_grant *grant, struct db_error *error)
{
    sqlite3_stmt *s = of_app(c, grant, SLOT_GUARD_OBJECTS, OBJECTS);
    bool ok = true;
    int rc = s == NULL ? SQLITE_ERROR : SQLITE_DONE;
    while (s != NULL && ok && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 1);
        const char *sql = (const char *)sqlite3_column_text(s, 2);
        ok = name != NULL && sql != NULL && object_ok(grant, name, sql, error);
    }
    sqlite3_reset(s);
    if (ok && rc != SQLITE_DONE)
        ok = fault(error, sqlite3_errmsg(c->db));
    return ok;
}

static bool views_ok(struct db_conn *c, const struct db_grant *grant, struct db_error *error)
{
    struct db_look look;
    enum db_result result = take_views(c, grant, &look);
    bool ok = result == DB_OK;
    if (!ok)
        fault(error, result == DB_TOO_LARGE ? "the app has more than 200 views"
                                            : db_result_text(result));
    for (unsigned i = 0; ok && i < look.views; i++) {
        const char *name = look.view[i].name;
        ok = db_look_is_small(&look, name, strlen(name));
        if (!ok)
            db_set_error(error, "%s: with its views and WITH written out it is too large", name);
    }
    free_views(&look);
    return ok;
}

bool db_guard_schema_ok(struct db_conn *c, const struct db_grant *grant, struct db_error *error)
{
    uint64_t foreign = 0;
    if (hash_foreign(c, grant, &foreign) != DB_OK)
        return fault(error, sqlite3_errmsg(c->db));
    if (foreign != c->guard.foreign) {
        db_set_error(error, "names of tables, views, indexes and triggers must begin with %s_",
                     grant->app);
        return false;
    }
    return keys_ok(c, grant, error) && objects_ok(c, grant, error) && views_ok(c, grant, error);
}
