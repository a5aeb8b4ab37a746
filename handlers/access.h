/* Who may do what: credentials and prefixes.
 *
 * Nothing is writable, and nothing but public collections readable, without a credential. A token
 * is looked up in the round's snapshot for every request, so that a revoked one stops working at
 * the next. Prefixes are URL paths below the mount, one a line: one that ends in '/' covers what is
 * below it, another covers exactly that path and what is below it; "/" covers everything. */
#ifndef HANJI_HANDLERS_ACCESS_H
#define HANJI_HANDLERS_ACCESS_H

#include "db/token.h"
#include "fcgi/loop.h"

enum access {
    ACCESS_OK,
    ACCESS_NO_CREDENTIAL,  /* 401 */
    ACCESS_BAD_CREDENTIAL, /* 401: unknown, expired, malformed */
    ACCESS_FORBIDDEN,      /* 403: good, but not for this */
    ACCESS_NO_STORE,       /* 500: cannot be told */
};

enum credential_kind { CREDENTIAL_NONE, CREDENTIAL_TOKEN, CREDENTIAL_OPERATOR };

/* Who asks. A value: what parks copies it, and judges it again in a later snapshot. */
struct credential {
    enum credential_kind kind;
    unsigned char hash[DB_TOKEN_HASH_BYTES];
};

/* Judges the call's path, for writing or reading, and keeps who asks in the session
 * (access_who). */
enum access access_check(struct call *c, bool write);

/* Who the call that is being answered comes from, as access_check found. */
const struct credential *access_who(const struct call *c);

/* Judges another path, in the round's snapshot: for requests that name several, and for those that
 * were parked. */
enum access access_judge(struct call *c, const struct credential *who, struct str path, bool write);

enum access_public {
    ACCESS_PRIVATE,
    ACCESS_PUBLIC, /* can be read without a credential */
    ACCESS_SITE,   /* … and its documents may act as pages of the site */
};

/* What the configuration says of the call's path. */
enum access_public access_public_kind(const struct call *c);

/* Turns what a person writes into a prefix of URL paths and appends it as a line to out: a leading
 * '/' means a path, anything else a document key ("" all documents). False when malformed or memory
 * is short. */
bool access_add_prefix(struct buf *out, struct str text) __attribute__((warn_unused_result));

/* The same for the comma-separated prefixes of the configuration's `public`. */
bool access_public(const char *list, struct buf *out) __attribute__((warn_unused_result));

/* True when one of the lines covers path. */
bool access_covers(struct str lines, struct str path);

#endif
