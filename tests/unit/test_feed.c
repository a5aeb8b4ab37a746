/* handlers/feed: pages that watchers share. */
#include "handlers/feed.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/tdb.h"

static struct db_conn writer;
static struct db_reader *reader;
static struct feed feed;

static void open_all(void)
{
    tdb_init();
    tdb_open(&writer);
    ck_assert_int_eq(db_reader_open(&tdb_config, &reader, &tdb_error), DB_OK);
}

static void close_all(void)
{
    feed_round_end(&feed, false);
    db_reader_close(reader);
    db_conn_close(&writer);
}

static void apply(struct db_op *op)
{
    ck_assert_int_eq(tdb_burst(&writer, op), DB_OK);
    tdb_free(op);
}

static void fill(unsigned count)
{
    char key[64];
    for (unsigned i = 0; i < count; i++) {
        snprintf(key, sizeof key, "k%04u", i);
        apply(tdb_put(key, "x"));
    }
}

/* The page behind from, in a round of its own. */
static const struct feed_page *get(uint64_t from)
{
    const struct feed_page *page = NULL;
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    ck_assert_int_eq(feed_page(&feed, reader, from, FEED_READS, &page), FEED_OK);
    db_reader_end(reader);
    feed_round_end(&feed, true);
    return page;
}

static const char *event(const struct feed_page *p, unsigned i)
{
    static char text[8192];
    const struct feed_entry *e = feed_entry(p, i);
    snprintf(text, sizeof text, "%.*s", (int)e->event_len, (const char *)p->text.data + e->event);
    return text;
}

START_TEST(a_page)
{
    apply(tdb_put("a\"", "x"));
    apply(tdb_delete("a\""));
    const struct feed_page *p = get(0);
    ck_assert_uint_eq(p->count, 2);
    ck_assert_uint_eq(p->next, 2);
    ck_assert(p->whole);
    ck_assert_str_eq(event(p, 0), "id: 1\ndata: {\"seq\":1,\"key\":\"a\\\"\",\"op\":\"put\",\"etag\":\"\\\"1\\\"\"}\n\n");
    ck_assert_str_eq(event(p, 1), "id: 2\ndata: {\"seq\":2,\"key\":\"a\\\"\",\"op\":\"delete\",\"etag\":null}\n\n");
    const struct feed_entry *e = feed_entry(p, 1);
    ck_assert_mem_eq(p->text.data + e->json, "{\"seq\":2", 8);
    ck_assert_mem_eq(p->text.data + e->json + e->json_len - 5, "null}", 5);
    ck_assert(feed_matches(p, e, STR_LIT("a\"")) && feed_matches(p, e, STR_LIT("")));
    ck_assert(!feed_matches(p, e, STR_LIT("a\"b")) && !feed_matches(p, e, STR_LIT("b")));
}
END_TEST

START_TEST(pages_make_a_whole)
{
    uint64_t at = 0, seen = 0;
    unsigned pages = 0;
    fill(700);
    for (const struct feed_page *p = NULL; p == NULL || !p->whole; pages++) {
        p = get(at);
        for (unsigned i = 0; i < p->count; i++)
            ck_assert_uint_eq(feed_entry(p, i)->seq, ++seen);
        ck_assert_uint_eq(p->from, at);
        ck_assert_uint_eq(p->next, seen);
        at = p->next;
    }
    ck_assert_uint_eq(seen, 700);
    ck_assert_uint_gt(pages, 1);
}
END_TEST

START_TEST(a_page_is_bounded)
{
    sqlite3 *shell = tdb_shell();
    for (unsigned i = 0; i < 200; i++) {
        char sql[1024];
        snprintf(sql, sizeof sql, "INSERT INTO doc (key) VALUES ('%u' || replace(hex(zeroblob(200)), '00', char(1, 1)))", i);
        tdb_sql(shell, sql);
    }
    sqlite3_close(shell);
    const struct feed_page *p = get(0);
    ck_assert_uint_lt(p->text.len, 40000);
    ck_assert(!p->whole);
    ck_assert_uint_lt(p->count, 200);
    ck_assert_uint_eq(p->next, p->count);
}
END_TEST

START_TEST(a_page_is_taken_again)
{
    fill(3);
    const struct feed_page *first = get(0);
    apply(tdb_put("later", "x"));
    ck_assert_ptr_eq(get(0), first);
    ck_assert_uint_eq(first->count, 3);
    ck_assert_uint_eq(get(3)->count, 1);
}
END_TEST

START_TEST(an_empty_page_is_not)
{
    fill(1);
    const struct feed_page *p = get(1);
    ck_assert_uint_eq(p->count, 0);
    ck_assert_uint_eq(p->next, 1);
    ck_assert(p->whole);
    apply(tdb_put("later", "x"));
    ck_assert_uint_eq(get(1)->count, 1);
}
END_TEST

START_TEST(a_hole_is_passed_over)
{
    sqlite3 *shell = tdb_shell();
    fill(3);
    tdb_sql(shell, "UPDATE sqlite_sequence SET seq = 50 WHERE name = 'change'");
    const struct feed_page *p = get(3);
    ck_assert_uint_eq(p->count, 0);
    ck_assert_uint_eq(p->next, 50);
    apply(tdb_put("later", "x"));
    ck_assert_uint_eq(get(50)->count, 1);
    sqlite3_close(shell);
}
END_TEST

START_TEST(a_round_reads_so_many)
{
    const struct feed_page *page = NULL;
    fill(FEED_READS + 2);
    ck_assert_int_eq(db_reader_begin(reader), DB_OK);
    for (unsigned i = 0; i < FEED_READS; i++)
        ck_assert_int_eq(feed_page(&feed, reader, i, FEED_READS, &page), FEED_OK);
    ck_assert_int_eq(feed_page(&feed, reader, FEED_READS, FEED_READS, &page), FEED_LATER);
    ck_assert_int_eq(feed_page(&feed, reader, FEED_READS - 1, FEED_READS, &page), FEED_OK); /* it is there */
    feed_round_end(&feed, true);
    ck_assert_int_eq(feed_page(&feed, reader, FEED_READS, 1, &page), FEED_OK);
    ck_assert_int_eq(feed_page(&feed, reader, FEED_READS + 1, 1, &page), FEED_LATER);
    ck_assert_int_eq(feed_page(&feed, reader, FEED_READS + 1, 2, &page), FEED_OK);
    db_reader_end(reader);
}
END_TEST

START_TEST(the_oldest_makes_room)
{
    fill(FEED_PAGES + 4);
    for (unsigned i = 0; i < FEED_PAGES; i++)
        ck_assert_uint_eq(get(i)->from, i);
    const struct feed_page *kept = get(0);
    (void)get(FEED_PAGES); /* takes the place of 1, not of 0 that was just wanted */
    ck_assert_ptr_eq(get(0), kept);
    apply(tdb_put("later", "x"));
    ck_assert_uint_eq(get(0)->count, FEED_PAGES + 4);
    ck_assert_uint_eq(get(1)->count, FEED_PAGES + 4);
}
END_TEST

START_TEST(a_file_that_cannot_be_read)
{
    const struct feed_page *page = NULL;
    ck_assert_int_eq(feed_page(&feed, NULL, 0, FEED_READS, &page), FEED_FAILED);
    ck_assert_uint_eq(get(0)->count, 0);
}
END_TEST

START_TEST(nobody_watches)
{
    fill(3);
    const struct feed_page *p = get(0);
    ck_assert_uint_gt(p->text.cap, 0);
    feed_round_end(&feed, false);
    ck_assert_uint_eq(p->text.cap, 0);
    ck_assert_uint_eq(get(0)->count, 3);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("feed");
    TCase *t = run_case(s, "pages");
    temp_use(t);
    tcase_add_checked_fixture(t, open_all, close_all);
    tcase_add_test(t, a_page);
    tcase_add_test(t, pages_make_a_whole);
    tcase_add_test(t, a_page_is_bounded);
    tcase_add_test(t, a_page_is_taken_again);
    tcase_add_test(t, an_empty_page_is_not);
    tcase_add_test(t, a_hole_is_passed_over);
    tcase_add_test(t, a_round_reads_so_many);
    tcase_add_test(t, the_oldest_makes_room);
    tcase_add_test(t, a_file_that_cannot_be_read);
    tcase_add_test(t, nobody_watches);
    return run_suite(s);
}
