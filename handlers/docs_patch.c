/* PATCH of a document: a JSON merge patch (RFC 7396), applied inside the writer's transaction.
 *
 * The answer is the document as it is now, so whoever patches must be able to read it, too. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "db/doc.h"
#include "handlers/access.h"
#include "handlers/dispatch.h"
#include "handlers/docs.h"
#include "handlers/json_check.h"
#include "handlers/problem.h"
#include "handlers/store.h"

const char docs_no_merge[] =
    "The document is not JSON: there is nothing to merge the patch into.";
const char docs_large_merge[] =
    "The document, the patch or what comes of both is too large to be patched.";

static bool type_ok(struct call *c)
{
    static const char type[] = "application/merge-patch+json";
    struct str given = c->req->content_type;
    size_t n = sizeof type - 1;
    bool ok = given.n >= n && strncasecmp(given.p, type, n) == 0 &&
              (given.n == n || given.p[n] == ';' || given.p[n] == ' ');
    if (!ok)
        problem_with(c, 415, "A document is patched with Content-Type: "
                             "application/merge-patch+json (RFC 7396).",
                     (struct problem_header){"Accept-Patch", type});
    return ok;
}

static bool may_read(struct call *c)
{
    enum access access = access_judge(c, access_who(c), c->req->path, false);
    if (access != ACCESS_FORBIDDEN)
        return !dispatch_refused(c, access);
    problem(c, 403, "The answer would be the document, and this credential may not read it.");
    return false;
}

static void answered(struct write *w, struct call *c)
{
    const struct db_op *op = w->op;
    const char *answer = (const char *)op->answer;
    switch (op->result) {
    case DB_OK:
        break;
    case DB_NONE:
        problem(c, 404, docs_absent);
        return;
    case DB_CONFLICT:
        problem(c, 409, docs_no_merge);
        return;
    case DB_TOO_LARGE:
        problem(c, 413, docs_large_merge);
        return;
    default:
        problem_result(c, op->result, op->pid);
        return;
    }
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", (struct str){answer, op->type_bytes});
    resp_etag(c->resp, op->seq);
    docs_link_header(c, w, "Content-Location");
    docs_guards(c->resp);
    resp_body(c->resp, answer + op->type_bytes, op->answer_bytes - op->type_bytes);
}

size_t docs_patch_cost(struct call *c, struct str key)
{
    struct db_doc doc;
    struct db_reader *reader = session_reader(c);
    if (reader == NULL || db_doc_get(reader, key.p, key.n, 0, &doc) != DB_OK)
        return 0;
    return doc.size < DB_PATCH_BYTES_MAX ? (size_t)doc.size : DB_PATCH_BYTES_MAX;
}

enum verdict docs_patch(struct call *c, const struct db_precond *p)
{
    struct str key = docs_key(c->req);
    size_t n;
    if (!type_ok(c) || !may_read(c))
        return REPLY;
    if (c->req->frame->body_bytes > DB_PATCH_BYTES_MAX) {
        problem(c, 413, "A patch has at most 4 MiB.");
        return REPLY;
    }
    unsigned char *body = frame_take_body(c->req->frame, &n);
    struct db_op *op = db_op_new(DB_OP_PATCH, key.n);
    bool memory = op == NULL || (body == NULL && n > 0);
    if (memory || !json_check_all(body, n, NULL)) {
        free(body);
        db_op_free(op);
        if (memory)
            return FAIL;
        problem(c, 400, "The patch is not JSON that parses.");
        return REPLY;
    }
    db_op_copy(op, 0, DB_VALUE_TEXT, key.p, key.n);
    db_op_int(op, 1, (int64_t)session_of(c)->store->conf->max_body_bytes);
    db_op_take(op, 2, DB_VALUE_TEXT, body, n);
    op->precond = *p;
    op->wants_answer = true;
    op->extra_bytes = docs_patch_cost(c, key);
    return store_write(c, op, answered);
}
