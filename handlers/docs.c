/* Documents over HTTP.
 *
 * What is stored is what is served, byte for byte, with the Content-Type it came with. The ETag is
 * the sequence number of the last change, so it is strong and never comes back. Stored documents
 * are served with nosniff and a sandboxing policy: a stored HTML page cannot act as the site. */
#include "handlers/docs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "db/doc.h"
#include "fcgi/path.h"
#include "fcgi/spool.h"
#include "handlers/content.h"
#include "handlers/json.h"
#include "handlers/json_check.h"
#include "handlers/once.h"
#include "handlers/precond.h"
#include "handlers/problem.h"
#include "handlers/store.h"
#include "seal/id.h"

enum { DOCS_PREFIX_LEN = 6, INSPECT_BYTES = 65536 };

const char docs_absent[] = "There is no document with this key.";

struct str docs_key(const struct req *req)
{
    return (struct str){req->path.p + DOCS_PREFIX_LEN, req->path.n - DOCS_PREFIX_LEN};
}

bool docs_key_ok(struct buf *path, struct str key)
{
    path->len = 0;
    return key.n > 0 && key.n <= DB_KEY_MAX && key.p[key.n - 1] != '/' &&
           buf_add(path, "/docs/", DOCS_PREFIX_LEN, RESP_HEAD_MAX) &&
           buf_add(path, key.p, key.n, RESP_HEAD_MAX) &&
           path_ok((struct str){(const char *)path->data, path->len});
}

/* Answers when the key or a precondition is malformed. */
static bool refused(struct call *c, struct precond *p)
{
    char detail[96];
    if (docs_key(c->req).n > DB_KEY_MAX) {
        problem(c, 400, "A key has at most 512 bytes.");
        return true;
    }
    const char *header = precond_parse(c->req, p);
    if (header == NULL)
        return false;
    snprintf(detail, sizeof detail, "The header %s is malformed.", header);
    problem(c, 400, detail);
    return true;
}

static const char no_json[] = "The body is not JSON that parses.";

static struct str written_key(const struct db_op *op)
{
    if (op->replayed)
        return (struct str){(const char *)op->answer, op->answer_bytes};
    return (struct str){op->values[0].p, op->values[0].n};
}

void docs_link_header(struct call *c, const struct write *w, const char *name)
{
    struct buf *link = &session_of(c)->link;
    struct str key = written_key(w->op);
    link->len = 0;
    if (path_encode(link, (struct str){w->mount, w->mount_len}) &&
        buf_add(link, "/docs/", DOCS_PREFIX_LEN, RESP_HEAD_MAX) &&
        path_encode(link, key))
        resp_header(c->resp, name, (struct str){(char *)link->data, link->len});
    else
        c->resp->failed = true;
}

/* What a client that did not choose the key wants to know. */
static void put_created(struct call *c, const struct db_op *op)
{
    struct buf *text = &session_of(c)->text;
    struct json j = json_start(text);
    json_raw(&j, "{\"key\":");
    json_string(&j, written_key(op));
    json_raw(&j, ",\"etag\":");
    json_etag(&j, op->seq);
    json_raw(&j, "}\n");
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    resp_body(c->resp, text->data, text->len);
    c->resp->failed |= j.failed;
}

static void wrote(struct write *w, struct call *c)
{
    const struct db_op *op = w->op;
    if (op->result == DB_NONE) {
        problem(c, 404, docs_absent);
        return;
    }
    if (op->result == DB_PRECONDITION && op->wants_answer) {
        problem_with(c, 503, "Somebody else has just taken the id that was made; try again.",
                     (struct problem_header){"Retry-After", "1"});
        return;
    }
    if (op->result != DB_OK) {
        problem_result(c, op->result, op->pid);
        return;
    }
    resp_start(c->resp, op->created ? 201 : 204);
    if (op->kind == DB_OP_PUT)
        resp_etag(c->resp, op->seq);
    if (op->created)
        docs_link_header(c, w, "Location");
    once_header(c, op);
    if (op->wants_answer)
        put_created(c, op);
    else if (op->created)
        resp_body(c->resp, NULL, 0);
    else
        resp_no_body(c->resp);
}

/* A large body whose type asks for more than keeping its bytes: looked at on a thread of the
 * pool. */
struct inspection {
    struct task task;
    struct db_op *op; /* whose value 2 is the file */
    bool json;
    bool wrong; /* it is not JSON */
    bool failed; /* the file could not be read */
};

static bool inspect_json(struct inspection *i, int fd, size_t n)
{
    struct json_check check;
    unsigned char piece[INSPECT_BYTES];
    json_check_start(&check);
    for (size_t at = 0; at < n;) {
        size_t take = n - at < sizeof piece ? n - at : sizeof piece;
        if (!spool_read(fd, piece, take, at)) {
            i->failed = true;
            return false;
        }
        if (!json_check_feed(&check, piece, take))
            return false;
        at += take;
    }
    return json_check_end(&check);
}

/* What is asked for with an idempotency key. */
static void inspect_once(struct inspection *i, struct str type, int fd, size_t n)
{
    struct seal_digest d;
    unsigned char piece[INSPECT_BYTES];
    once_begin(&d, type);
    for (size_t at = 0; at < n && !i->failed; at += sizeof piece) {
        size_t take = n - at < sizeof piece ? n - at : sizeof piece;
        i->failed = !spool_read(fd, piece, take, at);
        seal_digest_add(&d, piece, take);
    }
    once_end(&d, i->op);
}

/* Text that people may want to read in the file is taken into memory, to be stored as TEXT. */
static void load_text(struct inspection *i, struct str type)
{
    struct db_value file = i->op->values[2];
    unsigned char *p = malloc(file.n);
    if (p == NULL || !spool_read((int)file.i, p, file.n, 0)) {
        i->failed = true;
        free(p);
        return;
    }
    db_op_take(i->op, 2, content_form(type, p, file.n), p, file.n);
    close((int)file.i);
}

static void inspect(struct task *t, struct worker *worker)
{
    struct inspection *i = (struct inspection *)t;
    const struct db_value *file = &i->op->values[2];
    struct str type = {i->op->values[1].p, i->op->values[1].n};
    (void)worker;
    i->wrong = i->json && !inspect_json(i, (int)file->i, file->n);
    if (!i->wrong && i->op->once != NULL)
        inspect_once(i, type, (int)file->i, file->n);
    if (!i->wrong && !i->failed && content_is_text(type) && file->n <= DOCS_TEXT_MAX)
        load_text(i, type);
}

static enum verdict inspected(struct task *t, struct call *c)
{
    struct inspection *i = (struct inspection *)t;
    if (c->resp != NULL && !i->failed && !i->wrong)
        return store_write(c, i->op, wrote);
    db_op_free(i->op);
    if (c->resp == NULL)
        return FAIL;
    if (i->failed)
        problem_result(c, DB_NO_MEMORY, 0);
    else
        problem(c, 400, no_json);
    return REPLY;
}

/* Takes op, and the file that the body was spooled to. */
static enum verdict put_large(struct call *c, struct db_op *op, struct str type, int fd)
{
    db_op_file(op, 2, fd, c->req->frame->body_bytes);
    if (!content_is_text(type) && op->once == NULL)
        return store_write(c, op, wrote);
    struct inspection *i = store_task(c, sizeof *i);
    if (i == NULL) {
        db_op_free(op);
        return FAIL;
    }
    i->op = op;
    i->json = content_is_json(type);
    i->task.work = inspect;
    i->task.done = inspected;
    return store_run(c, &i->task);
}

static enum verdict put(struct call *c, struct str key, const struct db_precond *p)
{
    struct str type = c->req->content_type;
    size_t n;
    if (type.n == 0)
        type = STR_LIT("application/octet-stream");
    if (!content_type_ok(type)) {
        problem(c, 400, "The Content-Type is malformed or longer than 255 bytes.");
        return REPLY;
    }
    struct db_op *op = db_op_new(DB_OP_PUT, key.n + type.n);
    if (op == NULL)
        return FAIL;
    db_op_copy(op, 0, DB_VALUE_TEXT, key.p, key.n);
    db_op_copy(op, 1, DB_VALUE_TEXT, type.p, type.n);
    op->precond = *p;
    op->wants_answer = c->req->method == METHOD_POST;
    if (op->wants_answer && !once_take(c, op, 201)) {
        db_op_free(op);
        return REPLY;
    }
    int fd = frame_take_spool(c->req->frame);
    if (fd >= 0)
        return put_large(c, op, type, fd);
    unsigned char *body = frame_take_body(c->req->frame, &n);
    db_op_take(op, 2, content_form(type, body, n), body, n);
    if (content_is_json(type) && !json_check_all(body, n, NULL)) {
        db_op_free(op);
        problem(c, 400, no_json);
        return REPLY;
    }
    once_body(op, type, (struct str){(const char *)body, n});
    return store_write(c, op, wrote);
}

enum verdict docs_create(struct call *c)
{
    struct db_precond p = {.none_match = {.given = 1, .any = 1}};
    struct buf *key = &session_of(c)->value;
    struct str collection = docs_key(c->req);
    char id[SEAL_ID_LEN + 1];
    struct timespec now;
    if (collection.n + SEAL_ID_LEN > DB_KEY_MAX) {
        problem(c, 400, "The path is too long: a key has at most 512 bytes, 26 of them the id.");
        return REPLY;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    seal_id_new(id, (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
    key->len = 0;
    if (!buf_add(key, collection.p, collection.n, DB_KEY_MAX) ||
        !buf_add(key, id, SEAL_ID_LEN, DB_KEY_MAX))
        return FAIL;
    return put(c, (struct str){(const char *)key->data, key->len}, &p);
}

static enum verdict delete(struct call *c, const struct db_precond *p)
{
    struct str key = docs_key(c->req);
    struct db_op *op = db_op_new(DB_OP_DELETE, key.n);
    if (op == NULL)
        return FAIL;
    db_op_copy(op, 0, DB_VALUE_TEXT, key.p, key.n);
    op->precond = *p;
    return store_write(c, op, wrote);
}

enum verdict docs_item(struct call *c)
{
    struct precond p;
    if (refused(c, &p))
        return REPLY;
    switch (c->req->method) {
    case METHOD_PUT:
        return put(c, docs_key(c->req), &p.db);
    case METHOD_PATCH:
        return docs_patch(c, &p.db);
    case METHOD_DELETE:
        return delete (c, &p.db);
    default:
        return docs_get(c, &p);
    }
}
