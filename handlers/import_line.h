/* One line of an import, read as it comes: a flat JSON object (handlers/export_out.h has the
 * forms).
 *
 * The body is decoded into memory of its own size while the line is read, so a line is never held
 * and may be of any length; everything else is small and capped. What is not RFC 8259 is a fault,
 * and so is half of a surrogate pair, a member twice, an object or array as a value, base64 that is
 * not canonical, and a size that does not fit. Members with other names are passed over. One
 * thread. */
#ifndef HANJI_HANDLERS_IMPORT_LINE_H
#define HANJI_HANDLERS_IMPORT_LINE_H

#include <stdint.h>

#include "fcgi/buf.h"

enum import_kind {
    IMPORT_BLANK,
    IMPORT_HEADER,   /* version */
    IMPORT_DOCUMENT, /* key, type, body, and modified if has_modified */
    IMPORT_END,      /* documents */
};

enum import_result {
    IMPORT_MORE,  /* the line goes on */
    IMPORT_LINE,  /* it is whole: kind and what belongs to it */
    IMPORT_FAULT, /* fault says why */
};

struct import_line {
    enum import_kind kind;
    struct buf key, type, body; /* kept from line to line for their memory, but for a large body */
    bool has_modified;
    int64_t modified;   /* Unix seconds, 0 to the end of year 9999 */
    uint64_t documents;
    const char *fault;
    /* private */
    size_t body_max;
    uint64_t size;
    uint32_t seen;       /* members, a bit for each field */
    uint32_t code;       /* of base64 the bits not yet written */
    uint32_t hex;        /* of an escape */
    uint32_t high;       /* the first half of a surrogate pair, 0: none */
    uint8_t state, field;
    uint8_t digits;      /* of an escape, that follow */
    uint8_t quad;        /* characters of a group of base64 that were read */
    uint8_t padding;
    char word[32];       /* a name, a number, a short string */
    uint8_t word_len;
    bool word_long;
    bool in_name; /* the string that is open is a name */
    bool fresh;   /* the next byte begins a line */
};

/* An empty reader; no body may be larger than that. */
void import_line_init(struct import_line *l, size_t body_max);
void import_line_free(struct import_line *l);

/* Takes bytes up to the end of the line; *used says how many. After IMPORT_LINE the next call
 * begins a new line; after IMPORT_FAULT there is none. */
enum import_result import_line_feed(struct import_line *l, const unsigned char *p, size_t n,
                                    size_t *used) __attribute__((warn_unused_result));

/* The file has ended: as a line's end, unless nothing of a line was there (then IMPORT_MORE). */
enum import_result import_line_finish(struct import_line *l) __attribute__((warn_unused_result));

#endif
