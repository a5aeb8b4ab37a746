#include "handlers/control.h"

#include <stdlib.h>

#include "handlers/problem.h"
#include "handlers/store.h"

/* The answer: the result in one byte, the sequence number in eight, the index of the part that
 * failed in four, big-endian. */
static void applied(struct write *w, struct call *c)
{
    unsigned char out[CONTROL_ANSWER_BYTES];
    out[0] = (unsigned char)w->op->result;
    for (int i = 0; i < 8; i++)
        out[1 + i] = (unsigned char)(w->op->seq >> (56 - 8 * i));
    for (int i = 0; i < 4; i++)
        out[9 + i] = (unsigned char)(w->op->failed_part >> (24 - 8 * i));
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", STR_LIT("application/octet-stream"));
    resp_body(c->resp, out, sizeof out);
}

enum verdict control_op(struct call *c)
{
    size_t n;
    unsigned char *body = frame_take_body(c->req->frame, &n);
    struct db_op *op = body ? db_op_decode(body, n) : NULL;
    free(body);
    if (op == NULL) {
        problem(c, 400, "The body is not an operation.");
        return REPLY;
    }
    return store_write(c, op, applied);
}
