/* The wire form of operations: what is decoded encodes to the same bytes. */
#include "db/op.h"
#include "tests/fuzz/must.h"

static void look_at(const struct db_op *op)
{
    MUST(op->kind < DB_OP_KINDS && op->used <= op->room && op->taken == NULL);
    for (int i = 0; i < DB_OP_VALUES; i++)
        MUST(op->values[i].type <= DB_VALUE_INT && (op->values[i].n == 0 || op->values[i].p != NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct db_op *op = db_op_decode(data, size);
    if (op == NULL)
        return 0;
    unsigned char *wire = malloc(size);
    uint32_t parts = 0;
    MUST(wire != NULL);
    look_at(op);
    for (const struct db_op *part = op->parts; part != NULL; part = part->next) {
        look_at(part);
        MUST(part->kind != DB_OP_BATCH && part->parts == NULL);
        parts++;
    }
    MUST(parts == op->part_count && (parts == 0 || op->kind == DB_OP_BATCH));
    MUST(db_op_encode(op, wire, size - 1) == size);
    MUST(db_op_encode(op, wire, size) == size && memcmp(wire, data, size) == 0);
    free(wire);
    db_op_free(op);
    return 0;
}
