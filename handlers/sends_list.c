/* What is on the lines: GET /sends/, /sends/LINE, /sends/LINE/ID. Pages are found by where they
 * begin, so each costs the same. */
#include <stdio.h>
#include <string.h>

#include "fcgi/path.h"
#include "handlers/param.h"
#include "handlers/problem.h"
#include "handlers/sends.h"
#include "handlers/sends_show.h"
#include "handlers/store.h"

enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 1000, ATTEMPTS_MAX = 100 };

/* A page being written: one row more than the limit is read, to know whether there is a next. */
struct page {
    struct json json;
    unsigned limit, rows;
    bool more;
    char last[DB_LINE_NAME_MAX + 1]; /* the place of its last row, as `after` takes it */
};

static bool row_fits(struct page *p)
{
    p->more = p->rows == p->limit;
    if (p->more)
        return false;
    json_raw(&p->json, p->rows++ > 0 ? ",\n" : "\n");
    return true;
}

static bool put_line(void *arg, const struct db_line *line)
{
    struct page *p = arg;
    if (!row_fits(p))
        return false;
    sends_put_line(&p->json, line);
    snprintf(p->last, sizeof p->last, "%s", line->name);
    return !p->json.failed;
}

static bool put_message(void *arg, const struct db_message *m)
{
    struct page *p = arg;
    if (!row_fits(p))
        return false;
    json_raw(&p->json, "{");
    sends_put_message(&p->json, m);
    json_raw(&p->json, "}");
    snprintf(p->last, sizeof p->last, "%llu", (unsigned long long)m->seq);
    return !p->json.failed;
}

static bool put_attempt(void *arg, const struct db_attempt *a)
{
    struct page *p = arg;
    json_raw(&p->json, p->rows++ > 0 ? ",\n" : "\n");
    sends_put_attempt(&p->json, a);
    return !p->json.failed;
}

static enum verdict answer(struct call *c, const struct json *j)
{
    if (j->failed)
        return FAIL;
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    resp_header(c->resp, "Cache-Control", STR_LIT("no-cache"));
    resp_body(c->resp, j->out->data, j->out->len);
    return REPLY;
}

/* The end of a page: "],\n\"next\":…}" */
static enum verdict end_page(struct call *c, struct page *p)
{
    json_raw(&p->json, "],\n\"next\":");
    if (p->more && p->limit > 0)
        json_string(&p->json, (struct str){p->last, strlen(p->last)});
    else
        json_raw(&p->json, "null");
    json_raw(&p->json, "}\n");
    return answer(c, &p->json);
}

/* The value of a parameter in the session's buffer; "" without one. False: answered. */
static bool take_text(struct call *c, const char *name, const char *rule, struct str *text)
{
    struct buf *value = &session_of(c)->value;
    enum query_result found = query_find(c->req->query, name, value);
    *text = found == QUERY_OK ? (struct str){(const char *)value->data, value->len}
                              : (struct str){"", 0};
    if (found == QUERY_OK || found == QUERY_NONE)
        return true;
    param_refuse(c, name, rule);
    return false;
}

/* ---- lines ----------------------------------------------------------------------------------- */

enum verdict sends_lines(struct call *c)
{
    static const char rule[] = "is the name of a line";
    struct page p = {.limit = LIMIT_DEFAULT};
    char after[DB_LINE_NAME_MAX + 1] = "";
    struct str text;
    if (!param_number(c, "limit", LIMIT_MAX, &p.limit) || !take_text(c, "after", rule, &text))
        return REPLY;
    if (text.n > 0 && !db_line_name_ok(text.p, text.n)) {
        param_refuse(c, "after", rule);
        return REPLY;
    }
    if (text.n > 0)
        memcpy(after, text.p, text.n);
    struct db_reader *r = session_reader(c);
    p.json = json_start(&session_of(c)->text);
    json_raw(&p.json, "{\"lines\":[");
    enum db_result result = r != NULL ? db_line_list(r, after, p.limit + 1, put_line, &p)
                                      : DB_BROKEN;
    if (result == DB_OK)
        return end_page(c, &p);
    problem_result(c, result, 0);
    return REPLY;
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool take_state(struct call *c, enum db_send_state *state)
{
    static const char rule[] = "is waiting, delivered, parked, skipped or unopenable";
    struct str text;
    *state = DB_SEND_STATES;
    if (!take_text(c, "state", rule, &text))
        return false;
    for (enum db_send_state s = 0; s < DB_SEND_STATES && text.n > 0; s++) {
        const char *name = db_send_state_name(s);
        if (str_eq(text, (struct str){name, strlen(name)}))
            *state = s;
    }
    if (text.n == 0 || *state != DB_SEND_STATES)
        return true;
    param_refuse(c, "state", rule);
    return false;
}

static bool take_after(struct call *c, uint64_t *after)
{
    static const char rule[] = "is the number of a message";
    struct str text;
    *after = 0;
    if (!take_text(c, "after", rule, &text))
        return false;
    if (text.n == 0 || param_digits(text, INT64_MAX, after))
        return true;
    param_refuse(c, "after", rule);
    return false;
}

/* The line, in the round's snapshot. False: answered. */
static bool find_line(struct call *c, struct str name, struct db_reader **r, struct db_line *line)
{
    *r = session_reader(c);
    enum db_result result = !db_line_name_ok(name.p, name.n) ? DB_NONE
                            : *r == NULL                     ? DB_BROKEN
                                         : db_line_find(*r, name.p, name.n, line);
    if (result == DB_NONE)
        (void)sends_no_line(c, name);
    else if (result != DB_OK)
        problem_result(c, result, 0);
    return result == DB_OK;
}

enum verdict sends_messages(struct call *c, struct str name)
{
    struct page p = {.limit = LIMIT_DEFAULT};
    struct db_reader *r;
    struct db_line line;
    enum db_send_state state;
    uint64_t after;
    if (!sends_allowed(c, name, false) || !param_number(c, "limit", LIMIT_MAX, &p.limit) ||
        !take_state(c, &state) || !take_after(c, &after) || !find_line(c, name, &r, &line))
        return REPLY;
    p.json = json_start(&session_of(c)->text);
    json_raw(&p.json, "{\"line\":");
    sends_put_line(&p.json, &line);
    json_raw(&p.json, ",\n\"messages\":[");
    enum db_result result = db_message_list(r, line.id, state, after, p.limit + 1, put_message,
                                            &p);
    if (result == DB_OK)
        return end_page(c, &p);
    problem_result(c, result, 0);
    return REPLY;
}

enum verdict sends_message(struct call *c)
{
    struct str name = sends_segment(c, 0), id = sends_segment(c, 1);
    struct page p = {.rows = 0};
    struct db_reader *r;
    struct db_line line;
    struct db_message m;
    int64_t number;
    if (!sends_allowed(c, name, false) || !find_line(c, name, &r, &line))
        return REPLY;
    enum db_result result = id.n == DB_MESSAGE_ID_LEN ? db_message_find(r, id.p, id.n, &m, &number)
                                                      : DB_NONE;
    if (result == DB_OK && !str_eq(name, (struct str){m.line, strlen(m.line)}))
        result = DB_NONE;
    if (result == DB_NONE)
        return sends_no_message(c);
    if (result == DB_OK) {
        p.json = json_start(&session_of(c)->text);
        json_raw(&p.json, "{");
        sends_put_message(&p.json, &m);
        json_raw(&p.json, ",\"attempts\":[");
        result = db_attempt_list(r, number, ATTEMPTS_MAX, put_attempt, &p);
    }
    if (result != DB_OK) {
        problem_result(c, result, 0);
        return REPLY;
    }
    json_raw(&p.json, "]}\n");
    return answer(c, &p.json);
}
