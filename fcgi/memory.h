/* The worker's memory: how the allocator behaves, and what start-up leaves behind. */
#ifndef HANJI_FCGI_MEMORY_H
#define HANJI_FCGI_MEMORY_H

/* One arena; no trimming back and forth on the hot path (a page fault costs more than the memory);
 * large blocks go back to the system. Before any thread. */
void memory_settle(void);

/* Unmaps pages of code and constants that start-up touched and serving may never: they are clean,
 * so what is needed again comes back from the page cache. Pages that were written (also relocated
 * ones) are left alone. Call once when ready. */
void memory_give_back(void);

#endif
