/* Comparing a password off the loop, for logins and HTTP Basic.
 *
 * At most VERIFY_MAX at a time in the process, each costs 19 MiB while it is computed; 503 beyond.
 * A user who is not there costs as much as one who is. A failure is logged with the name and the
 * client's address; a hash with parameters of the past is renewed. */
#ifndef HANJI_HANDLERS_VERIFY_H
#define HANJI_HANDLERS_VERIFY_H

#include "db/user.h"
#include "handlers/store.h"
#include "seal/password.h"

enum { VERIFY_MAX = 8 };

/* Handlers embed it as their first member. */
struct verify {
    struct task task;
    enum seal_password result;
    int64_t user; /* its number; 0: there is none of that name */
    char hash[SEAL_PASSWORD_HASH_MAX]; /* of the user, "" without one */
    char renewed[SEAL_PASSWORD_HASH_MAX];
    char name[DB_USER_NAME_MAX + 1];  /* as it was given, cut */
    char known[DB_USER_NAME_MAX + 1]; /* as the user is called, "" without one */
    char address[64];
    size_t password_len;
    char password[SEAL_PASSWORD_MAX]; /* wiped when answer has returned */
    /* On the loop, for RIGHT and WRONG: answers, or writes. */
    enum verdict (*answer)(struct verify *v, struct call *c);
    void (*release)(struct verify *v); /* in any case, last; may be NULL */
};

/* Parks the call in size bytes, zeroed but for the copies of name and password and what the round's
 * snapshot says about the user. NULL when an error was answered. */
void *verify_new(struct call *c, size_t size, struct str name, struct str password);

/* How passwords were found, since the start. Any thread. */
struct verify_stats {
    uint64_t right, wrong, refused; /* refused: 503, too many at once */
};
struct verify_stats verify_get_stats(void);

/* Hands it to the pool; answer is set. PARK, or REPLY when 503 was answered. */
enum verdict verify_run(struct call *c, struct verify *v) __attribute__((warn_unused_result));

#endif
