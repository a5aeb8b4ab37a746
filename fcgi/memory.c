#include "fcgi/memory.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MMAP_FROM_BYTES = 256 << 10, TRIM_FROM_BYTES = 1 << 20, GROW_BYTES = 64 << 10 };

void memory_settle(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, MMAP_FROM_BYTES);
    mallopt(M_TRIM_THRESHOLD, TRIM_FROM_BYTES);
    mallopt(M_TOP_PAD, GROW_BYTES);
}

/* A segment without PF_W is mapped from its file and never written: relocations, and what is made
 * read-only behind them, lie in writable segments. */
static int give_back(struct dl_phdr_info *object, size_t size, void *arg)
{
    uintptr_t page = *(const uintptr_t *)arg;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) != 0)
            continue;
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        uintptr_t end = (start + segment->p_filesz + page - 1) & ~(page - 1);
        start &= ~(page - 1);
        madvise((void *)start, end - start, MADV_DONTNEED);
    }
    return 0;
}

void memory_give_back(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    dl_iterate_phdr(give_back, &page);
}
