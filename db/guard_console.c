/* Functions of the console: figures of the server, tokens, sessions. For its grant alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/guard_internal.h"
#include "db/token.h"
#include "db/valid.h"

enum { DAY_S = 86400, DAYS_MAX = 36500 };

#ifndef SQLITE_RESULT_SUBTYPE /* before 3.45 */
#define SQLITE_RESULT_SUBTYPE 0
#endif

static struct db_guard_hooks hooks;

void db_guard_set_hooks(const struct db_guard_hooks *h)
{
    hooks = *h;
}

/* The authorizer has asked for it already; this is for statements of the server's. */
static bool is_console(sqlite3_context *ctx, const char *name)
{
    const struct db_conn *c = sqlite3_user_data(ctx);
    if (c->guard.mode != DB_GUARD_OFF && c->guard.grant->console)
        return true;
    db_guard_fail(ctx, name, "this is for the console");
    return false;
}

static void sql_console(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct db_guard_str what = db_guard_str(argv[0]);
    (void)argc;
    if (!is_console(ctx, "console") || what.p == NULL)
        return;
    char *json = hooks.console != NULL ? hooks.console(hooks.arg, what.p, what.n) : NULL;
    if (json == NULL)
        return;
    sqlite3_result_text(ctx, json, -1, free);
    sqlite3_result_subtype(ctx, 'J');
}

/* Names as `hanji token` and `hanji user` take them. */
static bool name_ok(struct db_guard_str name)
{
    static const char signs[] = "-_.@";
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && memchr(signs, c, sizeof signs - 1) == NULL)
            return false;
    }
    return name.n >= 1 && name.n <= DB_TOKEN_NAME_MAX;
}

/* An operation with that name. NULL: the function was answered. */
static struct db_op *named_op(sqlite3_context *ctx, const char *function, enum db_op_kind kind,
                              struct db_guard_str name, size_t room)
{
    if (!is_console(ctx, function) || !db_guard_writes(ctx, function))
        return NULL;
    if (!name_ok(name)) {
        db_guard_fail(ctx, function, "a name is 1 to 64 letters, digits and -_.@");
        return NULL;
    }
    struct db_op *op = db_op_new(kind, name.n + room);
    if (op == NULL)
        sqlite3_result_error_nomem(ctx);
    else
        db_op_copy(op, 0, DB_VALUE_TEXT, name.p, name.n);
    return op;
}

/* Prefixes of URL paths as they are stored. */
struct lines {
    char p[DB_TOKEN_PREFIXES_MAX];
    size_t n;
};

/* Adds one; those without '/' in front are keys of documents. */
static bool add_prefix(struct lines *to, struct db_guard_str one)
{
    const char *front = one.p[0] == '/' ? "" : "/docs/";
    size_t front_n = strlen(front), start = to->n + (to->n > 0);
    struct db_guard_str key = {one.p + (one.p[0] == '/'), one.n - (one.p[0] == '/')};
    key.n -= key.n > 0 && key.p[key.n - 1] == '/';
    if (start + front_n + one.n > sizeof to->p)
        return false;
    if (key.n > 0 && !db_valid_key((const unsigned char *)key.p, key.n))
        return false;
    if (to->n > 0)
        to->p[to->n] = '\n';
    memcpy(to->p + start, front, front_n);
    memcpy(to->p + start + front_n, one.p, one.n);
    to->n = start + front_n + one.n;
    return true;
}

/* Reads a list with spaces, commas or lines between. */
static bool read_prefixes(sqlite3_value *v, struct lines *to)
{
    static const char between[] = " ,\n\r\t";
    struct db_guard_str text = db_guard_str(v);
    to->n = 0;
    for (size_t i = 0; i < text.n;) {
        size_t from = i;
        while (i < text.n && memchr(between, text.p[i], sizeof between - 1) == NULL)
            i++;
        if (i > from && !add_prefix(to, (struct db_guard_str){text.p + from, i - from}))
            return false;
        i += i == from;
    }
    return true;
}

/* token_new(name, read, write, days): the token, which is nowhere else. 0 days: for ever. */
static void sql_token_new(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    static const char name[] = "token_new";
    const struct db_conn *c = sqlite3_user_data(ctx);
    struct lines read, write;
    char token[64];
    unsigned char hash[DB_TOKEN_HASH_BYTES];
    sqlite3_int64 days = sqlite3_value_int64(argv[3]);
    (void)argc;
    if (days < 0 || days > DAYS_MAX || !read_prefixes(argv[1], &read) ||
        !read_prefixes(argv[2], &write)) {
        db_guard_fail(ctx, name, days < 0 || days > DAYS_MAX ? "days are 0 to 36500"
                                                             : "a prefix is none");
        return;
    }
    struct db_op *op = named_op(ctx, name, DB_OP_TOKEN_NEW, db_guard_str(argv[0]),
                                sizeof hash + read.n + write.n);
    if (op == NULL)
        return;
    if (hooks.make_token == NULL || !hooks.make_token(hooks.arg, token, hash)) {
        db_op_free(op);
        db_guard_fail(ctx, name, "no token could be made");
        return;
    }
    db_op_copy(op, 1, DB_VALUE_BLOB, hash, sizeof hash);
    db_op_copy(op, 2, DB_VALUE_TEXT, read.p, read.n);
    db_op_copy(op, 3, DB_VALUE_TEXT, write.p, write.n);
    db_op_int(op, 4, days > 0 ? c->guard.now_s + days * DAY_S : 0);
    if (db_guard_queue(ctx, name, op))
        sqlite3_result_text(ctx, token, -1, SQLITE_TRANSIENT);
}

static void by_name(sqlite3_context *ctx, const char *function, enum db_op_kind kind,
                    sqlite3_value *v)
{
    struct db_guard_str name = db_guard_str(v);
    struct db_op *op = named_op(ctx, function, kind, name, 0);
    if (op != NULL && db_guard_queue(ctx, function, op))
        sqlite3_result_text64(ctx, name.p, name.n, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static void sql_token_revoke(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    by_name(ctx, "token_revoke", DB_OP_TOKEN_REVOKE, argv[0]);
}

static void sql_user_end_sessions(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    by_name(ctx, "user_end_sessions", DB_OP_SESSION_END_USER, argv[0]);
}

int db_guard_add_console(struct db_conn *c)
{
    static const struct db_guard_function all[] = {
        {"console", sql_console, 1, SQLITE_DIRECTONLY | SQLITE_RESULT_SUBTYPE},
        {"token_new", sql_token_new, 4, SQLITE_DIRECTONLY},
        {"token_revoke", sql_token_revoke, 1, SQLITE_DIRECTONLY},
        {"user_end_sessions", sql_user_end_sessions, 1, SQLITE_DIRECTONLY},
    };
    return db_guard_add(c, all, sizeof all / sizeof *all);
}
