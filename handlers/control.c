#include "handlers/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fcgi/client.h"
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

enum control_result control_send(const char *socket, struct db_op *op)
{
    struct buf answer = {0};
    size_t n = db_op_encode(op, NULL, 0);
    unsigned char *body = malloc(n);
    if (body == NULL)
        return CONTROL_FAILED;
    db_op_encode(op, body, n);
    unsigned status = client_post(socket, "/control/op", body, n, &answer);
    free(body);
    if (status == 503) { /* it has no room for this now */
        op->result = DB_OVERLOAD;
        buf_free(&answer);
        return CONTROL_DONE;
    }
    if (status == 413)
        errno = EMSGSIZE;
    bool done = status == 200 && answer.len == CONTROL_ANSWER_BYTES;
    if (done) {
        op->result = (enum db_result)answer.data[0];
        op->seq = 0;
        for (int i = 0; i < 8; i++)
            op->seq = op->seq << 8 | answer.data[1 + i];
        op->failed_part = 0;
        for (int i = 0; i < 4; i++)
            op->failed_part = op->failed_part << 8 | answer.data[9 + i];
    }
    buf_free(&answer);
    return done ? CONTROL_DONE : status == 0 ? CONTROL_NOBODY : CONTROL_FAILED;
}
