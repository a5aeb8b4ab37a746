/* POST /inbox/NAME: a message from elsewhere.
 *
 * Verified, then opened, then compared, then stored; nothing is done for who is not verified, and
 * all of the reckoning is on a thread of the pool. Whether it came before is judged in the
 * transaction that stores it, so the same message twice at once is stored once, and both are
 * answered when it is on the disk. To who cannot prove who they are, a wrong key, an unknown sender
 * and a changed body look the same. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fcgi/log.h"
#include "fcgi/path.h"
#include "fcgi/spool.h"
#include "handlers/content.h"
#include "handlers/inbox.h"
#include "handlers/inbox_app.h"
#include "handlers/inbox_limit.h"
#include "handlers/json.h"
#include "handlers/keys.h"
#include "handlers/problem.h"
#include "handlers/store.h"
#include "seal/digest.h"
#include "seal/envelope.h"
#include "seal/password.h"

enum { FROM_WITHIN = 4096 }; /* bytes of an envelope in which it says who it is from */

_Static_assert((int)SEAL_HASH_BYTES == (int)DB_MESSAGE_HASH_BYTES, "one size of hash");
_Static_assert((int)SEAL_DIGEST_BYTES == (int)DB_MESSAGE_HASH_BYTES, "one size of hash");
_Static_assert((int)SEAL_KEY_BYTES == (int)DB_KEY_BYTES, "one size of key");
_Static_assert((int)SEAL_KEY_ID_BYTES == (int)DB_KEY_ID_BYTES, "one size of id");

static struct inbox_limit limit = {.lock = PTHREAD_MUTEX_INITIALIZER};
static atomic_uint_fast64_t stored, again, refused, failed, limited;

struct inbox_stats inbox_get_stats(void)
{
    return (struct inbox_stats){atomic_load(&stored), atomic_load(&again), atomic_load(&refused),
                                atomic_load(&failed), atomic_load(&limited)};
}

/* ---- what is wrong with it ------------------------------------------------------------------- */

enum fault {
    FAULT_NONE,
    FAULT_TOO_LARGE,
    FAULT_HEADERS,
    FAULT_SIGNATURE,
    FAULT_TIMESTAMP,
    FAULT_RECIPIENT,
    FAULT_OPEN,
    FAULT_FIELDS,
    FAULT_KEYS,
    FAULT_MEMORY,
};

/* counts: it is a failure of whoever sent it. */
static const struct {
    unsigned status;
    bool counts;
    const char *code;
    const char *detail;
} faults[] = {
    [FAULT_TOO_LARGE] = {413, true, "too_large", "A message has at most 512 KiB."},
    [FAULT_HEADERS] = {400, true, "malformed",
                       "The headers webhook-id, webhook-timestamp and webhook-signature are needed "
                       "(Standard Webhooks); one is missing or malformed."},
    [FAULT_SIGNATURE] = {401, true, "signature",
                         "The message is not signed by a sender that this inbox knows."},
    [FAULT_TIMESTAMP] = {401, true, "timestamp",
                         "The header webhook-timestamp is more than 5 minutes from this machine's "
                         "time."},
    [FAULT_RECIPIENT] = {422, false, "unknown_recipient_key",
                         "The message is sealed to no key that this machine has."},
    [FAULT_OPEN] = {422, true, "does_not_open",
                    "The message is no envelope that opens: it must be sealed and signed by a "
                    "sender that this inbox knows."},
    [FAULT_FIELDS] = {422, false, "malformed",
                      "The message is not JSON that the app of this inbox can take: a member is "
                      "there twice, or a string is broken."},
    [FAULT_KEYS] = {503, false, "keys",
                    "The keys of this machine cannot be used; its operator must look at them."},
    [FAULT_MEMORY] = {503, false, "memory", "Memory is short; try again shortly."},
};

/* ---- a message on its way -------------------------------------------------------------------- */

struct delivery {
    struct task task;
    /* what came */
    int fd; /* the file that holds the body, or -1 */
    unsigned char *bytes;
    size_t n;
    struct str id, timestamp, signature, type;
    char name[DB_LINE_NAME_MAX + 1], address[64], request_id[40];
    int64_t now_s;
    /* the inbox */
    int64_t source;
    bool sealed; /* it knows identities: only envelopes are taken */
    bool wants_fields;
    char app[DB_APP_NAME_MAX + 1], event[DB_INBOX_EVENT_MAX + 1];
    struct db_inbox_key key[DB_INBOX_KEYS_MAX];
    unsigned keys;
    unsigned char hidden[DB_INBOX_SECRET_MAX];
    size_t hidden_n;
    const struct seal_keys *own;
    /* what came of it */
    enum fault fault;
    struct seal_opened opened;
    const struct db_inbox_key *identity; /* it is from, once it is opened; NULL: unknown */
    int64_t sent;
    unsigned char hash[DB_MESSAGE_HASH_BYTES];
    struct app_input input;
    char text[]; /* id, timestamp, signature, type */
};

static struct seal_text as_text(struct str s)
{
    return (struct seal_text){s.p, s.n};
}

static const char *bytes_of(const struct delivery *d)
{
    return d->bytes != NULL ? (const char *)d->bytes : "";
}

/* The message as it is handed on. */
static struct str body_of(const struct delivery *d)
{
    return d->sealed ? (struct str){d->opened.body.p, d->opened.body.n}
                     : (struct str){bytes_of(d), d->n};
}

static struct str type_of(const struct delivery *d)
{
    return d->sealed ? (struct str){d->opened.type.p, d->opened.type.n} : d->type;
}

static void release(struct delivery *d)
{
    if (d->own != NULL)
        keyring_release(d->task.store->keys, d->own);
    d->own = NULL;
    seal_opened_free(&d->opened);
    app_input_free(&d->input);
    free(d->bytes);
    d->bytes = NULL;
    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
}

static void answer_fault(struct call *c, const struct delivery *d)
{
    static const struct problem_header none = {NULL, NULL}, later = {"Retry-After", "60"},
                                       how = {"WWW-Authenticate", "Webhook"};
    unsigned status = faults[d->fault].status;
    const struct problem_cause cause = {
        .code = faults[d->fault].code,
        .header = status == 503 ? later : status == 401 ? how : none,
    };
    problem_coded(c, status, faults[d->fault].detail, &cause);
    atomic_fetch_add(status >= 500 ? &failed : &refused, 1);
    if (faults[d->fault].counts)
        inbox_limit_failed(&limit, (struct str){d->address, strlen(d->address)},
                           loop_now_ms(c->loop));
    log_line(LOG_WARN, "inbox: a message was refused", "inbox", d->name, "reason", cause.code,
             "address", d->address, "request", d->request_id, NULL);
}

/* ---- on a thread of the pool ----------------------------------------------------------------- */

/* It was made within the identity's time; what is delivered late counts for a while longer. A
 * tombstone does not say when it was made. */
static bool identity_valid(const struct db_inbox_key *k, const struct seal_opened *o, int64_t now_s)
{
    bool made = o->skipped || (o->created >= k->valid_from - SEAL_WEBHOOK_TOLERANCE_S &&
                               (k->valid_until == 0 || o->created <= k->valid_until));
    return made && (k->valid_until == 0 || now_s <= k->valid_until + SEAL_HORIZON_S);
}

static bool transport_valid(const struct db_inbox_key *k, int64_t now_s)
{
    return now_s >= k->valid_from - SEAL_WEBHOOK_TOLERANCE_S &&
           (k->valid_until == 0 || now_s <= k->valid_until);
}

/* Only the identity that it said it is from. */
static bool trusted(void *arg, const unsigned char id[SEAL_KEY_ID_BYTES],
                    unsigned char key[SEAL_KEY_BYTES])
{
    const struct delivery *d = arg;
    if (d->identity == NULL || memcmp(d->identity->id, id, SEAL_KEY_ID_BYTES) != 0)
        return false;
    memcpy(key, d->identity->key, SEAL_KEY_BYTES);
    return true;
}

/* The identity that an envelope says it is from: what nobody has verified only chooses whose keys
 * are tried, so that a message costs a few verifications however many senders there are, and nobody
 * delivers for another. NULL: none that the inbox knows. */
static const struct db_inbox_key *said_from(const struct delivery *d)
{
    static const char member[] = "\"from\":\"";
    unsigned char id[SEAL_KEY_ID_BYTES];
    size_t n = d->n < FROM_WITHIN ? d->n : FROM_WITHIN;
    const char *p = n > 0 ? memmem(d->bytes, n, member, sizeof member - 1) : NULL;
    size_t at = p != NULL ? (size_t)(p - (const char *)d->bytes) + sizeof member - 1 : 0;
    if (p == NULL || n - at < SEAL_KEY_ID_HEX ||
        !seal_key_unhex((struct seal_text){p + sizeof member - 1, SEAL_KEY_ID_HEX}, id))
        return NULL;
    for (unsigned i = 0; i < d->keys; i++)
        if (d->key[i].kind == DB_INBOX_IDENTITY && memcmp(d->key[i].id, id, sizeof id) == 0)
            return &d->key[i];
    return NULL;
}

/* May sign the delivery: a key of the sender, within its time. */
static bool may_carry(const struct delivery *d, const struct db_inbox_key *k)
{
    return k->kind == DB_INBOX_TRANSPORT && transport_valid(k, d->now_s) && d->identity != NULL &&
           memcmp(k->root, d->identity->root, sizeof k->root) == 0;
}

static enum fault verify(struct delivery *d)
{
    unsigned char public_keys[DB_INBOX_KEYS_MAX][SEAL_KEY_BYTES], secret[DB_INBOX_SECRET_MAX];
    struct seal_webhook_keys keys = {
        .public_keys = (const unsigned char(*)[SEAL_KEY_BYTES])public_keys};
    const struct seal_delivery came = {as_text(d->id), as_text(d->timestamp),
                                       as_text(d->signature), {bytes_of(d), d->n}};
    char about[INBOX_SECRET_ABOUT_MAX];
    d->identity = d->sealed ? said_from(d) : NULL;
    for (unsigned i = 0; i < d->keys; i++)
        if (may_carry(d, &d->key[i]))
            memcpy(public_keys[keys.public_count++], d->key[i].key, SEAL_KEY_BYTES);
    if (d->hidden_n > 0) {
        if (!seal_show(d->own, inbox_about((struct str){d->name, strlen(d->name)}, about),
                       d->hidden, d->hidden_n, secret, &keys.secret_bytes))
            return FAULT_KEYS;
        keys.secret = secret;
    }
    enum seal_webhook result = seal_webhook_verify(&came, &keys, d->now_s, &d->sent);
    seal_wipe(secret, sizeof secret);
    switch (result) {
    case SEAL_WEBHOOK_OK: return FAULT_NONE;
    case SEAL_WEBHOOK_MISSING: return FAULT_HEADERS;
    case SEAL_WEBHOOK_TIMESTAMP: return FAULT_TIMESTAMP;
    case SEAL_WEBHOOK_SIGNATURE: return FAULT_SIGNATURE;
    case SEAL_WEBHOOK_NO_MEMORY: break;
    }
    return FAULT_MEMORY;
}

static enum fault open_envelope(struct delivery *d)
{
    struct seal_opened *o = &d->opened;
    switch (seal_envelope_open(d->own, (struct seal_text){bytes_of(d), d->n}, trusted, d, o)) {
    case SEAL_ENVELOPE_OK:
        break;
    case SEAL_ENVELOPE_NO_MEMORY:
        return FAULT_MEMORY;
    case SEAL_ENVELOPE_RECIPIENT:
        /* a machine without any has not got them yet, or cannot read them: that passes */
        return seal_keys_current(d->own, SEAL_SEALING, d->now_s) != NULL ? FAULT_RECIPIENT
                                                                         : FAULT_KEYS;
    case SEAL_ENVELOPE_SENDER:
        return FAULT_SIGNATURE;
    case SEAL_ENVELOPE_MALFORMED:
    case SEAL_ENVELOPE_SIGNATURE:
    case SEAL_ENVELOPE_UNOPENABLE:
        return FAULT_OPEN;
    }
    if (o->id.n != d->id.n || memcmp(o->id.p, d->id.p, o->id.n) != 0 || d->identity == NULL ||
        (!o->skipped && !content_type_ok((struct str){o->type.p, o->type.n})))
        return FAULT_OPEN;
    if (!identity_valid(d->identity, o, d->now_s))
        return FAULT_SIGNATURE;
    memcpy(d->hash, o->place.hash, sizeof d->hash);
    d->sent = o->skipped ? d->now_s : o->created;
    return FAULT_NONE;
}

static void hash_body(struct delivery *d)
{
    struct seal_digest digest;
    seal_digest_init(&digest);
    seal_digest_add(&digest, d->bytes, d->n);
    seal_digest_end(&digest, d->hash);
}

static bool load(struct delivery *d)
{
    if (d->fd < 0)
        return true;
    d->bytes = malloc(d->n + 1);
    return d->bytes != NULL && spool_read(d->fd, d->bytes, d->n, 0);
}

static enum fault reckon(struct delivery *d)
{
    enum fault fault = load(d) ? verify(d) : FAULT_MEMORY;
    if (fault != FAULT_NONE)
        return fault;
    if (d->sealed)
        fault = open_envelope(d);
    else
        hash_body(d);
    if (fault != FAULT_NONE || !d->wants_fields || (d->sealed && d->opened.skipped))
        return fault;
    switch (inbox_app_fields(&d->input, type_of(d), body_of(d))) {
    case APP_FIELDS_OK: return FAULT_NONE;
    case APP_FIELDS_STOPPED:
    case APP_FIELDS_BAD: return FAULT_FIELDS;
    case APP_FIELDS_NO_MEMORY: break;
    }
    return FAULT_MEMORY;
}

static void work(struct task *t, struct worker *worker)
{
    struct delivery *d = (struct delivery *)t;
    (void)worker;
    d->fault = reckon(d);
}

/* ---- back on the loop ------------------------------------------------------------------------ */

static void answer_taken(struct call *c, const struct db_op *op, bool before)
{
    struct buf *text = &session_of(c)->text;
    struct json j = json_start(text);
    json_raw(&j, "{\"ok\":1");
    if (op->seq > 0) {
        json_raw(&j, ",\"seq\":");
        json_u64(&j, op->seq);
    }
    json_raw(&j, before ? ",\"again\":true}\n" : "}\n");
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    resp_header(c->resp, "Cache-Control", STR_LIT("no-store"));
    resp_body(c->resp, text->data, text->len);
    c->resp->failed |= j.failed;
    atomic_fetch_add(before ? &again : &stored, 1);
}

static void answer_verdict(struct call *c, const struct db_op *op)
{
    struct problem_cause cause = {.code = NULL};
    switch (db_inbox_taken(op)) {
    case DB_INBOX_STORED:
    case DB_INBOX_AGAIN:
        answer_taken(c, op, db_inbox_taken(op) == DB_INBOX_AGAIN);
        return;
    case DB_INBOX_GAP:
        cause = (struct problem_cause){.code = "gap", .expected = op->seq};
        problem_coded(c, 409, "Messages before this one have not come.", &cause);
        break;
    case DB_INBOX_CONFLICT:
        cause.code = "id_conflict";
        problem_coded(c, 422, "Another message of this id, or of this number on its line, has come "
                              "before; or the one before it was another.", &cause);
        break;
    case DB_INBOX_CLOSED:
        cause.code = "closed";
        problem_coded(c, 410, "This inbox is closed.", &cause);
        break;
    case DB_INBOX_STOPPED:
        inbox_app_stopped(c, db_inbox_app_op(op));
        break;
    }
    atomic_fetch_add(&refused, 1);
}

/* Causes that lie in a script, or in a trigger that somebody added: not in what was sent. */
static bool by_app(enum db_result result)
{
    return result == DB_INVALID || result == DB_CONFLICT || result == DB_TOO_LARGE ||
           result == DB_TIMEOUT || result == DB_REFUSED || result == DB_NONE ||
           result == DB_PRECONDITION;
}

static enum verdict took(struct write *w, struct call *c)
{
    struct inbox_app *app = w->arg;
    if (c->resp != NULL && w->op->result == DB_OK) {
        answer_verdict(c, w->op);
    } else if (c->resp != NULL) {
        atomic_fetch_add(&failed, 1);
        if (app != NULL && by_app(w->op->result))
            inbox_app_failed(c, app, db_inbox_app_op(w->op));
        else
            problem_result(c, by_app(w->op->result) ? DB_BROKEN : w->op->result, w->op->pid);
    }
    inbox_app_free(app);
    return REPLY;
}

/* The operation that stores it. run: NULL, no app takes part. */
static struct db_op *take_op(const struct delivery *d, const struct inbox_app *app)
{
    const struct seal_place *place = &d->opened.place;
    struct str body = body_of(d), type = type_of(d);
    struct db_inbox_message m = {
        .source = d->source,
        .id = d->id.p,
        .id_bytes = d->id.n,
        .hash = d->hash,
        .type = type.p,
        .type_bytes = type.n,
        .sent = d->sent,
        .body = body.p,
        .bytes = body.n,
        .text = content_form(type, body.p, body.n) == DB_VALUE_TEXT,
    };
    if (d->sealed) {
        m.sender = d->identity->root;
        m.line = place->line.p;
        m.line_bytes = place->line.n;
        m.seq = place->seq;
        m.fifo = place->fifo;
        m.prev = place->prev;
        m.skipped = d->opened.skipped;
    }
    return inbox_app_take(&m, app, d->request_id);
}

/* Stores what was verified and opened. */
static enum verdict submit(struct delivery *d, struct call *c)
{
    struct inbox_app *app = NULL;
    bool hand_over = d->app[0] != 0 && !(d->sealed && d->opened.skipped);
    if (hand_over && (app = inbox_app_find(c, d->app, d->event, &d->input)) == NULL) {
        atomic_fetch_add(&failed, 1);
        return REPLY;
    }
    struct db_op *op = take_op(d, app);
    if (op == NULL) {
        inbox_app_free(app);
        return FAIL;
    }
    enum verdict verdict = store_write_then(c, op, took, app);
    if (verdict != PARK)
        inbox_app_free(app);
    return verdict;
}

static enum verdict done(struct task *t, struct call *c)
{
    struct delivery *d = (struct delivery *)t;
    enum verdict verdict = REPLY;
    if (c->resp != NULL && d->fault != FAULT_NONE) {
        answer_fault(c, d);
    } else if (c->resp != NULL) {
        inbox_limit_passed(&limit, (struct str){d->address, strlen(d->address)});
        verdict = submit(d, c);
    }
    release(d);
    return verdict;
}

/* ---- the request ----------------------------------------------------------------------------- */

static void copy_cut(char *to, size_t cap, const char *text, size_t n)
{
    if (n >= cap)
        n = cap - 1;
    if (n > 0)
        memcpy(to, text, n);
    to[n] = 0;
}

static struct str put(char **at, struct str text)
{
    struct str kept = {*at, text.n};
    if (text.n > 0)
        memcpy(*at, text.p, text.n);
    *at += text.n;
    return kept;
}

/* What the snapshot says of the inbox. */
static enum db_result take_inbox(struct call *c, struct delivery *d, const struct db_inbox *in)
{
    d->source = in->id;
    if (in->app != NULL && in->event != NULL) {
        copy_cut(d->app, sizeof d->app, in->app, strlen(in->app));
        copy_cut(d->event, sizeof d->event, in->event, strlen(in->event));
        d->wants_fields = true;
    }
    if (in->secret != NULL && in->secret_bytes <= sizeof d->hidden) {
        memcpy(d->hidden, in->secret, in->secret_bytes);
        d->hidden_n = in->secret_bytes;
    }
    enum db_result result = db_inbox_keys(session_reader(c), in->id, d->key, &d->keys);
    for (unsigned i = 0; i < d->keys; i++)
        d->sealed |= d->key[i].kind == DB_INBOX_IDENTITY;
    return result;
}

static struct delivery *new_delivery(struct call *c, struct str name, struct str type)
{
    const struct req *r = c->req;
    struct delivery *d = store_task(c, sizeof *d + r->webhook_id.n + r->webhook_timestamp.n +
                                           r->webhook_signature.n + type.n);
    if (d == NULL)
        return NULL;
    char *at = d->text;
    d->id = put(&at, r->webhook_id);
    d->timestamp = put(&at, r->webhook_timestamp);
    d->signature = put(&at, r->webhook_signature);
    d->type = put(&at, type);
    copy_cut(d->name, sizeof d->name, name.p, name.n);
    copy_cut(d->address, sizeof d->address, r->remote_addr.p, r->remote_addr.n);
    copy_cut(d->request_id, sizeof d->request_id, r->request_id.p, r->request_id.n);
    d->now_s = c->now_s;
    d->fd = -1;
    d->fault = FAULT_MEMORY;
    d->task.work = work;
    d->task.done = done;
    return d;
}

static void take_body(struct call *c, struct delivery *d)
{
    d->n = (size_t)c->req->frame->body_bytes;
    d->fd = frame_take_spool(c->req->frame);
    if (d->fd < 0)
        d->bytes = frame_take_body(c->req->frame, &d->n);
}

/* What can be told without looking at the body. */
static enum fault look(const struct call *c, struct str type)
{
    const struct req *r = c->req;
    if (r->frame->body_bytes > INBOX_BODY_MAX)
        return FAULT_TOO_LARGE;
    if (r->webhook_id.n == 0 || r->webhook_id.n > DB_INBOX_ID_MAX ||
        r->webhook_timestamp.n == 0 || r->webhook_signature.n == 0 || !content_type_ok(type))
        return FAULT_HEADERS;
    return FAULT_NONE;
}

static bool is_limited(struct call *c)
{
    const struct problem_cause cause = {.code = "throttled", .header = {"Retry-After", "30"}};
    if (inbox_limit_allows(&limit, c->req->remote_addr, loop_now_ms(c->loop)))
        return false;
    problem_coded(c, 429, "Too many messages from this address were refused; try again later.",
                  &cause);
    atomic_fetch_add(&limited, 1);
    return true;
}

/* Answers, and gives the park back. */
static enum verdict give_up(struct call *c, struct delivery *d, enum db_result result)
{
    if (result != DB_OK)
        problem_result(c, result, 0);
    else
        answer_fault(c, d);
    release(d);
    loop_unpark(c, &d->task.park);
    return REPLY;
}

enum verdict inbox_receive(struct call *c, struct str name)
{
    static const struct problem_cause closed = {.code = "closed"};
    struct str type = c->req->content_type;
    struct db_inbox in;
    if (is_limited(c) || !inbox_find(c, name, &in))
        return REPLY;
    if (in.closed) {
        problem_coded(c, 410, "This inbox is closed.", &closed);
        return REPLY;
    }
    if (type.n == 0)
        type = STR_LIT("application/octet-stream");
    struct delivery *d = new_delivery(c, name, type);
    if (d == NULL)
        return FAIL;
    enum db_result result = take_inbox(c, d, &in);
    d->fault = look(c, type);
    if (result != DB_OK || d->fault != FAULT_NONE)
        return give_up(c, d, result);
    d->own = keyring_hold(d->task.store->keys);
    d->fault = FAULT_MEMORY; /* unless it is reckoned */
    take_body(c, d);
    return store_run(c, &d->task);
}
