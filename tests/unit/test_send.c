/* db/line, db/send, db/courier: messages get their numbers, wait, are delivered, parked, skipped and sent again. */
#include <stdio.h>
#include <string.h>

#include "db/courier.h"
#include "db/outbox.h"
#include "tests/unit/tdb.h"

static struct db_conn conn;
static struct db_reader *reader;
static uint64_t fence;

static enum db_result apply(struct db_op *op, uint64_t *seq)
{
    ck_assert_ptr_nonnull(op);
    (void)tdb_burst(&conn, op);
    enum db_result result = op->result;
    if (seq != NULL)
        *seq = op->seq;
    db_op_free(op);
    return result;
}

static void set_line(const char *name, bool fifo)
{
    struct db_line_set set = {.name = name, .url = "https://example.org/in", .fifo = fifo};
    ck_assert_int_eq(apply(db_line_set_op(&set), NULL), DB_OK);
}

static void begin(void)
{
    tdb_make();
    tdb_open(&conn);
    ck_assert_int_eq(db_reader_open(&tdb_config, &reader, &tdb_error), DB_OK);
    set_line("orders", true);
    set_line("news", false);
    ck_assert_int_eq(apply(db_courier_lease_op(1), &fence), DB_OK);
}

static void end(void)
{
    tdb_is_sound();
    db_reader_close(reader);
    db_conn_close(&conn);
}

static struct db_op *send_op(const char *line, unsigned number, bool sealed)
{
    static unsigned char hash[DB_MESSAGE_HASH_BYTES];
    static char id[64];
    memset(hash, (int)number, sizeof hash);
    snprintf(id, sizeof id, "msg_%026u", number);
    struct db_send send = {.line = line, .id = id, .type = "text/plain", .body = "hello", .bytes = 5,
                           .hash = hash, .sealed = sealed, .version = 1};
    return db_send_op(&send);
}

static void send(const char *line, unsigned number)
{
    ck_assert_int_eq(apply(send_op(line, number, false), NULL), DB_OK);
}

static int64_t number_of(const char *line, unsigned seq)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT o.n FROM outbox AS o JOIN line AS l ON l.id = o.line WHERE l.name = '%s' AND o.seq = %u",
             line, seq);
    return tdb_ask(conn.db, sql);
}

static enum db_result mark(struct db_mark m)
{
    m.line = m.line != 0 ? m.line : tdb_ask(conn.db, "SELECT id FROM line WHERE name = 'orders'");
    return apply(db_courier_marks_op(fence, &m, 1), NULL);
}

static struct db_mark tried(unsigned seq, enum db_send_state state)
{
    return (struct db_mark){.message = number_of("orders", seq), .attempted = true, .counted = true, .status = 200,
                            .at_ms = 5000, .took_ms = 3, .outcome = "delivered", .state = state,
                            .due_ms = INT64_C(4000000000000)};
}

static int64_t due(const char *line)
{
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT coalesce(due, -1) FROM line WHERE name = '%s'", line);
    return tdb_ask(conn.db, sql);
}

START_TEST(numbers_follow_and_hashes_chain)
{
    uint64_t seq;
    send("orders", 1);
    ck_assert_int_eq(apply(send_op("orders", 2, false), &seq), DB_OK);
    ck_assert_uint_eq(seq, 2);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM outbox AS a JOIN outbox AS b ON b.seq = a.seq + 1"
                                      " AND b.prev = a.hash"), 1);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT prev IS NULL FROM outbox WHERE seq = 1"), 1);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT waiting FROM line WHERE name = 'orders'"), 2);
}
END_TEST

START_TEST(what_cannot_be_sent_is_refused)
{
    ck_assert_int_eq(apply(send_op("nowhere", 1, false), NULL), DB_NONE);
    send("orders", 1);
    ck_assert_int_eq(apply(send_op("orders", 1, false), NULL), DB_EXISTS);
    ck_assert_int_eq(apply(send_op("news", 1, false), NULL), DB_EXISTS);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT seq FROM line WHERE name = 'orders'"), 1);
}
END_TEST

START_TEST(sealed_for_keys_that_changed_is_refused)
{
    struct db_line_key key = {.key = {1}, .id = {2}, .owner = {3}};
    struct db_line_set set = {.name = "orders", .url = "https://example.org/in", .fifo = true, .keys = &key, .key_count = 1};
    ck_assert_int_eq(apply(db_line_set_op(&set), NULL), DB_OK);
    ck_assert_int_eq(apply(send_op("orders", 1, true), NULL), DB_PRECONDITION);
    ck_assert_int_eq(apply(send_op("orders", 1, false), NULL), DB_PRECONDITION);
}
END_TEST

struct seen {
    unsigned count;
    uint64_t seq[8];
};

static bool see(void *arg, const struct db_due_message *m)
{
    struct seen *s = arg;
    ck_assert_uint_eq(m->bytes, 5);
    s->seq[s->count++] = m->seq;
    return s->count < 8;
}

static struct seen courier_sees(const char *line, bool fifo)
{
    struct seen s = {0};
    struct db_line l;
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    ck_assert_int_eq(db_line_find(reader, line, strlen(line), &l), DB_OK);
    ck_assert_int_eq(db_courier_messages(reader, l.id, fifo, INT64_C(3000000000000), -1, 0, 8, see, &s), DB_OK);
    db_reader_end(reader);
    return s;
}

START_TEST(a_courier_sees_what_waits_and_marks_it)
{
    for (unsigned i = 1; i <= 3; i++)
        send("orders", i);
    ck_assert_uint_eq(courier_sees("orders", true).count, 3);
    ck_assert_int_eq(mark(tried(1, DB_SEND_DELIVERED)), DB_OK);
    struct seen s = courier_sees("orders", true);
    ck_assert_uint_eq(s.count, 2);
    ck_assert_uint_eq(s.seq[0], 2);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM attempt WHERE status = 200 AND outcome = 'delivered'"), 1);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT waiting FROM line WHERE name = 'orders'"), 2);
}
END_TEST

START_TEST(a_parked_message_holds_up_a_fifo_line)
{
    send("orders", 1);
    send("orders", 2);
    ck_assert_int_ge(due("orders"), 0);
    ck_assert_int_eq(mark(tried(1, DB_SEND_PARKED)), DB_OK);
    ck_assert_int_eq(due("orders"), -1);
    ck_assert_uint_eq(courier_sees("orders", true).count, 0);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM doc WHERE key = 'hanji/lines/orders'"), 1);
    ck_assert_int_eq(apply(db_send_retry_op("orders", NULL), NULL), DB_OK);
    ck_assert_int_ge(due("orders"), 0);
    ck_assert_uint_eq(courier_sees("orders", true).count, 2);
}
END_TEST

START_TEST(another_line_goes_on_beside_one_that_is_parked)
{
    send("news", 1);
    send("news", 2);
    struct db_mark m = {.message = number_of("news", 1), .state = DB_SEND_PARKED, .outcome = "rejected"};
    m.line = tdb_ask(conn.db, "SELECT id FROM line WHERE name = 'news'");
    ck_assert_int_eq(mark(m), DB_OK);
    ck_assert_int_ge(due("news"), 0);
    ck_assert_uint_eq(courier_sees("news", false).count, 1);
}
END_TEST

START_TEST(an_older_fence_changes_nothing)
{
    uint64_t next;
    send("orders", 1);
    ck_assert_int_eq(apply(db_courier_lease_op(2), &next), DB_OK);
    ck_assert_uint_eq(next, fence + 1);
    ck_assert_int_eq(mark(tried(1, DB_SEND_DELIVERED)), DB_PRECONDITION);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM attempt"), 0);
}
END_TEST

START_TEST(a_mark_does_not_undo_what_a_person_decided)
{
    send("orders", 1);
    struct db_mark m = tried(1, DB_SEND_WAITING);
    ck_assert_int_eq(apply(db_send_skip_op("orders", "msg_00000000000000000000000001"), NULL), DB_OK);
    ck_assert_int_eq(mark(m), DB_OK);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM outbox WHERE state = 'skipped'"), 1);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM attempt"), 1);
}
END_TEST

START_TEST(what_was_delivered_is_sent_again)
{
    uint64_t again;
    for (unsigned i = 1; i <= 3; i++) {
        send("orders", i);
        ck_assert_int_eq(mark(tried(i, DB_SEND_DELIVERED)), DB_OK);
    }
    ck_assert_int_eq(due("orders"), -1);
    ck_assert_int_eq(apply(db_send_replay_op("orders", 2, 0), &again), DB_OK);
    ck_assert_uint_eq(again, 2);
    ck_assert_uint_eq(courier_sees("orders", true).seq[0], 2);
}
END_TEST

START_TEST(what_a_receiver_misses_goes_before)
{
    send("orders", 1);
    send("orders", 2);
    ck_assert_int_eq(mark(tried(1, DB_SEND_DELIVERED)), DB_OK);
    struct db_mark m = tried(2, DB_SEND_WAITING);
    m.due_ms = 0;
    m.send_again_from = 1;
    ck_assert_int_eq(mark(m), DB_OK);
    ck_assert_uint_eq(courier_sees("orders", true).count, 2);
}
END_TEST

START_TEST(what_waits_for_its_next_try_is_due_when_a_person_says_so)
{
    uint64_t count;
    send("orders", 1);
    send("orders", 2);
    ck_assert_int_eq(mark(tried(1, DB_SEND_WAITING)), DB_OK);
    ck_assert_int_eq(due("orders"), INT64_C(4000000000000));
    ck_assert_int_eq(apply(db_send_retry_op("orders", NULL), &count), DB_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_lt(due("orders"), INT64_C(3000000000000));
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT waiting * 10 + parked FROM line WHERE name = 'orders'"), 20);
}
END_TEST

START_TEST(a_failing_line_is_disabled_and_keeps_its_queue)
{
    send("orders", 1);
    struct db_mark m = tried(1, DB_SEND_WAITING);
    m.line_state = DB_LINE_DISABLED;
    m.fails = true;
    ck_assert_int_eq(mark(m), DB_OK);
    ck_assert_int_eq(due("orders"), -1);
    send("orders", 2);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT waiting FROM line WHERE name = 'orders'"), 2);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM doc WHERE key = 'hanji/lines/orders'"
                                      " AND json_extract(body, '$.state') = 'disabled'"), 1);
    ck_assert_int_eq(apply(db_line_state_op("orders", DB_LINE_OPEN, NULL), NULL), DB_OK);
    ck_assert_int_ge(due("orders"), 0);
}
END_TEST

START_TEST(what_an_answer_says_is_made_printable)
{
    send("orders", 1);
    struct db_mark m = tried(1, DB_SEND_WAITING);
    memcpy(m.detail, "a\x01" "b\xff\xc3\xa9\x7f", 8);
    ck_assert_int_eq(mark(m), DB_OK);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM attempt WHERE detail = 'a?b?é?'"), 1);
}
END_TEST

START_TEST(a_line_that_is_removed_takes_its_messages)
{
    bool more;
    int64_t oldest;
    send("orders", 1);
    send("news", 2);
    ck_assert_int_eq(apply(db_line_remove_op("orders"), NULL), DB_OK);
    do
        ck_assert_int_eq(db_outbox_prune(&conn, 0, 100, &more, &oldest), DB_OK);
    while (more);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM outbox"), 1);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM outbox_body"), 1);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM outbox_gone"), 0);
}
END_TEST

START_TEST(old_ones_are_deleted_and_their_tries)
{
    bool more;
    int64_t oldest;
    for (unsigned i = 1; i <= 3; i++)
        send("orders", i);
    ck_assert_int_eq(mark(tried(1, DB_SEND_DELIVERED)), DB_OK);
    ck_assert_int_eq(mark(tried(2, DB_SEND_DELIVERED)), DB_OK);
    tdb_sql(conn.db, "UPDATE outbox SET ended = 1000 WHERE seq = 1");
    do
        ck_assert_int_eq(db_outbox_prune(&conn, 2000, 100, &more, &oldest), DB_OK);
    while (more);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT min(seq) * 10 + count(*) FROM outbox"), 22);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM attempt"), 1);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("send");
    TCase *t = run_case(s, "send");
    temp_use(t);
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, numbers_follow_and_hashes_chain);
    tcase_add_test(t, what_cannot_be_sent_is_refused);
    tcase_add_test(t, sealed_for_keys_that_changed_is_refused);
    tcase_add_test(t, a_courier_sees_what_waits_and_marks_it);
    tcase_add_test(t, a_parked_message_holds_up_a_fifo_line);
    tcase_add_test(t, another_line_goes_on_beside_one_that_is_parked);
    tcase_add_test(t, an_older_fence_changes_nothing);
    tcase_add_test(t, a_mark_does_not_undo_what_a_person_decided);
    tcase_add_test(t, what_was_delivered_is_sent_again);
    tcase_add_test(t, what_a_receiver_misses_goes_before);
    tcase_add_test(t, what_waits_for_its_next_try_is_due_when_a_person_says_so);
    tcase_add_test(t, a_failing_line_is_disabled_and_keeps_its_queue);
    tcase_add_test(t, what_an_answer_says_is_made_printable);
    tcase_add_test(t, a_line_that_is_removed_takes_its_messages);
    tcase_add_test(t, old_ones_are_deleted_and_their_tries);
    return s;
}

int main(void)
{
    return run_suite(suite());
}
