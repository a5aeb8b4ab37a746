/* Large documents: sent by the web server from a file, or streamed from that file through FastCGI.
 *
 * The files are db/blobs. One is made on a thread of the pool when a document is read that has none
 * (a document that fits in memory is answered from there the first time, so that what is read once
 * is not written again). */
#ifndef HANJI_HANDLERS_BLOB_H
#define HANJI_HANDLERS_BLOB_H

#include "db/blobs.h"
#include "db/doc.h"
#include "fcgi/buf.h"

/* What the file of a document holds. */
struct db_blob_of blob_of(const struct db_doc *doc);

/* The state of a document a file was made of. */
struct blob_made {
    enum db_result result;
    struct db_blob_of of;
    int fd; /* a file that could not be kept: the caller closes it; -1 else */
};

/* Makes sure that there is a file of the document as it is now. On a thread of the pool. */
void blob_make(struct db_blobs *blobs, struct db_reader *reader, struct str key,
               struct blob_made *made);

#endif
