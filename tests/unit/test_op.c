/* db/op: operations as values, and their wire form. */
#include "db/op.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/run.h"

static struct db_op *put(const char *key, const char *type, const char *body, size_t n)
{
    struct db_op *op = db_op_new(DB_OP_PUT, strlen(key) + strlen(type) + n);
    ck_assert_ptr_nonnull(op);
    db_op_copy(op, 0, DB_VALUE_TEXT, key, strlen(key));
    db_op_copy(op, 1, DB_VALUE_TEXT, type, strlen(type));
    db_op_copy(op, 2, DB_VALUE_BLOB, body, n);
    return op;
}

static struct db_op *token(void)
{
    struct db_op *op = db_op_new(DB_OP_TOKEN_NEW, 100);
    ck_assert_ptr_nonnull(op);
    db_op_copy(op, 0, DB_VALUE_TEXT, "name", 4);
    db_op_copy(op, 1, DB_VALUE_BLOB, "\0\1\2\3\377", 5);
    db_op_copy(op, 2, DB_VALUE_TEXT, "/a\n/b/", 6);
    db_op_copy(op, 3, DB_VALUE_TEXT, "", 0);
    db_op_int(op, 4, INT64_C(-1234567890123));
    return op;
}

/* ---- values ---------------------------------------------------------------------------------- */

START_TEST(a_new_operation_is_empty)
{
    struct db_op *op = db_op_new(DB_OP_DELETE, 10);
    ck_assert_int_eq(op->kind, DB_OP_DELETE);
    ck_assert_ptr_null(op->next);
    ck_assert_ptr_null(op->owner);
    ck_assert_int_eq(op->result, DB_OK);
    ck_assert_uint_eq(op->seq, 0);
    ck_assert(!op->created);
    ck_assert(!op->precond.match.given && !op->precond.none_match.given && !op->precond.unmodified_given);
    for (int i = 0; i < DB_OP_VALUES; i++)
        ck_assert_int_eq(op->values[i].type, DB_VALUE_NONE);
    db_op_free(op);
    db_op_free(NULL);
}
END_TEST

START_TEST(values_are_copies)
{
    char key[] = "key", body[] = "a\0b";
    struct db_op *op = put(key, "text/plain", body, 3);
    memset(key, 'x', sizeof key);
    memset(body, 'x', sizeof body);
    ck_assert_uint_eq(op->values[0].n, 3);
    ck_assert_mem_eq(op->values[0].p, "key", 3);
    ck_assert_mem_eq(op->values[1].p, "text/plain", 10);
    ck_assert_mem_eq(op->values[2].p, "a\0b", 3);
    ck_assert_int_eq(op->values[0].type, DB_VALUE_TEXT);
    ck_assert_int_eq(op->values[2].type, DB_VALUE_BLOB);
    db_op_free(op);
}
END_TEST

/* NULL would be SQL's NULL; an empty body is an empty text or blob. */
START_TEST(empty_values_have_an_address)
{
    struct db_op *op = db_op_new(DB_OP_PUT, 0);
    db_op_copy(op, 0, DB_VALUE_TEXT, NULL, 0);
    db_op_take(op, 2, DB_VALUE_BLOB, NULL, 0);
    ck_assert_ptr_nonnull(op->values[0].p);
    ck_assert_ptr_nonnull(op->values[2].p);
    ck_assert_uint_eq(op->values[0].n + op->values[2].n, 0);
    db_op_free(op);
}
END_TEST

START_TEST(taken_memory_is_freed_with_it)
{
    struct db_op *op = db_op_new(DB_OP_PUT, 3);
    char *body = strdup("the body");
    db_op_copy(op, 0, DB_VALUE_TEXT, "key", 3);
    db_op_take(op, 2, DB_VALUE_BLOB, body, 8);
    ck_assert_ptr_eq(op->values[2].p, body);
    db_op_free(op); /* the leak checker looks */
}
END_TEST

START_TEST(memory_held_is_counted)
{
    struct db_op *op = db_op_new(DB_OP_PUT, 1000);
    ck_assert_uint_eq(db_op_bytes(op), sizeof *op + 1000);
    db_op_copy(op, 0, DB_VALUE_TEXT, "key", 3);
    ck_assert_uint_eq(db_op_bytes(op), sizeof *op + 1000);
    db_op_take(op, 2, DB_VALUE_BLOB, calloc(1, 5000), 5000);
    ck_assert_uint_eq(db_op_bytes(op), sizeof *op + 6000);
    db_op_free(op);
}
END_TEST

static struct db_op *batch(struct db_op *a, struct db_op *b)
{
    struct db_op *op = db_op_new(DB_OP_BATCH, 0);
    db_op_add_part(op, a);
    db_op_add_part(op, b);
    return op;
}

START_TEST(parts_stand_in_order_and_are_freed_with_the_batch)
{
    struct db_op *a = put("a", "t/x", "1", 1), *b = put("b", "t/x", "2", 1);
    struct db_op *op = batch(a, b);
    ck_assert_uint_eq(op->part_count, 2);
    ck_assert_ptr_eq(op->parts, a);
    ck_assert_ptr_eq(a->next, b);
    ck_assert_ptr_null(b->next);
    db_op_take(a, 3, DB_VALUE_BLOB, strdup("more"), 4);
    b->answer = (unsigned char *)strdup("an answer");
    db_op_free(op); /* the leak checker looks */
}
END_TEST

START_TEST(memory_of_parts_is_counted)
{
    struct db_op *op = db_op_new(DB_OP_BATCH, 0), *part = db_op_new(DB_OP_PUT, 1000);
    db_op_add_part(op, part);
    ck_assert_uint_eq(db_op_bytes(op), 2 * sizeof *op + 1000);
    db_op_take(part, 2, DB_VALUE_BLOB, calloc(1, 5000), 5000);
    ck_assert_uint_eq(db_op_bytes(op), 2 * sizeof *op + 6000);
    db_op_free(op);
}
END_TEST

START_TEST(what_an_attempt_left_is_forgotten)
{
    struct db_op *op = batch(put("a", "t/x", "1", 1), put("b", "t/x", "2", 1));
    op->seq = 9;
    op->failed_part = 1;
    op->parts->created = 1;
    op->parts->seq = 8;
    op->parts->answer = (unsigned char *)strdup("an answer");
    op->parts->answer_bytes = 9;
    db_op_forget(op);
    ck_assert_uint_eq(op->seq + op->failed_part + op->parts->seq + op->parts->created, 0);
    ck_assert_ptr_null(op->parts->answer);
    ck_assert_uint_eq(op->parts->answer_bytes, 0);
    ck_assert_mem_eq(op->parts->values[0].p, "a", 1);
    db_op_free(op);
}
END_TEST

/* What only we can cause is an assertion. */
START_TEST(a_batch_in_a_batch_is_our_fault)
{
    struct db_op *op = db_op_new(DB_OP_BATCH, 0);
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
    db_op_add_part(op, db_op_new(DB_OP_BATCH, 0));
}
END_TEST

START_TEST(a_part_too_many_is_our_fault)
{
    struct db_op *op = db_op_new(DB_OP_BATCH, 0);
    for (int i = 0; i < DB_OP_PARTS_MAX; i++)
        db_op_add_part(op, db_op_new(DB_OP_DELETE, 0));
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
    db_op_add_part(op, db_op_new(DB_OP_DELETE, 0));
}
END_TEST

START_TEST(more_than_the_room_is_our_fault)
{
    struct db_op *op = db_op_new(DB_OP_PUT, 5);
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr)); /* it says so */
    db_op_copy(op, 0, DB_VALUE_TEXT, "1234", 4);
    db_op_copy(op, 1, DB_VALUE_TEXT, "56", 2);
}
END_TEST

/* ---- wire form ------------------------------------------------------------------------------- */

static void same(const struct db_op *a, const struct db_op *b)
{
    ck_assert_int_eq(a->kind, b->kind);
    for (int i = 0; i < DB_OP_VALUES; i++) {
        ck_assert_int_eq(a->values[i].type, b->values[i].type);
        ck_assert_uint_eq(a->values[i].n, b->values[i].n);
        ck_assert_int_eq(a->values[i].i, b->values[i].i);
        if (a->values[i].n > 0)
            ck_assert_mem_eq(a->values[i].p, b->values[i].p, a->values[i].n);
    }
}

START_TEST(what_is_encoded_is_decoded)
{
    unsigned char wire[4096];
    struct db_op *ops[] = {token(), put("k", "t/x", "\0\377body", 6), db_op_new(DB_OP_DELETE, 0),
                           db_op_new(DB_OP_TOKEN_REVOKE, 0)};
    db_op_int(ops[2], 0, INT64_MAX);
    db_op_int(ops[3], 0, INT64_MIN);
    for (size_t i = 0; i < COUNT(ops); i++) {
        size_t n = db_op_encode(ops[i], wire, sizeof wire);
        ck_assert_uint_le(n, sizeof wire);
        struct db_op *back = db_op_decode(wire, n);
        ck_assert_ptr_nonnull(back);
        same(ops[i], back);
        db_op_free(back);
        db_op_free(ops[i]);
    }
}
END_TEST

START_TEST(the_wire_form_itself)
{
    static const unsigned char expected[] = "\3"
                                            "\1\0\0\0\0\0\0\0\1n"
                                            "\0\0\0\0\0\0\0\0\0"
                                            "\2\0\0\0\0\0\0\0\2xy"
                                            "\0\0\0\0\0\0\0\0\0"
                                            "\3\377\377\377\377\377\377\377\376";
    unsigned char wire[100];
    struct db_op *op = db_op_new(DB_OP_TOKEN_REVOKE, 3);
    db_op_copy(op, 0, DB_VALUE_TEXT, "n", 1);
    db_op_copy(op, 2, DB_VALUE_BLOB, "xy", 2);
    db_op_int(op, 4, -2);
    ck_assert_uint_eq(db_op_encode(op, wire, sizeof wire), sizeof expected - 1);
    ck_assert_mem_eq(wire, expected, sizeof expected - 1);
    db_op_free(op);
}
END_TEST

START_TEST(nothing_is_written_without_room)
{
    unsigned char wire[200];
    struct db_op *op = token();
    size_t need = db_op_encode(op, NULL, 0);
    ck_assert_uint_eq(need, 1 + 5 * 9 + 4 + 5 + 6);
    for (size_t cap = 0; cap < need; cap++) {
        memset(wire, 0xee, sizeof wire);
        ck_assert_uint_eq(db_op_encode(op, wire, cap), need);
        for (size_t i = 0; i < sizeof wire; i++)
            ck_assert_uint_eq(wire[i], 0xee);
    }
    ck_assert_uint_eq(db_op_encode(op, wire, need), need);
    ck_assert_uint_eq(wire[need], 0xee);
    db_op_free(op);
}
END_TEST

START_TEST(a_cut_operation_is_refused)
{
    unsigned char wire[200];
    struct db_op *op = token();
    size_t n = db_op_encode(op, wire, sizeof wire);
    for (size_t cut = 0; cut < n; cut++)
        ck_assert_ptr_null(db_op_decode(wire, cut));
    db_op_free(op);
}
END_TEST

START_TEST(bytes_behind_an_operation_are_refused)
{
    unsigned char wire[200] = {0};
    struct db_op *op = token();
    size_t n = db_op_encode(op, wire, sizeof wire);
    for (size_t more = 1; more < 20; more++)
        ck_assert_ptr_null(db_op_decode(wire, n + more));
    db_op_free(op);
}
END_TEST

/* One byte of a good operation is changed: where, to what. */
static const struct {
    size_t at;
    unsigned char to;
} damages[] = {
    {0, DB_OP_KINDS}, {0, 200}, {0, 255},                     /* kinds that are none */
    {1, 4},           {1, 100}, {1, 255},                     /* types that are none */
    {1, DB_VALUE_NONE},                                       /* nothing, with a length */
    {2, 0x80},        {2, 0xff}, {5, 1},   {8, 1},            /* lengths beyond the end */
    {9, 0},           {9, 3},    {9, 5},   {9, 200},          /* lengths that shift what follows */
};

START_TEST(a_damaged_operation_is_refused)
{
    unsigned char wire[200];
    struct db_op *op = token();
    size_t n = db_op_encode(op, wire, sizeof wire);
    wire[damages[_i].at] = damages[_i].to;
    struct db_op *back = db_op_decode(wire, n);
    ck_assert_ptr_null(back);
    db_op_free(op);
}
END_TEST

START_TEST(nothing_is_no_operation)
{
    ck_assert_ptr_null(db_op_decode(NULL, 0));
    ck_assert_ptr_null(db_op_decode((const unsigned char *)"", 0));
    ck_assert_ptr_null(db_op_decode((const unsigned char *)"\0", 1));
}
END_TEST

START_TEST(an_operation_has_a_cap)
{
    size_t head = 1 + 5 * 9, body = DB_OP_WIRE_MAX - head + 1;
    unsigned char *wire = calloc(1, DB_OP_WIRE_MAX + 1);
    wire[0] = DB_OP_PUT;
    wire[1 + 2 * 9] = DB_VALUE_BLOB;
    for (int i = 0; i < 8; i++)
        wire[2 + 2 * 9 + i] = (unsigned char)(body >> (56 - 8 * i));
    ck_assert_ptr_null(db_op_decode(wire, DB_OP_WIRE_MAX + 1));
    wire[9 + 2 * 9]--;
    struct db_op *op = db_op_decode(wire, DB_OP_WIRE_MAX);
    ck_assert_ptr_nonnull(op);
    ck_assert_uint_eq(op->values[2].n, body - 1);
    db_op_free(op);
    free(wire);
}
END_TEST

START_TEST(a_batch_has_its_parts_on_the_wire)
{
    unsigned char wire[4096];
    struct db_op *op = batch(put("a", "t/x", "\0\1", 2), token());
    db_op_int(op, 1, 77);
    size_t n = db_op_encode(op, wire, sizeof wire);
    struct db_op *back = db_op_decode(wire, n);
    ck_assert_ptr_nonnull(back);
    same(op, back);
    ck_assert_uint_eq(back->part_count, 2);
    same(op->parts, back->parts);
    same(op->parts->next, back->parts->next);
    ck_assert_ptr_null(back->parts->next->next);
    for (size_t cut = 0; cut < n; cut++)
        ck_assert_ptr_null(db_op_decode(wire, cut));
    ck_assert_ptr_null(db_op_decode(wire, n + 1));
    db_op_free(op);
    db_op_free(back);
}
END_TEST

START_TEST(a_batch_of_nothing_is_one)
{
    unsigned char wire[100];
    struct db_op *op = db_op_new(DB_OP_BATCH, 0);
    struct db_op *back = db_op_decode(wire, db_op_encode(op, wire, sizeof wire));
    ck_assert_ptr_nonnull(back);
    ck_assert_uint_eq(back->part_count, 0);
    db_op_free(op);
    db_op_free(back);
}
END_TEST

/* The number of parts stands behind the values of the batch. */
enum { COUNT_AT = 1 + 5 * 9 };

START_TEST(a_wrong_number_of_parts_is_refused)
{
    unsigned char wire[1024];
    struct db_op *op = batch(put("a", "t/x", "1", 1), put("b", "t/x", "2", 1));
    size_t n = db_op_encode(op, wire, sizeof wire);
    static const unsigned char counts[] = {0, 1, 3, 200, 255};
    ck_assert_uint_eq(wire[COUNT_AT + 7], 2);
    for (size_t i = 0; i < COUNT(counts); i++) {
        wire[COUNT_AT + 7] = counts[i];
        ck_assert_ptr_null(db_op_decode(wire, n));
    }
    wire[COUNT_AT + 7] = 2;
    wire[COUNT_AT] = 1;
    ck_assert_ptr_null(db_op_decode(wire, n));
    db_op_free(op);
}
END_TEST

START_TEST(a_batch_in_a_batch_is_refused)
{
    unsigned char wire[1024];
    struct db_op *op = batch(put("a", "t/x", "1", 1), put("b", "t/x", "2", 1));
    size_t n = db_op_encode(op, wire, sizeof wire);
    ck_assert_uint_eq(wire[COUNT_AT + 8], DB_OP_PUT);
    wire[COUNT_AT + 8] = DB_OP_BATCH;
    ck_assert_ptr_null(db_op_decode(wire, n));
    db_op_free(op);
}
END_TEST

START_TEST(a_batch_of_too_many_parts_is_refused)
{
    size_t one = COUNT_AT, n = COUNT_AT + 8 + (DB_OP_PARTS_MAX + 1) * one;
    unsigned char *wire = calloc(1, n);
    wire[0] = DB_OP_BATCH;
    wire[COUNT_AT + 6] = (DB_OP_PARTS_MAX + 1) >> 8;
    wire[COUNT_AT + 7] = (DB_OP_PARTS_MAX + 1) & 255;
    ck_assert_ptr_null(db_op_decode(wire, n));
    wire[COUNT_AT + 7]--;
    struct db_op *op = db_op_decode(wire, n - one);
    ck_assert_ptr_nonnull(op);
    ck_assert_uint_eq(op->part_count, DB_OP_PARTS_MAX);
    db_op_free(op);
    free(wire);
}
END_TEST

/* What comes over the wire is taken as it is: conditions and marks of the server's own are not set. */
START_TEST(a_decoded_operation_is_unconditional)
{
    unsigned char wire[200];
    struct db_op *op = token();
    op->precond.match.given = 1;
    op->result = DB_EXISTS;
    op->seq = 9;
    size_t n = db_op_encode(op, wire, sizeof wire);
    struct db_op *back = db_op_decode(wire, n);
    ck_assert(!back->precond.match.given);
    ck_assert_int_eq(back->result, DB_OK);
    ck_assert_uint_eq(back->seq, 0);
    db_op_free(op);
    db_op_free(back);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("op");
    TCase *t = run_case(s, "values");
    tcase_add_test(t, a_new_operation_is_empty);
    tcase_add_test(t, values_are_copies);
    tcase_add_test(t, empty_values_have_an_address);
    tcase_add_test(t, taken_memory_is_freed_with_it);
    tcase_add_test(t, memory_held_is_counted);
    tcase_add_test(t, parts_stand_in_order_and_are_freed_with_the_batch);
    tcase_add_test(t, memory_of_parts_is_counted);
    tcase_add_test(t, what_an_attempt_left_is_forgotten);
    tcase_add_test_raise_signal(t, a_batch_in_a_batch_is_our_fault, SIGABRT);
    tcase_add_test_raise_signal(t, a_part_too_many_is_our_fault, SIGABRT);
    tcase_add_test_raise_signal(t, more_than_the_room_is_our_fault, SIGABRT);
    t = run_case(s, "wire");
    tcase_add_test(t, what_is_encoded_is_decoded);
    tcase_add_test(t, the_wire_form_itself);
    tcase_add_test(t, nothing_is_written_without_room);
    tcase_add_test(t, a_cut_operation_is_refused);
    tcase_add_test(t, bytes_behind_an_operation_are_refused);
    tcase_add_loop_test(t, a_damaged_operation_is_refused, 0, COUNT(damages));
    tcase_add_test(t, nothing_is_no_operation);
    tcase_add_test(t, an_operation_has_a_cap);
    tcase_add_test(t, a_batch_has_its_parts_on_the_wire);
    tcase_add_test(t, a_batch_of_nothing_is_one);
    tcase_add_test(t, a_wrong_number_of_parts_is_refused);
    tcase_add_test(t, a_batch_in_a_batch_is_refused);
    tcase_add_test(t, a_batch_of_too_many_parts_is_refused);
    tcase_add_test(t, a_decoded_operation_is_unconditional);
    return run_suite(s);
}
