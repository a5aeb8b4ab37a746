/* POST /batch: several operations on documents, and messages for lines, all or none.
 *
 * The body is an array of objects. Each becomes a part of one operation (DB_OP_BATCH), which the
 * writer applies inside its burst. Nothing of it is lost silently: a member that is unknown, or
 * does not belong to its operation, is refused. The first thing that is wrong is told with its
 * index. */
#include "handlers/batch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/doc.h"
#include "handlers/batch_send.h"
#include "handlers/content.h"
#include "handlers/docs.h"
#include "handlers/json.h"
#include "handlers/json_check.h"
#include "handlers/json_read.h"
#include "handlers/once.h"
#include "handlers/precond.h"
#include "handlers/several.h"
#include "handlers/store.h"
#include "seal/base64.h"

enum {
    TAGS_MAX = 1024,           /* bytes of if_match, if_none_match */
    REWRITTEN_MAX = 16 << 20, /* bytes of documents that are patched */
};

enum member { OP, KEY, LINE, TYPE, BODY, TEXT, BASE64, IF_MATCH, IF_NONE_MATCH, MEMBERS };

static const char *const member_names[MEMBERS] = {
    [OP] = "op",     [KEY] = "key",   [LINE] = "line",         [TYPE] = "type",
    [BODY] = "body", [TEXT] = "text", [BASE64] = "base64",
    [IF_MATCH] = "if_match",          [IF_NONE_MATCH] = "if_none_match",
};

#define HAS(member) (1u << (member))
#define CONDITIONS (HAS(IF_MATCH) | HAS(IF_NONE_MATCH))

static const struct verb {
    const char *name;
    enum db_op_kind kind;
    unsigned takes;
} verbs[] = {
    {"put", DB_OP_PUT, HAS(KEY) | HAS(TYPE) | HAS(BODY) | HAS(TEXT) | HAS(BASE64) | CONDITIONS},
    {"delete", DB_OP_DELETE, HAS(KEY) | CONDITIONS},
    {"patch", DB_OP_PATCH, HAS(KEY) | HAS(BODY) | CONDITIONS},
    {"send", DB_OP_SEND, HAS(LINE) | HAS(TYPE) | HAS(BODY) | HAS(TEXT) | HAS(BASE64)},
};

/* A batch being read, on the loop or, when it is large, on a thread of the pool: so what is wrong
 * is noted here and answered later. */
struct reading {
    uint64_t max_body_bytes;
    unsigned status; /* what it is refused with, 0: nothing yet */
    bool whole;      /* not because of one of its operations */
    char detail[256];
    struct problem_part part; /* the operation at hand */
    struct str members[MEMBERS]; /* of that, as they stand; {NULL} where absent */
    const struct verb *verb;
    struct db_precond precond;
    struct buf key, type, content; /* of that, decoded */
    struct db_op *op;              /* the batch so far */
    struct batch_sends sends;      /* the messages in it */
};

/* Notes what is wrong about the operation at hand; always false. */
__attribute__((format(printf, 3, 4)))
static bool refuse(struct reading *r, unsigned status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->detail, sizeof r->detail, format, args);
    va_end(args);
    r->status = status;
    return false;
}

/* The same about the batch. */
static bool refuse_all(struct reading *r, unsigned status, const char *detail)
{
    r->whole = true;
    return refuse(r, status, "%s", detail);
}

static bool no_memory(struct reading *r)
{
    return refuse_all(r, 503, "Memory is short; try again shortly.");
}

static bool given(const struct reading *r, unsigned m)
{
    return r->members[m].p != NULL;
}

/* A name from the request, for a sentence: cut where it is long. */
static int shown(struct str name)
{
    return name.n > 60 ? 60 : (int)name.n;
}

static bool take_member(struct reading *r, struct str name, struct str value)
{
    unsigned m = 0;
    while (m < MEMBERS && !json_says(name, member_names[m]))
        m++;
    if (m == MEMBERS)
        return refuse(r, 400, "An operation has no member %.*s.", shown(name), name.p);
    if (given(r, m))
        return refuse(r, 400, "The member %s is there twice.", member_names[m]);
    if (m != BODY && json_kind(value) != JSON_STRING)
        return refuse(r, 400, "The member %s is not a string.", member_names[m]);
    r->members[m] = value;
    return true;
}

static bool take_members(struct reading *r, struct str item)
{
    struct json_walk w;
    struct str name, value;
    memset(r->members, 0, sizeof r->members);
    if (json_kind(item) != JSON_OBJECT)
        return refuse(r, 400, "An operation is an object.");
    w = json_enter(item);
    while (json_member(&w, &name, &value))
        if (!take_member(r, name, value))
            return false;
    return true;
}

/* Decodes a string into out; "" where the member is absent. */
static bool decode(struct reading *r, enum member m, struct buf *out, size_t most)
{
    out->len = 0;
    switch (given(r, m) ? json_text(r->members[m], out, most) : JSON_TEXT_OK) {
    case JSON_TEXT_OK:
        return true;
    case JSON_TEXT_HALF:
        return refuse(r, 400, "The member %s has half of a surrogate pair.", member_names[m]);
    case JSON_TEXT_LONG:
        return refuse(r, 400, "The member %s has at most %zu bytes.", member_names[m], most);
    case JSON_TEXT_NO_MEMORY:
        break;
    }
    return no_memory(r);
}

static struct str text_of(const struct buf *b)
{
    return (struct str){b->len > 0 ? (const char *)b->data : "", b->len};
}

static bool take_key(struct reading *r)
{
    if (!given(r, KEY))
        return refuse(r, 400, "The member key is missing.");
    if (!decode(r, KEY, &r->key, DB_KEY_MAX))
        return false;
    r->part.key = text_of(&r->key);
    return docs_key_ok(&r->content, r->part.key) ||
           refuse(r, 400, "This is not the key of a document.");
}

static bool take_verb(struct reading *r)
{
    if (!given(r, OP))
        return refuse(r, 400, "The member op is missing.");
    size_t i = 0;
    while (i < sizeof verbs / sizeof *verbs && !json_says(r->members[OP], verbs[i].name))
        i++;
    if (i == sizeof verbs / sizeof *verbs)
        return refuse(r, 400, "The member op is put, delete, patch or send.");
    r->verb = &verbs[i];
    for (unsigned m = KEY; m < MEMBERS; m++)
        if (given(r, m) && !(r->verb->takes & HAS(m)))
            return refuse(r, 400, "The operation %s has no member %s.", r->verb->name,
                          member_names[m]);
    return true;
}

static bool take_tags(struct reading *r, enum member m, struct db_tags *tags)
{
    if (!given(r, m))
        return true;
    if (!decode(r, m, &r->content, TAGS_MAX))
        return false;
    if (precond_tags(text_of(&r->content), tags))
        return true;
    return refuse(r, 400, "The member %s is not as in the header: \"*\", or entity tags with "
                          "their quotes.", member_names[m]);
}

static bool take_conditions(struct reading *r)
{
    memset(&r->precond, 0, sizeof r->precond);
    return take_tags(r, IF_MATCH, &r->precond.match) &&
           take_tags(r, IF_NONE_MATCH, &r->precond.none_match);
}

/* Decodes in place. */
static bool take_base64(struct reading *r)
{
    size_t n = 0;
    if (!decode(r, BASE64, &r->content, SEVERAL_BODY_MAX))
        return false;
    if (r->content.len == 0)
        return true;
    char *text = malloc(r->content.len);
    if (text == NULL)
        return no_memory(r);
    memcpy(text, r->content.data, r->content.len);
    bool ok = seal_base64_decode(text, r->content.len, r->content.data, &n);
    free(text);
    r->content.len = n;
    return ok || refuse(r, 400, "The member base64 is not base64 with its padding (RFC 4648).");
}

/* Sets *body to the bytes to be stored. */
static bool take_body(struct reading *r, struct str *body)
{
    if (given(r, BODY) + given(r, TEXT) + given(r, BASE64) != 1)
        return refuse(r, 400, "One of body, text and base64 is needed, and only one.");
    if (given(r, BODY)) {
        *body = r->members[BODY];
        return true;
    }
    if (given(r, TEXT) ? !decode(r, TEXT, &r->content, SEVERAL_BODY_MAX) : !take_base64(r))
        return false;
    *body = text_of(&r->content);
    return true;
}

static bool take_type(struct reading *r, struct str *type)
{
    if (!decode(r, TYPE, &r->type, DB_TYPE_MAX))
        return false;
    *type = given(r, TYPE)   ? text_of(&r->type)
            : given(r, BODY) ? STR_LIT("application/json")
            : given(r, TEXT) ? STR_LIT("text/plain; charset=utf-8")
                             : STR_LIT("application/octet-stream");
    return content_type_ok(*type) || refuse(r, 400, "The member type is not a Content-Type.");
}

static struct db_op *new_part(struct reading *r, size_t more_bytes)
{
    struct db_op *part = db_op_new(r->verb->kind, r->key.len + more_bytes);
    if (part == NULL) {
        no_memory(r);
        return NULL;
    }
    db_op_copy(part, 0, DB_VALUE_TEXT, r->key.data, r->key.len);
    part->precond = r->precond;
    db_op_add_part(r->op, part);
    return part;
}

static bool body_ok(struct reading *r, struct str type, struct str body)
{
    return !content_is_json(type) || given(r, BODY) || json_check_all(body.p, body.n, NULL) ||
           refuse(r, 400, "The body is not JSON that parses.");
}

static bool take_put(struct reading *r)
{
    struct str type = {NULL, 0}, body = {NULL, 0};
    if (!take_type(r, &type) || !take_body(r, &body))
        return false;
    if (!body_ok(r, type, body))
        return false;
    struct db_op *part = new_part(r, type.n + body.n);
    if (part == NULL)
        return false;
    db_op_copy(part, 1, DB_VALUE_TEXT, type.p, type.n);
    db_op_copy(part, 2, content_form(type, body.p, body.n), body.p, body.n);
    return true;
}

static bool take_patch(struct reading *r)
{
    struct str body = r->members[BODY];
    if (body.p == NULL)
        return refuse(r, 400, "The member body is missing.");
    if (body.n > DB_PATCH_BYTES_MAX)
        return refuse(r, 422, "A patch has at most 4 MiB.");
    struct db_op *part = new_part(r, body.n);
    if (part == NULL)
        return false;
    db_op_int(part, 1, (int64_t)r->max_body_bytes);
    db_op_copy(part, 2, DB_VALUE_TEXT, body.p, body.n);
    return true;
}

/* An empty part holds its place: see batch_send.h. */
static bool take_send(struct reading *r)
{
    struct str type = {NULL, 0}, body = {NULL, 0};
    if (!given(r, LINE))
        return refuse(r, 400, "The member line is missing.");
    if (!decode(r, LINE, &r->key, DB_LINE_NAME_MAX))
        return false;
    if (!db_line_name_ok(text_of(&r->key).p, r->key.len))
        return refuse(r, 400, "This is not the name of a line.");
    if (!take_type(r, &type) || !take_body(r, &body))
        return false;
    if (body.n > DB_SEND_MAX)
        return refuse(r, 422, "%s", sends_too_large);
    if (!body_ok(r, type, body))
        return false;
    struct db_op *part = db_op_new(DB_OP_SEND, 0);
    if (part == NULL)
        return no_memory(r);
    db_op_add_part(r->op, part);
    return batch_send_add(&r->sends, text_of(&r->key), r->part.index, type, body) || no_memory(r);
}

static bool take_operation(struct reading *r, struct str item)
{
    r->part.key = (struct str){NULL, 0};
    if (!take_members(r, item) || !take_verb(r))
        return false;
    if (r->verb->kind == DB_OP_SEND)
        return take_send(r);
    if (!take_key(r) || !take_conditions(r))
        return false;
    switch (r->verb->kind) {
    case DB_OP_PUT:
        return take_put(r);
    case DB_OP_PATCH:
        return take_patch(r);
    default:
        return new_part(r, 0) != NULL;
    }
}

static bool take_operations(struct reading *r, struct str value)
{
    if (json_kind(value) != JSON_ARRAY)
        return refuse_all(r, 400, "A batch is an array of operations.");
    struct json_walk w = json_enter(value);
    struct str item;
    for (r->part.index = 0; json_item(&w, &item); r->part.index++) {
        if (r->part.index == SEVERAL_MAX)
            return refuse_all(r, 422, "A batch has at most 1000 operations.");
        if (!take_operation(r, item))
            return false;
    }
    return true;
}

/* What a part came to, as the status of the same request by itself. */
static unsigned status_of(const struct db_op *part)
{
    return part->kind == DB_OP_PATCH ? 200 : part->created ? 201 : 204;
}

static void put_document(struct json *j, const struct db_op *part)
{
    const struct db_value *key = &part->values[0];
    json_raw(j, "{\"key\":");
    json_string(j, (struct str){key->p, key->n});
    json_raw(j, ",\"status\":");
    json_u64(j, status_of(part));
    if (part->kind != DB_OP_DELETE) {
        json_raw(j, ",\"etag\":");
        json_etag(j, part->seq);
    }
    json_raw(j, "}");
}

static void put_results(struct json *j, const struct db_op *op, const struct batch_send *sends)
{
    json_raw(j, "{\"seq\":");
    json_u64(j, op->seq);
    json_raw(j, ",\"results\":[");
    for (const struct db_op *part = op->parts; part != NULL; part = part->next) {
        json_raw(j, part == op->parts ? "\n" : ",\n");
        if (part->kind != DB_OP_SEND || sends == NULL) {
            put_document(j, part);
            continue;
        }
        batch_send_put(j, part, sends);
        sends = sends->next;
    }
    json_raw(j, "]}\n");
}

/* The batch failed: by one of its parts, or together with all others of the burst. */
static void answer_failure(const struct db_op *op, struct call *c)
{
    const struct db_op *part = op->parts;
    struct problem_part at = {.index = op->failed_part};
    for (uint32_t i = 0; i < op->failed_part && part != NULL; i++)
        part = part->next;
    if (part != NULL && part->kind == DB_OP_SEND && batch_send_failed(c, op, at.index))
        return;
    if (part != NULL)
        at.key = (struct str){part->values[0].p, part->values[0].n};
    switch (op->result) {
    case DB_PRECONDITION:
        problem_at(c, 412, "The document is not in the state that the operation requires.", &at);
        break;
    case DB_NONE:
        problem_at(c, 422, docs_absent, &at);
        break;
    case DB_CONFLICT:
        problem_at(c, 422, docs_no_merge, &at);
        break;
    case DB_TOO_LARGE:
        problem_at(c, 422, docs_large_merge, &at);
        break;
    case DB_INVALID:
        problem_at(c, 422, "The database does not take this document.", &at);
        break;
    default:
        problem_result(c, op->result, op->pid);
    }
}

static void answer(struct call *c, const struct db_op *op, const struct batch_sends *sends)
{
    struct buf *text = &session_of(c)->text;
    if (op->result != DB_OK) {
        answer_failure(op, c);
        return;
    }
    struct json j = json_start(text);
    put_results(&j, op, sends->first);
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    once_header(c, op);
    resp_body(c->resp, text->data, text->len);
    c->resp->failed |= j.failed;
}

static void answered(struct write *w, struct call *c)
{
    answer(c, w->op, &(struct batch_sends){NULL, NULL});
}

/* A batch from its body to its operation. */
struct batch {
    struct task task; /* unused while it is read on the loop */
    struct several body;
    enum several_state state;
    struct reading reading;
    struct str content_type; /* for a task: behind the struct */
    char text[];
};

/* Any thread. */
static void read_batch(struct batch *b)
{
    struct reading *r = &b->reading;
    b->state = several_read(&b->body);
    if (b->state == SEVERAL_OK && take_operations(r, b->body.value))
        once_body(r->op, b->content_type, b->body.text);
}

static void work(struct task *t, struct worker *w)
{
    (void)w;
    read_batch((struct batch *)t);
}

/* Frees what a batch holds but for its operation. */
static void forget(struct batch *b)
{
    buf_free(&b->reading.key);
    buf_free(&b->reading.type);
    buf_free(&b->reading.content);
    several_free(&b->body);
}

/* Rights, and what the patches will rewrite. Answers and returns false when something is wrong. */
static bool judge_parts(struct call *c, const struct reading *r)
{
    struct problem_part at = {.index = 0};
    const struct batch_send *send = r->sends.first;
    size_t rewritten = 0;
    for (struct db_op *part = r->op->parts; part != NULL; part = part->next, at.index++) {
        if (part->kind == DB_OP_SEND) {
            if (!batch_send_allowed(c, send))
                return false;
            send = send->next;
            continue;
        }
        at.key = (struct str){part->values[0].p, part->values[0].n};
        if (!several_allowed(c, &at, true))
            return false;
        if (part->kind == DB_OP_PATCH)
            part->extra_bytes = docs_patch_cost(c, at.key);
        rewritten += part->extra_bytes;
        if (rewritten > REWRITTEN_MAX) {
            problem_at(c, 422, "The documents that a batch patches have at most 16 MiB together.",
                       &at);
            return false;
        }
    }
    return true;
}

static void answer_refusal(struct call *c, const struct batch *b)
{
    const struct reading *r = &b->reading;
    if (b->state != SEVERAL_OK)
        several_fault(c, &b->body, b->state);
    else if (r->status == 503)
        problem_result(c, DB_NO_MEMORY, 0);
    else if (r->whole)
        problem(c, r->status, r->detail);
    else
        problem_at(c, r->status, r->detail, &r->part);
}

/* On the loop, with what was read; frees it. */
static enum verdict finish(struct batch *b, struct call *c)
{
    struct db_op *op = b->reading.op;
    bool ok = b->state == SEVERAL_OK && b->reading.status == 0;
    if (c->resp != NULL && !ok)
        answer_refusal(c, b);
    ok = ok && c->resp != NULL && judge_parts(c, &b->reading);
    struct batch_sends sends = b->reading.sends;
    forget(b);
    if (ok && sends.first != NULL)
        return batch_send_start(c, op, &sends, answer);
    if (ok)
        return store_write(c, op, answered);
    batch_send_free(&sends);
    db_op_free(op);
    return REPLY;
}

static enum verdict read_done(struct task *t, struct call *c)
{
    return finish((struct batch *)t, c);
}

static enum verdict read_elsewhere(struct call *c, const struct batch *b)
{
    struct str type = c->req->content_type;
    struct batch *t = store_task(c, sizeof *t + type.n);
    if (t == NULL) {
        struct batch copy = *b;
        forget(&copy);
        db_op_free(copy.reading.op);
        return FAIL;
    }
    t->body = b->body;
    t->reading = b->reading;
    memcpy(t->text, type.p, type.n);
    t->content_type = (struct str){t->text, type.n};
    t->state = SEVERAL_NO_MEMORY;
    t->task.work = work;
    t->task.done = read_done;
    return store_run(c, &t->task);
}

enum verdict batch(struct call *c)
{
    struct batch b = {.content_type = c->req->content_type};
    if (!several_take(c, &b.body))
        return REPLY;
    b.reading.max_body_bytes = session_of(c)->store->conf->max_body_bytes;
    b.reading.op = db_op_new(DB_OP_BATCH, 0);
    if (b.reading.op == NULL || !once_take(c, b.reading.op, 200)) {
        bool failed = b.reading.op == NULL;
        db_op_free(b.reading.op);
        forget(&b);
        return failed ? FAIL : REPLY;
    }
    if (several_large(&b.body))
        return read_elsewhere(c, &b);
    read_batch(&b);
    return finish(&b, c);
}
