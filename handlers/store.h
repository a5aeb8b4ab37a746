/* Where the loop and the store meet: one store a process, one session a reactor thread.
 *
 * A session owns the thread's read connection. Its snapshot begins at the first read of a round and
 * ends with the round. Writes of a round are handed to the writer together, at its end. */
#ifndef HANJI_HANDLERS_STORE_H
#define HANJI_HANDLERS_STORE_H

#include <semaphore.h>

#include "db/blobs.h"
#include "db/doc.h"
#include "db/writer.h"
#include "fcgi/conf.h"
#include "fcgi/loop.h"
#include "fcgi/pool.h"
#include "handlers/access.h"
#include "handlers/app_set.h"
#include "handlers/app_stats.h"
#include "handlers/keys.h"
#include "handlers/watch.h"

struct store {
    const struct conf *conf;
    struct db_config db;
    struct db_writer *writer;
    struct pool *pool;
    struct buf basic;   /* prefixes that may be read with HTTP Basic, in the same form */
    unsigned char pair_key[32]; /* of seal_pair, for as long as the process lives */
    struct buf public_; /* prefixes anybody may read, one a line, as in token.read */
    struct buf sites;   /* those of them whose documents may act as pages */
    struct cors *cors;  /* origins whose scripts may use the interface */
    struct db_blobs *blobs; /* files for the web server; NULL: there can be none */
    struct apps *apps;  /* NULL: memory was short */
    int64_t start_s;    /* wall clock when it was opened */
    enum db_result trouble; /* why writes fail now, DB_OK: they do not; writer's thread */
    void (*stop)(void); /* asks the process to end: the store is broken */
    struct loop *const *loops;
    unsigned loop_count;
    struct watch_stats watch;
    struct app_stats app_stats;
    struct nudge *nudge; /* wakes the courier */
    struct app_lane *app_lane;      /* threads of the pool that apps may have */
    struct keyring *keys;           /* NULL: memory was short, and the store did not open */
    struct cursor_keys *cursors;    /* of apps' pages; NULL: there are none */
};

struct session {
    struct store *store;
    struct loop *loop;
    struct db_reader *reader;
    bool snapshot; /* begun in this round */
    struct watch *watch;
    struct app_view apps;
    struct str mount; /* SCRIPT_NAME of the call being answered, for links */
    struct credential who; /* of the call being answered, when its route asks for one */
    bool offers_basic;     /* its path may be read with HTTP Basic */
    struct basic_table *basic; /* made when it is first used */
    struct app_desk *desk; /* likewise */
    unsigned char touched[DB_TOKEN_HASH_BYTES]; /* the session last noted as in use, and when */
    int64_t touched_s;
    struct db_op *writes, **writes_tail;
    struct buf text;  /* a body being built */
    struct buf value; /* a query parameter being decoded */
    struct buf link;  /* a URL being built */
};

/* Opens the file and starts the writer. stop is called from the writer's thread when the store must
 * not be written again. False with error set when it cannot serve. */
bool store_open(struct store *s, const struct conf *conf, void (*stop)(void),
                struct db_error *error) __attribute__((warn_unused_result));
void store_close(struct store *s);

struct db_config store_db_config(const struct conf *conf);

/* The app that the loop calls; arg of app.open is the struct store. */
extern const struct loop_app store_app;

/* The reader of this thread with the round's snapshot open; NULL when it cannot be begun. */
struct db_reader *session_reader(struct call *c);
struct session *session_of(const struct call *c);

/* The same with a snapshot that begins now: for those who were told that there is something new.
 * What was read before is dead. */
struct db_reader *session_fresh(struct session *s);

/* A parked write: what its answer needs. Handlers that need more embed it first. */
struct write {
    struct park park;
    struct db_op *op; /* set when it was applied */
    void (*answer)(struct write *w, struct call *c);
    const void *more; /* what store_write_more was given */
    struct credential who; /* who asks: access_who when answer or then is called */
    enum verdict (*then)(struct write *w, struct call *c); /* what store_write_then was given */
    void *arg;
    sem_t *applied; /* store_apply's: posted, and nothing else is done with it */
    size_t mount_len;
    char mount[]; /* SCRIPT_NAME, for links */
};

/* Queues op for the next burst and parks the call; answer builds the response when op->result is
 * there (not called when the client has left). Takes op in any case. REPLY when an error was
 * answered at once, else PARK. */
enum verdict store_write(struct call *c, struct db_op *op,
                         void (*answer)(struct write *w, struct call *c))
    __attribute__((warn_unused_result));

/* The same, with a copy of n bytes for answer in w->more, aligned for anything. */
enum verdict store_write_more(struct call *c, struct db_op *op,
                              void (*answer)(struct write *w, struct call *c), const void *more,
                              size_t n) __attribute__((warn_unused_result));

/* The same where the call may go on: then answers, parks or streams as a handler does, and owns arg
 * from PARK on. c->resp is NULL when the client has left: then it only frees arg. */
enum verdict store_write_then(struct call *c, struct db_op *op,
                              enum verdict (*then)(struct write *w, struct call *c), void *arg)
    __attribute__((warn_unused_result));

/* Queues op for the next burst and forgets it: nobody waits for its result. Takes op in any case;
 * it is dropped when the queue is full. */
void store_note(struct call *c, struct db_op *op);

/* Applies op and waits for its result: on a thread that may wait, never a loop's or the writer's.
 * op stays the caller's. */
enum db_result store_apply(struct store *s, struct db_op *op) __attribute__((warn_unused_result));

/* What a thread of the pool has. */
struct worker {
    struct store *store;
    struct db_reader *reader; /* opened when worker_reader is first called */
};

/* A read connection of this thread, without a snapshot; NULL when it cannot be opened. */
struct db_reader *worker_reader(struct worker *w);

/* A request parked while slow work is done for it. Handlers embed it as their first member. */
struct task {
    struct park park;
    struct job job;
    struct store *store;
    struct credential who; /* who asks: access_who when done is called */
    /* On a thread of the pool. */
    void (*work)(struct task *t, struct worker *w);
    /* Back on the loop: answers, writes or streams like a handler. c->resp is NULL when the client
     * has left, or when the task was not taken: then it only frees what the task owns, and its
     * verdict means nothing. */
    enum verdict (*done)(struct task *t, struct call *c);
    size_t mount_len;
    char *mount; /* behind the struct */
};

/* A task of size bytes, zeroed, with the call parked in it. NULL when memory is short. */
void *store_task(struct call *c, size_t size) __attribute__((warn_unused_result));

/* Hands the task, whose work and done are set, to the pool. PARK, or REPLY when the pool is full
 * and 503 was answered. */
enum verdict store_run(struct call *c, struct task *t) __attribute__((warn_unused_result));

#endif
