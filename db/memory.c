#include "db/memory.h"

#include <sqlite3.h>

static sqlite3_mem_methods real;

static _Thread_local struct {
    int64_t used, max; /* max 0: nobody counts */
    bool over;
} run;

/* True when there is room for that many bytes more. */
static bool fits(int64_t more)
{
    if (run.used + more <= run.max)
        return true;
    run.over = true;
    return false;
}

static void *take(int n)
{
    if (run.max == 0)
        return real.xMalloc(n);
    void *p = fits(n) ? real.xMalloc(n) : NULL;
    run.used += p != NULL ? real.xSize(p) : 0;
    return p;
}

static void give(void *p)
{
    if (run.max != 0 && p != NULL)
        run.used -= real.xSize(p);
    real.xFree(p);
}

static void *retake(void *p, int n)
{
    if (run.max == 0)
        return real.xRealloc(p, n);
    int64_t before = real.xSize(p);
    void *q = fits(n - before) ? real.xRealloc(p, n) : NULL;
    run.used += q != NULL ? real.xSize(q) - before : 0;
    return q;
}

bool db_memory_init(void)
{
    if (real.xMalloc != NULL)
        return true;
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real) != SQLITE_OK)
        return false;
    sqlite3_mem_methods ours = real;
    ours.xMalloc = take;
    ours.xFree = give;
    ours.xRealloc = retake;
    return sqlite3_config(SQLITE_CONFIG_MALLOC, &ours) == SQLITE_OK;
}

void db_memory_begin(size_t max_bytes)
{
    run.used = 0;
    run.over = false;
    run.max = (int64_t)max_bytes;
}

void db_memory_end(void)
{
    run.max = 0;
}

void db_memory_resume(size_t max_bytes)
{
    run.max = (int64_t)max_bytes;
}

bool db_memory_over(void)
{
    return run.over;
}
