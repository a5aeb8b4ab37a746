/* /inbox/: which inboxes there are, and what is below each. */
#include "handlers/inbox.h"

#include <stdio.h>
#include <string.h>

#include "fcgi/path.h"
#include "handlers/access.h"
#include "handlers/basic.h"
#include "handlers/dispatch.h"
#include "handlers/json.h"
#include "handlers/param.h"
#include "handlers/problem.h"
#include "handlers/store.h"

enum { INBOX_LEN = sizeof "/inbox/" - 1, LIST_DEFAULT = 100, LIST_MAX = 1000 };

static const char nothing[] = "There is nothing at this address.";

struct seal_text inbox_about(struct str name, char text[INBOX_SECRET_ABOUT_MAX])
{
    int n = snprintf(text, INBOX_SECRET_ABOUT_MAX, "inbox:%.*s", (int)name.n, name.p);
    return (struct seal_text){text, n > 0 ? (size_t)n : 0};
}

bool inbox_find(struct call *c, struct str name, struct db_inbox *in)
{
    struct db_reader *reader = session_reader(c);
    enum db_result result = reader ? db_inbox_find(reader, name.p, name.n, in) : DB_BROKEN;
    if (result == DB_NONE)
        problem(c, 404, "There is no inbox of that name.");
    else if (result != DB_OK)
        problem_result(c, result, 0);
    return result == DB_OK;
}

/* ---- the list -------------------------------------------------------------------------------- */

struct listing {
    struct json json;
    struct db_reader *reader;
    unsigned limit, rows;
    bool more;
    enum db_result result;
    char last[DB_LINE_NAME_MAX + 1];
};

static void put_senders(struct listing *l, int64_t source)
{
    struct db_inbox_key keys[DB_INBOX_KEYS_MAX];
    char id[SEAL_KEY_ID_HEX + 1], fingerprint[SEAL_FINGERPRINT_LEN + 1];
    unsigned count, written = 0;
    json_raw(&l->json, ",\"senders\":[");
    l->result = db_inbox_keys(l->reader, source, keys, &count);
    for (unsigned i = 0; l->result == DB_OK && i < count; i++) {
        if (keys[i].kind != DB_INBOX_IDENTITY)
            continue;
        json_raw(&l->json, written++ > 0 ? ",{" : "{");
        seal_key_hex(keys[i].id, id);
        json_put_text(&l->json, "\"key\":", id);
        seal_key_hex(keys[i].root, id);
        json_put_text(&l->json, ",\"sender\":", id);
        seal_fingerprint(keys[i].key, fingerprint);
        json_put_text(&l->json, ",\"fingerprint\":", fingerprint);
        json_raw(&l->json, "}");
    }
    json_raw(&l->json, "]");
}

static bool list_row(void *arg, const struct db_inbox *in)
{
    struct listing *l = arg;
    struct json *j = &l->json;
    if (l->rows == l->limit) {
        l->more = true;
        return false;
    }
    snprintf(l->last, sizeof l->last, "%s", in->name);
    json_put_text(j, l->rows++ > 0 ? ",\n{\"name\":" : "\n{\"name\":", in->name);
    json_put_text(j, ",\"state\":", in->closed ? "closed" : "open");
    json_raw(j, in->secret != NULL ? ",\"secret\":true" : ",\"secret\":false");
    json_raw(j, in->start_any ? ",\"start_any\":true" : ",\"start_any\":false");
    json_put_text(j, ",\"app\":", in->app);
    json_put_text(j, ",\"event\":", in->event);
    json_put_count(j, ",\"created\":", in->created);
    json_put_count(j, ",\"last_received\":", in->last_received);
    put_senders(l, in->id);
    json_raw(j, "}");
    return !j->failed && l->result == DB_OK;
}

/* The name that `after` gives. */
static bool take_after(struct call *c, char after[DB_LINE_NAME_MAX + 1])
{
    struct buf *value = &session_of(c)->value;
    enum query_result found = QUERY_NONE;
    after[0] = 0;
    if (c->req->query.n > 0)
        found = query_find(c->req->query, "after", value);
    if (found == QUERY_NONE)
        return true;
    if (found != QUERY_OK || !db_line_name_ok((const char *)value->data, value->len)) {
        param_refuse(c, "after", "is one name of an inbox");
        return false;
    }
    memcpy(after, value->data, value->len);
    after[value->len] = 0;
    return true;
}

enum verdict inbox_list(struct call *c)
{
    struct listing l = {.limit = LIST_DEFAULT, .result = DB_OK};
    char after[DB_LINE_NAME_MAX + 1];
    struct buf *text = &session_of(c)->text;
    if (!param_number(c, "limit", LIST_MAX, &l.limit) || !take_after(c, after))
        return REPLY;
    l.reader = session_reader(c);
    l.json = json_start(text);
    json_raw(&l.json, "{\"inboxes\":[");
    enum db_result result = l.reader ? db_inbox_list(l.reader, after, l.limit + 1, list_row, &l)
                                     : DB_BROKEN;
    if (result == DB_OK)
        result = l.result;
    if (result != DB_OK) {
        problem_result(c, result, 0);
        return REPLY;
    }
    json_put_text(&l.json, "],\n\"next\":", l.more && l.limit > 0 ? l.last : NULL);
    json_raw(&l.json, "}\n");
    if (l.json.failed)
        return FAIL;
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    resp_header(c->resp, "Cache-Control", STR_LIT("no-cache"));
    resp_body(c->resp, text->data, text->len);
    return REPLY;
}

/* ---- changes --------------------------------------------------------------------------------- */

void inbox_changed(struct write *w, struct call *c)
{
    if (w->op->result == DB_NONE) {
        problem(c, 404, "There is no inbox of that name.");
    } else if (w->op->result != DB_OK) {
        problem_result(c, w->op->result, w->op->pid);
    } else {
        resp_start(c->resp, 204);
        resp_no_body(c->resp);
    }
}

/* Takes op. */
static enum verdict change(struct call *c, struct db_op *op)
{
    return op != NULL ? store_write(c, op, inbox_changed) : FAIL;
}

/* ---- what is below it ------------------------------------------------------------------------ */

/* What stands behind the name of an inbox. */
enum place { PLACE_ITSELF, PLACE_MESSAGE, PLACE_CLOSE, PLACE_OPEN, PLACE_NONE };

static enum place place_of(struct str rest, uint64_t *number)
{
    if (rest.n == 0)
        return PLACE_ITSELF;
    rest.p++;
    rest.n--;
    if (str_eq(rest, STR_LIT("close")))
        return PLACE_CLOSE;
    if (str_eq(rest, STR_LIT("open")))
        return PLACE_OPEN;
    return param_digits(rest, INT64_MAX, number) ? PLACE_MESSAGE : PLACE_NONE;
}

static const struct {
    unsigned methods;
    const char *allow;
} places[] = {
    [PLACE_ITSELF] = {METHOD_GET | METHOD_HEAD | METHOD_PUT | METHOD_DELETE | METHOD_POST,
                      "GET, HEAD, PUT, DELETE, POST"},
    [PLACE_MESSAGE] = {METHOD_GET | METHOD_HEAD, "GET, HEAD"},
    [PLACE_CLOSE] = {METHOD_POST, "POST"},
    [PLACE_OPEN] = {METHOD_POST, "POST"},
};

/* Reading asks for a credential whose prefixes cover the path, changing for one with all rights.
 * True: it was answered, or it goes on with *verdict. */
static bool refused(struct call *c, bool write, enum verdict *verdict)
{
    enum access access = access_check(c, write);
    *verdict = REPLY;
    if (access == ACCESS_VERIFY) {
        *verdict = basic_verify(c);
        return true;
    }
    if (access == ACCESS_OK && write)
        access = access_judge(c, access_who(c), STR_LIT("/"), true);
    return dispatch_refused(c, access);
}

static enum verdict act(struct call *c, struct str name, enum place place, uint64_t number)
{
    char text[DB_LINE_NAME_MAX + 1];
    bool read = (c->req->method & (METHOD_GET | METHOD_HEAD)) != 0;
    enum verdict verdict;
    memcpy(text, name.p, name.n);
    text[name.n] = 0;
    if (place == PLACE_ITSELF && c->req->method == METHOD_POST)
        return inbox_receive(c, name);
    if (refused(c, !read, &verdict))
        return verdict;
    if (place == PLACE_MESSAGE)
        return inbox_message(c, name, (int64_t)number);
    if (place != PLACE_ITSELF)
        return change(c, db_inbox_state_op(text, place == PLACE_CLOSE));
    if (c->req->method == METHOD_DELETE)
        return change(c, db_inbox_remove_op(text));
    return read ? inbox_messages(c, name) : inbox_put(c, name);
}

enum verdict inbox(struct call *c)
{
    struct str path = {c->req->path.p + INBOX_LEN, c->req->path.n - INBOX_LEN};
    const char *slash = memchr(path.p, '/', path.n);
    struct str name = {path.p, slash != NULL ? (size_t)(slash - path.p) : path.n};
    uint64_t number = 0;
    enum place place = place_of((struct str){path.p + name.n, path.n - name.n}, &number);
    if (place == PLACE_NONE || !db_line_name_ok(name.p, name.n)) {
        problem(c, 404, nothing);
        return REPLY;
    }
    if (!(places[place].methods & c->req->method)) {
        problem_with(c, 405, "This address does not know that method; Allow says which.",
                     (struct problem_header){"Allow", places[place].allow});
        return REPLY;
    }
    return act(c, name, place, number);
}
