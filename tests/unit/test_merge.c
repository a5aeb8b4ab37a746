/* db/merge and DB_OP_PATCH: RFC 7396 with the examples of its appendix; what is kept; what is refused; how long it takes. */
#include "db/merge.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "db/doc.h"
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

static const struct {
    const char *target, *patch, *result;
} merges[] = {
    /* RFC 7396, appendix A */
    {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
    {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
    {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
    {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
    {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
    {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
    {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
    {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
    {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
    {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
    {"{\"a\":\"foo\"}", "null", "null"},
    {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
    {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
    {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
    {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
    /* nothing to do, and white space */
    {"{\"a\":1}", "{}", "{\"a\":1}"},
    {" { \"a\" : [ 1 , 2 ] } ", "\n{ \"b\" : { \"c\" : 1 } }\t", "{\"a\":[ 1 , 2 ],\"b\":{\"c\":1}}"},
    {" 7 ", " [ 1 ] ", "[ 1 ]"},
    {"{\"a\":1}", "{\"b\":null}", "{\"a\":1}"},
    /* what is not named keeps its spelling; what is named has that of the patch */
    {"{\"n\":123456789012345678901234567890}", "{\"a\":98765432109876543210}",
     "{\"n\":123456789012345678901234567890,\"a\":98765432109876543210}"},
    {"{\"n\":1.50,\"m\":1E5,\"o\":-0}", "{\"p\":0.10}", "{\"n\":1.50,\"m\":1E5,\"o\":-0,\"p\":0.10}"},
    {"{\"a\":\"\\u0000\\u00e9\\/\"}", "{\"b\":\"\\u0000\"}", "{\"a\":\"\\u0000\\u00e9\\/\",\"b\":\"\\u0000\"}"},
    {"{\"a\":1e999}", "{}", "{\"a\":1e999}"},
    {"{\"a\":\"\xc3\xa9\"}", "{\"\xc3\xa9\":1}", "{\"a\":\"\xc3\xa9\",\"\xc3\xa9\":1}"},
    /* names that are written in another way are the same names */
    {"{\"a\":1}", "{\"\\u0061\":null}", "{}"},
    {"{\"\\u0061\":1}", "{\"a\":2}", "{\"\\u0061\":2}"},
    {"{\"\\u00e9\":1}", "{\"\xc3\xa9\":null}", "{}"},
    {"{\"a/b\":1}", "{\"a\\/b\":null}", "{}"},
    {"{\"\\n\":1}", "{\"\\u000a\":null}", "{}"},
    {"{\"\\u001F\":1}", "{\"\\u001f\":null}", "{}"},
    {"{\"\\ud83d\\ude00\":1}", "{\"\xf0\x9f\x98\x80\":null}", "{}"},
    {"{\"\\\"\":1,\"\\\\\":2}", "{\"\\u0022\":null,\"\\u005c\":3}", "{\"\\\\\":3}"},
    {"{\"x\":{\"\\u0061\":{\"b\":1}}}", "{\"x\":{\"a\":{\"\\u0062\":null}}}", "{\"x\":{\"\\u0061\":{}}}"},
    {"{\"\\ud800\":1}", "{\"\\uD800\":null}", "{}"},
    /* strings that look like names are no names */
    {"{\"a\":\"\\u0061\"}", "{\"b\":[\"\\u0062\", \":\"]}", "{\"a\":\"\\u0061\",\"b\":[\"\\u0062\", \":\"]}"},
    /* a name that is there twice */
    {"{\"a\":1,\"a\":2}", "{\"b\":3}", "{\"a\":1,\"a\":2,\"b\":3}"},
    {"{\"a\":1,\"a\":2}", "{\"a\":null}", "{}"},
    {"{\"a\":1,\"b\":0,\"\\u0061\":2}", "{\"a\":3}", "{\"a\":3,\"b\":0}"},
    {"{}", "{\"a\":1,\"a\":2}", "{\"a\":2}"},
    {"{\"a\":0}", "{\"a\":1,\"\\u0061\":null}", "{}"},
    {"{\"a\":0}", "{\"a\":null,\"a\":{\"b\":null,\"c\":1}}", "{\"a\":{\"c\":1}}"},
    /* names where one begins as another does */
    {"{\"a\":1,\"ab\":2,\"\":3}", "{\"\":null,\"ab\":null}", "{\"a\":1}"},
    {"{\"a\\u0000\":1,\"a\":2}", "{\"a\":null}", "{\"a\\u0000\":1}"},
    /* the same names at different depths */
    {"{\"a\":{\"a\":{\"a\":1,\"b\":2}}}", "{\"a\":{\"a\":{\"a\":null}}}", "{\"a\":{\"a\":{\"b\":2}}}"},
    {"{\"a\":1}", "{\"a\":{\"a\":null}}", "{\"a\":{}}"},
};

START_TEST(a_merge)
{
    struct db_merge m = {.target = merges[_i].target, .target_len = strlen(merges[_i].target),
                         .patch = merges[_i].patch, .patch_len = strlen(merges[_i].patch), .head = 3};
    ck_assert_int_eq(db_merge(&conn, &m), DB_OK);
    ck_assert_msg(m.out_len == 3 + strlen(merges[_i].result) && memcmp(m.out + 3, merges[_i].result, m.out_len - 3) == 0,
                  "%.*s", (int)m.out_len - 3, (char *)m.out + 3);
    free(m.out);
}
END_TEST

static enum db_result merge(const char *target, size_t target_len, const char *patch, size_t patch_len)
{
    struct db_merge m = {.target = target, .target_len = target_len, .patch = patch, .patch_len = patch_len};
    enum db_result result = db_merge(&conn, &m);
    ck_assert((m.out != NULL) == (result == DB_OK));
    free(m.out);
    return result;
}

START_TEST(what_is_no_json_is_told)
{
    static const char *const bad[] = {"", "{", "x", "{}x", "[1,]", "{\"a\":\\u0061}", "\"\\", "{\"\\u00"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        ck_assert_int_eq(merge("{}", 2, bad[i], strlen(bad[i])), DB_INVALID);
        ck_assert_int_eq(merge(bad[i], strlen(bad[i]), "{}", 2), DB_CONFLICT);
    }
    ck_assert_int_eq(merge("{}\0", 3, "{}", 2), DB_CONFLICT);
    ck_assert_int_eq(merge("{}", 2, "{}\0", 3), DB_INVALID);
    ck_assert_int_eq(merge("\xff", 1, "{}", 2), DB_CONFLICT);
}
END_TEST

START_TEST(sizes_have_a_bound)
{
    size_t n = DB_PATCH_BYTES_MAX + 1;
    char *text = malloc(n);
    memset(text, ' ', n);
    memcpy(text, "{}", 2);
    ck_assert_int_eq(merge(text, n - 1, "{}", 2), DB_OK);
    ck_assert_int_eq(merge("{}", 2, text, n - 1), DB_OK);
    ck_assert_int_eq(merge(text, n, "{}", 2), DB_TOO_LARGE);
    ck_assert_int_eq(merge("{}", 2, text, n), DB_TOO_LARGE);
    free(text);
}
END_TEST

static size_t object(char *out, unsigned members, char letter)
{
    char *p = out;
    *p++ = '{';
    for (unsigned i = 0; i < members; i++)
        p += sprintf(p, "%s\"%c%u\":1", i > 0 ? "," : "", letter, i);
    *p++ = '}';
    return (size_t)(p - out);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* SQLite's json_patch would hold up all writes for minutes. */
START_TEST(the_time_grows_with_the_bytes)
{
    char *target = malloc(2 << 20), *patch = malloc(2 << 20);
    size_t target_len = object(target, 100000, 'a'), patch_len = object(patch, 100000, 'b');
    double start = seconds();
    ck_assert_int_eq(merge(target, target_len, patch, patch_len), DB_OK);
    ck_assert_int_eq(merge(target, target_len, target, target_len), DB_OK);
    ck_assert_int_eq(merge("{}", 2, patch, patch_len), DB_OK);
    memset(target, 'x', 2 << 20); /* a long text below many levels */
    size_t n = 0;
    for (unsigned i = 0; i < 900; i++)
        n += (size_t)sprintf(target + n, "{\"a\":");
    target[n] = '"';
    target_len = (2 << 20) - 1000;
    target[target_len - 1] = '"';
    memset(target + target_len, '}', 900);
    ck_assert_int_eq(merge(target, target_len + 900, target, target_len + 900), DB_OK);
    ck_assert(seconds() - start < (SANITIZED ? 60 : 5));
    free(target);
    free(patch);
}
END_TEST

/* ---- the operation --------------------------------------------------------------------------- */

static struct db_op *patch(const char *key, const char *text)
{
    struct db_op *op = db_op_new(DB_OP_PATCH, strlen(key) + strlen(text));
    db_op_copy(op, 0, DB_VALUE_TEXT, key, strlen(key));
    db_op_int(op, 1, 1000);
    db_op_copy(op, 2, DB_VALUE_TEXT, text, strlen(text));
    op->wants_answer = 1;
    return op;
}

static void put(const char *key, const char *type, enum db_value_type form, const char *body)
{
    struct db_op *op = tdb_put_bytes(key, type, form, body, strlen(body));
    ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
    tdb_free(op);
}

static int64_t stored(const char *key, const char *body)
{
    char sql[300];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM doc WHERE key = '%s' AND body = '%s' AND typeof(body) = 'text'"
                              " AND size = %zu", key, body, strlen(body));
    return tdb_ask_file(sql);
}

START_TEST(it_is_stored_and_answered)
{
    static const char *const types[] = {"application/json", "application/x+json; charset=utf-8", "Application/JSON ;a=b"};
    for (size_t i = 0; i < COUNT(types); i++) {
        put("k", types[i], i == 1 ? DB_VALUE_BLOB : DB_VALUE_TEXT, "{\"a\":1}");
        struct db_op *op = patch("k", "{\"b\":2}");
        ck_assert_int_eq(tdb_burst(&conn, op), DB_OK);
        ck_assert_int_eq(op->result, DB_OK);
        ck_assert_uint_eq(op->seq, 2 * i + 2);
        ck_assert(!op->created);
        ck_assert_uint_eq(op->type_bytes, strlen(types[i]));
        ck_assert_mem_eq(op->answer, types[i], op->type_bytes);
        ck_assert_uint_eq(op->answer_bytes - op->type_bytes, 13);
        ck_assert_mem_eq(op->answer + op->type_bytes, "{\"a\":1,\"b\":2}", 13);
        ck_assert_int_eq(stored("k", "{\"a\":1,\"b\":2}"), 1);
        tdb_free(op);
    }
}
END_TEST

START_TEST(each_sees_the_one_before)
{
    put("k", "application/json", DB_VALUE_TEXT, "{}");
    struct db_op *batch = db_op_new(DB_OP_BATCH, 0);
    struct db_op *list = tdb_list(patch("k", "{\"a\":1}"), patch("k", "{\"b\":2}"), batch, NULL);
    db_op_add_part(batch, patch("k", "{\"a\":null}"));
    db_op_add_part(batch, patch("k", "{\"c\":3}"));
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    ck_assert_int_eq(batch->result, DB_OK);
    ck_assert_int_eq(stored("k", "{\"b\":2,\"c\":3}"), 1);
    tdb_free(list);
}
END_TEST

START_TEST(what_cannot_be_patched_fails_alone)
{
    put("text", "text/plain", DB_VALUE_TEXT, "{}");
    put("bad", "application/json", DB_VALUE_TEXT, "{");
    put("k", "application/json", DB_VALUE_TEXT, "{}");
    struct db_op *list = tdb_list(patch("absent", "{}"), patch("text", "{}"), patch("bad", "{}"), patch("k", "{"),
                                  patch("k", "{}"), patch("k", "{\"a\":1}"), patch("absent", "{}"), NULL);
    static const enum db_result expected[] = {DB_NONE, DB_CONFLICT, DB_CONFLICT, DB_INVALID, DB_PRECONDITION, DB_OK,
                                              DB_NONE}; /* RFC 9110 13.2.1: as without a condition */
    list->next->next->next->next->precond.none_match = (struct db_tags){.given = 1, .any = 1};
    list->next->next->next->next->next->next->precond.match = (struct db_tags){.given = 1, .any = 1};
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    unsigned i = 0;
    for (struct db_op *op = list; op != NULL; op = op->next, i++) {
        ck_assert_msg(op->result == expected[i], "%u: %s", i, db_result_text(op->result));
        ck_assert((op->answer != NULL) == (op->result == DB_OK));
    }
    ck_assert_int_eq(stored("k", "{\"a\":1}"), 1);
    tdb_free(list);
}
END_TEST

START_TEST(the_result_has_a_bound)
{
    put("k", "application/json", DB_VALUE_TEXT, "{\"a\":1}");
    struct db_op *list = tdb_list(patch("k", "{\"b\":2}"), patch("k", "{\"b\":2}"), NULL);
    db_op_int(list, 1, 12);
    db_op_int(list->next, 1, 13);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    ck_assert_int_eq(list->result, DB_TOO_LARGE);
    ck_assert_int_eq(list->next->result, DB_OK);
    tdb_free(list);
}
END_TEST

START_TEST(the_number_is_the_stored_one)
{
    sqlite3 *db = tdb_shell();
    put("k", "application/json", DB_VALUE_TEXT, "{}");
    tdb_sql(db, "CREATE TRIGGER t AFTER UPDATE OF body ON doc WHEN new.key = 'k'"
                " BEGIN INSERT INTO doc (key, body) VALUES ('log/' || new.seq, ''); END");
    struct db_op *list = tdb_list(patch("k", "{\"a\":1}"), patch("k", "{\"b\":2}"), NULL);
    ck_assert_int_eq(tdb_burst(&conn, list), DB_OK);
    ck_assert_int_eq(list->next->result, DB_OK);
    ck_assert_int_eq(tdb_ask(db, "SELECT seq FROM doc WHERE key = 'k'"), list->next->seq);
    ck_assert_mem_eq(list->next->answer + list->next->type_bytes, "{\"a\":1,\"b\":2}", 13);
    sqlite3_close(db);
    tdb_free(list);
}
END_TEST

/* On the writer's small stack, as deep as SQLite reads. */
START_TEST(deep_documents)
{
    static char deep[20000];
    struct inbox in;
    for (unsigned depth = 1000; depth <= 2000; depth += 1000) {
        size_t n = 0;
        for (unsigned i = 0; i < depth; i++)
            n += (size_t)sprintf(deep + n, "{\"a\":");
        deep[n++] = '1';
        for (unsigned i = 0; i < depth; i++)
            deep[n++] = '}';
        deep[n] = 0;
        put("k", "application/json", DB_VALUE_TEXT, deep);
        struct db_writer *w = tdb_start(&in);
        struct db_op *op = patch("k", deep);
        db_op_int(op, 1, 100000);
        ck_assert_int_eq(tdb_write(w, &in, op, NULL), DB_OK);
        db_writer_stop(w);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("merge");
    TCase *t = run_case(s, "merge");
    temp_use(t);
    tcase_add_checked_fixture(t, open_conn, close_conn);
    tcase_add_loop_test(t, a_merge, 0, COUNT(merges));
    tcase_add_test(t, what_is_no_json_is_told);
    tcase_add_test(t, sizes_have_a_bound);
    tcase_add_test(t, the_time_grows_with_the_bytes);
    tcase_add_test(t, it_is_stored_and_answered);
    tcase_add_test(t, each_sees_the_one_before);
    tcase_add_test(t, what_cannot_be_patched_fails_alone);
    tcase_add_test(t, the_result_has_a_bound);
    tcase_add_test(t, the_number_is_the_stored_one);
    tcase_add_test(t, deep_documents);
    return run_suite(s);
}
