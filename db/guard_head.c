/* Functions with which the console shows a document: its beginning, and JSON with line breaks. */
#include <string.h>

#include "db/guard_internal.h"
#include "db/valid.h"

enum {
    HEAD_BYTES_MAX = 256 << 10,
    INDENT_MAX = 8, /* deeper ones do not move further to the right */
    INDENT_STEP = 2,
    INDENT_BYTES_MAX = 512 << 10, /* of what comes out */
};

/* ---- doc_head ------------------------------------------------------------------------------- */

/* The row of a document whose body is text. SQLITE_DONE: there is none. */
static int find_text(struct db_conn *c, struct db_guard_str key, sqlite3_int64 *id)
{
    sqlite3_stmt *s = db_conn_statement(
        c, SLOT_GUARD_HEAD, "SELECT id FROM doc WHERE key = ?1 AND typeof(body) = 'text'");
    if (s == NULL)
        return sqlite3_extended_errcode(c->db);
    sqlite3_bind_text64(s, 1, key.p, key.n, SQLITE_STATIC, SQLITE_UTF8);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        *id = sqlite3_column_int64(s, 0);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return rc;
}

/* Without the bytes of a character that was cut. */
static size_t whole_characters(const unsigned char *p, size_t n)
{
    size_t back = 0;
    while (back < n && back < 3 && (p[n - 1 - back] & 0xc0) == 0x80)
        back++;
    if (back == n)
        return n;
    unsigned char lead = p[n - 1 - back];
    size_t needs = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    return needs > back ? n - 1 - back : n;
}

/* Reads its first bytes, and no more pages of the file than those are on. */
static int answer_head(sqlite3_context *ctx, struct db_conn *c, sqlite3_int64 id, int most)
{
    sqlite3_blob *body = NULL;
    unsigned char *text = NULL;
    int rc = sqlite3_blob_open(c->db, "main", "doc", "body", id, 0, &body);
    if (rc != SQLITE_OK)
        goto out;
    int size = sqlite3_blob_bytes(body);
    int take = size < most ? size : most;
    text = sqlite3_malloc(take + 1);
    rc = text == NULL ? SQLITE_NOMEM : sqlite3_blob_read(body, text, take, 0);
    if (rc != SQLITE_OK)
        goto out;
    size_t n = take < size ? whole_characters(text, (size_t)take) : (size_t)take;
    if (db_valid_text(text, n)) { /* else another program wrote it, and it is none */
        sqlite3_result_text64(ctx, (char *)text, n, sqlite3_free, SQLITE_UTF8);
        text = NULL;
    }
out:
    sqlite3_free(text);
    sqlite3_blob_close(body);
    return rc;
}

/* doc_head(key, bytes): the beginning of a document that is text; NULL: there is none, or it is
 * something else. */
static void sql_doc_head(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct db_conn *c = sqlite3_user_data(ctx);
    struct db_guard_str key = db_guard_str(argv[0]);
    int bytes = sqlite3_value_int(argv[1]);
    sqlite3_int64 id = 0;
    (void)argc;
    if (c->guard.mode == DB_GUARD_OFF || !c->guard.grant->console) {
        db_guard_fail(ctx, "doc_head", "this is for the console");
        return;
    }
    if (key.p == NULL || bytes < 0)
        return;
    int rc = find_text(c, key, &id);
    if (rc == SQLITE_ROW)
        rc = answer_head(ctx, c, id, bytes < HEAD_BYTES_MAX ? bytes : HEAD_BYTES_MAX);
    if (rc != SQLITE_OK && rc != SQLITE_DONE)
        sqlite3_result_error_code(ctx, rc);
}

/* ---- json_indent ----------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Where the string ends that begins at i, its last quote included. */
static size_t string_end(struct db_guard_str s, size_t i)
{
    for (i++; i < s.n; i++) {
        if (s.p[i] == '"')
            return i + 1;
        i += s.p[i] == '\\';
    }
    return s.n;
}

static void new_line(sqlite3_str *out, size_t deep)
{
    size_t steps = deep < INDENT_MAX ? deep : INDENT_MAX;
    sqlite3_str_appendchar(out, 1, '\n');
    sqlite3_str_appendchar(out, (int)steps * INDENT_STEP, ' ');
}

/* An object or an array begins at i; an empty one stays together. Returns where it goes on. */
static size_t open_nest(sqlite3_str *out, struct db_guard_str s, size_t i, size_t *deep)
{
    size_t next = i + 1;
    sqlite3_str_appendchar(out, 1, s.p[i]);
    while (next < s.n && is_blank(s.p[next]))
        next++;
    if (next < s.n && (s.p[next] == '}' || s.p[next] == ']')) {
        sqlite3_str_appendchar(out, 1, s.p[next]);
        return next + 1;
    }
    new_line(out, ++*deep);
    return next;
}

/* Writes what stands at i, and returns where it goes on. */
static size_t indent_one(sqlite3_str *out, struct db_guard_str s, size_t i, size_t *deep)
{
    size_t end;
    switch (s.p[i]) {
    case '"':
        end = string_end(s, i);
        sqlite3_str_append(out, s.p + i, (int)(end - i));
        return end;
    case '{':
    case '[':
        return open_nest(out, s, i, deep);
    case '}':
    case ']':
        *deep -= *deep > 0;
        new_line(out, *deep);
        sqlite3_str_appendchar(out, 1, s.p[i]);
        return i + 1;
    case ',':
        sqlite3_str_appendchar(out, 1, ',');
        new_line(out, *deep);
        return i + 1;
    case ':':
        sqlite3_str_append(out, ": ", 2);
        return i + 1;
    default:
        if (!is_blank(s.p[i]))
            sqlite3_str_appendchar(out, 1, s.p[i]);
        return i + 1;
    }
}

/* json_indent(text): JSON with a line for each value; numbers and strings stay as they are. What
 * would become too long is answered as it is. */
static void sql_json_indent(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct db_guard_str s = db_guard_str(argv[0]);
    size_t deep = 0;
    (void)argc;
    if (s.p == NULL)
        return;
    sqlite3_str *out = sqlite3_str_new(sqlite3_context_db_handle(ctx));
    size_t i = 0;
    while (i < s.n && sqlite3_str_length(out) <= INDENT_BYTES_MAX)
        i = indent_one(out, s, i, &deep);
    bool whole = i == s.n && sqlite3_str_errcode(out) == SQLITE_OK;
    int n = sqlite3_str_length(out);
    char *text = sqlite3_str_finish(out);
    if (whole && text != NULL) {
        sqlite3_result_text(ctx, text, n, sqlite3_free);
        return;
    }
    sqlite3_free(text);
    sqlite3_result_value(ctx, argv[0]);
}

int db_guard_add_head(struct db_conn *c)
{
    static const struct db_guard_function all[] = {
        {"doc_head", sql_doc_head, 2, SQLITE_DIRECTONLY},
        {"json_indent", sql_json_indent, 1, SQLITE_DIRECTONLY | SQLITE_DETERMINISTIC},
    };
    return db_guard_add(c, all, sizeof all / sizeof *all);
}
