/* The control socket: operator commands change a running server's store through it. */
#ifndef HANJI_HANDLERS_CONTROL_H
#define HANJI_HANDLERS_CONTROL_H

#include "db/op.h"
#include "handlers/routes.h"

/* POST /control/op: the body is an operation (db_op_encode), the answer is what came of it. */
handler_fn control_op;

enum { CONTROL_ANSWER_BYTES = 13 };

enum control_result {
    CONTROL_DONE,   /* op has its result (DB_OVERLOAD: no room now), seq and failed_part */
    CONTROL_NOBODY, /* no server listens: the file may be written directly */
    CONTROL_FAILED, /* one does, but could not be asked, refused (errno) or did not answer */
};

/* The other end, for a command: asks the server that listens on the socket to apply op. */
enum control_result control_send(const char *socket, struct db_op *op)
    __attribute__((warn_unused_result));

#endif
