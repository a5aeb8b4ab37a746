/* Managing lines over HTTP: making, setting and removing them; holding them; and what becomes of
 * messages that are stuck. For those who may write everything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fcgi/path.h"
#include "handlers/ctl_line.h"
#include "handlers/json.h"
#include "handlers/json_read.h"
#include "handlers/keys.h"
#include "handlers/param.h"
#include "handlers/problem.h"
#include "handlers/sends.h"
#include "handlers/sends_form.h"
#include "handlers/several.h"
#include "handlers/store.h"

/* ---- PUT ------------------------------------------------------------------------------------- */

/* A line being set: its JSON is read on a thread of the pool, since cards are verified. */
struct setting {
    struct task task;
    struct several body;
    enum several_state state;
    enum db_result result;
    bool ok;
    struct db_op *op;
    int64_t now_s;
    struct sends_form form;
    struct buf text;
};

static bool refuse(struct setting *s, const char *why)
{
    snprintf(s->form.wrong, sizeof s->form.wrong, "%s", why);
    return false;
}

static bool no_memory(struct setting *s)
{
    s->result = DB_NO_MEMORY;
    return false;
}

/* What a string says. */
static bool take_string(struct setting *s, struct str value, size_t most, struct str *text)
{
    s->text.len = 0;
    if (json_kind(value) != JSON_STRING)
        return refuse(s, "A member that is a string is something else.");
    switch (json_text(value, &s->text, most)) {
    case JSON_TEXT_OK:
        *text = s->text.len > 0 ? (struct str){(const char *)s->text.data, s->text.len}
                                : (struct str){"", 0};
        return true;
    case JSON_TEXT_HALF:
        return refuse(s, "A string has half of a surrogate pair.");
    case JSON_TEXT_LONG:
        return refuse(s, "A string is too long.");
    case JSON_TEXT_NO_MEMORY:
        break;
    }
    return no_memory(s);
}

static bool take_url(struct setting *s, struct str value)
{
    struct str text;
    return take_string(s, value, 4 * (size_t)DB_LINE_URL_MAX, &text) &&
           sends_form_url(&s->form, text);
}

static bool take_order(struct setting *s, struct str value)
{
    struct str text;
    return take_string(s, value, 64, &text) && sends_form_order(&s->form, text);
}

static bool take_rate(struct setting *s, struct str value)
{
    struct str text = value;
    if (json_kind(value) == JSON_NULL)
        return sends_form_rate(&s->form, STR_LIT("0"));
    if (json_kind(value) == JSON_STRING && !take_string(s, value, 64, &text))
        return false;
    return sends_form_rate(&s->form, text);
}

/* null: none */
static bool take_secret(struct setting *s, struct str value)
{
    struct str text = STR_LIT("none");
    if (json_kind(value) != JSON_NULL && !take_string(s, value, 256, &text))
        return false;
    return sends_form_secret(&s->form, text);
}

static bool take_ca(struct setting *s, struct str value)
{
    struct str text = STR_LIT("");
    if (json_kind(value) != JSON_NULL && !take_string(s, value, 2 * DB_LINE_CA_MAX, &text))
        return false;
    return sends_form_ca(&s->form, text);
}

static bool take_private(struct setting *s, struct str value)
{
    enum json_kind kind = json_kind(value);
    if (kind != JSON_TRUE && kind != JSON_FALSE)
        return refuse(s, "The member allow_private is true or false.");
    sends_form_private(&s->form, kind == JSON_TRUE);
    return true;
}

/* Cards, as they are or each in a string. */
static bool take_cards(struct setting *s, struct str value)
{
    struct str item;
    sends_form_no_keys(&s->form);
    if (json_kind(value) != JSON_ARRAY)
        return refuse(s, "The member seal_to is an array of cards.");
    struct json_walk w = json_enter(value);
    while (json_item(&w, &item)) {
        struct str text = item;
        if (json_kind(item) == JSON_STRING && !take_string(s, item, SEAL_CARD_MAX, &text))
            return false;
        if (!sends_form_card_text(&s->form, text, s->now_s))
            return false;
    }
    return true;
}

static const struct member {
    const char *name;
    bool (*take)(struct setting *s, struct str value);
} members[] = {
    {"url", take_url},       {"order", take_order},           {"rate", take_rate},
    {"secret", take_secret}, {"allow_private", take_private}, {"ca", take_ca},
    {"seal_to", take_cards},
};
enum { MEMBERS = sizeof members / sizeof *members };

static bool take_member(struct setting *s, struct str name, struct str value, bool seen[MEMBERS])
{
    for (size_t i = 0; i < MEMBERS; i++) {
        if (!json_says(name, members[i].name))
            continue;
        if (seen[i])
            return refuse(s, "A member is there twice.");
        seen[i] = true;
        return members[i].take(s, value);
    }
    snprintf(s->form.wrong, sizeof s->form.wrong, "A line has no member %.*s.",
             name.n > 60 ? 60 : (int)name.n, name.p);
    return false;
}

static bool take_members(struct setting *s)
{
    bool seen[MEMBERS] = {false};
    struct str name, value;
    if (json_kind(s->body.value) != JSON_OBJECT)
        return refuse(s, "The settings of a line are an object.");
    struct json_walk w = json_enter(s->body.value);
    while (json_member(&w, &name, &value))
        if (!take_member(s, name, value, seen))
            return false;
    return true;
}

/* What is not given stays as it is now. */
static bool complete(struct setting *s, struct worker *w)
{
    struct db_reader *r = worker_reader(w);
    enum db_result result = r != NULL ? db_reader_begin(r) : DB_BROKEN;
    if (result != DB_OK) {
        s->result = result;
        return false;
    }
    result = sends_form_complete(&s->form, r);
    db_reader_end(r);
    s->result = result == DB_NONE ? DB_OK : result;
    return s->result == DB_OK;
}

static void read_settings(struct task *t, struct worker *w)
{
    struct setting *s = (struct setting *)t;
    s->state = several_read(&s->body);
    if (s->state != SEVERAL_OK || !take_members(s) || !complete(s, w))
        return;
    const struct seal_keys *own = keyring_hold(w->store->keys);
    s->op = sends_form_op(&s->form, own, false);
    keyring_release(w->store->keys, own);
    s->ok = s->op != NULL;
}

/* What is told once: the secret that was made. */
struct told {
    char name[DB_LINE_NAME_MAX + 1];
    char secret[SEAL_WHSEC_TEXT_MAX + 1];
};

static void put_told(struct call *c, const struct told *told)
{
    struct json j = json_start(&session_of(c)->text);
    json_raw(&j, "{\"line\":");
    json_string(&j, (struct str){told->name, strlen(told->name)});
    if (told->secret[0] != 0) {
        json_raw(&j, ",\"secret\":");
        json_string(&j, (struct str){told->secret, strlen(told->secret)});
    }
    json_raw(&j, "}\n");
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    resp_header(c->resp, "Cache-Control", STR_LIT("no-store"));
    resp_body(c->resp, j.out->data, j.out->len);
    c->resp->failed |= j.failed;
    explicit_bzero(j.out->data, j.out->len);
}

static void was_set(struct write *w, struct call *c)
{
    const struct told *told = w->more;
    if (w->op->result == DB_TOO_LARGE)
        problem(c, 422, "There are 10000 lines, and no more can be made.");
    else if (w->op->result != DB_OK)
        problem_result(c, w->op->result, w->op->pid);
    if (w->op->result != DB_OK)
        return;
    resp_start(c->resp, w->op->created ? 201 : 200);
    put_told(c, told);
}

static void answer_not_set(struct call *c, const struct setting *s)
{
    if (s->state != SEVERAL_OK)
        several_fault(c, &s->body, s->state);
    else if (s->form.wrong[0] != 0)
        problem(c, 422, s->form.wrong);
    else
        problem_result(c, s->result != DB_OK ? s->result : DB_NO_MEMORY, 0);
}

static enum verdict settings_read(struct task *t, struct call *c)
{
    struct setting *s = (struct setting *)t;
    enum verdict verdict = REPLY;
    struct told told = {.secret = ""};
    memcpy(told.name, s->form.name, sizeof told.name);
    memcpy(told.secret, s->form.new_secret, sizeof told.secret);
    if (c->resp != NULL && !s->ok)
        answer_not_set(c, s);
    else if (c->resp != NULL)
        verdict = store_write_more(c, s->op, was_set, &told, sizeof told);
    else
        db_op_free(s->op);
    explicit_bzero(&told, sizeof told);
    if (s->text.cap > 0)
        explicit_bzero(s->text.data, s->text.cap);
    buf_free(&s->text);
    if (s->body.bytes != NULL)
        explicit_bzero(s->body.bytes, s->body.text.n);
    several_free(&s->body);
    sends_form_free(&s->form);
    return verdict;
}

enum verdict sends_set(struct call *c, struct str name)
{
    struct several body;
    if (!sends_managed(c))
        return REPLY;
    if (!db_line_name_ok(name.p, name.n)) {
        problem(c, 400, "The name of a line is a small letter or a digit, and up to 63 more, or "
                        "'.', '_' and '-'.");
        return REPLY;
    }
    if (!several_take(c, &body))
        return REPLY;
    struct setting *s = store_task(c, sizeof *s);
    if (s == NULL) {
        several_free(&body);
        return FAIL;
    }
    s->body = body;
    s->state = SEVERAL_NO_MEMORY;
    s->now_s = c->now_s;
    sends_form_start(&s->form, name);
    s->task.work = read_settings;
    s->task.done = settings_read;
    return store_run(c, &s->task);
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* Which line, for answers. */
struct about {
    char name[DB_LINE_NAME_MAX + 1];
    bool message; /* it is about one of its messages */
    bool counts;  /* op->seq says how many messages it was */
};

static void managed(struct write *w, struct call *c)
{
    const struct about *about = w->more;
    enum db_result result = w->op->result;
    char detail[160];
    if (result == DB_NONE && about->message)
        (void)sends_no_message(c);
    else if (result == DB_NONE)
        (void)sends_no_line(c, (struct str){about->name, strlen(about->name)});
    else if (result == DB_CONFLICT && about->message)
        problem(c, 409, "The message is delivered or skipped: nothing is left to do.");
    else if (result == DB_CONFLICT && w->op->seq == 0)
        problem(c, 409, "None of these messages is there any more.");
    else if (result == DB_CONFLICT) {
        snprintf(detail, sizeof detail, "Not all of these messages are there any more: the first "
                                        "that is has the number %llu.",
                 (unsigned long long)w->op->seq);
        problem(c, 409, detail);
    } else if (result != DB_OK)
        problem_result(c, result, w->op->pid);
    if (result != DB_OK)
        return;
    if (!about->counts) {
        resp_start(c->resp, 204);
        resp_no_body(c->resp);
        return;
    }
    int n = snprintf(detail, sizeof detail, "{\"messages\":%llu}\n",
                     (unsigned long long)w->op->seq);
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    resp_body(c->resp, detail, (size_t)n);
}

static enum verdict manage(struct call *c, struct db_op *op, struct about about)
{
    return store_write_more(c, op, managed, &about, sizeof about);
}

enum verdict sends_remove(struct call *c, struct str name)
{
    struct about about = {.counts = false};
    if (!sends_managed(c))
        return REPLY;
    if (!db_line_name_ok(name.p, name.n))
        return sends_no_line(c, name);
    memcpy(about.name, name.p, name.n);
    return manage(c, db_line_remove_op(about.name), about);
}

/* A number of the query, 0 without one; in text, since param_number's are smaller. */
static bool take_number(struct call *c, const char *name, uint64_t *number)
{
    struct buf *value = &session_of(c)->value;
    enum query_result found = query_find(c->req->query, name, value);
    struct str text = {(const char *)value->data, value->len};
    *number = 0;
    if (found == QUERY_NONE)
        return true;
    if (found == QUERY_OK && param_digits(text, INT64_MAX, number))
        return true;
    param_refuse(c, name, "is the number of a message");
    return false;
}

static enum verdict replay(struct call *c, struct about about)
{
    uint64_t from, to;
    if (!take_number(c, "from", &from) || !take_number(c, "to", &to))
        return REPLY;
    if (from == 0 || (to != 0 && to < from)) {
        problem(c, 400, "The query parameter from is the number of the first message to send "
                        "again, and to, if it is there, that of the last.");
        return REPLY;
    }
    about.counts = true;
    return manage(c, db_send_replay_op(about.name, from, to), about);
}

/* The line that the path names, for who may manage it. False: answered. */
static bool take_line(struct call *c, struct about *about)
{
    struct str name = sends_segment(c, 0);
    if (!sends_managed(c))
        return false;
    if (!db_line_name_ok(name.p, name.n)) {
        (void)sends_no_line(c, name);
        return false;
    }
    memcpy(about->name, name.p, name.n);
    return true;
}

enum verdict sends_line_verb(struct call *c)
{
    struct about about = {.counts = false};
    struct str verb = sends_segment(c, 1);
    if (!take_line(c, &about))
        return REPLY;
    if (str_eq(verb, STR_LIT("replay")))
        return replay(c, about);
    about.counts = str_eq(verb, STR_LIT("retry"));
    if (about.counts)
        return manage(c, db_send_retry_op(about.name, NULL), about);
    bool pause = str_eq(verb, STR_LIT("pause"));
    return manage(c, db_line_state_op(about.name, pause ? DB_LINE_PAUSED : DB_LINE_OPEN,
                                      pause ? CTL_LINE_PAUSED : NULL), about);
}

enum verdict sends_message_verb(struct call *c)
{
    struct about about = {.message = true};
    struct str id = sends_segment(c, 1);
    char text[DB_MESSAGE_ID_LEN + 1] = "";
    if (!take_line(c, &about))
        return REPLY;
    if (id.n != DB_MESSAGE_ID_LEN)
        return sends_no_message(c);
    memcpy(text, id.p, id.n);
    about.counts = str_eq(sends_segment(c, 2), STR_LIT("retry"));
    return manage(c, about.counts ? db_send_retry_op(about.name, text)
                                  : db_send_skip_op(about.name, text), about);
}
