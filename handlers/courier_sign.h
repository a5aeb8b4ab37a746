/* What goes on the wire: the body of a message with its place on the line, and its signatures.
 *
 * A sealed message is sent with its place (line, number, hash of the one before) and the signature
 * over it of the identity that sealed it, made at the first delivery and kept since; one that was
 * skipped, as a signed tombstone. Each try is signed with the line's secret (v1), where it has one,
 * and with the transport key that is used now and those before it that are still valid (v1a).
 * Any thread that has the item. */
#ifndef HANJI_HANDLERS_COURIER_SIGN_H
#define HANJI_HANDLERS_COURIER_SIGN_H

#include "handlers/courier_item.h"
#include "seal/envelope.h"

/* An item of a message of the line, its body as it goes on the wire, not signed yet. What cannot be
 * sent has another use than COURIER_SEND. NULL: memory is short. */
struct courier_item *courier_item_new(const struct seal_keys *keys, const struct db_line *line,
                                      const struct db_due_message *m, int64_t now_s);

/* Signs a try at that time; of an item that is to be sent. */
void courier_sign(struct courier_item *item, const struct seal_keys *keys, int64_t now_s);

/* The secret of a line, from how it is stored. False: there is one, but it cannot be shown. */
bool courier_secret(const struct seal_keys *keys, const struct db_line *line,
                    unsigned char secret[SEAL_WHSEC_MAX], size_t *n)
    __attribute__((warn_unused_result));

#endif
