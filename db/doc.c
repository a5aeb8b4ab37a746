#include "db/doc.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>

#include "db/body.h"
#include "db/merge.h"
#include "db/reader_internal.h"
#include "db/write.h"

static void take_row(sqlite3_stmt *s, int first, struct db_doc *doc)
{
    doc->seq = (uint64_t)sqlite3_column_int64(s, first);
    doc->modified = sqlite3_column_int64(s, first + 1);
    doc->type = (const char *)sqlite3_column_text(s, first + 2);
    doc->type_len = (size_t)sqlite3_column_bytes(s, first + 2);
    doc->size = (uint64_t)sqlite3_column_int64(s, first + 3);
    doc->body = NULL;
}

enum db_result db_doc_get(struct db_reader *r, const char *key, size_t key_len, uint64_t body_max,
                          struct db_doc *doc)
{
    /* CASE: SQLite would read a body of any size into memory just to step to its row. */
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_DOC_GET,
                                        "SELECT seq, modified, type, size, id,"
                                        " CASE WHEN size <= ?2 THEN body END"
                                        " FROM doc WHERE key = ?1");
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    sqlite3_bind_text(s, 1, key, (int)key_len, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, (int64_t)body_max);
    int rc = sqlite3_step(s);
    if (rc != SQLITE_ROW) {
        sqlite3_reset(s);
        return rc == SQLITE_DONE ? DB_NONE : db_cause(rc);
    }
    db_reader_lend(r, s);
    take_row(s, 0, doc);
    doc->id = sqlite3_column_int64(s, 4);
    doc->body = sqlite3_column_blob(s, 5);
    if (doc->body != NULL)
        doc->size = (uint64_t)sqlite3_column_bytes(s, 5);
    return doc->type == NULL ? DB_NO_MEMORY : DB_OK;
}

enum db_result db_doc_body(struct db_reader *r, const struct db_doc *doc,
                           bool (*each)(void *arg, const void *p, size_t n), void *arg)
{
    return db_body_read(&r->conn, doc->id, doc->size, each, arg);
}

bool db_doc_behind(const struct db_doc_range *range)
{
    size_t n = range->after_len < range->prefix_len ? range->after_len : range->prefix_len;
    int order = n > 0 ? memcmp(range->after, range->prefix, n) : 0;
    return order > 0 || (order == 0 && range->after_len > range->prefix_len);
}

/* Where a part of the keys begins and ends. */
struct bounds {
    char from[DB_KEY_MAX + 1], end[DB_KEY_MAX];
    size_t from_len;
};

/* Keys below "a/" are those from "a/" to before "a0": '0' is the byte after '/'. */
static void skip_folder(struct bounds *b, const char *folder, size_t n)
{
    memcpy(b->from, folder, n);
    b->from[n - 1] = '/' + 1;
    b->from_len = n;
}

/* Behind a key is what begins with it and a NUL. */
static void set_start(struct bounds *b, const struct db_doc_range *range)
{
    const char *from = db_doc_behind(range) ? range->after : range->prefix;
    size_t n = db_doc_behind(range) ? range->after_len : range->prefix_len;
    if (db_doc_behind(range) && range->folders && from[n - 1] == '/') {
        skip_folder(b, from, n);
        return;
    }
    if (n > 0)
        memcpy(b->from, from, n);
    b->from[n] = 0;
    b->from_len = n + db_doc_behind(range);
}

static sqlite3_stmt *list_statement(struct db_reader *r, const struct db_doc_range *range,
                                    struct bounds *b)
{
    /* A blob is behind every text. */
    sqlite3_stmt *s = db_conn_statement(&r->conn, SLOT_DOC_LIST,
                                        "SELECT key, seq, modified, type, size,"
                                        " CASE WHEN size <= ?4 THEN body END FROM doc"
                                        " WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3");
    if (s == NULL)
        return NULL;
    if (range->prefix_len == 0) {
        sqlite3_bind_blob(s, 2, "", 0, SQLITE_STATIC);
    } else {
        memcpy(b->end, range->prefix, range->prefix_len);
        b->end[range->prefix_len - 1] = '/' + 1;
        sqlite3_bind_text(s, 2, b->end, (int)range->prefix_len, SQLITE_STATIC);
    }
    sqlite3_bind_int64(s, 4, range->body_max);
    set_start(b, range);
    return s;
}

/* The row that s stands on; false when memory is short. */
static bool list_row(sqlite3_stmt *s, const struct db_doc_range *range, struct db_doc_row *row)
{
    *row = (struct db_doc_row){.key = (const char *)sqlite3_column_text(s, 0)};
    row->key_len = (size_t)sqlite3_column_bytes(s, 0);
    const char *slash = range->folders && row->key_len > range->prefix_len
                            ? memchr(row->key + range->prefix_len, '/',
                                     row->key_len - range->prefix_len)
                            : NULL;
    row->folder = slash != NULL;
    if (row->folder) {
        row->key_len = (size_t)(slash - row->key) + 1;
        return true;
    }
    take_row(s, 1, &row->doc);
    row->doc.body = range->body_max >= 0 ? sqlite3_column_blob(s, 5) : NULL;
    if (row->doc.body != NULL)
        row->doc.size = (uint64_t)sqlite3_column_bytes(s, 5);
    return row->key != NULL && row->doc.type != NULL;
}

enum db_result db_doc_list(struct db_reader *r, const struct db_doc_range *range,
                           bool (*each)(void *arg, const struct db_doc_row *row), void *arg)
{
    struct bounds b;
    assert(range->prefix_len <= DB_KEY_MAX && range->after_len <= DB_KEY_MAX);
    sqlite3_stmt *s = list_statement(r, range, &b);
    if (s == NULL)
        return db_conn_failed(&r->conn);
    db_reader_lend(r, NULL);
    bool seek = true, go_on = true;
    int rc = SQLITE_DONE;
    for (unsigned left = range->limit; left > 0 && go_on; left--) {
        struct db_doc_row row;
        if (seek) { /* also behind a folder: nothing of what is in it is looked at */
            sqlite3_reset(s);
            sqlite3_bind_text(s, 1, b.from, (int)b.from_len, SQLITE_STATIC);
            sqlite3_bind_int64(s, 3, left);
        }
        rc = sqlite3_step(s);
        if (rc != SQLITE_ROW)
            break;
        if (!list_row(s, range, &row)) {
            rc = SQLITE_NOMEM;
            break;
        }
        go_on = each(arg, &row);
        seek = row.folder;
        if (row.folder && row.key_len <= DB_KEY_MAX)
            skip_folder(&b, row.key, row.key_len);
    }
    sqlite3_reset(s);
    return db_cause(rc);
}

/* The row an operation is about: what SLOT_DOC_SEQ found. */
struct found {
    bool exists;
    int64_t id;
    uint64_t seq;
};

static enum db_result find(struct db_write *w, struct db_op *op, struct found *f)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_DOC_SEQ,
                                        "SELECT id, seq, modified FROM doc WHERE key = ?1");
    if (s == NULL)
        return db_conn_failed(w->conn);
    db_write_bind(s, 1, op, 0);
    int rc = sqlite3_step(s);
    int64_t modified = 0;
    *f = (struct found){0};
    if (rc == SQLITE_ROW) {
        f->exists = true;
        f->id = sqlite3_column_int64(s, 0);
        f->seq = (uint64_t)sqlite3_column_int64(s, 1);
        modified = sqlite3_column_int64(s, 2);
    }
    sqlite3_reset(s);
    if (db_cause(rc) != DB_OK)
        return db_cause(rc);
    op->seq = f->seq;
    return db_precond_holds(&op->precond, f->exists, f->seq, modified) ? DB_OK : DB_PRECONDITION;
}

/* A statement that changes one row. A trigger that somebody added may silently prevent it. */
static enum db_result run(struct db_write *w, sqlite3_stmt *s)
{
    enum db_result result = db_cause(db_conn_run(s));
    return result == DB_OK && sqlite3_changes(w->conn->db) != 1 ? DB_INVALID : result;
}

static sqlite3_stmt *update_statement(struct db_write *w)
{
    return db_conn_statement(w->conn, SLOT_DOC_UPDATE,
                             "UPDATE doc SET seq = ?3, modified = ?4, size = ?5, type = ?2,"
                             " body = ?6 WHERE id = ?1");
}

static enum db_result put_row(struct db_write *w, struct db_op *op, const struct found *f)
{
    sqlite3_stmt *s =
        f->exists ? update_statement(w)
                  : db_conn_statement(w->conn, SLOT_DOC_INSERT,
                                      "INSERT INTO doc (key, type, seq, modified, size, body)"
                                      " VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
    if (s == NULL)
        return db_conn_failed(w->conn);
    if (f->exists)
        sqlite3_bind_int64(s, 1, f->id);
    else
        db_write_bind(s, 1, op, 0);
    db_write_bind(s, 2, op, 1);
    sqlite3_bind_int64(s, 3, (int64_t)(w->seq + 1));
    const struct db_value *modified = &op->values[DB_PUT_MODIFIED];
    sqlite3_bind_int64(s, 4, modified->type == DB_VALUE_INT ? modified->i : w->now_s);
    sqlite3_bind_int64(s, 5, (int64_t)op->values[2].n);
    db_write_bind(s, 6, op, 2);
    enum db_result result = run(w, s);
    sqlite3_clear_bindings(s); /* they point into the operation */
    return result;
}

/* The row with its body in memory, for a table into whose column SQLite cannot write by pieces. */
static enum db_result put_whole(struct db_write *w, struct db_op *op, const struct found *f)
{
    struct db_value file = op->values[2];
    void *p = mmap(NULL, file.n, PROT_READ, MAP_PRIVATE, (int)file.i, 0);
    if (p == MAP_FAILED)
        return DB_NO_MEMORY;
    op->values[2] = (struct db_value){.type = DB_VALUE_BLOB, .p = p, .n = file.n};
    enum db_result result = put_row(w, op, f);
    op->values[2] = file;
    munmap(p, file.n);
    return result;
}

/* A row that is there: SQLite is asked first whether it can be filled, so that nothing has to be
 * undone (a savepoint would copy all of the old body). */
static enum db_result replace_file(struct db_write *w, struct db_op *op, const struct found *f)
{
    enum db_result result = db_body_probe(w->conn, f->id);
    if (result == DB_EXISTS)
        return put_whole(w, op, f);
    if (result == DB_OK)
        result = put_row(w, op, f);
    if (result != DB_OK)
        return result;
    result = db_body_fill(w->conn, f->id, (int)op->values[2].i, op->values[2].n);
    return result == DB_EXISTS ? DB_BUSY : result; /* any failure from here on ends the burst */
}

/* A new row: with zeroes for a body, which is then filled. */
static enum db_result insert_file(struct db_write *w, struct db_op *op, const struct found *f)
{
    struct db_conn *c = w->conn;
    if (db_conn_statement(c, SLOT_BODY_UNDO, "ROLLBACK TO body") == NULL ||
        db_conn_statement(c, SLOT_BODY_RELEASE, "RELEASE body") == NULL)
        return db_conn_failed(c);
    enum db_result result = db_cause(db_conn_do(c, SLOT_BODY_SAVEPOINT, "SAVEPOINT body"));
    if (result != DB_OK)
        return result;
    result = put_row(w, op, f);
    if (result == DB_OK)
        result = db_body_fill(c, sqlite3_last_insert_rowid(c->db), (int)op->values[2].i,
                              op->values[2].n);
    bool indexed = result == DB_EXISTS;
    if (result != DB_OK && sqlite3_get_autocommit(c->db))
        return result; /* a full disk, say, has undone the whole transaction */
    if (result != DB_OK && db_conn_do(c, SLOT_BODY_UNDO, "ROLLBACK TO body") != SQLITE_DONE)
        return DB_BROKEN;
    if (db_conn_do(c, SLOT_BODY_RELEASE, "RELEASE body") != SQLITE_DONE)
        return DB_BROKEN;
    return indexed ? put_whole(w, op, f) : result;
}

static enum db_result put_file(struct db_write *w, struct db_op *op, const struct found *f)
{
    return f->exists ? replace_file(w, op, f) : insert_file(w, op, f);
}

enum db_result db_doc_put(struct db_write *w, struct db_op *op)
{
    struct found f = {0};
    enum db_result result = find(w, op, &f);
    if (result != DB_OK)
        return result;
    if (f.exists && op->values[DB_PUT_ABSENT].type == DB_VALUE_INT)
        return DB_OK;
    bool file = op->values[2].type == DB_VALUE_FILE;
    result = file ? put_file(w, op, &f) : put_row(w, op, &f);
    if (result != DB_OK)
        return result;
    op->seq = ++w->seq;
    op->created = !f.exists;
    return DB_OK;
}

enum db_result db_doc_delete(struct db_write *w, struct db_op *op)
{
    struct found f = {0};
    enum db_result result = find(w, op, &f);
    if ((result == DB_OK || result == DB_PRECONDITION) && !f.exists)
        return DB_NONE; /* whatever the conditions: RFC 9110 13.2.1 */
    if (result != DB_OK)
        return result;
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_DOC_DELETE, "DELETE FROM doc WHERE id = ?1");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, f.id);
    result = run(w, s);
    if (result == DB_OK)
        op->seq = ++w->seq;
    return result;
}

bool db_type_is_json(const char *type, size_t n)
{
    static const char json[] = "application/json", suffix[] = "+json";
    const char *semicolon = n > 0 ? memchr(type, ';', n) : NULL;
    if (semicolon != NULL)
        n = (size_t)(semicolon - type);
    while (n > 0 && type[n - 1] == ' ')
        n--;
    size_t tail = sizeof suffix - 1;
    return (n == sizeof json - 1 && strncasecmp(type, json, n) == 0) ||
           (n >= tail && strncasecmp(type + n - tail, suffix, tail) == 0);
}

/* Merges into the row of s, which SLOT_DOC_BODY found: its type before the new body. */
static enum db_result merge(struct db_write *w, struct db_op *op, sqlite3_stmt *s,
                            struct db_merge *m)
{
    const char *type = (const char *)sqlite3_column_text(s, 0);
    size_t type_len = (size_t)sqlite3_column_bytes(s, 0);
    if (type == NULL)
        return DB_NO_MEMORY;
    if (!db_type_is_json(type, type_len))
        return DB_CONFLICT;
    *m = (struct db_merge){.patch = op->values[2].p, .patch_len = op->values[2].n};
    m->head = type_len;
    m->target = sqlite3_column_blob(s, 1);
    m->target_len = (size_t)sqlite3_column_bytes(s, 1);
    enum db_result result = db_merge(w->conn, m);
    if (result == DB_OK)
        memcpy(m->out, type, type_len);
    return result;
}

static enum db_result read_and_merge(struct db_write *w, struct db_op *op, int64_t id,
                                     struct db_merge *m)
{
    sqlite3_stmt *s = db_conn_statement(w->conn, SLOT_DOC_BODY,
                                        "SELECT type, body FROM doc WHERE id = ?1");
    if (s == NULL)
        return db_conn_failed(w->conn);
    sqlite3_bind_int64(s, 1, id);
    int rc = sqlite3_step(s);
    enum db_result result = rc == SQLITE_ROW ? merge(w, op, s, m) : db_cause(rc);
    sqlite3_reset(s);
    return rc == SQLITE_DONE ? DB_NONE : result;
}

static enum db_result store_merged(struct db_write *w, struct db_op *op, int64_t id,
                                   const struct db_merge *m)
{
    sqlite3_stmt *s = update_statement(w);
    size_t n = m->out_len - m->head;
    if (s == NULL)
        return db_conn_failed(w->conn);
    if (n > (uint64_t)op->values[1].i)
        return DB_TOO_LARGE;
    sqlite3_bind_int64(s, 1, id);
    sqlite3_bind_text64(s, 2, (char *)m->out, m->head, SQLITE_STATIC, SQLITE_UTF8);
    sqlite3_bind_int64(s, 3, (int64_t)(w->seq + 1));
    sqlite3_bind_int64(s, 4, w->now_s);
    sqlite3_bind_int64(s, 5, (int64_t)n);
    sqlite3_bind_text64(s, 6, (char *)m->out + m->head, n, SQLITE_STATIC, SQLITE_UTF8);
    enum db_result result = run(w, s);
    sqlite3_clear_bindings(s);
    return result;
}

enum db_result db_doc_patch(struct db_write *w, struct db_op *op)
{
    struct db_merge m = {0};
    struct found f = {0};
    enum db_result result = find(w, op, &f);
    if ((result == DB_OK || result == DB_PRECONDITION) && !f.exists)
        return DB_NONE;
    if (result == DB_OK)
        result = read_and_merge(w, op, f.id, &m);
    if (result == DB_OK)
        result = store_merged(w, op, f.id, &m);
    if (result == DB_OK)
        op->seq = ++w->seq;
    if (result == DB_OK && op->wants_answer) {
        op->answer = m.out;
        op->answer_bytes = m.out_len;
        op->type_bytes = m.head;
    } else {
        free(m.out);
    }
    return result;
}

enum db_result db_doc_read_seq(struct db_write *w, struct db_op *op)
{
    struct db_precond none = {0}, saved = op->precond;
    struct found f = {0};
    if (op->kind != DB_OP_PUT && op->kind != DB_OP_PATCH)
        return DB_OK;
    op->precond = none;
    enum db_result result = find(w, op, &f);
    op->precond = saved;
    return result;
}
