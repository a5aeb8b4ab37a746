/* What an inbox is set to: PUT /inbox/NAME, and the keys that cards bring.
 *
 *   {"from":[CARD…],"secret":"whsec_…"|"new"|null,"start_any":true,"app":"…","event":"…"}
 *
 * It replaces what was set before, but for a secret that is not named: nobody can read it back. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/app_files.h"
#include "handlers/inbox.h"
#include "handlers/json.h"
#include "handlers/json_read.h"
#include "handlers/keys.h"
#include "handlers/several.h"
#include "handlers/store.h"
#include "seal/password.h"

enum { CARDS_MAX = 16 };

/* ---- cards ----------------------------------------------------------------------------------- */

static struct db_inbox_key *find_key(struct inbox_senders *s, enum db_inbox_key_kind kind,
                                     const unsigned char *id)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->key[i].kind == kind && memcmp(s->key[i].id, id, sizeof s->key[i].id) == 0)
            return &s->key[i];
    return NULL;
}

static bool add_key(struct inbox_senders *s, enum db_inbox_key_kind kind,
                    const struct seal_card_key *k, const unsigned char *root)
{
    struct db_inbox_key *to = find_key(s, kind, k->id);
    if (to == NULL && s->count == DB_INBOX_KEYS_MAX)
        return false;
    if (to == NULL)
        to = &s->key[s->count++];
    *to = (struct db_inbox_key){
        .kind = kind, .valid_from = k->valid_from, .valid_until = k->valid_until};
    memcpy(to->id, k->id, sizeof to->id);
    memcpy(to->key, k->key, sizeof to->key);
    memcpy(to->root, root, sizeof to->root);
    return true;
}

bool inbox_add_card(struct inbox_senders *s, struct seal_text text, struct seal_error *error)
{
    struct seal_card card;
    unsigned char root[DB_KEY_ID_BYTES];
    if (!seal_card_read(text, &card, error))
        return false;
    memcpy(root, card.identity[card.identities - 1].id, sizeof root);
    for (unsigned i = 0; i < card.identities; i++) {
        const struct db_inbox_key *known = find_key(s, DB_INBOX_IDENTITY, card.identity[i].id);
        if (known != NULL)
            memcpy(root, known->root, sizeof root);
    }
    bool fits = true;
    for (unsigned i = 0; i < card.identities; i++)
        fits = fits && add_key(s, DB_INBOX_IDENTITY, &card.identity[i], root);
    for (unsigned i = 0; i < card.transports; i++)
        fits = fits && add_key(s, DB_INBOX_TRANSPORT, &card.transport[i], root);
    if (!fits)
        snprintf(error->text, sizeof error->text, "an inbox has at most %d keys of senders",
                 DB_INBOX_KEYS_MAX);
    return fits;
}

/* ---- the body -------------------------------------------------------------------------------- */

struct settings {
    struct task task;
    struct several body;
    enum several_state state;
    char name[DB_LINE_NAME_MAX + 1];
    char wrong[300]; /* what is wrong with the body, "" nothing */
    struct inbox_senders senders;
    unsigned given; /* members, as bits */
    bool from, secret_given, new_secret, start_any;
    struct buf app, event;
    char secret_text[SEAL_WHSEC_TEXT_MAX + 1];
    unsigned char secret[SEAL_WHSEC_MAX];
    size_t secret_n;
};

/* Notes what is wrong; always false. */
__attribute__((format(printf, 2, 3)))
static bool refuse(struct settings *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->wrong, sizeof s->wrong, format, args);
    va_end(args);
    return false;
}

static bool take_cards(struct settings *s, struct str value)
{
    struct seal_error error = {""};
    struct json_walk w = json_enter(value);
    struct str item;
    if (json_kind(value) != JSON_ARRAY)
        return refuse(s, "The member from is a list of cards.");
    for (unsigned i = 0; json_item(&w, &item); i++) {
        if (i == CARDS_MAX)
            return refuse(s, "The member from has at most %d cards.", CARDS_MAX);
        if (!inbox_add_card(&s->senders, (struct seal_text){item.p, item.n}, &error))
            return refuse(s, "Card %u of from: %s.", i, error.text);
    }
    s->from = s->senders.count > 0;
    return true;
}

static bool take_secret(struct settings *s, struct str value)
{
    struct buf text = {0};
    s->secret_given = true;
    if (json_kind(value) == JSON_NULL)
        return true;
    s->new_secret = json_kind(value) == JSON_STRING && json_says(value, "new");
    if (s->new_secret)
        seal_whsec_new(s->secret_text);
    else if (json_kind(value) == JSON_STRING &&
             json_text(value, &text, SEAL_WHSEC_TEXT_MAX) == JSON_TEXT_OK && text.len > 0)
        memcpy(s->secret_text, text.data, text.len);
    if (text.data != NULL)
        seal_wipe(text.data, text.cap);
    buf_free(&text);
    return seal_whsec_read((struct seal_text){s->secret_text, strlen(s->secret_text)}, s->secret,
                           &s->secret_n) ||
           refuse(s, "The member secret is \"new\", or \"whsec_\" and base64 of 24 to 64 bytes.");
}

/* A name, or null. */
static bool take_name(struct settings *s, const char *member, struct str value, struct buf *out)
{
    out->len = 0;
    if (json_kind(value) == JSON_NULL)
        return true;
    if (json_kind(value) != JSON_STRING ||
        json_text(value, out, DB_INBOX_EVENT_MAX) != JSON_TEXT_OK ||
        !app_event_ok((struct str){(const char *)out->data, out->len}) || !buf_add(out, "", 1, 128))
        return refuse(s, "The member %s is a name, or null.", member);
    return true;
}

static bool take_start_any(struct settings *s, struct str value)
{
    s->start_any = json_kind(value) == JSON_TRUE;
    return s->start_any || json_kind(value) == JSON_FALSE ||
           refuse(s, "The member start_any is true or false.");
}

static bool take_app(struct settings *s, struct str value)
{
    return take_name(s, "app", value, &s->app);
}

static bool take_event(struct settings *s, struct str value)
{
    return take_name(s, "event", value, &s->event);
}

static const struct {
    const char *name;
    bool (*take)(struct settings *s, struct str value);
} members[] = {
    {"from", take_cards}, {"secret", take_secret},       {"app", take_app},
    {"event", take_event}, {"start_any", take_start_any},
};

static bool take_member(struct settings *s, struct str name, struct str value)
{
    unsigned m = 0;
    while (m < sizeof members / sizeof *members && !json_says(name, members[m].name))
        m++;
    if (m == sizeof members / sizeof *members)
        return refuse(s, "An inbox has no member %.*s.", name.n > 60 ? 60 : (int)name.n, name.p);
    if (s->given & 1u << m)
        return refuse(s, "The member %s is there twice.", members[m].name);
    s->given |= 1u << m;
    return members[m].take(s, value);
}

static bool take_all(struct settings *s, struct str value)
{
    struct str name, member;
    if (json_kind(value) != JSON_OBJECT)
        return refuse(s, "What an inbox is set to is a JSON object.");
    for (struct json_walk w = json_enter(value); json_member(&w, &name, &member);)
        if (!take_member(s, name, member))
            return false;
    if ((s->app.len > 0) != (s->event.len > 0))
        return refuse(s, "app and event belong together.");
    return true;
}

static void work(struct task *t, struct worker *w)
{
    struct settings *s = (struct settings *)t;
    (void)w;
    s->state = several_read(&s->body);
    if (s->state == SEVERAL_OK)
        (void)take_all(s, s->body.value);
}

static void release(struct settings *s)
{
    if (s->body.bytes != NULL)
        seal_wipe(s->body.bytes, s->body.text.n);
    several_free(&s->body);
    buf_free(&s->app);
    buf_free(&s->event);
    seal_wipe(s->secret, sizeof s->secret);
    seal_wipe(s->secret_text, sizeof s->secret_text);
}

/* ---- on the loop ----------------------------------------------------------------------------- */

static void answer_set(struct write *w, struct call *c)
{
    const char *secret = w->more;
    struct buf *text = &session_of(c)->text;
    struct json j = json_start(text);
    const struct db_value *name = &w->op->values[0];
    if (w->op->result != DB_OK) {
        problem_result(c, w->op->result, w->op->pid);
        return;
    }
    json_raw(&j, "{\"name\":");
    json_string(&j, (struct str){name->p, name->n});
    if (secret[0] != 0) {
        json_raw(&j, ",\"secret\":");
        json_string(&j, (struct str){secret, strlen(secret)});
    }
    json_raw(&j, "}\n");
    resp_start(c->resp, w->op->created ? 201 : 200);
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    resp_header(c->resp, "Cache-Control", STR_LIT("no-store"));
    resp_body(c->resp, text->data, text->len);
    c->resp->failed |= j.failed;
}

/* Hides the secret. False: there is no key for it. */
static bool hide(struct settings *s, unsigned char *hidden, size_t *n)
{
    char about[INBOX_SECRET_ABOUT_MAX];
    struct keyring *ring = s->task.store->keys;
    *n = 0;
    if (s->secret_n == 0)
        return true;
    const struct seal_keys *keys = keyring_hold(ring);
    *n = seal_hide(keys, inbox_about((struct str){s->name, strlen(s->name)}, about), s->secret,
                   s->secret_n, hidden);
    keyring_release(ring, keys);
    return *n > 0;
}

static enum verdict submit(struct settings *s, struct call *c)
{
    unsigned char hidden[SEAL_WHSEC_MAX + SEAL_HIDDEN_EXTRA];
    struct db_inbox_set set = {
        .name = s->name,
        .app = s->app.len > 0 ? (const char *)s->app.data : NULL,
        .event = s->event.len > 0 ? (const char *)s->event.data : NULL,
        .keys = s->senders.key,
        .key_count = s->senders.count,
        .start_any = s->start_any,
        .keep_secret = !s->secret_given,
    };
    if (!hide(s, hidden, &set.secret_bytes)) {
        problem_with(c, 503, "There is no key to hide the secret with: `hanji key new` makes one.",
                     (struct problem_header){"Retry-After", "60"});
        return REPLY;
    }
    set.secret = set.secret_bytes > 0 ? hidden : NULL;
    struct db_op *op = db_inbox_set_op(&set);
    if (op == NULL)
        return FAIL;
    const char *told = s->new_secret ? s->secret_text : "";
    return store_write_more(c, op, answer_set, told, strlen(told) + 1);
}

/* Whether anybody could post to it is judged by what is there. */
static bool useless(struct settings *s, struct call *c)
{
    struct db_inbox in;
    struct db_reader *reader = session_reader(c);
    if (s->from || s->secret_n > 0)
        return false;
    bool kept = !s->secret_given && reader != NULL &&
                db_inbox_find(reader, s->name, strlen(s->name), &in) == DB_OK &&
                in.secret != NULL;
    return !kept;
}

static enum verdict read_done(struct task *t, struct call *c)
{
    struct settings *s = (struct settings *)t;
    enum verdict verdict = REPLY;
    if (c->resp != NULL) {
        if (s->state != SEVERAL_OK)
            several_fault(c, &s->body, s->state);
        else if (s->wrong[0] != 0)
            problem(c, 422, s->wrong);
        else if (useless(s, c))
            problem(c, 422, "Nobody could post to it: from or secret is needed.");
        else
            verdict = submit(s, c);
    }
    release(s);
    return verdict;
}

enum verdict inbox_put(struct call *c, struct str name)
{
    struct several body;
    if (!several_take(c, &body))
        return REPLY;
    struct settings *s = store_task(c, sizeof *s);
    if (s == NULL) {
        several_free(&body);
        return FAIL;
    }
    s->body = body;
    s->state = SEVERAL_NO_MEMORY;
    memcpy(s->name, name.p, name.n);
    s->task.work = work;
    s->task.done = read_done;
    return store_run(c, &s->task);
}
