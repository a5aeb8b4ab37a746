#include "handlers/feed.h"

#include "handlers/store.h"

enum {
    PAGE_ENTRIES = 256,
    PAGE_BYTES = 32768, /* of text, and the last entry */
    TEXT_MAX = 1 << 20,
};

void feed_json(struct json *j, const struct db_change *change)
{
    json_raw(j, "{\"seq\":");
    json_u64(j, change->seq);
    json_raw(j, ",\"key\":");
    json_string(j, (struct str){change->key, change->key_len});
    if (change->deleted) {
        json_raw(j, ",\"op\":\"delete\",\"etag\":null}");
    } else {
        json_raw(j, ",\"op\":\"put\",\"etag\":");
        json_etag(j, change->seq);
        json_raw(j, "}");
    }
}

struct json feed_begin(struct call *c)
{
    struct json j = json_start(&session_of(c)->text);
    json_raw(&j, "{\"changes\":[");
    return j;
}

enum verdict feed_answer(struct call *c, struct json *j, uint64_t next)
{
    json_raw(j, "],\n\"next\":");
    json_u64(j, next);
    json_raw(j, "}\n");
    if (j->failed)
        return FAIL;
    resp_start(c->resp, 200);
    resp_header(c->resp, "Content-Type", STR_LIT("application/json"));
    resp_header(c->resp, "Cache-Control", STR_LIT("no-cache"));
    resp_header(c->resp, "Vary", STR_LIT("Accept"));
    resp_body(c->resp, j->out->data, j->out->len);
    return REPLY;
}

const struct feed_entry *feed_entry(const struct feed_page *p, unsigned i)
{
    return (const struct feed_entry *)(const void *)p->entries.data + i;
}

bool feed_matches(const struct feed_page *p, const struct feed_entry *e, struct str prefix)
{
    struct str key = {(const char *)p->keys.data + e->key, e->key_len};
    return str_starts(key, prefix);
}

static bool add_entry(void *arg, const struct db_change *change)
{
    struct feed_page *p = arg;
    struct json j = {.out = &p->text};
    struct feed_entry e = {.seq = change->seq,
                           .event = (uint32_t)p->text.len,
                           .key = (uint32_t)p->keys.len,
                           .key_len = (uint32_t)change->key_len};
    json_raw(&j, "id: ");
    json_u64(&j, change->seq);
    json_raw(&j, "\ndata: ");
    e.json = (uint32_t)p->text.len;
    feed_json(&j, change);
    e.json_len = (uint32_t)p->text.len - e.json;
    json_raw(&j, "\n\n");
    e.event_len = (uint32_t)p->text.len - e.event;
    if (j.failed || !buf_add(&p->keys, change->key, change->key_len, TEXT_MAX) ||
        !buf_add(&p->entries, &e, sizeof e, TEXT_MAX)) {
        p->failed = true;
        return false;
    }
    p->count++;
    p->next = change->seq;
    return p->text.len < PAGE_BYTES;
}

static bool read_page(struct feed_page *p, struct db_reader *r, uint64_t from)
{
    struct db_change_bounds bounds = {0};
    p->kept = p->failed = false;
    p->text.len = p->keys.len = p->entries.len = 0;
    p->count = 0;
    p->from = p->next = from;
    if (db_change_bounds(r, &bounds) != DB_OK ||
        db_change_list(r, from, PAGE_ENTRIES, add_entry, p) != DB_OK || p->failed)
        return false;
    p->whole = p->count < PAGE_ENTRIES && p->text.len < PAGE_BYTES;
    if (p->whole && bounds.last > p->next)
        p->next = bounds.last;
    p->kept = p->next > from; /* else it is true only now */
    return true;
}

enum feed_result feed_page(struct feed *f, struct db_reader *r, uint64_t from, unsigned most,
                           const struct feed_page **page)
{
    struct feed_page *oldest = f->pages;
    f->uses++;
    for (struct feed_page *p = f->pages; p < f->pages + FEED_PAGES; p++) {
        if (p->kept && p->from == from) {
            p->used = f->uses;
            *page = p;
            return FEED_OK;
        }
        if (p->used < oldest->used)
            oldest = p;
    }
    if (f->reads >= most)
        return FEED_LATER;
    f->reads++;
    oldest->used = f->uses;
    *page = oldest;
    return r != NULL && read_page(oldest, r, from) ? FEED_OK : FEED_FAILED;
}

void feed_round_end(struct feed *f, bool keep)
{
    f->reads = 0;
    for (struct feed_page *p = f->pages; p < f->pages + FEED_PAGES && !keep; p++) {
        buf_free(&p->text);
        buf_free(&p->keys);
        buf_free(&p->entries);
        *p = (struct feed_page){0};
    }
}
