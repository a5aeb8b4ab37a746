/* Checking the pages of a script. */
#include <stdlib.h>
#include <string.h>

#include "db/script_check.h"
#include "db/script_scan.h"

#define fault(k, line, ...)                                                                        \
    db_script_fault((k)->faults, (k)->script->file, line, __VA_ARGS__)

static int column_index(sqlite3_stmt *s, const char *name)
{
    for (int i = 0; i < sqlite3_column_count(s); i++)
        if (sqlite3_stricmp(sqlite3_column_name(s, i), name) == 0)
            return i;
    return -1;
}

static bool find_keys(struct db_check *k, unsigned statement)
{
    struct db_page *page = k->page[statement];
    bool found = true;
    for (unsigned i = 0; i < page->keys; i++) {
        int at = column_index(k->statement[statement], page->key[i].column);
        if (at < 0)
            fault(k, k->script->statement[statement].line,
                  "the page's key %.100s is not a column of the result", page->key[i].column);
        found = found && at >= 0;
        page->key[i].index = (unsigned)at;
    }
    return found;
}

/* True for "items_next" when the page is items and the ending is next. Those of the page rows are
 * called by the ending alone. */
static bool is_of_page(const char *name, const struct db_statement *of, const char *ending)
{
    size_t n = of->name != NULL ? strlen(of->name) : 0;
    if (n == 0)
        return false;
    if (strcmp(of->name, "rows") == 0)
        return strcmp(name, ending) == 0;
    return strncmp(name, of->name, n) == 0 && name[n] == '_' && strcmp(name + n + 1, ending) == 0;
}

/* The links of a page stand beside the results, and the places in them among the parameters. */
static void judge_links(struct db_check *k, const struct db_statement *of)
{
    for (unsigned i = 0; i < k->script->count; i++) {
        const char *name = k->script->statement[i].name;
        if (name != NULL && (is_of_page(name, of, "next") || is_of_page(name, of, "prev")))
            fault(k, k->script->statement[i].line, "the name %s is kept for the page %s", name,
                  of->name);
    }
    for (unsigned i = 0; i < k->names; i++) {
        const char *name = k->name[i].name;
        if (is_of_page(name, of, "after") || is_of_page(name, of, "before"))
            fault(k, of->line, "the parameter %s is kept for the page %s", name, of->name);
    }
}

/* The text of a slot behind some other text, from malloc; told when memory is short. */
static char *text_of(struct db_check *k, unsigned statement, unsigned slot, const char *before)
{
    const struct db_statement *of = &k->script->statement[statement];
    size_t n = strlen(before);
    char *sql = malloc(n + db_page_sql(of, k->floor[statement], slot, NULL) + 1);
    if (sql == NULL) {
        fault(k, of->line, "memory is short");
        return NULL;
    }
    memcpy(sql, before, n);
    (void)db_page_sql(of, k->floor[statement], slot, sql + n);
    return sql;
}

/* The first text that does not compile is told. */
static void compile(struct db_check *k, unsigned statement)
{
    const struct db_statement *of = &k->script->statement[statement];
    bool ok = true;
    for (unsigned i = 0; i < db_page_slots(of->page) && ok; i++) {
        char *sql = text_of(k, statement, i, "");
        sqlite3_stmt *s = sql != NULL ? db_script_compile(k, of, sql, strlen(sql)) : NULL;
        ok = s != NULL;
        sqlite3_finalize(s);
        free(sql);
    }
}

void db_script_check_pages(struct db_check *k)
{
    for (unsigned i = 0; i < k->script->count; i++) {
        const struct db_statement *of = &k->script->statement[i];
        if (of->page == NULL)
            continue;
        judge_links(k, of);
        if (find_keys(k, i))
            compile(k, i);
    }
}

/* ---- what SQLite knows -------------------------------------------------------------------- */

/* True when the rows of the statement are rows of its tables, as they are: nothing is put together
 * first. plan is EXPLAIN QUERY PLAN of it. */
static bool plain(sqlite3_stmt *plan)
{
    static const char *const others[] = {"CO-ROUTINE", "MATERIALIZE", "COMPOUND", "MERGE"};
    while (sqlite3_step(plan) == SQLITE_ROW) {
        const char *detail = (const char *)sqlite3_column_text(plan, 3);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            if (detail == NULL || strncmp(detail, others[i], strlen(others[i])) == 0)
                return false;
    }
    return true;
}

static bool is_plain(struct db_check *k, unsigned statement)
{
    sqlite3_stmt *plan = NULL;
    char *sql = text_of(k, statement, 0, "EXPLAIN QUERY PLAN ");
    bool yes = sql != NULL &&
               sqlite3_prepare_v3(k->reader->conn.db, sql, -1, 0, &plan, NULL) == SQLITE_OK &&
               plain(plan);
    sqlite3_finalize(plan);
    free(sql);
    return yes;
}

/* Whether a column is part of a PRIMARY KEY or UNIQUE. True as well where nobody can say: it is an
 * expression, or of a virtual table. */
static bool may_be_unique(struct db_check *k, const char *table, const char *column)
{
    int key = 1;
    struct db_conn *c = &k->reader->conn;
    if (table == NULL || column == NULL ||
        sqlite3_table_column_metadata(c->db, "main", table, column, NULL, NULL, NULL, &key, NULL) !=
            SQLITE_OK ||
        key != 0)
        return true;
    sqlite3_stmt *s = db_conn_statement(
        c, SLOT_APP_UNIQUE,
        "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1"
        " AND sql NOT LIKE 'CREATE VIRTUAL%')"
        " OR EXISTS (SELECT 1 FROM pragma_index_list(?1) AS l, pragma_index_info(l.name) AS i"
        " WHERE l.\"unique\" AND NOT l.partial AND i.name = ?2)");
    if (s == NULL)
        return true;
    sqlite3_bind_text(s, 1, table, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, column, -1, SQLITE_STATIC);
    bool yes = sqlite3_step(s) != SQLITE_ROW || sqlite3_column_int(s, 0) != 0;
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return yes;
}

/* Rows that are alike in all keys, at the end of a page, would be missed. */
static void judge_keys(struct db_check *k, unsigned statement)
{
    const struct db_page *page = k->page[statement];
    sqlite3_stmt *s = k->statement[statement];
    for (unsigned i = 0; i < page->keys; i++) {
        int at = (int)page->key[i].index;
        if (may_be_unique(k, sqlite3_column_table_name(s, at), sqlite3_column_origin_name(s, at)))
            return;
    }
    fault(k, k->script->statement[statement].line,
          "the page's keys do not tell rows apart: none is in a PRIMARY KEY or UNIQUE");
}

/* As SQLite has it: https://www.sqlite.org/datatype3.html, 3.1. A column of a table that is not
 * text compares with a number as it is. */
static enum db_page_floor floor_of(sqlite3_stmt *s, int column)
{
    const char *type = sqlite3_column_decltype(s, column);
    if (sqlite3_column_origin_name(s, column) == NULL)
        return DB_PAGE_FLOOR_UNKNOWN;
    if (type == NULL || strcasestr(type, "INT") != NULL)
        return DB_PAGE_FLOOR_NUMBER;
    bool text = strcasestr(type, "CHAR") != NULL || strcasestr(type, "CLOB") != NULL ||
                strcasestr(type, "TEXT") != NULL;
    return text ? DB_PAGE_FLOOR_TEXT : DB_PAGE_FLOOR_NUMBER;
}

void db_script_look_at_pages(struct db_check *k)
{
    for (unsigned i = 0; i < k->script->count; i++) {
        if (k->page[i] == NULL || !is_plain(k, i))
            continue;
        judge_keys(k, i);
        for (unsigned j = 0; j < k->page[i]->keys; j++)
            k->floor[i][j] = floor_of(k->statement[i], (int)k->page[i]->key[j].index);
    }
}
