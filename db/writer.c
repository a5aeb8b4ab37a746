#include "db/writer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "db/burst.h"
#include "db/checkpoint.h"
#include "db/inbox_internal.h"
#include "db/migrate.h"
#include "db/once.h"
#include "db/outbox.h"
#include "db/search_index.h"

enum {
    COMMITS_KEPT = 1024,
    BURST_BYTES_MAX = 16 << 20,
    GATHER_MAX_US = 20000,
    GATHER_SHARE = 2, /* gather for at most 1/2 of the last commit */
    IDLE_US = 1000000, /* after that long without work: prune and checkpoint */
    RETRY_US = 250000, /* between attempts to checkpoint a pinned log */
    /* A log of that size, and so many times checkpoint_bytes, is copied beside the writes. */
    LONG_TIMES = 2,
    LONG_BYTES = 4 << 20,
    PRUNE_LOOK = 4096,
    SEARCH_PAUSE_US = 20000, /* between steps of the search index */
    SEARCH_BACKLOG = 1024,   /* operations, beyond which a step is made though it is not quiet */
    TIDY_BACKLOG = 2048, /* operations, beyond which what is sent is tidied, too */
    TIDY_AGAIN = 256,    /* the same while there is more to delete */
    TIDY_LOOK = 256,     /* messages that are deleted in a step, each with a body */
    TIDY_REST_US = 1800000000, /* when nobody writes: before it is looked what is over by now */
    MARK_BYTES = 128,    /* of a report of the courier, about: each mark counts as an operation */
    PRUNE_BACKLOG = 100000, /* entries not looked at, beyond which bursts pay for pruning too */
    YIELD_NS = 500000,
    STACK_BYTES = 1 << 20,
    ERROR_PAGE_BYTES = 4096,
};

struct db_writer {
    struct db_config config;
    struct db_writer_hooks hooks;
    struct db_conn conn;
    struct db_checkpoint checkpoint;
    uint64_t page_bytes;
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* under lock */
    struct db_op *head, **tail;
    uint64_t queued;
    uint64_t wanted; /* the thread sleeps until this many are queued */
    bool stopping;
    uint64_t commits[COMMITS_KEPT];
    struct db_writer_stats stats;

    atomic_uint_fast64_t reserved_operations, reserved_bytes;

    /* of the thread alone */
    uint64_t expected; /* operations of the last cycle: in the burst, or queued meanwhile */
    uint64_t last_commit_us;
    uint64_t wal_frames;
    uint64_t copied_frames; /* of them, that a copy beside the writes has done */
    bool committed;         /* since all of the log was copied: so it holds frames that are not */
    uint64_t checkpoint_after_us; /* not before, when the last one left frames */
    uint64_t unpruned;            /* change entries not looked at yet, about */
    uint64_t unindexed;           /* operations that the search index has not seen, about */
    uint64_t untidied;            /* operations since inboxes and outbox were tidied */
    bool indexing;                /* its last step left more to do */
    uint64_t index_after_us;      /* not before */
    bool keys_noted; /* idempotency keys since it was quiet */
    bool sends_over; /* there are messages that will have to go */
    bool sends_used; /* since it was quiet: messages and ids that may have to go */
    bool idle_work; /* something to do when it gets quiet */
    bool broken;
};

static int count_frames(void *arg, sqlite3 *db, const char *name, int frames)
{
    struct db_writer *w = arg;
    (void)db, (void)name;
    w->wal_frames = (uint64_t)frames;
    w->committed = true;
    return SQLITE_OK;
}

bool db_writer_reserve(struct db_writer *w, struct db_op *op)
{
    size_t bytes = db_op_bytes(op);
    uint64_t operations = atomic_fetch_add(&w->reserved_operations, 1);
    uint64_t held = atomic_fetch_add(&w->reserved_bytes, bytes);
    if (operations < w->config.queue_operations && held + bytes <= w->config.queue_bytes) {
        op->charged_bytes = bytes;
        return true;
    }
    op->charged_bytes = bytes;
    db_writer_release(w, op);
    return false;
}

void db_writer_release(struct db_writer *w, const struct db_op *op)
{
    atomic_fetch_sub(&w->reserved_operations, 1);
    atomic_fetch_sub(&w->reserved_bytes, op->charged_bytes);
}

void db_writer_submit(struct db_writer *w, struct db_op *list)
{
    uint64_t n = 0;
    struct db_op **end = &list;
    if (list == NULL)
        return;
    for (; *end != NULL; end = &(*end)->next)
        n++;
    pthread_mutex_lock(&w->lock);
    *w->tail = list;
    w->tail = end;
    w->queued += n;
    bool enough = w->queued >= w->wanted;
    pthread_mutex_unlock(&w->lock);
    if (enough)
        pthread_cond_signal(&w->wake);
}

/* Sleeps, with the lock held, until `wanted` operations are queued, the writer is to stop, or the
 * time has come (0: no limit). */
static void wait_for(struct db_writer *w, uint64_t wanted, uint64_t until_us)
{
    struct timespec until = {.tv_sec = (time_t)(until_us / 1000000),
                             .tv_nsec = (long)(until_us % 1000000) * 1000};
    w->wanted = wanted;
    while (w->queued < wanted && !w->stopping) {
        if (until_us == 0)
            pthread_cond_wait(&w->wake, &w->lock);
        else if (pthread_cond_timedwait(&w->wake, &w->lock, &until) != 0)
            break;
    }
    w->wanted = 1;
}

/* What applying an operation puts into the log, about. */
static uint64_t burst_bytes(const struct db_op *op)
{
    uint64_t n = op->charged_bytes;
    for (int i = 0; i < DB_OP_VALUES; i++)
        if (op->values[i].type == DB_VALUE_FILE)
            n += op->values[i].n;
    return n;
}

/* Takes the next burst off the queue, in order, within its bounds. Lock held. */
static struct db_op *take_burst(struct db_writer *w, uint64_t *count)
{
    struct db_op *list = w->head, **end = &list;
    uint64_t bytes = 0, n = 0;
    while (*end != NULL && n < w->config.burst_operations &&
           (n == 0 || bytes + burst_bytes(*end) <= BURST_BYTES_MAX)) {
        bytes += burst_bytes(*end);
        n++;
        end = &(*end)->next;
    }
    w->head = *end;
    *end = NULL;
    if (w->head == NULL)
        w->tail = &w->head;
    w->queued -= n;
    *count = n;
    return list;
}

static void note_burst(struct db_writer *w, uint64_t operations, uint64_t commit_us)
{
    unsigned class = 0;
    while (class < DB_BURST_CLASSES - 1 && (UINT64_C(1) << class) < operations)
        class++;
    w->commits[w->stats.bursts % COMMITS_KEPT] = commit_us;
    w->stats.bursts++;
    w->stats.operations += operations;
    w->stats.histogram[class]++;
    w->stats.commit_us_sum += commit_us;
}

/* Takes back what the operations held of the queue's bounds and hands them over. */
static void deliver(struct db_writer *w, struct db_op *list)
{
    uint64_t n = 0, bytes = 0;
    for (struct db_op *op = list; op != NULL; op = op->next) {
        n++;
        bytes += op->charged_bytes;
    }
    atomic_fetch_sub(&w->reserved_operations, n);
    atomic_fetch_sub(&w->reserved_bytes, bytes);
    w->hooks.deliver(w->hooks.arg, list);
}

static void give_up(struct db_writer *w)
{
    if (w->broken)
        return;
    w->broken = true;
    w->hooks.broken(w->hooks.arg);
}

static void note_checkpoint(struct db_writer *w, enum db_result result, uint64_t left)
{
    int64_t pid = left > 0 ? db_checkpoint_pinned_by(&w->checkpoint) : 0;
    w->checkpoint_after_us = pid != 0 || result != DB_OK ? db_clock_us() + RETRY_US : 0;
    pthread_mutex_lock(&w->lock);
    if (left == 0 && result == DB_OK)
        w->wal_frames = 0; /* the next commit starts at its beginning */
    w->stats.checkpoints++;
    w->stats.pinned_by = pid;
    w->stats.wal_bytes = w->wal_frames * w->page_bytes;
    pthread_mutex_unlock(&w->lock);
}

/* Copies under the write lock: everything, unless a reader needs it. */
static void checkpoint_now(struct db_writer *w)
{
    uint64_t left = 0;
    enum db_result result = db_checkpoint_run(&w->checkpoint, &w->conn, &left);
    if (result == DB_BROKEN) {
        give_up(w);
        return;
    }
    if (left == 0 && result == DB_OK) {
        w->copied_frames = 0;
        w->committed = false;
    }
    note_checkpoint(w, result, left);
    if (left > 0 || result != DB_OK)
        w->checkpoint_after_us = db_clock_us() + RETRY_US;
}

/* Takes up what a copy beside the writes has done; waits for it if it is not done yet. */
static void end_long_checkpoint(struct db_writer *w)
{
    uint64_t copied = 0;
    enum db_result result = db_checkpoint_end(&w->checkpoint, &copied);
    if (result == DB_BROKEN) {
        give_up(w);
        return;
    }
    bool further = copied > w->copied_frames;
    w->copied_frames = copied;
    note_checkpoint(w, result, w->wal_frames > copied ? w->wal_frames - copied : 1);
    if (!further) /* somebody needs the rest, a reader of ours perhaps */
        w->checkpoint_after_us = db_clock_us() + RETRY_US;
}

/* So much of the log is to be copied that writes would be held up. */
static bool log_is_long(const struct db_writer *w)
{
    uint64_t frames = w->wal_frames > w->copied_frames ? w->wal_frames - w->copied_frames : 0;
    uint64_t bytes = frames * w->page_bytes;
    return w->committed && bytes >= LONG_BYTES &&
           bytes >= LONG_TIMES * w->config.checkpoint_bytes;
}

/* Copies the log when it has grown to checkpoint_bytes, or at once. */
static void checkpoint(struct db_writer *w, bool at_once)
{
    if (db_checkpoint_works(&w->checkpoint))
        return;
    if (db_checkpoint_begun(&w->checkpoint))
        end_long_checkpoint(w);
    if (w->broken || w->wal_frames == 0 ||
        (!at_once && w->wal_frames * w->page_bytes < w->config.checkpoint_bytes) ||
        (!at_once && db_clock_us() < w->checkpoint_after_us))
        return;
    if (!log_is_long(w) || db_checkpoint_begin(&w->checkpoint) != DB_OK)
        checkpoint_now(w);
}

/* The same, and everything that can be copied is when it returns. */
static void checkpoint_wholly(struct db_writer *w)
{
    if (db_checkpoint_begun(&w->checkpoint))
        end_long_checkpoint(w);
    if (!w->broken && w->wal_frames > 0)
        checkpoint_now(w);
}

static void fail_at_limit(struct db_writer *w, struct db_op *list)
{
    int64_t pid = db_checkpoint_pinned_by(&w->checkpoint);
    for (struct db_op *op = list; op != NULL; op = op->next) {
        op->result = DB_WAL_LIMIT;
        op->pid = pid;
    }
}

static bool at_limit(const struct db_writer *w)
{
    return w->wal_frames * w->page_bytes >= w->config.wal_limit_bytes;
}

static void run_burst(struct db_writer *w, struct db_op *list, uint64_t count)
{
    uint64_t commit_us = 0;
    if (at_limit(w))
        checkpoint_wholly(w);
    if (w->broken) {
        for (struct db_op *op = list; op != NULL; op = op->next)
            op->result = DB_BROKEN;
    } else if (at_limit(w)) {
        fail_at_limit(w, list);
    } else if (db_burst_run(&w->conn, list, &commit_us) == DB_BROKEN) {
        give_up(w);
    }
    pthread_mutex_lock(&w->lock);
    if (commit_us > 0) {
        note_burst(w, count, commit_us);
        w->last_commit_us = commit_us;
    }
    w->stats.wal_bytes = w->wal_frames * w->page_bytes;
    w->expected = count + w->queued;
    pthread_mutex_unlock(&w->lock);
    w->idle_work = true;
    for (struct db_op *op = list; op != NULL; op = op->next) {
        w->unpruned += op->part_count > 0 ? op->part_count : 1;
        w->keys_noted |= op->once != NULL;
        w->sends_used |= op->kind == DB_OP_COURIER_MARKS || op->kind == DB_OP_LINE_REMOVE ||
                         op->kind == DB_OP_SEND_SKIP || op->kind == DB_OP_INBOX_TAKE ||
                         op->kind == DB_OP_INBOX_REMOVE;
        if (op->kind == DB_OP_COURIER_MARKS)
            w->untidied += op->values[1].n / MARK_BYTES;
    }
    w->unindexed += count;
    w->untidied += count;
    deliver(w, list);
    if (w->conn.waited) { /* somebody else writes too: let them have the lock */
        struct timespec pause = {0, YIELD_NS};
        w->conn.waited = false;
        nanosleep(&pause, NULL);
    }
}

static void prune(struct db_writer *w)
{
    if (!w->broken && db_burst_prune(&w->conn, PRUNE_LOOK, &w->unpruned) == DB_BROKEN)
        give_up(w);
}

/* One step of the search index; nothing when no collection is searchable. */
static void follow(struct db_writer *w)
{
    enum db_result result = DB_OK;
    w->indexing = false;
    if (!w->broken && !at_limit(w))
        result = db_search_step(&w->conn, &w->indexing);
    if (result == DB_BROKEN)
        give_up(w);
    w->unindexed = w->indexing ? 1 : 0;
    w->index_after_us = db_clock_us() + SEARCH_PAUSE_US;
}

static void prune_keys(struct db_writer *w)
{
    struct db_clock now = db_clock_now();
    w->keys_noted = false;
    if (!w->broken && db_once_prune(&w->conn, &now, PRUNE_LOOK, &w->keys_noted) == DB_BROKEN)
        give_up(w);
}

/* A step for the outbox and for inboxes: what was over long enough, what was removed. */
static void tidy_sends(struct db_writer *w)
{
    int64_t before_s = db_clock_now().wall_s - w->config.sends_keep_s, oldest_s = 0;
    bool outbox = false, inbox = false;
    if (!w->broken &&
        (db_outbox_prune(&w->conn, before_s, TIDY_LOOK, &outbox, &oldest_s) == DB_BROKEN ||
         db_inbox_tidy(&w->conn, PRUNE_LOOK, &inbox) == DB_BROKEN))
        give_up(w);
    w->sends_used = outbox || inbox;
    w->sends_over = oldest_s != 0;
    w->untidied = outbox ? TIDY_BACKLOG - TIDY_AGAIN : 0;
}

/* It is quiet: leave the file as a person would like to find it. One step a call; stays `idle_work`
 * while there is more. */
static void tidy(struct db_writer *w)
{
    if (w->unindexed > 0)
        follow(w);
    if (w->unpruned > 0 && !w->indexing)
        prune(w);
    if (w->keys_noted)
        prune_keys(w);
    if (w->sends_used)
        tidy_sends(w);
    w->idle_work = w->indexing || w->unpruned > 0 || w->keys_noted || w->sends_used;
    if (!w->idle_work)
        checkpoint(w, true);
    if (db_checkpoint_begun(&w->checkpoint))
        w->idle_work = true; /* to end it */
}

static uint64_t gather_until(const struct db_writer *w)
{
    uint64_t most = w->last_commit_us / GATHER_SHARE;
    return db_clock_us() + (most < GATHER_MAX_US ? most : GATHER_MAX_US);
}

/* When there is time for what can wait; 0: there is nothing. */
static uint64_t idle_until(const struct db_writer *w)
{
    if (!w->idle_work)
        return w->sends_over ? db_clock_us() + TIDY_REST_US : 0;
    return w->indexing ? w->index_after_us : db_clock_us() + IDLE_US;
}

static void *writer_thread(void *arg)
{
    struct db_writer *w = arg;
    pthread_mutex_lock(&w->lock);
    while (w->queued > 0 || !w->stopping) {
        if (w->queued == 0)
            wait_for(w, 1, idle_until(w));
        uint64_t wanted = w->expected < w->config.burst_operations ? w->expected
                                                                   : w->config.burst_operations;
        if (w->queued > 0 && w->queued < wanted)
            wait_for(w, wanted, gather_until(w));
        uint64_t count = 0;
        struct db_op *list = w->queued > 0 ? take_burst(w, &count) : NULL;
        pthread_mutex_unlock(&w->lock);
        if (list != NULL) {
            run_burst(w, list, count);
            checkpoint(w, false);
            if (w->unpruned > PRUNE_BACKLOG)
                prune(w);
            if (w->untidied > TIDY_BACKLOG && w->sends_used)
                tidy_sends(w);
            if (w->unindexed > SEARCH_BACKLOG ||
                (w->indexing && db_clock_us() >= w->index_after_us))
                follow(w);
        } else if (w->idle_work || w->sends_over) {
            w->sends_used |= !w->idle_work;
            tidy(w);
        }
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void free_writer(struct db_writer *w)
{
    db_conn_close(&w->conn);
    db_checkpoint_close(&w->checkpoint);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static bool init_locks(struct db_writer *w)
{
    pthread_condattr_t attr;
    bool ok = pthread_mutex_init(&w->lock, NULL) == 0 && pthread_condattr_init(&attr) == 0;
    if (!ok)
        return false;
    ok = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
         pthread_cond_init(&w->wake, &attr) == 0;
    pthread_condattr_destroy(&attr);
    return ok;
}

static bool start_thread(struct db_writer *w)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0)
        return false;
    bool ok = pthread_attr_setstacksize(&attr, STACK_BYTES) == 0 &&
              pthread_create(&w->thread, &attr, writer_thread, w) == 0;
    pthread_attr_destroy(&attr);
    return ok;
}

static uint64_t read_page_bytes(struct db_conn *c)
{
    sqlite3_stmt *s = NULL;
    uint64_t bytes = ERROR_PAGE_BYTES;
    if (sqlite3_prepare_v2(c->db, "PRAGMA page_size", -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW)
        bytes = (uint64_t)sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return bytes;
}

/* Frames a former process may have left in the log: at most what the file has room for. */
static uint64_t left_frames(const struct db_writer *w)
{
    char wal[4096];
    struct stat st;
    if (snprintf(wal, sizeof wal, "%s-wal", w->config.path) >= (int)sizeof wal ||
        stat(wal, &st) != 0)
        return 0;
    return (uint64_t)st.st_size / w->page_bytes;
}

static enum db_result open_files(struct db_writer *w, struct db_error *error)
{
    enum db_result result = db_conn_open(&w->conn, w->config.path, DB_CREATE,
                                         w->config.write_cache_bytes, error);
    if (result == DB_OK)
        result = db_migrate(&w->conn, error);
    if (result == DB_OK)
        result = db_checkpoint_open(&w->checkpoint, w->config.path, error);
    if (result == DB_OK) {
        sqlite3_wal_hook(w->conn.db, count_frames, w);
        w->page_bytes = read_page_bytes(&w->conn);
        w->wal_frames = left_frames(w);
    }
    return result;
}

enum db_result db_writer_start(const struct db_config *config, const struct db_writer_hooks *hooks,
                               struct db_writer **writer, struct db_error *error)
{
    struct db_writer *w = calloc(1, sizeof *w);
    *writer = NULL;
    if (w == NULL || !init_locks(w)) {
        free(w);
        db_set_error(error, "memory is short");
        return DB_NO_MEMORY;
    }
    w->config = *config;
    w->hooks = *hooks;
    w->tail = &w->head;
    w->wanted = 1;
    w->checkpoint.shm_fd = -1;
    w->idle_work = true;
    w->unpruned = 1; /* look once */
    w->unindexed = 1;
    w->keys_noted = true;
    w->sends_used = true;
    enum db_result result = open_files(w, error);
    if (result == DB_OK && !start_thread(w)) {
        db_set_error(error, "the writer's thread cannot be started");
        result = DB_NO_MEMORY;
    }
    if (result != DB_OK) {
        free_writer(w);
        return result;
    }
    *writer = w;
    return DB_OK;
}

void db_writer_stop(struct db_writer *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_mutex_unlock(&w->lock);
    pthread_cond_signal(&w->wake);
    pthread_join(w->thread, NULL);
    checkpoint_wholly(w);
    free_writer(w);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void db_writer_get_stats(struct db_writer *w, struct db_writer_stats *stats)
{
    uint64_t *sorted = malloc(sizeof w->commits);
    pthread_mutex_lock(&w->lock);
    *stats = w->stats;
    size_t n = w->stats.bursts < COMMITS_KEPT ? (size_t)w->stats.bursts : COMMITS_KEPT;
    if (sorted != NULL)
        memcpy(sorted, w->commits, n * sizeof *sorted);
    pthread_mutex_unlock(&w->lock);
    stats->queue_operations = atomic_load(&w->reserved_operations);
    stats->queue_bytes = atomic_load(&w->reserved_bytes);
    if (sorted != NULL && n > 0) {
        qsort(sorted, n, sizeof *sorted, by_size);
        stats->commit_p50_us = sorted[n / 2];
        stats->commit_p99_us = sorted[n - 1 - n / 100];
    }
    free(sorted);
}
