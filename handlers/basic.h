/* HTTP Basic (RFC 7617), for programs that know nothing else: reading, below the prefixes of the
 * configuration's `basic`.
 *
 * A pair that was right is remembered for minutes, under a hash with a key that only this process
 * has and with the user's hash in it: another password is another pair, and a user who is gone is
 * not found. The table belongs to a loop's thread and is bounded. */
#ifndef HANJI_HANDLERS_BASIC_H
#define HANJI_HANDLERS_BASIC_H

#include "handlers/access.h"

enum { BASIC_PAIRS = 64, BASIC_REMEMBER_S = 300 };

struct basic_pair {
    unsigned char pair[32];
    int64_t until_s; /* wall clock; 0: empty */
};

struct basic_table {
    struct basic_pair pairs[BASIC_PAIRS];
};

/* Who the credentials of the header (what follows "Basic ") are: ACCESS_OK with who filled,
 * ACCESS_BAD_CREDENTIAL when malformed, ACCESS_VERIFY when they must be compared first. */
enum access basic_identify(struct call *c, struct str credentials, struct credential *who);

/* Compares them and dispatches the call again when they are right; else answers 401. */
enum verdict basic_verify(struct call *c);

/* Judges one that was identified earlier: the user's rights now, if the password is still that. */
enum access basic_judge(struct call *c, const struct credential *who, struct str path, bool write);

#endif
