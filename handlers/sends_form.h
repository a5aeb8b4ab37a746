/* What a line is to be: settings as people give them, over HTTP or by `hanji line`, checked one by
 * one, then made into one operation.
 *
 * What was not given stays as it is on a line that is there: its secret and its keys are told to
 * nobody, so nobody could send them back. Any thread. */
#ifndef HANJI_HANDLERS_SENDS_FORM_H
#define HANJI_HANDLERS_SENDS_FORM_H

#include "db/line.h"
#include "fcgi/buf.h"
#include "seal/card.h"
#include "seal/webhook.h"

enum { SENDS_FORM_WRONG_MAX = 400 };

struct sends_form {
    char name[DB_LINE_NAME_MAX + 1];
    bool has_url, has_order, has_rate, has_private, has_ca, has_secret, has_keys;
    char url[DB_LINE_URL_MAX + 1];
    bool fifo, private_;
    double rate;
    char *ca; /* from malloc; NULL: none */
    unsigned char secret[SEAL_WHSEC_MAX];
    size_t secret_bytes;
    char new_secret[SEAL_WHSEC_TEXT_MAX + 1]; /* the one that was made, to be told once; "" none */
    struct db_line_key keys[DB_LINE_KEYS_MAX];
    unsigned key_count;
    char wrong[SENDS_FORM_WRONG_MAX]; /* why something was not taken: a sentence */
};

/* An empty one for a line of that name; the name has its form. */
void sends_form_start(struct sends_form *f, struct str name);

/* Overwrites what is secret and frees. */
void sends_form_free(struct sends_form *f);

/* Take one setting each; false: it is malformed, and f->wrong says how. */
bool sends_form_url(struct sends_form *f, struct str url) __attribute__((warn_unused_result));
bool sends_form_order(struct sends_form *f, struct str order) __attribute__((warn_unused_result));

/* "10/s", "0.5", "0" for no limit */
bool sends_form_rate(struct sends_form *f, struct str rate) __attribute__((warn_unused_result));
void sends_form_private(struct sends_form *f, bool yes);

/* Certificates in PEM; empty: those of the machine. */
bool sends_form_ca(struct sends_form *f, struct str pem) __attribute__((warn_unused_result));

/* "whsec_…", "new", or "none". */
bool sends_form_secret(struct sends_form *f, struct str text) __attribute__((warn_unused_result));

/* From now on the line is sealed to the keys that are given, and to no others. */
void sends_form_no_keys(struct sends_form *f);

/* A card that was verified, or its text: its sealing keys are added. */
bool sends_form_card(struct sends_form *f, const struct seal_card *card, int64_t now_s)
    __attribute__((warn_unused_result));
bool sends_form_card_text(struct sends_form *f, struct str text, int64_t now_s)
    __attribute__((warn_unused_result));

/* Fills in what was not given from the line, if there is one, in the reader's snapshot: DB_NONE,
 * and defaults, if there is none. */
enum db_result sends_form_complete(struct sends_form *f, struct db_reader *r)
    __attribute__((warn_unused_result));

/* The operation. NULL: memory is short, or, with f->wrong set, it cannot be made: the address is
 * missing, or there is no key to hide the secret with. */
struct db_op *sends_form_op(struct sends_form *f, const struct seal_keys *own, bool only_new)
    __attribute__((warn_unused_result));

#endif
