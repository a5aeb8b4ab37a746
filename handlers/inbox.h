/* Inboxes over HTTP: /inbox/NAME takes what others send; below it owners read and manage.
 *
 * POST /inbox/NAME is for anybody: who sends says so by signatures (Standard Webhooks). All else
 * asks for a credential: reading for one whose prefixes cover the path, changing for one with all
 * rights. */
#ifndef HANJI_HANDLERS_INBOX_H
#define HANJI_HANDLERS_INBOX_H

#include "db/inbox.h"
#include "fcgi/buf.h"
#include "handlers/routes.h"
#include "seal/card.h"
#include "seal/webhook.h"

enum {
    INBOX_BODY_MAX = 512 << 10, /* bytes of what is posted */
    INBOX_SECRET_ABOUT_MAX = 6 + DB_LINE_NAME_MAX + 1,
};

handler_fn inbox_list; /* GET /inbox/ */
handler_fn inbox;      /* all below it */

/* What inbox calls, for a name that may be one. */
enum verdict inbox_receive(struct call *c, struct str name);
enum verdict inbox_put(struct call *c, struct str name);
enum verdict inbox_messages(struct call *c, struct str name);
enum verdict inbox_message(struct call *c, struct str name, int64_t number);

/* Finds it in the round's snapshot. Answers 404, or what the store said, and returns false. */
bool inbox_find(struct call *c, struct str name, struct db_inbox *in)
    __attribute__((warn_unused_result));

/* A change of the name that was applied: 204, 404, or what went wrong. */
struct write;
void inbox_changed(struct write *w, struct call *c);

/* "inbox:NAME", what a secret that is hidden is about. */
struct seal_text inbox_about(struct str name, char text[INBOX_SECRET_ABOUT_MAX]);

/* Keys of senders being gathered from their cards. */
struct inbox_senders {
    struct db_inbox_key key[DB_INBOX_KEYS_MAX];
    unsigned count;
};

/* Adds those of a card: its identities and transport keys, of one root. Another card of a sender
 * that is there adds to it. False, with error set: it is no card, or there are too many keys. */
bool inbox_add_card(struct inbox_senders *s, struct seal_text text, struct seal_error *error)
    __attribute__((warn_unused_result));

/* How many messages came to what, since the start. Any thread. */
struct inbox_stats {
    uint64_t stored, again, refused, failed, limited;
};
struct inbox_stats inbox_get_stats(void);

#endif
