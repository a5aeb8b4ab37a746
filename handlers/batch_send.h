/* Messages among the operations of a batch: {"op":"send","line":…,"body":…}.
 *
 * While the batch is read, each has an empty part of its kind in the batch's operation. When all is
 * read and allowed, batch_send_start makes the messages, on a thread of the pool if one is sealed,
 * puts them in the place of those parts and has the whole written; again when the keys of a line
 * changed meanwhile. */
#ifndef HANJI_HANDLERS_BATCH_SEND_H
#define HANJI_HANDLERS_BATCH_SEND_H

#include "handlers/json.h"
#include "handlers/problem.h"
#include "handlers/sends_seal.h"
#include "handlers/store.h"

/* One of them, in the order of the batch. */
struct batch_send {
    struct batch_send *next;
    uint32_t index; /* in the batch */
    struct sends_target target;
    struct sends_content content; /* in bytes */
    char bytes[];                 /* the type with a NUL, then the body */
};

struct batch_sends {
    struct batch_send *first, **end;
};

/* Adds a copy. False: memory is short. */
bool batch_send_add(struct batch_sends *all, struct str line, uint32_t index, struct str type,
                    struct str body) __attribute__((warn_unused_result));
void batch_send_free(struct batch_sends *all);

/* Judges whether the call may send on its line; else it was answered. */
bool batch_send_allowed(struct call *c, const struct batch_send *send)
    __attribute__((warn_unused_result));

/* What came of a message, as an object; part: its operation. */
void batch_send_put(struct json *j, const struct db_op *part, const struct batch_send *send);

/* Answers for a batch that failed by the message of that index; false: not for a reason of its
 * own. */
bool batch_send_failed(struct call *c, const struct db_op *op, uint32_t index)
    __attribute__((warn_unused_result));

/* Owns op, whose parts of kind DB_OP_SEND are those of all, and what all has. answer builds the
 * response of what was written, or was not. */
typedef void batch_send_answer(struct call *c, const struct db_op *op,
                               const struct batch_sends *all);
enum verdict batch_send_start(struct call *c, struct db_op *op, struct batch_sends *all,
                              batch_send_answer *answer);

#endif
