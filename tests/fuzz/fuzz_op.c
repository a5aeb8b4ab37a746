/* The wire form of operations: what is decoded encodes to the same bytes. */
#include "db/op.h"
#include "tests/fuzz/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct db_op *op = db_op_decode(data, size);
    if (op == NULL)
        return 0;
    unsigned char *wire = malloc(size);
    MUST(wire != NULL);
    MUST(op->kind < DB_OP_KINDS && op->used <= op->room && op->taken == NULL);
    for (int i = 0; i < DB_OP_VALUES; i++)
        MUST(op->values[i].type <= DB_VALUE_INT && (op->values[i].n == 0 || op->values[i].p != NULL));
    MUST(db_op_encode(op, wire, size - 1) == size);
    MUST(db_op_encode(op, wire, size) == size && memcmp(wire, data, size) == 0);
    free(wire);
    db_op_free(op);
    return 0;
}
