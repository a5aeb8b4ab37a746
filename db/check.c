#include "db/check.h"

#include <stdio.h>
#include <string.h>

#include "db/doc.h"
#include "db/migrate.h"
#include "db/schema.h"
#include "db/valid.h"

enum { PATIENCE_MS = 5000 };

/* The part of a type before its parameters, in small letters. */
#define MEDIA_TYPE "lower(rtrim(substr(type, 1, instr(type || ';', ';') - 1)))"

/* Asks for the number of rows that break it. */
struct rule {
    bool fault;
    const char *finding;
    const char *sql;
};

static const struct rule document_rules[] = {
    {true, "other encodings than UTF-8",
     "SELECT count(*) FROM pragma_encoding WHERE encoding <> 'UTF-8'"},
    {true, "documents without a sequence number, size or time",
     "SELECT count(*) FROM doc WHERE typeof(seq) <> 'integer' OR seq < 1"
     " OR typeof(size) <> 'integer' OR typeof(modified) <> 'integer'"},
    {true, "documents whose size is not that of their body",
     /* length(body) of a BLOB does not read it, however large it is */
     "SELECT count(*) FROM doc WHERE size IS NOT CASE typeof(body) WHEN 'blob' THEN length(body)"
     " ELSE length(CAST(body AS BLOB)) END"},
    {true, "documents whose last change is not in the change feed",
     "SELECT count(*) FROM doc WHERE NOT EXISTS (SELECT 1 FROM change"
     " WHERE change.seq = doc.seq AND change.key = doc.key AND change.op = 'put')"},
    {true, "sequence numbers that stand on two documents",
     "SELECT count(*) - count(DISTINCT seq) FROM doc"},
    {true, "documents more or fewer than meta.documents says",
     "SELECT coalesce(abs((SELECT count(*) FROM doc) -"
     " (SELECT value FROM meta WHERE name = 'documents')), 1)"},
    {true, "keys that are gone without their deletion in the change feed",
     "SELECT count(*) FROM tombstone WHERE NOT EXISTS (SELECT 1 FROM change"
     " WHERE change.seq = tombstone.seq AND change.key = tombstone.key AND change.op = 'delete')"},
    {true, "keys that are both gone and there",
     "SELECT count(*) FROM tombstone JOIN doc USING (key)"},
    {true, "deleted keys in the feed that have a document without a later change",
     "SELECT count(*) FROM change JOIN doc USING (key)"
     " WHERE change.op = 'delete' AND change.seq > doc.seq"},
    {true, "keys whose last change is neither that of a document nor that of a deletion",
     "SELECT count(*) FROM (SELECT key, max(seq) AS seq FROM change GROUP BY key) AS last"
     " WHERE NOT EXISTS (SELECT 1 FROM doc WHERE doc.key = last.key AND doc.seq = last.seq)"
     " AND NOT EXISTS (SELECT 1 FROM tombstone"
     " WHERE tombstone.key = last.key AND tombstone.seq = last.seq)"},
    {true, "changes that would have the last one of a key removed from the feed",
     "SELECT count(*) FROM change AS later JOIN change AS last ON last.seq = later.prev"
     " WHERE EXISTS (SELECT 1 FROM doc WHERE doc.key = last.key AND doc.seq = last.seq)"
     " OR EXISTS (SELECT 1 FROM tombstone"
     " WHERE tombstone.key = last.key AND tombstone.seq = last.seq)"},
    {true, "marks (pruned, horizon) beyond the last sequence number",
     "SELECT count(*) FROM meta WHERE name IN ('pruned', 'horizon') AND value > " DB_LAST_SEQ},
    {false, "documents whose key the API does not take, so that it cannot reach them",
     "SELECT count(*) FROM doc WHERE NOT hanji_key_ok(key)"},
    {false, "documents whose body is TEXT and not valid UTF-8",
     "SELECT count(*) FROM doc WHERE typeof(body) = 'text' AND NOT hanji_text_ok(body)"},
    {false, "documents of up to 1 MiB whose type says JSON and whose body is none",
     "SELECT count(*) FROM doc WHERE (" MEDIA_TYPE " = 'application/json' OR " MEDIA_TYPE
     " LIKE '%+json') AND size <= 1048576 AND (instr(CAST(body AS BLOB), x'00') > 0"
     " OR NOT json_valid(CAST(body AS TEXT)))"},
};

static const struct rule people_rules[] = {
    {true, "sessions of users who are not there",
     "SELECT count(*) FROM session WHERE user NOT IN (SELECT id FROM user)"},
};

static const struct rule search_rules[] = {
    {true, "search index that contradicts itself; `hanji search rebuild` makes it anew",
     "SELECT count(*) FROM meta WHERE name = 'search_damaged' AND value <> 0"},
    {true, "documents that the search index should have and has not, or has as they were",
     "SELECT count(*) FROM search_collection AS c JOIN doc"
     " ON doc.key > c.prefix AND (c.prefix = '' OR"
     " doc.key < substr(c.prefix, 1, length(c.prefix) - 1) || '0')"
     " LEFT JOIN search_item AS i ON i.key = doc.key"
     " WHERE c.state = 'ready' AND i.seq IS NOT doc.seq"
     " AND doc.seq <= (SELECT value FROM meta WHERE name = 'search_seq')"
     " AND (i.id IS NOT NULL OR (doc.type LIKE 'text/%' AND typeof(doc.body) = 'text'"
     " AND doc.size <= 1048576))"},
    {true, "entries of the search index without a document",
     "SELECT count(*) FROM search_item AS i LEFT JOIN doc USING (key)"
     " LEFT JOIN tombstone AS t USING (key) WHERE doc.id IS NULL"
     " AND coalesce(t.seq, 0) <= (SELECT value FROM meta WHERE name = 'search_seq')"},
    {true, "entries of the search index outside of the searchable collections",
     "SELECT count(*) FROM search_item AS i WHERE NOT EXISTS (SELECT 1 FROM search_collection"
     " WHERE substr(i.key, 1, length(prefix)) = prefix)"},
    {true, "entries of the search index without their text, or texts without an entry",
     "SELECT (SELECT count(*) FROM search_item WHERE id NOT IN (SELECT id FROM doc_text_docsize))"
     " + (SELECT count(*) FROM search_item WHERE id NOT IN (SELECT id FROM doc_text_content))"
     " + abs((SELECT count(*) FROM search_item) - (SELECT count(*) FROM doc_text_docsize))"
     " + abs((SELECT count(*) FROM search_item) - (SELECT count(*) FROM doc_text_content))"},
    {true, "texts in the search index that are not those of their documents",
     "SELECT count(*) FROM search_item AS i JOIN doc ON doc.key = i.key AND doc.seq = i.seq"
     " LEFT JOIN doc_text_content AS t ON t.id = i.id"
     " WHERE doc.type LIKE 'text/%' AND t.c1 IS NOT doc.body"},
};

static const struct rule inbox_rules[] = {
    {true, "keys of inboxes that are not there",
     "SELECT count(*) FROM inbox_key WHERE source NOT IN (SELECT id FROM inbox_source)"},
    {false, "messages whose id is not known, so that they could come again",
     "SELECT count(*) FROM inbox AS m WHERE line IS NULL AND received >="
     " coalesce((SELECT max(received) FROM inbox_seen), 0) - 2592000 AND NOT EXISTS"
     " (SELECT 1 FROM inbox_seen AS s WHERE s.source = m.source AND s.id = m.id)"
     " AND source IN (SELECT id FROM inbox_source WHERE name >= '0')"},
    {false, "messages of a line beyond its mark that are not known to have come",
     "SELECT count(*) FROM inbox AS m JOIN inbox_line AS l ON l.source = m.source"
     " AND l.sender = m.sender AND l.line = m.line WHERE m.seq > l.seq AND NOT EXISTS"
     " (SELECT 1 FROM inbox_ahead AS a WHERE a.line = l.id AND a.seq = m.seq)"
     " AND m.source IN (SELECT id FROM inbox_source WHERE name >= '0')"},
    {true, "numbers that are noted beyond a mark that has passed them",
     "SELECT count(*) FROM inbox_ahead AS a JOIN inbox_line AS l ON l.id = a.line"
     " WHERE a.seq <= l.seq"},
};

/* By hand, without the counters: what db_outbox_settle keeps. */
#define LINE_DUE                                                                                   \
    "CASE WHEN l.state <> 'open' THEN NULL WHEN l.ord = 'any' THEN (SELECT max(l.wait_until,"      \
    " min(due)) FROM outbox WHERE line = l.id AND state = 'waiting') ELSE (SELECT CASE o.state"    \
    " WHEN 'waiting' THEN max(l.wait_until, o.due) END FROM outbox AS o NOT INDEXED"               \
    " WHERE o.n BETWEEN l.id * 1099511627776 AND l.id * 1099511627776 + 1099511627775"             \
    " AND o.state IN ('waiting', 'parked', 'unopenable') ORDER BY o.n LIMIT 1) END"

static const struct rule send_rules[] = {
    {true, "lines whose counts of messages are wrong",
     "SELECT count(*) FROM line AS l WHERE"
     " waiting <> (SELECT count(*) FROM outbox WHERE line = l.id AND state = 'waiting') OR"
     " parked <> (SELECT count(*) FROM outbox WHERE line = l.id"
     " AND state IN ('parked', 'unopenable'))"},
    {true, "lines that are tried next at another time than their messages say",
     "SELECT count(*) FROM line AS l WHERE l.due IS NOT " LINE_DUE},
    {true, "lines with another number of keys than they say",
     "SELECT count(*) FROM line AS l WHERE keys <>"
     " (SELECT count(*) FROM line_key WHERE line = l.id)"},
    {true, "keys of lines that are not there",
     "SELECT count(*) FROM line_key WHERE line NOT IN (SELECT id FROM line)"},
    {true, "messages whose line is not there, and which nobody deletes",
     "SELECT count(*) FROM outbox WHERE line NOT IN (SELECT id FROM line)"
     " AND line NOT IN (SELECT line FROM outbox_gone)"},
    {true, "messages with a number that their line has not given",
     "SELECT count(*) FROM outbox AS o JOIN line AS l ON l.id = o.line"
     " WHERE o.seq < 1 OR o.seq > l.seq"},
    {true, "lines whose last message has another hash than they say",
     "SELECT count(*) FROM line AS l JOIN outbox AS o ON o.n = l.id * 1099511627776 + l.seq"
     " WHERE o.hash IS NOT l.hash"},
    {true, "messages that do not follow the one before by its hash",
     "SELECT count(*) FROM outbox AS o LEFT JOIN outbox AS p ON p.n = o.n - 1 AND p.line = o.line"
     " WHERE (o.seq = 1 AND o.prev IS NOT NULL) OR (o.seq > 1 AND length(o.prev) IS NOT 32)"
     " OR (p.n IS NOT NULL AND o.prev IS NOT p.hash)"},
    {true, "messages without their body, or with one of another size",
     "SELECT count(*) FROM outbox AS o LEFT JOIN outbox_body AS b ON b.id = o.body"
     " WHERE o.size IS NOT length(CAST(b.body AS BLOB))"},
    {true, "bodies that other messages have than they say",
     "SELECT count(*) FROM outbox_body AS b LEFT JOIN"
     " (SELECT body, count(*) AS refs FROM outbox GROUP BY body) AS o ON o.body = b.id"
     " WHERE b.refs IS NOT o.refs"},
    {true, "tries of messages that are not there",
     "SELECT count(*) FROM attempt WHERE message NOT IN (SELECT n FROM outbox)"},
    {false, "messages that wait behind a number that is missing: a receiver may ask for it",
     "SELECT count(*) FROM outbox AS o WHERE o.state = 'waiting' AND o.sealed"
     " AND NOT EXISTS (SELECT 1 FROM outbox AS p WHERE p.n = o.n - 1)"
     " AND EXISTS (SELECT 1 FROM outbox AS p WHERE p.line = o.line AND p.n < o.n"
     " AND p.state = 'waiting')"},
};

/* needs: a table without which they do not apply, of a step that an older file has not. derived:
 * about what can be made again from the rest. */
static const struct rule_set {
    const struct rule *rules;
    size_t count;
    const char *needs;
    bool derived;
} rule_sets[] = {
    {document_rules, sizeof document_rules / sizeof *document_rules, "doc", false},
    {people_rules, sizeof people_rules / sizeof *people_rules, "session", false},
    {send_rules, sizeof send_rules / sizeof *send_rules, "outbox", false},
    {inbox_rules, sizeof inbox_rules / sizeof *inbox_rules, "inbox_source", false},
    {search_rules, sizeof search_rules / sizeof *search_rules, "search_item", true},
};

static void sql_key_ok(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    const unsigned char *p = sqlite3_value_blob(argv[0]);
    sqlite3_result_int(ctx, db_valid_key(p, (size_t)sqlite3_value_bytes(argv[0])));
}

static void sql_text_ok(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    const unsigned char *p = sqlite3_value_blob(argv[0]);
    sqlite3_result_int(ctx, db_valid_text(p, (size_t)sqlite3_value_bytes(argv[0])));
}

static enum db_result unreadable(struct db_conn *c, struct db_error *error)
{
    db_set_error(error, "the file cannot be read: %s", sqlite3_errmsg(c->db));
    return db_conn_failed(c);
}

enum db_result db_check_integrity(struct db_conn *c, db_check_fn *each, void *arg,
                                  struct db_error *error)
{
    sqlite3_stmt *s = NULL;
    bool found = false;
    int rc = sqlite3_prepare_v2(c->db, "PRAGMA integrity_check", -1, &s, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(s, 0);
        rc = SQLITE_OK;
        if (text != NULL && strcmp(text, "ok") != 0) {
            found = true;
            each(arg, true, text);
        }
    }
    enum db_result result = rc == SQLITE_DONE ? DB_OK : unreadable(c, error);
    sqlite3_finalize(s);
    return result == DB_OK && found ? DB_INVALID : result;
}

static int ask(struct db_conn *c, const char *sql, const char *text, int64_t *rows)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(c->db, sql, -1, &s, NULL);
    if (rc == SQLITE_OK && text != NULL)
        rc = sqlite3_bind_text(s, 1, text, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(s);
    *rows = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_finalize(s);
    return rc;
}

/* Compares the object that `made` stands on with that of the file. */
static int compare_object(sqlite3_stmt *made, sqlite3_stmt *find, db_check_fn *each, void *arg,
                          bool *found)
{
    char text[200];
    const char *name = (const char *)sqlite3_column_text(made, 1);
    const char *sql = (const char *)sqlite3_column_text(made, 2);
    for (int i = 0; i < 2; i++)
        sqlite3_bind_text(find, i + 1, (const char *)sqlite3_column_text(made, i), -1,
                          SQLITE_TRANSIENT);
    int rc = sqlite3_step(find);
    const char *there = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(find, 0) : NULL;
    if ((rc == SQLITE_ROW || rc == SQLITE_DONE) &&
        (there == NULL || sql == NULL || strcmp(there, sql) != 0)) {
        sqlite3_snprintf(sizeof text, text, "the %s %s is %s: the rules below may break",
                         (const char *)sqlite3_column_text(made, 0), name,
                         there == NULL ? "missing" : "not the one of hanji's schema");
        *found = true;
        each(arg, true, text);
    }
    sqlite3_reset(find);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Every table, index and trigger is what the file's steps of the schema make. Steps that are not
 * known here may have changed them since. */
static enum db_result schema(struct db_conn *c, db_check_fn *each, void *arg, bool *found,
                             struct db_error *error)
{
    sqlite3 *fresh = NULL;
    sqlite3_stmt *made = NULL, *find = NULL;
    int64_t version = 0;
    enum db_result result = db_migrate_version(c, &version, error);
    if (result != DB_OK || version < 0 || version > (int64_t)schema_step_count)
        return result;
    int rc = sqlite3_open(":memory:", &fresh);
    for (size_t i = 0; rc == SQLITE_OK && i < (size_t)version; i++)
        rc = sqlite3_exec(fresh, schema_steps[i].sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(fresh,
                                "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
                                " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid",
                                -1, &made, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(c->db,
                                "SELECT sql FROM sqlite_schema WHERE type = ?1 AND name = ?2", -1,
                                &find, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(made)) == SQLITE_ROW)
        rc = compare_object(made, find, each, arg, found);
    if (rc != SQLITE_DONE)
        db_set_error(error, "the schema cannot be compared: %s", sqlite3_errstr(rc));
    sqlite3_finalize(made);
    sqlite3_finalize(find);
    sqlite3_close(fresh);
    return db_cause(rc);
}

static int add_functions(sqlite3 *db)
{
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    int rc = sqlite3_create_function(db, "hanji_key_ok", 1, flags, NULL, sql_key_ok, NULL, NULL);
    return rc != SQLITE_OK ? rc
                           : sqlite3_create_function(db, "hanji_text_ok", 1, flags, NULL,
                                                     sql_text_ok, NULL, NULL);
}

static enum db_result run_set(struct db_conn *c, const struct rule_set *set, db_check_fn *each,
                              void *arg, bool *found)
{
    int64_t there = 0, rows = 0;
    if (ask(c, "SELECT count(*) FROM sqlite_schema WHERE name = ?1", set->needs, &there) !=
        SQLITE_ROW)
        return DB_BROKEN;
    for (size_t i = 0; there > 0 && i < set->count; i++) {
        char text[160];
        const struct rule *rule = &set->rules[i];
        if (ask(c, rule->sql, NULL, &rows) != SQLITE_ROW)
            return DB_BROKEN;
        if (rows == 0)
            continue;
        *found = *found || rule->fault;
        sqlite3_snprintf(sizeof text, text, "%lld %s", (long long)rows, rule->finding);
        each(arg, rule->fault, text);
    }
    return DB_OK;
}

enum db_result db_check_rules(struct db_conn *c, bool derived, db_check_fn *each, void *arg,
                              struct db_error *error)
{
    bool found = false;
    if (add_functions(c->db) != SQLITE_OK)
        return unreadable(c, error);
    enum db_result result = schema(c, each, arg, &found, error);
    for (size_t i = 0; result == DB_OK && i < sizeof rule_sets / sizeof *rule_sets; i++)
        if ((derived || !rule_sets[i].derived) &&
            run_set(c, &rule_sets[i], each, arg, &found) != DB_OK)
            return unreadable(c, error);
    return result == DB_OK && found ? DB_INVALID : result;
}

enum db_result db_check(const struct db_config *config, db_check_fn *each, void *arg,
                        struct db_error *error)
{
    struct db_conn c;
    enum db_result result = db_conn_open(&c, config->path, DB_READ, config->read_cache_bytes,
                                         error);
    if (result != DB_OK)
        return result;
    c.busy_limit_ms = PATIENCE_MS;
    result = db_migrate_check(&c, error);
    if (result == DB_OK && sqlite3_exec(c.db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        result = unreadable(&c, error);
    if (result == DB_OK)
        result = db_check_integrity(&c, each, arg, error);
    if (result == DB_OK || result == DB_INVALID) {
        enum db_result rest = db_check_rules(&c, true, each, arg, error);
        result = rest != DB_OK ? rest : result;
    }
    db_conn_close(&c);
    return result;
}
