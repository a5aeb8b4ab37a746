/* The writer's side of the search index.
 *
 * A step follows the change feed from where the index stands, then goes on with collections that
 * are being indexed or taken out. Each part notes how far it came in the same transaction, so that
 * a crash loses nothing and repeats nothing. A step is bounded in time and text; what SQLite does
 * at its commit is bounded with it.
 *
 * Functions return SQLite's result codes up to where they are judged: an index that contradicts
 * itself must stop searches only, a failing disk everything. */
#include "db/search_index.h"

#include <string.h>
#include <strings.h>

#include "db/burst.h"
#include "db/search.h"
#include "db/write.h"

enum {
    STEP_US = 10000,
    STEP_TEXT = 128 << 10, /* bytes of text put into or taken out of the index */
    STEP_CHANGES = 4096,
    KEY_ROOM = DB_KEY_MAX + 1,
};

struct step {
    struct db_conn *c;
    uint64_t until_us;
    size_t text; /* bytes so far */
    unsigned rows; /* looked at */
    bool more;
};

struct collection {
    int64_t id;
    char state; /* its first letter but for "renewing": 'R' */
    size_t prefix_len, upto_len;
    char prefix[KEY_ROOM], upto[KEY_ROOM];
};

/* Not before its first row: a step goes on however late it gets to it, on a busy machine. */
static bool spent(struct step *s)
{
    if (s->rows == 0 || (s->text < STEP_TEXT && db_clock_us() < s->until_us))
        return false;
    s->more = true;
    return true;
}

static int failed(const struct step *s)
{
    int rc = sqlite3_extended_errcode(s->c->db);
    return rc == SQLITE_OK ? SQLITE_ERROR : rc;
}

/* SQLITE_OK for a statement that ended well. */
static int run(struct step *s, sqlite3_stmt *stmt)
{
    int rc = stmt != NULL ? db_conn_run(stmt) : failed(s);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- one document ------------------------------------------------------------------------- */

/* The strings and numbers of a JSON text as a row of the statement, one a line; NULL when there are
 * none or it does not parse: a row from outside may be anything. */
static sqlite3_stmt *json_words(struct step *s, const char *body, size_t n)
{
    sqlite3_stmt *stmt = db_conn_statement(
        s->c, SLOT_SEARCH_JSON,
        "SELECT group_concat(atom, char(10)) FROM json_tree(iif(json_valid(?1), ?1, 'null'))"
        " WHERE type IN ('text', 'integer', 'real')");
    if (stmt != NULL)
        sqlite3_bind_text64(stmt, 1, body, n, SQLITE_STATIC, SQLITE_UTF8);
    return stmt;
}

static int take_out(struct step *s, int64_t id)
{
    sqlite3_stmt *text = db_conn_statement(s->c, SLOT_SEARCH_TEXT_DELETE,
                                           "DELETE FROM doc_text WHERE rowid = ?1");
    sqlite3_stmt *item = db_conn_statement(s->c, SLOT_SEARCH_ITEM_DELETE,
                                           "DELETE FROM search_item WHERE id = ?1");
    if (text == NULL || item == NULL)
        return failed(s);
    sqlite3_bind_int64(text, 1, id);
    sqlite3_bind_int64(item, 1, id);
    int rc = run(s, text);
    return rc == SQLITE_OK ? run(s, item) : rc;
}

struct words {
    const struct collection *in;
    const char *key;
    size_t key_len;
    int64_t seq;
    const char *text;
    size_t text_len;
};

static int put_in(struct step *s, const struct words *w)
{
    char place[24];
    sqlite3_stmt *item = db_conn_statement(s->c, SLOT_SEARCH_ITEM_INSERT,
                                           "INSERT INTO search_item (key, seq) VALUES (?1, ?2)");
    sqlite3_stmt *text = db_conn_statement(
        s->c, SLOT_SEARCH_TEXT_INSERT,
        "INSERT INTO doc_text (rowid, place, text)"
        " VALUES ((SELECT id FROM search_item WHERE key = ?1), ?2, ?3)");
    if (text == NULL || item == NULL)
        return failed(s);
    sqlite3_snprintf(sizeof place, place, "c%lld", (long long)w->in->id);
    sqlite3_bind_text(item, 1, w->key, (int)w->key_len, SQLITE_STATIC);
    sqlite3_bind_int64(item, 2, w->seq);
    sqlite3_bind_text(text, 1, w->key, (int)w->key_len, SQLITE_STATIC);
    sqlite3_bind_text(text, 2, place, -1, SQLITE_STATIC);
    sqlite3_bind_text64(text, 3, w->text, w->text_len, SQLITE_STATIC, SQLITE_UTF8);
    int rc = run(s, item);
    if (rc == SQLITE_OK)
        rc = run(s, text);
    sqlite3_clear_bindings(item); /* they point into other rows */
    sqlite3_clear_bindings(text);
    return rc;
}

/* Puts the document that doc stands on into the index, if it has text. */
static int put_document(struct step *s, const struct collection *in, const char *key,
                        size_t key_len, sqlite3_stmt *doc)
{
    struct words w = {.in = in, .key = key, .key_len = key_len};
    const char *type = (const char *)sqlite3_column_text(doc, 1);
    size_t type_len = (size_t)sqlite3_column_bytes(doc, 1);
    sqlite3_stmt *json = NULL;
    int rc = SQLITE_OK;
    w.seq = sqlite3_column_int64(doc, 0);
    w.text = (const char *)sqlite3_column_text(doc, 2);
    w.text_len = (size_t)sqlite3_column_bytes(doc, 2);
    if (type != NULL && w.text != NULL && db_type_is_json(type, type_len)) {
        json = json_words(s, w.text, w.text_len);
        rc = json != NULL ? sqlite3_step(json) : failed(s);
        w.text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(json, 0) : NULL;
        w.text_len = rc == SQLITE_ROW ? (size_t)sqlite3_column_bytes(json, 0) : 0;
        if (rc == SQLITE_ROW || rc == SQLITE_ERROR) /* what SQLite cannot take apart has no text */
            rc = SQLITE_OK;
    } else if (type == NULL || type_len < 5 || strncasecmp(type, "text/", 5) != 0) {
        w.text = NULL;
    }
    if (rc == SQLITE_OK && w.text != NULL) {
        s->text += w.text_len;
        rc = put_in(s, &w);
    }
    if (json != NULL) {
        sqlite3_reset(json);
        sqlite3_clear_bindings(json);
    }
    return rc;
}

/* The item of a key: *id 0 when there is none. *size: about the bytes of its text. */
static int find_item(struct step *s, const char *key, size_t key_len, int64_t *id, int64_t *seq)
{
    sqlite3_stmt *item = db_conn_statement(s->c, SLOT_SEARCH_ITEM,
                                           "SELECT id, seq FROM search_item WHERE key = ?1");
    *id = 0;
    *seq = 0;
    if (item == NULL)
        return failed(s);
    sqlite3_bind_text(item, 1, key, (int)key_len, SQLITE_STATIC);
    int rc = sqlite3_step(item);
    if (rc == SQLITE_ROW) {
        *id = sqlite3_column_int64(item, 0);
        *seq = sqlite3_column_int64(item, 1);
    }
    int reset = sqlite3_reset(item);
    sqlite3_clear_bindings(item);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : reset;
}

/* Brings what the index has for a key in line with the document. */
static int settle(struct step *s, const struct collection *in, const char *key, size_t key_len)
{
    int64_t id, seq;
    int rc = find_item(s, key, key_len, &id, &seq);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_stmt *doc = db_conn_statement(s->c, SLOT_SEARCH_DOC,
                                          "SELECT seq, type, CASE WHEN size <= ?2 AND"
                                          " typeof(body) = 'text' THEN body END"
                                          " FROM doc WHERE key = ?1");
    if (doc == NULL)
        return failed(s);
    sqlite3_bind_text(doc, 1, key, (int)key_len, SQLITE_STATIC);
    sqlite3_bind_int64(doc, 2, DB_SEARCH_BODY_MAX);
    rc = sqlite3_step(doc);
    bool there = rc == SQLITE_ROW;
    rc = there || rc == SQLITE_DONE ? SQLITE_OK : rc;
    bool same = there && id != 0 && sqlite3_column_int64(doc, 0) == seq;
    if (rc == SQLITE_OK && id != 0 && !same)
        rc = take_out(s, id);
    if (rc == SQLITE_OK && there && !same)
        rc = put_document(s, in, key, key_len, doc);
    sqlite3_reset(doc);
    sqlite3_clear_bindings(doc);
    return rc;
}

/* ---- collections -------------------------------------------------------------------------- */

static void take_collection(sqlite3_stmt *stmt, struct collection *in)
{
    const char *state = (const char *)sqlite3_column_text(stmt, 1);
    const char *prefix = (const char *)sqlite3_column_text(stmt, 2);
    const char *upto = (const char *)sqlite3_column_text(stmt, 3);
    *in = (struct collection){.id = sqlite3_column_int64(stmt, 0)};
    in->prefix_len = (size_t)sqlite3_column_bytes(stmt, 2);
    in->upto_len = (size_t)sqlite3_column_bytes(stmt, 3);
    if (!state || !prefix || !upto || in->prefix_len >= KEY_ROOM || in->upto_len >= KEY_ROOM) {
        in->id = 0; /* memory is short, or not a row of ours */
        return;
    }
    in->state = strcmp(state, "renewing") == 0 ? 'R' : state[0];
    memcpy(in->prefix, prefix, in->prefix_len + 1);
    memcpy(in->upto, upto, in->upto_len + 1);
}

/* The collection that covers key; id 0 when none does. None lies within another, so it is the last
 * one that is not behind the key. */
static int collection_of(struct step *s, const char *key, size_t key_len, struct collection *in)
{
    sqlite3_stmt *stmt = db_conn_statement(s->c, SLOT_SEARCH_COVER,
                                           "SELECT id, state, prefix, upto FROM search_collection"
                                           " WHERE prefix <= ?1 ORDER BY prefix DESC LIMIT 1");
    in->id = 0;
    if (stmt == NULL)
        return failed(s);
    sqlite3_bind_text(stmt, 1, key, (int)key_len, SQLITE_STATIC);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        take_collection(stmt, in);
    int reset = sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    if (in->id != 0 && (in->prefix_len > key_len || memcmp(in->prefix, key, in->prefix_len) != 0))
        in->id = 0;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : reset;
}

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

static int note_seq(struct step *s, int64_t seq)
{
    sqlite3_stmt *stmt = db_conn_statement(s->c, SLOT_SEARCH_NOTE,
                                           "UPDATE meta SET value = ?1 WHERE name = 'search_seq'");
    if (stmt != NULL)
        sqlite3_bind_int64(stmt, 1, seq);
    return run(s, stmt);
}

/* One entry of the change feed. What is not indexed yet will be read when its turn comes. */
static int follow_one(struct step *s, const char *key, size_t key_len)
{
    struct collection in;
    int rc = collection_of(s, key, key_len, &in);
    if (rc != SQLITE_OK || in.id == 0)
        return rc;
    bool there = in.state == 'r' && in.upto_len == 0; /* ready */
    if (in.state == 'i')
        there = compare(key, key_len, in.upto, in.upto_len) <= 0;
    return there ? settle(s, &in, key, key_len) : SQLITE_OK;
}

static int follow(struct step *s)
{
    sqlite3_stmt *stmt = db_conn_statement(
        s->c, SLOT_SEARCH_FOLLOW,
        "SELECT seq, key FROM change"
        " WHERE seq > (SELECT value FROM meta WHERE name = 'search_seq') ORDER BY seq");
    int64_t seq = 0;
    int rc;
    if (stmt == NULL)
        return failed(s);
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW && !spent(s)) {
        const char *key = (const char *)sqlite3_column_text(stmt, 1);
        if (s->rows++ == STEP_CHANGES) {
            s->more = true;
            break;
        }
        rc = key == NULL ? SQLITE_NOMEM
                         : follow_one(s, key, (size_t)sqlite3_column_bytes(stmt, 1));
        if (rc != SQLITE_OK)
            break;
        seq = sqlite3_column_int64(stmt, 0);
    }
    sqlite3_reset(stmt);
    rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
    return rc == SQLITE_OK && seq > 0 ? note_seq(s, seq) : rc;
}

/* The range of a collection's keys: behind from, before end. */
static void bind_range(sqlite3_stmt *stmt, const struct collection *in, char *end, bool from_upto)
{
    bool later = from_upto && compare(in->upto, in->upto_len, in->prefix, in->prefix_len) > 0;
    sqlite3_bind_text(stmt, 1, later ? in->upto : in->prefix,
                      (int)(later ? in->upto_len : in->prefix_len), SQLITE_STATIC);
    memcpy(end, in->prefix, in->prefix_len + 1);
    if (in->prefix_len > 0)
        end[in->prefix_len - 1] = '/' + 1;
    sqlite3_bind_text(stmt, 2, in->prefix_len > 0 ? end : "\xff",
                      in->prefix_len > 0 ? (int)in->prefix_len : 1, SQLITE_STATIC);
}

static int note_state(struct step *s, const struct collection *in, const char *state,
                      const char *upto)
{
    sqlite3_stmt *stmt = db_conn_statement(
        s->c, SLOT_SEARCH_STATE,
        "UPDATE search_collection SET state = ?2, upto = ?3 WHERE id = ?1");
    if (stmt == NULL)
        return failed(s);
    sqlite3_bind_int64(stmt, 1, in->id);
    sqlite3_bind_text(stmt, 2, state, -1, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 3, upto, -1, SQLITE_STATIC);
    int rc = run(s, stmt);
    sqlite3_clear_bindings(stmt);
    return rc;
}

/* Goes on with a collection that is being indexed. */
static int build(struct step *s, struct collection *in)
{
    char end[KEY_ROOM];
    int rc;
    sqlite3_stmt *stmt = db_conn_statement(
        s->c, SLOT_SEARCH_BUILD, "SELECT key FROM doc WHERE key > ?1 AND key < ?2 ORDER BY key");
    if (stmt == NULL)
        return failed(s);
    bind_range(stmt, in, end, true);
    char key[KEY_ROOM];
    size_t key_len = 0;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW && !spent(s)) {
        const char *text = (const char *)sqlite3_column_text(stmt, 0);
        s->rows++;
        key_len = (size_t)sqlite3_column_bytes(stmt, 0);
        rc = text == NULL || key_len >= KEY_ROOM ? SQLITE_NOMEM : SQLITE_OK;
        if (rc == SQLITE_OK) {
            memcpy(key, text, key_len);
            key[key_len] = 0;
            rc = settle(s, in, key, key_len);
        }
        if (rc != SQLITE_OK)
            break;
    }
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    if (rc == SQLITE_DONE)
        return note_state(s, in, "ready", "");
    if (rc == SQLITE_ROW)
        return key_len > 0 ? note_state(s, in, "indexing", key) : SQLITE_OK;
    return rc;
}

/* Goes on with taking a collection out. */
static int clear(struct step *s, struct collection *in)
{
    char end[KEY_ROOM];
    int rc;
    sqlite3_stmt *stmt = db_conn_statement(
        s->c, SLOT_SEARCH_CLEAR,
        "SELECT i.id, length(d.c1) FROM search_item AS i LEFT JOIN doc_text_content AS d"
        " ON d.id = i.id WHERE i.key > ?1 AND i.key < ?2 ORDER BY i.key");
    if (stmt == NULL)
        return failed(s);
    bind_range(stmt, in, end, false);
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW && !spent(s)) {
        s->rows++;
        s->text += (size_t)sqlite3_column_int64(stmt, 1);
        rc = take_out(s, sqlite3_column_int64(stmt, 0));
        if (rc != SQLITE_OK)
            break;
    }
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    if (rc == SQLITE_ROW)
        return SQLITE_OK;
    if (rc != SQLITE_DONE)
        return rc;
    s->more |= in->state == 'R';
    if (in->state == 'R')
        return note_state(s, in, "indexing", "");
    stmt = db_conn_statement(s->c, SLOT_SEARCH_FORGET,
                             "DELETE FROM search_collection WHERE id = ?1");
    if (stmt != NULL)
        sqlite3_bind_int64(stmt, 1, in->id);
    return run(s, stmt);
}

/* One collection that is not ready, if there is one. */
static int unready(struct step *s, struct collection *in)
{
    sqlite3_stmt *stmt = db_conn_statement(s->c, SLOT_SEARCH_UNREADY,
                                           "SELECT id, state, prefix, upto FROM search_collection"
                                           " WHERE state <> 'ready' ORDER BY id LIMIT 1");
    in->id = 0;
    if (stmt == NULL)
        return failed(s);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        take_collection(stmt, in);
    int reset = sqlite3_reset(stmt);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : reset;
}

/* True when there is an index to keep: a collection, and no damage. */
static int wanted(struct db_conn *c, bool *yes)
{
    sqlite3_stmt *stmt = db_conn_statement(
        c, SLOT_SEARCH_WANTED,
        "SELECT EXISTS (SELECT 1 FROM search_collection) AND"
        " (SELECT value FROM meta WHERE name = 'search_damaged') IS NOT 1");
    *yes = false;
    if (stmt == NULL)
        return sqlite3_extended_errcode(c->db);
    int rc = sqlite3_step(stmt);
    *yes = rc == SQLITE_ROW && sqlite3_column_int(stmt, 0) != 0;
    int reset = sqlite3_reset(stmt);
    return rc == SQLITE_ROW ? SQLITE_OK : reset;
}

static int work(struct step *s)
{
    struct collection in;
    int rc = follow(s);
    while (rc == SQLITE_OK && !spent(s)) {
        rc = unready(s, &in);
        if (rc != SQLITE_OK || in.id == 0)
            break;
        rc = in.state == 'i' ? build(s, &in) : clear(s, &in);
    }
    return rc;
}

/* ---- judging ------------------------------------------------------------------------------ */

/* Causes that say something about the index and nothing about the file. */
static bool is_damage(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
        return true;
    case SQLITE_CORRUPT:
        return rc == SQLITE_CORRUPT_VTAB;
    default:
        return false;
    }
}

static int note_damage(struct db_conn *c)
{
    return db_conn_do(c, SLOT_SEARCH_DAMAGED,
                      "UPDATE meta SET value = 1 WHERE name = 'search_damaged'");
}

/* FTS5 keeps what it was given in memory until a savepoint or the commit, and finds only then that
 * the index is damaged: it must be asked while that can be undone. */
static int flush(struct db_conn *c)
{
    int rc = db_conn_do(c, SLOT_SEARCH_FLUSH, "SAVEPOINT search_flush");
    if (rc == SQLITE_DONE)
        rc = db_conn_do(c, SLOT_SEARCH_FLUSHED, "RELEASE search_flush");
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The work of a step inside the open transaction, where it fails alone. DB_INVALID: the index is
 * damaged, and that has been noted. */
static enum db_result guarded(struct step *s)
{
    int rc = db_conn_do(s->c, SLOT_SEARCH_SAVE, "SAVEPOINT search");
    if (rc != SQLITE_DONE)
        return db_cause(rc);
    rc = work(s);
    if (rc == SQLITE_OK)
        rc = flush(s->c);
    if (rc != SQLITE_OK && !is_damage(rc))
        return db_cause(rc);
    if (rc != SQLITE_OK) {
        s->more = false;
        if (db_conn_do(s->c, SLOT_SEARCH_UNDO, "ROLLBACK TO search") != SQLITE_DONE ||
            note_damage(s->c) != SQLITE_DONE)
            return DB_BROKEN;
    }
    int released = db_conn_do(s->c, SLOT_SEARCH_RELEASE, "RELEASE search");
    if (released != SQLITE_DONE)
        return db_cause(released);
    return rc != SQLITE_OK ? DB_INVALID : DB_OK;
}

enum db_result db_search_step(struct db_conn *c, bool *more)
{
    struct step s = {.c = c, .until_us = db_clock_us() + STEP_US};
    bool yes = false;
    *more = false;
    int rc = wanted(c, &yes);
    if (rc != SQLITE_OK || !yes)
        return db_cause(rc);
    rc = db_conn_do(c, SLOT_BEGIN_WRITE, "BEGIN IMMEDIATE");
    if (rc != SQLITE_DONE)
        return db_cause(rc);
    enum db_result result = guarded(&s);
    if (result == DB_INVALID)
        result = DB_OK;
    if (result == DB_OK)
        result = db_cause(db_conn_do(c, SLOT_COMMIT, "COMMIT"));
    if (!sqlite3_get_autocommit(c->db))
        db_conn_do(c, SLOT_ROLLBACK, "ROLLBACK");
    *more = s.more;
    return sqlite3_get_autocommit(c->db) ? result : DB_BROKEN;
}

enum db_result db_search_sync(struct db_write *w, struct db_op *op)
{
    struct step s = {.c = w->conn, .until_us = db_clock_us() + STEP_US};
    bool yes = false;
    (void)op;
    int rc = w->searched ? SQLITE_OK : wanted(w->conn, &yes);
    if (rc != SQLITE_OK)
        return db_cause(rc);
    w->searched = true; /* others of the burst that ask find it done, or ask again */
    enum db_result result = yes ? guarded(&s) : DB_OK;
    return result == DB_INVALID ? DB_OK : result;
}
