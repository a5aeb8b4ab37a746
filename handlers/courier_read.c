#include "handlers/courier_read.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "handlers/courier_sign.h"
#include "handlers/keys.h"

enum { ROWS_FIRST = 64 };

struct courier_reader {
    struct db_reader *reader;
    struct keyring *keyring;
    void (*wake)(void *arg);
    void *arg;
    pthread_t thread;
    bool runs;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t asked;
    struct courier_job *jobs, **jobs_tail, *done, **done_tail;
    bool ends;
};

uint32_t courier_host(const char *url)
{
    uint32_t hash = 2166136261U; /* FNV-1a */
    const char *from = strstr(url, "://");
    const char *end = from != NULL ? from + 3 + strcspn(from + 3, "/?#") : url + strlen(url);
    for (const char *p = url; p < end; p++)
        hash = (hash ^ (uint32_t)tolower((unsigned char)*p)) * 16777619U;
    return hash;
}

/* ---- a look ---- */

struct look {
    struct courier_job *job;
    unsigned room;
};

static bool take_line(void *arg, const struct db_line *line)
{
    struct look *look = arg;
    struct courier_job *job = look->job;
    if (job->count == look->room) {
        unsigned room = look->room == 0 ? ROWS_FIRST : 2 * look->room;
        struct courier_row *rows = realloc(job->rows, room * sizeof *rows);
        if (rows == NULL) {
            job->failed = true;
            return false;
        }
        job->rows = rows;
        look->room = room;
    }
    struct courier_row *row = &job->rows[job->count++];
    *row = (struct courier_row){
        .id = line->id,
        .fifo = line->fifo,
        .open = line->state == DB_LINE_OPEN,
        .rate = line->rate,
        .host = courier_host(line->url),
        .seq = line->seq,
        .waiting = line->waiting,
        .due_ms = line->due_ms,
        .wait_until_ms = line->wait_until_ms,
        .failing_s = line->failing_s,
    };
    strncpy(row->name, line->name, sizeof row->name - 1);
    return true;
}

static void do_look(struct courier_reader *r, struct courier_job *job)
{
    struct look look = {.job = job};
    if (db_courier_lines(r->reader, job->now_ms, DB_LINES_MAX, take_line, &look) != DB_OK)
        job->failed = true;
}

/* ---- messages ---- */

struct reading {
    struct courier_job *job;
    const struct seal_keys *keys;
    struct db_line line;
    struct courier_target *target;
    struct courier_item **tail;
    unsigned count;
    size_t bytes;
};

static struct courier_target *make_target(const struct seal_keys *keys, const struct db_line *line,
                                          bool *shown)
{
    size_t url_bytes = strlen(line->url) + 1;
    struct courier_target *t = calloc(1, sizeof *t + url_bytes);
    if (t == NULL)
        return NULL;
    memcpy(t->url, line->url, url_bytes);
    t->private_ = line->private_;
    *shown = courier_secret(keys, line, t->secret, &t->secret_bytes);
    if (line->ca != NULL) {
        t->ca_bytes = strlen(line->ca);
        t->ca = strdup(line->ca);
        if (t->ca == NULL) {
            free(t);
            return NULL;
        }
    }
    return t;
}

static bool take_message(void *arg, const struct db_due_message *m)
{
    struct reading *g = arg;
    struct courier_job *job = g->job;
    if (m->due_ms > job->now_ms) { /* only of a fifo line: nothing passes it */
        job->next_ms = m->due_ms;
        job->full = false;
        return false;
    }
    job->full = true;
    if (g->count > 0 && g->bytes + m->bytes > COURIER_READ_BYTES)
        return false;
    struct courier_item *item = courier_item_new(g->keys, &g->line, m, job->now_ms / 1000);
    if (item == NULL) {
        job->failed = true;
        return false;
    }
    item->target = g->target;
    g->target->items++;
    *g->tail = item;
    g->tail = &item->next;
    g->count++;
    g->bytes += m->bytes;
    job->full = g->count == job->most;
    return true;
}

/* The line's row dies with the first message that is read: what is needed of it is in target, and
 * its name and order in what stays. */
static bool begin_line(struct courier_reader *r, struct reading *g, bool *shown)
{
    struct courier_job *job = g->job;
    enum db_result found = db_line_find(r->reader, job->name, strlen(job->name), &g->line);
    if (found != DB_OK || g->line.id != job->id || g->line.state != DB_LINE_OPEN) {
        job->failed = found != DB_OK && found != DB_NONE;
        return false;
    }
    g->target = make_target(g->keys, &g->line, shown);
    if (g->target == NULL)
        job->failed = true;
    g->line = (struct db_line){.id = job->id, .name = job->name, .fifo = g->line.fifo};
    return g->target != NULL;
}

static void sign_all(struct reading *g, bool shown)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (struct courier_item *item = g->job->items; item != NULL; item = item->next) {
        if (item->use != COURIER_SEND)
            continue;
        if (shown) {
            courier_sign(item, g->keys, now.tv_sec);
        } else {
            item->use = COURIER_UNFIT;
            item->why = "the line's secret cannot be read: is its local key gone?";
        }
    }
}

static void do_messages(struct courier_reader *r, struct courier_job *job)
{
    struct reading g = {.job = job, .keys = keyring_hold(r->keyring), .tail = &job->items};
    bool shown = true;
    if (begin_line(r, &g, &shown)) {
        if (db_courier_messages(r->reader, job->id, g.line.fifo, job->now_ms, job->after_due_ms,
                                job->after_seq, job->most, take_message, &g) != DB_OK)
            job->failed = true;
        sign_all(&g, shown);
        if (g.count == 0) { /* no item frees it */
            explicit_bzero(g.target->secret, sizeof g.target->secret);
            free(g.target->ca);
            free(g.target);
        }
    }
    keyring_release(r->keyring, g.keys);
}

/* ---- the thread ---- */

static void do_job(struct courier_reader *r, struct courier_job *job)
{
    job->next_ms = INT64_MAX;
    if (db_reader_begin(r->reader) != DB_OK) {
        job->failed = true;
        return;
    }
    if (job->line == NULL)
        do_look(r, job);
    else
        do_messages(r, job);
    db_reader_end(r->reader);
}

static void *run(void *arg)
{
    struct courier_reader *r = arg;
    pthread_mutex_lock(&r->mutex);
    while (!r->ends) {
        struct courier_job *job = r->jobs;
        if (job == NULL) {
            pthread_cond_wait(&r->asked, &r->mutex);
            continue;
        }
        r->jobs = job->next;
        if (r->jobs == NULL)
            r->jobs_tail = &r->jobs;
        job->next = NULL;
        pthread_mutex_unlock(&r->mutex);
        do_job(r, job);
        pthread_mutex_lock(&r->mutex);
        *r->done_tail = job;
        r->done_tail = &job->next;
        r->wake(r->arg);
    }
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

void courier_reader_ask(struct courier_reader *r, struct courier_job *job)
{
    pthread_mutex_lock(&r->mutex);
    job->next = NULL;
    *r->jobs_tail = job;
    r->jobs_tail = &job->next;
    pthread_cond_signal(&r->asked);
    pthread_mutex_unlock(&r->mutex);
}

struct courier_job *courier_reader_done(struct courier_reader *r)
{
    pthread_mutex_lock(&r->mutex);
    struct courier_job *job = r->done;
    if (job != NULL) {
        r->done = job->next;
        if (r->done == NULL)
            r->done_tail = &r->done;
    }
    pthread_mutex_unlock(&r->mutex);
    return job;
}

void courier_job_free(struct courier_job *job)
{
    if (job == NULL)
        return;
    for (struct courier_item *item = job->items; item != NULL;) {
        struct courier_item *next = item->next;
        courier_item_free(item);
        item = next;
    }
    free(job->rows);
    free(job);
}

struct courier_reader *courier_reader_new(const struct db_config *db, struct keyring *keys,
                                          void (*wake)(void *arg), void *arg,
                                          struct db_error *error)
{
    struct courier_reader *r = calloc(1, sizeof *r);
    strncpy(error->text, db_result_text(DB_NO_MEMORY), sizeof error->text - 1);
    if (r == NULL)
        return NULL;
    r->keyring = keys;
    r->wake = wake;
    r->arg = arg;
    r->jobs_tail = &r->jobs;
    r->done_tail = &r->done;
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->asked, NULL);
    if (db_reader_open(db, &r->reader, error) != DB_OK ||
        pthread_create(&r->thread, NULL, run, r) != 0) {
        courier_reader_free(r);
        return NULL;
    }
    r->runs = true;
    return r;
}

static void free_jobs(struct courier_job *job)
{
    while (job != NULL) {
        struct courier_job *next = job->next;
        courier_job_free(job);
        job = next;
    }
}

void courier_reader_free(struct courier_reader *r)
{
    if (r == NULL)
        return;
    if (r->runs) {
        pthread_mutex_lock(&r->mutex);
        r->ends = true;
        pthread_cond_signal(&r->asked);
        pthread_mutex_unlock(&r->mutex);
        pthread_join(r->thread, NULL);
    }
    free_jobs(r->jobs);
    free_jobs(r->done);
    db_reader_close(r->reader);
    pthread_cond_destroy(&r->asked);
    pthread_mutex_destroy(&r->mutex);
    free(r);
}
