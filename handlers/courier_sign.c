#include "handlers/courier_sign.h"

#include <stdlib.h>
#include <string.h>

static struct seal_text text_of(const char *s)
{
    return (struct seal_text){s, strlen(s)};
}

static void unfit(struct courier_item *item, const char *why)
{
    item->use = COURIER_UNFIT;
    item->why = why;
}

static void over(struct courier_item *item, enum db_send_state state)
{
    item->use = COURIER_OVER;
    item->state = state;
}

/* Memory for n bytes of body, and the type behind it. */
static bool make_room(struct courier_item *item, size_t n, const char *type)
{
    size_t type_bytes = strlen(type) + 1;
    item->body = malloc(n + 1 + type_bytes);
    if (item->body == NULL)
        return false;
    item->type = memcpy(item->body + n + 1, type, type_bytes);
    return true;
}

static struct seal_place place_of(const struct db_line *line, const struct db_due_message *m)
{
    struct seal_place place = {.line = text_of(line->name), .seq = m->seq, .fifo = line->fifo};
    if (m->prev != NULL)
        memcpy(place.prev, m->prev, sizeof place.prev);
    memcpy(place.hash, m->hash, sizeof place.hash);
    return place;
}

/* The identity that sealed it; of a tombstone, for want of it, the one that is used now. */
static const struct seal_key *identity_of(const struct seal_keys *keys,
                                          const struct db_due_message *m, int64_t now_s)
{
    unsigned char id[SEAL_KEY_ID_BYTES];
    const struct seal_key *key = NULL;
    if (seal_envelope_from((struct seal_text){m->body, m->bytes}, id))
        key = seal_keys_find(keys, SEAL_IDENTITY, id);
    return key == NULL && m->skipped ? seal_keys_current(keys, SEAL_IDENTITY, now_s) : key;
}

static bool fill_sealed(struct courier_item *item, const struct seal_keys *keys,
                        const struct db_line *line, const struct db_due_message *m)
{
    struct seal_place place = place_of(line, m);
    if (!make_room(item, m->bytes + SEAL_PLACE_JSON_MAX, "application/json"))
        return false;
    if (m->proof != NULL) {
        memcpy(item->proof, m->proof, sizeof item->proof);
    } else {
        const struct seal_key *identity = identity_of(keys, m, 0);
        item->has_proof = identity != NULL && seal_place_sign(keys, identity, &place, item->proof);
        if (!item->has_proof) {
            unfit(item, "the identity that sealed it is gone");
            return true;
        }
    }
    item->bytes = seal_envelope_send((struct seal_text){m->body, m->bytes}, &place, item->proof,
                                     item->body);
    return true;
}

static bool fill_tombstone(struct courier_item *item, const struct seal_keys *keys,
                           const struct db_line *line, const struct db_due_message *m,
                           int64_t now_s)
{
    struct seal_place place = place_of(line, m);
    const struct seal_key *identity = identity_of(keys, m, now_s);
    if (!make_room(item, SEAL_TOMBSTONE_MAX, "application/json"))
        return false;
    if (identity != NULL)
        item->bytes = seal_tombstone_make(keys, identity, text_of(item->id), &place, item->body);
    if (item->bytes == 0)
        unfit(item, "there is no identity");
    return true;
}

static bool fill_plain(struct courier_item *item, const struct db_due_message *m)
{
    if (!make_room(item, m->bytes, m->type))
        return false;
    if (m->bytes > 0)
        memcpy(item->body, m->body, m->bytes);
    item->bytes = m->bytes;
    return true;
}

struct courier_item *courier_item_new(const struct seal_keys *keys, const struct db_line *line,
                                      const struct db_due_message *m, int64_t now_s)
{
    struct courier_item *item = calloc(1, sizeof *item);
    bool filled = true;
    if (item == NULL)
        return NULL;
    item->number = m->number;
    item->seq = m->seq;
    item->due_ms = m->due_ms;
    item->created_s = m->created;
    item->expires_s = m->expires;
    item->tries = m->tries;
    item->sealed = m->sealed;
    item->skipped = m->skipped;
    strncpy(item->id, m->id, sizeof item->id - 1);
    if (m->skipped && !m->sealed)
        over(item, DB_SEND_SKIPPED);
    else if (m->skipped)
        filled = fill_tombstone(item, keys, line, m, now_s);
    else if (m->expires != 0 && now_s >= m->expires)
        over(item, DB_SEND_UNOPENABLE);
    else if (m->sealed)
        filled = fill_sealed(item, keys, line, m);
    else
        filled = fill_plain(item, m);
    if (filled)
        return item;
    courier_item_free(item);
    return NULL;
}

bool courier_secret(const struct seal_keys *keys, const struct db_line *line,
                    unsigned char secret[SEAL_WHSEC_MAX], size_t *n)
{
    char about[8 + DB_LINE_NAME_MAX] = "line:";
    unsigned char shown[SEAL_WHSEC_MAX + SEAL_HIDDEN_EXTRA];
    *n = 0;
    if (line->secret == NULL)
        return true;
    strncat(about, line->name, DB_LINE_NAME_MAX);
    bool ok = line->secret_bytes <= sizeof shown &&
              seal_show(keys, text_of(about), line->secret, line->secret_bytes, shown, n) &&
              *n <= SEAL_WHSEC_MAX;
    if (ok)
        memcpy(secret, shown, *n);
    else
        *n = 0;
    explicit_bzero(shown, sizeof shown);
    return ok;
}

/* Puts an entry behind those that are there. */
static void add_entry(struct courier_item *item, const char *entry)
{
    size_t at = strlen(item->signature), n = strlen(entry);
    if (at + n + 2 > sizeof item->signature)
        return;
    if (at > 0)
        item->signature[at++] = ' ';
    memcpy(item->signature + at, entry, n + 1);
}

/* Of the keys before the one that is used now, those that are still valid: the newest first. */
static void add_older(struct courier_item *item, const struct seal_keys *keys,
                      const struct seal_key *current, const struct seal_attempt *a)
{
    char entry[SEAL_WEBHOOK_ENTRY_MAX + 1];
    const struct seal_key *older[COURIER_SIGNATURES_MAX - 2], *key;
    unsigned n = 0, most = sizeof older / sizeof *older;
    for (unsigned i = 0; (key = seal_keys_at(keys, i)) != NULL; i++) {
        if (key->kind != SEAL_TRANSPORT || key == current || !seal_key_valid(key, a->timestamp_s))
            continue;
        if (n == most) /* the oldest goes */
            memmove(older, older + 1, --n * sizeof *older);
        older[n++] = key;
    }
    while (n > 0)
        if (seal_webhook_v1a(a, keys, older[--n], entry))
            add_entry(item, entry);
}

void courier_sign(struct courier_item *item, const struct seal_keys *keys, int64_t now_s)
{
    char entry[SEAL_WEBHOOK_ENTRY_MAX + 1];
    const struct courier_target *t = item->target;
    const struct seal_key *current = seal_keys_current(keys, SEAL_TRANSPORT, now_s);
    const struct seal_attempt a = {
        .id = text_of(item->id), .timestamp_s = now_s, .body = {item->body, item->bytes}};
    item->signature[0] = 0;
    item->signed_s = now_s;
    if (t->secret_bytes > 0 && seal_webhook_v1(&a, t->secret, t->secret_bytes, entry))
        add_entry(item, entry);
    if (current != NULL && seal_webhook_v1a(&a, keys, current, entry))
        add_entry(item, entry);
    if (current != NULL)
        add_older(item, keys, current, &a);
    if (item->signature[0] == 0)
        unfit(item, "there is no transport key, and the line has no secret: hanji key new");
}
