#include "db/op.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Wire form: kind, then for each value its type, an 8-byte length or integer (big-endian), and the
 * bytes of text or blob. */
enum { WIRE_VALUE_HEAD = 9, WIRE_BYTES_MAX = 1 << 20 };

struct db_op *db_op_new(enum db_op_kind kind, size_t room_bytes)
{
    struct db_op *op = malloc(sizeof *op + room_bytes);
    if (op == NULL)
        return NULL;
    memset(op, 0, sizeof *op);
    op->kind = (uint8_t)kind;
    op->room = room_bytes;
    return op;
}

void db_op_free(struct db_op *op)
{
    if (op == NULL)
        return;
    free(op->taken);
    free(op);
}

void db_op_copy(struct db_op *op, int i, enum db_value_type type, const void *p, size_t n)
{
    unsigned char *to = op->bytes + op->used;
    assert(n <= op->room - op->used);
    if (n > 0)
        memcpy(to, p, n);
    op->used += n;
    op->values[i] = (struct db_value){.type = (uint8_t)type, .p = to, .n = n};
}

void db_op_take(struct db_op *op, int i, enum db_value_type type, void *p, size_t n)
{
    assert(op->taken == NULL);
    op->taken = p;
    op->values[i] = (struct db_value){.type = (uint8_t)type, .p = p ? p : op->bytes, .n = n};
}

void db_op_int(struct db_op *op, int i, int64_t v)
{
    op->values[i] = (struct db_value){.type = DB_VALUE_INT, .i = v};
}

size_t db_op_bytes(const struct db_op *op)
{
    size_t n = sizeof *op + op->room;
    for (int i = 0; i < DB_OP_VALUES; i++)
        if (op->taken != NULL && op->values[i].p == op->taken)
            n += op->values[i].n;
    return n;
}

static bool listed(const struct db_tags *t, uint64_t seq)
{
    for (unsigned i = 0; i < t->count; i++)
        if (t->seq[i] == seq)
            return true;
    return false;
}

/* RFC 9110 13.2.2: If-Match stands in for If-Unmodified-Since when both are there. */
bool db_precond_holds(const struct db_precond *p, bool exists, uint64_t seq, int64_t modified)
{
    if (p->match.given) {
        if (!exists || !(p->match.any || listed(&p->match, seq)))
            return false;
    } else if (p->unmodified_given && (!exists || modified > p->unmodified_since)) {
        return false;
    }
    return !(p->none_match.given && exists && (p->none_match.any || listed(&p->none_match, seq)));
}

static void put_be64(unsigned char *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (unsigned char)(v >> (56 - 8 * i));
}

static uint64_t get_be64(const unsigned char *p)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v = v << 8 | p[i];
    return v;
}

size_t db_op_encode(const struct db_op *op, unsigned char *out, size_t cap)
{
    size_t need = 1;
    for (int i = 0; i < DB_OP_VALUES; i++)
        need += WIRE_VALUE_HEAD + op->values[i].n;
    if (need > cap)
        return need;
    *out++ = op->kind;
    for (int i = 0; i < DB_OP_VALUES; i++) {
        const struct db_value *v = &op->values[i];
        *out = v->type;
        put_be64(out + 1, v->type == DB_VALUE_INT ? (uint64_t)v->i : v->n);
        out += WIRE_VALUE_HEAD;
        if (v->n > 0)
            memcpy(out, v->p, v->n);
        out += v->n;
    }
    return need;
}

struct db_op *db_op_decode(const unsigned char *p, size_t n)
{
    if (n < 1 || n > WIRE_BYTES_MAX || p[0] >= DB_OP_KINDS)
        return NULL;
    struct db_op *op = db_op_new((enum db_op_kind)p[0], n);
    size_t at = 1;
    for (int i = 0; op != NULL && i < DB_OP_VALUES; i++) {
        if (n - at < WIRE_VALUE_HEAD)
            break;
        enum db_value_type type = p[at];
        uint64_t v = get_be64(p + at + 1);
        bool bytes = type == DB_VALUE_TEXT || type == DB_VALUE_BLOB;
        at += WIRE_VALUE_HEAD;
        if (type > DB_VALUE_INT || (bytes && v > n - at) || (type == DB_VALUE_NONE && v != 0))
            break;
        if (bytes) {
            db_op_copy(op, i, type, p + at, (size_t)v);
            at += (size_t)v;
        } else if (type == DB_VALUE_INT) {
            db_op_int(op, i, (int64_t)v);
        }
        if (i == DB_OP_VALUES - 1 && at == n)
            return op;
    }
    db_op_free(op);
    return NULL;
}
