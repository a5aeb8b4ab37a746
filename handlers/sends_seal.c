#include "handlers/sends_seal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fcgi/path.h"
#include "seal/id.h"

const char sends_too_large[] =
    "A body to send has at most 262144 bytes: sealing and base64 make it larger by a third, and "
    "many receivers take no more than 1 MiB.";

__attribute__((format(printf, 3, 4)))
static enum db_result refuse(struct db_error *error, enum db_result result, const char *format,
                             ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return result;
}

static bool valid(const struct db_line_key *k, int64_t now_s)
{
    return k->valid_from <= now_s && (k->valid_until == 0 || now_s < k->valid_until);
}

/* True when one that was chosen is of the same owner. */
static bool has_owner(const struct db_line_key *const *chosen, unsigned n,
                      const unsigned char *owner)
{
    for (unsigned i = 0; i < n; i++)
        if (memcmp(chosen[i]->owner, owner, sizeof chosen[i]->owner) == 0)
            return true;
    return false;
}

/* A key without an end opens for ever. */
static int64_t opens_until(const struct db_line_key *k)
{
    return k->valid_until == 0 ? INT64_MAX : k->valid_until + k->horizon_s;
}

unsigned sends_recipients(const struct db_line_key *keys, unsigned count, int64_t now_s,
                          struct seal_recipient to[DB_LINE_KEYS_MAX], int64_t *expires)
{
    const struct db_line_key *chosen[DB_LINE_KEYS_MAX];
    unsigned n = 0;
    int64_t last = 0;
    for (unsigned i = 0; i < count && n < DB_LINE_KEYS_MAX; i++) {
        const struct db_line_key *k = &keys[i];
        if (!valid(k, now_s) || has_owner(chosen, n, k->owner))
            continue;
        memcpy(to[n].id, k->id, sizeof to[n].id);
        memcpy(to[n].key, k->key, sizeof to[n].key);
        chosen[n++] = k;
        if (opens_until(k) > last)
            last = opens_until(k);
    }
    *expires = last == INT64_MAX ? 0 : last;
    return n;
}

static void make_id(char id[DB_MESSAGE_ID_LEN + 1])
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    memcpy(id, "msg_", 4);
    seal_id_new(id + 4, (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
}

static struct seal_text text_of(const char *s)
{
    return (struct seal_text){s, strlen(s)};
}

/* What went wrong, of an envelope that was not made. */
static enum db_result not_sealed(enum seal_envelope why, const struct db_send_draft *d,
                                 struct db_error *error)
{
    if (why == SEAL_ENVELOPE_SENDER)
        return refuse(error, DB_REFUSED, "This hanji has no identity to sign with; "
                                         "`hanji key new` makes its keys.");
    if (why == SEAL_ENVELOPE_NO_MEMORY)
        return refuse(error, DB_NO_MEMORY, "Memory is short; try again shortly.");
    return refuse(error, DB_CONFLICT, "The line %s has a key that nothing can be sealed to; give "
                                      "it its recipients' cards again.", d->line);
}

static enum db_result seal(const struct seal_keys *own, const struct db_send_draft *d,
                           struct db_send_made *made, struct db_error *error)
{
    struct seal_recipient to[DB_LINE_KEYS_MAX];
    struct seal_letter letter = {
        .id = {made->id, DB_MESSAGE_ID_LEN},
        .line = text_of(d->line),
        .type = text_of(d->type),
        .body = {d->body, d->bytes},
        .created = d->now_s,
        .to = to,
    };
    letter.to_count = sends_recipients(d->keys, d->key_count, d->now_s, to, &made->expires);
    if (letter.to_count == 0)
        return refuse(error, DB_CONFLICT, "No key of the line %s is valid now; give it its "
                                          "recipients' new cards (`hanji line set %s --seal-to "
                                          "CARD`).", d->line, d->line);
    made->body = malloc(seal_envelope_bytes(&letter) + 1);
    if (made->body == NULL)
        return not_sealed(SEAL_ENVELOPE_NO_MEMORY, d, error);
    enum seal_envelope sealed = seal_envelope_make(own, &letter, (char *)made->body, &made->bytes,
                                                   made->hash);
    if (sealed == SEAL_ENVELOPE_OK)
        return DB_OK;
    free(made->body);
    made->body = NULL;
    return not_sealed(sealed, d, error);
}

enum db_result sends_make(const struct seal_keys *own, const struct db_send_draft *d,
                          struct db_send_made *made, struct db_error *error)
{
    *made = (struct db_send_made){.body = NULL, .bytes = d->bytes};
    error->text[0] = 0;
    if (d->bytes > DB_SEND_MAX)
        return refuse(error, DB_TOO_LARGE, "%s", sends_too_large);
    make_id(made->id);
    if (d->key_count > 0)
        return seal(own, d, made, error);
    if (!utf8_ok(d->body, d->bytes))
        return refuse(error, DB_INVALID, "The line %s seals nothing, so a body on it is text in "
                                         "UTF-8: receivers verify it as such. Send bytes in "
                                         "base64, or on a sealed line.", d->line);
    seal_message_hash((struct seal_text){made->id, DB_MESSAGE_ID_LEN}, text_of(d->type),
                      (struct seal_text){d->body, d->bytes}, made->hash);
    return DB_OK;
}

enum db_result sends_maker(void *ring, const struct db_send_draft *draft,
                           struct db_send_made *made, struct db_error *error)
{
    const struct seal_keys *own = draft->key_count > 0 ? keyring_hold(ring) : NULL;
    enum db_result result = sends_make(own, draft, made, error);
    if (own != NULL)
        keyring_release(ring, own);
    return result;
}

void sends_target_free(struct sends_target *t)
{
    free(t->made.body);
    free(t->keys);
    t->made = (struct db_send_made){.body = NULL};
    t->keys = NULL;
    t->key_count = 0;
}

enum db_result sends_look(struct db_reader *r, struct sends_target *t)
{
    struct db_line line;
    struct db_line_key keys[DB_LINE_KEYS_MAX];
    unsigned count = 0;
    enum db_result result = db_line_find(r, t->line, strlen(t->line), &line);
    if (result != DB_OK)
        return result;
    t->version = line.version;
    if (line.keys == 0)
        return DB_OK;
    result = db_line_keys(r, line.id, keys, &count);
    if (result != DB_OK || count == 0)
        return result;
    t->keys = malloc(count * sizeof *keys);
    if (t->keys == NULL)
        return DB_NO_MEMORY;
    memcpy(t->keys, keys, count * sizeof *keys);
    t->key_count = count;
    return DB_OK;
}

enum db_result sends_make_to(struct keyring *ring, struct sends_target *t,
                             const struct sends_content *content, struct db_error *error)
{
    const struct db_send_draft draft = {
        .line = t->line,
        .type = content->type,
        .body = content->bytes > 0 ? content->body : "",
        .bytes = content->bytes,
        .keys = t->keys,
        .key_count = t->key_count,
        .now_s = time(NULL),
    };
    return sends_maker(ring, &draft, &t->made, error);
}

struct db_op *sends_op(const struct sends_target *t, const struct sends_content *content,
                       bool share)
{
    bool sealed = t->made.body != NULL;
    return db_send_op(&(struct db_send){
        .line = t->line,
        .id = t->made.id,
        .type = content->type,
        .body = sealed ? t->made.body : content->bytes > 0 ? content->body : "",
        .bytes = t->made.bytes,
        .hash = t->made.hash,
        .sealed = sealed,
        .share = share,
        .version = sealed ? t->version : 0,
        .expires = t->made.expires,
    });
}

struct str sends_id(const struct db_op *op, const struct sends_target *t)
{
    if (op->answer_bytes == DB_MESSAGE_ID_LEN)
        return (struct str){(const char *)op->answer, op->answer_bytes};
    return (struct str){t->made.id, DB_MESSAGE_ID_LEN};
}
