/* db/line: what lines are set to, when they are due, what is read of them; the cost of it all. */
#include "db/line.h"

#include <stdio.h>
#include <string.h>

#include "db/reader_internal.h"
#include "tests/unit/odb.h"

static const struct db_line_key key_a = {.id = {1}, .key = {2}, .owner = {3}, .valid_from = 10,
                                         .valid_until = 20, .horizon_s = 30};
static const struct db_line_key key_b = {.id = {4}, .key = {5}, .owner = {6}, .valid_from = 11};

static struct db_line found;

static enum db_result find(const char *name)
{
    db_reader_end(odb_reader);
    ck_assert_int_eq(db_reader_begin(odb_reader), DB_OK);
    return db_line_find(odb_reader, name, strlen(name), &found);
}

START_TEST(names)
{
    static const char *const good[] = {"a", "0", "a.b", "a-b_c.9"}, *const bad[] = {"", "A", ".a", "-a", "_a", "a/b", "a b", "é"};
    char longest[DB_LINE_NAME_MAX + 2];
    memset(longest, 'a', sizeof longest);
    for (size_t i = 0; i < COUNT(good); i++)
        ck_assert(db_line_name_ok(good[i], strlen(good[i])));
    for (size_t i = 0; i < COUNT(bad); i++)
        ck_assert(!db_line_name_ok(bad[i], strlen(bad[i])));
    ck_assert(db_line_name_ok(longest, DB_LINE_NAME_MAX));
    ck_assert(!db_line_name_ok(longest, DB_LINE_NAME_MAX + 1));
    ck_assert(!db_line_name_ok("a\0b", 3));
}
END_TEST

START_TEST(all_that_is_set_is_read)
{
    struct db_line_key keys[2] = {key_a, key_b}, read[DB_LINE_KEYS_MAX];
    unsigned count;
    struct db_line_set set = {.name = "x", .url = "http://h:1/p?q", .ca = "PEM", .private_ = true, .rate = 2.5,
                              .secret = (const unsigned char *)"s\0t", .secret_bytes = 3, .keys = keys, .key_count = 2};
    struct db_op *op = db_line_set_op(&set);
    ck_assert_int_eq(tdb_burst(&odb_conn, op), DB_OK);
    ck_assert_int_eq(op->result, DB_OK);
    ck_assert(op->created);
    db_op_free(op);
    ck_assert_int_eq(find("x"), DB_OK);
    ck_assert_str_eq(found.url, set.url);
    ck_assert_str_eq(found.ca, "PEM");
    ck_assert_ptr_null(found.reason);
    ck_assert(!found.fifo && found.private_ && found.rate > 2.4 && found.rate < 2.6 && found.state == DB_LINE_OPEN);
    ck_assert_uint_eq(found.secret_bytes, 3);
    ck_assert_mem_eq(found.secret, "s\0t", 3);
    ck_assert_int_eq(found.due_ms, -1);
    ck_assert_uint_eq(found.keys, 2);
    ck_assert_int_eq(db_line_keys(odb_reader, found.id, read, &count), DB_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_mem_eq(&read[0], &key_b, sizeof key_b); /* the newest first */
    ck_assert_mem_eq(&read[1], &key_a, sizeof key_a);
}
END_TEST

START_TEST(set_again)
{
    struct db_line_set set = {.name = "orders", .url = "http://b/", .fifo = true, .only_new = true,
                              .keys = &key_a, .key_count = 1};
    ck_assert_int_eq(find("orders"), DB_OK);
    int64_t id = found.id;
    uint32_t version = found.version;
    ck_assert_int_eq(odb_apply(db_line_set_op(&set), NULL), DB_EXISTS);
    set.only_new = false;
    set.secret = (const unsigned char *)"s";
    set.secret_bytes = 1;
    ck_assert_int_eq(odb_apply(db_line_set_op(&set), NULL), DB_OK);
    set.secret = NULL;
    set.secret_bytes = 0;
    set.keep_secret = true;
    ck_assert_int_eq(odb_apply(db_line_set_op(&set), NULL), DB_OK);
    ck_assert_int_eq(find("orders"), DB_OK);
    ck_assert_int_eq(found.id, id);
    ck_assert_uint_gt(found.version, version);
    ck_assert_uint_eq(found.secret_bytes, 1);
    set.keep_secret = false;
    ck_assert_int_eq(odb_apply(db_line_set_op(&set), NULL), DB_OK);
    ck_assert_int_eq(find("orders"), DB_OK);
    ck_assert_ptr_null(found.secret);
}
END_TEST

static bool join(void *arg, const struct db_line *line)
{
    strcat(strcat(arg, line->name), " ");
    return strcmp(line->name, "c") != 0;
}

START_TEST(lists_go_on_behind_a_name)
{
    char all[200] = "";
    odb_line("a", true);
    odb_line("b", true);
    odb_line("c", true);
    ck_assert_int_eq(db_line_list(odb_reader, "", 2, join, all), DB_OK);
    ck_assert_str_eq(all, "a b ");
    ck_assert_int_eq(db_line_list(odb_reader, "b", 9, join, all), DB_OK);
    ck_assert_str_eq(all, "a b c ");
    all[0] = 0;
    ck_assert_int_eq(db_line_list(odb_reader, "c", 9, join, all), DB_OK);
    ck_assert_str_eq(all, "news orders ");
}
END_TEST

/* From the control socket anything may come. */
START_TEST(malformed_settings_change_nothing)
{
    struct db_line_set set = {.name = "x", .url = "http://a/", .keys = &key_a, .key_count = 1};
    struct db_op *op = db_line_set_op(&set);
    struct db_value rest = op->values[2];
    for (size_t n = 0; n < rest.n; n++) {
        op->values[2].n = n;
        (void)tdb_burst(&odb_conn, op);
        ck_assert_int_eq(op->result, DB_INVALID);
    }
    op->values[2] = rest;
    memset(op->bytes + op->used - rest.n + 1, 0xff, 8); /* the rate is none */
    (void)tdb_burst(&odb_conn, op);
    ck_assert_int_eq(op->result, DB_INVALID);
    db_op_free(op);
    set.url = "http://a b/";
    ck_assert_int_eq(odb_apply(db_line_set_op(&set), NULL), DB_INVALID);
    set.url = "http://a/";
    set.name = "../x";
    ck_assert_int_eq(odb_apply(db_line_set_op(&set), NULL), DB_INVALID);
    for (unsigned kind = DB_OP_LINE_SET; kind <= DB_OP_COURIER_MARKS; kind++)
        ck_assert_int_ne(odb_apply(db_op_new(kind, 0), NULL), DB_OK);
    ck_assert_int_eq(tdb_ask(odb_conn.db, "SELECT count(*) FROM line"), 2);
}
END_TEST

START_TEST(paused_and_opened)
{
    odb_send("orders");
    ck_assert_int_eq(odb_apply(db_line_state_op("orders", DB_LINE_PAUSED, "lunch"), NULL), DB_OK);
    ck_assert_int_eq(odb_due("orders"), -1);
    ck_assert_int_eq(find("orders"), DB_OK);
    ck_assert_str_eq(found.reason, "lunch");
    odb_send("orders"); /* it takes messages all the same */
    ck_assert_int_eq(odb_due("orders"), -1);
    ck_assert_int_eq(odb_apply(db_line_state_op("orders", DB_LINE_OPEN, "x"), NULL), DB_OK);
    ck_assert_int_gt(odb_due("orders"), 0);
    ck_assert_int_eq(find("orders"), DB_OK);
    ck_assert_ptr_null(found.reason);
    ck_assert_int_eq(odb_apply(db_line_state_op("nowhere", DB_LINE_OPEN, NULL), NULL), DB_NONE);
    ck_assert_int_eq(odb_apply(db_line_remove_op("nowhere"), NULL), DB_NONE);
}
END_TEST

START_TEST(a_line_that_is_removed_is_another_when_it_comes_again)
{
    odb_send("orders");
    ck_assert_int_eq(find("orders"), DB_OK);
    int64_t id = found.id;
    ck_assert_int_eq(odb_apply(db_line_remove_op("orders"), NULL), DB_OK);
    odb_line("orders", true);
    ck_assert_int_eq(find("orders"), DB_OK);
    ck_assert_int_gt(found.id, id);
    ck_assert_uint_eq(odb_send("orders"), 1);
}
END_TEST

/* A person with the sqlite3 shell. */
START_TEST(by_hand)
{
    odb_send("orders");
    odb_send("orders");
    odb_send("news");
    odb_mark("orders", 1, DB_SEND_DELIVERED);
    sqlite3 *db = tdb_shell();
    static const char *const statements[] = {
        "UPDATE line SET state = 'paused'", "UPDATE line SET state = 'open', wait_until = 5000000000000",
        "UPDATE line SET ord = 'any' WHERE name = 'orders'", "UPDATE line SET wait_until = 0, ord = 'fifo'",
        "DELETE FROM outbox WHERE state = 'delivered'",
        "DELETE FROM outbox WHERE state = 'waiting' AND seq = 2",
        "INSERT INTO line_key SELECT id, zeroblob(16), zeroblob(32), zeroblob(16), 0, 0, 0 FROM line",
        "UPDATE line_key SET valid_until = 7", "DELETE FROM line_key", "DELETE FROM line WHERE name = 'news'",
    };
    for (size_t i = 0; i < COUNT(statements); i++) {
        tdb_sql(db, statements[i]);
        tdb_is_sound();
    }
    sqlite3_close(db);
}
END_TEST

/* ---- whatever happens, it is due when its messages say ---- */

static unsigned dice(unsigned n)
{
    static uint32_t state = 12345;
    state = state * 1664525 + 1013904223;
    return (state >> 8) % n;
}

static void something(void)
{
    static const char *const lines[] = {"orders", "news"};
    const char *line = lines[dice(2)];
    ck_assert_int_eq(find(line), DB_OK);
    uint64_t seq = found.seq > 0 ? 1 + dice((unsigned)found.seq) : 1;
    struct db_mark m = odb_try(line, seq, dice(DB_SEND_STATES));
    enum db_result result = DB_OK;
    switch (dice(12)) {
    case 0: result = odb_apply(db_line_state_op(line, dice(3), "x"), NULL); break;
    case 1: result = odb_apply(db_line_state_op(line, DB_LINE_OPEN, NULL), NULL); break;
    case 2: result = odb_apply(db_send_retry_op(line, dice(2) ? odb_id(line, seq) : NULL), NULL); break;
    case 3: result = odb_apply(db_send_skip_op(line, odb_id(line, seq)), NULL); break;
    case 4: result = odb_apply(db_send_replay_op(line, dice(5), dice(9)), NULL); break;
    case 5: odb_line(line, dice(2)); break;
    case 6:
    case 7:
    case 8:
        m.due_ms += dice(1000);
        m.wait_until_ms = dice(4) == 0 ? m.due_ms : 0;
        m.line_state = dice(20) == 0 ? dice(3) : DB_LINE_OPEN;
        m.send_again_from = dice(10) == 0 ? 1 + dice(9) : 0;
        m.skipped = dice(2);
        m.works = dice(2);
        m.fails = dice(2);
        result = odb_report(&m, 1);
        break;
    default: odb_send(line);
    }
    ck_assert(result == DB_OK || result == DB_NONE || result == DB_CONFLICT);
}

START_TEST(it_is_due_when_its_messages_say)
{
    for (int i = 0; i < 400; i++) {
        something();
        odb_is_settled();
    }
    tdb_is_sound();
}
END_TEST

/* ---- costs ---- */

/* Steps of SQLite's machine in all statements of the connection, since it was asked last. */
static int64_t steps(void)
{
    int64_t n = 0;
    for (sqlite3_stmt *s = sqlite3_next_stmt(odb_conn.db, NULL); s != NULL; s = sqlite3_next_stmt(odb_conn.db, s)) {
        n += sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 1);
        n += sqlite3_stmt_status(s, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1);
    }
    return n;
}

/* One of each operation on a line of so many messages. */
static int64_t cost(const char *line, unsigned messages)
{
    while (odb_send(line) < messages)
        continue;
    int64_t prepared = steps();
    uint64_t last = odb_send(line);
    ck_assert_int_gt(prepared, 0);
    odb_mark(line, last / 2, DB_SEND_PARKED);
    odb_mark(line, last / 2 + 1, DB_SEND_WAITING);
    odb_mark(line, 2, DB_SEND_DELIVERED);
    ck_assert_int_eq(odb_apply(db_send_retry_op(line, odb_id(line, last / 2)), NULL), DB_OK);
    ck_assert_int_eq(odb_apply(db_send_skip_op(line, odb_id(line, last / 2 + 2)), NULL), DB_OK);
    ck_assert_int_eq(odb_apply(db_send_replay_op(line, 2, 2), NULL), DB_OK);
    ck_assert_int_eq(odb_apply(db_line_state_op(line, DB_LINE_PAUSED, NULL), NULL), DB_OK);
    ck_assert_int_eq(odb_apply(db_line_state_op(line, DB_LINE_OPEN, NULL), NULL), DB_OK);
    return steps();
}

START_TEST(the_cost_does_not_grow_with_messages)
{
    const char *line = _i == 0 ? "orders" : "news";
    (void)cost(line, 20);
    int64_t few = cost(line, 40), many = cost(line, 1500);
    ck_assert_msg(many < few + few / 2, "%lld steps with many, %lld with few", (long long)many, (long long)few);
}
END_TEST

static bool any_message(void *arg, const struct db_message *m)
{
    (void)arg, (void)m;
    return true;
}

static bool any_due(void *arg, const struct db_due_message *m)
{
    (void)arg, (void)m;
    return true;
}

static bool any_line(void *arg, const struct db_line *line)
{
    (void)arg, (void)line;
    return true;
}

static bool any_attempt(void *arg, const struct db_attempt *a)
{
    (void)arg, (void)a;
    return true;
}

static void read_everything(void)
{
    char all[1000] = "";
    struct db_line_key keys[DB_LINE_KEYS_MAX];
    struct db_send_totals totals;
    struct db_message m;
    unsigned count;
    int64_t n, due;
    ck_assert_int_eq(find("orders"), DB_OK);
    int64_t id = found.id;
    ck_assert_int_eq(db_line_list(odb_reader, "", 9, join, all), DB_OK);
    ck_assert_int_eq(db_line_keys(odb_reader, id, keys, &count), DB_OK);
    ck_assert_int_eq(db_message_list(odb_reader, id, DB_SEND_STATES, 0, 9, any_message, NULL), DB_OK);
    ck_assert_int_eq(db_message_list(odb_reader, id, DB_SEND_DELIVERED, 0, 9, any_message, NULL), DB_OK);
    ck_assert_int_eq(db_message_find(odb_reader, odb_id("orders", 1), DB_MESSAGE_ID_LEN, &m, &n), DB_OK);
    ck_assert_int_eq(db_attempt_list(odb_reader, n, 9, any_attempt, NULL), DB_OK);
    ck_assert_int_eq(db_courier_lines(odb_reader, INT64_MAX, 9, any_line, NULL), DB_OK);
    ck_assert_int_eq(db_courier_messages(odb_reader, id, true, 0, 0, 0, 9, any_due, NULL), DB_OK);
    ck_assert_int_eq(db_courier_messages(odb_reader, id, false, INT64_MAX, 0, 0, 9, any_due, NULL), DB_OK);
    ck_assert_int_eq(db_courier_due(odb_reader, &due), DB_OK);
    ck_assert_int_eq(db_send_totals(odb_reader, &totals), DB_OK);
}

/* What reads tables from one end to the other, or sorts; lines are few, and counted by nobody who is in a hurry. */
static void by_indexes(sqlite3 *db)
{
    static const char *const small[] = {"SCAN CONSTANT ROW", "SCAN (subquery", "SCAN l ", "SCAN g", "SCAN outbox_gone"};
    struct db_conn own;
    tdb_open(&own); /* explaining prepares: not on the connection that is walked through */
    for (sqlite3_stmt *s = sqlite3_next_stmt(db, NULL); s != NULL; s = sqlite3_next_stmt(db, s)) {
        char sql[4000];
        sqlite3_stmt *plan;
        snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", sqlite3_sql(s));
        if (strstr(sql, "outbox") == NULL && strstr(sql, "attempt") == NULL)
            continue;
        ck_assert_int_eq(sqlite3_prepare_v2(own.db, sql, -1, &plan, NULL), SQLITE_OK);
        while (sqlite3_step(plan) == SQLITE_ROW) {
            const char *detail = (const char *)sqlite3_column_text(plan, 3);
            bool scans = strncmp(detail, "SCAN ", 5) == 0;
            for (size_t i = 0; i < COUNT(small); i++)
                scans = scans && strncmp(detail, small[i], strlen(small[i])) != 0;
            ck_assert_msg(!scans && strstr(detail, "AUTOMATIC") == NULL, "%s: %s", detail, sql);
        }
        sqlite3_finalize(plan);
    }
    db_conn_close(&own);
}

START_TEST(everything_is_found_by_an_index)
{
    bool more;
    int64_t oldest;
    cost("orders", _i == 0 ? 20 : 300);
    cost("news", 20);
    ck_assert_int_eq(odb_apply(db_send_retry_op("orders", NULL), NULL), DB_OK);
    ck_assert_int_eq(odb_apply(db_send_replay_op("orders", 1, 0), NULL), DB_OK);
    ck_assert_int_eq(db_outbox_prune(&odb_conn, INT64_MAX, 9, &more, &oldest), DB_OK);
    if (_i == 1)
        tdb_sql(odb_conn.db, "ANALYZE"); /* a person may do that */
    read_everything();
    by_indexes(odb_conn.db);
    by_indexes(odb_reader->conn.db);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("line");
    TCase *t = run_case(s, "line");
    temp_use(t);
    tcase_add_checked_fixture(t, odb_open, odb_close);
    tcase_add_test(t, names);
    tcase_add_test(t, all_that_is_set_is_read);
    tcase_add_test(t, set_again);
    tcase_add_test(t, lists_go_on_behind_a_name);
    tcase_add_test(t, malformed_settings_change_nothing);
    tcase_add_test(t, paused_and_opened);
    tcase_add_test(t, a_line_that_is_removed_is_another_when_it_comes_again);
    tcase_add_test(t, by_hand);
    tcase_add_test(t, it_is_due_when_its_messages_say);
    tcase_add_loop_test(t, the_cost_does_not_grow_with_messages, 0, 2);
    tcase_add_loop_test(t, everything_is_found_by_an_index, 0, 2);
    return s;
}

int main(void)
{
    return run_suite(suite());
}
