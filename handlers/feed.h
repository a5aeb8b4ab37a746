/* The change feed as it is written out, and pages of it that several watchers share.
 *
 * A page is a stretch of the feed, rendered once: for streams as events, for answers as JSON. It is
 * kept under the number it begins behind, so that all watchers who stand there take the same one;
 * what a watcher has missed is read again from the file, so that nothing is queued for anybody.
 * What a page says stays true: entries only come behind its end. Of a loop's thread. */
#ifndef HANJI_HANDLERS_FEED_H
#define HANJI_HANDLERS_FEED_H

#include "db/change.h"
#include "fcgi/loop.h"
#include "handlers/json.h"

/* One entry of a page, as places in its text and its keys. */
struct feed_entry {
    uint64_t seq;
    uint32_t event, event_len; /* "id: 7\ndata: {…}\n\n" */
    uint32_t json, json_len;   /* the {…} in it */
    uint32_t key, key_len;
};

struct feed_page {
    uint64_t from, next; /* it has all entries behind from, up to next */
    bool kept;           /* it may be taken again */
    bool whole;          /* there were none behind it */
    bool failed;         /* memory ran short */
    unsigned count;
    uint64_t used;
    struct buf text, keys, entries;
};

enum {
    FEED_PAGES = 8,
    FEED_READS = 8,                     /* of the file, a round */
    FEED_READS_BEHIND = FEED_READS / 2, /* by those who look through a long feed */
};

struct feed {
    struct feed_page pages[FEED_PAGES];
    uint64_t uses;
    unsigned reads; /* of the file, in this round */
};

enum feed_result {
    FEED_OK,
    FEED_LATER, /* this round has read enough: ask again in the next */
    FEED_FAILED,
};

/* The page behind from, of the reader's open snapshot or an older one. It is dead at the next call
 * and at the end of the round. FEED_LATER: it would have to be read, and this round has read `most`
 * times. FEED_FAILED: the file cannot be read, or memory is short. */
enum feed_result feed_page(struct feed *f, struct db_reader *r, uint64_t from, unsigned most,
                           const struct feed_page **page) __attribute__((warn_unused_result));

const struct feed_entry *feed_entry(const struct feed_page *p, unsigned i);
bool feed_matches(const struct feed_page *p, const struct feed_entry *e, struct str prefix);

/* keep: somebody still watches, and the pages may be wanted again. */
void feed_round_end(struct feed *f, bool keep);

/* {"seq":7,"key":"notes/a","op":"put","etag":"\"7\""}; etag is null where the document is gone. */
void feed_json(struct json *j, const struct db_change *change);

/* An answer of {"changes":[…],"next":N}: begin, the entries each with ",\n" before it, the
 * first with "\n", answer. */
struct json feed_begin(struct call *c);
enum verdict feed_answer(struct call *c, struct json *j, uint64_t next);

#endif
