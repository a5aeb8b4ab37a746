/* hanji import: takes up what hanji export wrote, or lines like it.
 *
 * Kept true: lines are taken in order, many a commit, each commit whole; after a fault nothing
 * behind it is taken. A document that is there already with the same type and bytes is left as it
 * is, so an import that was cut off, however it was, is resumed by running it again. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "db/export.h"
#include "handlers/content.h"
#include "handlers/ctl.h"
#include "handlers/import_line.h"
#include "handlers/json_check.h"
#include "handlers/progress.h"
#include "handlers/sink.h"

enum {
    CHUNK_BYTES = 256 << 10,
    BATCH_DOCUMENTS = 500,
    BATCH_BYTES = 512 << 10,    /* handed to a server */
    OWN_BATCH_BYTES = 4 << 20, /* when none runs */
    BODY_MAX = 256 << 20,
    OP_ROOM = 4096, /* more than an operation has around its body */
    PATIENCE_S = 60,
    PAUSE_MS = 250,
};

struct import {
    const char *file; /* "-": standard input */
    bool if_absent;
    struct sink sink;
    struct db_export *store; /* what is there already */
    struct import_line line;
    uint64_t line_number;
    /* the batch */
    struct db_op *batch; /* NULL: none begun */
    size_t batch_bytes, batch_max;
    uint64_t lines[BATCH_DOCUMENTS]; /* where each of its documents stood */
    /* counts */
    uint64_t written, kept;
    uint64_t since_header; /* documents behind the last header */
    bool open;             /* a header came and its end did not */
    uint64_t fault_line;
    struct db_error error;
};

static bool fail(struct import *m, uint64_t line, const char *why)
{
    m->fault_line = line;
    snprintf(m->error.text, sizeof m->error.text, "%s", why);
    return false;
}

/* Applies op, again while the server says that it is busy. */
static bool apply(struct import *m, struct db_op *op)
{
    struct timespec pause = {0, PAUSE_MS * 1000000L};
    time_t until = time(NULL) + PATIENCE_S;
    for (;;) {
        if (!sink_apply(&m->sink, op, &m->error))
            return false;
        bool busy = op->result == DB_OVERLOAD || op->result == DB_BUSY ||
                    op->result == DB_WAL_LIMIT;
        if (!busy || time(NULL) >= until)
            return true;
        db_op_forget(op);
        nanosleep(&pause, NULL);
    }
}

/* Keeps the first n parts of a batch. */
static void cut(struct db_op *batch, uint32_t n)
{
    struct db_op **end = &batch->parts, *rest;
    batch->last_part = NULL;
    for (uint32_t i = 0; i < n; i++) {
        batch->last_part = *end;
        end = &(*end)->next;
    }
    rest = *end;
    *end = NULL;
    batch->part_count = n;
    while (rest != NULL) {
        struct db_op *next = rest->next;
        db_op_free(rest);
        rest = next;
    }
}

/* Commits the batch. If one of its documents is refused, those before it are taken. */
static bool flush(struct import *m)
{
    struct db_op *batch = m->batch;
    bool ok = true;
    db_export_pause(m->store);
    m->batch = NULL;
    m->batch_bytes = 0;
    if (batch == NULL)
        return true;
    ok = apply(m, batch);
    if (ok && batch->result != DB_OK) {
        uint32_t failed = batch->failed_part < batch->part_count ? batch->failed_part : 0;
        enum db_result why = batch->result;
        cut(batch, failed);
        db_op_forget(batch);
        if (failed > 0 && (!apply(m, batch) || batch->result != DB_OK))
            cut(batch, 0);
        ok = fail(m, m->lines[failed], db_result_text(why));
    } else if (!ok) {
        cut(batch, 0);
    }
    m->written += batch->part_count;
    db_op_free(batch);
    return ok;
}

static struct db_op *make_op(struct import *m)
{
    struct import_line *l = &m->line;
    struct str type = {(char *)l->type.data, l->type.len};
    struct db_op *op = db_op_new(DB_OP_PUT, l->key.len + l->type.len);
    if (op == NULL)
        return NULL;
    db_op_copy(op, 0, DB_VALUE_TEXT, l->key.data, l->key.len);
    db_op_copy(op, 1, DB_VALUE_TEXT, l->type.data, l->type.len);
    enum db_value_type form = content_form(type, l->body.data, l->body.len);
    db_op_take(op, 2, form, l->body.data, l->body.len);
    l->body = (struct buf){0};
    if (l->has_modified)
        db_op_int(op, DB_PUT_MODIFIED, l->modified);
    if (m->if_absent)
        db_op_int(op, DB_PUT_ABSENT, 1);
    return op;
}

/* A document that does not fit into a batch is a commit of its own. */
static bool apply_alone(struct import *m, struct db_op *op)
{
    bool ok = flush(m);
    if (ok && !apply(m, op)) {
        m->fault_line = m->line_number;
        ok = false;
    }
    if (ok && op->result != DB_OK)
        ok = fail(m, m->line_number, db_result_text(op->result));
    m->written += ok;
    db_op_free(op);
    return ok;
}

static bool add(struct import *m, struct db_op *op)
{
    size_t bytes = db_op_bytes(op) + OP_ROOM / 8;
    if (bytes > m->batch_max)
        return apply_alone(m, op);
    if (m->batch != NULL && (m->batch_bytes + bytes > m->batch_max ||
                             m->batch->part_count == BATCH_DOCUMENTS) &&
        !flush(m)) {
        db_op_free(op);
        return false;
    }
    if (m->batch == NULL)
        m->batch = db_op_new(DB_OP_BATCH, 0);
    if (m->batch == NULL) {
        db_op_free(op);
        return fail(m, m->line_number, "memory is short");
    }
    m->lines[m->batch->part_count] = m->line_number;
    m->batch_bytes += bytes;
    db_op_add_part(m->batch, op);
    return true;
}

static bool same_body(struct import *m, const struct db_export_doc *doc)
{
    unsigned char piece[65536];
    const struct buf *body = &m->line.body;
    if (doc->size != body->len)
        return false;
    if (doc->body != NULL || doc->size == 0)
        return doc->size == 0 || memcmp(doc->body, body->data, body->len) == 0;
    for (size_t at = 0; at < body->len;) {
        size_t n = body->len - at < sizeof piece ? body->len - at : sizeof piece;
        if (db_export_read(m->store, piece, n, at) != DB_OK ||
            memcmp(piece, body->data + at, n) != 0)
            return false;
        at += n;
    }
    return true;
}

/* Whether the document of the line is there and shall stay. */
static bool is_there(struct import *m)
{
    struct db_export_doc doc;
    const struct import_line *l = &m->line;
    if (db_export_find(m->store, (const char *)l->key.data, l->key.len, &doc) != DB_OK)
        return false;
    return m->if_absent || (doc.type_len == l->type.len &&
                            memcmp(doc.type, l->type.data, l->type.len) == 0 && same_body(m, &doc));
}

static bool take_document(struct import *m)
{
    struct import_line *l = &m->line;
    struct str type = {(char *)l->type.data, l->type.len};
    m->since_header++;
    if (content_is_json(type) && !json_check_all(l->body.data, l->body.len, NULL))
        return fail(m, m->line_number, "the type says JSON and the body is none");
    if (is_there(m)) {
        m->kept++;
        return true;
    }
    struct db_op *op = make_op(m);
    return op != NULL ? add(m, op) : fail(m, m->line_number, "memory is short");
}

static bool take_line(struct import *m)
{
    switch (m->line.kind) {
    case IMPORT_DOCUMENT: return take_document(m);
    case IMPORT_HEADER:
        m->open = true;
        m->since_header = 0;
        return true;
    case IMPORT_END:
        if (!m->open || m->line.documents != m->since_header)
            return fail(m, m->line_number, "lines are missing: the end counts other documents");
        m->open = false;
        return true;
    case IMPORT_BLANK: break;
    }
    return true;
}

/* Takes the lines of a piece of the file. */
static bool take_bytes(struct import *m, const unsigned char *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t used = 0;
        enum import_result result = import_line_feed(&m->line, p + at, n - at, &used);
        at += used;
        if (result == IMPORT_FAULT)
            return fail(m, m->line_number, m->line.fault);
        if (result == IMPORT_MORE)
            continue;
        if (!take_line(m))
            return false;
        m->line_number++;
    }
    return true;
}

static bool finish(struct import *m)
{
    enum import_result result = import_line_finish(&m->line);
    if (result == IMPORT_FAULT)
        return fail(m, m->line_number, m->line.fault);
    if (result == IMPORT_LINE && !take_line(m))
        return false;
    return !m->open || fail(m, m->line_number, "the end line is missing: the file was cut off");
}

static bool read_all(struct import *m, int fd, uint64_t all)
{
    static unsigned char chunk[CHUNK_BYTES];
    uint64_t done = 0;
    m->line_number = 1;
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail(m, 0, strerror(errno));
        if (n == 0)
            return finish(m);
        if (!take_bytes(m, chunk, (size_t)n))
            return false;
        done += (uint64_t)n;
        progress_show(NULL, "import", done, all);
        if (all == 0 && m->batch != NULL && !flush(m)) /* who writes to us may wait */
            return false;
    }
}

static bool import(struct import *m, const struct conf *conf, int fd, uint64_t all)
{
    struct db_config db;
    struct db_doc_range range = {.prefix = "", .after = ""};
    size_t fits = (size_t)conf->max_body_bytes / 2; /* the server takes no larger bodies */
    import_line_init(&m->line, BODY_MAX);
    if (!sink_open(&m->sink, conf, &m->error))
        return false;
    m->batch_max = m->sink.writer != NULL ? OWN_BATCH_BYTES
                   : fits < BATCH_BYTES   ? fits
                                          : BATCH_BYTES;
    db = m->sink.db;
    if (db_export_open(&db, &range, &m->store, &m->error) != DB_OK)
        return false;
    bool ok = read_all(m, fd, all);
    /* What stood before a fault is taken. */
    struct db_error first = m->error;
    uint64_t line = m->fault_line;
    bool flushed = flush(m);
    if (!ok) {
        m->error = first;
        m->fault_line = line;
    }
    return ok && flushed;
}

static int tell(const struct import *m, bool ok)
{
    progress_end();
    FILE *out = ok ? stdout : stderr;
    if (!ok && m->fault_line > 0)
        fprintf(out, "hanji import: %s:%" PRIu64 ": %s\n", m->file, m->fault_line, m->error.text);
    else if (!ok)
        fprintf(out, "hanji import: %s: %s\n", m->file, m->error.text);
    fprintf(out, "%s: %" PRIu64 " documents written, %" PRIu64 " left as they were\n", m->file,
            m->written, m->kept);
    return ok ? CTL_OK : CTL_FAILED;
}

int ctl_import(const struct conf *conf, int argc, char **argv)
{
    static struct import m;
    struct stat st;
    m.sink.lock = -1;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--if-absent") == 0) {
            m.if_absent = true;
        } else if (m.file != NULL || argv[i][0] == 0 || (argv[i][0] == '-' && argv[i][1] != 0)) {
            m.file = NULL;
            break;
        } else {
            m.file = argv[i];
        }
    }
    if (m.file == NULL) {
        fprintf(stderr, "usage: hanji [-c CONF] import [--if-absent] FILE\n"
                        "FILE is what hanji export wrote; - is standard input.\n");
        return CTL_USAGE;
    }
    int fd = strcmp(m.file, "-") == 0 ? STDIN_FILENO : open(m.file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        fprintf(stderr, "hanji import: %s: %s\n", m.file, strerror(errno));
        return CTL_FAILED;
    }
    bool ok = import(&m, conf, fd, S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0);
    int status = tell(&m, ok);
    db_export_close(m.store);
    import_line_free(&m.line);
    sink_close(&m.sink);
    return status;
}
