/* db/search_index: the index follows whoever writes, in steps, and its damage stops no document. */
#include "db/search_index.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "db/check.h"
#include "tests/unit/sdb.h"

/* ---- following ------------------------------------------------------------------------------- */

static const struct {
    const char *sql, *keys;
} outside[] = {
    {"UPDATE doc SET body = 'other' WHERE key = 'n/a'", "n/b"},
    {"UPDATE doc SET type = 'image/png' WHERE key = 'n/a'", "n/b"},
    {"UPDATE doc SET key = 'n/z' WHERE key = 'n/a'", "n/b n/z"},
    {"UPDATE doc SET key = 'x/a' WHERE key = 'n/a'", "n/b"},
    {"UPDATE doc SET key = 'n/x' WHERE key = 'x/1'", "n/a n/b n/x"},
    {"UPDATE doc SET id = 99 WHERE key = 'n/a'", "n/a n/b"},
    {"UPDATE OR REPLACE doc SET key = 'n/a' WHERE key = 'x/1'", "n/a n/b"},
    {"UPDATE OR REPLACE doc SET key = 'n/a' WHERE key = 'n/b'", "n/a"},
    {"DELETE FROM doc WHERE key = 'n/a'", "n/b"},
    {"DELETE FROM doc", ""},
    {"INSERT INTO doc (key, type, body) VALUES ('n/c', 'text/plain', 'a word')", "n/a n/b n/c"},
    {"INSERT OR REPLACE INTO doc (key, type, body) VALUES ('n/a', 'text/plain', 'none')", "n/b"},
    {"INSERT OR REPLACE INTO doc (id, key, type, body) SELECT id, 'n/c', type, body FROM doc WHERE key = 'n/a'",
     "n/b n/c"},
    {"INSERT OR REPLACE INTO doc (id, key, type, body) SELECT id, 'x/c', type, body FROM doc WHERE key = 'n/a'", "n/b"},
    {"INSERT OR REPLACE INTO doc (id, key, type, body) SELECT d.id, 'n/b', d.type, d.body FROM doc AS d"
     " WHERE key = 'n/a'", "n/b"},
    {"INSERT OR IGNORE INTO doc (key, type, body) VALUES ('n/a', 'text/plain', 'none')", "n/a n/b"},
    {"INSERT INTO doc (key, type, body) VALUES ('n/a', 'text/plain', 'none')"
     " ON CONFLICT (key) DO UPDATE SET body = excluded.body", "n/b"},
    {"BEGIN; UPDATE doc SET body = 'none'; ROLLBACK", "n/a n/b"},
    {"PRAGMA recursive_triggers = ON; INSERT OR REPLACE INTO doc (key, type, body)"
     " VALUES ('n/a', 'text/plain', 'none')", "n/b"},
};

START_TEST(the_index_follows_rows_written_from_outside)
{
    sdb_put("n/a", "the word");
    sdb_put("n/b", "the word");
    sdb_put("x/1", "the word");
    sdb_add("n/");
    sqlite3 *db = tdb_shell();
    tdb_sql(db, outside[_i].sql);
    sqlite3_close(db);
    sdb_settle();
    ck_assert_str_eq(sdb_search("n/", "word"), outside[_i].keys);
    tdb_is_sound();
}
END_TEST

START_TEST(a_search_sees_that_the_index_is_behind)
{
    sdb_add("n/");
    sdb_put("x/a", "word");
    ck_assert_int_eq(sdb_look("n/"), DB_SEARCH_READY);
    sdb_put("n/a", "word");
    ck_assert_int_eq(sdb_look("n/"), DB_SEARCH_BEHIND);
    ck_assert_int_eq(sdb_look("n/sub/"), DB_SEARCH_READY);
    ck_assert_int_eq(sdb_apply(sdb_op(DB_OP_SEARCH_SYNC, NULL)), DB_OK);
    ck_assert_int_eq(sdb_look("n/"), DB_SEARCH_READY);
    ck_assert_int_eq(sdb_apply(tdb_delete("n/a")), DB_OK);
    ck_assert_int_eq(sdb_look("n/"), DB_SEARCH_BEHIND);
    sdb_settle();
    ck_assert_str_eq(sdb_search("n/", "word"), "");
    tdb_is_sound();
}
END_TEST

START_TEST(far_behind_is_behind)
{
    sdb_add("n/");
    sqlite3 *db = tdb_shell();
    tdb_sql(db, "WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 5000)"
                " INSERT INTO doc (key, type, body) SELECT 'x/' || n, 'text/plain', 'word' FROM i");
    sqlite3_close(db);
    ck_assert_int_eq(sdb_look("n/"), DB_SEARCH_BEHIND);
    ck_assert_uint_ge(sdb_settle(), 2);
    ck_assert_int_eq(sdb_look("n/"), DB_SEARCH_READY);
}
END_TEST

START_TEST(the_operation_sees_what_its_burst_wrote)
{
    sdb_add("n/");
    struct db_op *list = tdb_list(tdb_put("n/a", "word"), sdb_op(DB_OP_SEARCH_SYNC, NULL), NULL);
    ck_assert_int_eq(tdb_burst(&sdb_conn, list), DB_OK);
    tdb_free(list);
    ck_assert_str_eq(sdb_search("n/", "word"), "n/a");
}
END_TEST

/* More text than a step takes. */
static void fill(unsigned n)
{
    sqlite3 *db = tdb_shell();
    char sql[300];
    snprintf(sql, sizeof sql,
             "WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < %u)"
             " INSERT INTO doc (key, type, body) SELECT printf('n/%%05d', n), 'text/plain',"
             " 'word ' || hex(randomblob(500)) FROM i", n);
    tdb_sql(db, sql);
    sqlite3_close(db);
}

/* Gives the write lock back after longer than a step may take. */
static void *let_go(void *holder)
{
    usleep(30000);
    tdb_sql(holder, "ROLLBACK");
    return NULL;
}

START_TEST(a_step_that_begins_late_does_something)
{
    sqlite3 *holder = tdb_shell();
    bool more = true;
    sdb_put("n/a", "word");
    ck_assert_int_eq(sdb_apply(sdb_op(DB_OP_SEARCH_ADD, "n/")), DB_OK);
    sdb_put("n/b", "word");
    for (unsigned i = 0; i < 6 && more; i++) {
        pthread_t thread;
        tdb_sql(holder, "BEGIN IMMEDIATE");
        ck_assert_int_eq(pthread_create(&thread, NULL, let_go, holder), 0);
        ck_assert_int_eq(db_search_step(&sdb_conn, &more), DB_OK);
        pthread_join(thread, NULL);
    }
    sqlite3_close(holder);
    ck_assert(!more);
    ck_assert_str_eq(sdb_search("n/", "word"), "n/a n/b");
}
END_TEST

START_TEST(a_large_collection_is_indexed_in_steps)
{
    bool more = false;
    fill(1000);
    ck_assert_int_eq(sdb_apply(sdb_op(DB_OP_SEARCH_ADD, "n/")), DB_OK);
    ck_assert_int_eq(sdb_look("n/"), DB_SEARCH_INDEXING);
    ck_assert_int_eq(db_search_step(&sdb_conn, &more), DB_OK);
    ck_assert(more);
    ck_assert_int_eq(sdb_look("n/"), DB_SEARCH_INDEXING);
    int64_t so_far = tdb_ask_file("SELECT count(*) FROM search_item");
    ck_assert(so_far > 0 && so_far < 1000);
    /* changed on both sides of where it stands, and by a program that then dies */
    sdb_put("n/00001", "changed");
    sdb_put("n/00999", "changed");
    ck_assert_int_eq(sdb_apply(tdb_delete("n/00002")), DB_OK);
    ck_assert_int_eq(sdb_apply(tdb_delete("n/01000")), DB_OK);
    sdb_put("n/00000", "word");
    sdb_put("n/99999", "word");
    db_conn_close(&sdb_conn);
    tdb_open(&sdb_conn);
    ck_assert_uint_ge(sdb_settle(), 2);
    ck_assert_int_eq(sdb_look("n/"), DB_SEARCH_READY);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM search_item"), 1000);
    ck_assert_str_eq(sdb_search("n/", "changed"), "n/00001 n/00999");
    tdb_is_sound();
}
END_TEST

START_TEST(a_large_collection_is_taken_out_in_steps)
{
    bool more = false;
    fill(1000);
    sdb_add("n/");
    ck_assert_int_eq(sdb_apply(sdb_op(DB_OP_SEARCH_REMOVE, "n/")), DB_OK);
    ck_assert_int_eq(sdb_look("n/"), DB_SEARCH_NOT_HERE);
    ck_assert_int_eq(sdb_apply(sdb_op(DB_OP_SEARCH_ADD, "n/")), DB_EXISTS);
    ck_assert_int_eq(sdb_apply(sdb_op(DB_OP_SEARCH_REMOVE, "n/")), DB_NONE);
    ck_assert_int_eq(db_search_step(&sdb_conn, &more), DB_OK);
    ck_assert(more);
    sdb_put("n/00003", "word");
    ck_assert_int_eq(sdb_apply(tdb_delete("n/00900")), DB_OK);
    sdb_settle();
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM search_collection"), 0);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM search_item"), 0);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc_text"), 0);
    tdb_is_sound();
    sdb_add("n/");
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM search_item"), 999);
    tdb_is_sound();
}
END_TEST

START_TEST(one_collection_can_be_made_again)
{
    fill(600);
    sdb_put("m/1", "word");
    sdb_add("n/");
    sdb_add("m/");
    ck_assert_int_eq(sdb_apply(sdb_op(DB_OP_SEARCH_REBUILD, "n/")), DB_OK);
    ck_assert_int_eq(sdb_look("n/"), DB_SEARCH_INDEXING);
    ck_assert_str_eq(sdb_search("m/", "word"), "m/1");
    sdb_settle();
    ck_assert_int_eq(sdb_look("n/"), DB_SEARCH_READY);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM search_item"), 601);
    tdb_is_sound();
}
END_TEST

/* ---- opting in ------------------------------------------------------------------------------- */

static const struct {
    const char *prefix;
    enum db_result result;
} additions[] = {
    {"n/", DB_EXISTS}, {"n/sub/", DB_EXISTS}, {"", DB_EXISTS}, {"n", DB_INVALID},   {"/", DB_INVALID},
    {"m", DB_INVALID}, {"na/", DB_OK},        {"m/", DB_OK},   {"n\xc3\xa9/", DB_OK}, {"N/", DB_OK},
};

START_TEST(collections_do_not_overlap)
{
    sdb_add("n/");
    enum db_result result = sdb_apply(sdb_op(DB_OP_SEARCH_ADD, additions[_i].prefix));
    if (additions[_i].result == DB_INVALID)
        ck_assert(result == DB_INVALID || result == DB_EXISTS);
    else
        ck_assert_int_eq(result, additions[_i].result);
    sdb_settle();
    tdb_is_sound();
}
END_TEST

START_TEST(there_are_at_most_64)
{
    char prefix[16];
    for (int i = 0; i < DB_SEARCH_COLLECTIONS_MAX; i++) {
        snprintf(prefix, sizeof prefix, "c%d/", i);
        ck_assert_int_eq(sdb_apply(sdb_op(DB_OP_SEARCH_ADD, prefix)), DB_OK);
    }
    ck_assert_int_eq(sdb_apply(sdb_op(DB_OP_SEARCH_ADD, "more/")), DB_EXISTS);
}
END_TEST

START_TEST(what_is_not_there_cannot_be_changed)
{
    ck_assert_int_eq(sdb_apply(sdb_op(DB_OP_SEARCH_REMOVE, "n/")), DB_NONE);
    ck_assert_int_eq(sdb_apply(sdb_op(DB_OP_SEARCH_REBUILD, "n/")), DB_NONE);
    ck_assert_int_eq(sdb_apply(sdb_op(DB_OP_SEARCH_SYNC, NULL)), DB_OK);
    ck_assert_int_eq(sdb_apply(sdb_op(DB_OP_SEARCH_REBUILD, NULL)), DB_OK);
    tdb_is_sound();
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

/* Makes the index contradict itself, as a program might that meddles with its tables. */
static void damage(void)
{
    sqlite3 *db = tdb_shell();
    tdb_sql(db, "UPDATE doc_text_data SET block = x'ffff' WHERE id = 10");
    sqlite3_close(db);
}

START_TEST(a_damaged_index_stops_no_document)
{
    bool more = false;
    sdb_put("n/a", "word");
    sdb_add("n/");
    damage();
    db_conn_close(&sdb_conn);
    tdb_open(&sdb_conn);
    sdb_put("n/a", "another");
    sdb_put("n/b", "word");
    ck_assert_int_eq(db_search_step(&sdb_conn, &more), DB_OK);
    ck_assert_int_eq(sdb_look("n/"), DB_SEARCH_DAMAGED);
    struct db_op *list = tdb_list(tdb_put("n/c", "word"), sdb_op(DB_OP_SEARCH_SYNC, NULL), tdb_put("n/d", "word"), NULL);
    ck_assert_int_eq(tdb_burst(&sdb_conn, list), DB_OK);
    tdb_free(list);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc"), 4);
    ck_assert_int_eq(sdb_apply(sdb_op(DB_OP_SEARCH_REBUILD, NULL)), DB_OK);
    sdb_settle();
    ck_assert_str_eq(sdb_search("n/", "word"), "n/b n/c n/d");
    tdb_is_sound();
}
END_TEST

START_TEST(damage_found_in_a_burst_fails_the_step_alone)
{
    sdb_put("n/a", "word");
    sdb_add("n/");
    damage();
    db_conn_close(&sdb_conn);
    tdb_open(&sdb_conn);
    struct db_op *list = tdb_list(tdb_put("n/a", "first"), sdb_op(DB_OP_SEARCH_SYNC, NULL), tdb_put("n/b", "last"), NULL);
    ck_assert_int_eq(tdb_burst(&sdb_conn, list), DB_OK);
    ck_assert_int_eq(list->result, DB_OK);
    ck_assert_int_eq(list->next->result, DB_OK);
    ck_assert_int_eq(list->next->next->result, DB_OK);
    tdb_free(list);
    ck_assert_int_eq(sdb_look("n/"), DB_SEARCH_DAMAGED);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM doc WHERE body IN ('first', 'last')"), 2);
}
END_TEST

/* Each breaks one rule of hanji check. */
static const char *const breaks[] = {
    "UPDATE meta SET value = 1 WHERE name = 'search_damaged'",
    "DELETE FROM search_item",
    "UPDATE search_item SET seq = 0",
    "INSERT INTO search_item (key, seq) VALUES ('n/none', 1)",
    "UPDATE search_collection SET prefix = 'other/'",
    "DELETE FROM doc_text",
    "UPDATE doc_text SET text = 'another'",
};

static void count(void *arg, bool fault, const char *finding)
{
    (void)finding;
    *(unsigned *)arg += fault;
}

START_TEST(check_finds_what_is_wrong)
{
    unsigned findings = 0;
    sdb_put("n/a", "word");
    sdb_put_json("n/b", "[\"word\"]");
    sdb_add("n/");
    tdb_is_sound();
    sqlite3 *db = tdb_shell();
    tdb_sql(db, breaks[_i]);
    sqlite3_close(db);
    ck_assert_int_eq(db_check(&tdb_config, count, &findings, &tdb_error), DB_INVALID);
    ck_assert_uint_ge(findings, 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("search_index");
    TCase *t = run_case(s, "search_index");
    temp_use(t);
    tcase_add_checked_fixture(t, sdb_open, sdb_close);
    tcase_add_loop_test(t, the_index_follows_rows_written_from_outside, 0, COUNT(outside));
    tcase_add_test(t, a_search_sees_that_the_index_is_behind);
    tcase_add_test(t, far_behind_is_behind);
    tcase_add_test(t, the_operation_sees_what_its_burst_wrote);
    tcase_add_test(t, a_large_collection_is_indexed_in_steps);
    tcase_add_test(t, a_step_that_begins_late_does_something);
    tcase_add_test(t, a_large_collection_is_taken_out_in_steps);
    tcase_add_test(t, one_collection_can_be_made_again);
    tcase_add_loop_test(t, collections_do_not_overlap, 0, COUNT(additions));
    tcase_add_test(t, there_are_at_most_64);
    tcase_add_test(t, what_is_not_there_cannot_be_changed);
    tcase_add_test(t, a_damaged_index_stops_no_document);
    tcase_add_test(t, damage_found_in_a_burst_fails_the_step_alone);
    tcase_add_loop_test(t, check_finds_what_is_wrong, 0, COUNT(breaks));
    return run_suite(s);
}
