#include "handlers/blob.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fcgi/spool.h"
#include "seal/digest.h"

_Static_assert((int)SEAL_DIGEST_HEX_LEN == (int)DB_BLOB_NAME_LEN, "a name is a digest in hex");

enum { PIECE_BYTES = 65536 };

struct db_blob_of blob_of(const struct db_doc *doc)
{
    return (struct db_blob_of){.seq = doc->seq, .id = doc->id, .bytes = doc->size};
}

static bool digest_piece(void *arg, const void *p, size_t n)
{
    seal_digest_add(arg, p, n);
    return true;
}

static bool write_piece(void *arg, const void *p, size_t n)
{
    return spool_write(*(const int *)arg, p, n);
}

static void end_name(struct seal_digest *d, char name[DB_BLOB_NAME_LEN + 1])
{
    unsigned char digest[SEAL_DIGEST_BYTES];
    seal_digest_end(d, digest);
    seal_digest_hex(digest, name);
}

/* True when the open file holds what its name says. */
static bool verified(int fd, uint64_t size, const char *name)
{
    unsigned char piece[PIECE_BYTES];
    char found[DB_BLOB_NAME_LEN + 1];
    struct seal_digest d;
    struct stat st;
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_size != size)
        return false;
    seal_digest_init(&d);
    for (uint64_t at = 0; at < size;) {
        size_t take = size - at < sizeof piece ? (size_t)(size - at) : sizeof piece;
        if (!spool_read(fd, piece, take, (size_t)at))
            return false;
        seal_digest_add(&d, piece, take);
        at += take;
    }
    end_name(&d, found);
    return memcmp(found, name, DB_BLOB_NAME_LEN) == 0;
}

/* A file of another life, or of another document with the same content. */
static bool found(struct db_blobs *blobs, const struct db_doc *doc, const char *name)
{
    int fd = db_blobs_open_file(blobs, name);
    bool ok = fd >= 0 && verified(fd, doc->size, name);
    if (ok)
        db_blobs_note(blobs, blob_of(doc), name, fd);
    if (fd >= 0)
        close(fd);
    return ok;
}

static enum db_result copy(struct db_blobs *blobs, struct db_reader *reader,
                           const struct db_doc *doc, const char *name, int *unkept)
{
    struct db_blob_file f = {.fd = -1};
    if (!db_blobs_create(blobs, &f))
        return DB_FULL;
    enum db_result result = db_doc_body(reader, doc, write_piece, &f.fd);
    if (result != DB_OK) {
        db_blobs_discard(blobs, &f);
        return result == DB_INVALID ? DB_FULL : result;
    }
    if (db_blobs_keep(blobs, &f, blob_of(doc), name))
        close(f.fd);
    else
        *unkept = f.fd;
    return DB_OK;
}

static enum db_result make(struct db_blobs *blobs, struct db_reader *reader, struct str key,
                           struct blob_made *made)
{
    char name[DB_BLOB_NAME_LEN + 1];
    struct seal_digest d;
    struct db_doc doc;
    enum db_result result = db_doc_get(reader, key.p, key.n, 0, &doc);
    if (result != DB_OK)
        return result;
    made->of = blob_of(&doc);
    if (db_blobs_find(blobs, made->of, time(NULL), name) == DB_BLOB_READY)
        return DB_OK;
    seal_digest_init(&d);
    result = db_doc_body(reader, &doc, digest_piece, &d);
    if (result != DB_OK)
        return result;
    end_name(&d, name);
    return found(blobs, &doc, name) ? DB_OK : copy(blobs, reader, &doc, name, &made->fd);
}

void blob_make(struct db_blobs *blobs, struct db_reader *reader, struct str key,
               struct blob_made *made)
{
    *made = (struct blob_made){.result = DB_BROKEN, .fd = -1};
    if (reader == NULL)
        return;
    made->result = db_reader_begin(reader);
    if (made->result == DB_OK)
        made->result = make(blobs, reader, key, made);
    db_reader_end(reader);
}
