/* Making messages: an id, a hash, and for a line that has keys an envelope that only they open.
 *
 * Used by POST /sends/LINE, by a batch and by send() of SQL, so that all of them have the same
 * rules. Sealing takes a tenth of a millisecond and more, so it is done on a thread of the pool, or
 * on the writer's for SQL, within its bounds. Any thread. */
#ifndef HANJI_HANDLERS_SENDS_SEAL_H
#define HANJI_HANDLERS_SENDS_SEAL_H

#include "db/line.h"
#include "fcgi/buf.h"
#include "handlers/keys.h"
#include "seal/envelope.h"

_Static_assert((int)DB_KEY_ID_BYTES == (int)SEAL_KEY_ID_BYTES, "one size of key ids");
_Static_assert((int)DB_KEY_BYTES == (int)SEAL_KEY_BYTES, "one size of keys");
_Static_assert((int)DB_MESSAGE_HASH_BYTES == (int)SEAL_HASH_BYTES, "one size of hashes");
_Static_assert((int)DB_MESSAGE_ID_LEN == (int)SEAL_MESSAGE_ID_LEN, "one length of ids");
_Static_assert((int)DB_LINE_KEYS_MAX == (int)SEAL_RECIPIENTS_MAX, "a line's keys fit");

/* The newest key of each owner that is valid at now_s, of keys in the order newest first; how many
 * of to were filled. *expires: when none of them can be opened any more, Unix seconds, 0 never. */
unsigned sends_recipients(const struct db_line_key *keys, unsigned count, int64_t now_s,
                          struct seal_recipient to[DB_LINE_KEYS_MAX], int64_t *expires);

/* Makes a message of a draft. made->body is the caller's to free (NULL: it is the draft's, not
 * sealed); nothing is to be freed unless DB_OK came back. Else error says why:
 *   DB_TOO_LARGE  the body is beyond DB_SEND_MAX
 *   DB_INVALID    the line seals nothing and the body is no UTF-8 text
 *   DB_CONFLICT   no key of the line is valid now, or one is none
 *   DB_REFUSED    this hanji has no identity to sign with
 *   DB_NO_MEMORY */
enum db_result sends_make(const struct seal_keys *own, const struct db_send_draft *draft,
                          struct db_send_made *made, struct db_error *error)
    __attribute__((warn_unused_result));

/* The same as db_send_make_fn: arg is the struct keyring. */
enum db_result sends_maker(void *ring, const struct db_send_draft *draft,
                           struct db_send_made *made, struct db_error *error)
    __attribute__((warn_unused_result));

/* A message on its way to a line: what is known of the line, then what was made. */
struct sends_target {
    char line[DB_LINE_NAME_MAX + 1];
    uint32_t version;
    struct db_line_key *keys; /* from malloc, NULL: it has none */
    unsigned key_count;
    struct db_send_made made;
};

/* What is sent: the same to all of its lines. */
struct sends_content {
    const char *type;
    const void *body; /* may be NULL when bytes is 0 */
    size_t bytes;
};

/* Copies what the reader's snapshot has of the line. DB_NONE: there is none. */
enum db_result sends_look(struct db_reader *r, struct sends_target *t)
    __attribute__((warn_unused_result));

/* Makes the message, as sends_maker. */
enum db_result sends_make_to(struct keyring *ring, struct sends_target *t,
                             const struct sends_content *content, struct db_error *error)
    __attribute__((warn_unused_result));

/* The operation that queues it. share: its body is that of the part before it. NULL: memory is
 * short. */
struct db_op *sends_op(const struct sends_target *t, const struct sends_content *content,
                       bool share) __attribute__((warn_unused_result));

/* The id of a message that was queued: of one that was there already, the one that it got then. */
struct str sends_id(const struct db_op *op, const struct sends_target *t);

/* Frees what was copied and made; the name stays. */
void sends_target_free(struct sends_target *t);

/* How often a message is sealed again whose line's keys changed meanwhile. */
enum { SENDS_TRIES_MAX = 3 };

/* Why a body is too large. */
extern const char sends_too_large[];

#endif
