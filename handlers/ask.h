/* What a request to the change feed asks for: its parameters, checked, and whether whoever asks may
 * read it. */
#ifndef HANJI_HANDLERS_ASK_H
#define HANJI_HANDLERS_ASK_H

#include "db/change.h"
#include "db/doc.h"
#include "handlers/access.h"

enum { ASK_LIMIT_DEFAULT = 100, ASK_LIMIT_MAX = 1000, ASK_WAIT_MAX_S = 60 };

struct ask {
    uint64_t since; /* go on behind this number */
    bool now;       /* since is the last number of the snapshot instead */
    bool stream;    /* as text/event-stream */
    bool of_app;    /* prefix is that of an app, "apps/NAME/…", whose right to read counts */
    unsigned limit;
    unsigned wait_s; /* 0: answer at once */
    size_t prefix_len;
    char prefix[DB_KEY_MAX]; /* of the keys that count */
};

/* Takes the parameters of the call. False: one is malformed, and 400 was answered. */
bool ask_take(struct call *c, struct ask *ask) __attribute__((warn_unused_result));

/* Judges, in the round's snapshot, whether who may read all documents whose keys begin with prefix:
 * the collection in which that begins must be covered, since "a" is also the beginning of "ab".
 * of_app: whether he may read the app whose documents those are. */
enum access ask_judge(struct call *c, const struct credential *who, struct str prefix,
                      bool of_app);

/* Answers 401, 403 or 500 unless access is ACCESS_OK; true when it answered. */
bool ask_refused(struct call *c, enum access access) __attribute__((warn_unused_result));

/* Finds where the feed begins and ends, and sets ask.since of one that asks from now on. Answers
 * 410 and returns false when it cannot be continued from there. */
bool ask_bounds(struct call *c, struct ask *ask, struct db_change_bounds *bounds)
    __attribute__((warn_unused_result));

#endif
