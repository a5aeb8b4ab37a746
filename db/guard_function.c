/* Functions of apps for documents and messages. Reading is done at once, with the server's own
 * statement; writing is queued, and done by the server behind the statement, in the same savepoint.
 *
 * None of them may be used by a schema (SQLITE_DIRECTONLY): the file must go on working in every
 * SQLite shell. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/doc.h"
#include "db/guard_internal.h"
#include "db/outbox.h"
#include "db/valid.h"

enum {
    QUEUE_MAX = 100,            /* operations of one statement */
    QUEUE_BYTES_MAX = 8 << 20,
    TEXT_BYTES_MAX = 1 << 20,   /* a body beyond is stored as BLOB, as everywhere */
    SUBTYPE_JSON = 'J',
    SEALED_MAX = 16,            /* messages that one run has sealed: it holds the writer */
    SEALED_BYTES_MAX = 64 << 10,
};

int db_guard_add(struct db_conn *c, const struct db_guard_function *f, size_t count)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < count; i++)
        rc = sqlite3_create_function_v2(c->db, f[i].name, f[i].args, SQLITE_UTF8 | f[i].flags, c,
                                        f[i].call, NULL, NULL, NULL);
    return rc;
}

void db_guard_fail(sqlite3_context *ctx, const char *name, const char *text)
{
    char all[200];
    snprintf(all, sizeof all, "%s: %s", name, text);
    sqlite3_result_error(ctx, all, -1);
}

struct db_guard_str db_guard_str(sqlite3_value *v)
{
    struct db_guard_str s = {(const char *)sqlite3_value_text(v), 0};
    s.n = s.p != NULL ? (size_t)sqlite3_value_bytes(v) : 0;
    return s;
}

bool db_guard_writes(sqlite3_context *ctx, const char *name)
{
    const struct db_conn *c = sqlite3_user_data(ctx);
    if (c->guard.mode == DB_GUARD_WRITE)
        return true;
    db_guard_fail(ctx, name, c->guard.mode == DB_GUARD_READ ? "a GET writes nothing"
                                                            : "not in a file of schema/");
    return false;
}

bool db_guard_queue(sqlite3_context *ctx, const char *name, struct db_op *op)
{
    struct db_conn *c = sqlite3_user_data(ctx);
    struct db_guard *g = &c->guard;
    if (op == NULL) {
        sqlite3_result_error_nomem(ctx);
        return false;
    }
    if (g->queued == QUEUE_MAX || g->queued_bytes + op->used > QUEUE_BYTES_MAX) {
        db_op_free(op);
        db_guard_fail(ctx, name, "one statement can ask for 100 writes and 8 MiB");
        return false;
    }
    g->queued++;
    g->queued_bytes += op->used;
    *g->queue_tail = op;
    g->queue_tail = &op->next;
    return true;
}

/* ---- which documents ---- */

static bool covers(const char *prefix, size_t n, struct db_guard_str key)
{
    if (n == 1 && *prefix == '/')
        return true;
    if (n == 0 || key.n < n || memcmp(key.p, prefix, n) != 0)
        return false;
    return prefix[n - 1] == '/' || key.n == n || key.p[n] == '/';
}

static bool within(const struct db_grant *grant, const char *lines, struct db_guard_str key)
{
    char own[sizeof "apps//" + DB_APP_NAME_MAX];
    int n = snprintf(own, sizeof own, "apps/%s/", grant->app);
    if (grant->console || covers(own, (size_t)n, key))
        return true;
    for (const char *line = lines; line != NULL && *line != 0;) {
        size_t len = strcspn(line, "\n");
        if (covers(line, len, key))
            return true;
        line += len + (line[len] != 0);
    }
    return false;
}

/* The key of a document that this may be done with; else p is NULL and the function answered. */
static struct db_guard_str key_of(sqlite3_context *ctx, const char *name, sqlite3_value *v,
                                  bool write)
{
    const struct db_conn *c = sqlite3_user_data(ctx);
    const struct db_grant *grant = c->guard.grant;
    struct db_guard_str none = {0}, key = db_guard_str(v);
    if (key.p == NULL || !db_valid_key((const unsigned char *)key.p, key.n)) {
        db_guard_fail(ctx, name, "this is not the key of a document");
        return none;
    }
    if (within(grant, write ? grant->write : grant->read, key) || (!write && grant->documents))
        return key;
    db_guard_fail(ctx, name, write ? "the app may not write this document (documents_write)"
                                   : "the app may not read this document (documents_read)");
    return none;
}

/* ---- reading ---- */

/* The document's body, as the file has it. */
static void answer_body(sqlite3_context *ctx, struct db_conn *c, struct db_guard_str key)
{
    sqlite3_stmt *s =
        db_conn_statement(c, SLOT_GUARD_DOC, "SELECT body FROM doc WHERE key = ?1");
    if (s == NULL) {
        sqlite3_result_error_code(ctx, sqlite3_extended_errcode(c->db));
        return;
    }
    sqlite3_bind_text64(s, 1, key.p, key.n, SQLITE_STATIC, SQLITE_UTF8);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        sqlite3_result_value(ctx, sqlite3_column_value(s, 0));
    else if (rc != SQLITE_DONE)
        sqlite3_result_error_code(ctx, rc);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
}

static void sql_doc(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct db_conn *c = sqlite3_user_data(ctx);
    enum db_guard_mode mode = c->guard.mode;
    (void)argc;
    if (mode == DB_GUARD_OFF || sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    struct db_guard_str key = key_of(ctx, "doc", argv[0], false);
    if (key.p == NULL)
        return;
    c->guard.mode = DB_GUARD_OFF;
    answer_body(ctx, c, key);
    c->guard.mode = mode;
}

/* ---- writing ---- */

static const char text_type[] = "text/plain; charset=utf-8";

/* What is written of a value. */
struct content {
    struct db_guard_str type;
    const void *p;
    size_t n;
    bool text; /* it came as text */
};

static bool type_ok(struct db_guard_str type)
{
    if (type.n == 0 || type.n > DB_TYPE_MAX || memchr(type.p, '/', type.n) == NULL)
        return false;
    for (size_t i = 0; i < type.n; i++)
        if (type.p[i] < ' ' || type.p[i] > '~')
            return false;
    return true;
}

static bool is_text_type(struct db_guard_str type)
{
    return (type.n > 5 && sqlite3_strnicmp(type.p, "text/", 5) == 0) ||
           db_type_is_json(type.p, type.n);
}

static const char *default_type(sqlite3_value *body)
{
    if (sqlite3_value_type(body) == SQLITE_BLOB)
        return "application/octet-stream";
    return sqlite3_value_subtype(body) == SUBTYPE_JSON ? "application/json" : text_type;
}

/* NULL, or what is wrong. */
static const char *content_of(int argc, sqlite3_value **argv, struct content *of)
{
    int form = sqlite3_value_type(argv[1]);
    if (form == SQLITE_NULL)
        return "the body is NULL";
    of->text = form != SQLITE_BLOB;
    of->type.p = default_type(argv[1]);
    of->type.n = strlen(of->type.p);
    if (argc == 3 && sqlite3_value_type(argv[2]) != SQLITE_NULL)
        of->type = db_guard_str(argv[2]);
    if (of->type.p == NULL || !type_ok(of->type))
        return "this is not a Content-Type";
    of->p = of->text ? (const void *)sqlite3_value_text(argv[1]) : sqlite3_value_blob(argv[1]);
    of->n = (size_t)sqlite3_value_bytes(argv[1]);
    return of->p == NULL && of->n > 0 ? "memory is short" : NULL;
}

/* As everywhere: TEXT where the type says so, for people and json_extract, and it is lossless. */
static enum db_value_type stored_as(const struct content *of)
{
    return is_text_type(of->type) && of->n <= TEXT_BYTES_MAX && db_valid_text(of->p, of->n)
               ? DB_VALUE_TEXT
               : DB_VALUE_BLOB;
}

static struct db_op *put_op(struct db_guard_str key, const struct content *of)
{
    struct db_op *op = db_op_new(DB_OP_PUT, key.n + of->type.n + of->n);
    if (op == NULL)
        return NULL;
    db_op_copy(op, 0, DB_VALUE_TEXT, key.p, key.n);
    db_op_copy(op, 1, DB_VALUE_TEXT, of->type.p, of->type.n);
    db_op_copy(op, 2, stored_as(of), of->n > 0 ? of->p : "", of->n);
    return op;
}

/* False, and answered: the type says JSON, and it is none. */
static bool json_ok(sqlite3_context *ctx, const char *name, const struct content *of)
{
    struct db_conn *c = sqlite3_user_data(ctx);
    enum db_guard_mode mode = c->guard.mode;
    bool yes = true;
    if (!db_type_is_json(of->type.p, of->type.n))
        return true;
    c->guard.mode = DB_GUARD_OFF;
    enum db_result result = db_valid_json(c, of->p, of->n, &yes);
    c->guard.mode = mode;
    yes = yes && db_valid_text(of->p, of->n);
    if (result != DB_OK)
        db_guard_fail(ctx, name, db_result_text(result));
    else if (!yes)
        db_guard_fail(ctx, name, "the type says JSON, and the body is none");
    return result == DB_OK && yes;
}

static void sql_put_doc(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    static const char name[] = "put_doc";
    struct content of = {0};
    if (!db_guard_writes(ctx, name))
        return;
    struct db_guard_str key = key_of(ctx, name, argv[0], true);
    if (key.p == NULL)
        return;
    const char *wrong = content_of(argc, argv, &of);
    if (wrong != NULL) {
        db_guard_fail(ctx, name, wrong);
        return;
    }
    if (json_ok(ctx, name, &of) && db_guard_queue(ctx, name, put_op(key, &of)))
        sqlite3_result_text64(ctx, key.p, key.n, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static void sql_delete_doc(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    static const char name[] = "delete_doc";
    (void)argc;
    if (!db_guard_writes(ctx, name))
        return;
    struct db_guard_str key = key_of(ctx, name, argv[0], true);
    struct db_op *op = key.p != NULL ? db_op_new(DB_OP_DELETE, key.n) : NULL;
    if (op != NULL)
        db_op_copy(op, 0, DB_VALUE_TEXT, key.p, key.n);
    if (key.p != NULL && db_guard_queue(ctx, name, op))
        sqlite3_result_text64(ctx, key.p, key.n, SQLITE_TRANSIENT, SQLITE_UTF8);
}

/* True when this statement writes that document already: a topic that changes in every row. */
static bool is_queued(const struct db_conn *c, struct db_guard_str key)
{
    for (const struct db_op *op = c->guard.queue; op != NULL; op = op->next)
        if (op->kind == DB_OP_PUT && op->values[0].n == key.n &&
            memcmp(op->values[0].p, key.p, key.n) == 0)
            return true;
    return false;
}

/* Writes a small document below the app's, for those who watch the change feed. */
static void sql_changed(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct db_conn *c = sqlite3_user_data(ctx);
    struct db_guard_str topic = db_guard_str(argv[0]);
    char text[DB_KEY_MAX + 1], now[24];
    (void)argc;
    if (!db_guard_writes(ctx, "changed"))
        return;
    int n = snprintf(text, sizeof text, "apps/%s/%.*s", c->guard.grant->app,
                     topic.n < DB_KEY_MAX ? (int)topic.n : DB_KEY_MAX, topic.p ? topic.p : "");
    struct db_guard_str key = {text, (size_t)n};
    if (key.n > DB_KEY_MAX || !db_valid_key((unsigned char *)text, key.n)) {
        db_guard_fail(ctx, "changed", "a topic is the end of a document's key");
        return;
    }
    int digits = snprintf(now, sizeof now, "%lld", (long long)c->guard.now_s);
    struct content of = {{text_type, sizeof text_type - 1}, now, (size_t)digits, true};
    if (!is_queued(c, key) && !db_guard_queue(ctx, "changed", put_op(key, &of)))
        return;
    sqlite3_result_text(ctx, text, n, SQLITE_TRANSIENT);
}

/* ---- sending ---- */

/* True when the app may send on a line of that name. */
static bool may_send(const struct db_grant *grant, struct db_guard_str line)
{
    for (const char *one = grant->sends; one != NULL && *one != 0;) {
        size_t len = strcspn(one, "\n");
        if (len == line.n && memcmp(one, line.p, len) == 0)
            return true;
        one += len + (one[len] != 0);
    }
    return false;
}

/* How many can read what is sent on a line: none, and it is not sealed. */
static enum db_result count_keys(struct db_conn *c, struct db_guard_str line, int64_t *keys)
{
    sqlite3_stmt *s = db_conn_statement(c, SLOT_GUARD_SEND,
                                        "SELECT count(k.id) FROM line l LEFT JOIN line_key k"
                                        " ON k.line = l.id WHERE l.name = ?1 GROUP BY l.id");
    if (s == NULL)
        return db_conn_failed(c);
    sqlite3_bind_text64(s, 1, line.p, line.n, SQLITE_STATIC, SQLITE_UTF8);
    int rc = sqlite3_step(s);
    *keys = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return rc == SQLITE_DONE ? DB_NONE : rc == SQLITE_ROW ? DB_OK : db_cause(rc);
}

/* Makes the message, in the open transaction. Sealing holds the writer, so there is little of it in
 * one run. */
static enum db_result make_message(struct db_conn *c, struct db_guard_str line,
                                   const struct content *of, struct db_op **op,
                                   struct db_error *error)
{
    char name[DB_LINE_NAME_MAX + 1] = "", type[DB_TYPE_MAX + 1] = "";
    struct db_guard *g = &c->guard;
    int64_t keys = 0;
    enum db_result result = count_keys(c, line, &keys);
    if (result != DB_OK)
        return result;
    g->sealed += keys > 0;
    g->sealed_bytes += keys > 0 ? of->n : 0;
    if (g->sealed > SEALED_MAX || g->sealed_bytes > SEALED_BYTES_MAX) {
        db_set_error(error, "one request can have 16 messages and 64 KiB sealed");
        return DB_TOO_LARGE;
    }
    memcpy(name, line.p, line.n);
    memcpy(type, of->type.p, of->type.n);
    const struct db_send_draft draft = {
        .line = name,
        .type = type,
        .body = of->n > 0 ? of->p : "",
        .bytes = of->n,
        .now_s = g->now_s,
    };
    return db_outbox_draft(c, draft, op, error);
}

/* Why a message was not made. */
static void not_made(sqlite3_context *ctx, enum db_result result, const struct db_error *error)
{
    if (result == DB_NO_MEMORY)
        sqlite3_result_error_nomem(ctx);
    else
        db_guard_fail(ctx, "send", error->text[0] != 0  ? error->text
                                   : result == DB_NONE ? "there is no such line"
                                                       : db_result_text(result));
}

/* send(line, body[, type]): the message's id. */
static void sql_send(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    static const char name[] = "send";
    struct db_conn *c = sqlite3_user_data(ctx);
    struct db_guard_str line = db_guard_str(argv[0]);
    struct content of = {0};
    struct db_error error = {""};
    struct db_op *op = NULL;
    if (!db_guard_writes(ctx, name))
        return;
    const char *wrong = content_of(argc, argv, &of);
    if (line.p == NULL || !db_line_name_ok(line.p, line.n))
        wrong = "this is not the name of a line";
    else if (!may_send(c->guard.grant, line))
        wrong = "the app may not send on this line (sends)";
    if (wrong != NULL) {
        db_guard_fail(ctx, name, wrong);
        return;
    }
    if (!json_ok(ctx, name, &of))
        return;
    enum db_guard_mode mode = c->guard.mode;
    c->guard.mode = DB_GUARD_OFF;
    enum db_result result = make_message(c, line, &of, &op, &error);
    c->guard.mode = mode;
    if (result != DB_OK)
        not_made(ctx, result, &error);
    else if (db_guard_queue(ctx, name, op))
        sqlite3_result_text(ctx, op->values[DB_SEND_VALUE_ID].p, DB_MESSAGE_ID_LEN,
                            SQLITE_TRANSIENT);
}

int db_guard_add_functions(struct db_conn *c)
{
    static const struct db_guard_function all[] = {
        {"doc", sql_doc, 1, SQLITE_DIRECTONLY},
        {"put_doc", sql_put_doc, 2, SQLITE_DIRECTONLY | SQLITE_SUBTYPE},
        {"put_doc", sql_put_doc, 3, SQLITE_DIRECTONLY | SQLITE_SUBTYPE},
        {"delete_doc", sql_delete_doc, 1, SQLITE_DIRECTONLY},
        {"changed", sql_changed, 1, SQLITE_DIRECTONLY},
        {"send", sql_send, 2, SQLITE_DIRECTONLY},
        {"send", sql_send, 3, SQLITE_DIRECTONLY},
    };
    return db_guard_add(c, all, sizeof all / sizeof *all);
}
