/* Files the web server may send: copies of large bodies, in a folder it can read.
 *
 * A file is named by its content (the caller's digest, in hex) and never changed: it is written
 * under a temporary name and renamed. What is known of them (which state of a document is in which
 * file) is in memory only, of bounded size; after a restart it is found out again. A file is served
 * only if it is still the one that was written or verified: same inode, size and time of change.
 * Use is noted in its access time, once a minute, also for other processes; one that was used in
 * the last ten minutes is never removed, so whoever was told its name can open it. SQLite stays the
 * truth: any file here may be deleted at any time.
 *
 * Any thread. */
#ifndef HANJI_DB_BLOBS_H
#define HANJI_DB_BLOBS_H

#include "db/db.h"

enum { DB_BLOB_NAME_LEN = 64 };

struct db_blobs;

/* The folder is made when it is not there: mode 02750, so that its files get its group, which is
 * `group` when that can be given (-1: the caller's own). NULL with error set when it cannot be
 * used. Removes what a crash left. */
struct db_blobs *db_blobs_open(const char *folder, int64_t group, uint64_t max_bytes,
                               struct db_error *error) __attribute__((warn_unused_result));
void db_blobs_close(struct db_blobs *b);

/* The absolute name of the folder, as long as b. */
const char *db_blobs_folder(const struct db_blobs *b);

/* Looks at who can read the folder: everybody in it sees all large documents. A sentence that says
 * what to do, or NULL. group: the web server's, -1 when it is not known. A folder of our own group
 * is taken to be for a web server that runs as the same user. */
const char *db_blobs_doubt(const struct db_blobs *b, int64_t group);

/* What a file holds: one state of one document. Both numbers, since a person can write any seq into
 * a row. */
struct db_blob_of {
    uint64_t seq; /* above 0 */
    int64_t id;
    uint64_t bytes;
};

enum db_blob_state {
    DB_BLOB_READY,  /* name is set, and good for ten minutes from now */
    DB_BLOB_SEEN,   /* no file, but it was asked for before */
    DB_BLOB_UNSEEN, /* asked for the first time */
};

/* Looks for its file. now_s: wall clock, Unix seconds. */
enum db_blob_state db_blobs_find(struct db_blobs *b, struct db_blob_of of, int64_t now_s,
                                 char name[DB_BLOB_NAME_LEN + 1]);

/* Opens a file of the folder for reading. -1 with errno set. */
int db_blobs_open_file(struct db_blobs *b, const char *name) __attribute__((warn_unused_result));

/* A file being written. */
struct db_blob_file {
    int fd; /* for writing and reading */
    char temporary[24];
};

/* False with errno set. */
bool db_blobs_create(struct db_blobs *b, struct db_blob_file *f)
    __attribute__((warn_unused_result));

/* Gives the file its name and notes what it holds, making room by removing old ones. False when
 * there is none: then the file has no name any more, but can be read. f->fd stays open in any
 * case. */
bool db_blobs_keep(struct db_blobs *b, struct db_blob_file *f, struct db_blob_of of,
                   const char *name)
    __attribute__((warn_unused_result));

/* Gives a file that is not wanted up; closes it. */
void db_blobs_discard(struct db_blobs *b, struct db_blob_file *f);

/* Notes a file that is there and was verified to hold that: fd is open on it. */
void db_blobs_note(struct db_blobs *b, struct db_blob_of of, const char *name, int fd);

#endif
