#include <stdlib.h>
#include <string.h>

#include "db/app_internal.h"
#include "db/burst.h"
#include "db/page.h"
#include "db/script_check.h"
#include "db/script_scan.h"

enum { CHECK_US = 5000000 }; /* preparing is quick; a view may be vast */

/* Columns that steer the answer. */
static const char *const steering[] = {
    "_status", "_location", "_cookie", "_cache", "_type", "_body", "_filename",
};

/* What a request knows without a client's help. */
static const char *const given[] = {
    "_user", "_now", "_request_id", "_method", "_app",
};

static const char cookie[] = "_cookie_";

#define fault(k, line, ...)                                                                        \
    db_script_fault((k)->faults, (k)->script->file, line, __VA_ARGS__)

static bool among(const char *const *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

/* ---- compiling ---------------------------------------------------------------------------- */

/* The byte of a statement at which the word stands that a message ends with, as in "no such table:
 * x"; below 0: nowhere. */
static int find_last_word(const struct db_statement *of, const char *message)
{
    struct db_scan scan = {.p = of->text, .end = of->text + of->bytes};
    struct db_sql_token t;
    const char *word = strrchr(message, ' ');
    size_t n = word != NULL ? strlen(++word) : 0;
    while (n > 0 && db_script_token(&scan, &t))
        if (t.text.n == n && sqlite3_strnicmp(t.text.p, word, (int)n) == 0)
            return (int)(t.text.p - of->text);
    return -1;
}

/* The line of the file in which the statement has that byte; below 0: in which it begins. */
static unsigned line_of(const struct db_statement *of, int offset)
{
    unsigned line = of->line;
    for (int i = 0; i < offset && of->text[i] != 0; i++)
        line += of->text[i] == '\n';
    return line;
}

sqlite3_stmt *db_script_compile(struct db_check *k, const struct db_statement *of, const char *sql,
                                size_t bytes)
{
    sqlite3_stmt *s = NULL;
    const char *tail = NULL;
    struct db_error error;
    struct db_conn *c = &k->reader->conn;
    if (!db_guard_text(c, sql, bytes, &error)) {
        fault(k, of->line, "%s", error.text);
        return NULL;
    }
    int rc = sqlite3_prepare_v3(c->db, sql, (int)bytes + 1, 0, &s, &tail);
    if (rc != SQLITE_OK) {
        int offset = sql == of->text ? sqlite3_error_offset(c->db) : -1;
        (void)db_guard_cause(c, rc, &error);
        if (offset < 0)
            offset = find_last_word(of, error.text);
        fault(k, line_of(of, offset), "%s", error.text);
    } else if (s == NULL || tail != sql + bytes) {
        fault(k, of->line, "this is not one statement"); /* SQLite splits otherwise */
        sqlite3_finalize(s);
        s = NULL;
    }
    return s;
}

static bool compile_all(struct db_check *k)
{
    bool all = true;
    for (unsigned i = 0; i < k->script->count; i++) {
        const struct db_statement *of = &k->script->statement[i];
        sqlite3_stmt *s = k->statement[i] = db_script_compile(k, of, of->text, of->bytes);
        if (s == NULL)
            all = false;
        else if (sqlite3_stmt_isexplain(s) != 0)
            fault(k, of->line, "EXPLAIN is for the sqlite3 shell");
        else if (k->script->kind == DB_SCRIPT_READ && !sqlite3_stmt_readonly(s))
            fault(k, of->line, "a get file only reads");
    }
    return all;
}

/* ---- columns ------------------------------------------------------------------------------ */

/* The bytes of the name that a column has in JSON. */
static size_t member_bytes(const char *name)
{
    static const char inlined[] = ":json";
    size_t n = strlen(name), tail = sizeof inlined - 1;
    return n > tail && strcmp(name + n - tail, inlined) == 0 ? n - tail : n;
}

/* SQL does not tell names apart by the case of their letters, so they must differ otherwise. */
static bool column_twice(sqlite3_stmt *s, int column)
{
    const char *name = sqlite3_column_name(s, column);
    size_t n = member_bytes(name);
    for (int i = 0; i < column; i++) {
        const char *other = sqlite3_column_name(s, i);
        if (member_bytes(other) == n && sqlite3_strnicmp(name, other, (int)n) == 0)
            return true;
    }
    return false;
}

static void judge_columns(struct db_check *k, const struct db_statement *of, sqlite3_stmt *s)
{
    int columns = sqlite3_column_count(s);
    if (columns > DB_APP_COLUMNS_MAX) {
        fault(k, of->line, "a result has at most %d columns", DB_APP_COLUMNS_MAX);
        return;
    }
    for (int i = 0; i < columns; i++) {
        const char *name = sqlite3_column_name(s, i);
        if (name == NULL)
            fault(k, of->line, "memory is short");
        else if (column_twice(s, i))
            fault(k, of->line, "two columns are called %.100s", name);
        else if (name[0] == '_' && !of->set &&
                 !among(steering, sizeof steering / sizeof *steering, name))
            fault(k, of->line, "no column that steers the answer is called %.100s", name);
    }
}

/* ---- names -------------------------------------------------------------------------------- */

static bool name_ok(const char *name)
{
    size_t n = 0;
    while (name[n] != 0 && name[n] != '$' && db_script_in_name(name[n]))
        n++;
    return n > 0 && name[n] == 0 && n <= DB_NAME_MAX;
}

/* The index of a name, which is added when it is not there; names_max when there are too many. */
static unsigned name_index(struct db_check *k, unsigned line, char sigil, const char *name)
{
    for (unsigned i = 0; i < k->names; i++)
        if (k->name[i].sigil == sigil && strcmp(k->name[i].name, name) == 0)
            return i;
    if (k->names == DB_SCRIPT_NAMES_MAX) {
        if (!k->many_names)
            fault(k, line, "a file has at most %d names of parameters", DB_SCRIPT_NAMES_MAX);
        k->many_names = true;
        return DB_SCRIPT_NAMES_MAX;
    }
    k->name[k->names] = (struct db_script_name){.name = name, .sigil = sigil};
    k->set_by[k->names] = -1;
    return k->names++;
}

/* The columns of a `-- set` statement are names of the file. */
static void note_set(struct db_check *k, int statement)
{
    const struct db_statement *of = &k->script->statement[statement];
    sqlite3_stmt *s = k->statement[statement];
    if (sqlite3_column_count(s) == 0)
        fault(k, of->line, "nothing is set: the statement returns no columns");
    for (int i = 0; i < sqlite3_column_count(s) && i < DB_APP_COLUMNS_MAX; i++) {
        const char *name = sqlite3_column_name(s, i);
        if (name == NULL || !name_ok(name)) {
            fault(k, of->line, "a column that is set is called by letters, digits and _ (AS name)");
        } else if (name[0] == '_') {
            fault(k, of->line, "a name that begins with _ is not set: %.100s", name);
        } else {
            unsigned at = name_index(k, of->line, ':', name);
            if (at < DB_SCRIPT_NAMES_MAX && k->set_by[at] < 0)
                k->set_by[at] = statement;
        }
    }
}

/* A name that begins with '_' is never a client's, so it must be one that is known. */
static bool kept_name_ok(char sigil, const char *name)
{
    size_t n = sizeof cookie - 1;
    return sigil == ':' && (among(given, sizeof given / sizeof *given, name) ||
                            (strncmp(name, cookie, n) == 0 && name[n] != 0));
}

/* In which statement a `:name` is set; -1: in none. */
static int setter(const struct db_check *k, const char *name)
{
    for (unsigned i = 0; i < k->names; i++)
        if (k->set_by[i] >= 0 && strcmp(k->name[i].name, name) == 0)
            return k->set_by[i];
    return -1;
}

/* False when the statement may not have a parameter of that name. */
static bool judge_name(struct db_check *k, int statement, char sigil, const char *name)
{
    const struct db_statement *of = &k->script->statement[statement];
    int set_by = setter(k, name);
    /* A GET runs what is set before all others. */
    bool early = set_by >= statement && (of->set || k->script->kind != DB_SCRIPT_READ);
    if (sigil == '#' || (sigil != '?' && sigil != ':' && set_by >= 0))
        fault(k, of->line, "%c%.100s is written :%.100s", sigil, name, name);
    else if (sigil == '?')
        fault(k, of->line, "a parameter has a name, as in :id");
    else if (!name_ok(name))
        fault(k, of->line, "the name of a parameter is letters, digits and _, %d bytes at most: "
                           "%c%.100s", DB_NAME_MAX, sigil, name);
    else if (name[0] == '_' && !kept_name_ok(sigil, name))
        fault(k, of->line, "no parameter is called %c%.100s", sigil, name);
    else if (early)
        fault(k, of->line, ":%.100s is not known here: it is set in line %u", name,
              k->script->statement[set_by].line);
    else
        return true;
    return false;
}

static void judge_parameters(struct db_check *k, int statement)
{
    sqlite3_stmt *s = k->statement[statement];
    int count = sqlite3_bind_parameter_count(s);
    for (int i = 1; i <= count; i++) {
        const char *name = sqlite3_bind_parameter_name(s, i);
        if (name == NULL)
            name = "?";
        if (judge_name(k, statement, name[0], name + 1))
            (void)name_index(k, k->script->statement[statement].line, name[0], name + 1);
        if (name[0] == '?')
            return; /* ?9 is nine parameters */
    }
}

/* ---- results ------------------------------------------------------------------------------ */

static bool has_rows(const struct db_check *k, unsigned statement)
{
    sqlite3_stmt *s = k->statement[statement];
    if (k->script->statement[statement].set)
        return false;
    for (int i = 0; i < sqlite3_column_count(s); i++)
        if (sqlite3_column_name(s, i) != NULL && sqlite3_column_name(s, i)[0] != '_')
            return true;
    return false;
}

static bool steers(sqlite3_stmt *s)
{
    for (int i = 0; i < sqlite3_column_count(s); i++)
        if (sqlite3_column_name(s, i) != NULL && sqlite3_column_name(s, i)[0] == '_')
            return true;
    return false;
}

static const struct db_statement *named(const struct db_script *s, const char *name)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->statement[i].name != NULL && strcmp(s->statement[i].name, name) == 0)
            return &s->statement[i];
    return NULL;
}

/* The last that has rows is `rows`, unless it is called otherwise, or another is called that. */
static void name_rows(struct db_check *k)
{
    for (unsigned i = k->script->count; i-- > 0;) {
        struct db_statement *of = &k->script->statement[i];
        if (!has_rows(k, i))
            continue;
        if (of->name == NULL && named(k->script, "rows") == NULL)
            of->name = "rows";
        return;
    }
}

static void judge_results(struct db_check *k)
{
    for (unsigned i = 0; i < k->script->count; i++) {
        const struct db_statement *of = &k->script->statement[i];
        bool rows = has_rows(k, i);
        bool lost = of->page != NULL ||
                    (k->script->kind == DB_SCRIPT_READ && rows && !steers(k->statement[i]));
        if (of->name != NULL && !rows)
            fault(k, of->line, "%s has no rows: the statement returns none", of->name);
        else if (of->name == NULL && lost)
            fault(k, of->line, "nobody sees these rows: give them a name, as in -- name: items");
    }
}

/* ---- filling in --------------------------------------------------------------------------- */

static size_t page_bytes(const struct db_check *k, unsigned statement)
{
    const struct db_statement *of = &k->script->statement[statement];
    unsigned slots = of->page != NULL ? db_page_slots(of->page) : 0;
    size_t n = slots * sizeof(struct db_page_text);
    for (unsigned i = 0; i < slots; i++)
        n += db_page_sql(of, k->floor[statement], i, NULL) + 1;
    return n;
}

static size_t bytes_of(const struct db_check *k)
{
    size_t n = k->names * sizeof(struct db_script_name);
    for (unsigned i = 0; i < k->names; i++)
        n += strlen(k->name[i].name) + 1;
    for (unsigned i = 0; i < k->script->count; i++) {
        sqlite3_stmt *s = k->statement[i];
        n += (size_t)sqlite3_bind_parameter_count(s) + page_bytes(k, i);
        for (int j = 0; j < sqlite3_column_count(s); j++)
            n += sizeof(char *) + strlen(sqlite3_column_name(s, j)) + 1;
    }
    return n;
}

/* What is left of the memory: what must be aligned from its beginning, text from its end. */
struct room {
    char *p, *end;
};

static void *take(struct room *room, size_t n)
{
    void *p = room->p;
    room->p += n;
    return p;
}

static char *take_text(struct room *room, const char *text)
{
    size_t n = strlen(text) + 1;
    room->end -= n;
    return memcpy(room->end, text, n);
}

static void fill_names(struct db_check *k, struct room *room)
{
    struct db_script *s = k->script;
    s->names = k->names;
    s->name = take(room, k->names * sizeof *s->name);
    for (unsigned i = 0; i < k->names; i++) {
        s->name[i] = k->name[i];
        s->name[i].name = take_text(room, k->name[i].name);
        s->name[i].own = k->set_by[i] >= 0;
    }
}

static void fill_columns(struct db_statement *of, sqlite3_stmt *s, struct room *room)
{
    of->columns = (unsigned)sqlite3_column_count(s);
    const char **column = take(room, of->columns * sizeof *column);
    of->column = column;
    of->returns = of->columns > 0;
    of->steers = !of->set && steers(s);
    for (unsigned i = 0; i < of->columns; i++)
        column[i] = take_text(room, sqlite3_column_name(s, (int)i));
}

static void fill_parameters(struct db_check *k, struct db_statement *of, sqlite3_stmt *s,
                            struct room *room)
{
    of->parameters = (unsigned)sqlite3_bind_parameter_count(s);
    room->end -= of->parameters;
    unsigned char *parameter = (unsigned char *)room->end;
    of->parameter = parameter;
    for (unsigned i = 0; i < of->parameters; i++) {
        const char *name = sqlite3_bind_parameter_name(s, (int)i + 1);
        parameter[i] = (unsigned char)name_index(k, 0, name[0], name + 1);
    }
}

static void fill_page(struct db_check *k, unsigned statement, struct room *room)
{
    const struct db_statement *of = &k->script->statement[statement];
    struct db_page *page = k->page[statement];
    unsigned slots = db_page_slots(page);
    struct db_page_text *text = take(room, slots * sizeof *text);
    page->text = text;
    for (unsigned i = 0; i < slots; i++) {
        text[i].bytes = db_page_sql(of, k->floor[statement], i, NULL);
        room->end -= text[i].bytes + 1;
        text[i].sql = room->end;
        (void)db_page_sql(of, k->floor[statement], i, room->end);
    }
}

static void fill(struct db_check *k)
{
    struct db_script *s = k->script;
    size_t bytes = bytes_of(k);
    struct room room = {.p = malloc(bytes + 1)};
    if (room.p == NULL) {
        fault(k, 0, "memory is short");
        return;
    }
    free(s->memory);
    s->memory = room.p;
    room.end = room.p + bytes;
    s->slots = 0;
    fill_names(k, &room);
    for (unsigned i = 0; i < s->count; i++) {
        struct db_statement *of = &s->statement[i];
        of->slot = s->slots;
        of->slots = of->page != NULL ? db_page_slots(of->page) : 1;
        s->slots += of->slots;
        fill_columns(of, k->statement[i], &room);
    }
    for (unsigned i = 0; i < s->count; i++)
        if (s->statement[i].page != NULL)
            fill_page(k, i, &room);
    for (unsigned i = 0; i < s->count; i++)
        fill_parameters(k, &s->statement[i], k->statement[i], &room);
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* What can be told of the statements that compile. The guard is on. */
static void judge(struct db_check *k)
{
    int count = (int)k->script->count;
    for (int i = 0; i < count; i++) {
        judge_columns(k, &k->script->statement[i], k->statement[i]);
        if (k->script->statement[i].set && k->statement[i] != NULL)
            note_set(k, i);
    }
    for (int i = 0; i < count; i++)
        judge_parameters(k, i);
}

/* Makes the reader see the schema of its snapshot: preparing alone does not look. */
static enum db_result look(struct db_reader *r)
{
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_APP_LOOK,
                                        "SELECT 1 FROM sqlite_schema LIMIT 1");
    return s == NULL ? db_conn_failed(&r->conn) : db_cause(db_conn_run(s));
}

static bool sound(const struct db_check *k)
{
    return k->faults->count == k->told;
}

static void run(struct db_check *k, const struct db_grant *grant)
{
    enum db_guard_mode mode = k->script->kind == DB_SCRIPT_READ ? DB_GUARD_READ : DB_GUARD_WRITE;
    struct db_conn *c = &k->reader->conn;
    enum db_result result = look(k->reader);
    if (result == DB_OK)
        result = db_guard_enter(c, grant, mode, db_clock_us() + CHECK_US, 0);
    if (result != DB_OK) {
        fault(k, 0, "%s", db_result_text(result));
        return;
    }
    bool all = compile_all(k);
    judge(k);
    if (all) {
        name_rows(k);
        judge_results(k);
    }
    if (sound(k))
        db_script_check_pages(k);
    db_guard_leave(c);
    if (sound(k))
        db_script_look_at_pages(k);
    if (sound(k))
        fill(k);
}

bool db_script_check(struct db_reader *r, const struct db_grant *grant, struct db_script *s,
                     struct db_faults *faults)
{
    unsigned told = faults->count;
    struct db_check *k = calloc(1, sizeof *k);
    db_reader_lend(r, NULL);
    if (k == NULL) {
        db_script_fault(faults, s->file, 0, "memory is short");
        return false;
    }
    k->reader = r;
    k->script = s;
    k->faults = faults;
    k->told = told;
    for (unsigned i = 0; i < s->count; i++)
        k->page[i] = (struct db_page *)s->statement[i].page; /* still ours alone */
    run(k, grant);
    for (unsigned i = 0; i < s->count; i++)
        sqlite3_finalize(k->statement[i]);
    free(k);
    return faults->count == told;
}
