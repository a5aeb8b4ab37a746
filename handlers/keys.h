/* The process's keys, as a set that is read again when the folder changed.
 *
 * Any thread holds the set it uses and gives it back; another set is put in its place meanwhile
 * without anybody waiting. GET /keys is the card: public. */
#ifndef HANJI_HANDLERS_KEYS_H
#define HANJI_HANDLERS_KEYS_H

#include "handlers/routes.h"
#include "seal/keys.h"

struct keyring;

/* Reads the folder `keys` of the configuration. A folder that cannot be read is logged, and the set
 * is empty: what needs a key answers 503 and says which command makes one. NULL: memory is
 * short. */
struct keyring *keyring_open(const char *folder);
void keyring_close(struct keyring *ring); /* safe with NULL */

/* The set as it is now, never NULL: looks, at most once a second, whether the folder's time of
 * change is another one, and reads it again. A folder that became unreadable is logged, and the set
 * stays. */
const struct seal_keys *keyring_hold(struct keyring *ring);
void keyring_release(struct keyring *ring, const struct seal_keys *keys);

/* The next hold looks at the folder, however recently that was done. */
void keyring_look(struct keyring *ring);

/* When the sealing key that is used now ends, Unix seconds. 0: there is none; one without an end
 * ends with the year 9999. */
uint64_t keyring_sealing_end(struct keyring *ring);

/* GET /keys: the card of this hanji (seal/card.h), application/json; 503 while there are no
 * keys. */
handler_fn keys_card;

#endif
