/* Where a command's operations go: to the server that runs, by its control socket, or, when none
 * does, to a writer of the command's own, which holds the database's lock meanwhile. One thread. */
#ifndef HANJI_HANDLERS_SINK_H
#define HANJI_HANDLERS_SINK_H

#include <pthread.h>

#include "db/writer.h"
#include "fcgi/conf.h"

struct sink {
    const struct conf *conf;
    struct db_config db;
    int lock; /* -1: a server has it */
    struct db_writer *writer;
    pthread_mutex_t mutex;
    pthread_cond_t done;
    struct db_op *back; /* what the writer gave back */
};

/* False with error set when neither is possible. s must not move while it is open. */
bool sink_open(struct sink *s, const struct conf *conf, struct db_error *error)
    __attribute__((warn_unused_result));

/* Applies op, which stays the caller's, and waits until it is durable. op->result is what came of
 * it when this is true; false with error set: nobody could be asked. */
bool sink_apply(struct sink *s, struct db_op *op, struct db_error *error)
    __attribute__((warn_unused_result));

/* Safe after a failed sink_open. */
void sink_close(struct sink *s);

#endif
