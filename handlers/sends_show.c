#include "handlers/sends_show.h"

#include <stdio.h>
#include <string.h>

#include "fcgi/resp.h"

const char *sends_line_state(enum db_line_state state)
{
    static const char *const names[] = {
        [DB_LINE_OPEN] = "open", [DB_LINE_PAUSED] = "paused", [DB_LINE_DISABLED] = "disabled"};
    return state <= DB_LINE_DISABLED ? names[state] : "";
}

static void put_number(struct json *j, const char *name, uint64_t v)
{
    json_raw(j, name);
    json_u64(j, v);
}

static void put_bool(struct json *j, const char *name, bool yes)
{
    json_raw(j, name);
    json_raw(j, yes ? "true" : "false");
}

/* Unix seconds; not above 0: null. */
static void put_time(struct json *j, const char *name, int64_t unix_s)
{
    char date[RFC3339_LEN];
    json_raw(j, name);
    if (unix_s <= 0) {
        json_raw(j, "null");
        return;
    }
    put_rfc3339(date, unix_s);
    json_raw(j, "\"");
    json_bytes(j, (struct str){date, sizeof date});
    json_raw(j, "\"");
}

static void put_rate(struct json *j, double rate)
{
    char text[32];
    snprintf(text, sizeof text, "%.6g", rate);
    json_raw(j, ",\"rate\":");
    json_raw(j, rate > 0 ? text : "null");
}

void sends_put_line(struct json *j, const struct db_line *line)
{
    json_put_text(j, "{\"line\":", line->name);
    json_put_text(j, ",\"url\":", line->url);
    json_put_text(j, ",\"order\":", line->fifo ? "fifo" : "any");
    put_rate(j, line->rate);
    json_put_text(j, ",\"state\":", sends_line_state(line->state));
    json_put_text(j, ",\"reason\":", line->reason);
    put_number(j, ",\"keys\":", line->keys);
    put_bool(j, ",\"secret\":", line->secret != NULL);
    put_bool(j, ",\"allow_private\":", line->private_);
    put_bool(j, ",\"ca\":", line->ca != NULL);
    put_number(j, ",\"seq\":", line->seq);
    put_number(j, ",\"waiting\":", line->waiting);
    put_number(j, ",\"parked\":", line->parked);
    put_time(j, ",\"due\":", line->due_ms / 1000);
    put_time(j, ",\"failing\":", line->failing_s);
    put_time(j, ",\"created\":", line->created);
    json_raw(j, "}");
}

void sends_put_message(struct json *j, const struct db_message *m)
{
    json_put_text(j, "\"id\":", m->id);
    json_put_text(j, ",\"line\":", m->line);
    put_number(j, ",\"seq\":", m->seq);
    json_put_text(j, ",\"state\":", db_send_state_name(m->state));
    json_put_text(j, ",\"reason\":", m->reason);
    json_put_text(j, ",\"type\":", m->type);
    put_number(j, ",\"size\":", m->bytes);
    put_bool(j, ",\"sealed\":", m->sealed);
    put_bool(j, ",\"skip\":", m->skip);
    put_number(j, ",\"tries\":", m->tries);
    put_time(j, ",\"due\":", m->state == DB_SEND_WAITING ? m->due_ms / 1000 : 0);
    put_time(j, ",\"created\":", m->created);
    put_time(j, ",\"ended\":", m->ended);
}

void sends_put_attempt(struct json *j, const struct db_attempt *a)
{
    put_number(j, "{\"number\":", a->number);
    put_time(j, ",\"at\":", a->at_ms / 1000);
    put_number(j, ",\"took_ms\":", a->took_ms > 0 ? (uint64_t)a->took_ms : 0);
    put_number(j, ",\"status\":", a->status);
    json_put_text(j, ",\"outcome\":", a->outcome);
    json_put_text(j, ",\"detail\":", a->detail);
    json_raw(j, "}");
}
