/* db/once, and bursts with idempotency keys: applied at most once, recorded exactly when it was; expiry by clocks that
 * jump. */
#include "db/once.h"

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

static struct db_op *keyed(struct db_op *op, int scope, int request)
{
    op->once = calloc(1, sizeof *op->once);
    op->once->scope[0] = (unsigned char)scope;
    op->once->request[0] = (unsigned char)request;
    op->once->status = 201;
    return op;
}

static struct db_op *batch_of(struct db_op *list)
{
    struct db_op *op = db_op_new(DB_OP_BATCH, 0);
    for (struct db_op *next; list != NULL; list = next) {
        next = list->next;
        db_op_add_part(op, list);
    }
    return op;
}

static const struct db_precond absent = {.none_match = {.given = 1, .any = 1}};

static int64_t documents(void)
{
    return tdb_ask_file("SELECT count(*) FROM doc");
}

static int64_t records(void)
{
    return tdb_ask_file("SELECT count(*) FROM idempotency");
}

static void shell(const char *sql)
{
    sqlite3 *db = tdb_shell();
    tdb_sql(db, sql);
    sqlite3_close(db);
}

/* Puts key with an idempotency key; the result. */
static enum db_result put(const char *key, const char *body, int scope, int request)
{
    struct db_op *op = keyed(tdb_put(key, body), scope, request);
    op->precond = absent;
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    enum db_result result = op->result;
    tdb_free(op);
    return result;
}

/* ---- applied once ---------------------------------------------------------------------------- */

START_TEST(the_second_is_the_first)
{
    struct db_op *first = keyed(tdb_put("made-1", "x"), 1, 7), *again = keyed(tdb_put("made-2", "x"), 1, 7);
    ck_assert_int_eq(tdb_burst(&conn, first), DB_OK);
    ck_assert(first->result == DB_OK && first->created && !first->replayed);
    ck_assert_int_eq(tdb_burst(&conn, again), DB_OK);
    ck_assert(again->result == DB_OK && again->created && again->replayed);
    ck_assert_uint_eq(again->seq, first->seq);
    ck_assert_uint_eq(again->answer_bytes, 6);
    ck_assert_mem_eq(again->answer, "made-1", 6);
    ck_assert_int_eq(documents(), 1);
    ck_assert_int_eq(tdb_ask_file("SELECT status = 201 AND seq = 1 AND key = 'made-1' AND parts IS NULL FROM idempotency"), 1);
    tdb_free(first);
    tdb_free(again);
}
END_TEST

START_TEST(both_in_one_burst)
{
    struct db_op *list = tdb_list(keyed(tdb_put("a", "x"), 1, 7), keyed(tdb_put("b", "x"), 1, 7), keyed(tdb_put("c", "x"), 2, 7),
                                  NULL);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    ck_assert(list->next->replayed && list->next->seq == list->seq && !list->next->next->replayed);
    ck_assert_int_eq(documents(), 2);
    tdb_free(list);
}
END_TEST

START_TEST(another_request_with_the_key)
{
    ck_assert_int_eq(put("a", "x", 1, 7), DB_OK);
    ck_assert_int_eq(put("b", "y", 1, 8), DB_REUSED);
    ck_assert_int_eq(put("b", "y", 2, 8), DB_OK);
    ck_assert_int_eq(documents(), 2);
}
END_TEST

START_TEST(what_fails_is_not_recorded)
{
    ck_assert_int_eq(put("a", "x", 1, 7), DB_OK);
    ck_assert_int_eq(put("a", "x", 2, 7), DB_PRECONDITION);
    ck_assert_int_eq(records(), 1);
    shell("DELETE FROM doc");
    ck_assert_int_eq(put("a", "x", 2, 7), DB_OK);
    ck_assert_int_eq(records(), 2);
}
END_TEST

START_TEST(the_answer_stays_what_it_was)
{
    struct db_op *op = keyed(tdb_put("a", "x"), 1, 7);
    ck_assert_int_eq(put("a", "x", 1, 7), DB_OK);
    shell("UPDATE doc SET body = 'y'; DELETE FROM doc");
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    ck_assert(op->replayed && op->seq == 1);
    ck_assert_int_eq(documents(), 0);
    tdb_free(op);
}
END_TEST

START_TEST(batches)
{
    struct db_op *put_b = tdb_put("b", "2");
    ck_assert_int_eq(tdb_burst(&conn, put_b), DB_OK);
    tdb_free(put_b);
    for (int i = 0; i < 2; i++) {
        struct db_op *op = keyed(batch_of(tdb_list(tdb_put("a", "1"), tdb_put("b", "2"), tdb_delete("a"), NULL)), 1, 7);
        ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
        ck_assert_int_eq(op->result, DB_OK);
        ck_assert_int_eq(op->replayed, i);
        ck_assert_uint_eq(op->seq, 4);
        uint64_t seq = 2;
        for (struct db_op *part = op->parts; part != NULL; part = part->next) {
            ck_assert_uint_eq(part->seq, seq);
            ck_assert_int_eq(part->created, seq == 2);
            seq++;
        }
        tdb_free(op);
    }
    ck_assert_int_eq(tdb_ask_file("SELECT parts = '[[2,1],[3,0],[4,0]]' AND key IS NULL FROM idempotency"), 1);
}
END_TEST

START_TEST(a_batch_of_nothing)
{
    for (int i = 0; i < 2; i++) {
        struct db_op *op = keyed(batch_of(NULL), 1, 7);
        ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
        ck_assert(op->result == DB_OK && op->replayed == i);
        tdb_free(op);
    }
}
END_TEST

START_TEST(a_batch_that_fails)
{
    struct db_op *list = tdb_list(keyed(batch_of(tdb_list(tdb_put("a", "1"), tdb_delete("absent"), NULL)), 1, 7),
                                  tdb_put("b", "2"), NULL);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    ck_assert_int_eq(list->result, DB_NONE);
    ck_assert_uint_eq(list->failed_part, 1);
    ck_assert_uint_eq(list->next->seq, 1);
    ck_assert_int_eq(records(), 0);
    ck_assert_int_eq(documents(), 1);
    tdb_free(list);
    uint64_t us;
    struct db_op *op = keyed(batch_of(tdb_list(tdb_put("a", "1"), tdb_delete("absent"), NULL)), 1, 7);
    ck_assert_int_eq(db_burst_run(&conn, op, &us), DB_OK);
    ck_assert_uint_eq(us, 0);
    tdb_free(op);
}
END_TEST

static const char *const spoilt[] = {"NULL", "''", "'[]'", "'[[1,0]'", "'[[1,0],[2,2]]'", "'[[1,0],[2,0]]x'",
                                     "'[[1,0],[2,0],[3,0]]'", "'[[1,0] ,[2,0]]'", "'[[,0],[2,0]]'", "x'5b00'"};

/* A record that somebody spoilt is another request's, never a wrong answer. */
START_TEST(a_spoilt_record)
{
    char sql[200];
    struct db_op *op = keyed(batch_of(tdb_list(tdb_put("a", "1"), tdb_put("b", "1"), NULL)), 1, 7);
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    tdb_free(op);
    snprintf(sql, sizeof sql, "UPDATE idempotency SET parts = %s", spoilt[_i]);
    shell(sql);
    op = keyed(batch_of(tdb_list(tdb_put("a", "1"), tdb_put("b", "1"), NULL)), 1, 7);
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    ck_assert_int_eq(op->result, DB_REUSED);
    tdb_free(op);
}
END_TEST

START_TEST(a_record_that_is_refused_undoes_the_effect)
{
    shell("CREATE TRIGGER t BEFORE INSERT ON idempotency BEGIN SELECT RAISE(ABORT, 'no'); END");
    ck_assert_int_eq(put("a", "x", 1, 7), DB_INVALID);
    ck_assert_int_eq(documents(), 0);
    shell("DROP TRIGGER t");
    ck_assert_int_eq(put("a", "x", 1, 7), DB_OK);
}
END_TEST

START_TEST(numbers_that_triggers_took)
{
    shell("CREATE TRIGGER t AFTER INSERT ON doc WHEN new.key NOT LIKE 'log/%'"
          " BEGIN INSERT INTO doc (key, body) VALUES ('log/' || new.key, 'new'); END");
    struct db_op *list = tdb_list(keyed(tdb_put("a", "x"), 1, 7), keyed(tdb_put("b", "x"), 2, 7), NULL);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    for (struct db_op *op = list; op != NULL; op = op->next)
        ck_assert(op->result == DB_OK && !op->replayed);
    ck_assert_int_eq(tdb_ask_file("SELECT count(*) FROM idempotency JOIN doc USING (key, seq)"), 2);
    tdb_free(list);
}
END_TEST

/* ---- clocks ---------------------------------------------------------------------------------- */

enum { HOUR = 3600, DAY = 24 * HOUR };
#define T0 INT64_C(1800000000) /* 2027 */

static const struct {
    const char *what;
    struct db_clock made, now;
    bool expired;
} ages[] = {
    {"at once", {T0, 1000, {1}}, {T0, 1000, {1}}, false},
    {"just before a day", {T0, 1000, {1}}, {T0 + DAY - 1, 1000 + DAY - 1, {1}}, false},
    {"after a day", {T0, 1000, {1}}, {T0 + DAY, 1000 + DAY, {1}}, true},
    {"the wall clock jumps ahead by years", {T0, 1000, {1}}, {T0 + 3650 * DAY, 1000 + HOUR, {1}}, false},
    {"from 1970 to today", {1000, 1000, {1}}, {T0, 1000 + HOUR, {1}}, false},
    {"back by years, an hour later", {T0, 1000, {1}}, {T0 - 3650 * DAY, 1000 + HOUR, {1}}, false},
    {"back by years, a day later", {T0, 1000, {1}}, {T0 - 3650 * DAY, 1000 + DAY, {1}}, true},
    {"another start, an hour later", {T0, 500000, {1}}, {T0 + HOUR, 60, {2}}, false},
    {"another start, a day later", {T0, 500000, {1}}, {T0 + DAY, 60, {2}}, true},
    {"another start, the clock not set yet", {T0, 500000, {1}}, {1000, 60, {2}}, false},
    {"another start, the clock never set, a day up", {T0, 500000, {1}}, {1000 + DAY, DAY, {2}}, true},
    {"made before the clock was set, another start", {1000, 1000, {1}}, {T0, 60, {2}}, false},
    {"made before the clock was set, another start, a day up", {1000, 1000, {1}}, {T0, DAY, {2}}, true},
    {"made by a clock of the future, another start", {T0 + 3650 * DAY, 1000, {1}}, {T0, 60, {2}}, false},
    {"made by a clock of the future, another start, a day up", {T0 + 3650 * DAY, 1000, {1}}, {T0, DAY, {2}}, true},
};

START_TEST(the_age_of_a_record)
{
    ck_assert_msg(db_once_expired(&ages[_i].made, &ages[_i].now) == ages[_i].expired, "%s", ages[_i].what);
}
END_TEST

START_TEST(the_clocks_of_this_machine)
{
    struct db_clock a = db_clock_now(), b = db_clock_now();
    static const unsigned char nought[DB_BOOT_BYTES];
    ck_assert_int_gt(a.wall_s, 1700000000);
    ck_assert_int_gt(a.uptime_s, 0);
    ck_assert_mem_eq(a.boot, b.boot, sizeof a.boot);
    ck_assert_mem_ne(a.boot, nought, sizeof nought);
}
END_TEST

START_TEST(an_expired_record_is_none)
{
    ck_assert_int_eq(put("a", "x", 1, 7), DB_OK);
    shell("UPDATE idempotency SET uptime = uptime - 86401");
    ck_assert_int_eq(put("b", "y", 1, 8), DB_OK);
    ck_assert_int_eq(records(), 1);
    ck_assert_int_eq(put("c", "y", 1, 8), DB_OK);
    ck_assert_int_eq(documents(), 2);
}
END_TEST

static void prune(const struct db_clock *now, unsigned most, bool expected_more)
{
    bool more;
    ck_assert_int_eq(db_once_prune(&conn, now, most, &more), DB_OK);
    ck_assert_int_eq(more, expected_more);
}

START_TEST(what_expired_is_removed)
{
    char key[8];
    for (int i = 0; i < 10; i++) {
        snprintf(key, sizeof key, "k%d", i);
        ck_assert_int_eq(put(key, "x", i, 7), DB_OK);
    }
    struct db_clock now = db_clock_now();
    prune(&now, 100, false);
    ck_assert_int_eq(records(), 10);
    shell("UPDATE idempotency SET uptime = uptime - 86401 WHERE id <= 7");
    prune(&now, 3, true);
    ck_assert_int_eq(records(), 7);
    prune(&now, 100, false);
    ck_assert_int_eq(records(), 3);
    now.uptime_s += DAY + 1;
    prune(&now, 100, false);
    ck_assert_int_eq(records(), 0);
    prune(&now, 100, false);
}
END_TEST

/* The wall time counts after the next start: it is put right while the other clock is there to tell. */
START_TEST(wall_times_are_corrected)
{
    ck_assert_int_eq(put("a", "x", 1, 7), DB_OK);
    struct db_clock now = db_clock_now();
    shell("UPDATE idempotency SET created = 1000");
    prune(&now, 100, false);
    ck_assert_int_eq(records(), 1);
    ck_assert_int_le(llabs(tdb_ask_file("SELECT created FROM idempotency") - now.wall_s), 2);
    now.wall_s += 3650 * DAY;
    prune(&now, 100, false);
    ck_assert_int_le(llabs(tdb_ask_file("SELECT created FROM idempotency") - now.wall_s), 2);
    now.wall_s += 5; /* a clock that is slewed is no jump */
    prune(&now, 100, false);
    ck_assert_int_gt(now.wall_s - tdb_ask_file("SELECT created FROM idempotency"), 2);
    memset(now.boot, 9, sizeof now.boot); /* not those of another start */
    now.wall_s -= 3650 * DAY;
    prune(&now, 100, false);
    ck_assert_int_gt(tdb_ask_file("SELECT created FROM idempotency"), now.wall_s + 3000 * DAY);
}
END_TEST

START_TEST(their_number_has_a_bound)
{
    ck_assert_int_eq(put("a", "x", 1, 7), DB_OK);
    ck_assert_int_eq(put("b", "x", 2, 7), DB_OK);
    shell("UPDATE idempotency SET id = 99999 WHERE id = 2");
    ck_assert_int_eq(put("c", "x", 3, 7), DB_OK); /* 100000: the first may stay */
    ck_assert_int_eq(records(), 3);
    ck_assert_int_eq(put("d", "x", 4, 7), DB_OK);
    ck_assert_int_eq(records(), 3);
    ck_assert_int_eq(tdb_ask_file("SELECT min(id) FROM idempotency"), 99999);
}
END_TEST

START_TEST(the_writer_removes_them_when_it_is_quiet)
{
    struct inbox in;
    struct db_writer *w;
    ck_assert_int_eq(put("a", "x", 1, 7), DB_OK);
    shell("UPDATE idempotency SET uptime = uptime - 86401");
    db_conn_close(&conn);
    w = tdb_start(&in);
    for (int i = 0; i < 1000 && records() > 0; i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    ck_assert_int_eq(records(), 0);
    db_writer_stop(w);
    tdb_open(&conn);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("once");
    TCase *t = run_case(s, "once");
    temp_use(t);
    tcase_add_checked_fixture(t, open_conn, close_conn);
    tcase_add_test(t, the_second_is_the_first);
    tcase_add_test(t, both_in_one_burst);
    tcase_add_test(t, another_request_with_the_key);
    tcase_add_test(t, what_fails_is_not_recorded);
    tcase_add_test(t, the_answer_stays_what_it_was);
    tcase_add_test(t, batches);
    tcase_add_test(t, a_batch_of_nothing);
    tcase_add_test(t, a_batch_that_fails);
    tcase_add_loop_test(t, a_spoilt_record, 0, COUNT(spoilt));
    tcase_add_test(t, a_record_that_is_refused_undoes_the_effect);
    tcase_add_test(t, numbers_that_triggers_took);
    t = run_case(s, "clocks");
    temp_use(t);
    tcase_add_checked_fixture(t, open_conn, close_conn);
    tcase_add_loop_test(t, the_age_of_a_record, 0, COUNT(ages));
    tcase_add_test(t, the_clocks_of_this_machine);
    tcase_add_test(t, an_expired_record_is_none);
    tcase_add_test(t, what_expired_is_removed);
    tcase_add_test(t, wall_times_are_corrected);
    tcase_add_test(t, their_number_has_a_bound);
    tcase_add_test(t, the_writer_removes_them_when_it_is_quiet);
    return run_suite(s);
}
