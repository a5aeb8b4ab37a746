/* The other end of handlers/control.c, in a file of its own: who only asks a server is not linked
 * with one. */
#include <errno.h>
#include <stdlib.h>

#include "fcgi/client.h"
#include "handlers/control.h"

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
