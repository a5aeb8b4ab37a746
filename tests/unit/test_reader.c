/* db/reader, db/doc, db/token: snapshots, one document, lists, tokens. */
#include "db/reader.h"

#include <stdio.h>
#include <string.h>

#include "db/doc.h"
#include "db/token.h"
#include "tests/unit/tdb.h"

static struct db_conn writer;
static struct db_reader *reader;

static void open_both(void)
{
    tdb_init();
    tdb_open(&writer);
    ck_assert_int_eq(db_reader_open(&tdb_config, &reader, &tdb_error), DB_OK);
}

static void close_both(void)
{
    db_reader_close(reader);
    db_conn_close(&writer);
}

static void apply(struct db_op *op)
{
    ck_assert_int_eq(tdb_burst(&writer, op), DB_OK);
    ck_assert_int_eq(op->result, DB_OK);
    tdb_free(op);
}

static enum db_result get(const char *key, struct db_doc *doc)
{
    memset(doc, 0xee, sizeof *doc);
    return db_doc_get(reader, key, strlen(key), UINT64_MAX >> 1, doc);
}

static bool has(const char *key, const char *body)
{
    struct db_doc doc;
    return get(key, &doc) == DB_OK && doc.size == strlen(body) && (doc.size == 0 || memcmp(doc.body, body, doc.size) == 0);
}

/* ---- snapshots ------------------------------------------------------------------------------- */

START_TEST(a_snapshot_stays_while_others_commit)
{
    uint64_t seq, documents;
    apply(tdb_put("a", "1"));
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    ck_assert(has("a", "1"));
    apply(tdb_put("a", "2"));
    apply(tdb_put("b", "3"));
    ck_assert(has("a", "1"));
    ck_assert(!has("b", "3"));
    ck_assert_int_eq(db_reader_totals(reader, &seq, &documents), DB_OK);
    ck_assert_uint_eq(seq, 1);
    ck_assert_uint_eq(documents, 1);
    db_reader_end(reader);
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    ck_assert(has("a", "2"));
    ck_assert(has("b", "3"));
    ck_assert_int_eq(db_reader_totals(reader, &seq, &documents), DB_OK);
    ck_assert_uint_eq(seq, 3);
    ck_assert_uint_eq(documents, 2);
    db_reader_end(reader);
}
END_TEST

START_TEST(a_snapshot_is_the_newest_commit)
{
    for (int i = 0; i < 20; i++) {
        char body[16];
        snprintf(body, sizeof body, "%d", i);
        apply(tdb_put("a", body));
        ck_assert_int_eq(db_reader_begin(reader), DB_OK);
        ck_assert(has("a", body));
        db_reader_end(reader);
    }
}
END_TEST

START_TEST(what_is_not_committed_is_not_seen)
{
    sqlite3 *other = tdb_shell();
    tdb_sql(other, "BEGIN IMMEDIATE; INSERT INTO doc (key, body) VALUES ('a', '1')");
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    ck_assert(!has("a", "1"));
    tdb_sql(other, "COMMIT");
    ck_assert(!has("a", "1"));
    db_reader_end(reader);
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    ck_assert(has("a", "1"));
    db_reader_end(reader);
    sqlite3_close(other);
}
END_TEST

START_TEST(ending_without_a_begin)
{
    db_reader_end(reader);
    db_reader_end(reader);
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    db_reader_end(reader);
    db_reader_end(reader);
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    db_reader_end(reader);
    db_reader_close(NULL);
}
END_TEST

/* The writer must never wait for a reader that still looks at a row. */
START_TEST(a_lent_row_does_not_stop_the_writer)
{
    struct db_doc doc;
    apply(tdb_put("a", "1"));
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    ck_assert_int_eq(get("a", &doc), DB_OK);
    apply(tdb_put("a", "2"));
    ck_assert_mem_eq(doc.body, "1", 1);
    db_reader_end(reader);
}
END_TEST

START_TEST(a_reader_cannot_write)
{
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    db_reader_end(reader);
    db_reader_close(reader);
    struct db_conn c;
    ck_assert_int_eq(db_conn_open(&c, tdb_config.path, DB_READ, 1 << 20, &tdb_error), DB_OK);
    ck_assert(!tdb_try(c.db, "INSERT INTO doc (key, body) VALUES ('a', 'b')"));
    ck_assert(!tdb_try(c.db, "PRAGMA user_version=7"));
    db_conn_close(&c);
    ck_assert_int_eq(db_reader_open(&tdb_config, &reader, &tdb_error), DB_OK);
}
END_TEST

/* ---- one document ---------------------------------------------------------------------------- */

START_TEST(a_document)
{
    struct db_doc doc;
    apply(tdb_put_bytes("k", "text/html; charset=utf-8", DB_VALUE_TEXT, "<p>", 3));
    ck_assert_int_eq(get("k", &doc), DB_OK);
    ck_assert_uint_eq(doc.seq, 1);
    ck_assert_uint_eq(doc.size, 3);
    ck_assert_uint_eq(doc.type_len, 24);
    ck_assert_mem_eq(doc.type, "text/html; charset=utf-8", 24);
    ck_assert_mem_eq(doc.body, "<p>", 3);
    ck_assert_int_eq(tdb_ask_file("SELECT modified FROM doc"), doc.modified);
    ck_assert_int_eq(tdb_ask_file("SELECT abs(modified - strftime('%s', 'now')) < 30 FROM doc"), 1);
}
END_TEST

START_TEST(a_document_without_its_body)
{
    struct db_doc doc = {.body = "x"};
    apply(tdb_put("k", "body"));
    ck_assert_int_eq(db_doc_get(reader, "k", 1, 0, &doc), DB_OK);
    ck_assert_ptr_null(doc.body);
    ck_assert_uint_eq(doc.size, 4);
    ck_assert_uint_eq(doc.seq, 1);
}
END_TEST

START_TEST(an_empty_body)
{
    struct db_doc doc;
    apply(tdb_put("k", ""));
    ck_assert_int_eq(get("k", &doc), DB_OK);
    ck_assert_uint_eq(doc.size, 0);
    ck_assert_int_eq(db_doc_get(reader, "k", 1, 0, &doc), DB_OK);
    ck_assert_uint_eq(doc.size, 0);
}
END_TEST

START_TEST(keys_are_compared_byte_for_byte)
{
    static const char *const others[] = {"", "A", "a ", " a", "a/", "aa", "a%", "_", "%", "a\xcc\x81", "\xff"};
    struct db_doc doc;
    apply(tdb_put("a", "1"));
    apply(tdb_put("\xc3\xa1", "2"));
    for (size_t i = 0; i < COUNT(others); i++)
        ck_assert_msg(get(others[i], &doc) == DB_NONE, "%s", others[i]);
    ck_assert_int_eq(db_doc_get(reader, "a\0b", 3, UINT64_MAX >> 1, &doc), DB_NONE);
    ck_assert_int_eq(db_doc_get(reader, "ab", 1, UINT64_MAX >> 1, &doc), DB_OK);
    ck_assert(has("\xc3\xa1", "2"));
}
END_TEST

/* A person may have put text of another kind where bytes are meant: what is there is what is read. */
START_TEST(rows_of_a_person)
{
    sqlite3 *other = tdb_shell();
    struct db_doc doc;
    tdb_sql(other, "INSERT INTO doc (key, body) VALUES ('t', 'text'), ('b', X'00ff00'), ('n', ''), ('z', 'a' || char(0) || 'b')");
    ck_assert(has("t", "text"));
    ck_assert_int_eq(get("b", &doc), DB_OK);
    ck_assert_uint_eq(doc.size, 3);
    ck_assert_mem_eq(doc.body, "\0\xff\0", 3);
    ck_assert_mem_eq(doc.type, "application/octet-stream", doc.type_len);
    ck_assert_int_eq(get("z", &doc), DB_OK);
    ck_assert_uint_eq(doc.size, 3);
    ck_assert_mem_eq(doc.body, "a\0b", 3);
    ck_assert_int_eq(db_doc_get(reader, "z", 1, 0, &doc), DB_OK);
    ck_assert_uint_eq(doc.size, 3);
    ck_assert(has("n", ""));
    sqlite3_close(other);
}
END_TEST

/* ---- lists ----------------------------------------------------------------------------------- */

struct listed {
    char text[4096];
    unsigned most;
    unsigned calls;
};

static bool take(void *arg, const struct db_doc_row *row)
{
    struct listed *l = arg;
    size_t at = strlen(l->text);
    snprintf(l->text + at, sizeof l->text - at, "%s%.*s", at > 0 ? " " : "", (int)row->key_len, row->key);
    ck_assert_uint_gt(row->doc.seq, 0);
    ck_assert_ptr_null(row->doc.body);
    ck_assert_uint_eq(row->doc.size, 4);
    ck_assert_mem_eq(row->doc.type, "text/plain", row->doc.type_len);
    return ++l->calls < l->most;
}

static void keys(void)
{
    static const char *const all[] = {"a", "a!", "a/1", "a/2", "a/b/3", "a/b/4", "a0",
                                      "b", "b/1", "A", "\xc3\xa9/1", "a/\xf0\x9f\x93\x9c"};
    for (size_t i = 0; i < COUNT(all); i++)
        apply(tdb_put(all[i], "body"));
}

static const struct {
    const char *prefix, *after;
    unsigned limit;
    const char *expected;
} ranges[] = {
    {"", "", 100, "A a a! a/1 a/2 a/b/3 a/b/4 a/\xf0\x9f\x93\x9c a0 b b/1 \xc3\xa9/1"},
    {"", "", 3, "A a a!"},
    {"", "", 1, "A"},
    {"", "", 0, ""},
    {"", "a", 2, "a! a/1"},
    {"", "a/", 2, "a/1 a/2"},
    {"", "a/1", 1, "a/2"},
    {"", "a/1x", 1, "a/2"},
    {"", "b/1", 9, "\xc3\xa9/1"},
    {"", "\xc3\xa9/1", 9, ""},
    {"", "\xff", 9, ""},
    {"a/", "", 100, "a/1 a/2 a/b/3 a/b/4 a/\xf0\x9f\x93\x9c"},
    {"a/", "", 2, "a/1 a/2"},
    {"a/", "a/2", 2, "a/b/3 a/b/4"},
    {"a/", "a/b/4", 9, "a/\xf0\x9f\x93\x9c"},
    {"a/", "a/\xf0\x9f\x93\x9c", 9, ""},
    {"a/b/", "", 9, "a/b/3 a/b/4"},
    {"a/b/", "a/b/3", 9, "a/b/4"},
    {"b/", "", 9, "b/1"},
    {"\xc3\xa9/", "", 9, "\xc3\xa9/1"},
    {"c/", "", 9, ""},
    {"a/1/", "", 9, ""},
    {"A/", "", 9, ""},
    /* after, outside of what is below the prefix */
    {"a/", "A", 2, "a/1 a/2"},
    {"a/", "a", 2, "a/1 a/2"},
    {"a/", "a!", 2, "a/1 a/2"},
    {"a/", "a/", 2, "a/1 a/2"},
    {"a/", "a0", 9, ""},
    {"a/", "b", 9, ""},
    {"a/b/", "a/2", 9, "a/b/3 a/b/4"},
    {"a/b/", "a/c", 9, ""},
};

START_TEST(a_part_of_the_keys)
{
    struct listed l = {.most = 1000};
    struct db_doc_range r = {.prefix = ranges[_i].prefix, .prefix_len = strlen(ranges[_i].prefix), .after = ranges[_i].after,
                             .after_len = strlen(ranges[_i].after), .limit = ranges[_i].limit};
    keys();
    ck_assert_int_eq(db_doc_list(reader, &r, take, &l), DB_OK);
    ck_assert_str_eq(l.text, ranges[_i].expected);
}
END_TEST

START_TEST(a_list_that_is_stopped)
{
    struct listed l = {.most = 2};
    keys();
    ck_assert_int_eq(db_doc_list(reader, &(struct db_doc_range){.prefix = "", .after = "", .limit = 100}, take, &l), DB_OK);
    ck_assert_str_eq(l.text, "A a");
    l = (struct listed){.most = 1000};
    ck_assert_int_eq(db_doc_list(reader, &(struct db_doc_range){.prefix = "", .after = "", .limit = 4}, take, &l), DB_OK);
    ck_assert_str_eq(l.text, "A a a! a/1");
}
END_TEST

/* Page by page, every page behind the last key of the one before: all keys once, in order. */
START_TEST(pages_make_a_whole)
{
    for (unsigned limit = 1; limit <= 13; limit++) {
        char all[8192] = "", after[600] = "";
        if (limit == 1)
            keys();
        for (;;) {
            struct listed l = {.most = 1000};
            struct db_doc_range r = {.prefix = "", .after = after, .after_len = strlen(after), .limit = limit};
            ck_assert_int_eq(db_doc_list(reader, &r, take, &l), DB_OK);
            if (l.calls == 0)
                break;
            size_t at = strlen(all);
            snprintf(all + at, sizeof all - at, "%s%s", at > 0 ? " " : "", l.text);
            snprintf(after, sizeof after, "%.500s", strrchr(l.text, ' ') ? strrchr(l.text, ' ') + 1 : l.text);
        }
        ck_assert_str_eq(all, ranges[0].expected);
    }
}
END_TEST

START_TEST(the_longest_prefix)
{
    char prefix[DB_KEY_MAX];
    struct listed l = {.most = 1000};
    memset(prefix, 'p', sizeof prefix);
    prefix[DB_KEY_MAX - 1] = '/';
    struct db_doc_range r = {.prefix = prefix, .prefix_len = sizeof prefix, .after = prefix,
                             .after_len = sizeof prefix, .limit = 9};
    keys();
    ck_assert_int_eq(db_doc_list(reader, &r, take, &l), DB_OK);
    ck_assert_str_eq(l.text, "");
}
END_TEST

/* ---- tokens ---------------------------------------------------------------------------------- */

static struct db_op *token(const char *name, unsigned char hash, const char *read, int64_t expires)
{
    unsigned char bytes[DB_TOKEN_HASH_BYTES] = {hash};
    struct db_op *op = db_op_new(DB_OP_TOKEN_NEW, strlen(name) + sizeof bytes + strlen(read) + 8);
    db_op_copy(op, 0, DB_VALUE_TEXT, name, strlen(name));
    db_op_copy(op, 1, DB_VALUE_BLOB, bytes, sizeof bytes);
    db_op_copy(op, 2, DB_VALUE_TEXT, read, strlen(read));
    db_op_copy(op, 3, DB_VALUE_TEXT, "/w/", 3);
    db_op_int(op, 4, expires);
    return op;
}

static struct db_op *revoke(const char *name)
{
    struct db_op *op = db_op_new(DB_OP_TOKEN_REVOKE, strlen(name));
    db_op_copy(op, 0, DB_VALUE_TEXT, name, strlen(name));
    return op;
}

static enum db_result find(unsigned char hash, struct db_token *t)
{
    unsigned char bytes[DB_TOKEN_HASH_BYTES] = {hash};
    return db_token_find(reader, bytes, t);
}

START_TEST(a_token_is_found_by_its_hash)
{
    struct db_token t;
    apply(token("ann", 1, "/a\n/b/", 0));
    apply(token("bob", 2, "", 12345));
    for (int round = 0; round < 2; round++) { /* within a snapshot and without one */
        ck_assert_int_eq(find(1, &t), DB_OK);
        ck_assert_str_eq(t.name, "ann");
        ck_assert_uint_eq(t.read_len, 6);
        ck_assert_mem_eq(t.read, "/a\n/b/", 6);
        ck_assert_uint_eq(t.write_len, 3);
        ck_assert_mem_eq(t.write, "/w/", 3);
        ck_assert_int_eq(t.expires, 0);
        ck_assert_int_gt(t.created, 1600000000);
        ck_assert_int_eq(find(2, &t), DB_OK);
        ck_assert_str_eq(t.name, "bob");
        ck_assert_uint_eq(t.read_len, 0);
        ck_assert_int_eq(t.expires, 12345);
        ck_assert_int_eq(find(3, &t), DB_NONE);
        if (round == 0)
            ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    }
    db_reader_end(reader);
}
END_TEST

/* The same token many times in a round, others between, prefixes short and long. */
START_TEST(a_token_is_found_again)
{
    static char longer[3000];
    struct db_token t;
    memset(longer, 'x', sizeof longer - 1);
    longer[0] = '/';
    apply(token("short", 1, "/a", 7));
    apply(token("long", 2, longer, 0));
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    for (int i = 0; i < 20; i++) {
        bool is_long = i % 3 == 0;
        ck_assert_int_eq(find(is_long ? 2 : 1, &t), DB_OK);
        ck_assert_str_eq(t.name, is_long ? "long" : "short");
        ck_assert_uint_eq(t.read_len, is_long ? sizeof longer - 1 : 2);
        ck_assert_mem_eq(t.read, is_long ? longer : "/a", t.read_len);
        ck_assert_mem_eq(t.write, "/w/", 3);
        ck_assert_int_eq(t.expires, is_long ? 0 : 7);
        ck_assert_int_eq(find(9, &t), DB_NONE);
    }
    db_reader_end(reader);
}
END_TEST

START_TEST(a_revoked_token_is_gone_at_the_next_snapshot)
{
    struct db_token t;
    apply(token("ann", 1, "/", 0));
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    ck_assert_int_eq(find(1, &t), DB_OK);
    apply(revoke("ann"));
    ck_assert_int_eq(find(1, &t), DB_OK); /* all reads of one snapshot agree */
    db_reader_end(reader);
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    ck_assert_int_eq(find(1, &t), DB_NONE);
    db_reader_end(reader);
    ck_assert_int_eq(find(1, &t), DB_NONE);
}
END_TEST

START_TEST(without_a_snapshot_a_revoked_token_is_gone_at_once)
{
    struct db_token t;
    apply(token("ann", 1, "/", 0));
    ck_assert_int_eq(find(1, &t), DB_OK);
    apply(revoke("ann"));
    ck_assert_int_eq(find(1, &t), DB_NONE);
    apply(token("bob", 1, "/", 0)); /* the same hash, another name */
    ck_assert_int_eq(find(1, &t), DB_OK);
    ck_assert_str_eq(t.name, "bob");
}
END_TEST

static void name_it(void *arg, const struct db_token *t)
{
    size_t at = strlen(arg);
    snprintf((char *)arg + at, 200 - at, "%s:%lld ", t->name, (long long)t->expires);
}

START_TEST(tokens_are_listed_by_name)
{
    char text[200] = "";
    ck_assert_int_eq(db_token_list(reader, name_it, text), DB_OK);
    ck_assert_str_eq(text, "");
    apply(token("c", 1, "", 0));
    apply(token("a", 2, "", 5));
    apply(token("B", 3, "", 0));
    ck_assert_int_eq(db_token_list(reader, name_it, text), DB_OK);
    ck_assert_str_eq(text, "B:0 a:5 c:0 ");
}
END_TEST

static TCase *reader_case(Suite *s, const char *name)
{
    TCase *t = run_case(s, name);
    temp_use(t);
    tcase_add_checked_fixture(t, open_both, close_both);
    return t;
}

int main(void)
{
    Suite *s = suite_create("reader");
    TCase *t = reader_case(s, "snapshot");
    tcase_add_test(t, a_snapshot_stays_while_others_commit);
    tcase_add_test(t, a_snapshot_is_the_newest_commit);
    tcase_add_test(t, what_is_not_committed_is_not_seen);
    tcase_add_test(t, ending_without_a_begin);
    tcase_add_test(t, a_lent_row_does_not_stop_the_writer);
    tcase_add_test(t, a_reader_cannot_write);
    t = reader_case(s, "document");
    tcase_add_test(t, a_document);
    tcase_add_test(t, a_document_without_its_body);
    tcase_add_test(t, an_empty_body);
    tcase_add_test(t, keys_are_compared_byte_for_byte);
    tcase_add_test(t, rows_of_a_person);
    t = reader_case(s, "list");
    tcase_add_loop_test(t, a_part_of_the_keys, 0, COUNT(ranges));
    tcase_add_test(t, a_list_that_is_stopped);
    tcase_add_test(t, pages_make_a_whole);
    tcase_add_test(t, the_longest_prefix);
    t = reader_case(s, "token");
    tcase_add_test(t, a_token_is_found_by_its_hash);
    tcase_add_test(t, a_token_is_found_again);
    tcase_add_test(t, a_revoked_token_is_gone_at_the_next_snapshot);
    tcase_add_test(t, without_a_snapshot_a_revoked_token_is_gone_at_once);
    tcase_add_test(t, tokens_are_listed_by_name);
    return run_suite(s);
}
