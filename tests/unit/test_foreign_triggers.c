/* db/burst with triggers that somebody added: the ETags that are answered are those that are stored, and what such a
 * trigger refuses or takes back is not acknowledged. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/tdb.h"

static struct db_conn conn;

static void open_conn(void)
{
    tdb_init();
    tdb_open(&conn);
}

static void close_conn(void)
{
    db_conn_close(&conn);
    tdb_is_sound();
}

static void add(const char *sql)
{
    sqlite3 *db = tdb_shell();
    tdb_sql(db, sql);
    sqlite3_close(db);
}

static int64_t seq_of(const char *key)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT coalesce((SELECT seq FROM doc WHERE key = '%s'), -1)", key);
    return tdb_ask_file(sql);
}

/* Every put that was acknowledged must be stored with the number that was answered. A key is NULL where a later operation
 * changed the document again. */
static void answers_are_stored(const struct db_op *list, const char *const *keys)
{
    size_t i = 0;
    for (const struct db_op *op = list; op != NULL; op = op->next, i++)
        if (op->kind == DB_OP_PUT && op->result == DB_OK && keys[i] != NULL)
            ck_assert_msg(seq_of(keys[i]) == (int64_t)op->seq, "%s: answered %llu, stored %lld", keys[i],
                          (unsigned long long)op->seq, (long long)seq_of(keys[i]));
}

/* Triggers that write further documents, or the same one again. */
static const char *const writing[] = {
    "CREATE TRIGGER t AFTER INSERT ON doc WHEN new.key NOT LIKE 'log/%'"
    " BEGIN INSERT INTO doc (key, body) VALUES ('log/' || new.key, 'new'); END",
    "CREATE TRIGGER t AFTER UPDATE OF body ON doc WHEN new.key NOT LIKE 'log/%'"
    " BEGIN INSERT INTO doc (key, body) VALUES ('log/' || new.key, 'x') ON CONFLICT (key) DO UPDATE SET body = body || 'x'; END",
    "CREATE TRIGGER t AFTER DELETE ON doc WHEN old.key NOT LIKE 'log/%'"
    " BEGIN INSERT OR REPLACE INTO doc (key, body) VALUES ('log/gone', old.key); END",
    "CREATE TRIGGER t AFTER INSERT ON doc WHEN new.key NOT LIKE 'log/%'"
    " BEGIN UPDATE doc SET body = upper(body) WHERE id = new.id; END",
    "CREATE TRIGGER t BEFORE INSERT ON doc WHEN new.key NOT LIKE 'log/%'"
    " BEGIN INSERT INTO doc (key, body) VALUES ('log/before/' || new.key, 'x'); END",
    "INSERT INTO doc (key, body) VALUES ('log/count', '0');"
    "CREATE TRIGGER t AFTER INSERT ON doc WHEN new.key NOT LIKE 'log/%'"
    " BEGIN UPDATE doc SET body = (body + 1) || '' WHERE key = 'log/count'; END",
};

START_TEST(a_trigger_that_writes_documents)
{
    static const char *const keys[] = {NULL, "b", "a", NULL, NULL, "d", "e"};
    add(writing[_i]);
    struct db_op *list = tdb_list(tdb_put("a", "1"), tdb_put("b", "2"), tdb_put("a", "3"), tdb_put("c", "4"), tdb_delete("c"),
                                  tdb_put("d", "5"), tdb_put("e", "6"), NULL);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    uint64_t last = 0;
    for (struct db_op *op = list; op != NULL; op = op->next) {
        ck_assert_int_eq(op->result, DB_OK);
        ck_assert_uint_gt(op->seq, last);
        last = op->seq;
    }
    answers_are_stored(list, keys);
    tdb_free(list);
}
END_TEST

START_TEST(preconditions_see_what_triggers_wrote)
{
    static const char *const keys[] = {"a", "log/a", "b", "log/a"};
    add(writing[0]);
    struct db_op *list = tdb_list(tdb_put("a", "1"), tdb_put("log/a", "lost"), tdb_put("b", "2"), tdb_put("log/a", "mine"), NULL);
    list->next->precond.none_match = (struct db_tags){.given = 1, .any = 1};
    list->next->next->next->precond.match = (struct db_tags){.given = 1, .any = 1};
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    ck_assert_int_eq(list->result, DB_OK);
    ck_assert_int_eq(list->next->result, DB_PRECONDITION);
    ck_assert_int_eq(list->next->next->result, DB_OK);
    ck_assert_int_eq(list->next->next->next->result, DB_OK);
    answers_are_stored(list, keys);
    tdb_free(list);
}
END_TEST

/* The next burst, without such a trigger firing, foresees its numbers again. */
START_TEST(bursts_follow_each_other)
{
    static const char *const key[] = {"log/a"}, *const other[] = {"x"};
    add(writing[0]);
    for (int i = 0; i < 5; i++) {
        struct db_op *op = tdb_put(i % 2 ? "log/a" : "x", "1");
        ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
        answers_are_stored(op, i % 2 ? key : other);
        tdb_free(op);
    }
}
END_TEST

/* ---- triggers that refuse -------------------------------------------------------------------- */

#define REFUSE(how) "CREATE TRIGGER t BEFORE INSERT ON doc WHEN new.key = 'bad' BEGIN SELECT RAISE(" how "); END"

START_TEST(what_a_trigger_aborts_fails_alone)
{
    static const char *const keys[] = {"a", "bad", "c"};
    add(_i == 0 ? REFUSE("ABORT, 'no'") : REFUSE("FAIL, 'no'"));
    struct db_op *list = tdb_list(tdb_put("a", "1"), tdb_put("bad", "2"), tdb_put("c", "3"), NULL);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    ck_assert_int_eq(list->result, DB_OK);
    ck_assert_int_eq(list->next->result, DB_INVALID);
    ck_assert_int_eq(list->next->next->result, DB_OK);
    ck_assert_int_eq(seq_of("bad"), -1);
    answers_are_stored(list, keys);
    tdb_free(list);
}
END_TEST

/* An acknowledged write is there. */
START_TEST(what_a_trigger_ignores_is_not_acknowledged)
{
    static const char *const keys[] = {"a", "bad", "c"};
    add(REFUSE("IGNORE"));
    struct db_op *list = tdb_list(tdb_put("a", "1"), tdb_put("bad", "2"), tdb_put("c", "3"), NULL);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    ck_assert_int_eq(list->result, DB_OK);
    ck_assert_int_eq(list->next->next->result, DB_OK);
    ck_assert_int_ne(list->next->result, DB_OK);
    answers_are_stored(list, keys);
    tdb_free(list);
}
END_TEST

/* Whoever of the burst is told so is stored, and nobody else: all of it fails, or the operation alone. */
START_TEST(a_transaction_that_a_trigger_ends)
{
    static const char *const keys[] = {"a", "bad", "c"};
    add(REFUSE("ROLLBACK, 'no'"));
    struct db_op *list = tdb_list(tdb_put("a", "1"), tdb_put("bad", "2"), tdb_put("c", "3"), NULL);
    for (struct db_op *op = list; op != NULL; op = op->next)
        op->precond.none_match = (struct db_tags){.given = 1, .any = 1};
    enum db_result result = tdb_burst(&conn, list);
    ck_assert_int_ne(result, DB_BROKEN); /* the file is not damaged: a restart would not help */
    size_t i = 0;
    for (struct db_op *op = list; op != NULL; op = op->next, i++) {
        bool stored = seq_of(keys[i]) != -1;
        ck_assert_msg(stored == (op->result == DB_OK), "%s: %s", keys[i], stored ? "stored, but refused" : "not stored");
        ck_assert(op->result != DB_OK || op->created);
    }
    ck_assert_int_eq(seq_of("bad"), -1);
    answers_are_stored(list, keys);
    tdb_free(list);
}
END_TEST

START_TEST(the_store_works_after_a_transaction_was_ended)
{
    static const char *const keys[] = {"a"};
    add(REFUSE("ROLLBACK, 'no'"));
    struct db_op *list = tdb_list(tdb_put("bad", "2"), NULL), *op = tdb_put("a", "3");
    enum db_result result = tdb_burst(&conn, list);
    ck_assert(result != DB_OK || list->result != DB_OK);
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    answers_are_stored(op, keys);
    tdb_free(list);
    tdb_free(op);
}
END_TEST

/* A table of somebody's own beside ours does not disturb. */
START_TEST(a_trigger_that_writes_elsewhere)
{
    static const char *const keys[] = {"a", "b"};
    add("CREATE TABLE mine (key); CREATE TRIGGER t AFTER INSERT ON doc BEGIN INSERT INTO mine VALUES (new.key); END");
    struct db_op *list = tdb_list(tdb_put("a", "1"), tdb_put("b", "2"), NULL);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    ck_assert_uint_eq(list->next->seq, 2);
    answers_are_stored(list, keys);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM mine"), 2);
    tdb_free(list);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("foreign_triggers");
    TCase *t = run_case(s, "foreign_triggers");
    temp_use(t);
    tcase_add_checked_fixture(t, open_conn, close_conn);
    tcase_add_loop_test(t, a_trigger_that_writes_documents, 0, COUNT(writing));
    tcase_add_test(t, preconditions_see_what_triggers_wrote);
    tcase_add_test(t, bursts_follow_each_other);
    tcase_add_loop_test(t, what_a_trigger_aborts_fails_alone, 0, 2);
    tcase_add_test(t, what_a_trigger_ignores_is_not_acknowledged);
    tcase_add_test(t, a_transaction_that_a_trigger_ends);
    tcase_add_test(t, the_store_works_after_a_transaction_was_ended);
    tcase_add_test(t, a_trigger_that_writes_elsewhere);
    return run_suite(s);
}
