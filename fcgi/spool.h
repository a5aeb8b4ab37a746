/* Request bodies too large for memory: unlinked files beside the store.
 *
 * Such a file has no name, so whatever happens to the process it leaves nothing behind. Written and
 * read at the loop's pace through the page cache; never synced, since what is kept is copied into
 * the store. */
#ifndef HANJI_FCGI_SPOOL_H
#define HANJI_FCGI_SPOOL_H

#include <stdbool.h>
#include <stddef.h>

/* A new file without a name in the folder. Its descriptor, or -1 with errno set. */
int spool_open(const char *folder) __attribute__((warn_unused_result));

/* Writes all n bytes at the file's position. False with errno set. */
bool spool_write(int fd, const void *p, size_t n) __attribute__((warn_unused_result));

/* Reads exactly n bytes at offset. False with errno set (0: the file is shorter). */
bool spool_read(int fd, void *p, size_t n, size_t offset) __attribute__((warn_unused_result));

#endif
