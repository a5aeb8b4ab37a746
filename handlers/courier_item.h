/* A message in the courier's hands, from when it is read until the mark about it was applied. One
 * thread at a time has it: the reader's makes and signs it, the loop's delivers it, the reporter's
 * reports it, the loop's frees it. */
#ifndef HANJI_HANDLERS_COURIER_ITEM_H
#define HANJI_HANDLERS_COURIER_ITEM_H

#include "db/courier.h"
#include "seal/webhook.h"

enum {
    COURIER_SIGNATURES_MAX = 4, /* entries of webhook-signature that we send */
    COURIER_SIGNATURE_ROOM = COURIER_SIGNATURES_MAX * (SEAL_WEBHOOK_ENTRY_MAX + 1),
};

/* Where messages of a line go, as it was when they were read. The last item frees it. */
struct courier_target {
    unsigned items;
    bool private_;
    char *ca; /* PEM; NULL: the machine's authorities */
    size_t ca_bytes;
    size_t secret_bytes;
    unsigned char secret[SEAL_WHSEC_MAX];
    char url[];
};

enum courier_use {
    COURIER_SEND,
    COURIER_OVER,  /* nothing is to be sent: state says what it is now */
    COURIER_UNFIT, /* it cannot be signed: why says it */
};

struct courier_line;

struct courier_item {
    struct courier_item *next;
    struct courier_line *line;
    struct courier_target *target;
    uint32_t host; /* where it was counted when it was sent */
    enum courier_use use;
    enum db_send_state state; /* of COURIER_OVER */
    const char *why;          /* constant text */
    int64_t number, due_ms, created_s, expires_s;
    uint64_t seq;
    unsigned tries;
    bool sealed, skipped, has_proof; /* has_proof: made now, to be kept */
    unsigned char proof[DB_PROOF_BYTES];
    char id[DB_MESSAGE_ID_LEN + 1];
    int64_t signed_s; /* Unix: the timestamp that is signed */
    char signature[COURIER_SIGNATURE_ROOM];
    const char *type;
    char *body;       /* from malloc: the body, and behind it the type */
    size_t bytes;
    struct db_mark mark; /* once it ended */
};

/* Frees what it has of the message, and keeps the mark. */
void courier_item_empty(struct courier_item *item);
void courier_item_free(struct courier_item *item); /* safe with NULL */

#endif
