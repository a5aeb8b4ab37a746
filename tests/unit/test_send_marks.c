/* db/courier, db/notice: reports that are malformed, late, of another courier; what follows for lines; who is told. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/odb.h"

static int64_t ask(const char *sql)
{
    return tdb_ask(odb_conn.db, sql);
}

/* From the control socket anything may come: all of a report is taken, or nothing. */
START_TEST(a_malformed_report_changes_nothing)
{
    odb_send("news");
    odb_send("news");
    struct db_mark marks[2] = {odb_try("news", 1, DB_SEND_DELIVERED), odb_try("news", 2, DB_SEND_PARKED)};
    marks[1].has_proof = true;
    struct db_op *op = db_courier_marks_op(odb_fence, marks, 2);
    size_t n = op->values[1].n, one = 0;
    struct db_op *first = db_courier_marks_op(odb_fence, marks, 1);
    one = first->values[1].n;
    db_op_free(first);
    for (size_t cut = 1; cut < n; cut++) {
        op->values[1].n = cut;
        if (cut == one)
            continue;
        (void)tdb_burst(&odb_conn, op);
        ck_assert_int_eq(op->result, DB_INVALID);
    }
    db_op_free(op);
    ck_assert_int_eq(ask("SELECT count(*) FROM outbox WHERE state = 'waiting'"), 2);
    ck_assert_int_eq(ask("SELECT count(*) FROM attempt"), 0);
}
END_TEST

START_TEST(any_bytes)
{
    uint32_t dice = 7;
    odb_send("news");
    struct db_mark mark = odb_try("news", 1, DB_SEND_WAITING);
    for (int i = 0; i < 500; i++) {
        struct db_op *op = db_courier_marks_op(odb_fence, &mark, 1);
        for (int j = 0; j < 3; j++) {
            dice = dice * 1664525 + 1013904223;
            ((unsigned char *)(uintptr_t)op->values[1].p)[(dice >> 8) % op->values[1].n] = (unsigned char)(dice >> 4);
        }
        (void)odb_apply(op, NULL);
    }
    odb_is_settled();
}
END_TEST

/* Of two couriers the later one reports (sends.md, 21). */
START_TEST(the_report_of_an_older_courier)
{
    uint64_t later;
    odb_send("news");
    struct db_mark m = odb_try("news", 1, DB_SEND_DELIVERED);
    ck_assert_int_eq(odb_apply(db_courier_lease_op(2), &later), DB_OK);
    ck_assert_uint_gt(later, odb_fence);
    ck_assert_int_eq(odb_report(&m, 1), DB_PRECONDITION);
    ck_assert_int_eq(odb_state("news", 1), 'w');
    odb_fence = later;
    ck_assert_int_eq(odb_report(&m, 1), DB_OK);
    ck_assert_int_eq(odb_report(&m, 1), DB_OK); /* again: only another try */
    ck_assert_int_eq(odb_state("news", 1), 'd');
    odb_is_settled();
}
END_TEST

static struct db_op *sealed_op(void)
{
    static const unsigned char hash[DB_MESSAGE_HASH_BYTES] = {9};
    return db_send_op(&(struct db_send){.line = "orders", .id = "msg_00000000000000000000sealed", .type = "t", .body = "{}",
                                        .bytes = 2, .hash = hash, .sealed = true, .version = 1});
}

/* What arrived while a person had it skipped has arrived; what failed meanwhile goes as a tombstone. */
START_TEST(skipped_on_its_way)
{
    static const struct {
        enum db_send_state state;
        bool tombstone;
        char then;
    } ways[] = {{DB_SEND_DELIVERED, false, 'd'}, {DB_SEND_PARKED, false, 'w'}, {DB_SEND_WAITING, false, 'w'},
                {DB_SEND_SKIPPED, true, 's'}, {DB_SEND_PARKED, true, 'p'}};
    for (size_t i = 0; i < COUNT(ways); i++) {
        ck_assert_int_eq(odb_apply(sealed_op(), NULL), i == 0 ? DB_OK : DB_EXISTS);
        tdb_sql(odb_conn.db, "UPDATE outbox SET state = 'waiting', skip = 0");
        tdb_sql(odb_conn.db, "UPDATE line SET waiting = 1, parked = 0 WHERE name = 'orders'");
        ck_assert_int_eq(odb_apply(db_send_skip_op("orders", odb_id("orders", 1)), NULL), DB_NONE); /* its id is no number */
        ck_assert_int_eq(odb_apply(db_send_skip_op("orders", "msg_00000000000000000000sealed"), NULL), DB_OK);
        struct db_mark m = odb_try("orders", 1, ways[i].state);
        m.skipped = ways[i].tombstone;
        ck_assert_int_eq(odb_report(&m, 1), DB_OK);
        ck_assert_msg(odb_state("orders", 1) == ways[i].then, "%zu: %c", i, odb_state("orders", 1));
        odb_is_settled();
    }
}
END_TEST

START_TEST(failing_since_when)
{
    struct db_mark m[2] = {{.line = odb_number("news", 0) >> DB_SEQ_BITS, .fails = true, .at_ms = 5000}};
    m[1] = m[0];
    m[1].at_ms = 9000;
    ck_assert_int_eq(odb_report(m, 2), DB_OK);
    ck_assert_int_eq(ask("SELECT failing FROM line WHERE name = 'news'"), 5);
    ck_assert_int_eq(odb_report(&m[1], 1), DB_OK);
    ck_assert_int_eq(ask("SELECT failing FROM line WHERE name = 'news'"), 5);
    m[0].fails = false;
    m[0].works = true;
    ck_assert_int_eq(odb_report(m, 2), DB_OK); /* it worked, then failed */
    ck_assert_int_eq(ask("SELECT failing FROM line WHERE name = 'news'"), 9);
    ck_assert_int_eq(odb_report(m, 1), DB_OK);
    ck_assert_int_eq(ask("SELECT failing IS NULL FROM line WHERE name = 'news'"), 1);
}
END_TEST

START_TEST(tries_that_are_kept)
{
    odb_send("news");
    struct db_mark m = odb_try("news", 1, DB_SEND_WAITING);
    for (int i = 0; i < DB_ATTEMPTS_KEPT + 5; i++)
        ck_assert_int_eq(odb_report(&m, 1), DB_OK);
    ck_assert_int_eq(ask("SELECT count(*) FROM attempt"), DB_ATTEMPTS_KEPT);
    ck_assert_int_eq(ask("SELECT max(number) FROM attempt"), DB_ATTEMPTS_KEPT + 5);
}
END_TEST

/* ---- who is told ---- */

static enum db_result make(void *arg, const struct db_send_draft *draft, struct db_send_made *made, struct db_error *error)
{
    unsigned *count = arg;
    (void)error;
    ck_assert_uint_eq(draft->key_count, 0);
    snprintf(made->id, sizeof made->id, "msg_%025ua", ++*count);
    memset(made->hash, 7, sizeof made->hash);
    return DB_OK;
}

static void disable(const char *line)
{
    struct db_mark m = {.line = odb_number(line, 0) >> DB_SEQ_BITS, .line_state = DB_LINE_DISABLED, .outcome = "timeout"};
    ck_assert_int_eq(odb_report(&m, 1), DB_OK);
}

START_TEST(a_disabled_line_is_told)
{
    unsigned count = 0;
    db_send_set_maker(make, &count);
    odb_line("alerts", true);
    odb_send("orders");
    disable("orders");
    disable("orders"); /* it is already */
    ck_assert_int_eq(ask("SELECT count(*) FROM doc WHERE key = 'hanji/lines/orders'"
                         " AND json_extract(body, '$.state') = 'disabled'"
                         " AND json_extract(body, '$.reason') = 'timeout' AND json_extract(body, '$.waiting') = 1"), 1);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(ask("SELECT waiting FROM line WHERE name = 'alerts'"), 1);
    disable("alerts"); /* not on itself */
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(odb_apply(db_line_state_op("orders", DB_LINE_OPEN, NULL), NULL), DB_OK);
    ck_assert_int_eq(ask("SELECT json_extract(body, '$.state') = 'open' FROM doc WHERE key = 'hanji/lines/orders'"), 1);
    db_send_set_maker(NULL, NULL);
}
END_TEST

START_TEST(parked_messages_are_told_once_a_report)
{
    odb_send("news");
    odb_send("news");
    struct db_mark marks[2] = {odb_try("news", 1, DB_SEND_PARKED), odb_try("news", 2, DB_SEND_UNOPENABLE)};
    ck_assert_int_eq(odb_report(marks, 2), DB_OK);
    ck_assert_int_eq(ask("SELECT json_extract(body, '$.parked') FROM doc WHERE key = 'hanji/lines/news'"), 2);
    ck_assert_int_eq(ask("SELECT count(*) FROM change"), 1);
}
END_TEST

/* A message of another body stands for several lines, and goes with the last of them. */
START_TEST(a_body_that_is_shared)
{
    struct db_op *batch = db_op_new(DB_OP_BATCH, 0);
    db_op_add_part(batch, odb_send_op("orders", false));
    db_op_add_part(batch, odb_send_op("news", true));
    ck_assert_int_eq(odb_apply(batch, NULL), DB_OK);
    ck_assert_int_eq(ask("SELECT refs FROM outbox_body"), 2);
    ck_assert_int_eq(odb_apply(odb_send_op("news", true), NULL), DB_INVALID); /* of whom? */
    batch = db_op_new(DB_OP_BATCH, 0);
    db_op_add_part(batch, odb_send_op("orders", false));
    db_op_add_part(batch, odb_send_op("nowhere", true));
    ck_assert_int_eq(odb_apply(batch, NULL), DB_NONE);
    ck_assert_int_eq(ask("SELECT count(*) FROM outbox_body"), 1);
    ck_assert_uint_eq(odb_send("orders"), 2); /* the number was not used up */
    tdb_sql(odb_conn.db, "DELETE FROM outbox WHERE line = (SELECT id FROM line WHERE name = 'orders') AND seq = 1");
    ck_assert_int_eq(ask("SELECT refs FROM outbox_body ORDER BY id LIMIT 1"), 1);
}
END_TEST

/* With an idempotency key the second one gets number and id of the first, and nothing is sent. */
static struct db_op *with_key(struct db_op *op, unsigned char key)
{
    op->once = calloc(1, sizeof *op->once);
    op->once->scope[0] = key;
    op->once->status = 202;
    return op;
}

START_TEST(the_same_request_again)
{
    char first[40];
    odb_send("orders");
    ck_assert_int_eq(odb_apply(with_key(odb_send_op("orders", false), 1), NULL), DB_OK);
    snprintf(first, sizeof first, "%s", odb_id("orders", 2));
    struct db_op *op = with_key(odb_send_op("orders", false), 1);
    (void)tdb_burst(&odb_conn, op);
    ck_assert_int_eq(op->result, DB_OK);
    ck_assert(op->replayed);
    ck_assert_uint_eq(op->seq, 2);
    ck_assert_uint_eq(op->answer_bytes, DB_MESSAGE_ID_LEN);
    ck_assert_mem_eq(op->answer, first, DB_MESSAGE_ID_LEN);
    db_op_free(op);
    ck_assert_int_eq(ask("SELECT count(*) FROM outbox"), 2);
}
END_TEST

START_TEST(the_same_fan_out_again)
{
    for (int i = 0; i < 2; i++) {
        struct db_op *batch = with_key(db_op_new(DB_OP_BATCH, 0), 2);
        db_op_add_part(batch, odb_send_op("orders", false));
        db_op_add_part(batch, odb_send_op("news", true));
        (void)tdb_burst(&odb_conn, batch);
        ck_assert_int_eq(batch->result, DB_OK);
        ck_assert_uint_eq(batch->parts->next->seq, 1);
        if (i == 1)
            ck_assert_mem_eq(batch->parts->next->answer, odb_id("news", 1), DB_MESSAGE_ID_LEN);
        db_op_free(batch);
    }
    ck_assert_int_eq(ask("SELECT count(*) FROM outbox"), 2);
}
END_TEST

/* A key is not used up by what was refused. */
START_TEST(refused_and_sent_later)
{
    ck_assert_int_eq(odb_apply(with_key(odb_send_op("later", false), 3), NULL), DB_NONE);
    odb_line("later", true);
    ck_assert_int_eq(odb_apply(with_key(odb_send_op("later", false), 3), NULL), DB_OK);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("send marks");
    TCase *t = run_case(s, "send marks");
    temp_use(t);
    tcase_add_checked_fixture(t, odb_open, odb_close);
    tcase_add_test(t, a_malformed_report_changes_nothing);
    tcase_add_test(t, any_bytes);
    tcase_add_test(t, the_report_of_an_older_courier);
    tcase_add_test(t, skipped_on_its_way);
    tcase_add_test(t, failing_since_when);
    tcase_add_test(t, tries_that_are_kept);
    tcase_add_test(t, a_disabled_line_is_told);
    tcase_add_test(t, parked_messages_are_told_once_a_report);
    tcase_add_test(t, a_body_that_is_shared);
    tcase_add_test(t, the_same_request_again);
    tcase_add_test(t, the_same_fan_out_again);
    tcase_add_test(t, refused_and_sent_later);
    return run_suite(s);
}
