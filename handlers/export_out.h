/* The lines of an export (docs/operations.md, "Export and import"): one JSON object a line.
 *
 *     {"hanji":"export","version":1,"seq":N,"prefix":P,"after":K}
 *     {"key":K,"type":T,"modified":S,"seq":N,"size":B,"text":"…"}      or "base64":"…"
 *     {"hanji":"end","documents":N}
 *
 * Bytes are gathered and written in large pieces; a failed write is remembered. One thread. */
#ifndef HANJI_HANDLERS_EXPORT_OUT_H
#define HANJI_HANDLERS_EXPORT_OUT_H

#include "db/export.h"
#include "fcgi/buf.h"

struct export_out {
    int fd;
    struct buf buf;
    int failed; /* errno of the first write that failed, 0: none; ENOMEM: memory was short */
};

void export_header(struct export_out *o, uint64_t seq, struct str prefix, struct str after);
void export_end(struct export_out *o, uint64_t documents);

/* One document, its body read from e where it is large; what is gathered is written then, while the
 * snapshot is held. DB_INVALID, and nothing written, when its key is no UTF-8. */
enum db_result export_document(struct export_out *o, struct db_export *e,
                               const struct db_export_doc *doc)
    __attribute__((warn_unused_result));

/* True when so much is gathered that it should be written. */
bool export_full(const struct export_out *o);

/* Writes what is gathered; false when this or an earlier write failed. */
bool export_flush(struct export_out *o);

#endif
