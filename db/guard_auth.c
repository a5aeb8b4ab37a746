/* The authorizer: SQLite asks it for everything that a statement of an app would do, while it is
 * prepared. What is not named here is refused. */
#include <stdlib.h>
#include <string.h>

#include "db/guard_internal.h"

/* Functions that only compute, in order. json_patch is not among them: its time grows with the
 * square of its arguments. Those that newer versions have are here, too. */
static const char *const functions[] = {
    "->", "->>", "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "avg", "bm25",
    "ceil", "ceiling", "changed", "changes", "char", "coalesce", "concat", "concat_ws", "cos",
    "cosh", "count", "cume_dist", "current_date", "current_time", "current_timestamp", "date",
    "datetime", "degrees", "delete_doc", "dense_rank", "doc", "exp", "first_value", "floor",
    "format", "glob", "group_concat", "hex", "highlight", "html", "ifnull", "iif", "instr",
    "json", "json_array", "json_array_length", "json_error_position", "json_extract",
    "json_group_array", "json_group_object", "json_insert", "json_object", "json_quote",
    "json_remove", "json_replace", "json_set", "json_type", "json_valid", "julianday", "lag",
    "last_insert_rowid", "last_value", "lead", "length", "like", "likelihood", "likely", "ln",
    "log", "log10", "log2", "lower", "ltrim", "match", "max", "min", "mod", "nth_value", "ntile",
    "nullif", "octet_length", "percent_rank", "pi", "pow", "power", "printf", "put_doc", "quote",
    "radians", "random", "randomblob", "rank", "replace", "round", "row_number", "rtrim", "send",
    "sign", "sin", "sinh", "slug", "snippet", "soundex", "sqrt", "strftime", "string_agg",
    "substr", "substring", "sum", "tan", "tanh", "time", "timediff", "total", "trim", "trunc",
    "typeof", "unhex", "unicode", "unixepoch", "unlikely", "upper", "url_encode", "uuid7",
    "zeroblob",
};

static const char *const console_functions[] = {
    "console", "doc_head", "json_indent", "token_new", "token_revoke", "user_end_sessions",
};

/* What the console reads of the server's tables: never a hash, and no secret. */
static const struct {
    const char *table;
    const char *columns; /* with a space around each; NULL: all */
} console_tables[] = {
    {"doc", NULL},
    {"change", NULL},
    {"tombstone", NULL},
    {"meta", NULL},
    {"token", " id name read write created expires "},
    {"user", " id name read write created renewed "},
    {"session", " user created seen expires label "},
    {"search_collection", NULL},
    {"search_item", NULL},
    {"doc_text", NULL},
    {"doc_text_config", NULL}, /* what FTS5 reads for that one */
    {"doc_text_content", NULL},
    {"doc_text_data", NULL},
    {"doc_text_docsize", NULL},
    {"doc_text_idx", NULL},
    {"app_schema", NULL},
    {"line", " id name state reason ord version keys seq hash due waiting parked wait_until failing"
             " rate private created url ca "},
    {"line_key", NULL},
    {"outbox", NULL},
    {"attempt", NULL},
    {"courier", NULL},
    {"inbox_source", " id name start_any app event state created "},
    {"inbox_key", NULL},
    {"inbox", " n source id sender line seq type sent received hash "},
};

static int by_name(const void *key, const void *entry)
{
    return sqlite3_stricmp(key, *(const char *const *)entry);
}

static bool among(const char *name, const char *const *list, size_t count)
{
    return name != NULL && bsearch(name, list, count, sizeof *list, by_name) != NULL;
}

static bool is(const char *name, const char *word)
{
    return name != NULL && sqlite3_stricmp(name, word) == 0;
}

static bool begins(const char *name, const char *word)
{
    return name != NULL && sqlite3_strnicmp(name, word, (int)strlen(word)) == 0;
}

static bool is_schema_table(const char *name)
{
    return is(name, "sqlite_master") || is(name, "sqlite_temp_master");
}

/* True when the column is in the list; "" stands for the number of rows. */
static bool lists(const char *columns, const char *column)
{
    char word[40];
    sqlite3_snprintf(sizeof word, word, " %s ", column);
    return columns == NULL || *column == 0 || strstr(columns, word) != NULL;
}

static bool console_reads(const char *table, const char *column)
{
    for (size_t i = 0; i < sizeof console_tables / sizeof *console_tables; i++)
        if (is(table, console_tables[i].table))
            return lists(console_tables[i].columns, column);
    return false;
}

/* What ALTER and DROP do to the catalogue, and the numbers of AUTOINCREMENT. The text of a file of
 * schema/ does not name these tables itself: db_guard_schema_text. */
static bool in_catalogue(const struct db_guard *g, const char *table)
{
    return g->mode == DB_GUARD_SCHEMA && g->text_ok &&
           (is_schema_table(table) || is(table, "sqlite_sequence") ||
            is(table, "pragma_quick_check"));
}

static bool may_read(const struct db_guard *g, const char *table, const char *column)
{
    if (db_guard_owns(g->grant, table) || is(table, "json_each") || is(table, "json_tree"))
        return true;
    if (g->grant->documents && is(table, "doc"))
        return true;
    return (g->grant->console && console_reads(table, column)) || in_catalogue(g, table);
}

static bool may_change(const struct db_guard *g, const char *table)
{
    if (g->mode == DB_GUARD_READ)
        return false;
    return db_guard_owns(g->grant, table) || in_catalogue(g, table);
}

static bool may_call(const struct db_guard *g, const char *name)
{
    if (among(name, functions, sizeof functions / sizeof *functions))
        return true;
    if (g->grant->console &&
        among(name, console_functions, sizeof console_functions / sizeof *console_functions))
        return true;
    /* SQLite's own, of ALTER; nobody else can call them. */
    return g->mode == DB_GUARD_SCHEMA && (begins(name, "sqlite_rename_") ||
                                          begins(name, "sqlite_drop_"));
}

/* What FTS5, R-trees and ALTER ask for themselves; none of it tells anything. */
static bool may_ask(const struct db_guard *g, const char *pragma, const char *value,
                    const char *schema)
{
    if (!is(schema, "main"))
        return false;
    if (is(pragma, "quick_check"))
        return g->mode == DB_GUARD_SCHEMA && db_guard_owns(g->grant, value);
    return value == NULL && (is(pragma, "data_version") || is(pragma, "page_size"));
}

/* Makes and removes: a name of its own, and on a table of its own if it is on one. */
static bool may_make(const struct db_guard *g, int action, const char *name, const char *other)
{
    static const char automatic[] = "sqlite_autoindex_"; /* and the table's name; SQLite's own */
    if (begins(name, automatic))
        name += sizeof automatic - 1;
    if (g->mode != DB_GUARD_SCHEMA || !db_guard_owns(g->grant, name))
        return false;
    switch (action) {
    case SQLITE_CREATE_INDEX:
    case SQLITE_DROP_INDEX:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_DROP_TRIGGER: return db_guard_owns(g->grant, other);
    case SQLITE_CREATE_VTABLE:
    case SQLITE_DROP_VTABLE:
        return is(other, "fts5") || is(other, "rtree") || is(other, "rtree_i32");
    default: return true;
    }
}

static bool allowed(const struct db_guard *g, int action, const char *a, const char *b,
                    const char *schema)
{
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE: return true;
    case SQLITE_READ: return may_read(g, a, b);
    case SQLITE_FUNCTION: return may_call(g, b);
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE: return may_change(g, a);
    case SQLITE_PRAGMA: return may_ask(g, a, b, schema);
    case SQLITE_ALTER_TABLE: return may_make(g, action, b, NULL);
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_VIEW:
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_CREATE_VTABLE:
    case SQLITE_DROP_TABLE:
    case SQLITE_DROP_VIEW:
    case SQLITE_DROP_INDEX:
    case SQLITE_DROP_TRIGGER:
    case SQLITE_DROP_VTABLE:
    case SQLITE_REINDEX: return may_make(g, action, a, b);
    default: return false;
    }
}

static const char *verb(int action)
{
    switch (action) {
    case SQLITE_READ: return "read";
    case SQLITE_INSERT: return "insert into";
    case SQLITE_UPDATE: return "update";
    case SQLITE_DELETE: return "delete from";
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_VIEW:
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_CREATE_VTABLE: return "create";
    case SQLITE_DROP_TABLE:
    case SQLITE_DROP_VIEW:
    case SQLITE_DROP_INDEX:
    case SQLITE_DROP_TRIGGER:
    case SQLITE_DROP_VTABLE: return "drop";
    case SQLITE_ALTER_TABLE: return "alter";
    case SQLITE_REINDEX: return "reindex";
    default: return NULL;
    }
}

/* The first refusal is the one that is told. */
static void say_why(struct db_guard *g, int action, const char *a, const char *b)
{
    const char *what = verb(action);
    char *why = g->why;
    if (g->refused)
        return;
    g->refused = true;
    if (action == SQLITE_FUNCTION)
        sqlite3_snprintf(sizeof g->why, why, "the function %s is not for apps", b);
    else if (action == SQLITE_PRAGMA)
        sqlite3_snprintf(sizeof g->why, why, "PRAGMA %s is not for apps", a);
    else if (what == NULL)
        sqlite3_snprintf(sizeof g->why, why,
                         "an app has no transactions, savepoints, ATTACH, ANALYZE or TEMP");
    else if (g->mode == DB_GUARD_READ && action != SQLITE_READ)
        sqlite3_snprintf(sizeof g->why, why, "a GET writes nothing: %s %s", what, a);
    else
        sqlite3_snprintf(sizeof g->why, why, "the app %s may not %s %s", g->grant->app, what,
                         action == SQLITE_ALTER_TABLE ? b : a);
}

/* A virtual table that is used for the first time on a connection says what it looks like, and
 * SQLite prepares (and never runs) what it would do to the catalogue then. Nobody else can: SQLite
 * lets no statement change that table. */
static bool declares(struct db_guard *g, int action, const char *table, const char *column)
{
    bool was = g->declares;
    g->declares = action == SQLITE_UPDATE && is(table, "sqlite_master");
    if (was && action == SQLITE_READ && is(table, "sqlite_master") && is(column, "ROWID"))
        g->declares = true;
    return g->declares;
}

/* A WITH or a subquery by its name, of which no column is used (SELECT count(*) FROM it): SQLite
 * asks as if it were a table. No table has that name (of a view, all that it reads is asked for,
 * too), and what SQLite makes tables of by itself is named like nothing of an app's. */
static bool is_subquery(struct db_conn *c, const char *name, const char *column)
{
    static const char *const made[] = {"pragma_", "sqlite_", "dbstat", "bytecode", "tables_used",
                                       "fts", "rtree", "geopoly"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (begins(name, made[i]))
            return false;
    if (*column != 0)
        return false;
    return sqlite3_table_column_metadata(c->db, NULL, name, NULL, NULL, NULL, NULL, NULL, NULL) !=
           SQLITE_OK;
}

int db_guard_authorize(void *arg, int action, const char *a, const char *b, const char *schema,
                       const char *within)
{
    struct db_conn *c = arg;
    struct db_guard *g = &c->guard;
    (void)within;
    if (g->mode == DB_GUARD_OFF)
        return SQLITE_OK;
    /* Preparing asks nobody else for the time. */
    if (++g->looks % 64 == 0 && db_guard_late(c))
        return SQLITE_DENY;
    /* Estimates that R-trees look for if somebody ran ANALYZE. */
    if (action == SQLITE_READ && is(a, "sqlite_stat1"))
        return SQLITE_IGNORE;
    if (declares(g, action, a, b))
        return SQLITE_OK;
    const char *where = action == SQLITE_ALTER_TABLE ? a : schema;
    bool here = where == NULL || is(where, "main") || (is(where, "temp") && in_catalogue(g, a));
    if (here && allowed(g, action, a, b, schema))
        return SQLITE_OK;
    if (here && action == SQLITE_READ && is_subquery(c, a, b))
        return SQLITE_OK;
    say_why(g, action, a, b);
    return SQLITE_DENY;
}
