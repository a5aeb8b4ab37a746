/* Admission: which line may send next, and which needs to be read. Nothing is queued in libcurl,
 * where a slow receiver would turn into time-outs of healthy ones.
 *
 * At most COURIER_FLYING messages are on their way; of one host COURIER_FLYING_HOST; of a line 1
 * when it is fifo or half-open, else up to COURIER_FLYING_LINE, to which it comes by doubling with
 * each that gets through. Lines that fail share COURIER_FLYING_TROUBLED, and those that have not
 * shown yet that they work leave some free, so one that works never waits for any that does not.
 * Lines take turns. What is in memory is bounded likewise, in bytes.
 *
 * Times in milliseconds: now_ms of the wall (due times are), mono_ms monotonic. The loop's thread
 * only. */
#ifndef HANJI_HANDLERS_COURIER_LINES_H
#define HANJI_HANDLERS_COURIER_LINES_H

#include "handlers/courier_item.h"
#include "handlers/courier_plan.h"

enum {
    COURIER_FLYING = 64,
    COURIER_FLYING_UNPROVEN = 48,
    COURIER_FLYING_TROUBLED = 16,
    COURIER_FLYING_HOST = 16,
    COURIER_FLYING_LINE = 8,
    COURIER_READ_MOST = 32,          /* messages of one read */
    COURIER_READ_BYTES = 512 << 10,  /* and of their bodies, but for the first */
    COURIER_HELD_BYTES = 8 << 20,    /* of bodies in memory */
    COURIER_HELD_BYTES_UNPROVEN = 6 << 20,
    COURIER_HELD_BYTES_TROUBLED = 2 << 20,
    COURIER_UNREPORTED = 1024, /* ended, but not reported yet: beyond it nothing is sent */
};

/* From best to worst. */
enum courier_trust { COURIER_PROVEN, COURIER_UNPROVEN, COURIER_TROUBLED, COURIER_TRUSTS };

struct courier_line {
    /* as it was read last */
    int64_t id, failing_s, wait_until_ms, row_due_ms;
    uint64_t row_seq, row_waiting;
    double rate;
    char name[DB_LINE_NAME_MAX + 1];
    bool fifo;
    bool open; /* it was in the last look, and is not paused */
    /* how it does */
    bool half_open, works;
    /* what is in hand */
    bool queued;  /* in the queue of lines with something ready */
    bool reading;
    bool anew;         /* it is read from the beginning, once nothing is in hand */
    uint32_t host;     /* a hash of it */
    unsigned seen;     /* the look it was last in */
    unsigned reported; /* the look that had begun when a mark was applied last: it may be older */
    enum courier_trust trust;
    unsigned allowed, strikes;
    unsigned ready_count, flying, unreported;
    uint64_t gap;
    double tokens;
    int64_t tokens_ms; /* mono_ms */
    struct courier_item *ready, **ready_tail;
    size_t bytes; /* of ready and flying */
    struct courier_line *queue_next;
    int64_t read_from_ms; /* not before; INT64_MAX: nothing to read */
    int64_t after_due_ms; /* read so far */
    uint64_t after_seq;
};

/* A line as the store has it. */
struct courier_row {
    int64_t id;
    char name[DB_LINE_NAME_MAX + 1];
    bool fifo, open;
    double rate;
    uint32_t host;
    uint64_t seq, waiting;
    int64_t due_ms, wait_until_ms, failing_s;
};

struct courier_lines {
    struct courier_line **all; /* by id */
    unsigned count, room;
    unsigned look, read_at;
    struct courier_line *queue, **queue_tail;
    unsigned flying, trust_flying[COURIER_TRUSTS], unreported, reading;
    size_t trust_bytes[COURIER_TRUSTS];
    struct { uint32_t host; unsigned flying; } hosts[2 * COURIER_FLYING];
};

void courier_lines_start(struct courier_lines *l);
void courier_lines_free(struct courier_lines *l);

/* A look at the store: begin when it is asked for, then each line of it, end. Of a line that is not
 * in it any more what is ready is dropped, and so is the line once nothing of it is in hand. */
void courier_lines_look_begin(struct courier_lines *l);
bool courier_lines_look(struct courier_lines *l, const struct courier_row *row, int64_t now_ms)
    __attribute__((warn_unused_result));
void courier_lines_look_end(struct courier_lines *l);

/* The next line to be read, marked as being read; how many messages. NULL: none now. */
struct courier_line *courier_lines_read(struct courier_lines *l, int64_t now_ms, unsigned *most);

/* What was read of it, in order. full: there may be more. next_ms: when it can be read again if
 * not, INT64_MAX: a look will tell. */
void courier_lines_was_read(struct courier_lines *l, struct courier_line *line,
                            struct courier_item *items, bool full, int64_t next_ms);

/* The next message to be sent, which is on its way from now on. NULL: none may now. */
struct courier_item *courier_lines_next(struct courier_lines *l, int64_t now_ms, int64_t mono_ms);

/* It ended so. What is ready of a line that must wait is dropped. */
void courier_lines_ended(struct courier_lines *l, struct courier_item *item,
                         const struct courier_plan *plan, int64_t now_ms);

/* The mark about it was applied, or never will be. */
void courier_lines_reported(struct courier_lines *l, struct courier_item *item);

/* When courier_lines_next or courier_lines_read may find something without anything else happening:
 * milliseconds from now, -1: never. */
int64_t courier_lines_wait(const struct courier_lines *l, int64_t now_ms, int64_t mono_ms);

/* True while anything is in hand. */
bool courier_lines_busy(const struct courier_lines *l);

#endif
