/* Operator commands: what `hanji COMMAND` does besides serving.
 *
 * Each gets the arguments behind its name and returns the exit status: 0 done, 1 failed, 2 wrong
 * usage. Results go to standard output, everything else to standard error. */
#ifndef HANJI_HANDLERS_CTL_H
#define HANJI_HANDLERS_CTL_H

#include "db/op.h"
#include "fcgi/conf.h"
#include "seal/card.h"

enum { CTL_OK = 0, CTL_FAILED = 1, CTL_USAGE = 2 };

typedef int ctl_fn(const struct conf *conf, int argc, char **argv);

ctl_fn ctl_token;   /* token new|list|revoke */
ctl_fn ctl_user;    /* user add|list|passwd|grant|logout|remove */
ctl_fn ctl_sql;     /* sql [SQL...] */
ctl_fn ctl_check;   /* check [FILE] */
ctl_fn ctl_backup;  /* backup [--force] DEST */
ctl_fn ctl_restore; /* restore FILE */
ctl_fn ctl_search;  /* search add|remove|list|rebuild */
ctl_fn ctl_export;  /* export [FLAG...] */
ctl_fn ctl_import;  /* import [FLAG...] FILE */
ctl_fn ctl_key;     /* key new|list|export|show|rotate|retire|prune */
ctl_fn ctl_line;    /* line add|set|list|show|pause|resume|retry|skip|replay|remove */
ctl_fn ctl_app;     /* app new|check|run|list|total */
ctl_fn ctl_inbox;   /* inbox add|set|list|show|close|open|remove */

/* What several commands share. */

enum { CTL_NAME_MAX = 64 };
#define CTL_NAME_RULE "a name has 1 to 64 letters, digits, '-', '_', '.' or '@'"

/* True for the name of a token or a user: 1 to 64 ASCII letters, digits, '-', '_', '.' or '@'. */
bool ctl_name_ok(const char *name);

/* How a command's failures are told. */
struct ctl_words {
    const char *command; /* "token" */
    const char *exists;  /* for DB_EXISTS */
    const char *none;    /* for DB_NONE */
    const char *conflict; /* for DB_CONFLICT, NULL: what that means everywhere */
};

/* Applies the operation through the running server, or in the file when none runs; says what went
 * wrong and returns the exit status. */
int ctl_apply(const struct conf *conf, const struct ctl_words *words, struct db_op *op);

/* A field of a table: lines separated by spaces, or '-', and a tab. */
void ctl_print_lines(const char *p, size_t n);

/* A field of a table: Unix seconds as RFC 3339, or "never" for 0. */
void ctl_print_time(int64_t unix_s, char end);

/* A card that an argument gave, as text of n bytes with a NUL behind, and as it was read. */
struct ctl_card {
    struct seal_card card;
    size_t n;
    char text[SEAL_CARD_MAX];
};

/* Reads and verifies the card that an argument gives: the name of a file, "-" for standard input,
 * or the text itself, which begins with '{'. False when it said on standard error what is wrong. */
bool ctl_card(const char *command, const char *from, struct ctl_card *c)
    __attribute__((warn_unused_result));

/* Two lines, fingerprint and identity, so that a person can compare them. */
void ctl_card_tell(const struct seal_card *card, FILE *out);

#endif
