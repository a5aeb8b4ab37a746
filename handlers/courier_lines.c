#include "handlers/courier_lines.h"

#include <stdlib.h>
#include <string.h>

static const unsigned flying_most[COURIER_TRUSTS] = {COURIER_FLYING, COURIER_FLYING_UNPROVEN,
                                                     COURIER_FLYING_TROUBLED};
static const size_t bytes_most[COURIER_TRUSTS] = {COURIER_HELD_BYTES, COURIER_HELD_BYTES_UNPROVEN,
                                                  COURIER_HELD_BYTES_TROUBLED};

void courier_lines_start(struct courier_lines *l)
{
    memset(l, 0, sizeof *l);
    l->queue_tail = &l->queue;
}

static void forget_ready(struct courier_lines *l, struct courier_line *line);

void courier_lines_free(struct courier_lines *l)
{
    for (unsigned i = 0; i < l->count; i++) {
        forget_ready(l, l->all[i]);
        free(l->all[i]);
    }
    free(l->all);
}

/* ---- counting ---- */

static enum courier_trust trust_of(const struct courier_line *line)
{
    if (line->half_open || line->strikes > 0 || line->failing_s != 0)
        return COURIER_TROUBLED;
    return line->works ? COURIER_PROVEN : COURIER_UNPROVEN;
}

/* Moves what the line has in hand to where it belongs now. */
static void settle(struct courier_lines *l, struct courier_line *line)
{
    enum courier_trust now = trust_of(line);
    l->trust_flying[line->trust] -= line->flying;
    l->trust_bytes[line->trust] -= line->bytes;
    line->trust = now;
    l->trust_flying[now] += line->flying;
    l->trust_bytes[now] += line->bytes;
}

static void count_bytes(struct courier_lines *l, struct courier_line *line, size_t more,
                        size_t less)
{
    line->bytes += more - less;
    l->trust_bytes[line->trust] += more - less;
}

/* What lines of this trust, and of worse ones, have. */
static unsigned flying_from(const struct courier_lines *l, enum courier_trust t)
{
    unsigned n = 0;
    for (int i = (int)t; i < COURIER_TRUSTS; i++)
        n += l->trust_flying[i];
    return n;
}

static size_t bytes_from(const struct courier_lines *l, enum courier_trust t)
{
    size_t n = 0;
    for (int i = (int)t; i < COURIER_TRUSTS; i++)
        n += l->trust_bytes[i];
    return n;
}

/* The place of a host in the table, which has twice as many as there can be at once. */
static unsigned host_at(const struct courier_lines *l, uint32_t host)
{
    unsigned places = sizeof l->hosts / sizeof *l->hosts, at = host % places;
    unsigned empty = places;
    for (unsigned i = 0; i < places; i++) {
        unsigned here = (at + i) % places;
        if (l->hosts[here].flying > 0 && l->hosts[here].host == host)
            return here;
        if (l->hosts[here].flying == 0 && empty == places)
            empty = here;
    }
    return empty;
}

/* ---- looks ---- */

void courier_lines_look_begin(struct courier_lines *l)
{
    l->look++;
}

/* Where the line of that id is, or belongs. */
static unsigned place_of(const struct courier_lines *l, int64_t id)
{
    unsigned low = 0, high = l->count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (l->all[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct courier_line *add_line(struct courier_lines *l, unsigned at, int64_t id)
{
    if (l->count == l->room) {
        unsigned room = l->room == 0 ? 16 : 2 * l->room;
        struct courier_line **all = realloc(l->all, room * sizeof *all);
        if (all == NULL)
            return NULL;
        l->all = all;
        l->room = room;
    }
    struct courier_line *line = calloc(1, sizeof *line);
    if (line == NULL)
        return NULL;
    memmove(l->all + at + 1, l->all + at, (l->count - at) * sizeof *l->all);
    l->all[at] = line;
    l->count++;
    line->id = id;
    line->trust = COURIER_UNPROVEN;
    line->allowed = 1;
    line->tokens = 1;
    line->ready_tail = &line->ready;
    line->after_due_ms = -1;
    return line;
}

static bool in_hand(const struct courier_line *line)
{
    return line->ready_count + line->flying + line->unreported > 0 || line->reading;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What is new in the row says whether there is something to read. */
static void take_row(const struct courier_lines *l, struct courier_line *line,
                     const struct courier_row *row)
{
    bool same = row->seq == line->row_seq && row->waiting == line->row_waiting &&
                row->due_ms == line->row_due_ms;
    if (!same || !in_hand(line)) {
        int64_t from = row->due_ms < 0 ? INT64_MAX : row->due_ms;
        if (!in_hand(line) || from < line->read_from_ms)
            line->read_from_ms = from;
    }
    line->row_seq = row->seq;
    line->row_waiting = row->waiting;
    line->row_due_ms = row->due_ms;
    line->fifo = row->fifo;
    line->rate = row->rate;
    if (line->unreported == 0 && line->reported != l->look) { /* the row knows all that we do */
        line->wait_until_ms = row->wait_until_ms;
        line->failing_s = row->failing_s;
    }
}

bool courier_lines_look(struct courier_lines *l, const struct courier_row *row, int64_t now_ms)
{
    unsigned at = place_of(l, row->id);
    struct courier_line *line = at < l->count ? l->all[at] : NULL;
    if (line == NULL || line->id != row->id) {
        line = add_line(l, at, row->id);
        if (line == NULL)
            return false;
        /* it was made to wait since it fails: another courier found it so */
        line->half_open = row->failing_s != 0 && row->wait_until_ms >= row->failing_s * 1000;
    }
    memcpy(line->name, row->name, sizeof line->name);
    line->seen = l->look;
    line->open = row->open;
    line->host = row->host;
    struct courier_row sane = *row;
    if (sane.wait_until_ms > now_ms + (COURIER_RETRY_AFTER_MAX_S + 60) * INT64_C(1000))
        sane.wait_until_ms = now_ms; /* the clock was put back */
    take_row(l, line, &sane);
    settle(l, line);
    return true;
}

static void forget_ready(struct courier_lines *l, struct courier_line *line)
{
    for (struct courier_item *item = line->ready; item != NULL;) {
        struct courier_item *next = item->next;
        count_bytes(l, line, 0, item->bytes);
        courier_item_free(item);
        item = next;
    }
    line->ready = NULL;
    line->ready_tail = &line->ready;
    line->ready_count = 0;
    line->anew = true;
}

/* Takes lines out of the queue that have nothing ready. */
static void tidy_queue(struct courier_lines *l)
{
    struct courier_line **at = &l->queue;
    while (*at != NULL) {
        struct courier_line *line = *at;
        if (line->ready != NULL) {
            at = &line->queue_next;
        } else {
            *at = line->queue_next;
            line->queued = false;
        }
    }
    l->queue_tail = at;
}

void courier_lines_look_end(struct courier_lines *l)
{
    for (unsigned i = 0; i < l->count; i++)
        if (l->all[i]->seen != l->look || !l->all[i]->open) {
            l->all[i]->open = false;
            forget_ready(l, l->all[i]);
        }
    tidy_queue(l);
    unsigned kept = 0;
    for (unsigned i = 0; i < l->count; i++) {
        if (l->all[i]->seen == l->look || in_hand(l->all[i]))
            l->all[kept++] = l->all[i];
        else
            free(l->all[i]);
    }
    l->count = kept;
}

/* ---- reading ---- */

static unsigned cap_of(const struct courier_line *line)
{
    if (line->fifo || line->half_open)
        return 1;
    return line->allowed;
}

/* How many it should have ready behind those that fly: those that fly next. */
static unsigned wanted(const struct courier_line *line)
{
    if (line->half_open || line->trust == COURIER_TROUBLED)
        return 1;
    return line->trust == COURIER_PROVEN ? COURIER_READ_MOST : COURIER_FLYING_LINE;
}

/* True when the line can be read as soon as the time has come. */
static bool readable(const struct courier_lines *l, const struct courier_line *line)
{
    if (!line->open || line->reading || line->read_from_ms == INT64_MAX)
        return false;
    if (line->anew && in_hand(line))
        return false;
    if (line->ready_count > wanted(line) / 2 || (line->ready_count > 0 && wanted(line) == 1))
        return false;
    if (flying_from(l, line->trust) >= flying_most[line->trust] && line->ready_count > 0)
        return false;
    return bytes_from(l, line->trust) < bytes_most[line->trust];
}

static int64_t read_time(const struct courier_line *line)
{
    return later(line->read_from_ms, line->wait_until_ms);
}

struct courier_line *courier_lines_read(struct courier_lines *l, int64_t now_ms, unsigned *most)
{
    if (l->reading >= COURIER_FLYING)
        return NULL;
    for (unsigned i = 0; i < l->count; i++) {
        unsigned at = (l->read_at + i) % l->count;
        struct courier_line *line = l->all[at];
        if (read_time(line) > now_ms || !readable(l, line))
            continue;
        l->read_at = at + 1;
        if (line->anew || !in_hand(line)) {
            line->after_due_ms = -1;
            line->after_seq = 0;
            line->anew = false;
        }
        line->reading = true;
        l->reading++;
        *most = wanted(line);
        return line;
    }
    return NULL;
}

void courier_lines_was_read(struct courier_lines *l, struct courier_line *line,
                            struct courier_item *items, bool full, int64_t next_ms)
{
    bool wanted_now = line->open && !line->anew;
    line->reading = false;
    l->reading--;
    line->read_from_ms = full ? 0 : next_ms;
    for (struct courier_item *item = items; item != NULL;) {
        struct courier_item *next = item->next;
        item->next = NULL;
        item->line = line;
        if (wanted_now) {
            line->after_due_ms = item->due_ms;
            line->after_seq = item->seq;
            *line->ready_tail = item;
            line->ready_tail = &item->next;
            line->ready_count++;
            count_bytes(l, line, item->bytes, 0);
        } else {
            line->read_from_ms = 0;
            courier_item_free(item);
        }
        item = next;
    }
    if (line->ready != NULL && !line->queued) {
        line->queued = true;
        line->queue_next = NULL;
        *l->queue_tail = line;
        l->queue_tail = &line->queue_next;
    }
}

/* ---- sending ---- */

/* A bucket that holds a tenth of a second, at least one. */
static void fill_bucket(struct courier_line *line, int64_t mono_ms)
{
    double most = line->rate / 10 > 1 ? line->rate / 10 : 1;
    int64_t passed = mono_ms - line->tokens_ms;
    line->tokens_ms = mono_ms;
    if (line->rate <= 0 || passed <= 0)
        return;
    line->tokens += (double)passed * line->rate / 1000;
    if (line->tokens > most)
        line->tokens = most;
}

/* Without its time and rate: whether there is room for it. */
static bool room_for(const struct courier_lines *l, const struct courier_line *line)
{
    return line->flying < cap_of(line) && flying_from(l, line->trust) < flying_most[line->trust] &&
           l->hosts[host_at(l, line->host)].flying < COURIER_FLYING_HOST;
}

static bool may_send(const struct courier_lines *l, struct courier_line *line, int64_t now_ms,
                     int64_t mono_ms)
{
    if (line->wait_until_ms > now_ms || !room_for(l, line))
        return false;
    fill_bucket(line, mono_ms);
    return line->rate <= 0 || line->tokens >= 1;
}

static struct courier_item *take_ready(struct courier_lines *l, struct courier_line *line)
{
    struct courier_item *item = line->ready;
    unsigned at = host_at(l, line->host);
    line->ready = item->next;
    if (line->ready == NULL)
        line->ready_tail = &line->ready;
    line->ready_count--;
    item->next = NULL;
    line->flying++;
    line->tokens -= 1;
    l->flying++;
    l->trust_flying[line->trust]++;
    l->hosts[at].host = line->host;
    l->hosts[at].flying++;
    item->host = line->host;
    return item;
}

struct courier_item *courier_lines_next(struct courier_lines *l, int64_t now_ms, int64_t mono_ms)
{
    if (l->flying >= COURIER_FLYING || l->flying + l->unreported >= COURIER_UNREPORTED)
        return NULL;
    for (struct courier_line **at = &l->queue; *at != NULL; at = &(*at)->queue_next) {
        struct courier_line *line = *at;
        if (!may_send(l, line, now_ms, mono_ms))
            continue;
        struct courier_item *item = take_ready(l, line);
        /* to the end, or out of it */
        *at = line->queue_next;
        if (*at == NULL)
            l->queue_tail = at;
        line->queue_next = NULL;
        line->queued = line->ready != NULL;
        if (line->queued) {
            *l->queue_tail = line;
            l->queue_tail = &line->queue_next;
        }
        return item;
    }
    return NULL;
}

static void learn(struct courier_line *line, const struct courier_plan *plan, int64_t now_ms)
{
    line->strikes = plan->strikes;
    if (plan->works) {
        line->works = true;
        line->half_open = false;
        line->failing_s = 0;
        line->gap = 0;
        line->allowed = line->allowed * 2 < COURIER_FLYING_LINE ? line->allowed * 2
                                                                : COURIER_FLYING_LINE;
    }
    if (plan->fails) {
        line->works = false;
        line->failing_s = line->failing_s != 0 ? line->failing_s : now_ms / 1000;
        line->allowed = line->allowed > 1 ? line->allowed / 2 : 1;
    }
    if (plan->half_open) {
        line->half_open = true;
        line->allowed = 1;
    }
    if (plan->send_again_from != 0)
        line->gap = plan->send_again_from;
    line->wait_until_ms = later(line->wait_until_ms, plan->wait_until_ms);
    if (plan->line_state != DB_LINE_OPEN)
        line->open = false;
}

/* What was read behind a message that did not get through may not be what comes next. */
static bool must_wait(const struct courier_line *line, const struct courier_plan *plan)
{
    bool over = plan->state == DB_SEND_DELIVERED || plan->state == DB_SEND_SKIPPED;
    return plan->half_open || plan->send_again_from != 0 || plan->line_state != DB_LINE_OPEN ||
           (line->fifo && !over);
}

void courier_lines_ended(struct courier_lines *l, struct courier_item *item,
                         const struct courier_plan *plan, int64_t now_ms)
{
    struct courier_line *line = item->line;
    l->hosts[host_at(l, item->host)].flying--;
    l->flying--;
    l->trust_flying[line->trust]--;
    line->flying--;
    count_bytes(l, line, 0, item->bytes);
    line->unreported++;
    l->unreported++;
    learn(line, plan, now_ms);
    if (must_wait(line, plan)) {
        forget_ready(l, line);
        tidy_queue(l);
        line->read_from_ms = 0;
    } else if (plan->state == DB_SEND_WAITING && plan->due_ms < line->read_from_ms) {
        line->read_from_ms = plan->due_ms;
    }
    settle(l, line);
}

void courier_lines_reported(struct courier_lines *l, struct courier_item *item)
{
    item->line->unreported--;
    item->line->reported = l->look;
    l->unreported--;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t courier_lines_wait(const struct courier_lines *l, int64_t now_ms, int64_t mono_ms)
{
    int64_t wait = INT64_MAX;
    bool full = l->flying >= COURIER_FLYING || l->flying + l->unreported >= COURIER_UNREPORTED;
    for (unsigned i = 0; i < l->count; i++) {
        const struct courier_line *line = l->all[i];
        if (l->reading < COURIER_FLYING && readable(l, line))
            wait = sooner(wait, read_time(line) - now_ms);
        if (full || line->ready == NULL || !room_for(l, line))
            continue;
        int64_t rate = 0;
        if (line->rate > 0 && line->tokens < 1)
            rate = line->tokens_ms - mono_ms + 1 +
                   (int64_t)((1 - line->tokens) * 1000 / line->rate);
        wait = sooner(wait, later(line->wait_until_ms - now_ms, rate));
    }
    return wait == INT64_MAX ? -1 : later(wait, 0);
}

bool courier_lines_busy(const struct courier_lines *l)
{
    return l->flying + l->unreported + l->reading > 0 || l->queue != NULL;
}
