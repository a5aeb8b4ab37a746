/* db/inbox*: sources, what is stored once, where it stands on its line, and what an app does with it. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "db/inbox_internal.h"
#include "tests/unit/adb.h"

static sqlite3 *db;
static int64_t source; /* of the inbox "orders" */

enum { ALICE = 'a', BOB = 'b', NEW_ALICE = 'n' };

/* A key whose bytes are all that letter, of a sender whose root is that other. */
static struct db_inbox_key key_of(enum db_inbox_key_kind kind, char letter, char root)
{
    struct db_inbox_key k = {.kind = kind};
    memset(k.id, letter, sizeof k.id);
    memset(k.key, letter, sizeof k.key);
    memset(k.root, root, sizeof k.root);
    return k;
}

static enum db_result apply(struct db_op *op)
{
    ck_assert_ptr_nonnull(op);
    ck_assert_int_eq(tdb_burst(&adb_conn, op), DB_OK);
    enum db_result result = op->result;
    tdb_free(op);
    return result;
}

static enum db_result set(const char *name, const struct db_inbox_key *keys, unsigned count, bool start_any)
{
    struct db_inbox_set s = {.name = name, .keys = keys, .key_count = count, .start_any = start_any};
    return apply(db_inbox_set_op(&s));
}

static int64_t id_of(const char *name)
{
    struct db_inbox in;
    ck_assert_int_eq(db_reader_begin(adb_reader), DB_OK);
    enum db_result result = db_inbox_find(adb_reader, name, strlen(name), &in);
    int64_t id = result == DB_OK ? in.id : 0;
    db_reader_end(adb_reader);
    return id;
}

static void open_all(void)
{
    adb_open();
    db = tdb_shell();
    struct db_inbox_key keys[] = {key_of(DB_INBOX_IDENTITY, ALICE, ALICE), key_of(DB_INBOX_TRANSPORT, ALICE, ALICE),
                                  key_of(DB_INBOX_IDENTITY, BOB, BOB)};
    ck_assert_int_eq(set("orders", keys, COUNT(keys), false), DB_OK);
    source = id_of("orders");
}

static void close_all(void)
{
    sqlite3_close(db);
    adb_close();
}

/* ---- messages -------------------------------------------------------------------------------- */

/* The hash of message `seq` of a sender; text makes it another. 0: zero. */
static const unsigned char *hash_of(uint64_t seq, const char *text)
{
    static unsigned char hashes[8][DB_MESSAGE_HASH_BYTES];
    static unsigned next;
    unsigned char *h = hashes[next++ % COUNT(hashes)];
    memset(h, 0, DB_MESSAGE_HASH_BYTES);
    if (seq > 0)
        snprintf((char *)h, DB_MESSAGE_HASH_BYTES, "%llu %s", (unsigned long long)seq, text);
    return h;
}

struct sent {
    const char *id; /* NULL: of the sender, the number and the text */
    char sender;
    uint64_t seq;
    bool any, skipped;
    const char *text, *before; /* of the one before it; NULL: text */
    int64_t days;              /* ago */
};

static struct db_op *op_of(struct sent s, const struct db_app_run *run)
{
    static char id[100], sender[DB_KEY_ID_BYTES];
    const char *text = s.text != NULL ? s.text : "hello";
    snprintf(id, sizeof id, "msg_%c%llu%s", s.sender, (unsigned long long)s.seq, text);
    memset(sender, s.sender, sizeof sender);
    const char *of = s.id != NULL ? s.id : id;
    struct db_inbox_message m = {
        .source = source, .id = of, .id_bytes = strlen(of),
        .sender = s.sender != 0 ? (unsigned char *)sender : NULL, .line = "line", .line_bytes = 4, .seq = s.seq,
        .fifo = !s.any, .skipped = s.skipped, .prev = hash_of(s.seq - 1, s.before != NULL ? s.before : "hello"),
        .hash = hash_of(s.seq > 0 ? s.seq : 99, text), .type = "text/plain", .type_bytes = 10,
        .sent = time(NULL) - s.days * 86400, .body = text, .bytes = strlen(text), .text = true};
    struct db_op *op = db_inbox_take_op(&m, run, NULL, NULL);
    ck_assert_ptr_nonnull(op);
    return op;
}

static uint64_t last_seq;

/* Takes a message in a burst of its own, which must go well. */
static enum db_inbox_verdict take(struct sent s)
{
    struct db_op *op = op_of(s, NULL);
    ck_assert_int_eq(tdb_burst(&adb_conn, op), DB_OK);
    ck_assert_int_eq(op->result, DB_OK);
    enum db_inbox_verdict verdict = db_inbox_taken(op);
    last_seq = op->seq;
    tdb_free(op);
    return verdict;
}

static int64_t stored(void)
{
    return tdb_ask(db, "SELECT count(*) FROM inbox");
}

START_TEST(a_message_is_stored_as_it_came)
{
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 1}), DB_INBOX_STORED);
    ck_assert_uint_eq(last_seq, 1);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM inbox WHERE id = 'msg_a1hello' AND line = 'line' AND seq = 1"
                                 " AND type = 'text/plain' AND body = 'hello' AND typeof(body) = 'text'"
                                 " AND sender = CAST('aaaaaaaaaaaaaaaa' AS BLOB) AND received > 1700000000"), 1);
}
END_TEST

START_TEST(the_same_again_is_known_and_not_stored)
{
    take((struct sent){.sender = ALICE, .seq = 1});
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 1}), DB_INBOX_AGAIN);
    ck_assert_uint_eq(last_seq, 1);
    ck_assert_int_eq(stored(), 1);
}
END_TEST

START_TEST(the_same_twice_in_a_burst_is_stored_once)
{
    struct db_op *a = op_of((struct sent){.sender = ALICE, .seq = 1}, NULL);
    struct db_op *b = op_of((struct sent){.sender = ALICE, .seq = 1}, NULL);
    ck_assert_int_eq(tdb_burst(&adb_conn, tdb_list(a, b, NULL)), DB_OK);
    ck_assert_int_eq(db_inbox_taken(a), DB_INBOX_STORED);
    ck_assert_int_eq(db_inbox_taken(b), DB_INBOX_AGAIN);
    ck_assert_int_eq(stored(), 1);
    tdb_free(a);
}
END_TEST

START_TEST(an_id_with_other_bytes_is_a_conflict)
{
    take((struct sent){.id = "x", .text = "one"});
    ck_assert_int_eq(take((struct sent){.id = "x", .seq = 5, .text = "two"}), DB_INBOX_CONFLICT);
    ck_assert_int_eq(stored(), 1);
}
END_TEST

START_TEST(without_an_envelope_only_the_id_counts)
{
    ck_assert_int_eq(take((struct sent){.id = "x"}), DB_INBOX_STORED);
    ck_assert_int_eq(take((struct sent){.id = "y"}), DB_INBOX_STORED);
    ck_assert_int_eq(take((struct sent){.id = "x"}), DB_INBOX_AGAIN);
    ck_assert_uint_eq(last_seq, 0);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM inbox WHERE sender IS NULL AND line IS NULL AND seq IS NULL"), 2);
}
END_TEST

START_TEST(an_id_of_another_inbox_is_another_message)
{
    take((struct sent){.id = "x"});
    ck_assert_int_eq(set("second", NULL, 0, false), DB_OK);
    source = id_of("second");
    ck_assert_int_eq(take((struct sent){.id = "x", .text = "other"}), DB_INBOX_STORED);
}
END_TEST

START_TEST(bytes_that_are_no_text_are_a_blob)
{
    struct db_inbox_message m = {.source = source, .id = "x", .id_bytes = 1, .hash = hash_of(1, ""), .type = "a/b",
                                 .type_bytes = 3, .body = "a\0\xff", .bytes = 3};
    ck_assert_int_eq(apply(db_inbox_take_op(&m, NULL, NULL, NULL)), DB_OK);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM inbox WHERE body = x'6100ff'"), 1);
}
END_TEST

/* ---- order ----------------------------------------------------------------------------------- */

START_TEST(numbers_that_are_missing_are_a_gap)
{
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 3}), DB_INBOX_GAP);
    ck_assert_uint_eq(last_seq, 1);
    take((struct sent){.sender = ALICE, .seq = 1});
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 3}), DB_INBOX_GAP);
    ck_assert_uint_eq(last_seq, 2);
    ck_assert_int_eq(stored(), 1);
}
END_TEST

START_TEST(a_number_that_is_given_again_is_a_conflict)
{
    for (uint64_t i = 1; i <= 3; i++)
        ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = i}), DB_INBOX_STORED);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 3, .text = "other"}), DB_INBOX_CONFLICT);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 2, .text = "other"}), DB_INBOX_CONFLICT);
    ck_assert_int_eq(stored(), 3);
}
END_TEST

START_TEST(another_predecessor_is_a_conflict)
{
    take((struct sent){.sender = ALICE, .seq = 1, .text = "one"});
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 2, .before = "other"}), DB_INBOX_CONFLICT);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 2, .before = "one"}), DB_INBOX_STORED);
}
END_TEST

START_TEST(what_is_first_has_no_predecessor)
{
    unsigned char sender[DB_KEY_ID_BYTES];
    memset(sender, BOB, sizeof sender);
    struct db_inbox_message m = {.source = source, .id = "x", .id_bytes = 1, .sender = sender, .line = "line",
                                 .line_bytes = 4, .seq = 1, .fifo = true, .prev = hash_of(7, "x"), .hash = hash_of(1, ""),
                                 .type = "a/b", .type_bytes = 3, .body = "", .bytes = 0};
    struct db_op *take_it = db_inbox_take_op(&m, NULL, NULL, NULL);
    ck_assert_int_eq(tdb_burst(&adb_conn, take_it), DB_OK);
    ck_assert_int_eq(db_inbox_taken(take_it), DB_INBOX_CONFLICT);
    tdb_free(take_it);
}
END_TEST

START_TEST(senders_do_not_share_a_line)
{
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 1}), DB_INBOX_STORED);
    ck_assert_int_eq(take((struct sent){.sender = BOB, .seq = 1}), DB_INBOX_STORED);
    ck_assert_int_eq(take((struct sent){.sender = BOB, .seq = 3}), DB_INBOX_GAP);
    ck_assert_uint_eq(last_seq, 2);
}
END_TEST

START_TEST(any_order_takes_holes_and_fills_them)
{
    static const uint64_t order[] = {3, 1, 5, 2, 4};
    for (unsigned i = 0; i < COUNT(order); i++) {
        ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = order[i], .any = true}), DB_INBOX_STORED);
        ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = order[i], .any = true}), DB_INBOX_AGAIN);
    }
    ck_assert_int_eq(stored(), 5);
    ck_assert_int_eq(tdb_ask(db, "SELECT seq FROM inbox_line"), 5);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM inbox_ahead"), 0);
}
END_TEST

START_TEST(a_number_ahead_with_other_bytes_is_a_conflict)
{
    take((struct sent){.sender = ALICE, .seq = 3, .any = true});
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 3, .any = true, .text = "x"}), DB_INBOX_CONFLICT);
    tdb_sql(db, "DELETE FROM inbox_seen");
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 3, .any = true}), DB_INBOX_AGAIN);
    ck_assert_int_eq(stored(), 1);
}
END_TEST

START_TEST(a_line_that_becomes_fifo_goes_on)
{
    take((struct sent){.sender = ALICE, .seq = 2, .any = true});
    take((struct sent){.sender = ALICE, .seq = 3, .any = true});
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 4}), DB_INBOX_GAP);
    ck_assert_uint_eq(last_seq, 1);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 3}), DB_INBOX_AGAIN);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 1}), DB_INBOX_STORED);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 4}), DB_INBOX_STORED);
}
END_TEST

START_TEST(many_ahead_are_settled_in_steps)
{
    enum { AHEAD = 5000 };
    take((struct sent){.sender = ALICE, .seq = 2, .any = true});
    tdb_sql(db, "WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i <= 5000)"
                " INSERT INTO inbox_ahead SELECT (SELECT id FROM inbox_line), i,"
                " CAST(printf('%d hello', i) || zeroblob(32 - length(printf('%d hello', i))) AS BLOB) FROM n");
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 1, .any = true}), DB_INBOX_STORED);
    ck_assert_int_eq(tdb_ask(db, "SELECT seq FROM inbox_line"), 4097);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = AHEAD + 2}), DB_INBOX_STORED);
    ck_assert_int_eq(tdb_ask(db, "SELECT seq FROM inbox_line"), AHEAD + 2);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM inbox_ahead"), 0);
}
END_TEST

START_TEST(start_any_begins_in_the_middle_once)
{
    ck_assert_int_eq(set("late", NULL, 0, true), DB_OK);
    source = id_of("late");
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 40, .before = "unknown"}), DB_INBOX_STORED);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 42}), DB_INBOX_GAP);
    ck_assert_uint_eq(last_seq, 41);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 41, .before = "x"}), DB_INBOX_CONFLICT);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 41}), DB_INBOX_STORED);
}
END_TEST

START_TEST(start_any_of_any_order_loses_nothing)
{
    ck_assert_int_eq(set("late", NULL, 0, true), DB_OK);
    source = id_of("late");
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 42, .any = true}), DB_INBOX_STORED);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 40, .any = true}), DB_INBOX_STORED);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 41, .any = true}), DB_INBOX_STORED);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 40, .any = true}), DB_INBOX_AGAIN);
    ck_assert_int_eq(stored(), 3);
}
END_TEST

START_TEST(a_number_beyond_all_is_refused)
{
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = UINT64_MAX, .any = true}), DB_INBOX_CONFLICT);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = UINT64_C(1) << 63, .any = true}), DB_INBOX_CONFLICT);
    ck_assert_int_eq(stored(), 0);
}
END_TEST

START_TEST(a_tombstone_moves_the_mark_alone)
{
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 1, .skipped = true}), DB_INBOX_STORED);
    ck_assert_int_eq(stored(), 0);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 1}), DB_INBOX_AGAIN);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 2}), DB_INBOX_STORED);
}
END_TEST

START_TEST(a_tombstone_of_what_is_there_takes_nothing_away)
{
    take((struct sent){.sender = ALICE, .seq = 1});
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 1, .skipped = true}), DB_INBOX_AGAIN);
    ck_assert_int_eq(stored(), 1);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

START_TEST(a_message_that_is_deleted_does_not_come_back)
{
    take((struct sent){.sender = ALICE, .seq = 1});
    take((struct sent){.id = "x"});
    tdb_sql(db, "DELETE FROM inbox");
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 1}), DB_INBOX_AGAIN);
    ck_assert_int_eq(take((struct sent){.id = "x"}), DB_INBOX_AGAIN);
    ck_assert_int_eq(stored(), 0);
}
END_TEST

START_TEST(a_number_is_known_when_the_id_is_forgotten)
{
    for (uint64_t i = 1; i <= 3; i++)
        take((struct sent){.sender = ALICE, .seq = i, .days = 31});
    tdb_sql(db, "DELETE FROM inbox_seen");
    for (uint64_t i = 1; i <= 3; i++)
        ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = i, .days = 31}), DB_INBOX_AGAIN);
    ck_assert_int_eq(stored(), 3);
}
END_TEST

static bool tidy(unsigned most)
{
    bool more;
    ck_assert_int_eq(db_inbox_tidy(&adb_conn, most, &more), DB_OK);
    return more;
}

START_TEST(ids_are_forgotten_30_days_before_the_newest)
{
    take((struct sent){.id = "old"});
    tdb_sql(db, "UPDATE inbox_seen SET received = received - 31 * 86400");
    ck_assert(!tidy(100));
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM inbox_seen"), 1); /* nothing newer has come */
    take((struct sent){.id = "new"});
    ck_assert(!tidy(100));
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM inbox_seen WHERE id = 'new'"), 1);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM inbox_seen"), 1);
}
END_TEST

START_TEST(ids_are_forgotten_in_steps)
{
    take((struct sent){.id = "new"});
    tdb_sql(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25)"
                " INSERT INTO inbox_seen SELECT 1, 'old' || i, zeroblob(32), i FROM n");
    ck_assert(tidy(10));
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM inbox_seen"), 16);
    ck_assert(tidy(10));
    ck_assert(!tidy(10));
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM inbox_seen"), 1);
}
END_TEST

/* ---- sources --------------------------------------------------------------------------------- */

START_TEST(a_closed_inbox_takes_nothing)
{
    ck_assert_int_eq(apply(db_inbox_state_op("orders", true)), DB_OK);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 1}), DB_INBOX_CLOSED);
    ck_assert_int_eq(stored(), 0);
    ck_assert_int_eq(apply(db_inbox_state_op("orders", false)), DB_OK);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 1}), DB_INBOX_STORED);
}
END_TEST

START_TEST(what_is_not_there_cannot_be_changed)
{
    ck_assert_int_eq(apply(db_inbox_state_op("nothing", true)), DB_NONE);
    ck_assert_int_eq(apply(db_inbox_remove_op("nothing")), DB_NONE);
    ck_assert_int_eq(apply(db_inbox_remove_op("/1")), DB_NONE);
}
END_TEST

START_TEST(a_name_is_taken_once)
{
    struct db_inbox_set again = {.name = "orders", .only_new = true};
    ck_assert_int_eq(apply(db_inbox_set_op(&again)), DB_EXISTS);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM inbox_key"), 3);
}
END_TEST

START_TEST(all_that_is_set_is_read)
{
    struct db_inbox_key keys[DB_INBOX_KEYS_MAX], key = key_of(DB_INBOX_TRANSPORT, 't', 'r');
    struct db_inbox in;
    unsigned count;
    key.valid_from = 1700000000;
    key.valid_until = -1;
    struct db_inbox_set s = {.name = "full", .app = "shop", .event = "order", .secret = (const unsigned char *)"hidden",
                             .secret_bytes = 6, .keys = &key, .key_count = 1, .start_any = true};
    ck_assert_int_eq(apply(db_inbox_set_op(&s)), DB_OK);
    ck_assert_int_eq(db_inbox_find(adb_reader, "full", 4, &in), DB_OK);
    ck_assert_str_eq(in.name, "full");
    ck_assert_str_eq(in.app, "shop");
    ck_assert_str_eq(in.event, "order");
    ck_assert_mem_eq(in.secret, "hidden", 6);
    ck_assert(in.start_any && !in.closed && in.keys == 1 && in.created > 0 && in.last_received == 0);
    ck_assert_int_eq(db_inbox_keys(adb_reader, in.id, keys, &count), DB_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_mem_eq(keys[0].id, key.id, sizeof key.id);
    ck_assert_mem_eq(keys[0].root, key.root, sizeof key.root);
    ck_assert(keys[0].kind == DB_INBOX_TRANSPORT && keys[0].valid_from == 1700000000 && keys[0].valid_until == -1);
}
END_TEST

START_TEST(setting_again_replaces_and_may_keep_the_secret)
{
    struct db_inbox_set s = {.name = "full", .secret = (const unsigned char *)"one", .secret_bytes = 3};
    ck_assert_int_eq(apply(db_inbox_set_op(&s)), DB_OK);
    struct db_inbox_set keep = {.name = "full", .keep_secret = true, .app = "shop", .event = "e"};
    ck_assert_int_eq(apply(db_inbox_set_op(&keep)), DB_OK);
    ck_assert_int_eq(tdb_ask(db, "SELECT secret = CAST('one' AS BLOB) AND app = 'shop' FROM inbox_source"
                                 " WHERE name = 'full'"), 1);
    struct db_inbox_set drop = {.name = "full"};
    ck_assert_int_eq(apply(db_inbox_set_op(&drop)), DB_OK);
    ck_assert_int_eq(tdb_ask(db, "SELECT secret IS NULL AND app IS NULL FROM inbox_source WHERE name = 'full'"), 1);
}
END_TEST

START_TEST(a_sender_with_another_identity_goes_on)
{
    take((struct sent){.sender = ALICE, .seq = 1});
    struct db_inbox_key keys[] = {key_of(DB_INBOX_IDENTITY, NEW_ALICE, NEW_ALICE), key_of(DB_INBOX_IDENTITY, ALICE, NEW_ALICE),
                                  key_of(DB_INBOX_TRANSPORT, NEW_ALICE, NEW_ALICE)};
    ck_assert_int_eq(set("orders", keys, COUNT(keys), false), DB_OK);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM inbox_key WHERE root = CAST('aaaaaaaaaaaaaaaa' AS BLOB)"), 3);
    /* and once more, when the first one is in no card any more */
    ck_assert_int_eq(set("orders", keys, 1, false), DB_OK);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM inbox_key WHERE root = CAST('aaaaaaaaaaaaaaaa' AS BLOB)"), 1);
}
END_TEST

START_TEST(a_sender_that_comes_back_goes_on)
{
    take((struct sent){.sender = ALICE, .seq = 1});
    ck_assert_int_eq(set("orders", NULL, 0, false), DB_OK);
    struct db_inbox_key keys[] = {key_of(DB_INBOX_IDENTITY, NEW_ALICE, NEW_ALICE), key_of(DB_INBOX_IDENTITY, ALICE, NEW_ALICE)};
    ck_assert_int_eq(set("orders", keys, COUNT(keys), false), DB_OK);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM inbox_key WHERE root = CAST('aaaaaaaaaaaaaaaa' AS BLOB)"), 2);
}
END_TEST

START_TEST(what_is_removed_is_gone_at_once_and_deleted_in_steps)
{
    for (uint64_t i = 1; i <= 20; i++)
        take((struct sent){.sender = ALICE, .seq = i == 20 ? 30 : i, .any = true});
    ck_assert_int_eq(apply(db_inbox_remove_op("orders")), DB_OK);
    ck_assert_int_eq(id_of("orders"), 0);
    ck_assert_int_eq(take((struct sent){.sender = BOB, .seq = 1}), DB_INBOX_CLOSED);
    ck_assert_int_eq(set("orders", NULL, 0, false), DB_OK); /* the name is free */
    int64_t second = id_of("orders");
    ck_assert_int_ne(second, source);
    unsigned steps = 0;
    while (tidy(8))
        ck_assert_uint_lt(steps++, 20);
    ck_assert_uint_gt(steps, 3);
    ck_assert_int_eq(tdb_ask(db, "SELECT (SELECT count(*) FROM inbox) + (SELECT count(*) FROM inbox_seen)"
                                 " + (SELECT count(*) FROM inbox_line) + (SELECT count(*) FROM inbox_ahead)"
                                 " + (SELECT count(*) FROM inbox_key)"), 0);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM inbox_source"), 1);
    ck_assert_int_eq(id_of("orders"), second);
}
END_TEST

START_TEST(malformed_operations_are_refused)
{
    static const char *const names[] = {"", "/1", "-", "Upper", "a b"};
    for (unsigned i = 0; i < COUNT(names); i++) {
        struct db_inbox_set s = {.name = names[i]};
        ck_assert_int_eq(apply(db_inbox_set_op(&s)), DB_INVALID);
    }
    struct db_op *op = db_op_new(DB_OP_INBOX_SET, 100); /* keys that are none */
    db_op_copy(op, 0, DB_VALUE_TEXT, "x", 1);
    db_op_int(op, 1, 0);
    db_op_copy(op, 4, DB_VALUE_BLOB, "123456", 6);
    ck_assert_int_eq(apply(op), DB_INVALID);
    ck_assert_int_eq(tdb_ask(db, "SELECT count(*) FROM inbox_source"), 1);
}
END_TEST

/* ---- reading --------------------------------------------------------------------------------- */

static char listed[1000];
static bool add_name(void *arg, const struct db_inbox *in)
{
    snprintf(listed + strlen(listed), sizeof listed - strlen(listed), "%s ", in->name);
    return arg == NULL;
}

static bool add_row(void *arg, const struct db_inbox_row *row)
{
    (void)arg;
    snprintf(listed + strlen(listed), sizeof listed - strlen(listed), "%s=%.*s/%zu ", row->id,
             row->body != NULL ? (int)row->bytes : 0, row->body != NULL ? (const char *)row->body : "", row->bytes);
    return true;
}

static bool add_mark(void *arg, const struct db_inbox_mark *m)
{
    (void)arg;
    snprintf(listed + strlen(listed), sizeof listed - strlen(listed), "%c %s %llu+%llu ", m->sender[0], m->line,
             (unsigned long long)m->seq, (unsigned long long)m->ahead);
    return true;
}

START_TEST(inboxes_are_listed_by_name)
{
    static int stop;
    set("b", NULL, 0, false);
    set("gone", NULL, 0, false);
    apply(db_inbox_remove_op("gone"));
    set("0", NULL, 0, false);
    listed[0] = 0;
    ck_assert_int_eq(db_inbox_list(adb_reader, "", 10, add_name, NULL), DB_OK);
    ck_assert_str_eq(listed, "0 b orders ");
    listed[0] = 0;
    ck_assert_int_eq(db_inbox_list(adb_reader, "b", 10, add_name, NULL), DB_OK);
    ck_assert_str_eq(listed, "orders ");
    listed[0] = 0;
    ck_assert_int_eq(db_inbox_list(adb_reader, "", 10, add_name, &stop), DB_OK);
    ck_assert_str_eq(listed, "0 ");
}
END_TEST

START_TEST(messages_are_listed_as_they_came)
{
    take((struct sent){.id = "z", .text = "one"});
    take((struct sent){.id = "a", .text = "three"});
    listed[0] = 0;
    ck_assert_int_eq(db_inbox_messages(adb_reader, source, 0, 10, true, add_row, NULL), DB_OK);
    ck_assert_str_eq(listed, "z=one/3 a=three/5 ");
    listed[0] = 0;
    ck_assert_int_eq(db_inbox_messages(adb_reader, source, 1, 10, false, add_row, NULL), DB_OK);
    ck_assert_str_eq(listed, "a=/5 ");
}
END_TEST

START_TEST(a_message_is_found_in_its_inbox_alone)
{
    struct db_inbox_row row;
    take((struct sent){.sender = ALICE, .seq = 1});
    ck_assert_int_eq(db_inbox_message(adb_reader, source, 1, &row), DB_OK);
    ck_assert(row.bytes == 5 && memcmp(row.body, "hello", 5) == 0 && row.text && row.seq == 1);
    ck_assert_int_eq(db_inbox_message(adb_reader, source + 1, 1, &row), DB_NONE);
    ck_assert_int_eq(db_inbox_message(adb_reader, source, 2, &row), DB_NONE);
}
END_TEST

START_TEST(marks_tell_how_far_a_line_has_come)
{
    take((struct sent){.sender = BOB, .seq = 1});
    take((struct sent){.sender = ALICE, .seq = 3, .any = true});
    listed[0] = 0;
    ck_assert_int_eq(db_inbox_marks(adb_reader, source, 10, add_mark, NULL), DB_OK);
    ck_assert_str_eq(listed, "a line 0+1 b line 1+0 ");
}
END_TEST

/* ---- an app ---------------------------------------------------------------------------------- */

static int holds;
static void count_hold(void *held)
{
    (void)held;
    holds++;
}

static int64_t items(void)
{
    return tdb_ask(db, "SELECT count(*) FROM shop_item");
}

START_TEST(the_script_runs_with_the_message_once)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE, "INSERT INTO shop_item (name) VALUES (:body)");
    struct db_app_run run = adb_run(s, "body", "tea", (char *)NULL);
    for (int i = 0; i < 2; i++) {
        struct db_op *op = op_of((struct sent){.sender = ALICE, .seq = 1}, &run);
        ck_assert_int_eq(tdb_burst(&adb_conn, op), DB_OK);
        ck_assert_int_eq(op->result, DB_OK);
        ck_assert_int_eq(db_inbox_taken(op), i == 0 ? DB_INBOX_STORED : DB_INBOX_AGAIN);
        tdb_free(op);
    }
    ck_assert_int_eq(items(), 1);
    ck_assert_int_eq(stored(), 1);
}
END_TEST

START_TEST(a_script_that_fails_leaves_nothing_of_the_message)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE, "INSERT INTO shop_item (name) VALUES ('x');\n"
                                                      "INSERT INTO shop_item (name) VALUES (NULL)");
    struct db_app_run run = adb_run(s, (char *)NULL);
    struct db_op *op = op_of((struct sent){.sender = ALICE, .seq = 1}, &run);
    struct db_op *beside = op_of((struct sent){.id = "beside"}, NULL);
    const char *file;
    ck_assert_int_eq(tdb_burst(&adb_conn, tdb_list(op, beside, NULL)), DB_OK);
    ck_assert_int_eq(op->result, DB_INVALID);
    ck_assert_uint_eq(db_app_op_fault(db_inbox_app_op(op), &file)->line, 2);
    ck_assert_int_eq(db_inbox_taken(beside), DB_INBOX_STORED);
    ck_assert_int_eq(items(), 0);
    ck_assert_int_eq(stored(), 1);
    ck_assert_int_eq(tdb_ask(db, "SELECT (SELECT count(*) FROM inbox_seen WHERE id <> 'beside')"
                                 " + (SELECT count(*) FROM inbox_line)"), 0);
    tdb_free(op);
    ck_assert_int_eq(take((struct sent){.sender = ALICE, .seq = 1}), DB_INBOX_STORED);
}
END_TEST

START_TEST(a_script_may_refuse_a_message)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE, "INSERT INTO shop_item (name) VALUES ('x');\n"
                                                      "SELECT 422 AS _status");
    struct db_app_run run = adb_run(s, (char *)NULL);
    struct db_op *op = op_of((struct sent){.sender = ALICE, .seq = 1}, &run);
    ck_assert_int_eq(tdb_burst(&adb_conn, op), DB_OK);
    ck_assert_int_eq(op->result, DB_OK);
    ck_assert_int_eq(db_inbox_taken(op), DB_INBOX_STOPPED);
    ck_assert_str_eq(adb_answer(db_inbox_app_op(op)), "422");
    ck_assert_int_eq(items() + stored() + tdb_ask(db, "SELECT count(*) FROM inbox_seen"), 0);
    tdb_free(op);
}
END_TEST

START_TEST(a_tombstone_is_not_handed_to_the_script)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE, "INSERT INTO shop_item (name) VALUES ('x')");
    struct db_app_run run = adb_run(s, (char *)NULL);
    struct db_op *op = op_of((struct sent){.sender = ALICE, .seq = 1, .skipped = true}, &run);
    ck_assert_int_eq(tdb_burst(&adb_conn, op), DB_OK);
    ck_assert_int_eq(db_inbox_taken(op), DB_INBOX_STORED);
    ck_assert_int_eq(items(), 0);
    tdb_free(op);
}
END_TEST

START_TEST(what_is_held_is_given_back_once)
{
    struct db_script *s = adb_script(DB_SCRIPT_WRITE, "SELECT 1");
    struct db_app_run run = adb_run(s, (char *)NULL);
    struct db_inbox_message m = {.source = source, .id = "x", .id_bytes = 1, .hash = hash_of(1, ""), .type = "a/b",
                                 .type_bytes = 3, .body = "", .bytes = 0, .text = true};
    struct db_op *op = db_inbox_take_op(&m, &run, count_hold, NULL);
    ck_assert_int_eq(holds, 0);
    ck_assert_int_eq(apply(op), DB_OK);
    ck_assert_int_eq(holds, 1);
    db_op_free(db_inbox_take_op(&m, NULL, count_hold, NULL));
    ck_assert_int_eq(holds, 2);
}
END_TEST

/* ---- cost ------------------------------------------------------------------------------------ */

static bool scans(const char *sql)
{
    sqlite3_stmt *s = NULL;
    bool found = false;
    char *text = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
    ck_assert_int_eq(sqlite3_prepare_v2(db, text, -1, &s, NULL), SQLITE_OK);
    while (sqlite3_step(s) == SQLITE_ROW) {
        const char *detail = (const char *)sqlite3_column_text(s, 3);
        found |= strstr(detail, "SCAN ") != NULL && strstr(detail, "SCAN (subquery") == NULL &&
                 strstr(detail, "SCAN CONSTANT") == NULL;
        found |= strstr(detail, "TEMP B-TREE") != NULL;
    }
    sqlite3_finalize(s);
    sqlite3_free(text);
    return found;
}

/* Each statement of ours that was prepared by what the tests above do: none looks at a whole table. */
START_TEST(every_statement_goes_by_an_index)
{
    struct db_inbox_row row;
    unsigned looked = 0;
    for (uint64_t i = 1; i <= 3; i++)
        take((struct sent){.sender = ALICE, .seq = i == 2 ? 9 : i, .any = true});
    take((struct sent){.sender = ALICE, .seq = 2, .any = true});
    set("again", NULL, 0, true);
    set("again", NULL, 0, true);
    apply(db_inbox_state_op("again", true));
    apply(db_inbox_remove_op("again"));
    tidy(10);
    listed[0] = 0;
    ck_assert_int_eq(db_inbox_list(adb_reader, "", 10, add_name, NULL), DB_OK);
    ck_assert_int_eq(db_inbox_messages(adb_reader, source, 0, 10, true, add_row, NULL), DB_OK);
    ck_assert_int_eq(db_inbox_message(adb_reader, source, 1, &row), DB_OK);
    ck_assert_int_eq(db_inbox_marks(adb_reader, source, 10, add_mark, NULL), DB_OK);
    for (int slot = SLOT_INBOX_FIND; slot <= SLOT_INBOX_STORE; slot++) {
        sqlite3_stmt *const statements[] = {adb_conn.statements[slot], adb_reader->conn.statements[slot]};
        for (unsigned i = 0; i < COUNT(statements); i++)
            if (statements[i] != NULL) {
                ck_assert_msg(!scans(sqlite3_sql(statements[i])), "%s", sqlite3_sql(statements[i]));
                looked++;
            }
    }
    ck_assert_uint_ge(looked, 20);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("inbox");
    TCase *t = run_case(s, "inbox");
    temp_use(t);
    tcase_add_checked_fixture(t, open_all, close_all);
    tcase_add_test(t, a_message_is_stored_as_it_came);
    tcase_add_test(t, the_same_again_is_known_and_not_stored);
    tcase_add_test(t, the_same_twice_in_a_burst_is_stored_once);
    tcase_add_test(t, an_id_with_other_bytes_is_a_conflict);
    tcase_add_test(t, without_an_envelope_only_the_id_counts);
    tcase_add_test(t, an_id_of_another_inbox_is_another_message);
    tcase_add_test(t, bytes_that_are_no_text_are_a_blob);
    tcase_add_test(t, numbers_that_are_missing_are_a_gap);
    tcase_add_test(t, a_number_that_is_given_again_is_a_conflict);
    tcase_add_test(t, another_predecessor_is_a_conflict);
    tcase_add_test(t, what_is_first_has_no_predecessor);
    tcase_add_test(t, senders_do_not_share_a_line);
    tcase_add_test(t, any_order_takes_holes_and_fills_them);
    tcase_add_test(t, a_number_ahead_with_other_bytes_is_a_conflict);
    tcase_add_test(t, a_line_that_becomes_fifo_goes_on);
    tcase_add_test(t, many_ahead_are_settled_in_steps);
    tcase_add_test(t, start_any_begins_in_the_middle_once);
    tcase_add_test(t, start_any_of_any_order_loses_nothing);
    tcase_add_test(t, a_number_beyond_all_is_refused);
    tcase_add_test(t, a_tombstone_moves_the_mark_alone);
    tcase_add_test(t, a_tombstone_of_what_is_there_takes_nothing_away);
    tcase_add_test(t, a_message_that_is_deleted_does_not_come_back);
    tcase_add_test(t, a_number_is_known_when_the_id_is_forgotten);
    tcase_add_test(t, ids_are_forgotten_30_days_before_the_newest);
    tcase_add_test(t, ids_are_forgotten_in_steps);
    tcase_add_test(t, a_closed_inbox_takes_nothing);
    tcase_add_test(t, what_is_not_there_cannot_be_changed);
    tcase_add_test(t, a_name_is_taken_once);
    tcase_add_test(t, all_that_is_set_is_read);
    tcase_add_test(t, setting_again_replaces_and_may_keep_the_secret);
    tcase_add_test(t, a_sender_with_another_identity_goes_on);
    tcase_add_test(t, a_sender_that_comes_back_goes_on);
    tcase_add_test(t, what_is_removed_is_gone_at_once_and_deleted_in_steps);
    tcase_add_test(t, malformed_operations_are_refused);
    tcase_add_test(t, inboxes_are_listed_by_name);
    tcase_add_test(t, messages_are_listed_as_they_came);
    tcase_add_test(t, a_message_is_found_in_its_inbox_alone);
    tcase_add_test(t, marks_tell_how_far_a_line_has_come);
    tcase_add_test(t, the_script_runs_with_the_message_once);
    tcase_add_test(t, a_script_that_fails_leaves_nothing_of_the_message);
    tcase_add_test(t, a_script_may_refuse_a_message);
    tcase_add_test(t, a_tombstone_is_not_handed_to_the_script);
    tcase_add_test(t, what_is_held_is_given_back_once);
    tcase_add_test(t, every_statement_goes_by_an_index);
    return run_suite(s);
}
