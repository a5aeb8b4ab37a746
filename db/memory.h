/* How much memory SQLite takes for what runs on this thread now. Private to db/.
 *
 * SQLite's own bounds are for the process and cost a lock at each allocation. Here a thread counts,
 * and only between begin and end; beyond the bound SQLite gets nothing and the statement fails. */
#ifndef HANJI_DB_MEMORY_H
#define HANJI_DB_MEMORY_H

#include "db/db.h"

/* Puts itself between SQLite and its allocator. Before sqlite3_initialize. */
bool db_memory_init(void) __attribute__((warn_unused_result));

/* From now on this thread counts from 0 and takes no more than max_bytes. */
void db_memory_begin(size_t max_bytes);

/* Stops counting; safe without begin. What was counted is forgotten at the next begin. */
void db_memory_end(void);

/* Goes on counting after an end. */
void db_memory_resume(size_t max_bytes);

/* True when the bound was met since begin. */
bool db_memory_over(void);

#endif
