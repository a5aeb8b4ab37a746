/* db/body, and DB_VALUE_FILE: a body from a file into its row and out of it in pieces. */
#include "db/body.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "db/doc.h"
#include "tests/unit/tdb.h"

enum { LARGE = 700001 };

static struct db_conn conn;
static unsigned char text[LARGE];

static void open_conn(void)
{
    tdb_init();
    tdb_open(&conn);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)(i * 7 + i / 253);
}

static void close_conn(void)
{
    db_conn_close(&conn);
    tdb_is_sound();
}

static int file_of(size_t n)
{
    int fd = open(temp_file("body", text, n), O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static struct db_op *put_file(const char *key, int fd, uint64_t n)
{
    struct db_op *op = db_op_new(DB_OP_PUT, strlen(key) + 3);
    ck_assert_ptr_nonnull(op);
    db_op_copy(op, 0, DB_VALUE_TEXT, key, strlen(key));
    db_op_copy(op, 1, DB_VALUE_TEXT, "x/y", 3);
    db_op_file(op, 2, fd, n);
    return op;
}

/* Stores it in a burst; the operation's own result. */
static enum db_result store(const char *key, int fd, uint64_t n)
{
    struct db_op *op = put_file(key, fd, n);
    enum db_result burst = tdb_burst(&conn, op), result = op->result;
    tdb_free(op);
    return burst == DB_OK ? result : burst;
}

struct reading {
    size_t at, most;
    unsigned pieces;
};

static bool compare(void *arg, const void *p, size_t n)
{
    struct reading *r = arg;
    ck_assert_uint_le(r->at + n, sizeof text);
    ck_assert_mem_eq(p, text + r->at, n);
    r->at += n;
    r->pieces++;
    return r->at < r->most;
}

static int64_t row_of(const char *key)
{
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT id FROM doc WHERE key = '%s'", key);
    return tdb_ask(conn.db, sql);
}

static const size_t sizes[] = {0, 1, 4096, 131071, 131072, 131073, 262144, LARGE};

START_TEST(what_goes_in_comes_out)
{
    struct reading r = {.most = SIZE_MAX};
    size_t n = sizes[_i];
    ck_assert_int_eq(store("k", file_of(n), n), DB_OK);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT size = length(body) AND typeof(body) = 'blob' FROM doc"), 1);
    ck_assert_int_eq(db_body_read(&conn, row_of("k"), n, compare, &r), DB_OK);
    ck_assert_uint_eq(r.at, n);
    ck_assert_uint_eq(r.pieces, (n + 131071) / 131072);
}
END_TEST

START_TEST(one_replaces_another_of_any_size)
{
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (size_t j = 0; j < 3; j++) {
            struct reading r = {.most = SIZE_MAX};
            size_t n = sizes[(i * 3 + j * 5) % COUNT(sizes)];
            ck_assert_int_eq(store("k", file_of(n), n), DB_OK);
            ck_assert_int_eq(db_body_read(&conn, row_of("k"), n, compare, &r), DB_OK);
            ck_assert_uint_eq(r.at, n);
        }
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM doc"), 1);
}
END_TEST

/* An index that reads the body keeps SQLite from writing it in pieces; it is stored all the same. */
START_TEST(an_index_on_the_body)
{
    struct reading r = {.most = SIZE_MAX};
    tdb_sql(conn.db, "CREATE INDEX by_head ON doc(substr(body, 1, 8))");
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(store("k", file_of(LARGE), LARGE), DB_OK);
        r.at = 0;
        ck_assert_int_eq(db_body_read(&conn, row_of("k"), LARGE, compare, &r), DB_OK);
        ck_assert_uint_eq(r.at, LARGE);
    }
    ck_assert_int_eq(db_body_probe(&conn, row_of("k")), DB_EXISTS);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
}
END_TEST

START_TEST(an_index_on_something_else)
{
    tdb_sql(conn.db, "CREATE INDEX by_type ON doc(type, size)");
    ck_assert_int_eq(store("k", file_of(LARGE), LARGE), DB_OK);
    ck_assert_int_eq(db_body_probe(&conn, row_of("k")), DB_OK);
}
END_TEST

/* The file is shorter than was said: nothing is stored, what was there stays. */
START_TEST(a_file_that_is_too_short)
{
    struct reading r = {.most = SIZE_MAX};
    ck_assert_int_eq(store("k", file_of(1000), 1000), DB_OK);
    ck_assert_int_ne(store("k", file_of(LARGE - 1), LARGE), DB_OK);
    ck_assert_int_ne(store("new", file_of(0), LARGE), DB_OK);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM doc"), 1);
    ck_assert_int_eq(db_body_read(&conn, row_of("k"), 1000, compare, &r), DB_OK);
}
END_TEST

START_TEST(a_file_that_cannot_be_read)
{
    ck_assert_int_ne(store("k", open(temp_path("writable"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 10), DB_OK);
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM doc"), 0);
}
END_TEST

/* Those before and behind it in the burst are not concerned. */
START_TEST(a_bad_file_fails_alone)
{
    struct db_op *bad = put_file("bad", file_of(5), 6);
    struct db_op *list = tdb_list(tdb_put("a", "1"), bad, tdb_put("b", "2"), NULL);
    if (tdb_burst(&conn, list) == DB_OK) {
        ck_assert_int_eq(list->result, DB_OK);
        ck_assert_int_ne(bad->result, DB_OK);
        ck_assert_int_eq(bad->next->result, DB_OK);
        ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM doc WHERE key IN ('a', 'b')"), 2);
    }
    ck_assert_int_eq(tdb_ask(conn.db, "SELECT count(*) FROM doc WHERE key = 'bad'"), 0);
    tdb_free(list);
}
END_TEST

START_TEST(the_operation_closes_its_file)
{
    int fd = file_of(10);
    ck_assert_int_eq(store("k", fd, 10), DB_OK);
    ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
    fd = file_of(10);
    db_op_free(put_file("never", fd, 10));
    ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
}
END_TEST

START_TEST(a_wrong_size_is_told)
{
    struct reading r = {.most = SIZE_MAX};
    ck_assert_int_eq(store("k", file_of(1000), 1000), DB_OK);
    ck_assert_int_eq(db_body_read(&conn, row_of("k"), 999, compare, &r), DB_INVALID);
    ck_assert_int_eq(db_body_read(&conn, row_of("k"), 1001, compare, &r), DB_INVALID);
    ck_assert_int_eq(db_body_read(&conn, row_of("k"), 0, compare, &r), DB_INVALID);
    ck_assert_uint_eq(r.at, 0);
}
END_TEST

START_TEST(a_reader_may_stop)
{
    struct reading r = {.most = 131072};
    ck_assert_int_eq(store("k", file_of(LARGE), LARGE), DB_OK);
    ck_assert_int_eq(db_body_read(&conn, row_of("k"), LARGE, compare, &r), DB_INVALID);
    ck_assert_uint_eq(r.pieces, 1);
}
END_TEST

START_TEST(text_is_read_by_its_bytes)
{
    struct reading r = {.most = SIZE_MAX};
    memcpy(text, "h\xc3\xa9llo", 6);
    tdb_sql(conn.db, "INSERT INTO doc(key, type, body) VALUES ('t', 'text/plain', 'h\xc3\xa9llo')");
    ck_assert_int_eq(db_body_read(&conn, row_of("t"), 6, compare, &r), DB_OK);
    ck_assert_uint_eq(r.at, 6);
}
END_TEST

START_TEST(no_such_row)
{
    struct reading r = {.most = SIZE_MAX};
    int fd = file_of(10);
    ck_assert_int_eq(db_body_read(&conn, 12345, 10, compare, &r), DB_NONE);
    ck_assert_int_ne(db_body_fill(&conn, 12345, fd, 10), DB_OK);
    ck_assert_int_ne(db_body_probe(&conn, 12345), DB_OK);
    ck_assert_uint_eq(r.at, 0);
    close(fd);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("body");
    TCase *t = run_case(s, "body");
    temp_use(t);
    tcase_add_checked_fixture(t, open_conn, close_conn);
    tcase_add_loop_test(t, what_goes_in_comes_out, 0, COUNT(sizes));
    tcase_add_test(t, one_replaces_another_of_any_size);
    tcase_add_test(t, an_index_on_the_body);
    tcase_add_test(t, an_index_on_something_else);
    tcase_add_test(t, a_file_that_is_too_short);
    tcase_add_test(t, a_file_that_cannot_be_read);
    tcase_add_test(t, a_bad_file_fails_alone);
    tcase_add_test(t, the_operation_closes_its_file);
    tcase_add_test(t, a_wrong_size_is_told);
    tcase_add_test(t, a_reader_may_stop);
    tcase_add_test(t, text_is_read_by_its_bytes);
    tcase_add_test(t, no_such_row);
    return run_suite(s);
}
