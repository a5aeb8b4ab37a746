#include "db/op.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Wire form: kind, then for each value its type, an 8-byte length or integer (big-endian), and the
 * bytes of text or blob. Behind a batch stand the number of its parts, in 8 bytes, and the parts.
 */
enum { WIRE_VALUE_HEAD = 9, WIRE_COUNT = 8 };

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
    for (struct db_op *part = op->parts, *next; part != NULL; part = next) {
        next = part->next;
        db_op_free(part); /* one level: a part has none */
    }
    for (int i = 0; i < DB_OP_VALUES; i++)
        if (op->values[i].type == DB_VALUE_FILE)
            close((int)op->values[i].i);
    if (op->drop_run != NULL)
        op->drop_run(op->run);
    free(op->answer);
    free(op->once);
    free(op->taken);
    free(op);
}

void db_op_add_part(struct db_op *batch, struct db_op *part)
{
    assert(part->kind != DB_OP_BATCH && batch->part_count < DB_OP_PARTS_MAX);
    part->next = NULL;
    if (batch->last_part != NULL)
        batch->last_part->next = part;
    else
        batch->parts = part;
    batch->last_part = part;
    batch->part_count++;
}

void db_op_forget(struct db_op *op)
{
    free(op->answer);
    op->answer = NULL;
    op->answer_bytes = 0;
    op->type_bytes = 0;
    op->created = false;
    op->replayed = false;
    op->failed_part = 0;
    op->seq = 0;
    for (struct db_op *part = op->parts; part != NULL; part = part->next)
        db_op_forget(part);
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

void db_op_file(struct db_op *op, int i, int fd, uint64_t n)
{
    op->values[i] = (struct db_value){.type = DB_VALUE_FILE, .n = (size_t)n, .i = fd};
}

void db_op_int(struct db_op *op, int i, int64_t v)
{
    op->values[i] = (struct db_value){.type = DB_VALUE_INT, .i = v};
}

size_t db_op_bytes(const struct db_op *op)
{
    size_t n = sizeof *op + op->room + op->extra_bytes;
    for (int i = 0; i < DB_OP_VALUES; i++)
        if (op->taken != NULL && op->values[i].p == op->taken)
            n += op->values[i].n;
    for (const struct db_op *part = op->parts; part != NULL; part = part->next)
        n += db_op_bytes(part);
    return n;
}

static bool listed(const struct db_tags *t, uint64_t seq)
{
    for (unsigned i = 0; i < t->count; i++)
        if (t->seq[i] == seq)
            return true;
    return false;
}

/* RFC 9110 13.2.2: If-Match stands in for If-Unmodified-Since when both are there. 13.1.4: what is
 * not there has no date to be judged by. */
bool db_precond_holds(const struct db_precond *p, bool exists, uint64_t seq, int64_t modified)
{
    if (p->match.given) {
        if (!exists || !(p->match.any || listed(&p->match, seq)))
            return false;
    } else if (p->unmodified_given && exists && modified > p->unmodified_since) {
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

static size_t wire_bytes(const struct db_op *op)
{
    size_t need = 1;
    for (int i = 0; i < DB_OP_VALUES; i++)
        need += WIRE_VALUE_HEAD + op->values[i].n;
    if (op->kind == DB_OP_BATCH)
        need += WIRE_COUNT;
    for (const struct db_op *part = op->parts; part != NULL; part = part->next)
        need += wire_bytes(part);
    return need;
}

static unsigned char *encode(const struct db_op *op, unsigned char *out)
{
    *out++ = op->kind;
    for (int i = 0; i < DB_OP_VALUES; i++) {
        const struct db_value *v = &op->values[i];
        assert(v->type != DB_VALUE_FILE && v->type != DB_VALUE_REAL);
        *out = v->type;
        put_be64(out + 1, v->type == DB_VALUE_INT ? (uint64_t)v->i : v->n);
        out += WIRE_VALUE_HEAD;
        if (v->n > 0)
            memcpy(out, v->p, v->n);
        out += v->n;
    }
    if (op->kind == DB_OP_BATCH) {
        put_be64(out, op->part_count);
        out += WIRE_COUNT;
    }
    for (const struct db_op *part = op->parts; part != NULL; part = part->next)
        out = encode(part, out);
    return out;
}

size_t db_op_encode(const struct db_op *op, unsigned char *out, size_t cap)
{
    size_t need = wire_bytes(op);
    if (need <= cap)
        encode(op, out);
    return need;
}

/* What is left of the wire form. */
struct wire {
    const unsigned char *p;
    size_t n;
};

/* Takes the value that comes next; false when it is malformed. */
static bool take_value(struct wire *w, struct db_value *value)
{
    if (w->n < WIRE_VALUE_HEAD)
        return false;
    enum db_value_type type = w->p[0];
    uint64_t v = get_be64(w->p + 1);
    bool bytes = type == DB_VALUE_TEXT || type == DB_VALUE_BLOB;
    w->p += WIRE_VALUE_HEAD;
    w->n -= WIRE_VALUE_HEAD;
    if (type > DB_VALUE_INT || (bytes && v > w->n) || (type == DB_VALUE_NONE && v != 0))
        return false;
    *value = (struct db_value){.type = (uint8_t)type};
    if (type == DB_VALUE_INT)
        value->i = (int64_t)v;
    if (!bytes)
        return true;
    value->p = w->p;
    value->n = (size_t)v;
    w->p += value->n;
    w->n -= value->n;
    return true;
}

/* Takes one operation without its parts; NULL when it is malformed. */
static struct db_op *take_one(struct wire *w)
{
    struct db_value values[DB_OP_VALUES];
    size_t room = 0;
    if (w->n < 1 || w->p[0] >= DB_OP_WIRE_KINDS)
        return NULL;
    enum db_op_kind kind = w->p[0];
    w->p++;
    w->n--;
    for (int i = 0; i < DB_OP_VALUES; i++) {
        if (!take_value(w, &values[i]))
            return NULL;
        room += values[i].n;
    }
    struct db_op *op = db_op_new(kind, room);
    for (int i = 0; op != NULL && i < DB_OP_VALUES; i++)
        if (values[i].type == DB_VALUE_INT)
            db_op_int(op, i, values[i].i);
        else if (values[i].type != DB_VALUE_NONE)
            db_op_copy(op, i, values[i].type, values[i].p, values[i].n);
    return op;
}

static bool take_parts(struct wire *w, struct db_op *batch)
{
    if (w->n < WIRE_COUNT)
        return false;
    uint64_t count = get_be64(w->p);
    w->p += WIRE_COUNT;
    w->n -= WIRE_COUNT;
    if (count > DB_OP_PARTS_MAX)
        return false;
    while (batch->part_count < count) {
        struct db_op *part = take_one(w);
        if (part == NULL || part->kind == DB_OP_BATCH) {
            db_op_free(part);
            return false;
        }
        db_op_add_part(batch, part);
    }
    return true;
}

struct db_op *db_op_decode(const unsigned char *p, size_t n)
{
    struct wire w = {p, n};
    struct db_op *op = n <= DB_OP_WIRE_MAX ? take_one(&w) : NULL;
    bool ok = op != NULL && (op->kind != DB_OP_BATCH || take_parts(&w, op)) && w.n == 0;
    if (ok)
        return op;
    db_op_free(op);
    return NULL;
}
