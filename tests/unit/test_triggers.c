/* db/schema: rows written from outside, by whatever statement, keep every invariant of the file.
 *
 * After every statement: meta.documents counts the documents; each document has its own sequence number, size and time,
 * and an entry of the change feed; who follows the feed knows exactly the keys that are there. Every scenario runs with
 * recursive_triggers off, as in a plain shell, and on, which makes REPLACE fire delete triggers. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/tdb.h"

static sqlite3 *db;

static void open_shell(void)
{
    tdb_make();
    db = tdb_shell();
}

static void close_shell(void)
{
    sqlite3_close(db);
    tdb_is_sound();
}

static const struct {
    const char *what;
    const char *sql; /* rows that break it */
} invariants[] = {
    {"meta.documents", "SELECT (SELECT count(*) FROM doc) <> (SELECT value FROM meta WHERE name = 'documents')"},
    {"a number of its own", "SELECT count(*) - count(DISTINCT seq) FROM doc"},
    {"the size", "SELECT count(*) FROM doc WHERE size IS NOT length(CAST(body AS BLOB))"},
    {"the time", "SELECT count(*) FROM doc WHERE abs(modified - strftime('%s', 'now')) > 30 OR modified IS NULL"},
    {"an entry in the feed",
     "SELECT count(*) FROM doc WHERE seq IS NOT (SELECT max(seq) FROM change WHERE change.key = doc.key)"},
    {"an entry that says put",
     "SELECT count(*) FROM doc WHERE (SELECT op FROM change WHERE change.seq = doc.seq) IS NOT 'put'"},
    {"who follows the feed knows what is gone",
     "SELECT count(*) FROM (SELECT key, max(seq) AS last FROM change GROUP BY key) AS f"
     " WHERE (SELECT op FROM change WHERE seq = f.last) <> 'delete' AND f.key NOT IN (SELECT key FROM doc)"},
};

static void invariants_hold(const char *sql)
{
    for (size_t i = 0; i < COUNT(invariants); i++)
        ck_assert_msg(tdb_ask(db, invariants[i].sql) == 0, "after %s: %s", sql, invariants[i].what);
}

static void run(const char *sql)
{
    tdb_sql(db, sql);
    invariants_hold(sql);
}

static void recursive(int on)
{
    tdb_sql(db, on ? "PRAGMA recursive_triggers=ON" : "PRAGMA recursive_triggers=OFF");
}

/* Statements separated by lines; a line that begins with ! must fail. */
static const char *const scenarios[] = {
    /* 0: the plain ones */
    "INSERT INTO doc (key, body) VALUES ('a', 'one')\n"
    "INSERT INTO doc (key, type, body) VALUES ('b', 'application/json', '{}'), ('c', 'text/plain', X'00ff'), ('d', 'x/y', '')\n"
    "UPDATE doc SET body = 'two' WHERE key = 'a'\n"
    "UPDATE doc SET type = 'text/html' WHERE key = 'a'\n"
    "UPDATE doc SET body = body || '!', type = 'z/z'\n"
    "DELETE FROM doc WHERE key = 'b'\n"
    "DELETE FROM doc WHERE key = 'absent'\n"
    "DELETE FROM doc",
    /* 1: what a row brings with it is not believed */
    "INSERT INTO doc (key, seq, size, modified, body) VALUES ('a', 99, 12345, 1, 'four')\n"
    "INSERT INTO doc (key, seq, size, modified, body) VALUES ('b', NULL, NULL, NULL, 'four')\n"
    "INSERT INTO doc (key, seq, size, modified, body) VALUES ('c', -1, -1, -1, 'four')\n"
    "INSERT INTO doc (key, seq, size, modified, body) VALUES ('d', 'x', 'y', 'z', 'four')\n"
    "UPDATE doc SET seq = 1, size = 1, modified = 1, body = 'three'\n"
    "INSERT INTO doc (key, seq, type, modified, size, body)"
    " SELECT 'copy/' || key, seq, type, modified, size, body FROM doc",
    /* 2: a key is renamed */
    "INSERT INTO doc (key, body) VALUES ('a', '1'), ('b', '2')\n"
    "UPDATE doc SET key = 'z' WHERE key = 'a'\n"
    "UPDATE doc SET key = 'a', body = '3' WHERE key = 'z'\n"
    "UPDATE doc SET key = 'x/' || key\n"
    "!UPDATE doc SET key = 'x/b' WHERE key = 'x/a'\n"
    "UPDATE OR IGNORE doc SET key = 'x/b' WHERE key = 'x/a'\n"
    "UPDATE doc SET body = '4' WHERE key = 'x/a'\n"
    "UPDATE doc SET key = key",
    /* 3: REPLACE of a key */
    "REPLACE INTO doc (key, body) VALUES ('a', '1')\n"
    "REPLACE INTO doc (key, body) VALUES ('a', '2')\n"
    "INSERT OR REPLACE INTO doc (key, body) VALUES ('a', '3'), ('b', '4'), ('a', '5')\n"
    "DELETE FROM doc WHERE key = 'a'\n"
    "REPLACE INTO doc (key, body) VALUES ('a', '6')\n"
    "INSERT INTO doc (key, body) VALUES ('c', '7')",
    /* 4: OR IGNORE, OR FAIL, conflicts */
    "INSERT INTO doc (key, body) VALUES ('a', '1')\n"
    "INSERT OR IGNORE INTO doc (key, body) VALUES ('a', '2')\n"
    "INSERT OR IGNORE INTO doc (key, body) VALUES ('a', '2'), ('b', '3'), ('a', '4'), ('c', '5')\n"
    "INSERT INTO doc (key, body) VALUES ('d', '6')\n"
    "!INSERT INTO doc (key, body) VALUES ('e', '7'), ('a', '8')\n"
    "!INSERT OR FAIL INTO doc (key, body) VALUES ('f', '7'), ('a', '8')\n"
    "DELETE FROM doc WHERE key = 'd'\n"
    "INSERT OR IGNORE INTO doc (key, body) VALUES ('a', '9')\n"
    "DELETE FROM doc WHERE key = 'a'\n"
    "UPDATE doc SET body = 'x'",
    /* 5: UPSERT */
    "INSERT INTO doc (key, body) VALUES ('a', '1') ON CONFLICT (key) DO UPDATE SET body = excluded.body\n"
    "INSERT INTO doc (key, body) VALUES ('a', '2') ON CONFLICT (key) DO UPDATE SET body = excluded.body\n"
    "INSERT INTO doc (key, body) VALUES ('a', '3'), ('b', '4') ON CONFLICT (key) DO UPDATE SET body = body || excluded.body\n"
    "INSERT INTO doc (key, body) VALUES ('a', '5'), ('c', '6') ON CONFLICT DO NOTHING\n"
    "INSERT INTO doc (key, body) VALUES ('d', '7')",
    /* 6: transactions that are given up */
    "INSERT INTO doc (key, body) VALUES ('a', '1')\n"
    "BEGIN; INSERT INTO doc (key, body) VALUES ('b', '2'); DELETE FROM doc WHERE key = 'a'; ROLLBACK\n"
    "BEGIN; SAVEPOINT s; INSERT INTO doc (key, body) VALUES ('c', '3'); ROLLBACK TO s; RELEASE s;"
    " UPDATE doc SET body = '4'; COMMIT\n"
    "INSERT INTO doc (key, body) VALUES ('d', '5')",
    /* 7: a key that is deleted and written again */
    "INSERT INTO doc (key, body) VALUES ('a', '1')\n"
    "DELETE FROM doc WHERE key = 'a'\n"
    "INSERT INTO doc (key, body) VALUES ('a', '2')\n"
    "DELETE FROM doc WHERE key = 'a'\n"
    "INSERT INTO doc (key, body) VALUES ('a', '3')",
    /* 8: rows named by id */
    "INSERT INTO doc (id, key, body) VALUES (5, 'a', '1'), (7, 'b', '2')\n"
    "UPDATE doc SET id = 6 WHERE key = 'a'\n"
    "UPDATE doc SET id = 100 + id, body = 'x'\n"
    "!INSERT INTO doc (id, key, body) VALUES (-1, 'c', '3')\n"
    "INSERT INTO doc (key, body) VALUES ('d', '4')\n"
    "REPLACE INTO doc (id, key, body) VALUES (106, 'a', '5')\n"
    "INSERT INTO doc (key, body) VALUES ('e', '6')",
    /* 9: UPDATE OR REPLACE takes the place of another document */
    "INSERT INTO doc (key, body) VALUES ('a', '1'), ('b', '2'), ('c', '3')\n"
    "UPDATE OR REPLACE doc SET key = 'b' WHERE key = 'a'\n"
    "UPDATE doc SET body = 'x'\n"
    "UPDATE OR REPLACE doc SET key = 'd' WHERE key = 'c'\n"
    "INSERT INTO doc (key, body) VALUES ('a', '4')",
};

static void scenario(const char *text)
{
    char copy[4096];
    char *rest = copy;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *sql; (sql = strsep(&rest, "\n")) != NULL;) {
        if (*sql != '!') {
            run(sql);
            continue;
        }
        ck_assert_msg(!tdb_try(db, sql + 1), "%s", sql);
        invariants_hold(sql);
    }
}

START_TEST(a_scenario)
{
    recursive(_i % 2);
    scenario(scenarios[_i / 2]);
}
END_TEST

/* A REPLACE may take the place of rows by their id too: documents that are gone must be said to be gone. */
static const char *const vanishing[] = {
    "INSERT INTO doc (id, key, body) VALUES (5, 'a', '1')\n"
    "REPLACE INTO doc (id, key, body) VALUES (5, 'b', '2')",
    "INSERT INTO doc (id, key, body) VALUES (5, 'a', '1'), (6, 'b', '2')\n"
    "REPLACE INTO doc (id, key, body) VALUES (5, 'b', '3')",
    "INSERT INTO doc (id, key, body) VALUES (5, 'a', '1'), (6, 'b', '2'), (7, 'c', '3')\n"
    "UPDATE OR REPLACE doc SET id = 5 WHERE key = 'b'",
    "INSERT INTO doc (id, key, body) VALUES (5, 'a', '1'), (6, 'b', '2'), (7, 'c', '3')\n"
    "UPDATE OR REPLACE doc SET id = 5, key = 'c' WHERE key = 'b'",
};

START_TEST(what_is_replaced_by_id_is_in_the_feed)
{
    recursive(_i % 2);
    scenario(vanishing[_i / 2]);
}
END_TEST

START_TEST(numbers_only_grow)
{
    static const char *const statements[] = {
        "INSERT INTO doc (key, body) VALUES ('a', '1')",  "UPDATE doc SET body = '2'",
        "REPLACE INTO doc (key, body) VALUES ('a', '3')", "DELETE FROM doc",
        "INSERT INTO doc (key, body) VALUES ('a', '4')",  "DELETE FROM change; DELETE FROM doc",
        "INSERT INTO doc (key, body) VALUES ('b', '5')",  "UPDATE doc SET key = 'c'",
        "UPDATE doc SET type = 'x/y'",                    "UPDATE doc SET id = 77",
    };
    int64_t last = 0;
    for (size_t i = 0; i < COUNT(statements); i++) {
        tdb_sql(db, statements[i]);
        int64_t seq = tdb_ask(db, "SELECT max((SELECT seq FROM sqlite_sequence WHERE name = 'change'),"
                                    " (SELECT coalesce(max(seq), 0) FROM doc))");
        ck_assert_int_gt(seq, last);
        ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM doc WHERE seq > (SELECT seq FROM sqlite_sequence"
                                       " WHERE name = 'change')"), 0);
        last = seq;
    }
}
END_TEST

/* How a restored copy is kept from giving numbers twice: docs/operations say so. */
START_TEST(numbers_can_be_advanced)
{
    run("INSERT INTO doc (key, body) VALUES ('a', '1')");
    tdb_sql(db, "UPDATE sqlite_sequence SET seq = 1000 WHERE name = 'change'");
    run("INSERT INTO doc (key, body) VALUES ('b', '2')");
    ck_assert_int_eq(tdb_ask(db, "SELECT seq FROM doc WHERE key = 'b'"), 1001);
    run("UPDATE doc SET body = '3' WHERE key = 'a'");
    ck_assert_int_eq(tdb_ask(db, "SELECT seq FROM doc WHERE key = 'a'"), 1002);
}
END_TEST

START_TEST(an_entry_names_the_one_it_replaces)
{
    run("INSERT INTO doc (key, body) VALUES ('a', '1'), ('b', '2')");
    run("UPDATE doc SET body = '3' WHERE key = 'a'");
    ck_assert_int_eq(tdb_ask(db, "SELECT prev FROM change WHERE seq = 3"), 1);
    run("DELETE FROM doc WHERE key = 'a'");
    ck_assert_int_eq(tdb_ask(db, "SELECT prev FROM change WHERE seq = 4"), 3);
    run("UPDATE doc SET key = 'c' WHERE key = 'b'");
    ck_assert_int_eq(tdb_ask(db, "SELECT prev FROM change WHERE seq = 5 AND key = 'b' AND op = 'delete'"), 2);
    ck_assert_int_eq(tdb_ask(db, "SELECT prev IS NULL FROM change WHERE seq = 6 AND key = 'c' AND op = 'put'"), 1);
}
END_TEST

/* ---- rows that are refused ------------------------------------------------------------------- */

static const char *const refused[] = {
    "INSERT INTO doc (key, body) VALUES ('', 'x')",
    "INSERT INTO doc (key, body) VALUES (NULL, 'x')",
    "INSERT INTO doc (key, body) VALUES (X'61', 'x')",
    "INSERT INTO doc (key, body) VALUES ('/', 'x')",
    "INSERT INTO doc (key, body) VALUES ('/a', 'x')",
    "INSERT INTO doc (key, body) VALUES ('a/', 'x')",
    "INSERT INTO doc (key, body) VALUES ('a//b', 'x')",
    "INSERT INTO doc (key, body) VALUES (printf('%.513c', 'k'), 'x')",
    "INSERT INTO doc (key, body) VALUES (printf('%.257c', char(233)), 'x')",
    "INSERT INTO doc (key, body) VALUES ('a', NULL)",
    "INSERT INTO doc (key, body) VALUES ('a', 5)",
    "INSERT INTO doc (key, body) VALUES ('a', 1.5)",
    "INSERT INTO doc (key, type, body) VALUES ('a', '', 'x')",
    "INSERT INTO doc (key, type, body) VALUES ('a', NULL, 'x')",
    "INSERT INTO doc (key, type, body) VALUES ('a', X'78', 'x')",
    "INSERT INTO doc (key, type, body) VALUES ('a', printf('%.256c', 't'), 'x')",
    "INSERT INTO doc (body) VALUES ('x')",
    "UPDATE doc SET key = 'a/' WHERE key = 'there'",
    "UPDATE doc SET key = NULL WHERE key = 'there'",
    "UPDATE doc SET body = NULL WHERE key = 'there'",
    "UPDATE doc SET type = '' WHERE key = 'there'",
    "INSERT INTO change (key, op) VALUES ('a', 'patch')",
    "INSERT INTO token (name, hash, created) VALUES ('a', X'00', 1)",
};

START_TEST(a_row_that_is_refused_changes_nothing)
{
    run("INSERT INTO doc (key, body) VALUES ('there', '1')");
    ck_assert_msg(!tdb_try(db, refused[_i]), "%s", refused[_i]);
    invariants_hold(refused[_i]);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM doc"), 1);
    ck_assert_int_eq(tdb_ask(db, "SELECT max(seq) FROM change"), 1);
}
END_TEST

START_TEST(borders_of_keys_and_types)
{
    run("INSERT INTO doc (key, body) VALUES ('k', '')");
    run("INSERT INTO doc (key, body) VALUES (printf('%.512c', 'k'), 'x')");
    run("INSERT INTO doc (key, body) VALUES (printf('%.256c', char(233)), 'x')");
    run("INSERT INTO doc (key, type, body) VALUES ('t', printf('%.255c', 't'), 'x')");
    run("INSERT INTO doc (key, type, body) VALUES ('u', 't', X'')");
    run("INSERT INTO doc (key) VALUES ('v')");
}
END_TEST

/* ---- pruning --------------------------------------------------------------------------------- */

/* Prunes in steps of `look` entries until nothing is left to look at. */
static void prune(unsigned look)
{
    struct db_conn c;
    uint64_t left = 1, before = UINT64_MAX;
    tdb_open(&c);
    while (left > 0) {
        ck_assert_int_eq(db_burst_prune(&c, look, &left), DB_OK);
        ck_assert_uint_lt(left, before);
        before = left;
    }
    db_conn_close(&c);
}

static void one_entry_for_each_key(void)
{
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) - count(DISTINCT key) FROM change"), 0);
    invariants_hold("prune");
}

START_TEST(replaced_entries_are_removed)
{
    scenario(scenarios[_i]);
    tdb_sql(db, "PRAGMA wal_checkpoint"); /* reads, so that the next look is not a cached one */
    prune(_i % 2 ? 1 : 4096);
    one_entry_for_each_key();
}
END_TEST

START_TEST(pruning_in_steps_is_pruning_at_once)
{
    for (int i = 0; i < 300; i++) {
        char sql[200];
        snprintf(sql, sizeof sql, "INSERT INTO doc (key, body) VALUES ('k%d', '%d') ON CONFLICT (key) DO UPDATE"
                                  " SET body = excluded.body", i * i % 17, i);
        tdb_sql(db, sql);
    }
    prune((unsigned)_i);
    one_entry_for_each_key();
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM change"), tdb_ask(db, "SELECT count(*) FROM doc"));
    ck_assert_int_eq(tdb_ask(db, "SELECT value FROM meta WHERE name = 'pruned'"), 300);
}
END_TEST

START_TEST(pruning_an_empty_store)
{
    prune(100);
    prune(1);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM change"), 0);
}
END_TEST

/* What was pruned is not looked at again; what comes later is. */
START_TEST(pruning_goes_on_where_it_ended)
{
    run("INSERT INTO doc (key, body) VALUES ('a', '1')");
    prune(10);
    run("UPDATE doc SET body = '2'");
    prune(10);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM change"), 1);
    run("DELETE FROM doc");
    prune(10);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM change WHERE op = 'delete'"), 1);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM change"), 1);
}
END_TEST

/* A key that comes and goes must not grow the feed for ever. */
START_TEST(tombstones_of_a_key_that_came_back_are_removed)
{
    for (int i = 0; i < 50; i++) {
        run("INSERT INTO doc (key, body) VALUES ('a', '1')");
        run("DELETE FROM doc");
    }
    prune(4096);
    one_entry_for_each_key();
}
END_TEST

START_TEST(entries_of_replaced_rows_are_removed)
{
    recursive(_i);
    for (int i = 0; i < 50; i++)
        run("REPLACE INTO doc (key, body) VALUES ('a', '1')");
    prune(4096);
    one_entry_for_each_key();
}
END_TEST

static TCase *shell_case(Suite *s, const char *name)
{
    TCase *t = run_case(s, name);
    temp_use(t);
    tcase_add_checked_fixture(t, open_shell, close_shell);
    return t;
}

int main(void)
{
    Suite *s = suite_create("triggers");
    TCase *t = shell_case(s, "outside");
    tcase_add_loop_test(t, a_scenario, 0, 2 * COUNT(scenarios));
    tcase_add_loop_test(t, what_is_replaced_by_id_is_in_the_feed, 0, 2 * COUNT(vanishing));
    tcase_add_test(t, numbers_only_grow);
    tcase_add_test(t, numbers_can_be_advanced);
    tcase_add_test(t, an_entry_names_the_one_it_replaces);
    t = shell_case(s, "refused");
    tcase_add_loop_test(t, a_row_that_is_refused_changes_nothing, 0, COUNT(refused));
    tcase_add_test(t, borders_of_keys_and_types);
    t = shell_case(s, "prune");
    tcase_add_loop_test(t, replaced_entries_are_removed, 0, 3);
    tcase_add_loop_test(t, pruning_in_steps_is_pruning_at_once, 1, 9);
    tcase_add_test(t, pruning_an_empty_store);
    tcase_add_test(t, pruning_goes_on_where_it_ended);
    tcase_add_test(t, tombstones_of_a_key_that_came_back_are_removed);
    tcase_add_loop_test(t, entries_of_replaced_rows_are_removed, 0, 2);
    return run_suite(s);
}
